"""WHERE: conditions on single rows, and whether a unit has rows elsewhere (IN and EXISTS on the unit)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from discreet.kernel.expr import Call, Constant, Expr
from discreet.kernel.relation import Has, SemiOwn, Where
from discreet.sql.building import built
from discreet.sql.places import refuse
from discreet.sql.rows.conditions import conjuncts, filtered
from discreet.sql.rows.joins import Item, join_all
from discreet.sql.rows.meeting import pairs_of
from discreet.sql.rows.narrow import narrowed
from discreet.sql.rows.owners import part_of, unit_names
from discreet.sql.rows.scope import Known, PublicRows, Rows, Source, View, knows, stored, value_of
from discreet.sql.values.bound import Bound
from discreet.sql.world import World

_MOST_LISTED = 1000
_WAY_OUT = "Write it as a JOIN, or as unit IN (SELECT unit FROM …)."


@dataclass(frozen=True)
class Inner:
    """How queries inside a condition are read."""

    query: Callable[[exp.Query], Source]
    items: Callable[[exp.Select], list[Item]]


def where(rows: Rows, nodes: Sequence[exp.Expr], world: World, inner: Inner) -> Rows:
    """Keep the rows for which all conditions are true."""
    plain = []
    for node in nodes:
        bare, has = node.unnest(), Has.SOME
        while isinstance(bare, exp.Not):
            bare, has = bare.this.unnest(), Has.NONE if has is Has.SOME else Has.SOME
        if isinstance(bare, exp.In) and bare.args.get("query") is not None:
            rows = _in(rows, bare, has, inner)
        elif isinstance(bare, exp.Exists) and isinstance(bare.this, exp.Query):
            rows = _exists(rows, bare, has, world, inner)
        else:
            plain.append(node)
    return filtered(rows, plain, "WHERE")


def _in(rows: Rows, node: exp.In, has: Has, inner: Inner) -> Rows:
    """Read unit IN (SELECT unit …)."""
    left = node.this.unnest()
    nodes = left.expressions if isinstance(left, exp.Tuple) else [left]
    ours = [value_of(each, stored(rows.views, "WHERE"), "WHERE") for each in nodes]
    found = inner.query(node.args["query"])
    if isinstance(found, PublicRows):
        return _in_public(rows, node, has, ours, found)
    if not isinstance(found, Rows):
        cause = "a private row cannot be compared with the result of a query"
        raise refuse(node, "WHERE", cause, "Ask the inner query first, then write its values as constants.")
    theirs = [known.bound for known in found.known]
    if len(ours) != len(theirs):
        raise refuse(node, "WHERE", "IN compares a different number of columns", "SELECT as many as are compared.")
    pairs = list(zip(ours, theirs, strict=True))
    _check_unit(node, pairs, rows, found)
    return Rows(built(lambda: SemiOwn(rows.relation, found.relation, has), node, "WHERE"), rows.views)


def _in_public(rows: Rows, node: exp.In, has: Has, ours: list[Bound], found: PublicRows) -> Rows:
    """Read x IN (SELECT y FROM a public table): its values are public, so they are written down."""
    listed = found.view.columns[0].values() if len(found.view.columns) == 1 and found.table.condition is None else None
    if len(ours) != 1 or listed is None or not 0 < len(listed) <= _MOST_LISTED:
        raise refuse(
            node, "WHERE", "IN takes a public table's whole column, of 1,000 values at most", "Write it as a JOIN."
        )
    if ours[0].type is not found.view.columns[0].bound.type:
        raise refuse(node, "WHERE", "IN compares values of two types", "Convert one of them with CAST.")
    constants = tuple(Constant(value, ours[0].type) for value in listed)
    condition: Expr = Call("one_of", (ours[0].expr, *constants))
    wanted = condition if has is Has.SOME else Call("not", (condition,))
    return Rows(built(lambda: Where(rows.relation, wanted), node, "WHERE"), narrowed(rows.views, wanted))


def _exists(rows: Rows, node: exp.Exists, has: Has, world: World, inner: Inner) -> Rows:
    """Read EXISTS (SELECT … WHERE theirs.unit = ours.unit AND conditions of the inner query alone)."""
    select = node.this.unnest()
    if not isinstance(select, exp.Select):
        raise refuse(node, "EXISTS", "EXISTS takes a single SELECT here", _WAY_OUT)
    for name in ("group", "having", "limit", "offset", "order", "qualify", "with_"):
        if select.args.get(name):
            raise refuse(node, "EXISTS", "EXISTS takes FROM and WHERE only", _WAY_OUT)
    items = inner.items(select)
    if not any(isinstance(item.source, Rows) for item in items):
        raise refuse(node, "EXISTS", "EXISTS over a public table is not supported", "Write it as a JOIN.")
    views = [view for item in items for view in item.views]
    conditions = conjuncts(select.args["where"].this if select.args.get("where") else None)
    own = [each for each in conditions if _is_inner(each, views)]
    across = [each for each in conditions if not any(each is known for known in own)]
    found, rest = join_all(items, own, world)
    found = where(found, rest, world, inner)
    pairs = pairs_of(across, rows.views, found.views)
    if len(pairs) != len(across):
        left = next(each for each in across if not any(each is pair.node for pair in pairs))
        cause = "only equality on the unit can connect EXISTS with the rows outside"
        raise refuse(left, "EXISTS", cause, "Use a JOIN on the unit with this condition, and GROUP BY the unit.")
    _check_unit(node, [(pair.ours, pair.theirs) for pair in pairs], rows, found)
    return Rows(built(lambda: SemiOwn(rows.relation, found.relation, has), node, "WHERE"), rows.views)


def _is_inner(node: exp.Expr, views: Sequence[View]) -> bool:
    """Tell whether a condition reads the inner query alone; queries in it are read there."""
    outer = [each for each in node.find_all(exp.Column) if each.find_ancestor(exp.Query, exp.Exists) in _around(node)]
    return all(knows(views, column) for column in outer)


def _around(node: exp.Expr) -> list[exp.Expr | None]:
    return [node.find_ancestor(exp.Query, exp.Exists)]


def _check_unit(node: exp.Expr, pairs: Sequence[tuple[Bound, Bound]], rows: Rows, found: Rows) -> None:
    """Stop unless the pairs are exactly the parts of the unit's key on both sides."""
    ours, theirs = rows.by_column(), found.by_column()
    parts = [_part(left, ours) if _part(left, ours) == _part(right, theirs) else None for left, right in pairs]
    unit = rows.relation.shape.unit
    if unit is None:
        cause = "every row is protected on its own, so rows cannot be compared with other private rows"
        raise refuse(node, "WHERE", cause, "Ask about one private table at a time.")
    if None in parts or set(parts) != set(range(len(unit))):
        names = ", ".join(unit_names(rows)) or "the unit's columns, by joining the parent table first"
        cause = "private rows can be compared with other private rows on the whole unit only"
        raise refuse(node, "WHERE", cause, f"Compare {names} with the same of the inner query, or write a JOIN.")


def _part(bound: Bound, known: dict[str, Known]) -> int | None:
    return part_of(bound.expr, known)
