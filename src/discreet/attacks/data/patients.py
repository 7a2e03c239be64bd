"""Tables with quasi-identifiers and one sensitive column: a lecture's tables, simulated patients, and census data."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.attacks.attack import Source
from discreet.attacks.validation import arrow_table, read_data_table, require, require_columns, set_fields, text_list

_UNKNOWN_VALUE = "the release has a sensitive value that the original table does not have: use only its values"
ROW = "row"  # row numbers, used only to score guesses; the attacks never read them


@dataclass(frozen=True)
class Fact:
    """Background knowledge: people with this value of this column do not have that sensitive value.

    >>> Fact("sex", "M", "ovarian cyst").rules_out
    'ovarian cyst'
    """

    column: str
    value: Any
    rules_out: Any


@dataclass(frozen=True, eq=False)
class SensitiveValues:
    """Each person's true sensitive value, the prior over values, and which values are possible for whom."""

    truth: np.ndarray
    prior: np.ndarray
    possible: np.ndarray


@dataclass(frozen=True, eq=False)
class Patients:
    """A table with one row per person, its quasi-identifiers (`quasi`) and its sensitive column (`sensitive`).

    `facts` are the attacker's background knowledge. The table is an Arrow, pandas or polars table, or a dict.

    >>> table = pa.table({"zip": ["13053", "13068"], "age": [28, 41], "ill": ["flu", "heart"]})
    >>> Patients(table, quasi=["zip", "age"], sensitive="ill").values
    ['flu', 'heart']
    """

    table: Any
    quasi: Sequence[str]
    sensitive: str
    facts: Sequence[Fact] = field(default=())

    def __post_init__(self) -> None:
        table, quasi, facts = arrow_table(self.table, "table"), text_list(self.quasi, "quasi"), _check_facts(self.facts)
        if not isinstance(self.sensitive, str):
            raise TypeError(f"sensitive must be the name of one column, not {type(self.sensitive).__name__}")
        column_names = list(dict.fromkeys([*quasi, self.sensitive, *(fact.column for fact in facts)]))
        for name in column_names:
            _check_column(table, name)
        require(quasi and self.sensitive not in quasi, "quasi must name at least one column, but not the sensitive one")
        sensitive = table[self.sensitive]
        require(
            not sensitive.null_count
            and (not pa.types.is_floating(sensitive.type) or not pc.any(pc.is_nan(sensitive)).as_py()),
            f"column {self.sensitive!r} has missing values: leave those rows out, or fill them in",
        )
        require(len(sensitive.unique()) >= 2, f"column {self.sensitive!r} must have at least two distinct values")
        set_fields(self, table=table.select(column_names), quasi=list(dict.fromkeys(quasi)), facts=facts)

    @property
    def numbered_table(self) -> pa.Table:
        """The released columns and the row numbers."""
        return with_row_numbers(self.table.select([*self.quasi, self.sensitive]))

    @cached_property
    def values(self) -> list[Any]:
        """The distinct sensitive values, sorted."""
        return sorted(self.table[self.sensitive].unique().to_pylist())

    @cached_property
    def sensitive_values(self) -> SensitiveValues:
        """The values to infer; their overall frequencies are assumed to be public."""
        truth = value_codes(self.table[self.sensitive], self.values)
        possible = np.ones((len(truth), len(self.values)), bool)
        for fact in self.facts:
            is_ruled_out = pc.fill_null(pc.equal(self.table[fact.column], self._fact_value(fact)), fill_value=False)
            if fact.rules_out in self.values:
                possible[np.asarray(is_ruled_out), self.values.index(fact.rules_out)] = False
        require(
            possible[np.arange(len(truth)), truth].all(),
            "facts: a fact rules out a value that occurs in the table. Leave that fact out.",
        )
        return SensitiveValues(truth, np.bincount(truth, minlength=len(self.values)) / len(truth), possible)

    def _fact_value(self, fact: Fact) -> pa.Scalar:
        kind = self.table[fact.column].type
        try:
            return pa.scalar(fact.value, kind)
        except (pa.ArrowException, OverflowError, ValueError, TypeError):
            raise TypeError(
                f"facts: column {fact.column!r} has type {kind}, but the value is a {type(fact.value).__name__}. Give "
                "a value of the column's type."
            ) from None


def _check_facts(value: Any) -> list[Fact]:
    facts = [value] if isinstance(value, Fact) else list(value) if isinstance(value, Sequence) else [value]
    for fact in facts:
        if not isinstance(fact, Fact) or not isinstance(fact.column, str):
            raise TypeError(
                f'facts must be a list such as [Fact("sex", "M", "ovarian cyst")], not {type(fact).__name__}'
            )
    return facts


def _check_column(table: pa.Table, name: Any) -> None:
    require_columns(table, [name], "the table")
    require(name != ROW, f"the column name {ROW!r} is reserved for row numbers: rename that column")
    require(
        not pa.types.is_nested(table[name].type),
        f"column {name!r} has the nested type {table[name].type}: flatten it into separate columns",
    )


def value_codes(column: Any, values: Sequence[Any]) -> np.ndarray:
    """Return the index of each entry in the list of values.

    >>> value_codes(pa.chunked_array([["flu", "no", "flu"]]), ["flu", "no"]).tolist()
    [0, 1, 0]
    """
    try:
        codes = pc.index_in(column, value_set=pa.array(values, column.type))
    except (pa.ArrowException, OverflowError):
        raise ValueError(f"{_UNKNOWN_VALUE}; the released column has type {column.type}") from None
    require(not codes.null_count, _UNKNOWN_VALUE)
    return np.asarray(codes.to_numpy(), np.int64)


def with_row_numbers(table: pa.Table) -> pa.Table:
    """Append a column of row numbers.

    >>> with_row_numbers(pa.table({"age": [30, 40]})).column_names
    ['age', 'row']
    """
    return table.append_column(ROW, pa.array(np.arange(table.num_rows)))


_LECTURE_QUASI = ["zip", "age", "nationality"]
_FIRST_CLASSES = {
    "<30": "AIDS, Heart Disease, Viral Infection, Viral Infection",
    ">=40": "Cancer, Heart Disease, Viral Infection, Viral Infection",
    "3*": "Cancer, Cancer, Cancer, Cancer",
}
_SECOND_CLASSES = {
    "<35": "AIDS, Tuberculosis, Flu, Tuberculosis, Cancer, Cancer",
    ">35": "Cancer, Cancer, Cancer, Tuberculosis, Viral Infection, Viral Infection",
}


def first_lecture_table(*facts: Fact) -> Patients:
    """Return the lecture's 4-anonymous table, whose last class is homogeneous.

    >>> first_lecture_table().table.num_rows, len(first_lecture_table().values)
    (12, 4)
    """
    return _lecture_patients(_FIRST_CLASSES, facts)


def second_lecture_table(*facts: Fact) -> Patients:
    """Return the lecture's 6-anonymous table, with at least three conditions in each class.

    >>> second_lecture_table().values
    ['AIDS', 'Cancer', 'Flu', 'Tuberculosis', 'Viral Infection']
    """
    return _lecture_patients(_SECOND_CLASSES, facts)


def _lecture_patients(classes: dict[str, str], facts: tuple[Fact, ...]) -> Patients:
    rows = [
        {"zip": "130**", "age": age, "nationality": "*", "condition": condition}
        for age, conditions in classes.items()
        for condition in conditions.split(", ")
    ]
    return Patients(pa.Table.from_pylist(rows), _LECTURE_QUASI, "condition", facts)


SIMULATED_FACTS = (Fact("vaccinated", value=True, rules_out="flu"), Fact("unhurt", value=True, rules_out="injury"))
CONDITIONS = ["flu", "injury", "asthma", "diabetes", "heart disease", "cancer", "depression", "HIV"]
# The frequencies of the conditions at ages 20 and 90; ages in between are interpolated.
_RATES_AT_20 = np.array([0.28, 0.30, 0.16, 0.05, 0.01, 0.02, 0.15, 0.03])
_RATES_AT_90 = np.array([0.15, 0.10, 0.05, 0.22, 0.28, 0.15, 0.04, 0.01])
_ZIP_COUNT = 40
_HOMOGENEOUS_ZIPS = 6  # places where nearly all patients have one condition, as near a factory or in a nursing home
_HOMOGENEOUS_WEIGHT = 9.0
_TODAY = date(1996, 5, 1).toordinal()
_EPOCH = date(1970, 1, 1).toordinal()


def simulate_patients(count: int, rng: np.random.Generator) -> Patients:
    """Simulate patients with zip code, age, sex and condition; the condition depends on age and zip code.

    >>> patients = simulate_patients(100, np.random.default_rng(0))
    >>> patients.quasi, patients.sensitive, len(patients.facts)
    (['zip', 'age', 'sex'], 'condition', 2)
    """
    zips, ages = rng.integers(_ZIP_COUNT, size=count), rng.integers(18, 91, size=count)
    condition = draw_conditions(zips, ages, rng)
    table = pa.table({
        "zip": zip_codes(zips),
        "age": ages,
        "sex": np.array(["F", "M"])[rng.integers(2, size=count)],
        "condition": np.array(CONDITIONS)[condition],
        # Background knowledge of friends and colleagues, not part of the hospital's table.
        "vaccinated": (condition != 0) & (rng.random(count) < 0.6),
        "unhurt": (condition != 1) & (rng.random(count) < 0.8),
    })  # fmt: skip
    return Patients(table, ["zip", "age", "sex"], "condition", SIMULATED_FACTS)


def draw_conditions(zips: np.ndarray, ages: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw the condition of each person, as an index into `CONDITIONS`."""
    age_weight = ((np.clip(ages, 20, 90) - 20) / 70)[:, None]
    weights = (1 - age_weight) * _RATES_AT_20 + age_weight * _RATES_AT_90
    homogeneous = np.flatnonzero(zips < _HOMOGENEOUS_ZIPS)
    weights[homogeneous, zips[homogeneous]] += _HOMOGENEOUS_WEIGHT
    cumulative = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    return np.asarray((rng.random(len(zips))[:, None] > cumulative[:, :-1]).sum(axis=1))


def zip_codes(zips: np.ndarray) -> np.ndarray:
    """Return a five-digit zip code for each place."""
    names = np.array([f"{130 + zip_ // 10}{53 + zip_ % 10}" for zip_ in range(int(zips.max()) + 1)])
    return np.asarray(names[zips])


def draw_birth_dates(ages: np.ndarray, rng: np.random.Generator) -> pa.Array:
    """Draw a birth date for each age."""
    days = _TODAY - (ages * 365.25 + rng.integers(0, 365, size=len(ages))).astype(np.int64) - _EPOCH
    return pa.array(days.astype(np.int32)).cast(pa.date32())


ADULT_FILE = "adult.parquet"
_ADULT_COLUMNS = ("age", "education", "marital_status", "race", "sex")


def read_census(folder: Path, columns: Sequence[str] = (*_ADULT_COLUMNS, "native_country")) -> Patients:
    """Read the Adult census data: quasi-identifiers, and the occupation."""
    table = read_data_table(folder, ADULT_FILE, [*columns, "occupation"])
    return Patients(table.filter(pc.is_valid(table["occupation"])), columns, "occupation")


PATIENTS = Source(
    Patients,
    "Patients(table, quasi, sensitive)",
    lambda rng: simulate_patients(2000, rng),
    built_in="2,000 simulated patients",
    files=(ADULT_FILE,),
    read=read_census,
)
