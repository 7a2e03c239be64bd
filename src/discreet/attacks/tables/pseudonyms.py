"""The pseudonym attack: reverse hashed taxi numbers by trying all numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet import anonymity
from discreet.attacks.defences import CURATOR, EASY, OWN, Defence, DefenceChoice, parse_defence
from discreet.attacks.evidence import ReidentificationEvidence
from discreet.attacks.registry import Attack
from discreet.attacks.result import AttackResult, exposure_by_rarity
from discreet.attacks.tables.dictionary_attack import crack_codes, md5, normalise_case, salted_hash
from discreet.attacks.tables.patients import require_type
from discreet.attacks.tables.table_releases import CountOracle, answers_and_decoys, exceeds_decoys, private_counts
from discreet.attacks.tables.taxis import FILES, USUAL_FORMS, Taxis, candidate_numbers, read_taxis, simulate_taxis
from discreet.attacks.tables.validation import count_oracle_or_none, text_list
from discreet.attacks.validation import random_generator
from discreet.kernel.numbers import Number, as_integer

_TAXI_COUNT = 2000


@dataclass(frozen=True)
class _NamedTaxis:
    """Which taxis with trips are named correctly, which are named at all, and which taxis without trips are named."""

    correctly_named: np.ndarray
    members_named: np.ndarray
    non_members_named: np.ndarray
    targets: np.ndarray  # the indices of the first members among the taxis
    details: dict[str, Any]


def pseudonyms(  # noqa: PLR0913 - all but the first by name only
    data: Taxis | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    forms: str | Sequence[str] = USUAL_FORMS,
    targets: int = 4000,
) -> AttackResult:
    """Reverse the codes that replace taxi numbers, and so learn each taxi's trips and income.

    `data` are `Taxis`, simulated by default. The release is the trips with the MD5 of the number ("nothing"), with
    SHA-256 of a leaked salt and the number ("easy"), or keyed pseudonyms and the curator's count for each number
    ("curator", for up to `targets` taxis with and without trips). A function as defence gets the list of numbers and
    returns a list of codes, or a function that answers arrays of counts. `forms` are the formats of the numbers: 9 is
    a digit, A a letter.

    >>> pseudonyms(random_state=0).success
    1.0
    >>> pseudonyms(defence="easy", random_state=0).details["codes reversed"]
    2000
    """
    rng = random_generator(random_state)
    taxis = (
        simulate_taxis(_TAXI_COUNT, rng) if data is None else require_type(data, Taxis, "Taxis(numbers, counts, ...)")
    )
    parsed_defence, max_targets, numbers = (
        parse_defence(defence, epsilon),
        as_integer(targets, "targets", 1),
        list(candidate_numbers(forms)),
    )
    release = _release_codes(parsed_defence, taxis)
    named_taxis = (
        _name_by_counts(taxis, release, rng, max_targets)
        if callable(release)
        else _name_by_dictionary(taxis, release, numbers)
    )
    return AttackResult(
        attack="pseudonyms",
        against=parsed_defence,
        metric="of taxis re-identified",
        # A non-member is a taxi without a trip: the curator protects all trips of a taxi, and so its presence.
        evidence=ReidentificationEvidence.from_outcomes(
            named_taxis.correctly_named, named_taxis.members_named, named_taxis.non_members_named
        ),
        details=named_taxis.details,
        exposure=_exposure(taxis, named_taxis),
    )


def _release_codes(defence: Defence, taxis: Taxis) -> list[str] | CountOracle:
    if defence.kind == CURATOR:
        return partial(private_counts, epsilon=defence.curator_epsilon)
    if defence.kind == OWN and defence.user_function is not None:
        return _user_codes(defence.user_function, taxis)
    return [*map(salted_hash, taxis.numbers)] if defence.kind == EASY else [*map(md5, taxis.numbers), *taxis.hashed]


def _user_codes(user_function: Callable[..., Any], taxis: Taxis) -> list[str] | CountOracle:
    returned = user_function(list(taxis.numbers))
    oracle = count_oracle_or_none(returned)
    if oracle is not None:
        return oracle
    codes = text_list(returned, "the defence's codes")
    if len(codes) != len(taxis.numbers):
        raise ValueError(
            f"the defence must return one code for each of its {len(taxis.numbers):,} numbers, not {len(codes):,}; "
            "or a function that takes an array of counts and returns them with noise"
        )
    return codes


def _name_by_dictionary(taxis: Taxis, codes: list[str], numbers: list[str]) -> _NamedTaxis:
    cracked = crack_codes(codes, numbers)
    cracked_numbers = set(cracked.values())
    cracked_hashes = [normalise_case(code) in cracked for code in codes[len(taxis.numbers) :]]  # known only as hashes
    correctly_named = [
        cracked.get(normalise_case(code)) == number for code, number in zip(codes, taxis.numbers, strict=False)
    ]
    members_named, non_members_named = (
        [number in cracked_numbers for number in each] for each in (taxis.numbers, taxis.others)
    )
    details = {
        "codes released": len(codes),
        "codes reversed": sum(correctly_named + cracked_hashes),
        "numbers tried": len(numbers),
        **_best_day(taxis.trips, cracked_numbers),
    }
    everybody = np.arange(len(taxis.numbers))
    return _NamedTaxis(
        np.array(correctly_named + cracked_hashes),
        np.array(members_named + cracked_hashes),
        np.array(non_members_named),
        everybody,
        details,
    )


def _best_day(trips: pa.Table, numbers: set[str]) -> dict[str, Any]:
    """Return how many trips are re-identified, and the most profitable day of one taxi."""
    known_trips = trips.filter(pc.is_in(trips["medallion"], pa.array(sorted(numbers), pa.string())))
    if not known_trips.num_rows:
        return {"trips re-identified": 0}
    days = known_trips.group_by(["medallion", "day"]).aggregate([("total", "sum"), ("total", "count")]).to_pylist()
    best = max(days, key=lambda each: each["total_sum"])
    return {
        "trips re-identified": known_trips.num_rows,
        "best day of one taxi": f"{best['total_count']} trips and {best['total_sum']:,.0f} dollars",
    }


def _name_by_counts(taxis: Taxis, oracle: CountOracle, rng: np.random.Generator, max_targets: int) -> _NamedTaxis:
    """Query how many taxis with each number made trips (1 or 0, plus noise); name those above a threshold."""
    with_trips = np.sort(rng.permutation(len(taxis.numbers))[:max_targets])
    without = min(len(taxis.others), max_targets)
    counts = np.concatenate([np.ones(len(with_trips), np.int64), np.zeros(without, np.int64)])
    answers, decoys = answers_and_decoys(oracle, counts[:, None])
    is_named = exceeds_decoys(answers[:, 0], decoys[:, 0], rng)
    members_named, non_members_named = is_named[: len(with_trips)], is_named[len(with_trips) :]
    keyed = anonymity.pseudonymise(pa.table({"number": taxis.numbers}), "number", anonymity.new_key())
    codes = keyed["number"].to_pylist()
    details = {
        "codes released": len(codes),
        "codes reversed": len(crack_codes(codes, [*taxis.numbers, *taxis.others])),
        "taxis targeted": len(with_trips),
        "non-members named": int(non_members_named.sum()),
    }
    return _NamedTaxis(members_named, members_named, non_members_named, with_trips, details)


def _exposure(taxis: Taxis, named_taxis: _NamedTaxis) -> Any:
    # Taxis with few trips count as rare.
    labels = [f"taxi {index}" for index in named_taxis.targets]
    hit = named_taxis.correctly_named[: len(named_taxis.targets)]
    return exposure_by_rarity(
        -taxis.counts[named_taxis.targets].astype(float), hit, labels=labels, rarity_label="few trips"
    )


def load(folder: Path) -> Taxis:
    """Read the taxis of New York in 2013 and the trips of some days."""
    return read_taxis(folder)


ATTACK = Attack(
    run=pseudonyms,
    docs_page="tables",
    summary="Reverses hashed taxi numbers by hashing all possible numbers.",
    without_defence="trips with the MD5 of each taxi number",
    with_easy_fix="trips with SHA-256 of a salt and the number; the salt leaks",
    with_curator="keyed pseudonyms, and a private count for each number",
    built_in_data=f"{_TAXI_COUNT:,} simulated taxis with trips, and as many without",
    data_files=FILES,
    load=load,
)
