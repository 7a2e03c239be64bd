"""Two sources become one: rows with partners in a public table, or pairs of rows of the same unit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isqrt

from sqlglot import exp

from discreet.kernel.expr import Call, Column, Expr, Type
from discreet.kernel.relation import Derive, JoinOwn, JoinPublic, Keep, PerUnit, Relation, SemiOwn, Union, Where
from discreet.sql.building import built
from discreet.sql.places import refuse
from discreet.sql.rows.conditions import condition, every
from discreet.sql.rows.naming import fresh, private_apart, public_apart
from discreet.sql.rows.owners import links_of, part_of, unit_names
from discreet.sql.rows.scope import PublicRows, Rows, View, knows, stored, value_of
from discreet.sql.rows.walking import first_query
from discreet.sql.values.bound import Bound
from discreet.sql.world import World

_WIDER = {(Type.INTEGER, Type.REAL): "to_real", (Type.DATE, Type.TIMESTAMP): "to_timestamp"}
Nodes = Sequence[exp.Expr]


@dataclass(frozen=True)
class _How:
    """How two sources meet: which rows are kept, what is known of the world, and where the query says so."""

    keep: Keep
    world: World
    place: exp.Expr


@dataclass(frozen=True)
class Pair:
    """A condition that a value of one side equals one of the other."""

    ours: Bound
    theirs: Bound
    node: exp.Expr


def meet_inner(
    rows: Rows, source: Rows | PublicRows, nodes: Nodes, world: World, place: exp.Expr
) -> tuple[Rows, Nodes]:
    """Keep rows with a partner; equalities between the sides are used, and returned as used."""
    how = _How(Keep.MATCHED, world, place)
    if isinstance(source, Rows):
        own = private_apart(source, rows.relation.shape.schema)
        pairs = pairs_of(nodes, rows.views, own.views)
        return _own(rows, own, _also_of_units(rows, own, pairs, place), how), [pair.node for pair in pairs]
    public = public_apart(source, rows.relation.shape.schema)
    pairs = [pair for pair in pairs_of(nodes, rows.views, (public.view,)) if _fits(pair)]
    return _public(rows, public, pairs, None, how), [pair.node for pair in pairs]


def meet_outer(rows: Rows, source: Rows | PublicRows, nodes: Nodes, world: World, place: exp.Expr) -> Rows:
    """Keep all rows, with partners where all conditions are true."""
    how = _How(Keep.ALL, world, place)
    if isinstance(source, Rows):
        own = private_apart(source, rows.relation.shape.schema)
        pairs = pairs_of(nodes, rows.views, own.views)
        others = [condition(node, (*rows.views, *own.views), "ON") for node in _without(nodes, pairs)]
        return _own(rows, own, [*_also_of_units(rows, own, pairs, place), *others], how)
    public = public_apart(source, rows.relation.shape.schema)
    pairs = [pair for pair in pairs_of(nodes, rows.views, (public.view,)) if _fits(pair)]
    others = [condition(node, (*rows.views, public.view), "ON") for node in _without(nodes, pairs)]
    return _public(rows, public, pairs, every(others), how)


def _without(nodes: Nodes, pairs: Sequence[Pair]) -> list[exp.Expr]:
    return [node for node in nodes if not any(node is pair.node for pair in pairs)]


def pairs_of(nodes: Nodes, ours: Sequence[View], theirs: Sequence[View]) -> list[Pair]:
    """Return the conditions that a value of one side equals one of the other."""
    found = []
    for node in nodes:
        bare = node.unnest()
        if not isinstance(bare, exp.EQ) or first_query(bare) is not None:
            continue
        for left, right in ((bare.this, bare.expression), (bare.expression, bare.this)):
            if _reads(left, ours) and _reads(right, theirs) and not _reads(left, theirs) and not _reads(right, ours):
                pair = value_of(left, stored(ours, "ON"), "ON"), value_of(right, stored(theirs, "ON"), "ON")
                found.append(Pair(*pair, node))
                break
    return found


def _reads(node: exp.Expr, views: Sequence[View]) -> bool:
    """Tell whether an expression reads columns, and these views have them all."""
    columns = list(node.find_all(exp.Column))
    return bool(columns) and all(knows(views, column) for column in columns)


def _fits(pair: Pair) -> bool:
    """Tell whether an equality can be a key of a public table: their column, our value of the same type."""
    same = pair.ours.type is pair.theirs.type or (pair.ours.type, pair.theirs.type) in _WIDER
    return same and isinstance(pair.theirs.expr, Column)


def _public(rows: Rows, public: PublicRows, pairs: Sequence[Pair], also: Expr | None, how: _How) -> Rows:
    names = {name: column.name for name, column in public.table.columns}
    theirs = [pair.theirs.expr.name for pair in pairs if isinstance(pair.theirs.expr, Column)]
    fanout = max(1, how.world.publics.fanout(public.table.table, tuple(names[name] for name in theirs)))
    _check_fanout(rows.relation, fanout, how, public)
    relation, ours = _keyed(rows.relation, [_as(pair.ours.expr, pair.theirs.type) for pair in pairs], list(names))
    equal = tuple(dict.fromkeys(zip(ours, theirs, strict=True)))
    joined = built(lambda: JoinPublic(relation, public.table, equal, also, how.keep, fanout), how.place, "JOIN")
    view = _missing(public.view) if how.keep is Keep.ALL else public.view
    return Rows(joined, (*rows.views, view))


def _as(expr: Expr, kind: Type) -> Expr:
    return expr if expr.type is kind else Call(_WIDER[expr.type, kind], (expr,))


def _keyed(relation: Relation, keys: Sequence[Expr], taken: Sequence[str]) -> tuple[Relation, list[str]]:
    """Return the names of columns that hold the keys, derived where they are not columns yet."""
    schema = relation.shape.schema
    made: dict[Expr, str] = {}
    for key in keys:
        if not isinstance(key, Column) and key not in made:
            made[key] = fresh("joined", [*schema, *taken, *made.values()])
    if made:
        kept = tuple((name, Column(name, kind)) for name, kind in schema.items())
        relation = Derive(relation, (*kept, *((name, key) for key, name in made.items())))
    return relation, [key.name if isinstance(key, Column) else made[key] for key in keys]


def _missing(view: View) -> View:
    """Say that a side of an outer join may have no value, which is then a group of its own."""
    return replace(
        view,
        columns=tuple(
            replace(known, null=True, links=frozenset(), clock=None, settled=False) for known in view.columns
        ),
    )


def _own(rows: Rows, own: Rows, also: Sequence[Expr], how: _How) -> Rows:
    most = how.world.most
    spread = _spread(rows.relation) * _spread(own.relation)
    if spread > most:
        cause = f"one private row could become {spread:,} rows through public tables on both sides, more than {most:,}"
        raise refuse(
            how.place, "JOIN", cause, "Join public tables after the private ones, on columns that are unique there."
        )
    each = isqrt(10 * most)  # rows of a unit on each side, so that its pairs are not much more work than `most` rows
    joined = built(lambda: JoinOwn(rows.relation, own.relation, every(also), how.keep, each), how.place, "JOIN")
    views = tuple(map(_missing, own.views)) if how.keep is Keep.ALL else own.views
    return Rows(joined, (*rows.views, *views))


def _also_of_units(rows: Rows, own: Rows, pairs: Sequence[Pair], place: exp.Expr) -> list[Expr]:
    """Return the equalities that the unit alone does not imply; refuse unless together they imply the unit."""
    parts, linked, also = set(), False, []
    ours, theirs = rows.by_column(), own.by_column()
    for pair in pairs:
        part = part_of(pair.ours.expr, ours)
        if part is not None and part == part_of(pair.theirs.expr, theirs):
            parts.add(part)
            continue
        linked = linked or bool(links_of(pair.ours.expr, ours) & links_of(pair.theirs.expr, theirs))
        also.append(condition(pair.node, (*rows.views, *own.views), "ON"))
    unit = rows.relation.shape.unit
    if unit is None or own.relation.shape.unit is None:
        cause = "every row is protected on its own, so rows cannot meet other private rows"
        raise refuse(place, "JOIN", cause, "Ask about one private table at a time.")
    if not linked and parts != set(range(len(unit))):
        raise _apart(rows, own, place)
    return also


def _apart(rows: Rows, own: Rows, place: exp.Expr) -> Exception:
    sides = [unit_names(each) for each in (rows, own)]
    pairs = [f"{left} = {right}" for left, right in zip(*sides, strict=False)]
    way_out = f"Add {' AND '.join(pairs)}." if pairs else "Join on the column that leads to the parent table."
    return refuse(place, "JOIN", "two private tables can be joined on the whole unit only, by equality", way_out)


def _check_fanout(relation: Relation, fanout: int, how: _How, public: PublicRows) -> None:
    spread, most = _spread(relation) * fanout, how.world.most
    if spread > most:
        cause = f"one private row could become {spread:,} rows by joining {public.table.table}, more than {most:,}"
        way_out = "Join on a column that is unique there, or ask the owner to raise join_limit."
        raise refuse(how.place, "JOIN", cause, way_out)


def _spread(relation: Relation) -> int:
    """Return how many rows one private row has become through public tables."""
    match relation:
        case JoinPublic(source, fanout=fanout):
            return _spread(source) * fanout
        case JoinOwn(left, right) | SemiOwn(left, right):
            return _spread(left) * _spread(right)
        case Union(left, right):
            return _spread(left) + _spread(right)
        case Where(source) | Derive(source) | PerUnit(source):
            return _spread(source)
    return 1
