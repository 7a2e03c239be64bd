"""Names in a query: the columns that its sources give, found as PostgreSQL finds them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fractions import Fraction
from typing import cast

from sqlglot import exp

from discreet.kernel.expr import Call, Column, Constant, Expr, Type, Value
from discreet.kernel.relation import PublicTable, Relation
from discreet.policy.units import Window
from discreet.sql.places import quoted, refuse
from discreet.sql.values.bound import Bound, End
from discreet.sql.values.declared import Lists
from discreet.sql.values.expressions import Columns, Names, bind

Values = Callable[[], tuple[Value, ...] | None]
Ends = Callable[[], Bound]


def nothing() -> None:
    """Say that no values are listed."""


@dataclass(frozen=True)
class Known:
    """A column that a query can name, with what is publicly known of it; its expression is a column of the relation.

    `values` lists its public domain when asked; `ends` finds the range of a public table's column when asked; `links`
    are keys of parent tables that decide who owns the row; `clock` is the window of a time that is part of the unit.
    No row lacks a value if it is `sure`; missing values are a group with `null`; none lies outside the range if it is
    `inside`; it is the same in all rows of a unit if it is `settled`. `least` and `most` are ends of which one may be
    unknown. `listed` are the values that the policy lists, whatever conditions left of them. Each value of
    a `unique` column belongs to one row or unit.
    """

    name: str
    bound: Bound
    values: Values = field(default=nothing, compare=False)
    ends: Ends | None = field(default=None, compare=False)
    null: bool = False
    links: frozenset[tuple[str, str]] = frozenset()
    clock: Window | None = None
    sure: bool = False
    inside: bool = False
    settled: bool = False
    least: End | None = None
    most: End | None = None
    listed: Mapping[Value, None] | None = field(default=None, compare=False)
    unique: bool = False

    @property
    def column(self) -> Column:
        """The relation's own column."""
        assert isinstance(self.bound.expr, Column)
        return self.bound.expr

    def moved(self, name: str) -> "Known":
        """Return the same under another name in the relation."""
        column = Column(name, self.column.type)
        ends = self.ends
        later = None if ends is None else lambda: replace(ends(), expr=column)
        return replace(self, bound=replace(self.bound, expr=column), ends=later)


@dataclass(frozen=True)
class View:
    """What one source is called in a query, and its columns; `merged` are those that USING joined with others."""

    alias: str | None
    columns: tuple[Known, ...]
    merged: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Rows:
    """Private rows: each belongs to one unit."""

    relation: Relation
    views: tuple[View, ...]

    @property
    def known(self) -> tuple[Known, ...]:
        """Every column, in the order of *."""
        return tuple(known for view in self.views for known in view.columns if known.name.lower() not in view.merged)

    def by_column(self) -> dict[str, Known]:
        """Return what is known of the relation's columns, by their names there."""
        return {known.column.name: known for view in self.views for known in view.columns}


@dataclass(frozen=True)
class PublicRows:
    """The rows of a public table."""

    table: PublicTable
    view: View


@dataclass(frozen=True)
class Released:
    """A query over noisy numbers only."""

    query: exp.Query


Source = Rows | PublicRows | Released


def same_name(identifier: exp.Expr, name: str) -> bool:
    """Tell whether an identifier means a name: in any case, unless it is quoted."""
    if identifier.args.get("quoted"):
        return identifier.name == name
    return identifier.name.lower() == name.lower()


def find(views: Iterable[View], node: exp.Column, clause: str) -> Known:
    """Return the column that a name means; unknown and ambiguous names are refused, with the nearest ones."""
    name, table = node.this, node.args.get("table")
    views = tuple(views)
    if node.args.get("db") or node.args.get("catalog"):
        way_out = "Write table.column, with the table's alias if it has one."
        raise refuse(node, clause, f"{quoted(name.name)} has more parts than a table and a column", way_out)
    if table is not None:
        views = tuple(view for view in views if view.alias is not None and same_name(table, view.alias))
        if not views:
            raise refuse(
                node, clause, f"there is no source {quoted(table.name)} here", "Use the names or aliases of FROM."
            )
    found = _candidates(views, name, qualified=table is not None)
    if len(found) == 1:
        return found[0]
    if found:
        aliases = [f"{view.alias}.{name.name}" for view in views if any(known in view.columns for known in found)]
        raise refuse(node, clause, f"{quoted(name.name)} is ambiguous", f"Write {' or '.join(aliases)}.")
    names = [known.name for view in views for known in view.columns]
    raise refuse(node, clause, f"there is no column {quoted(name.name)}", nearest(name.name, names))


def knows(views: Iterable[View], node: exp.Column) -> bool:
    """Tell whether exactly one column has this name."""
    name, table = node.this, node.args.get("table")
    if not isinstance(name, exp.Identifier) or node.args.get("db"):
        return False
    if table is not None:
        views = [view for view in views if view.alias is not None and same_name(table, view.alias)]
    return len(_candidates(views, name, qualified=table is not None)) == 1


def _candidates(views: Iterable[View], name: exp.Identifier, *, qualified: bool) -> list[Known]:
    return [
        known
        for view in views
        for known in view.columns
        if same_name(name, known.name) and (qualified or known.name.lower() not in view.merged)
    ]


def nearest(name: str, known: list[str]) -> str:
    """Return the way out of an unknown name: the nearest one, or all of them."""
    lower = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), lower, n=3, cutoff=0.6)
    if close:
        return f"Did you mean {' or '.join(lower[each] for each in close)}?"
    return f"There are {', '.join(known[:20])}{', …' if len(known) > 20 else ''}." if known else "There are none."


def value_of(node: exp.Expr, columns: Columns, clause: str) -> Bound:
    """Read an expression on single rows."""
    return bind(cast("exp.Expression", node), columns, clause)


def stored(views: Iterable[View], clause: str) -> Names:
    """Return how names are read where values are used as they are stored."""
    views = tuple(views)
    return Names(lambda node: find(views, node, clause).bound, _lists(views))


def held(views: Iterable[View], clause: str) -> Names:
    """Return how names are read inside an aggregate: each column within its public range."""
    views = tuple(views)

    def read(node: exp.Column) -> Bound:
        known = find(views, node, clause)
        bound = known.bound if known.ends is None or known.bound.low is not None else known.ends()
        return bound if known.inside or known.bound.unit is not None else clipped(bound)

    return Names(read, _lists(views))


def _lists(views: Iterable[View]) -> Lists:
    return {known.column.name: known.listed for view in views for known in view.columns if known.listed is not None}


def clipped(bound: Bound) -> Bound:
    """Return an expression moved into its range, if it has one."""
    if bound.low is None or bound.high is None:
        return bound
    ends = (Constant(_value(end, bound.type), bound.type) for end in (bound.low, bound.high))
    return replace(bound, expr=Call("clip", (bound.expr, *ends)))


def _value(end: End, kind: Type) -> Value:
    if isinstance(end, Fraction):
        return float(end) if kind is Type.REAL else int(end)
    return end


def without_clip(expr: Expr) -> Expr:
    """Return a column that stands alone in an aggregate as it is stored: what sums it clips it anyway."""
    if isinstance(expr, Call) and expr.op == "clip" and isinstance(expr.args[0], Column):
        return expr.args[0]
    return expr
