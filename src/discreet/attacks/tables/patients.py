"""Tables of people with columns that others know, and one that nobody should."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.attacks.checking import arrow_table
from discreet.attacks.tables.reading import texts

_STRANGE = "a released sensitive value is not one of the owner's: use the values of the owner's table"
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
class Secret:
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
        table, quasi, facts = arrow_table(self.table, "table"), texts(self.quasi, "quasi"), _facts(self.facts)
        if not isinstance(self.sensitive, str):
            raise TypeError(f"sensitive must be the name of one column, not {type(self.sensitive).__name__}")
        named = list(dict.fromkeys([*quasi, self.sensitive, *(fact.column for fact in facts)]))
        for name in named:
            _check_column(table, name)
        if not quasi or self.sensitive in quasi:
            raise ValueError("quasi must name at least one column, and not the sensitive one")
        secret = table[self.sensitive]
        if secret.null_count or (pa.types.is_floating(secret.type) and pc.any(pc.is_nan(secret)).as_py()):
            raise ValueError(f"column {self.sensitive!r} has empty entries: leave those people out, or name the value")
        if len(secret.unique()) < 2:
            raise ValueError(f"column {self.sensitive!r} needs at least two different values, or there is no secret")
        for name, value in (("table", table.select(named)), ("quasi", list(dict.fromkeys(quasi))), ("facts", facts)):
            object.__setattr__(self, name, value)

    @property
    def numbered(self) -> pa.Table:
        """The columns that are released, and each person's number."""
        return with_rows(self.table.select([*self.quasi, self.sensitive]))

    @cached_property
    def values(self) -> list[Any]:
        """The different sensitive values, sorted."""
        return sorted(self.table[self.sensitive].unique().to_pylist())

    @cached_property
    def secret(self) -> Secret:
        """What is to be guessed; how common the values are in all is taken to be known to everybody."""
        truth = codes_of(self.table[self.sensitive], self.values)
        possible = np.ones((len(truth), len(self.values)), bool)
        for fact in self.facts:
            concerned = pc.fill_null(pc.equal(self.table[fact.column], self._value_of(fact)), fill_value=False)
            if fact.rules_out in self.values:
                possible[np.asarray(concerned), self.values.index(fact.rules_out)] = False
        if not possible[np.arange(len(truth)), truth].all():
            raise ValueError("facts: somebody in the table has a value that a fact rules out. Leave that fact out.")
        return Secret(truth, np.bincount(truth, minlength=len(self.values)) / len(truth), possible)

    def _value_of(self, fact: Fact) -> pa.Scalar:
        kind = self.table[fact.column].type
        try:
            return pa.scalar(fact.value, kind)
        except (pa.ArrowException, OverflowError, ValueError, TypeError):
            raise TypeError(
                f"facts: column {fact.column!r} holds {kind}, which a {type(fact.value).__name__} is none of. Give a "
                "value of the column."
            ) from None


def _facts(given: Any) -> list[Fact]:
    facts = [given] if isinstance(given, Fact) else list(given) if isinstance(given, Sequence) else [given]
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


def checked(data: Any, wanted: type, example: str, what: str = "data") -> Any:
    """Return data of the wanted kind, or say what to give.

    >>> checked([1], Patients, "Patients(table, quasi, sensitive)")
    Traceback (most recent call last):
        ...
    TypeError: data must be Patients(table, quasi, sensitive), not list
    """
    if not isinstance(data, wanted):
        raise TypeError(f"{what} must be {example}, not {type(data).__name__}")
    return data


def codes_of(column: Any, values: Sequence[Any]) -> np.ndarray:
    """Return the number of each entry among the values.

    >>> codes_of(pa.chunked_array([["flu", "no", "flu"]]), ["flu", "no"]).tolist()
    [0, 1, 0]
    """
    try:
        found = pc.index_in(column, value_set=pa.array(values, column.type))
    except (pa.ArrowException, OverflowError):
        raise ValueError(f"{_STRANGE}, and not {column.type}") from None
    if found.null_count:
        raise ValueError(_STRANGE)
    return np.asarray(found.to_numpy(), np.int64)


def with_rows(table: pa.Table) -> pa.Table:
    """Give each person of a table a number.

    >>> with_rows(pa.table({"age": [30, 40]})).column_names
    ['age', 'row']
    """
    return table.append_column(ROW, pa.array(np.arange(table.num_rows)))
