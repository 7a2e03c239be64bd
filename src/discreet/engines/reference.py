"""What a question means, in plain Python and straight from the definitions: what every engine is checked against.

It is slow, and holds everything in lists. A row is a dictionary, and comes with the unit that owns it.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import date, datetime
from itertools import product
from typing import Any

import numpy as np

from discreet.engines.evaluate import evaluate, finite, order
from discreet.engines.reference_apart import different, tally
from discreet.kernel.expr import Expr, Type, Value
from discreet.kernel.fold import Fold, Folded
from discreet.kernel.grid import Grid
from discreet.kernel.question import (
    WEIGHT_BITS,
    Cells,
    Count,
    Discover,
    Public,
    Question,
    Sum,
    Total,
    Touched,
    Units,
    Values,
)
from discreet.kernel.relation import (
    Derive,
    Has,
    JoinOwn,
    JoinPublic,
    Keep,
    Own,
    PerUnit,
    PublicTable,
    Relation,
    Scan,
    SemiOwn,
    Through,
    Union,
    Where,
)
from discreet.kernel.release import Key, Totals

Row = dict[str, Value]
Unit = tuple[Hashable, ...]  # the values of the unit's key; where each row is a unit, its table and its place there
Owned = tuple[Unit, Row]
Groups = dict[Key, dict[Unit, list[Row]]]


class Reference:
    """Tables by their names, as lists of rows.

    >>> from discreet.kernel.expr import Column
    >>> from discreet.kernel.question import Count, Limit
    >>> user = Column("user", Type.INTEGER)
    >>> visits = Scan("visits", (user,), Own((user,)), most=100)
    >>> question = Question(visits, (), Public(()), Limit(groups=1, rows=2), (Count(), Units()))
    >>> Reference({"visits": [{"user": 1}, {"user": 1}, {"user": 1}, {"user": 2}]}).totals(question).values.tolist()
    [[3, 2]]
    """

    def __init__(self, tables: Mapping[str, list[Row]]) -> None:
        self._tables = tables

    def columns(self, table: str) -> dict[str, Type]:
        """Return a table's columns; one that holds nothing is of text."""
        rows = self._tables[table]
        return {name: _type_of([row[name] for row in rows]) for name in (rows[0] if rows else {})}

    def values(self, table: str, column: str) -> list[Value]:
        """Return the values of a column of a PUBLIC table, in order, without NULL."""
        return sorted({row[column] for row in self._tables[table]} - {None}, key=order)

    def fanout(self, table: str, columns: tuple[str, ...]) -> int:
        """Return how many rows of a PUBLIC table share their values of these columns at most; NULL equals nothing."""
        keys = [tuple(row[name] for name in columns) for row in self._tables[table]]
        return max((keys.count(key) for key in keys if None not in key), default=0)

    def totals(self, question: Question) -> Totals:
        """Compute the exact totals of a question."""
        groups = _groups(question, self.rows(question.relation))
        sums: dict[Key, list[int]] = {} if question.by else {(): [0] * len(question.totals)}
        spread = _spread(groups)
        for key, units in groups.items():
            terms = [_terms(question, rows, spread[unit]) for unit, rows in units.items()]
            sums[key] = [sum(column) for column in zip(*terms, strict=True)]
        if isinstance(question.groups, Discover):
            sums = {key: totals for key, totals in sums.items() if totals[0] > 0}  # nobody has a say in the others
        places = {key: place for place, key in enumerate(sums)}
        values = np.array(list(sums.values()), np.int64).reshape(len(sums), len(question.totals))
        tallies = {}
        for place, total in enumerate(question.totals):
            if isinstance(total, Touched):
                values[:, place] = _touched(question, total, groups, spread)
            elif isinstance(total, Values):
                found = different(question, total, groups)
                values[:, place] = [found.get(key, 0) for key in sums]
            elif isinstance(total, Cells):
                tallies[place] = tally(question, total, groups, places)
        return Totals(list(sums), values, tallies)

    def rows(self, relation: Relation) -> list[Owned]:  # noqa: PLR0911 - one case for each node
        """Return the rows of a relation, each with its unit."""
        match relation:
            case Scan():
                return self._scan(relation)
            case Where(source, condition):
                return [(unit, row) for unit, row in self.rows(source) if evaluate(condition, row) is True]
            case Derive(source, columns):
                return [(unit, _computed(columns, row)) for unit, row in self.rows(source)]
            case JoinPublic():
                return self._join_public(relation)
            case JoinOwn(left, right, also, keep, most):
                ours, theirs = self.rows(left), _by_unit(self.rows(right))
                nothing = dict.fromkeys(right.shape.schema)
                return [
                    (unit, row)
                    for unit, mine in _by_unit(ours).items()
                    for one in _first(mine, most)
                    for row in _joined(one, _first(theirs.get(unit, []), most), also, keep, nothing)
                ]
            case SemiOwn(source, other, has):
                there = {unit for unit, _ in self.rows(other)}
                return [(unit, row) for unit, row in self.rows(source) if (unit in there) is (has is Has.SOME)]
            case PerUnit():
                return self._per_unit(relation)
            case Union(left, right):
                return self.rows(left) + self.rows(right)

    def _scan(self, scan: Scan) -> list[Owned]:
        owned = []
        for place, row in enumerate(self._tables[scan.table]):
            units = self._units(scan, place, row)
            if len(units) == 1:
                owned.append((units.pop(), {column.name: row[column.name] for column in scan.columns}))
        return owned

    def _units(self, scan: Scan, place: int, row: Row) -> set[Unit]:
        """Return everyone whom a row of a private table belongs to; a row of several is nobody's."""
        match scan.owner:
            case Own(parts):
                unit = tuple(evaluate(part, row) for part in parts)
                return set() if None in unit else {unit}
            case Through(on, parent, key):
                found: set[Unit] = set()
                for above, other in enumerate(self._tables[parent.table]):
                    if row[on] is not None and row[on] == other[key]:
                        found |= self._units(parent, above, other)
                return found
        return {(scan.table, place)}

    def _join_public(self, join: JoinPublic) -> list[Owned]:
        public = defaultdict[Hashable, list[Row]](list)
        for row in self._public(join.table):
            public[_same(row[theirs] for _, theirs in join.equal)].append(row)
        nothing = dict.fromkeys(join.table.schema)
        return [
            (unit, row)
            for unit, one in self.rows(join.source)
            for row in _joined(one, _partners(join, one, public), join.also, join.keep, nothing)
        ]

    def _public(self, table: PublicTable) -> list[Row]:
        rows = [{name: row[column.name] for name, column in table.columns} for row in self._tables[table.table]]
        return [row for row in rows if table.condition is None or evaluate(table.condition, row) is True]

    def _per_unit(self, relation: PerUnit) -> list[Owned]:
        gathered = defaultdict[tuple[Unit, Key], list[Row]](list)
        for unit, row in self.rows(relation.source):
            gathered[unit, tuple(finite(evaluate(expr, row)) for _, expr in relation.keys)].append(row)
        names = [name for name, _ in relation.keys]
        return [
            (unit, dict(zip(names, key, strict=True)) | {name: _fold(folded, rows) for name, folded in relation.values})
            for (unit, key), rows in gathered.items()
        ]


def _type_of(values: list[Value]) -> Type:
    return _TYPES[next((type(value) for value in values if value is not None), str)]


_TYPES: dict[type, Type] = dict(zip((int, float, bool, str, date, datetime), Type, strict=True))


def _computed(columns: Iterable[tuple[str, Expr]], row: Row) -> Row:
    return {name: evaluate(expr, row) for name, expr in columns}


def _same(values: Iterable[Value]) -> Hashable:
    """Return what equal values share; NaN equals itself."""
    return tuple(map(order, values))


def _by_unit(rows: Iterable[Owned]) -> dict[Unit, list[Row]]:
    found = defaultdict[Unit, list[Row]](list)
    for unit, row in rows:
        found[unit].append(row)
    return dict(found)


def _first(rows: Iterable[Row], most: int) -> list[Row]:
    """Return the first so many rows in the order of their values."""
    return sorted(rows, key=lambda row: [order(value) for value in row.values()])[:most]


def _partners(join: JoinPublic, row: Row, public: Mapping[Hashable, list[Row]]) -> list[Row]:
    values = [row[ours] for ours, _ in join.equal]
    return [] if None in values else _first(public.get(_same(values), []), join.fanout)


def _joined(one: Row, others: list[Row], also: Expr | None, keep: Keep, nothing: Row) -> list[Row]:
    pairs = [{**one, **other} for other in others]
    found = [pair for pair in pairs if also is None or evaluate(also, pair) is True]
    return found or ([{**one, **nothing}] if keep is Keep.ALL else [])


def _fold(folded: Folded, rows: list[Row]) -> Value:
    if folded.expr is None:
        return len(rows)
    values = [value for row in rows if (value := finite(evaluate(folded.expr, row))) is not None]
    if folded.grid is not None:
        values = [_steps(value, folded.grid) for value in values]
    return _FOLDS[folded.fold](values)


def _sum(values: list[int]) -> int | None:
    total = sum(values)
    return total if values and -(1 << 63) <= total < 1 << 63 else None


_FOLDS: dict[Fold, Callable[[list[Any]], Value]] = {
    Fold.COUNT: len,
    Fold.DISTINCT: lambda values: len(set(values)),
    Fold.LEAST: lambda values: min(values, default=None),
    Fold.GREATEST: lambda values: max(values, default=None),
    Fold.SUM: _sum,
    Fold.STEPS: _sum,
}


def _steps(value: Any, grid: Grid) -> int:
    return grid.index(float(value)) - grid.offset


def _spread(groups: Groups) -> dict[Unit, int]:
    """Return in how many groups each unit is."""
    spread = defaultdict[Unit, int](int)
    for units in groups.values():
        for unit in units:
            spread[unit] += 1
    return spread


def _touched(question: Question, total: Touched, groups: Groups, spread: Mapping[Unit, int]) -> int:
    """Return how many units have more groups, or rows in one of them, than the limit."""
    found = {unit for unit, number in spread.items() if number > question.limit.groups and question.scaled}
    if total.rows:
        found |= {unit for units in groups.values() for unit, rows in units.items() if len(rows) > question.rows}
    return len(found)


def _groups(question: Question, rows: list[Owned]) -> Groups:
    """Return the rows of each unit in each group; groups that are not listed do not count."""
    found: Groups = {}
    listed = set(product(*question.groups.domains)) if isinstance(question.groups, Public) else None
    for unit, row in rows:
        key = tuple(finite(evaluate(expr, row)) for _, expr in question.by)
        if listed is None or key in listed:
            found.setdefault(key, {}).setdefault(unit, []).append(row)
    return found


def _terms(question: Question, rows: list[Row], groups: int) -> list[int]:
    """Return what a unit adds to each total in one group, being in so many groups; what is not a sum comes later."""
    terms = []
    for place, total in enumerate(question.totals):
        if not isinstance(total, Count | Units | Sum):
            terms.append(0)
            continue
        values = _values(total, rows)
        if not question.bounded:
            terms.append(sum(values))
            continue
        term = _bounded_by_rows(question, total, values)
        if groups > question.limit.groups:
            no_say = isinstance(question.groups, Discover) and place == 0 and groups > question.groups.most
            weight = 0 if no_say else (question.limit.groups << WEIGHT_BITS) // groups
            term = _towards_zero(term * weight, 1 << WEIGHT_BITS)
        terms.append(term)
    return terms


def _values(total: Total, rows: list[Row]) -> list[int]:
    """Return what each row adds, of those where the expression is not NULL."""
    if total.expr is None:
        return [1] * len(rows)
    values = [value for row in rows if (value := finite(evaluate(total.expr, row))) is not None]
    if not isinstance(total, Sum):
        return [1] * len(values)
    return [_steps(value, total.grid) ** total.power - total.shift for value in values]


def _bounded_by_rows(question: Question, total: Total, values: list[int]) -> int:
    """Return a unit's term in one group: more rows than the limit weigh as much as so many."""
    fine = 1 << question.bits(total)
    if isinstance(total, Units):
        return fine if values else 0
    if len(values) > question.rows:
        return _towards_zero(sum(values) * fine * question.rows, len(values))
    return sum(values) * fine


def _towards_zero(above: int, below: int) -> int:
    return above // below if above >= 0 else -(-above // below)
