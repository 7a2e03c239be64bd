"""A SELECT without aggregates, over private rows or one public table.

ROW_NUMBER() OVER (PARTITION BY unit ORDER BY …), in SELECT or QUALIFY, numbers the rows of each unit. The number is a
column like any other. Where conditions limit it, only as many rows of a unit are kept, which bounds the unit's
contribution: `WHERE n = 1` leaves one row.
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
    PublicTable,
    Relation,
    SemiJoinOnUnit,
    Where,
)
from discreet.query.aggregation.group_keys import has_null_group, key_domain
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.relations.bound_sources import (
    ColumnInfo,
    PrivateSource,
    PublicSource,
    View,
    bind_stored,
    find_column,
    unused_name,
)
from discreet.query.relations.ownership import (
    determines_unit,
    is_constant_per_unit,
    is_unique,
    never_null,
    parent_keys_of,
    stays_in_range,
    unit_key_index,
    unit_key_names,
)
from discreet.query.relations.predicates import bind_condition, conjunction, conjuncts, filter_rows, narrow_ranges
from discreet.query.syntax.resolved_query import (
    Reference,
    ResolvedQuery,
    ResolvedSelect,
    SelectItem,
    computed_column,
    rewrite,
)
from discreet.query.syntax.syntax_tree import (
    WINDOW_HINT,
    build_or_refuse,
    check_row_wise,
    first_aggregate,
    first_window,
    refuse,
    surplus_arguments,
)

_REFUSED_CLAUSES = {
    "order": ("ORDER BY", "private rows cannot be ordered", "Put ORDER BY after the aggregate."),
    "limit": (
        "LIMIT",
        "LIMIT is not allowed on private rows",
        "Put it after the aggregate, or filter with WHERE.",
    ),
    "offset": ("OFFSET", "OFFSET is not allowed on private rows", "Put it after the aggregate."),
    "qualify": ("QUALIFY", "window functions are not allowed on private rows", WINDOW_HINT),
    "windows": ("WINDOW", "window functions are not allowed on private rows", WINDOW_HINT),
}


def check_row_clauses(query: ResolvedQuery, allowed: Sequence[str] = ()) -> None:
    """Refuse clauses that select or order private rows, except those that are allowed."""
    for name, (clause, cause, hint) in _REFUSED_CLAUSES.items():
        if (given := query.node.args.get(name)) and name not in allowed:
            raise refuse(given[0] if isinstance(given, list) else given, clause, cause, hint)


def project(items: Sequence[SelectItem], rows: PrivateSource) -> PrivateSource:
    """Return the rows with the columns of a SELECT list; a Derive node is added only if some are computed."""
    columns, bounds, infos, names = rows.columns_by_name(), [], [], list[str]()
    for item in items:
        check_row_wise(item.node, "SELECT")
        bounds.append(bind_stored(item.node, rows.views, "SELECT"))
        names.append(unused_name(item.name, names))
    for item, bound, name in zip(items, bounds, names, strict=True):
        plain = columns[bound.expr.name] if isinstance(bound.expr, Column) else None
        infos.append(replace(plain, name=item.name) if plain else computed_info(item.name, name, bound, columns))
    if all(isinstance(bound.expr, Column) for bound in bounds):
        return PrivateSource(rows.relation, (View(None, None, tuple(infos)),))
    derived = tuple((name, bound.expr) for name, bound in zip(names, bounds, strict=True))
    relation = build_or_refuse(lambda: Derive(rows.relation, derived), items[0].node, "SELECT")
    view = tuple(info.with_column_name(name) for info, name in zip(infos, names, strict=True))
    return PrivateSource(relation, (View(None, None, view),))


def computed_info(name: str, inner_name: str, bound: BoundExpr, columns: dict[str, ColumnInfo]) -> ColumnInfo:
    """Return a column of the relation that holds an expression, with what follows from the expression's columns."""
    expr = bound.expr
    column_bound = replace(
        bound, expr=Column(inner_name, bound.type), domain=None, unit_key_index=unit_key_index(expr, columns)
    )
    return ColumnInfo(
        name,
        column_bound,
        values=lambda: key_domain(expr, columns),
        null_is_group=has_null_group(expr, columns),
        parent_keys=parent_keys_of(expr, columns),
        never_null=never_null(expr, columns),
        in_range=stays_in_range(expr, columns),
        constant_per_unit=is_constant_per_unit(expr, columns),
        unique=is_unique(expr, columns),
    )


def select_public(select: ResolvedSelect, public: PublicSource) -> PublicSource:
    """Bind a SELECT without aggregates over a public table."""
    surplus = surplus_arguments(select.node, "expressions from_ where with_")
    if surplus or any(first_aggregate(item.node) is not None for item in select.items):
        cause = "this query reads only public tables, where only columns and WHERE are supported"
        raise refuse(
            select.node,
            "SELECT",
            cause,
            "Query it alone, which is free, or join it with a private table.",
        )
    columns = []
    for each in select.items:
        bare = each.node.unnest()
        if not isinstance(bare, exp.Column):
            hint = "Compute it in the outer query, where the tables are joined."
            raise refuse(each.node, "SELECT", "a subquery on a public table can only select columns", hint)
        columns.append(replace(find_column((public.view,), bare, "SELECT"), name=each.name))
    conditions = conjuncts(select.where)
    predicate = conjunction([bind_condition(node, (public.view,), "WHERE") for node in conditions])
    earlier = public.table.condition
    predicate = conjunction([each for each in (earlier, predicate) if each is not None])
    table = PublicTable(public.table.table, public.table.columns, predicate)
    view = View(None, None, tuple(columns))
    return PublicSource(table, view if predicate is None else narrow_ranges((view,), predicate)[0])


_MAX_LAST = 1_000_000  # a larger limit bounds no contribution
Order = tuple[tuple[Expr, bool], ...]  # expressions, and whether they are descending


def project_numbered(select: ResolvedSelect, rows: PrivateSource) -> PrivateSource:
    """Return the rows of a SELECT without aggregates, in which ROW_NUMBER() may number the rows of each unit."""
    numbering = _Numbering(rows)
    output = [replace(item, node=numbering.rewrite(item.node, "SELECT")) for item in select.items]
    if select.qualify is not None and first_window(select.qualify) is None:
        raise refuse(select.qualify, "QUALIFY", "QUALIFY needs a window function", "Use WHERE.")
    conditions = [numbering.rewrite(node, "QUALIFY") for node in conjuncts(select.qualify)]
    return project(output, limit_row_numbers(filter_rows(numbering.rows, conditions, "QUALIFY")))


def limit_row_numbers(rows: PrivateSource) -> PrivateSource:
    """Return the same rows, of which no more are numbered than their conditions let through."""
    ends = ((info.column.name, info.bound.high) for info in rows.columns)
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
        case NumberRows(_, name, _, _, last) if name in limits:  # rows below it count in other numbers, too
            return replace(relation, last=min(limits[name], last or _MAX_LAST))
    return relation


class _Numbering:
    """Adds a column for each ROW_NUMBER() of a SELECT."""

    def __init__(self, rows: PrivateSource) -> None:
        self.rows = rows
        self._source = rows
        self._names: dict[tuple[tuple[Expr, ...], Order], str] = {}

    def rewrite(self, node: exp.Expr, clause: str) -> exp.Expr:
        """Return an expression with a column in place of each ROW_NUMBER()."""

        def replacement(part: exp.Expr) -> exp.Expr | None:
            if not isinstance(part, exp.Window) or not isinstance(part.this, exp.RowNumber):
                return None
            name = self._add_number(part, clause)
            return computed_column(name, Reference(name, 0), part)

        return rewrite(node, replacement)

    def _add_number(self, window: exp.Window, clause: str) -> str:
        """Return the name of a number, which is that of its source, too."""
        if surplus_arguments(window, "this partition_by order over"):
            cause = "ROW_NUMBER() takes PARTITION BY and ORDER BY only"
            raise refuse(window, clause, cause, "Leave out everything else.")
        keys = _partition_keys(window, self._source, clause)
        order = _order_of(window, self._source, clause)
        if (keys, order) not in self._names:
            relation = self.rows.relation
            name = unused_name("row_number", relation.shape.schema)
            numbered = build_or_refuse(lambda: self._numbered(name, keys, order), window, clause)
            info = ColumnInfo(name, BoundExpr(Column(name, Type.INTEGER), Fraction(1)), never_null=True)
            self.rows = PrivateSource(numbered, (*self.rows.views, View(name, None, (info,))))
            self._names[keys, order] = name
        return self._names[keys, order]

    def _numbered(self, name: str, keys: tuple[Expr, ...], order: Order) -> Relation:
        schema = self.rows.relation.shape.schema  # with earlier numbers
        return NumberRows(self.rows.relation, name, keys, complete_order(order, schema))


def _partition_keys(window: exp.Window, rows: PrivateSource, clause: str) -> tuple[Expr, ...]:
    """Return the keys of PARTITION BY beyond the unit, which must be among them."""
    nodes = window.args.get("partition_by") or ()
    exprs = [bind_stored(node, rows.views, clause).expr for node in nodes]
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
        expr = bind_stored(node.this, rows.views, clause).expr
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
