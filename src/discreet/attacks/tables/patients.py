"""Tables of people with columns that others know, and one that nobody should."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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

    `facts` are background knowledge of the attacker's. The table may be of Arrow, pandas or polars.

    >>> table = pa.table({"zip": ["13053", "13068"], "age": [28, 41], "ill": ["flu", "heart"]})
    >>> Patients(table, quasi=["zip", "age"], sensitive="ill").values
    ['flu', 'heart']
    """

    table: Any
    quasi: Sequence[str]
    sensitive: str
    facts: Sequence[Fact] = field(default=())

    def __post_init__(self) -> None:
        table = self.table if isinstance(self.table, pa.Table) else pa.table(self.table)
        quasi = [self.quasi] if isinstance(self.quasi, str) else list(self.quasi)
        named = [*quasi, self.sensitive, *(fact.column for fact in self.facts)]
        for name in named:
            if name not in table.column_names:
                raise ValueError(f"there is no column {name!r} in the table; there are {', '.join(table.column_names)}")
        if not quasi or self.sensitive in quasi:
            raise ValueError("quasi must name at least one column, and not the sensitive one")
        if table[self.sensitive].null_count:
            raise ValueError(f"column {self.sensitive!r} has empty entries: leave those people out, or name the value")
        if len(table[self.sensitive].unique()) < 2:
            raise ValueError(f"column {self.sensitive!r} needs at least two different values, or there is no secret")
        object.__setattr__(self, "table", table.select(list(dict.fromkeys(named))))
        object.__setattr__(self, "quasi", quasi)

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
            concerned = pc.fill_null(pc.equal(self.table[fact.column], fact.value), fill_value=False)
            if fact.rules_out in self.values:
                possible[np.asarray(concerned), self.values.index(fact.rules_out)] = False
        if not possible[np.arange(len(truth)), truth].all():
            raise ValueError("facts: somebody in the table has a value that a fact rules out. Leave that fact out.")
        return Secret(truth, np.bincount(truth, minlength=len(self.values)) / len(truth), possible)


def checked(data: Any, wanted: type, example: str) -> Any:
    """Return data of the wanted kind, or say what to give.

    >>> checked([1], Patients, "Patients(table, quasi, sensitive)")
    Traceback (most recent call last):
        ...
    TypeError: data must be Patients(table, quasi, sensitive), not list
    """
    if not isinstance(data, wanted):
        raise TypeError(f"data must be {example}, not {type(data).__name__}")
    return data


def codes_of(column: Any, values: Sequence[Any]) -> np.ndarray:
    """Return the number of each entry among the values.

    >>> codes_of(pa.chunked_array([["flu", "no", "flu"]]), ["flu", "no"]).tolist()
    [0, 1, 0]
    """
    found = pc.index_in(column, value_set=pa.array(values, column.type))
    if found.null_count:
        raise ValueError("a released sensitive value is not one of the owner's: use the values of the owner's table")
    return np.asarray(found.to_numpy(), np.int64)


def with_rows(table: pa.Table) -> pa.Table:
    """Give each person of a table a number.

    >>> with_rows(pa.table({"age": [30, 40]})).column_names
    ['age', 'row']
    """
    return table.append_column(ROW, pa.array(np.arange(table.num_rows)))
