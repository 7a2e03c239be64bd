"""The sources of a query (private rows, a public table or released tables), what is known of their columns, and the
public information that they are bound against.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import is_
from typing import Protocol

from sqlglot import exp

from discreet.estimate.contribution_histogram import ChosenBounds
from discreet.kernel.expr import Call, Column, Constant, Expr, Type, Value
from discreet.kernel.relation import Derive, PublicTable, Relation
from discreet.policy import DeclaredTable, Policy
from discreet.policy.declarations import Bound, Window
from discreet.query.expressions.binder import bind_expr
from discreet.query.expressions.bound_expr import BoundExpr, RangeEnd
from discreet.query.expressions.operands import DeclaredLists
from discreet.query.syntax.resolved_query import ResolvedQuery, columns_in, reference_of
from discreet.query.syntax.syntax_tree import refuse

ValuesLookup = Callable[[], tuple[Value, ...] | None]
RangeLookup = Callable[[], BoundExpr]


def no_values() -> None:
    """Return None: no values are listed."""


@dataclass(frozen=True)
class ColumnInfo:
    """A column that a query can name, with public facts about it; its expression is a column of the relation.

    `values` and `find_range` look up its public domain, and the range of a public table's column, when needed.
    `parent_keys` are keys of parent tables that determine the row's owner; `window` is set for the time column of the
    unit. `never_null`: no row is NULL; `null_is_group`: NULL forms a group; `in_range`: no value is outside the range;
    `constant_per_unit`: equal in all rows of a unit; `unique`: each value belongs to one row or unit.
    `declared_values` are the values that the policy lists, regardless of conditions.
    """

    name: str
    bound: BoundExpr
    values: ValuesLookup = field(default=no_values, compare=False)
    find_range: RangeLookup | None = field(default=None, compare=False)
    null_is_group: bool = False
    parent_keys: frozenset[tuple[str, str]] = frozenset()
    window: Window | None = None
    never_null: bool = False
    in_range: bool = False
    constant_per_unit: bool = False
    declared_values: Mapping[Value, None] | None = field(default=None, compare=False)
    unique: bool = False

    @property
    def column(self) -> Column:
        """The column of the relation."""
        assert isinstance(self.bound.expr, Column)
        return self.bound.expr

    def with_column_name(self, name: str) -> "ColumnInfo":
        """Return the same column under another name in the relation."""
        column = Column(name, self.column.type)
        find_range = self.find_range
        find_moved_range = None if find_range is None else lambda: replace(find_range(), expr=column)
        return replace(self, bound=replace(self.bound, expr=column), find_range=find_moved_range)


@dataclass(frozen=True)
class View:
    """The columns of one source of FROM, with its unique name and its name in the query."""

    ref: str | None
    alias: str | None
    columns: tuple[ColumnInfo, ...]


@dataclass(frozen=True)
class PrivateSource:
    """Private rows, each owned by one unit."""

    relation: Relation
    views: tuple[View, ...]

    @property
    def columns(self) -> tuple[ColumnInfo, ...]:
        """All columns."""
        return tuple(info for view in self.views for info in view.columns)

    def columns_by_name(self) -> dict[str, ColumnInfo]:
        """Return the columns by their names in the relation."""
        return {info.column.name: info for view in self.views for info in view.columns}


@dataclass(frozen=True)
class PublicSource:
    """The rows of a public table."""

    table: PublicTable
    view: View


@dataclass(frozen=True)
class ReleasedSource:
    """A query over released tables only."""

    query: ResolvedQuery


BoundSource = PrivateSource | PublicSource | ReleasedSource


class PublicTables(Protocol):
    """Access to public tables, read only when a query needs them."""

    def columns(self, table: str) -> Mapping[str, Type]:
        """Return the columns of a public table."""

    def values(self, table: str, column: str) -> list[Value]:
        """Return the distinct values of a column, sorted."""

    def fanout(self, table: str, columns: tuple[str, ...]) -> int:
        """Return the maximum number of rows with equal values in these columns; without columns, the number of rows."""


def find_column(views: Iterable[View], node: exp.Column, clause: str) -> ColumnInfo:
    """Return the column that a name refers to; Refused if it belongs to a query around this one."""
    reference = reference_of(node)
    for view in views:
        if view.ref == reference.source:
            return view.columns[reference.index]
    cause = "a subquery on private rows cannot refer to the outer query"
    raise refuse(node, clause, cause, "Write it as a JOIN, or as unit IN (SELECT unit FROM …).")


def reads_only(node: exp.Expr, views: Iterable[View]) -> bool:
    """Return whether all columns of an expression belong to these views."""
    refs = {view.ref for view in views}
    return all(reference_of(column).source in refs for column in columns_in(node))


def bind_stored(node: exp.Expr, views: Sequence[View], clause: str) -> BoundExpr:
    """Bind an expression on the stored values of single rows."""
    return bind_expr(node, lambda column: find_column(views, column, clause).bound, clause, _declared_lists(views))


def bind_clamped(node: exp.Expr, views: Sequence[View], clause: str) -> BoundExpr:
    """Bind an expression on values that are clamped to their public ranges, for aggregates."""

    def look_up(column: exp.Column) -> BoundExpr:
        info = find_column(views, column, clause)
        bound = info.bound if info.find_range is None or info.bound.has_range else info.find_range()
        return bound if info.in_range or info.bound.unit_key_index is not None else clamp_to_range(bound)

    return bind_expr(node, look_up, clause, _declared_lists(views))


def _declared_lists(views: Iterable[View]) -> DeclaredLists:
    return {
        info.column.name: info.declared_values
        for view in views
        for info in view.columns
        if info.declared_values is not None
    }


def clamp_to_range(bound: BoundExpr) -> BoundExpr:
    """Return an expression clamped to its range, if it has one."""
    if bound.low is None or bound.high is None:
        return bound
    ends = (Constant(_constant_value(end, bound.type), bound.type) for end in (bound.low, bound.high))
    return replace(bound, expr=Call("clip", (bound.expr, *ends)))


def _constant_value(end: RangeEnd, kind: Type) -> Value:
    if isinstance(end, Fraction):
        return float(end) if kind is Type.REAL else int(end)
    return end


def without_clip(expr: Expr) -> Expr:
    """Return a bare column without its clamp, because the aggregate clamps it anyway."""
    if isinstance(expr, Call) and expr.op == "clip" and isinstance(expr.args[0], Column):
        return expr.args[0]
    return expr


_MAX_NAME_LENGTH = 150


def unused_name(name: str, taken: Iterable[str]) -> str:
    """Return the name, with a number appended if it is taken, in a form that the kernel accepts.

    >>> unused_name("User", ["user", "User_1"])
    'User_2'
    """
    used = {each.lower() for each in taken}
    plain = name.replace("\0", "").lstrip(".")[:_MAX_NAME_LENGTH] or "column"
    if plain.lower() not in used:
        return plain
    return next(
        candidate for number in range(1, len(used) + 2) if (candidate := f"{plain}_{number}").lower() not in used
    )


def rename_columns(expr: Expr, names: Mapping[str, str]) -> Expr:
    """Return an expression with its columns renamed."""
    match expr:
        case Column(name, kind) if names.get(name, name) != name:
            return Column(names[name], kind)
        case Call():
            return with_args(expr, tuple(rename_columns(arg, names) for arg in expr.args))
    return expr


def with_args(call: Call, args: tuple[Expr, ...]) -> Call:
    """Return a call with other arguments; itself if they are its own, because every new call is checked anew."""
    same = len(args) == len(call.args) and all(map(is_, args, call.args))
    return call if same else Call(call.op, args)


def _new_names(names: Iterable[str], taken: Iterable[str], alias: str | None) -> dict[str, str]:
    """Return replacements for the names that are taken, derived from the source's alias."""
    used, renaming = {name.lower() for name in taken}, {}
    for name in names:
        new = unused_name(f"{alias or 'source'}.{name}", used) if name.lower() in used else name
        renaming[name] = new
        used.add(new.lower())
    return renaming


def private_without_clashes(rows: PrivateSource, taken: Iterable[str]) -> PrivateSource:
    """Return the rows with columns renamed to avoid the taken names."""
    schema, taken = rows.relation.shape.schema, list(taken)
    if not {name.lower() for name in schema} & {name.lower() for name in taken}:
        return rows
    names = _new_names(schema, taken, rows.views[0].alias)
    relation = Derive(rows.relation, tuple((names[name], Column(name, kind)) for name, kind in schema.items()))
    return PrivateSource(relation, tuple(_rename_view(view, names) for view in rows.views))


def public_without_clashes(public: PublicSource, taken: Iterable[str]) -> PublicSource:
    """Return a public table with columns renamed to avoid the taken names."""
    table = public.table
    names = _new_names(table.schema, taken, public.view.alias)
    condition = None if table.condition is None else rename_columns(table.condition, names)
    columns = tuple((names[name], column) for name, column in table.columns)
    return PublicSource(PublicTable(table.table, columns, condition), _rename_view(public.view, names))


def _rename_view(view: View, names: Mapping[str, str]) -> View:
    return replace(view, columns=tuple(info.with_column_name(names[info.column.name]) for info in view.columns))


@dataclass(frozen=True)
class RequestedBounds:
    """Contribution bounds given with the query; None where the policy decides."""

    groups: Bound | None = None
    rows: Bound | None = None


@dataclass(frozen=True)
class BindContext:
    """The policy, the public tables, the analyst, and the requested contribution bounds.

    Queries may share a context if the public tables do not change meanwhile: each table is bound once.
    """

    policy: Policy
    public_tables: PublicTables
    by: str
    requested_bounds: RequestedBounds = RequestedBounds()
    chosen_bounds: Mapping[str, ChosenBounds] = field(default_factory=dict, compare=False)  # by AutomaticBounds.key
    tables: dict[str, PrivateSource | PublicSource] = field(default_factory=dict, compare=False)  # as bound so far

    @property
    def max_join_fanout(self) -> int:
        """The maximum number of rows that one private row may become through joins."""
        return self.policy.budget_entry.join_limit

    @property
    def visible_tables(self) -> tuple[DeclaredTable, ...]:
        """The tables that the analyst has access to."""
        return self.policy.tables_for(self.by)
