"""What advice is asked for, and what it costs: known before anything is charged."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet import privacy
from discreet.advise.value_cells import ValueCells, coarse_cells
from discreet.kernel.errors import Refused
from discreet.kernel.loss import Loss
from discreet.kernel.numbers import Number
from discreet.kernel.sqlgen.dialect import quote_name
from discreet.policy import Policy
from discreet.policy.column_domains import DeclaredColumn, Keys, NoDomain, References
from discreet.policy.declarations import (
    ColumnUnit,
    DeclaredTable,
    RowUnit,
    WindowUnit,
    declared_name,
)
from discreet.pricing.remaining_budget import cost_in_budget

_HISTOGRAMS_OF_COLUMN = 2  # one of coarse cells, and one of finer cells at the ends
_KINDS = ("integer", "real", "decimal", "date", "timestamp")


@dataclass(frozen=True)
class Grouping:
    """A typical GROUP BY of a table, as SQL; empty for totals over all rows. `unit` is the privacy unit in SQL."""

    table: str
    keys: str
    unit: str | None

    @property
    def sql(self) -> str:
        """The query whose contribution histograms are released."""
        units = f", COUNT(DISTINCT {self.unit}) AS units" if self.unit and self.keys else ""
        group = f" GROUP BY {self.keys}" if self.keys else ""
        return f"SELECT COUNT(*) AS n{units} FROM {quote_name(self.table)}{group}"  # noqa: S608 - parsed by the front end


@dataclass(frozen=True)
class ColumnToRange:
    """A column whose range is to be chosen."""

    table: str
    column: DeclaredColumn

    @property
    def cells(self) -> ValueCells:
        """The coarse cells by which its values are counted first."""
        return coarse_cells(self.column.type)

    @property
    def whole(self) -> bool:
        """Whether its values are integers."""
        return self.column.type == "integer"


@dataclass(frozen=True)
class AdvicePlan:
    """The histograms of advice, in order, each at the same cost; bounds are chosen for queries at `query_cost`.

    `row_tables` have single rows as units, so that there are no bounds to choose.
    """

    policy: Policy
    epsilon: Number
    query_epsilon: Number
    groupings: tuple[Grouping, ...]
    columns: tuple[ColumnToRange, ...]
    row_tables: tuple[str, ...] = ()

    @property
    def histograms(self) -> int:
        """The number of histograms, at most; those of one grouping are one."""
        return len(self.groupings) + _HISTOGRAMS_OF_COLUMN * len(self.columns)

    @property
    def cost(self) -> Loss:
        """The whole cost."""
        return self._loss(self.epsilon)

    @property
    def query_cost(self) -> Loss:
        """The cost of the queries for which bounds are chosen."""
        return self._loss(self.query_epsilon)

    @property
    def share(self) -> dict[str, Any]:
        """The cost of one histogram, as an argument of `ask`."""
        cost = self.cost
        if cost.epsilon is None:
            return {"rho": cost.rho / self.histograms}
        return {"epsilon": cost.epsilon / self.histograms}

    def _loss(self, epsilon: Number) -> Loss:
        try:
            return privacy.cost_of(self.policy.budget, epsilon)
        except (TypeError, ValueError) as error:
            raise Refused(f"{error}.") from None

    def __str__(self) -> str:
        lines = [f"Advice would cost {cost_in_budget(self.cost, self.policy.budget)}, at most. No data was read."]
        lines += [f"contribution bounds of {each.table}, {grouping_text(each)}: 1 histogram" for each in self.groupings]
        lines += [
            f"range of {each.table}.{each.column.name}: {_HISTOGRAMS_OF_COLUMN} histograms" for each in self.columns
        ]
        each = cost_in_budget(Loss(*_amounts(self.share)), self.policy.budget)
        return "\n".join([*lines, f"Each of {self.histograms} histogram{'s' * (self.histograms != 1)} costs {each}."])


def _amounts(share: dict[str, Any]) -> tuple[Fraction | None, Fraction | None]:
    return share.get("epsilon"), share.get("rho")


def grouping_text(grouping: Grouping) -> str:
    """Return the grouping in words."""
    return f"GROUP BY {grouping.keys}" if grouping.keys else "without GROUP BY"


def plan_advice(  # noqa: PLR0913, PLR0917 - the arguments of `advise`
    policy: Policy,
    table: str | None,
    by_columns: Sequence[str],
    columns: Sequence[str] | None,
    epsilon: Number,
    query_epsilon: Number | None,
) -> AdvicePlan:
    """Return the plan of advice on one private table or on all; by default on all columns that need a range."""
    tables = _private_tables(policy, table)
    if len(tables) > 1 and (by_columns or columns):
        raise Refused("table: the policy has several private tables. Name the one that the columns belong to.")
    groupings = tuple(
        Grouping(each.name, keys.strip(), _unit_sql(each))
        for each in tables
        if not isinstance(each.unit, RowUnit)
        for keys in dict.fromkeys(by_columns or ("",))
    )
    ranged = tuple(
        ColumnToRange(each.name, column)
        for each in tables
        for column in (_columns_without_range(policy, each) if columns is None else _named_columns(each, columns))
    )
    plan = AdvicePlan(
        policy,
        epsilon,
        epsilon if query_epsilon is None else query_epsilon,
        groupings,
        ranged,
        tuple(each.name for each in tables if isinstance(each.unit, RowUnit)),
    )
    if not plan.histograms:
        raise Refused("columns: every column has a range, and single rows need no contribution bounds. Name columns.")
    assert plan.cost
    assert plan.query_cost
    return plan


def _private_tables(policy: Policy, name: str | None) -> list[DeclaredTable]:
    if name is None:
        return [table for table in policy.tables.values() if not table.public]
    table = policy.table(name)
    if table is None or table.public:
        private = [each.name for each in policy.tables.values() if not each.public]
        raise Refused(f"table: {name!r} is not a private table. The private tables are {', '.join(private)}.")
    return [table]


def _unit_sql(table: DeclaredTable) -> str | None:
    """Return the expression whose distinct values are the units; None if it is not in the table itself."""
    match table.unit:
        case ColumnUnit(name):
            return quote_name(name)
        case WindowUnit(name, time, window):
            return f"({quote_name(name)}, date_trunc('{window}', {quote_name(time)}))"
    return None


def _columns_without_range(policy: Policy, table: DeclaredTable) -> list[DeclaredColumn]:
    keys = policy.key_columns(table)
    return [
        column
        for column in table.columns.values()
        if column.type in _KINDS
        and isinstance(column.domain, NoDomain)
        and not column.unique
        and column.name not in keys
    ]


def _named_columns(table: DeclaredTable, names: Sequence[str]) -> list[DeclaredColumn]:
    found = []
    for name in dict.fromkeys(names):
        declared = declared_name(table.columns, name)
        column = None if declared is None else table.columns[declared]
        if column is None:
            raise Refused(f"columns: {name!r} is not a column of {table.name}.")
        if column.type not in _KINDS or isinstance(column.domain, Keys | References) or name == table.unit_column:
            raise Refused(f"columns: {name!r} cannot have a range. Name columns of numbers, dates or timestamps.")
        found.append(column)
    return found
