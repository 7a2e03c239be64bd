"""Fit Discreet's own estimators on private rows; the ledger is charged before any row is read.

An estimator sees individual rows, so only Discreet's own are accepted: they release sums through
`kernel.model_release` alone, which charges the ledger first.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from discreet.engines.column_usage import usage_of_relation
from discreet.engines.interface import Engine
from discreet.engines.unsupported import check_supported
from discreet.kernel.errors import Refused
from discreet.kernel.expr import Type
from discreet.kernel.ledger import Ledger
from discreet.kernel.model_release import MAX_UNITS, PartialSum
from discreet.kernel.relation import Relation, Scan
from discreet.policy import Policy
from discreet.policy.catalog import catalog_of
from discreet.policy.guarantee import unit_phrase
from discreet.query.passes import plan_row_query
from discreet.query.relations.bound_sources import ColumnInfo

_PACKAGE = "discreet"
_NUMERIC_TYPES = (Type.INTEGER, Type.REAL)
ColumnBounds = tuple[tuple[float, float], ...]
# Sums a part over all rows, with values clamped to the column bounds and whole units assigned to partitions.
SumFunction = Callable[[PartialSum, ColumnBounds], np.ndarray]


@runtime_checkable
class SummingEngine(Protocol):
    """An engine that computes integer sums where the rows are stored."""

    def cached_rows(self, relation: Relation, columns: tuple[str, ...]) -> AbstractContextManager[SumFunction]:
        """Cache the rows without NULL in these columns and return a function that sums them; Refused if it cannot."""


@dataclass(frozen=True)
class PrivateRows:
    """The rows of a query, as an estimator sees them, with the ledger to which the fit is charged.

    `bounds` are the declared ranges of the columns. Rows with NULL in any column are left out.
    """

    names: tuple[str, ...]
    bounds: ColumnBounds
    ledger: Ledger
    by: str
    question: str
    protects: str
    _relation: Relation = field(repr=False)
    _columns: tuple[str, ...] = field(repr=False)
    _engine: Engine = field(repr=False)

    grouped: ClassVar[bool] = True

    @property
    def low(self) -> np.ndarray:
        """The lower bound of each column."""
        return np.array([low for low, _ in self.bounds], np.float64)

    @property
    def high(self) -> np.ndarray:
        """The upper bound of each column."""
        return np.array([high for _, high in self.bounds], np.float64)

    def batches(self, size: int = 100_000) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield batches of values (rows × columns), clamped to their bounds, with the index of each row's unit."""
        low, high = self.low, self.high
        for numbers, unit_indices in self._engine.batches(self._relation, self._columns, size):
            yield np.clip(numbers, low, high), unit_indices


@dataclass(frozen=True)
class RemoteRows(PrivateRows):
    """Private rows that the engine sums where they are stored."""

    _sum: SumFunction = field(repr=False)

    def sum_units(self, part: PartialSum) -> np.ndarray:
        """Return the sum of a part over all rows, with values clamped to the column bounds and to those of the part."""
        return self._sum(part, self.bounds)


class PrivateEstimator(Protocol):
    """An estimator that can be fitted on private rows."""

    def fit_rows(self, rows: PrivateRows) -> Any:
        """Fit on the rows of a query; the ledger is charged before each pass over them."""


E = TypeVar("E", bound=PrivateEstimator)


def fit_on_query(  # noqa: PLR0913 - the request, and what serves it
    estimator: E, sql: str, *, by: str, policy: Policy, engine: Engine, ledger: Ledger
) -> E:
    """Fit one of Discreet's estimators on the private rows of a query, and return it."""
    clone = _clone_unfitted(estimator)
    rows = plan_row_query(sql, policy, engine, by=by)
    catalog_of(policy, engine.columns, engine.location).check(rows.relation)
    check_supported(rows.relation, engine.dialect)
    names = tuple(_declared_spelling(info.name, policy) for info in rows.columns)
    bounds = tuple(map(_public_range, rows.columns))
    columns = tuple(info.column.name for info in rows.columns)
    check_summable(rows.relation)
    request = (names, bounds, ledger, by, sql, unit_phrase(policy))
    attributes_before = set(vars(clone))
    with open_rows(request, rows.relation, columns, engine) as private_rows:
        type(clone).fit_rows(clone, private_rows)
    vars(estimator).update({name: value for name, value in vars(clone).items() if name not in attributes_before})
    return estimator


@contextmanager
def open_rows(
    request: tuple[tuple[str, ...], ColumnBounds, Ledger, str, str, str],
    relation: Relation,
    columns: tuple[str, ...],
    engine: Engine,
) -> Iterator[PrivateRows]:
    """Open private rows for sums; unreadable tables are refused here, before anything is charged.

    `request` has the first fields of PrivateRows.
    """
    with engine.prepare(usage_of_relation(relation, columns)):
        pass
    with engine.cached_rows(relation, columns) if isinstance(engine, SummingEngine) else nullcontext() as sum_function:
        row_fields = (*request, relation, columns, engine)
        yield RemoteRows(*row_fields, sum_function) if sum_function else PrivateRows(*row_fields)


def check_summable(relation: Relation) -> None:
    """Refuse relations in which a unit counts more than once, or that may have too many rows to sum."""
    shape = relation.shape
    if shape.unit is None and shape.max_rows_per_unit != 1:
        raise Refused(
            f"SELECT: the privacy unit is a row, and this query can turn one row into {shape.max_rows_per_unit}. "
            "Join tables with one row per key, or ask the owner to declare a unit."
        )
    scans = [table.max_rows for table in shape.tables if isinstance(table, Scan)]
    if min(shape.max_rows, sum(scans)) > MAX_UNITS:
        raise Refused("SELECT: the query may have too many rows to sum. The owner can lower rows_max of the table.")


def _public_range(column: ColumnInfo) -> tuple[float, float]:
    """Return the public range of a column; Refused if it has none."""
    if column.column.type is Type.BOOLEAN:
        return 0.0, 1.0
    if column.column.type not in _NUMERIC_TYPES:
        raise Refused(f"SELECT: {column.name} is not numeric. Select numeric columns, or convert it with CASE.")
    low, high = column.bound.low, column.bound.high
    if not isinstance(low, Fraction) or not isinstance(high, Fraction):
        raise Refused(
            f"SELECT: {column.name} has no public range. Select CLIP({column.name}, low, high) AS {column.name}, or "
            "ask the owner to declare one with between."
        )
    return float(low), float(high)


def is_own_estimator(class_: type) -> bool:
    """Whether a class is an estimator of `discreet.learn` itself, not another class of the same name."""
    return getattr(import_module("discreet.learn"), class_.__name__, None) is class_ and hasattr(class_, "fit_rows")


def _clone_unfitted(estimator: E) -> E:
    """Return a new estimator of the same class and settings, without any attribute that was added to the instance."""
    class_ = type(estimator)
    if class_.__module__.partition(".")[0] != _PACKAGE or not is_own_estimator(class_):
        raise Refused(
            f"estimator: {class_.__name__} is not an estimator of discreet.learn. No other class may read private rows."
        )
    settings = vars(estimator)
    names = [name for name in inspect.signature(class_).parameters if name in settings]
    return class_(**{name: _plain_setting(settings[name], name) for name in names})


def _plain_setting(value: Any, name: str) -> Any:
    """Return a setting as plain data; any other object could run its own code when it is compared."""
    if value is None or type(value) in (bool, int, float, str, Fraction, Decimal):
        return value
    if type(value) in (list, tuple):
        return type(value)(_plain_setting(item, name) for item in value)
    if type(value) is dict:
        return {_plain_setting(key, name): _plain_setting(item, name) for key, item in value.items()}
    if type(value) is range:
        return list(value)
    if isinstance(value, np.ndarray | np.generic) or type(value).__module__.partition(".")[0] in ("pandas", "polars"):
        return _plain_setting(np.asarray(value).tolist(), name)
    if isinstance(value, tuple) and type(value).__module__.startswith(f"{_PACKAGE}."):  # a prior of a mixture
        return type(value)(*(np.asarray(_plain_setting(item, name), np.float64) for item in value))
    raise Refused(f"{name}: parameters must be numbers, strings, lists, dicts or arrays, not {type(value).__name__}.")


def _declared_spelling(name: str, policy: Policy) -> str:
    """Return a column's name as declared: SQL names are case-insensitive, those of frames are not."""
    declared = {column for table in policy.tables.values() for column in table.columns}
    matches = [column for column in declared if column.lower() == name.lower()]
    return matches[0] if len(matches) == 1 else name
