"""The pseudonym attack: reverse hashed taxi numbers by trying all numbers."""

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet import anonymity
from discreet.attacks.attack import (
    CURATOR,
    EASY,
    NOTHING,
    Attack,
    AttackResult,
    DefenceChoice,
    DefenceRelease,
    EventEvidence,
    Game,
    Number,
    whole,
)
from discreet.attacks.data.taxis import TAXIS, USUAL_FORMS, Taxis, candidate_numbers, md5
from discreet.attacks.private_answers import (
    CountOracle,
    is_count_oracle,
    named_by_counts,
    private_count_oracle,
)
from discreet.attacks.validation import require, text_list

SALT = "c0ffee"  # of the easy fix: stored in the program, so anyone with the program knows it

Encoding = Callable[[str], str]


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
    return ATTACK.run(data, defence, epsilon, random_state, forms=forms, targets=targets)


def _play(game: Game) -> AttackResult:
    taxis, release = game.data, game.release()
    named = _name_by_counts(game, release) if callable(release) else _name_by_dictionary(game, release)
    return game.result(
        "of taxis re-identified",
        # A non-member is a taxi without a trip: the curator protects all trips of a taxi, and so its presence.
        EventEvidence.from_outcomes(named.members_named, named.non_members_named, named.correctly_named),
        named.details,
        hit=named.correctly_named[: len(named.targets)],
        rarity=-taxis.counts[named.targets].astype(float),
        rarity_label="few trips",
        labels=[f"taxi {index}" for index in named.targets],
    )


def _user_codes(game: Game) -> list[str] | CountOracle:
    taxis, returned = game.data, game.ask_user(list(game.data.numbers))
    if is_count_oracle(returned):
        return returned
    codes = text_list(returned, "the defence's codes")
    require(
        len(codes) == len(taxis.numbers),
        f"the defence must return one code for each of its {len(taxis.numbers):,} numbers, not {len(codes):,}; "
        "or a function that takes an array of counts and returns them with noise",
    )
    return codes


def _name_by_dictionary(game: Game, codes: list[str]) -> _NamedTaxis:
    taxis, numbers = game.data, game.settings.forms
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
    return _NamedTaxis(
        np.array(correctly_named + cracked_hashes),
        np.array(members_named + cracked_hashes),
        np.array(non_members_named),
        np.arange(len(taxis.numbers)),
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


def _name_by_counts(game: Game, oracle: CountOracle) -> _NamedTaxis:
    """Query how many taxis with each number made trips (1 or 0, plus noise); name those above a threshold."""
    taxis, max_targets = game.data, game.settings.targets
    with_trips = np.sort(game.rng.permutation(len(taxis.numbers))[:max_targets])
    counts = np.ones_like(with_trips), np.zeros(min(len(taxis.others), max_targets), np.int64)
    members_named, non_members_named = named_by_counts(oracle, *counts, game.rng)
    keyed = anonymity.pseudonymise(pa.table({"number": taxis.numbers}), "number", anonymity.new_key())
    codes = keyed["number"].to_pylist()
    details = {
        "codes released": len(codes),
        "codes reversed": len(crack_codes(codes, [*taxis.numbers, *taxis.others])),
        "taxis targeted": len(with_trips),
        "non-members named": int(non_members_named.sum()),
    }
    return _NamedTaxis(members_named, members_named, non_members_named, with_trips, details)


def salted_hash(number: str) -> str:
    """Return the hash of the easy fix: SHA-256 of a salt and the number.

    >>> len(salted_hash("5D12"))
    64
    """
    return hash_with("sha256", SALT + number)


def hash_with(name: str, number: str) -> str:
    """Return the hash of a number by the named algorithm of hashlib.

    >>> hash_with("md5", "5D12")[:8]
    '42995c2a'
    """
    return str(getattr(hashlib, name)(number.encode(), usedforsecurity=False).hexdigest())


def reversed_text(number: str) -> str:
    """Return the number reversed.

    >>> reversed_text("5D12")
    '21D5'
    """
    return number[::-1]


def base64_text(number: str) -> str:
    """Return the number in base64.

    >>> base64_text("5D12")
    'NUQxMg=='
    """
    return base64.b64encode(number.encode()).decode()


def hash_of_lower_case(name: str, number: str) -> str:
    """Return the hash of the number in lower case.

    >>> hash_of_lower_case("md5", "5D12") == hash_with("md5", "5d12")
    True
    """
    return hash_with(name, number.lower())


_HASH_NAMES = [name for name in sorted(hashlib.algorithms_guaranteed) if not name.startswith("shake")]
ENCODINGS: tuple[Encoding, ...] = (
    str,
    reversed_text,
    base64_text,
    *(partial(hash_with, name) for name in _HASH_NAMES),
    *(partial(hash_of_lower_case, name) for name in _HASH_NAMES),
    salted_hash,
)


def crack_codes(codes: Iterable[str], numbers: Sequence[str]) -> dict[str, str]:
    """Try all numbers with all encodings of matching length; return numbers by code, in normalised case.

    If several encodings match a code, the one that matches most codes wins, and among equals the first.

    >>> crack_codes([reversed_text("5D12"), "unknown"], ["5D12", "9Y99"])
    {'21D5': '5D12'}
    """
    released = {normalise_case(code) for code in codes}
    lengths = set(map(len, released))
    samples = {len(number): number for number in numbers}.values()
    candidate_encodings = [encode for encode in ENCODINGS if any(len(encode(sample)) in lengths for sample in samples)]
    matches = [_matches(released, numbers, encode) for encode in candidate_encodings]
    cracked: dict[str, str] = {}
    for index in sorted(range(len(matches)), key=lambda index: (len(matches[index]), -index)):
        cracked |= matches[index]
    return cracked


def normalise_case(code: str) -> str:
    """Return a lower-case code in upper case, because hashes are written either way.

    >>> normalise_case("42995c2a"), normalise_case("NUQxMg==")
    ('42995C2A', 'NUQxMg==')
    """
    return code.upper() if code.islower() else code


def _matches(released: set[str], numbers: Sequence[str], encoding: Encoding) -> dict[str, str]:
    return {code: number for number in numbers if (code := normalise_case(encoding(number))) in released}


ATTACK = Attack(
    function=pseudonyms,
    docs_page="tables",
    summary="Reverses hashed taxi numbers by hashing all possible numbers.",
    data=TAXIS,
    releases={
        NOTHING: DefenceRelease(
            "trips with the MD5 of each taxi number", lambda game: [*map(md5, game.data.numbers), *game.data.hashed]
        ),
        EASY: DefenceRelease(
            "trips with SHA-256 of a salt and the number; the salt leaks",
            lambda game: [*map(salted_hash, game.data.numbers)],
        ),
        CURATOR: DefenceRelease("keyed pseudonyms, and a private count for each number", private_count_oracle),
    },
    own=_user_codes,
    play=_play,
    settings={"forms": lambda forms, _: list(candidate_numbers(forms)), "targets": whole(1)},
)
