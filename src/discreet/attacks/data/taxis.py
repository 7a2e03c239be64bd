"""Taxis with their licence numbers and fares: real ones known by hashes, and simulated ones."""

import hashlib
import itertools
import math
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.attacks.attack import Source
from discreet.attacks.validation import (
    arrow_table,
    integer_array,
    read_data_table,
    require,
    require_columns,
    set_fields,
    text_list,
)

FILES = ("nyctaxi2013_medallions.parquet", "nyctaxi2013_taxi_days.parquet")
USUAL_FORMS = ("9A99",)
ALL_FORMS = ("9A99", "AA999", "SAA999")  # formats of the city's numbers; 9 is a digit, A a letter, S an S
_TAXI_COUNT = 2000
_MAX_CANDIDATES = 10_000_000
_FORM_LETTERS = {"9": string.digits, "A": string.ascii_uppercase}


@dataclass(frozen=True, eq=False)
class Taxis:
    """Taxis with their numbers and trip counts, some of their trips with fares, and numbers without a trip.

    `trips` has the columns medallion, day and total. `others` are the non-members: numbers without a trip. `hashed` are
    MD5 hashes of unknown numbers, which can only be released as they are.

    >>> trips = pa.table({"medallion": ["5D12", "5D12"], "day": [1, 1], "total": [11.0, 34.5]})
    >>> Taxis(numbers=["5D12"], counts=[2], others=["9Y99"], trips=trips).counts
    array([2])
    """

    numbers: Any
    counts: Any
    others: Any
    trips: Any
    hashed: Sequence[str] = ()

    def __post_init__(self) -> None:
        numbers, others, hashed = (text_list(getattr(self, name), name) for name in ("numbers", "others", "hashed"))
        counts = integer_array(self.counts, "counts")
        require(
            numbers and others and counts.shape == (len(numbers),),
            "numbers and others must each list at least one taxi, and counts must have one count per number",
        )
        require(
            len({*numbers, *others}) >= len(numbers) + len(others),
            "each number must be listed only once, either in numbers or in others",
        )
        trips = _checked_trips(self.trips)
        set_fields(self, numbers=numbers, others=others, counts=counts, hashed=hashed, trips=trips)


def md5(number: str) -> str:
    """Return the hash that the city released.

    >>> md5("5D12")[:8]
    '42995C2A'
    """
    return hashlib.md5(number.encode(), usedforsecurity=False).hexdigest().upper()


def _checked_trips(value: Any) -> pa.Table:
    """Return the trips with text numbers and floating-point fares."""
    trips = arrow_table(value, "trips")
    required = ("medallion", "day", "total")
    require_columns(trips, required, "trips")
    for name in required:
        require(not trips[name].null_count, f"trips: column {name!r} has missing values. Leave those trips out.")
    try:
        numbers, totals = pc.cast(trips["medallion"], pa.string()), pc.cast(trips["total"], pa.float64())
    except pa.ArrowException:
        raise TypeError("trips: column medallion must be text, and column total must be numeric") from None
    return pa.table({"medallion": numbers, "day": trips["day"], "total": totals})


def candidate_numbers(forms: str | Sequence[str]) -> Iterator[str]:
    """Iterate over all numbers of one or several formats.

    >>> sum(1 for _ in candidate_numbers("9A99"))
    26000
    """
    patterns = text_list(forms, "forms")
    require(
        patterns and all(patterns),
        "forms must be at least one non-empty format, such as 9A99: 9 is a digit, A a letter",
    )
    require(
        sum(math.prod(len(_FORM_LETTERS.get(letter, letter)) for letter in form) for form in patterns)
        <= _MAX_CANDIDATES,
        f"forms allow more than {_MAX_CANDIDATES:,} numbers together. Fix the characters you know, as in 5A99.",
    )
    for form in patterns:
        for letters in itertools.product(*(_FORM_LETTERS.get(letter, letter) for letter in form)):
            yield "".join(letters)


def simulate_taxis(count: int, rng: np.random.Generator) -> Taxis:
    """Simulate `count` taxis with trips during one month, and as many without trips.

    >>> taxis = simulate_taxis(10, np.random.default_rng(0))
    >>> len(taxis.numbers), len(taxis.others)
    (10, 10)
    """
    fleet = rng.permutation(list(candidate_numbers(USUAL_FORMS)))[: 2 * count]
    counts = rng.poisson(np.exp(rng.normal(2.3, 0.9, count))) + 1
    trips = pa.table({
        "medallion": np.repeat(fleet[:count], counts),
        "day": rng.integers(1, 31, counts.sum()),
        "total": np.round(rng.gamma(3, 5, counts.sum()) + 3, 2),
    })  # fmt: skip
    return Taxis(fleet[:count], counts, fleet[count:], trips)


def read_taxis(folder: Path) -> Taxis:
    """Read the taxis of New York in 2013 and the trips of some days; numbers are known where the hash is reversed."""
    medallions, days = (read_data_table(folder, name) for name in FILES)
    counts = dict(zip(medallions["medallion"].to_pylist(), medallions["trips"].to_pylist(), strict=True))
    number_of_code = {code: number for number in candidate_numbers(ALL_FORMS) if (code := md5(number)) in counts}
    # Non-members are numbers of the usual format that no taxi had that year; the attack treats all candidates alike.
    # Some taxis appear also, or only, under the hash of their number in lower case.
    known_numbers = set(number_of_code.values())
    others = [
        number
        for number in candidate_numbers(USUAL_FORMS)
        if number not in known_numbers and md5(number.lower()) not in counts
    ]
    # Some trips are recorded twice.
    distinct_trips = days.group_by(["medallion", "pickuptime"]).aggregate([("total", "max")])
    trips = pa.table({
        "medallion": [number_of_code.get(code, code) for code in distinct_trips["medallion"].to_pylist()],
        "day": pc.cast(distinct_trips["pickuptime"], pa.date32(), safe=False),
        "total": distinct_trips["total_max"],
    })  # fmt: skip
    numbers = list(number_of_code.values())
    hashed = [code for code in counts if code not in number_of_code]
    return Taxis(numbers, [counts[code] for code in number_of_code], others, trips, hashed)


TAXIS = Source(
    Taxis,
    "Taxis(numbers, counts, ...)",
    lambda rng: simulate_taxis(_TAXI_COUNT, rng),
    built_in=f"{_TAXI_COUNT:,} simulated taxis with trips, and as many without",
    files=FILES,
    read=read_taxis,
)
