"""Taxis, their numbers, and what they earned: real ones known by their hashes, and made-up ones."""

import hashlib
import itertools
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.attacks.tables.folders import real_table

FILES = ("nyctaxi2013_medallions.parquet", "nyctaxi2013_taxi_days.parquet")
USUAL = ("9A99",)
ALL_FORMS = ("9A99", "AA999", "SAA999")  # how the city's numbers look; 9 is a digit, A a letter, S an S
_LETTERS = {"9": string.digits, "A": string.ascii_uppercase}


@dataclass(frozen=True, eq=False)
class Taxis:
    """Taxis by their numbers with how many trips each made, trips with their fares, and numbers that made no trip.

    `trips` has the columns medallion, day and total: some trips of some taxis. `others` are the strangers. `hashed`
    are MD5s of numbers that nobody has opened: of these only the plain hash can be released.

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
        numbers, others = (list(map(str, each)) for each in (self.numbers, self.others))
        counts = np.asarray(self.counts, np.int64)
        if not numbers or not others or len(counts) != len(numbers):
            raise ValueError(
                "numbers and others must have at least one taxi each, and counts one count for each number"
            )
        if len({*numbers, *others}) < len(numbers) + len(others):
            raise ValueError("each number must be listed once, and nobody in others may have made a trip")
        trips = self.trips if isinstance(self.trips, pa.Table) else pa.table(self.trips)
        missing = {"medallion", "day", "total"} - set(trips.column_names)
        if missing:
            raise ValueError(f"trips has no column {min(missing)!r}: it needs medallion, day and total")
        for name, value in (("numbers", numbers), ("others", others), ("counts", counts), ("trips", trips)):
            object.__setattr__(self, name, value)


def candidates(forms: Sequence[str]) -> Iterator[str]:
    """Go through all numbers of these forms.

    >>> sum(1 for _ in candidates(["9A99"]))
    26000
    """
    for form in forms:
        if not form:
            raise ValueError("forms: an empty one has no numbers. Write one such as 9A99: 9 a digit, A a letter.")
        for each in itertools.product(*(_LETTERS.get(letter, letter) for letter in form)):
            yield "".join(each)


def md5(number: str) -> str:
    """Return the code that the city released.

    >>> md5("5D12")[:8]
    '42995C2A'
    """
    return hashlib.md5(number.encode(), usedforsecurity=False).hexdigest().upper()


def made_up_taxis(count: int, rng: np.random.Generator) -> Taxis:
    """Make up so many taxis with trips of one month, and as many that stood still.

    >>> made = made_up_taxis(10, np.random.default_rng(0))
    >>> len(made.numbers), len(made.others)
    (10, 10)
    """
    fleet = rng.permutation(list(candidates(USUAL)))[: 2 * count]
    counts = rng.poisson(np.exp(rng.normal(2.3, 0.9, count))) + 1
    trips = pa.table({
        "medallion": np.repeat(fleet[:count], counts),
        "day": rng.integers(1, 31, counts.sum()),
        "total": np.round(rng.gamma(3, 5, counts.sum()) + 3, 2),
    })  # fmt: skip
    return Taxis(fleet[:count], counts, fleet[count:], trips)


def read_taxis(folder: Path) -> Taxis:
    """Read the taxis of New York in 2013 and some of their days; the numbers are those that open in a second."""
    listed, days = (real_table(folder, name) for name in FILES)
    counts = dict(zip(listed["medallion"].to_pylist(), listed["trips"].to_pylist(), strict=True))
    opened = {code: number for number in candidates(ALL_FORMS) if (code := md5(number)) in counts}
    # Numbers of the usual form that no taxi had that year: the attack treats all candidates alike, so they are equal.
    known = set(opened.values())
    others = [number for number in candidates(USUAL) if number not in known]
    # Some trips are in the data twice.
    single = days.group_by(["medallion", "pickuptime"]).aggregate([("total", "max")])
    trips = pa.table({
        "medallion": [opened.get(code, code) for code in single["medallion"].to_pylist()],
        "day": pc.cast(single["pickuptime"], pa.date32(), safe=False),
        "total": single["total_max"],
    })  # fmt: skip
    numbers = list(opened.values())
    hashed = [code for code in counts if code not in opened]
    return Taxis(numbers, [counts[code] for code in opened], others, trips, hashed)
