"""What learns from private rows: it gets them in batches, with their units and public ranges, and pays before it reads.

An estimator sees rows themselves, so only Discreet's own may: their sums pass through the kernel's door, which charges
the ledger first. Everything else is refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from discreet.engines.duckdb import DuckDB
from discreet.kernel.errors import Refused
from discreet.kernel.expr import Type
from discreet.kernel.ledger import Ledger
from discreet.kernel.relation import Relation
from discreet.policy import Policy
from discreet.policy.units import PersonInWindow, Row
from discreet.sql.row_query import rows_of

_OURS = "discreet."
_NUMBERS = (Type.INTEGER, Type.REAL)


@dataclass(frozen=True)
class PrivateRows:
    """The rows of a query, for an estimator: column names, their public ranges, the ledger, and who asks.

    `bounds` are the declared ends of every column. Rows with a missing value in any column are left out.
    """

    names: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    ledger: Ledger
    by: str
    question: str
    protects: str
    _relation: Relation = field(repr=False)
    _columns: tuple[str, ...] = field(repr=False)
    _engine: DuckDB = field(repr=False)

    def batches(self, size: int = 100_000) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Give batches of numbers (rows × columns) with the place of each row's unit; equal places, equal units.

        Every number lies within its bounds: what is stored outside of them is moved to the nearer end.
        """
        low, high = np.array(self.bounds, np.float64).reshape(-1, 2).T
        for numbers, places in self._engine.batches(self._relation, self._columns, size):
            yield np.clip(numbers, low, high), places


@runtime_checkable
class Learns(Protocol):
    """An estimator that can be fitted on private rows."""

    def fit_rows(self, rows: PrivateRows) -> Any:
        """Learn from the rows of a query, paying from its ledger before each look."""


E = TypeVar("E", bound=Learns)


def fitted(  # noqa: PLR0913 - who asks what of whom
    estimator: E, sql: str, *, by: str, policy: Policy, engine: DuckDB, ledger: Ledger
) -> E:
    """Fit an estimator of ours on the private rows of a query, and return it."""
    if not isinstance(estimator, Learns) or not type(estimator).__module__.startswith(_OURS):
        name = type(estimator).__name__
        raise Refused(f"estimator: {name} is not one of Discreet's own. Others would see the rows of single people.")
    rows = rows_of(sql, policy, engine, by=by)
    names, columns, bounds = [], [], []
    for known in rows.known:
        if known.column.type is Type.BOOLEAN:
            names.append(_spelled(known.name, policy))
            columns.append(known.column.name)
            bounds.append((0.0, 1.0))
            continue
        if known.column.type not in _NUMBERS:
            raise Refused(f"SELECT: {known.name} is not a number. Select numbers, or make some with CASE.")
        low, high = known.bound.low, known.bound.high
        if not isinstance(low, Fraction) or not isinstance(high, Fraction):
            raise Refused(
                f"SELECT: {known.name} has no public range. Select CLIP({known.name}, low, high) AS {known.name}, or "
                "ask the owner to declare between."
            )
        names.append(_spelled(known.name, policy))
        columns.append(known.column.name)
        bounds.append((float(low), float(high)))
    given = PrivateRows(
        tuple(names), tuple(bounds), ledger, by, sql, _protected(policy), rows.relation, tuple(columns), engine
    )
    estimator.fit_rows(given)
    return estimator


def _spelled(name: str, policy: Policy) -> str:
    """Return a column's name as the owner spells it, since SQL does not tell Age from age but frames do."""
    declared = {column for table in policy.tables.values() for column in table.columns}
    same = [column for column in declared if column.lower() == name.lower()]
    return same[0] if len(same) == 1 else name


def _protected(policy: Policy) -> str:
    """Return the word for what is hidden."""
    match policy.unit:
        case PersonInWindow(_, window, _):
            return f"{policy.data.protects}'s {window}"
        case Row():
            return "row"
    return policy.data.protects
