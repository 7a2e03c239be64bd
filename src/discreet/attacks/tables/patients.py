"""Tables with quasi-identifiers and one sensitive column: the record, a lecture's tables, simulated patients."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.attacks.tables.validation import text_list
from discreet.attacks.validation import arrow_table

_UNKNOWN_VALUE = "a released sensitive value is not one of the owner's: use the values of the owner's table"
ROW = "row"  # the column by which guesses are scored: the owner's number of a person. The attacks never look at it


@dataclass(frozen=True)
class Fact:
    """What everybody knows: people with this value of this column do not have that sensitive value.

    >>> Fact("sex", "M", "ovarian cyst").rules_out
    'ovarian cyst'
    """

    column: str
    value: Any
    rules_out: Any


@dataclass(frozen=True, eq=False)
class SensitiveValues:
    """What is to be guessed: each person's value, how common the values are, and which ones a person can have."""

    truth: np.ndarray
    prior: np.ndarray
    possible: np.ndarray


@dataclass(frozen=True, eq=False)
class Patients:
    """A table with a row for each person, the columns that others know (`quasi`), and the one to protect (`sensitive`).

    `facts` are background knowledge of the attacker's. The table may be of Arrow, pandas or polars, or a dict.

    >>> table = pa.table({"zip": ["13053", "13068"], "age": [28, 41], "ill": ["flu", "heart"]})
    >>> Patients(table, quasi=["zip", "age"], sensitive="ill").values
    ['flu', 'heart']
    """

    table: Any
    quasi: Sequence[str]
    sensitive: str
    facts: Sequence[Fact] = field(default=())

    def __post_init__(self) -> None:
        table, quasi, facts = (
            arrow_table(self.table, "table"),
            text_list(self.quasi, "quasi"),
            _checked_facts(self.facts),
        )
        if not isinstance(self.sensitive, str):
            raise TypeError(f"sensitive must be the name of one column, not {type(self.sensitive).__name__}")
        column_names = list(dict.fromkeys([*quasi, self.sensitive, *(fact.column for fact in facts)]))
        for name in column_names:
            _check_column(table, name)
        if not quasi or self.sensitive in quasi:
            raise ValueError("quasi must name at least one column, and not the sensitive one")
        sensitive = table[self.sensitive]
        if sensitive.null_count or (pa.types.is_floating(sensitive.type) and pc.any(pc.is_nan(sensitive)).as_py()):
            raise ValueError(f"column {self.sensitive!r} has empty entries: leave those people out, or name the value")
        if len(sensitive.unique()) < 2:
            raise ValueError(f"column {self.sensitive!r} needs at least two different values, or there is no secret")
        for name, value in (
            ("table", table.select(column_names)),
            ("quasi", list(dict.fromkeys(quasi))),
            ("facts", facts),
        ):
            object.__setattr__(self, name, value)

    @property
    def numbered_table(self) -> pa.Table:
        """The columns that are released, and each person's number."""
        return with_row_numbers(self.table.select([*self.quasi, self.sensitive]))

    @cached_property
    def values(self) -> list[Any]:
        """The different sensitive values, sorted."""
        return sorted(self.table[self.sensitive].unique().to_pylist())

    @cached_property
    def sensitive_values(self) -> SensitiveValues:
        """What is to be guessed; how common the values are in all is taken to be known to everybody."""
        truth = value_codes(self.table[self.sensitive], self.values)
        possible = np.ones((len(truth), len(self.values)), bool)
        for fact in self.facts:
            is_ruled_out = pc.fill_null(pc.equal(self.table[fact.column], self._fact_value(fact)), fill_value=False)
            if fact.rules_out in self.values:
                possible[np.asarray(is_ruled_out), self.values.index(fact.rules_out)] = False
        if not possible[np.arange(len(truth)), truth].all():
            raise ValueError("facts: somebody in the table has a value that a fact rules out. Leave that fact out.")
        return SensitiveValues(truth, np.bincount(truth, minlength=len(self.values)) / len(truth), possible)

    def _fact_value(self, fact: Fact) -> pa.Scalar:
        kind = self.table[fact.column].type
        try:
            return pa.scalar(fact.value, kind)
        except (pa.ArrowException, OverflowError, ValueError, TypeError):
            raise TypeError(
                f"facts: column {fact.column!r} holds {kind}, which a {type(fact.value).__name__} is none of. Give a "
                "value of the column."
            ) from None


def _checked_facts(value: Any) -> list[Fact]:
    facts = [value] if isinstance(value, Fact) else list(value) if isinstance(value, Sequence) else [value]
    for fact in facts:
        if not isinstance(fact, Fact) or not isinstance(fact.column, str):
            raise TypeError(
                f'facts must be a list such as [Fact("sex", "M", "ovarian cyst")], not {type(fact).__name__}'
            )
    return facts


def _check_column(table: pa.Table, name: Any) -> None:
    if name not in table.column_names:
        raise ValueError(f"there is no column {name!r} in the table; there are {', '.join(table.column_names)}")
    if name == ROW:
        raise ValueError(f"the table has a column {ROW!r}: rename it, as people are numbered by that name")
    if pa.types.is_nested(table[name].type):
        raise ValueError(f"column {name!r} holds {table[name].type}: put its parts into columns of their own")


def require_type(data: Any, expected: type, example: str, name: str = "data") -> Any:
    """Return data of the wanted kind, or say what to give.

    >>> require_type([1], Patients, "Patients(table, quasi, sensitive)")
    Traceback (most recent call last):
        ...
    TypeError: data must be Patients(table, quasi, sensitive), not list
    """
    if not isinstance(data, expected):
        raise TypeError(f"{name} must be {example}, not {type(data).__name__}")
    return data


def value_codes(column: Any, values: Sequence[Any]) -> np.ndarray:
    """Return the number of each entry among the values.

    >>> value_codes(pa.chunked_array([["flu", "no", "flu"]]), ["flu", "no"]).tolist()
    [0, 1, 0]
    """
    try:
        codes = pc.index_in(column, value_set=pa.array(values, column.type))
    except (pa.ArrowException, OverflowError):
        raise ValueError(f"{_UNKNOWN_VALUE}, and not {column.type}") from None
    if codes.null_count:
        raise ValueError(_UNKNOWN_VALUE)
    return np.asarray(codes.to_numpy(), np.int64)


def with_row_numbers(table: pa.Table) -> pa.Table:
    """Give each person of a table a number.

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
    """Return the 4-anonymous table: in its last class everybody has the same.

    >>> first_lecture_table().table.num_rows, len(first_lecture_table().values)
    (12, 4)
    """
    return _lecture_patients(_FIRST_CLASSES, facts)


def second_lecture_table(*facts: Fact) -> Patients:
    """Return the 6-anonymous table: three conditions at least in each class.

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
# How common the conditions are at 20, and at 90; between, in between.
_RATES_AT_20 = np.array([0.28, 0.30, 0.16, 0.05, 0.01, 0.02, 0.15, 0.03])
_RATES_AT_90 = np.array([0.15, 0.10, 0.05, 0.22, 0.28, 0.15, 0.04, 0.01])
_ZIP_COUNT = 40
_HOMOGENEOUS_ZIPS = 6  # zip codes in which nearly all patients have the same: a factory, a school, a home
_HOMOGENEOUS_WEIGHT = 9.0
_TODAY = date(1996, 5, 1).toordinal()
_EPOCH = date(1970, 1, 1).toordinal()


def simulate_patients(count: int, rng: np.random.Generator) -> Patients:
    """Make up patients with zip code, age, sex and condition; age and place say something about the condition.

    >>> made = simulate_patients(100, np.random.default_rng(0))
    >>> made.quasi, made.sensitive, len(made.facts)
    (['zip', 'age', 'sex'], 'condition', 2)
    """
    zips, ages = rng.integers(_ZIP_COUNT, size=count), rng.integers(18, 91, size=count)
    condition = draw_conditions(zips, ages, rng)
    table = pa.table({
        "zip": zip_codes(zips),
        "age": ages,
        "sex": np.array(["F", "M"])[rng.integers(2, size=count)],
        "condition": np.array(CONDITIONS)[condition],
        # Neither is in the hospital's table, but friends and colleagues know it.
        "vaccinated": (condition != 0) & (rng.random(count) < 0.6),
        "unhurt": (condition != 1) & (rng.random(count) < 0.8),
    })  # fmt: skip
    return Patients(table, ["zip", "age", "sex"], "condition", SIMULATED_FACTS)


def draw_conditions(zips: np.ndarray, ages: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw everybody's condition, by number."""
    age_weight = ((np.clip(ages, 20, 90) - 20) / 70)[:, None]
    weights = (1 - age_weight) * _RATES_AT_20 + age_weight * _RATES_AT_90
    homogeneous = np.flatnonzero(zips < _HOMOGENEOUS_ZIPS)
    weights[homogeneous, zips[homogeneous]] += _HOMOGENEOUS_WEIGHT
    cumulative = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    return np.asarray((rng.random(len(zips))[:, None] > cumulative[:, :-1]).sum(axis=1))


def zip_codes(zips: np.ndarray) -> np.ndarray:
    """Return five digits for each number of a place."""
    codes: np.ndarray = np.array([f"{130 + zip_ // 10}{53 + zip_ % 10}" for zip_ in range(int(zips.max()) + 1)])[zips]
    return codes


def draw_birth_dates(ages: np.ndarray, rng: np.random.Generator) -> pa.Array:
    """Return a day of birth for each age."""
    days = _TODAY - (ages * 365.25 + rng.integers(0, 365, size=len(ages))).astype(np.int64) - _EPOCH
    return pa.array(days.astype(np.int32)).cast(pa.date32())
