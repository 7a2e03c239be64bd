"""The canonical form of a question, which does not depend on order and aliases.

Cached answers are found by the fingerprint of the question, so two queries share an answer if their questions are
equal. Keys, totals, derived columns and the operands of commutative operations are sorted, and computed columns are
renamed. The analyst's column names and row order are in `PlannedRelease.keys` and `PlannedRelease.key_order`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.estimate.planned_release import Measure, PlannedRelease, with_indices
from discreet.kernel.expr import TEXT_SCANS, Call, Column, Constant, Expr, NamedExprs
from discreet.kernel.question import PublicGroups, Question, SelectedGroups
from discreet.kernel.relation import (
    Derive,
    JoinOnUnit,
    JoinPublic,
    NumberRows,
    PerUnit,
    PublicTable,
    Relation,
    Scan,
    SemiJoinOnUnit,
    Union,
    Where,
)
from discreet.kernel.release import REFINABLE
from discreet.kernel.totals import Count, CountDistinct, CountUnits, HistogramTree, Sum, Total
from discreet.query.relations.bound_sources import rename_columns, unused_name, with_args

ColumnNames = Mapping[str, str]  # from the columns of a relation to their canonical names
_COMMUTATIVE = ("equal", "add", "multiply", "least", "greatest")  # operands may be reordered
_ASSOCIATIVE = ("and", "or")  # operands may also be regrouped
# An order that does not depend on what the classes are called: engine SQL and fingerprints follow from it.
_TOTAL_ORDER = (HistogramTree, Count, Sum, CountUnits, CountDistinct)


def canonical_release(release: PlannedRelease) -> PlannedRelease:
    """Return a release with its question in canonical form; unchanged if that would be too large."""
    try:
        return _canonicalise(release)
    except ValueError:  # merged conditions may exceed the kernel's limits
        return release


def _canonicalise(release: PlannedRelease) -> PlannedRelease:
    question = release.question
    tables = question.relation.shape.tables
    stored_names = [column.name for table in tables if isinstance(table, Scan) for column in table.columns]
    relation, names = _Renamer(stored_names).relation(question.relation, ())
    keys = [_canonical_expr(expr, names) for _, expr in question.by]
    order = sorted(range(len(keys)), key=lambda index: _sort_key(keys[index]))
    groups = question.groups
    if isinstance(groups, PublicGroups):
        groups = PublicGroups(tuple(groups.domains[place] for place in order))
    totals, weights, indices = _canonical_totals(release, names)
    by = tuple((f"k{place}", keys[old_index]) for place, old_index in enumerate(order))
    return replace(
        release,
        question=Question(relation, by, groups, question.bounds, totals),
        keys=tuple(release.keys[place] for place in order),
        key_order=tuple(order.index(place) for place in range(len(order))),
        measures=tuple(
            Measure(measure.name, measure.label, with_indices(measure.estimator, indices))
            for measure in release.measures
        ),
        weights=weights,
    )


def _canonical_totals(
    release: PlannedRelease, names: ColumnNames
) -> tuple[tuple[Total, ...], tuple[Fraction, ...], list[int]]:
    """Return the distinct totals, their weights, and the new index of each total.

    Totals with independent noise are cached one by one, so their order matters only next to a histogram tree. The
    first total stays first if it selects partitions.
    """
    totals = [_canonical_total(total, names) for total in release.question.totals]
    first = 1 if isinstance(release.question.groups, SelectedGroups) else 0
    sortable = totals[first:]
    if not all(isinstance(total, REFINABLE) for total in totals):
        sortable.sort(key=lambda total: (_TOTAL_ORDER.index(type(total)), repr(total)))
    distinct = list(dict.fromkeys([*totals[:first], *sortable]))
    indices = [distinct.index(total) for total in totals]
    weights = [Fraction(0)] * len(distinct)
    for index, weight in zip(indices, release.weights, strict=False):
        weights[index] += weight
    return tuple(distinct), tuple(weights), indices


def _canonical_total(total: Total, names: ColumnNames) -> Total:
    return total if total.expr is None else replace(total, expr=_canonical_expr(total.expr, names))


def _canonical_expr(expr: Expr, names: ColumnNames) -> Expr:
    return _sort_operands(rename_columns(expr, names))


def _sort_operands(expr: Expr) -> Expr:
    if not isinstance(expr, Call):
        return expr
    args = tuple(map(_sort_operands, expr.args))
    if expr.op in _ASSOCIATIVE:
        operands = (
            operand for arg in args for operand in (arg.args if isinstance(arg, Call) and arg.op == expr.op else (arg,))
        )
        args = _sort_exprs(set(operands))
        return args[0] if len(args) == 1 else Call(expr.op, args)
    if expr.op in _COMMUTATIVE:
        args = _sort_exprs(args)
    elif expr.op == "one_of":
        args = (args[0], *_sort_exprs(set(args[1:])))
    return with_args(expr, args)


def _sort_exprs(exprs: Iterable[Expr]) -> tuple[Expr, ...]:
    return tuple(sorted(exprs, key=_sort_key))


def _sort_key(expr: Expr) -> tuple[bool, int, str]:
    """Return a key that sorts cheap expressions first and constants last."""
    return isinstance(expr, Constant), _cost(expr), repr(expr)


def _cost(expr: Expr) -> int:
    """Return the number of operations; one that reads a whole text counts as a hundred."""
    if not isinstance(expr, Call):
        return 1
    return (100 if expr.op in TEXT_SCANS else 1) + sum(map(_cost, expr.args))


class _Renamer:
    """Renames the columns of a relation independently of aliases; `stored_names` are the columns of the tables."""

    def __init__(self, stored_names: Collection[str]) -> None:
        self._stored_names = stored_names

    def relation(self, relation: Relation, taken: Collection[str]) -> tuple[Relation, ColumnNames]:
        """Return a relation in canonical form, and the new names of its columns, none of which is in `taken`."""
        rules: dict[type, Callable[[Any, Collection[str]], tuple[Relation, ColumnNames]]] = {
            Scan: self._scan,
            **dict.fromkeys((Where, SemiJoinOnUnit), self._filter),
            Derive: self._derive,
            PerUnit: self._per_unit,
            NumberRows: self._number_rows,
            JoinPublic: self._join_public,
            JoinOnUnit: self._join_own,
            Union: self._union,
        }
        return rules[type(relation)](relation, taken)

    def _scan(self, relation: Relation, taken: Collection[str]) -> tuple[Relation, ColumnNames]:
        schema = relation.shape.schema
        used = {name.lower() for name in taken}
        if not any(name.lower() in used for name in schema):
            return relation, {name: name for name in schema}
        names: dict[str, str] = {}
        for name in schema:
            names[name] = unused_name(name, [*taken, *names.values()])
        return Derive(relation, tuple((names[name], Column(name, kind)) for name, kind in schema.items())), names

    def _filter(self, relation: Where | SemiJoinOnUnit, taken: Collection[str]) -> tuple[Relation, ColumnNames]:
        """Merge all conditions into one above the semi-joins; they commute."""
        source: Relation = relation
        conditions: list[Expr] = []
        others = []
        while isinstance(source, Where | SemiJoinOnUnit):
            if isinstance(source, Where):
                conditions.append(source.condition)
            else:
                others.append((self.relation(source.other, ())[0], source.kind))
            source = source.source
        filtered, names = self.relation(source, taken)
        for other, has in sorted(set(others), key=repr):
            filtered = SemiJoinOnUnit(filtered, other, has)
        if conditions:
            condition = conditions[0] if len(conditions) == 1 else Call("and", tuple(conditions))
            filtered = Where(filtered, _canonical_expr(condition, names))
        return filtered, names

    def _derive(self, relation: Derive, taken: Collection[str]) -> tuple[Relation, ColumnNames]:
        source, inner = self.relation(relation.source, ())
        exprs = {name: _canonical_expr(expr, inner) for name, expr in relation.columns}
        columns = self._name_exprs(exprs.values(), taken)
        return Derive(source, _as_named(columns)), {name: columns[expr] for name, expr in exprs.items()}

    def _name_exprs(self, exprs: Iterable[Expr], taken: Collection[str]) -> dict[Expr, str]:
        """Return a name for each distinct expression; a column keeps its name if it is free."""
        names: dict[Expr, str] = {}
        for expr in _sort_exprs(set(exprs)):
            # A column clamped to its declared range keeps the column's name.
            bare = expr.args[0] if isinstance(expr, Call) and expr.op == "inside" else expr
            used = [*taken, *names.values()]
            own_name = bare.name if isinstance(bare, Column) else None
            names[expr] = unused_name(own_name, used) if own_name else self._unused_name("c", used)
        return names

    def _unused_name(self, prefix: str, used: Collection[str]) -> str:
        in_use = {name.lower() for name in (*used, *self._stored_names)}
        return next(name for number in range(len(in_use) + 1) if (name := f"{prefix}{number}") not in in_use)

    def _per_unit(self, relation: PerUnit, taken: Collection[str]) -> tuple[Relation, ColumnNames]:
        source, inner = self.relation(relation.source, ())
        keys = {name: _canonical_expr(expr, inner) for name, expr in relation.keys}
        values = {
            name: folded if folded.expr is None else replace(folded, expr=_canonical_expr(folded.expr, inner))
            for name, folded in relation.values
        }
        used = list(taken)
        by = {expr: self._reserve_name("k", used) for expr in _sort_exprs(set(keys.values()))}
        folds = {
            folded: self._reserve_name("f", used)
            for folded in sorted(set(values.values()), key=lambda each: (each.function.value, repr(each)))
        }
        renamed_relation = PerUnit(source, _as_named(by), tuple((name, folded) for folded, name in folds.items()))
        return renamed_relation, {name: by[expr] for name, expr in keys.items()} | {
            name: folds[folded] for name, folded in values.items()
        }

    def _number_rows(self, relation: NumberRows, taken: Collection[str]) -> tuple[Relation, ColumnNames]:
        source, inner = self.relation(relation.source, taken)
        name = self._unused_name("n", [*taken, *source.shape.schema])
        keys = _sort_exprs({_canonical_expr(key, inner) for key in relation.keys})
        order = tuple((_canonical_expr(expr, inner), descending) for expr, descending in relation.order)
        return NumberRows(source, name, keys, order, relation.last), {**inner, relation.name: name}

    def _reserve_name(self, prefix: str, used: list[str]) -> str:
        used.append(self._unused_name(prefix, used))
        return used[-1]

    def _join_public(self, relation: JoinPublic, taken: Collection[str]) -> tuple[Relation, ColumnNames]:
        source, ours = self.relation(relation.source, taken)
        used = [*taken, *source.shape.schema]
        theirs: dict[str, str] = {}
        for name, column in relation.table.columns:  # in declared order
            theirs[name] = unused_name(column.name, used)
            used.append(theirs[name])
        table = relation.table
        condition = None if table.condition is None else _canonical_expr(table.condition, theirs)
        columns = tuple((theirs[name], column) for name, column in table.columns)
        names = {**ours, **theirs}
        also = None if relation.condition is None else _canonical_expr(relation.condition, names)
        equal = tuple(sorted({(ours[left], theirs[right]) for left, right in relation.equal}))
        public = PublicTable(table.table, columns, condition)
        return JoinPublic(source, public, equal, also, relation.kind, relation.fanout), names

    def _join_own(self, relation: JoinOnUnit, taken: Collection[str]) -> tuple[Relation, ColumnNames]:
        left, ours = self.relation(relation.left, taken)
        right, theirs = self.relation(relation.right, [*taken, *left.shape.schema])
        names = {**ours, **theirs}
        also = None if relation.condition is None else _canonical_expr(relation.condition, names)
        return JoinOnUnit(left, right, also, relation.kind, relation.max_rows_per_unit), names

    def _union(self, relation: Union, taken: Collection[str]) -> tuple[Relation, ColumnNames]:
        """Give the columns of both sides the same names, ordered by their expressions."""
        sides = [self._union_side(side) for side in (relation.left, relation.right)]
        order = sorted(relation.left.shape.schema, key=lambda name: [_sort_key(columns[name]) for _, columns in sides])
        used = list(taken)
        names = {name: self._reserve_name("c", used) for name in order}
        left, right = (
            Derive(source, tuple((names[name], columns[name]) for name in names)) for source, columns in sides
        )
        return Union(left, right), names

    def _union_side(self, side: Relation) -> tuple[Relation, dict[str, Expr]]:
        if isinstance(side, Derive):
            source, inner = self.relation(side.source, ())
            return source, {name: _canonical_expr(expr, inner) for name, expr in side.columns}
        source, names = self.relation(side, ())
        return source, {name: Column(names[name], kind) for name, kind in side.shape.schema.items()}


def _as_named(named: Mapping[Expr, str]) -> NamedExprs:
    return tuple((name, expr) for expr, name in named.items())
