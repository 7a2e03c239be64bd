"""Pseudonyms: codes in place of taxi numbers, opened by trying all numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet import anonymity
from discreet.attacks.checking import generator
from discreet.attacks.defences import CURATOR, EASY, OWN, Defence, Shield, shield
from discreet.attacks.listing import Attack
from discreet.attacks.rarity import exposure
from discreet.attacks.result import AttackResult
from discreet.attacks.tables.coding import folded, md5, opened, salted
from discreet.attacks.tables.counting import Answers, answered, named, private_counts
from discreet.attacks.tables.naming import Naming
from discreet.attacks.tables.patients import checked
from discreet.attacks.tables.reading import oracle, texts
from discreet.attacks.tables.taxis import FILES, USUAL, Taxis, candidates, made_up_taxis, read_taxis
from discreet.kernel.exact import Number, whole

_BUILT_IN = 2000


@dataclass(frozen=True)
class _Opened:
    """Which of the taxis with trips the attack names, rightly and at all, and which of those without."""

    right: np.ndarray
    members: np.ndarray
    strangers: np.ndarray
    asked: np.ndarray  # the places of the first members among the taxis
    details: dict[str, Any]


def pseudonyms(  # noqa: PLR0913 - all but the first by name only
    data: Taxis | None = None,
    *,
    defence: Defence = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    forms: str | Sequence[str] = USUAL,
    targets: int = 4000,
) -> AttackResult:
    """Open the codes that stand in place of taxi numbers, and with them what a taxi did and earned.

    `data` are `Taxis`, made up unless given. Released are trips with the MD5 of the number ("nothing"), with SHA-256 of
    a salt and the number, where the salt leaks ("easy"), keyed pseudonyms and the curator's count for each number
    ("curator", for so many `targets` of each kind), or what a function of yours makes of the list of numbers: a list of
    codes, or a function that answers arrays of counts. `forms` are what numbers look like: 9 a digit, A a letter.

    >>> pseudonyms(random_state=0).success
    1.0
    >>> pseudonyms(defence="easy", random_state=0).details["codes opened"]
    2000
    """
    rng = generator(random_state)
    taxis = made_up_taxis(_BUILT_IN, rng) if data is None else checked(data, Taxis, "Taxis(numbers, counts, ...)")
    protected, most, numbers = shield(defence, epsilon), whole(targets, "targets", 1), list(candidates(forms))
    seen = _released(protected, taxis)
    found = _counted(taxis, seen, rng, most) if callable(seen) else _tried(taxis, seen, numbers)
    return AttackResult(
        attack="pseudonyms",
        shield=protected,
        metric="of the taxis were named",
        # A stranger is a taxi that made no trip: the curator protects all that a taxi did, whether it is there or not.
        evidence=Naming.of(found.right, found.members, found.strangers),
        details=found.details,
        exposure=_exposure(taxis, found),
    )


def _released(protected: Shield, taxis: Taxis) -> list[str] | Answers:
    if protected.word == CURATOR:
        return partial(private_counts, epsilon=protected.price)
    if protected.word == OWN and protected.make is not None:
        return _own(protected.make, taxis)
    return [*map(salted, taxis.numbers)] if protected.word == EASY else [*map(md5, taxis.numbers), *taxis.hashed]


def _own(make: Callable[..., Any], taxis: Taxis) -> list[str] | Answers:
    seen = make(list(taxis.numbers))
    answers = oracle(seen)
    if answers is not None:
        return answers
    codes = texts(seen, "the defence's codes")
    if len(codes) != len(taxis.numbers):
        raise ValueError(
            f"the defence must return one code for each of the {len(taxis.numbers):,} numbers that it was given, not "
            f"{len(codes):,}; or a function that takes an array of counts and returns them with noise"
        )
    return codes


def _tried(taxis: Taxis, codes: list[str], numbers: list[str]) -> _Opened:
    found = opened(codes, numbers)
    known = set(found.values())
    rest = [folded(code) in found for code in codes[len(taxis.numbers) :]]  # known as hashes only
    right = [found.get(folded(code)) == number for code, number in zip(codes, taxis.numbers, strict=False)]
    members, strangers = ([number in known for number in each] for each in (taxis.numbers, taxis.others))
    details = {
        "codes released": len(codes),
        "codes opened": sum(right + rest),
        "numbers tried": len(numbers),
        **_best_day(taxis.trips, known),
    }
    everybody = np.arange(len(taxis.numbers))
    return _Opened(np.array(right + rest), np.array(members + rest), np.array(strangers), everybody, details)


def _best_day(trips: pa.Table, numbers: set[str]) -> dict[str, Any]:
    """Return what opens with a number: a taxi's day and income."""
    known = trips.filter(pc.is_in(trips["medallion"], pa.array(sorted(numbers), pa.string())))
    if not known.num_rows:
        return {"trips that a name was put to": 0}
    days = known.group_by(["medallion", "day"]).aggregate([("total", "sum"), ("total", "count")]).to_pylist()
    best = max(days, key=lambda each: each["total_sum"])
    return {
        "trips that a name was put to": known.num_rows,
        "best day of one taxi": f"{best['total_count']} trips and {best['total_sum']:,.0f} dollars",
    }


def _counted(taxis: Taxis, answers: Answers, rng: np.random.Generator, most: int) -> _Opened:
    """Ask for each number how many taxis of it made trips: 1 or 0, and noise; from a threshold on it is named."""
    with_trips = np.sort(rng.permutation(len(taxis.numbers))[:most])
    without = min(len(taxis.others), most)
    exact = np.concatenate([np.ones(len(with_trips), np.int64), np.zeros(without, np.int64)])
    seen, decoys = answered(answers, exact[:, None])
    hit = named(seen[:, 0], decoys[:, 0], rng)
    members, strangers = hit[: len(with_trips)], hit[len(with_trips) :]
    keyed = anonymity.pseudonymise(pa.table({"number": taxis.numbers}), "number", anonymity.new_key())
    codes = keyed["number"].to_pylist()
    details = {
        "codes released": len(codes),
        "codes opened": len(opened(codes, [*taxis.numbers, *taxis.others])),
        "taxis asked about": len(with_trips),
        "taxis without a trip that were named": int(strangers.sum()),
    }
    return _Opened(members, members, strangers, with_trips, details)


def _exposure(taxis: Taxis, found: _Opened) -> Any:
    # Rare is a taxi with few trips.
    labels = [f"taxi {place}" for place in found.asked]
    hit = found.right[: len(found.asked)]
    return exposure(-taxis.counts[found.asked].astype(float), hit, labels=labels, by="few trips")


def load(folder: Path) -> Taxis:
    """Read the taxis of New York in 2013, and some of their days."""
    return read_taxis(folder)


ATTACK = Attack(
    run=pseudonyms,
    topic="tables",
    says="Opens codes that stand in place of taxi numbers by trying all numbers.",
    nothing="trips with the MD5 of each number",
    easy="trips with SHA-256 of a salt and the number; the salt leaks",
    curator="keyed pseudonyms, and a count for each number",
    built_in=f"{_BUILT_IN:,} made-up taxis with trips, and as many without",
    files=FILES,
    load=load,
)
