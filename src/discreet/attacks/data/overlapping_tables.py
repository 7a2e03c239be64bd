"""Two tables of overlapping people: two hospitals, two years, two halves of a census."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from discreet.attacks.attack import Source
from discreet.attacks.data.patients import (
    ADULT_FILE,
    PATIENTS,
    Patients,
    SensitiveValues,
    first_lecture_table,
    read_census,
    second_lecture_table,
    simulate_patients,
    value_codes,
)
from discreet.attacks.validation import integer_array, require, require_type, set_fields

_HOSPITAL_SIZE = 3000
_ADULT_COLUMNS = ["age", "education", "marital_status", "race", "sex"]


@dataclass(frozen=True, eq=False)
class TwoTables:
    """Two tables of patients with the same sensitive column; `both` lists the rows of each person who is in both.

    >>> two = lecture_tables()
    >>> two.both.tolist()
    [[0, 0]]
    """

    first: Patients
    second: Patients
    both: Any

    def __post_init__(self) -> None:
        for each, name in ((self.first, "first"), (self.second, "second")):
            require_type(each, Patients, PATIENTS.written, name)
        both = integer_array(self.both, "both")
        require(
            both.ndim == 2 and both.shape[1] == 2 and len(both),
            "both must be a list of pairs of row numbers, one per person in both tables, at least one",
        )
        sizes = [each.table.num_rows for each in (self.first, self.second)]
        if both.min() < 0 or (both >= sizes).any():
            raise ValueError(f"both must contain row numbers of the tables: below {sizes[0]} and {sizes[1]}")
        require(
            not any(len(np.unique(rows)) < len(rows) for rows in both.T),
            "both lists a row twice: list each person who is in both tables once",
        )
        types = [each.table[each.sensitive].type for each in (self.first, self.second)]
        if types[0] != types[1]:
            raise ValueError(
                f"the sensitive columns must have the same type, not {types[0]} and {types[1]}: cast one of them"
            )
        values = [
            np.array(each.table[each.sensitive].to_pylist(), object)[rows]
            for each, rows in zip((self.first, self.second), both.T, strict=True)
        ]
        require(
            not (values[0] != values[1]).any(),
            "both: a person has different sensitive values in the two tables. Leave such people out.",
        )
        set_fields(self, both=both)

    @property
    def tables(self) -> tuple[Patients, Patients]:
        """Both tables."""
        return self.first, self.second

    @cached_property
    def values(self) -> list[Any]:
        """The distinct sensitive values of both tables, sorted."""
        return sorted({*self.first.values, *self.second.values})

    @cached_property
    def sensitive_values(self) -> SensitiveValues:
        """The sensitive values of the people in both tables."""
        codes = [value_codes(each.table[each.sensitive], self.values) for each in self.tables]
        prior = np.bincount(np.concatenate(codes), minlength=len(self.values)) / sum(map(len, codes))
        # No background knowledge here: that is part of the homogeneity attack.
        return SensitiveValues(codes[0][self.both[:, 0]], prior, np.ones((len(self.both), len(self.values)), bool))


def lecture_tables() -> TwoTables:
    """Return the lecture's two tables; the person in the first row of each is in both.

    >>> lecture_tables().second.table.num_rows
    12
    """
    return TwoTables(first_lecture_table(), second_lecture_table(), [(0, 0)])


def simulate_hospitals(count: int, rng: np.random.Generator) -> TwoTables:
    """Simulate two hospitals with `count` patients each, half of whom are in both.

    >>> len(simulate_hospitals(100, np.random.default_rng(0)).both)
    50
    """
    shared = count // 2
    everybody = simulate_patients(2 * count - shared, rng)
    return _split_into_two(everybody, np.arange(count), np.arange(count - shared, 2 * count - shared), rng)


def read_two_releases(folder: Path) -> TwoTables:
    """Read the Adult census data as two releases of 20,000 people with their occupation; a third are in both."""
    people, rng = read_census(folder, _ADULT_COLUMNS), np.random.default_rng(0)
    people = replace(people, table=people.table.take(rng.permutation(people.table.num_rows)))
    return _split_into_two(people, np.arange(20_000), np.arange(13_000, 33_000), rng)


def _split_into_two(everybody: Patients, first: np.ndarray, second: np.ndarray, rng: np.random.Generator) -> TwoTables:
    """Split people into two tables, each in random order."""
    rows = [rng.permutation(each) for each in (first, second)]
    tables = [replace(everybody, table=everybody.table.take(each)) for each in rows]
    shared = np.intersect1d(first, second)
    positions = [np.argsort(each)[np.searchsorted(np.sort(each), shared)] for each in rows]
    return TwoTables(tables[0], tables[1], np.stack(positions, axis=1))


TWO_TABLES = Source(
    TwoTables,
    "TwoTables(first, second, both)",
    lambda rng: simulate_hospitals(_HOSPITAL_SIZE, rng),
    built_in=f"two simulated hospitals with {_HOSPITAL_SIZE:,} patients each, half of whom are in both",
    files=(ADULT_FILE,),
    read=read_two_releases,
)
