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
    """Which of the taxis with trips the attack names, rightly and at all, and which of those without."""

    correctly_named: np.ndarray
    members_named: np.ndarray
    non_members_named: np.ndarray
    targets: np.ndarray  # the places of the first members among the taxis
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
    """Open the codes that stand in place of taxi numbers, and with them what a taxi did and earned.

    `data` are `Taxis`, made up unless given. Released are trips with the MD5 of the number ("nothing"), with SHA-256 of
    a salt and the number, where the salt leaks ("easy"), keyed pseudonyms and the curator's count for each number
    ("curator", for so many `targets` of each kind), or what a function of yours makes of the list of numbers: a list of
    codes, or a function that answers arrays of counts. `forms` are what numbers look like: 9 a digit, A a letter.

    >>> pseudonyms(random_state=0).success
    1.0
    >>> pseudonyms(defence="with_easy_fix", random_state=0).details["codes crack_codes"]
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
        metric="of the taxis were named",
        # A stranger is a taxi that made no trip: the curator protects all that a taxi did, whether it is there or not.
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
            f"the defence must return one code for each of the {len(taxis.numbers):,} numbers that it was given, not "
            f"{len(codes):,}; or a function that takes an array of counts and returns them with noise"
        )
    return codes


def _name_by_dictionary(taxis: Taxis, codes: list[str], numbers: list[str]) -> _NamedTaxis:
    cracked = crack_codes(codes, numbers)
    cracked_numbers = set(cracked.values())
    cracked_hashes = [normalise_case(code) in cracked for code in codes[len(taxis.numbers) :]]  # known as hashes only
    correctly_named = [
        cracked.get(normalise_case(code)) == number for code, number in zip(codes, taxis.numbers, strict=False)
    ]
    members_named, non_members_named = (
        [number in cracked_numbers for number in each] for each in (taxis.numbers, taxis.others)
    )
    details = {
        "codes released": len(codes),
        "codes opened": sum(correctly_named + cracked_hashes),
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
    """Return what opens with a number: a taxi's day and income."""
    known_trips = trips.filter(pc.is_in(trips["medallion"], pa.array(sorted(numbers), pa.string())))
    if not known_trips.num_rows:
        return {"trips that a name was put to": 0}
    days = known_trips.group_by(["medallion", "day"]).aggregate([("total", "sum"), ("total", "count")]).to_pylist()
    best = max(days, key=lambda each: each["total_sum"])
    return {
        "trips that a name was put to": known_trips.num_rows,
        "best day of one taxi": f"{best['total_count']} trips and {best['total_sum']:,.0f} dollars",
    }


def _name_by_counts(taxis: Taxis, oracle: CountOracle, rng: np.random.Generator, max_targets: int) -> _NamedTaxis:
    """Ask for each number how many taxis of it made trips: 1 or 0, and noise; from a threshold on it is named."""
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
        "codes opened": len(crack_codes(codes, [*taxis.numbers, *taxis.others])),
        "taxis asked about": len(with_trips),
        "taxis without a trip that were named": int(non_members_named.sum()),
    }
    return _NamedTaxis(members_named, members_named, non_members_named, with_trips, details)


def _exposure(taxis: Taxis, named_taxis: _NamedTaxis) -> Any:
    # Rare is a taxi with few trips.
    labels = [f"taxi {place}" for place in named_taxis.targets]
    hit = named_taxis.correctly_named[: len(named_taxis.targets)]
    return exposure_by_rarity(
        -taxis.counts[named_taxis.targets].astype(float), hit, labels=labels, rarity_label="few trips"
    )


def load(folder: Path) -> Taxis:
    """Read the taxis of New York in 2013, and some of their days."""
    return read_taxis(folder)


ATTACK = Attack(
    run=pseudonyms,
    docs_page="tables",
    summary="Opens codes that stand in place of taxi numbers by trying all numbers.",
    without_defence="trips with the MD5 of each number",
    with_easy_fix="trips with SHA-256 of a salt and the number; the salt leaks",
    with_curator="keyed pseudonyms, and a count for each number",
    built_in_data=f"{_TAXI_COUNT:,} made-up taxis with trips, and as many without",
    data_files=FILES,
    load=load,
)
