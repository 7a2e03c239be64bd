"""The meaning of a question, in plain Python straight from the definitions; every other engine is tested against it.

It is slow and keeps everything in lists. A row is a dictionary, paired with the unit that owns it.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import date, datetime
from functools import partial
from itertools import product
from math import isqrt, sqrt
from typing import Any

import numpy as np

from discreet.engines.reference.evaluate import evaluate, finite_or_null, sort_key
from discreet.kernel.ball import WEIGHT_BITS, Ball, Norm
from discreet.kernel.expr import AggregateFunction, Expr, Type, UnitAggregate, Value
from discreet.kernel.grid import Grid
from discreet.kernel.question import GroupKey, PublicGroups, Question
from discreet.kernel.relation import (
    Derive,
    JoinKind,
    JoinOnUnit,
    JoinPublic,
    NumberRows,
    ParentUnit,
    PerUnit,
    PublicTable,
    Relation,
    Scan,
    SemiJoinKind,
    SemiJoinOnUnit,
    Union,
    UnitKey,
    Where,
)
from discreet.kernel.release import EngineTotals
from discreet.kernel.totals import Count, CountDistinct, CountUnits, HistogramTree, SelectionWeight, Sum, Total
from tests.reference.histogram_and_distinct import count_distinct, histogram_cells

Row = dict[str, Value]
UnitValues = tuple[Hashable, ...]  # the unit's key, or (table, row number) where each row is a unit
OwnedRow = tuple[UnitValues, Row]
RowsByGroup = dict[GroupKey, dict[UnitValues, list[Row]]]


class ReferenceEngine:
    """An engine over tables given as lists of rows, by name.

    >>> from discreet.kernel.expr import Column
    >>> from discreet.kernel.question import ContributionBounds
    >>> from discreet.kernel.totals import Count
    >>> user = Column("user", Type.INTEGER)
    >>> visits = Scan("visits", (user,), UnitKey((user,)), max_rows=100)
    >>> bounds = ContributionBounds(groups=1, rows=2)
    >>> question = Question(visits, (), PublicGroups(()), bounds, (Count(), CountUnits()))
    >>> engine = ReferenceEngine({"visits": [{"user": 1}, {"user": 1}, {"user": 1}, {"user": 2}]})
    >>> engine.totals(question).values.tolist()
    [[3, 2]]
    """

    def __init__(self, tables: Mapping[str, list[Row]]) -> None:
        self._tables = tables

    def location(self, table: str) -> str:
        """Return where a table's rows are."""
        return "frame"

    def columns(self, table: str) -> dict[str, Type]:
        """Return a table's columns; one with only NULLs is text."""
        rows = self._tables[table]
        return {name: _type_of([row[name] for row in rows]) for name in (rows[0] if rows else {})}

    def values(self, table: str, column: str) -> list[Value]:
        """Return the distinct values of a column of a PUBLIC table, sorted, without NULL."""
        return sorted({row[column] for row in self._tables[table]} - {None}, key=sort_key)

    def fanout(self, table: str, columns: tuple[str, ...]) -> int:
        """Return the largest number of rows of a PUBLIC table that are equal in these columns; NULL equals nothing."""
        keys = [tuple(row[name] for name in columns) for row in self._tables[table]]
        return max((keys.count(key) for key in keys if None not in key), default=0)

    def totals(self, question: Question) -> EngineTotals:
        """Compute the exact totals of a question."""
        groups = _rows_by_group(question, self.owned_rows(question.relation))
        sums: dict[GroupKey, list[int]] = {} if question.by else {(): [0] * len(question.totals)}
        for key in groups:
            sums[key] = [0] * len(question.totals)
        for rows_by_key in _rows_by_unit_and_group(groups).values():
            for index, total in enumerate(question.totals):
                for key, term in _unit_terms(question, total, rows_by_key).items():
                    sums[key][index] += term
        index_by_key = {key: index for index, key in enumerate(sums)}
        values = np.array(list(sums.values()), np.int64).reshape(len(sums), len(question.totals))
        cell_counts = {}
        for index, total in enumerate(question.totals):
            if isinstance(total, CountDistinct):
                distinct = count_distinct(question, total, groups)
                values[:, index] = [distinct.get(key, 0) for key in sums]
            elif isinstance(total, HistogramTree):
                cell_counts[index] = histogram_cells(question, total, groups, index_by_key)
        return EngineTotals(list(sums), values, cell_counts)

    def owned_rows(self, relation: Relation) -> list[OwnedRow]:  # noqa: PLR0911 - one case for each node
        """Return the rows of a relation, each with its unit."""
        match relation:
            case Scan():
                return self._scan(relation)
            case Where(source, condition):
                return [(unit, row) for unit, row in self.owned_rows(source) if evaluate(condition, row) is True]
            case Derive(source, columns):
                return [(unit, _derive_row(columns, row)) for unit, row in self.owned_rows(source)]
            case JoinPublic():
                return self._join_public(relation)
            case JoinOnUnit(left, right, also, keep, most):
                ours, theirs = self.owned_rows(left), _rows_by_unit(self.owned_rows(right))
                nulls = dict.fromkeys(right.shape.schema)
                return [
                    (unit, row)
                    for unit, mine in _rows_by_unit(ours).items()
                    for one in _first_rows(mine, most)
                    for row in _join_rows(one, _first_rows(theirs.get(unit, []), most), also, keep, nulls)
                ]
            case SemiJoinOnUnit(source, other, has):
                units_present = {unit for unit, _ in self.owned_rows(other)}
                return [
                    (unit, row)
                    for unit, row in self.owned_rows(source)
                    if (unit in units_present) is (has is SemiJoinKind.SEMI)
                ]
            case PerUnit():
                return self._per_unit(relation)
            case NumberRows():
                return self._number_rows(relation)
            case Union(left, right):
                return self.owned_rows(left) + self.owned_rows(right)

    def _scan(self, scan: Scan) -> list[OwnedRow]:
        owned = []
        for row_number, row in enumerate(self._tables[scan.table]):
            owners = self._owners(scan, row_number, row)
            if len(owners) == 1:
                owned.append((owners.pop(), {column.name: row[column.name] for column in scan.columns}))
        return owned

    def _owners(self, scan: Scan, row_number: int, row: Row) -> set[UnitValues]:
        """Return all units that a row of a private table belongs to; rows of several units are dropped."""
        match scan.owner:
            case UnitKey(parts):
                unit = tuple(evaluate(part, row) for part in parts)
                return set() if None in unit else {unit}
            case ParentUnit(on, parent, key):
                owners: set[UnitValues] = set()
                for parent_number, parent_row in enumerate(self._tables[parent.table]):
                    if row[on] is not None and row[on] == parent_row[key]:
                        owners |= self._owners(parent, parent_number, parent_row)
                return owners
        return {(scan.table, row_number)}

    def _join_public(self, join: JoinPublic) -> list[OwnedRow]:
        public = defaultdict[Hashable, list[Row]](list)
        for row in self._public_rows(join.table):
            public[_equality_key(row[theirs] for _, theirs in join.equal)].append(row)
        nulls = dict.fromkeys(join.table.schema)
        return [
            (unit, row)
            for unit, one in self.owned_rows(join.source)
            for row in _join_rows(one, _matching_rows(join, one, public), join.condition, join.kind, nulls)
        ]

    def _public_rows(self, table: PublicTable) -> list[Row]:
        rows = [{name: row[column.name] for name, column in table.columns} for row in self._tables[table.table]]
        return [row for row in rows if table.condition is None or evaluate(table.condition, row) is True]

    def _number_rows(self, relation: NumberRows) -> list[OwnedRow]:
        rows_by_key = defaultdict[tuple[UnitValues, GroupKey], list[Row]](list)
        for unit, row in self.owned_rows(relation.source):
            rows_by_key[unit, tuple(finite_or_null(evaluate(key, row)) for key in relation.keys)].append(row)
        return [
            (unit, {**row, relation.name: number})
            for (unit, _), rows in rows_by_key.items()
            for number, row in enumerate(_ordered_rows(relation, rows)[: relation.last], 1)
        ]

    def _per_unit(self, relation: PerUnit) -> list[OwnedRow]:
        rows_by_key = defaultdict[tuple[UnitValues, GroupKey], list[Row]](list)
        for unit, row in self.owned_rows(relation.source):
            rows_by_key[unit, tuple(finite_or_null(evaluate(expr, row)) for _, expr in relation.keys)].append(row)
        names = [name for name, _ in relation.keys]
        return [
            (
                unit,
                dict(zip(names, key, strict=True))
                | {name: _unit_aggregate(aggregate, rows) for name, aggregate in relation.values},
            )
            for (unit, key), rows in rows_by_key.items()
        ]


def _ordered_rows(relation: NumberRows, rows: list[Row]) -> list[Row]:
    """Return rows in the order of a node, NULL last."""
    ordered = list(rows)
    for expr, descending in reversed(relation.order):  # sorting is stable
        values = partial(evaluate, expr)
        ordered.sort(key=lambda row: sort_key(values(row)), reverse=descending)
        ordered.sort(key=lambda row: values(row) is None)
    return ordered


def _type_of(values: list[Value]) -> Type:
    return _TYPES[next((type(value) for value in values if value is not None), str)]


_TYPES: dict[type, Type] = dict(zip((int, float, bool, str, date, datetime), Type, strict=True))


def _derive_row(columns: Iterable[tuple[str, Expr]], row: Row) -> Row:
    return {name: evaluate(expr, row) for name, expr in columns}


def _equality_key(values: Iterable[Value]) -> Hashable:
    """Return a key that equal values share; NaN equals itself."""
    return tuple(map(sort_key, values))


def _rows_by_unit(rows: Iterable[OwnedRow]) -> dict[UnitValues, list[Row]]:
    rows_by_unit = defaultdict[UnitValues, list[Row]](list)
    for unit, row in rows:
        rows_by_unit[unit].append(row)
    return dict(rows_by_unit)


def _first_rows(rows: Iterable[Row], limit: int) -> list[Row]:
    """Return the first `limit` rows, ordered by their values."""
    return sorted(rows, key=lambda row: [sort_key(value) for value in row.values()])[:limit]


def _matching_rows(join: JoinPublic, row: Row, public: Mapping[Hashable, list[Row]]) -> list[Row]:
    values = [row[ours] for ours, _ in join.equal]
    return [] if None in values else _first_rows(public.get(_equality_key(values), []), join.fanout)


def _join_rows(row: Row, matching_rows: list[Row], condition: Expr | None, keep: JoinKind, nulls: Row) -> list[Row]:
    pairs = [{**row, **other} for other in matching_rows]
    accepted = [pair for pair in pairs if condition is None or evaluate(condition, pair) is True]
    return accepted or ([{**row, **nulls}] if keep is JoinKind.LEFT else [])


def _unit_aggregate(aggregate: UnitAggregate, rows: list[Row]) -> Value:
    if aggregate.expr is None:
        return len(rows)
    values = [value for row in rows if (value := finite_or_null(evaluate(aggregate.expr, row))) is not None]
    if aggregate.grid is not None:
        values = [_grid_step(value, aggregate.grid) for value in values]
    return _AGGREGATES[aggregate.function](values)


def _int64_sum(values: list[int]) -> int | None:
    total = sum(values)
    return total if values and -(1 << 63) <= total < 1 << 63 else None


_AGGREGATES: dict[AggregateFunction, Callable[[list[Any]], Value]] = {
    AggregateFunction.COUNT: len,
    AggregateFunction.DISTINCT: lambda values: len(set(values)),
    AggregateFunction.MIN: lambda values: min(values, default=None),
    AggregateFunction.MAX: lambda values: max(values, default=None),
    AggregateFunction.SUM: _int64_sum,
    AggregateFunction.GRID_SUM: _int64_sum,
}


def _grid_step(value: Any, grid: Grid) -> int:
    return grid.index(float(value)) - grid.offset


def _rows_by_unit_and_group(groups: RowsByGroup) -> dict[UnitValues, dict[GroupKey, list[Row]]]:
    """Return the rows of each unit, by group."""
    rows_by_unit = defaultdict[UnitValues, dict[GroupKey, list[Row]]](dict)
    for key, units in groups.items():
        for unit, rows in units.items():
            rows_by_unit[unit][key] = rows
    return rows_by_unit


def _rows_by_group(question: Question, rows: list[OwnedRow]) -> RowsByGroup:
    """Return the rows of each unit in each group: of public groups the listed ones, else those not yet shown."""
    rows_by_group: RowsByGroup = {}
    groups = question.groups
    listed = set(product(*groups.domains) if isinstance(groups, PublicGroups) else groups.shown)
    for unit, row in rows:
        key = tuple(finite_or_null(evaluate(expr, row)) for _, expr in question.by)
        if (key in listed) is isinstance(groups, PublicGroups):
            rows_by_group.setdefault(key, {}).setdefault(unit, []).append(row)
    return rows_by_group


def _unit_terms(question: Question, total: Total, rows_by_key: Mapping[GroupKey, list[Row]]) -> dict[GroupKey, int]:
    """Return a unit's contribution to a total in each of its groups; only counts, sums and selection weights have one.

    The terms are scaled by one weight if they exceed the ball.
    """
    if not isinstance(total, Count | CountUnits | Sum | SelectionWeight):
        return {}
    values = {key: _row_terms(total, rows) for key, rows in rows_by_key.items()}
    if not question.needs_clipping:
        return {key: sum(terms) for key, terms in values.items()}
    bits = question.fraction_bits(total)
    if isinstance(total, SelectionWeight):
        square = 4**bits if len(values) <= question.max_selection_keys else 0
        return {key: isqrt(square // len(values)) for key in values}
    terms = {key: _limit_term(question, total, each) for key, each in values.items()}
    ball = question.ball_of(total)
    if ball is None:
        return terms
    divisor = 1 << (WEIGHT_BITS - bits + question.term_bits(total))
    capped = [min(len(rows), question.max_rows_per_group) for rows in rows_by_key.values()]
    weight = _ball_weight(ball, capped if question.weighs_by_rows(total) else terms.values())
    return {key: _divide_towards_zero(term * weight, divisor) for key, term in terms.items()}


def _ball_weight(ball: Ball, terms: Iterable[int]) -> int:
    """Return the weight that scales terms into a ball, in units of 2^-20."""
    steps = [-(-abs(term) >> ball.shift) for term in terms]
    norm = sum(steps) if ball.norm is Norm.L1 else sum(step * step for step in steps)
    if norm <= ball.limit:
        return 1 << WEIGHT_BITS
    return ball.weight_numerator // norm if ball.norm is Norm.L1 else int(ball.weight_numerator / sqrt(norm))


def _row_terms(total: Total, rows: list[Row]) -> list[int]:
    """Return the contributions of the rows in which the expression is not NULL."""
    if total.expr is None:
        return [1] * len(rows)
    values = [value for row in rows if (value := finite_or_null(evaluate(total.expr, row))) is not None]
    if not isinstance(total, Sum):
        return [1] * len(values)
    return [_grid_step(value, total.grid) ** total.power - total.shift for value in values]


def _limit_term(question: Question, total: Total, values: list[int]) -> int:
    """Return a unit's term in one group: of at most `rows` rows with a cap, else limited so that its square fits."""
    if isinstance(total, CountUnits):
        return bool(values)
    if not question.caps_terms(total):
        ball = question.ball_of(total)
        limit = ball.cut if ball else question.max_term(total)
        return sum(values) if limit is None else max(-limit, min(limit, sum(values)))
    scale = 1 << question.term_bits(total)
    if len(values) > question.max_rows_per_group:
        return _divide_towards_zero(sum(values) * scale * question.max_rows_per_group, len(values))
    return sum(values) * scale


def _divide_towards_zero(numerator: int, denominator: int) -> int:
    return numerator // denominator if numerator >= 0 else -(-numerator // denominator)
