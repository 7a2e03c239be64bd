"""Pseudonyms: codes in place of taxi numbers, opened by trying all numbers."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet import anonymity
from discreet.attacks.defences import CURATOR, EASY, OWN, Defence, Shield, shield
from discreet.attacks.evidence import Found
from discreet.attacks.listing import Attack
from discreet.attacks.rarity import exposure
from discreet.attacks.result import AttackResult
from discreet.attacks.tables.counting import Answers, answered, named, private_counts
from discreet.attacks.tables.patients import checked
from discreet.attacks.tables.taxis import FILES, USUAL, Taxis, candidates, made_up_taxis, md5, read_taxis
from discreet.audit.counting import Share
from discreet.kernel.exact import Number, whole

_SALT = "c0ffee"  # of the easy fix: the program that made the codes has it, and so has whoever has the program
_BUILT_IN = 2000

Code = Callable[[str], str]


@dataclass(frozen=True)
class _Opened:
    """Which of the taxis with trips, and which of those without, the attack names."""

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
    forms: Sequence[str] = USUAL,
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
    rng = np.random.default_rng(random_state)
    taxis = made_up_taxis(_BUILT_IN, rng) if data is None else checked(data, Taxis, "Taxis(numbers, counts, ...)")
    protected, most = shield(defence, epsilon), whole(targets, "targets", 1)
    seen = _released(protected, taxis)
    found = _counted(taxis, seen, rng, most) if callable(seen) else _tried(taxis, seen, list(candidates(forms)))
    return AttackResult(
        attack="pseudonyms",
        shield=protected,
        metric="of the taxis were named",
        # A stranger is a taxi that made no trip: the curator protects all that a taxi did, whether it is there or not.
        evidence=Found(*(Share(int(each.sum()), each.size) for each in (found.members, found.strangers))),
        details=found.details,
        exposure=_exposure(taxis, found),
    )


def opened(codes: Iterable[str], numbers: Iterable[str], ways: Sequence[Code]) -> dict[str, str]:
    """Try all numbers, coded in all ways that come to mind, and return the codes that were met, with their numbers.

    >>> opened([md5("5D12"), "unknown"], ["5D12", "9Y99"], [md5]) == {md5("5D12"): "5D12"}
    True
    """
    released = set(codes)
    return {code: number for number in numbers for way in ways if (code := way(number)) in released}


def _released(protected: Shield, taxis: Taxis) -> list[str] | Answers:
    if protected.word == CURATOR:
        return partial(private_counts, epsilon=protected.price)
    if protected.word == OWN and protected.make is not None:
        return _own(protected.make, taxis)
    return [*map(_salted, taxis.numbers)] if protected.word == EASY else [*map(md5, taxis.numbers), *taxis.hashed]


def _own(make: Callable[..., Any], taxis: Taxis) -> list[str] | Answers:
    seen = make(list(taxis.numbers))
    if callable(seen):
        return seen  # type: ignore[no-any-return] # its answers are checked when they come
    codes = list(seen)
    if len(codes) != len(taxis.numbers) or not all(isinstance(code, str) for code in codes):
        raise ValueError(
            "the defence must return one code, a text, for each number that it was given; or a function that takes an "
            "array of counts and returns them with noise"
        )
    return codes


def _tried(taxis: Taxis, codes: list[str], numbers: list[str]) -> _Opened:
    found = opened(codes, numbers, _ways(codes[0]))
    right = [found.get(code) == number for code, number in zip(codes, taxis.numbers, strict=False)]
    members = np.array(right + [code in found for code in codes[len(right) :]])  # the rest are known as hashes only
    known = set(found.values())
    details = {
        "codes released": len(codes),
        "codes opened": int(members.sum()),
        "numbers tried": len(numbers),
        **_best_day(taxis.trips, known),
    }
    strangers = np.array([number in known for number in taxis.others])
    return _Opened(members, strangers, np.arange(len(taxis.numbers)), details)


def _ways(code: str) -> list[Code]:
    """Return the ways of coding that a code looks like: its length and its letters give it away."""
    if code.isupper() and len(code) == 32:
        return [md5]
    names = {32: "md5", 40: "sha1", 64: "sha256"}
    return [str, _salted, *([partial(_plain, names[len(code)])] if len(code) in names else [])]


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
        "codes opened": len(opened(codes, [*taxis.numbers, *taxis.others], [md5, *_ways(codes[0])])),
        "taxis asked about": len(with_trips),
        "taxis without a trip that were named": int(strangers.sum()),
    }
    return _Opened(members, strangers, with_trips, details)


def _exposure(taxis: Taxis, found: _Opened) -> Any:
    # Rare is a taxi with few trips.
    labels = [f"taxi {place}" for place in found.asked]
    hit = found.members[: len(found.asked)]
    return exposure(-taxis.counts[found.asked].astype(float), hit, labels=labels, by="few trips")


def _plain(name: str, number: str) -> str:
    return hashlib.new(name, number.encode(), usedforsecurity=False).hexdigest()


def _salted(number: str) -> str:
    return hashlib.sha256(f"{_SALT}{number}".encode()).hexdigest()


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
