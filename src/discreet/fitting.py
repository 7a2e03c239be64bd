"""What learns from private rows: it gets them in batches, with their units and public ranges, and pays before it reads.

An estimator sees rows themselves, so only Discreet's own may: their sums pass through the kernel's door, which charges
the ledger first. Everything else is refused.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from discreet.engines.gaps import check_gaps
from discreet.engines.interface import Engine
from discreet.engines.usage import usage_of_rows
from discreet.kernel.errors import Refused
from discreet.kernel.expr import Type
from discreet.kernel.ledger import Ledger
from discreet.kernel.relation import Relation, Scan, tables_of
from discreet.kernel.summing import MOST_UNITS, Part
from discreet.policy import Policy
from discreet.policy.units import PersonInWindow, Row
from discreet.sql.row_query import rows_of
from discreet.sql.rows.scope import Known

_OURS = "discreet"
_NUMBERS = (Type.INTEGER, Type.REAL)
Bounds = tuple[tuple[float, float], ...]
Sum = Callable[[Part, Bounds], np.ndarray]  # of a part over rows, moved into bounds, divided by whole units


@runtime_checkable
class Sums(Protocol):
    """An engine that sums where the rows are, and gives integers."""

    def held(self, relation: Relation, columns: tuple[str, ...]) -> AbstractContextManager[Sum]:
        """Keep the rows that lack none of these numbers at hand, and give what sums them; Refused if it could not."""


@dataclass(frozen=True)
class PrivateRows:
    """The rows of a query, for an estimator: column names, their public ranges, the ledger, and who asks.

    `bounds` are the declared ends of every column. Rows with a missing value in any column are left out.
    """

    names: tuple[str, ...]
    bounds: Bounds
    ledger: Ledger
    by: str
    question: str
    protects: str
    _relation: Relation = field(repr=False)
    _columns: tuple[str, ...] = field(repr=False)
    _engine: Engine = field(repr=False)

    def batches(self, size: int = 100_000) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Give batches of numbers (rows × columns) with the place of each row's unit; equal places, equal units.

        Every number lies within its bounds: what is stored outside of them is moved to the nearer end.
        """
        low, high = np.array(self.bounds, np.float64).reshape(-1, 2).T
        for numbers, places in self._engine.batches(self._relation, self._columns, size):
            yield np.clip(numbers, low, high), places


@dataclass(frozen=True)
class RemoteRows(PrivateRows):
    """The same, where they can be summed by the engine, and stay there."""

    _sum: Sum = field(repr=False)

    def summed(self, part: Part) -> np.ndarray:
        """Return the sum of a part over all rows, moved into their bounds and into those of the part."""
        return self._sum(part, self.bounds)


class Learns(Protocol):
    """An estimator that can be fitted on private rows."""

    def fit_rows(self, rows: PrivateRows) -> Any:
        """Learn from the rows of a query, paying from its ledger before each look."""


E = TypeVar("E", bound=Learns)


def fitted(  # noqa: PLR0913 - who asks what of whom
    estimator: E, sql: str, *, by: str, policy: Policy, engine: Engine, ledger: Ledger
) -> E:
    """Fit an estimator of ours on the private rows of a query, and return it."""
    fresh = _fresh(estimator)
    rows = rows_of(sql, policy, engine, by=by)
    check_gaps(rows.relation, engine.dialect)
    names = tuple(_spelled(known.name, policy) for known in rows.known)
    bounds = tuple(map(_ends_of, rows.known))
    columns = tuple(known.column.name for known in rows.known)
    _check_units(rows.relation)
    known = (names, bounds, ledger, by, sql, _protected(policy), rows.relation, columns, engine)
    before = set(vars(fresh))
    with engine.prepare(usage_of_rows(rows.relation, columns)):
        pass  # what cannot be read is refused here, before anything is charged
    with engine.held(rows.relation, columns) if isinstance(engine, Sums) else nullcontext() as summed:
        given = RemoteRows(*known, summed) if summed else PrivateRows(*known)
        type(fresh).fit_rows(fresh, given)
    vars(estimator).update({name: value for name, value in vars(fresh).items() if name not in before})
    return estimator


def _check_units(relation: Relation) -> None:
    """Refuse rows of which a unit would count as several, or of which there may be too many to be summed."""
    shape = relation.shape
    if shape.unit is None and shape.copies != 1:
        raise Refused(
            f"SELECT: every row is protected on its own, and one may become {shape.copies} rows here, each of which "
            "would count. Join tables with one row for each key, or ask the owner to declare a unit."
        )
    scans = [table.most for table in tables_of(relation) if isinstance(table, Scan)]
    if min(shape.rows, sum(scans)) > MOST_UNITS:
        raise Refused("SELECT: there may be too many rows to be summed. The owner can lower the table's rows_max.")


def _ends_of(known: Known) -> tuple[float, float]:
    """Return the public range of a column, or Refused."""
    if known.column.type is Type.BOOLEAN:
        return 0.0, 1.0
    if known.column.type not in _NUMBERS:
        raise Refused(f"SELECT: {known.name} is not a number. Select numbers, or make some with CASE.")
    low, high = known.bound.low, known.bound.high
    if not isinstance(low, Fraction) or not isinstance(high, Fraction):
        raise Refused(
            f"SELECT: {known.name} has no public range. Select CLIP({known.name}, low, high) AS {known.name}, or "
            "ask the owner to declare between."
        )
    return float(low), float(high)


def is_ours(kind: type) -> bool:
    """Tell whether a class is one of `discreet.learn`, the very one and not one that says so."""
    return getattr(import_module("discreet.learn"), kind.__name__, None) is kind and hasattr(kind, "fit_rows")


def _fresh(estimator: E) -> E:
    """Return an estimator of the same class with the same settings and nothing else: no method of its own, no trace."""
    kind = type(estimator)
    if kind.__module__.partition(".")[0] != _OURS or not is_ours(kind):
        raise Refused(
            f"estimator: {kind.__name__} is not one of Discreet's own. Others would see the rows of single people."
        )
    settings = vars(estimator)
    names = [name for name in inspect.signature(kind).parameters if name in settings]
    return kind(**{name: _plain(settings[name], name) for name in names})


def _plain(value: Any, name: str) -> Any:
    """Return a setting as plain data: an object of another kind could look at what it is compared with."""
    if value is None or type(value) in (bool, int, float, str, Fraction, Decimal):
        return value
    if type(value) in (list, tuple):
        return type(value)(_plain(each, name) for each in value)
    if type(value) is range:
        return list(value)
    if isinstance(value, np.ndarray | np.generic) or type(value).__module__.partition(".")[0] in ("pandas", "polars"):
        return _plain(np.asarray(value).tolist(), name)
    if isinstance(value, tuple) and type(value).__module__.startswith(f"{_OURS}."):  # a prior of a mixture
        return type(value)(*(np.asarray(_plain(each, name), np.float64) for each in value))
    raise Refused(f"{name}: settings are numbers, texts, lists and arrays, not {type(value).__name__}.")


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
