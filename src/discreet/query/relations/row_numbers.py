"""The first or last rows of each unit: ROW_NUMBER() OVER (PARTITION BY unit ORDER BY …), in SELECT or QUALIFY.

The number of a row is a column like any other. Where conditions limit it, only as many rows of a unit are kept, which
bounds the unit's contribution: `WHERE n = 1` leaves one row.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from discreet.kernel.expr import Call, Column, Constant, Expr, Schema, Type
from discreet.kernel.relation import (
    Derive,
    JoinOnUnit,
    JoinPublic,
    NumberRows,
    Relation,
    SemiJoinOnUnit,
    Where,
)
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.relations.ownership import determines_unit, never_null, unit_key_index, unit_key_names
from discreet.query.relations.predicates import conjuncts, filter_rows
from discreet.query.relations.projection import check_row_clauses, project
from discreet.query.relations.scope import (
    ColumnInfo,
    PrivateSource,
    View,
    bind_value,
    has_column,
    same_name,
    stored_lookup,
    unused_name,
)
from discreet.query.relations.select_list import SelectItem
from discreet.query.syntax.source_position import build_or_refuse, refuse
from discreet.query.syntax.syntax_tree import WINDOW_HINT, first_window

_ALIAS = "row numbers"  # the internal source of the number columns, while the SELECT list is bound
_MAX_LAST = 1_000_000  # a larger limit bounds no contribution
Order = tuple[tuple[Expr, bool], ...]  # expressions, and whether they are descending


def project_numbered(select: exp.Select, items: Sequence[SelectItem], rows: PrivateSource) -> PrivateSource:
    """Return the rows of a SELECT without aggregates, in which ROW_NUMBER() may number the rows of each unit."""
    check_row_clauses(select, allowed="qualify")
    qualify = select.args.get("qualify")
    numbering = _Numbering(rows)
    output = [replace(item, node=numbering.rewrite(item.node, "SELECT")) for item in items]
    conditions = [_expand_aliases(node, items, rows) for node in conjuncts(qualify and qualify.this)]
    if conditions and all(first_window(node) is None for node in conditions):
        raise refuse(qualify, "QUALIFY", "QUALIFY needs a window function", "Use WHERE.")
    conditions = [numbering.rewrite(node, "QUALIFY") for node in conditions]
    return project(output, limit_row_numbers(filter_rows(numbering.rows, conditions, "QUALIFY")))


def limit_row_numbers(rows: PrivateSource) -> PrivateSource:
    """Return the same rows, of which no more are numbered than their conditions let through."""
    ends = ((info.column.name, info.upper or info.bound.high) for view in rows.views for info in view.columns)
    limits = {name: int(end) for name, end in ends if isinstance(end, Fraction) and 1 <= end <= _MAX_LAST}
    return PrivateSource(_limit_numbers(rows.relation, limits), rows.views)


def _limit_numbers(relation: Relation, limits: Mapping[str, int]) -> Relation:
    """Return a relation in which columns that are row numbers end at their limits; `limits` may have other columns."""
    match relation:
        case Where(source) | SemiJoinOnUnit(source) | JoinPublic(source):
            return replace(relation, source=_limit_numbers(source, limits))
        case Derive(source, columns):
            inner = {expr.name: limits[name] for name, expr in columns if isinstance(expr, Column) and name in limits}
            return replace(relation, source=_limit_numbers(source, inner))
        case JoinOnUnit(left, right):
            return replace(relation, left=_limit_numbers(left, limits), right=_limit_numbers(right, limits))
        case NumberRows(source, name, _, _, last) if name in limits:
            inner = {other: limit for other, limit in limits.items() if other != name}
            limited = min(limits[name], last or _MAX_LAST)
            return replace(relation, source=_limit_numbers(source, inner), last=limited)
        case NumberRows(source):
            return replace(relation, source=_limit_numbers(source, limits))
    return relation


class _Numbering:
    """Adds a column for each ROW_NUMBER() of a SELECT."""

    def __init__(self, rows: PrivateSource) -> None:
        self.rows = rows
        self._source = rows
        self._names: dict[tuple[tuple[Expr, ...], Order], str] = {}

    def rewrite(self, node: exp.Expr, clause: str) -> exp.Expr:
        """Return an expression with a column in place of each ROW_NUMBER()."""

        def replace_part(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Window) or not isinstance(part.this, exp.RowNumber):
                return part
            column = _number_column(self._add_number(part, clause))
            column.meta.update(part.meta)
            return column

        return node if first_window(node) is None else node.transform(replace_part)

    def _add_number(self, window: exp.Window, clause: str) -> str:
        surplus = [name for name, given in window.args.items() if given and name not in _WINDOW_ARGUMENTS]
        if surplus:
            cause = "ROW_NUMBER() takes PARTITION BY and ORDER BY, written after OVER"
            raise refuse(window, clause, cause, "Leave out everything else.")
        keys = _partition_keys(window, self._source, clause)
        order = _order_of(window, self._source, clause)
        if (keys, order) not in self._names:
            relation = self.rows.relation
            name = unused_name("row_number", relation.shape.schema)
            numbered = build_or_refuse(lambda: NumberRows(relation, name, keys, order), window, clause)
            bound = BoundExpr(Column(name, Type.INTEGER))
            info = ColumnInfo(name, bound, never_null=True, lower=Fraction(1))
            self.rows = PrivateSource(numbered, (*self.rows.views, View(_ALIAS, (info,))))
            self._names[keys, order] = name
        return self._names[keys, order]


_WINDOW_ARGUMENTS = ("this", "partition_by", "order", "over")


def _number_column(name: str) -> exp.Column:
    return exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(_ALIAS, quoted=True))


def _partition_keys(window: exp.Window, rows: PrivateSource, clause: str) -> tuple[Expr, ...]:
    """Return the keys of PARTITION BY beyond the unit, which must be among them."""
    nodes = window.args.get("partition_by") or ()
    exprs = [bind_value(node, stored_lookup(rows.views, clause), clause).expr for node in nodes]
    if not determines_unit(exprs, rows):
        names = unit_key_names(rows)
        cause = "rows can only be numbered within a privacy unit, so PARTITION BY must name it"
        if rows.relation.shape.unit is None:
            cause = "rows cannot be numbered, because every row is its own unit"
        raise refuse(window, clause, cause, f"Add PARTITION BY {', '.join(names)}." if names else WINDOW_HINT)
    columns = rows.columns_by_name()
    return tuple(expr for expr in exprs if unit_key_index(expr, columns) is None and not isinstance(expr, Constant))


def _order_of(window: exp.Window, rows: PrivateSource, clause: str) -> Order:
    order: list[tuple[Expr, bool]] = []
    for node in window.args["order"].expressions if window.args.get("order") else ():
        expr = bind_value(node.this, stored_lookup(rows.views, clause), clause).expr
        if node.args.get("nulls_first") and not never_null(expr, rows.columns_by_name()):
            order.append((Call("is_null", (expr,)), True))
        order.append((expr, bool(node.args.get("desc"))))
    return complete_order(order, rows.relation.shape.schema)


def complete_order(order: Iterable[tuple[Expr, bool]], schema: Schema) -> Order:
    """Return an order that all columns complete: rows that tie are equal, so the engine cannot choose among them."""
    directions: dict[Expr, bool] = {}
    for expr, descending in (*order, *((Column(name, kind), False) for name, kind in schema.items())):
        directions.setdefault(expr, descending)
    return tuple(directions.items())


def _expand_aliases(node: exp.Expr, items: Sequence[SelectItem], rows: PrivateSource) -> exp.Expr:
    """Return a condition of QUALIFY in which names of the SELECT list stand for their expressions."""

    def expand(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or part.table or has_column(rows.views, part):
            return part
        return next((item.node.copy() for item in items if item.is_named and same_name(part.this, item.name)), part)

    return node.transform(expand)
