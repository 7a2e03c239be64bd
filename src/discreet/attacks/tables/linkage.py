"""The linkage attack: re-identify people in a table without names by what is known about them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from discreet import anonymity
from discreet.attacks.attack import (
    CURATOR,
    EASY,
    NOTHING,
    Attack,
    AttackResult,
    DefenceChoice,
    DefenceRelease,
    Game,
    Number,
    whole,
)
from discreet.attacks.data.patients import ROW
from discreet.attacks.data.register import REGISTER, Ratings, Register
from discreet.attacks.private_answers import private_count_oracle
from discreet.attacks.tables import rating_linkage
from discreet.attacks.tables.attribute_inference import (
    checked_release,
    infer_values,
    inference_result,
    k_anonymous_release,
    rarity_of_rows,
)


def linkage(  # noqa: PLR0913 - all but the first by name only
    data: Register | Ratings | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    k: int = 5,
    targets: int = 2000,
) -> AttackResult:
    """Link rows without names to known people, and so learn their diagnosis or all of their ratings.

    `data` is a `Register` (patients and a public list of people; simulated by default) or `Ratings` (the attacker
    knows a few). The release is the table without names ("nothing"), a k-anonymous table or ratings with a tenth
    dropped and a tenth changed ("easy"), or the curator's counts of people who share a target's quasi-identifiers
    ("curator", for up to `targets` people). A function as defence gets the table with a column `row`, or the `Ratings`,
    and returns it modified or with rows left out, or returns a function that answers arrays of counts.

    >>> result = linkage(random_state=0)
    >>> result.details["correctly named"], result.details["patients"]
    (3599, 4000)
    >>> linkage(defence="easy", random_state=0).details["correctly named"]
    0
    """
    attack = _RATINGS if isinstance(data, Ratings) else ATTACK
    return attack.run(data, defence, epsilon, random_state, k=k, targets=targets)


def _play(game: Game) -> AttackResult:
    patients, released = game.data.patients, game.release()
    inference, _ = infer_values(game, released, patients)
    details: dict[str, Any] = {"patients": patients.table.num_rows, "people in the register": game.data.people.num_rows}
    if isinstance(released, pa.Table):
        details |= _naming_details(released, game.data)
    else:
        details |= {"correctly named": 0, "patients targeted": len(inference.people)}
    rarity = rarity_of_rows(patients.table, patients.quasi)
    return inference_result(game, "of patients' diagnoses inferred", inference, details, rarity)


def link_rows(table: pa.Table, people: pa.Table, quasi: list[str]) -> anonymity.LinkageRisk:
    """Return how many people of a list match each row of a table, and which person if there is only one.

    >>> table, people = pa.table({"age": ["30-39", "40-49"]}), pa.table({"age": [31, 33, 48]})
    >>> link_rows(table, people, ["age"]).unique_links.tolist()
    [[1, 2]]
    """
    return anonymity.measure(table.select(quasi), quasi, population=people).journalist


def _naming_details(released: pa.Table, data: Register) -> Mapping[str, Any]:
    linked = link_rows(released, data.people, list(data.patients.quasi))
    if linked.unique_links is None:
        return {}
    row, person = linked.unique_links.T
    is_correct = data.who[np.asarray(released[ROW])[row]] == person
    return {
        "correctly named": int(is_correct.sum()),
        "wrongly named": int((~is_correct).sum()),
        "expected share correct with random links": linked.mean_risk,
    }


ATTACK = Attack(
    function=linkage,
    docs_page="tables",
    summary="Links patients without names to a public list by the columns both share, and infers their diagnoses.",
    data=REGISTER,
    releases={
        NOTHING: DefenceRelease("the table of patients without names", lambda game: game.data.patients.numbered_table),
        EASY: DefenceRelease(
            "a 5-anonymous table", lambda game: k_anonymous_release(game.data.patients, game.settings.k)
        ),
        CURATOR: DefenceRelease(
            "counts by diagnosis of the people who share the target's quasi-identifiers", private_count_oracle
        ),
    },
    own=lambda game: checked_release(game.ask_user(game.data.patients.numbered_table), game.data.patients),
    play=_play,
    settings={"k": whole(2), "targets": whole(1)},
)
_RATINGS = replace(
    ATTACK,
    releases=rating_linkage.RELEASES,
    own=rating_linkage.user_ratings,
    play=rating_linkage.link_ratings,
)
