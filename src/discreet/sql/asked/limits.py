"""How much a unit may weigh in an answer: what the question says, else what the policy says of the tables."""

from collections.abc import Sequence
from math import prod

from sqlglot import exp

from discreet.kernel.expr import Column
from discreet.kernel.question import Count, Limit, Public, Question, Sum, Touched, Units
from discreet.kernel.relation import Derive, JoinOwn, JoinPublic, PerUnit, Relation, Scan, SemiOwn, Union, Where
from discreet.sql.asked.aggregates import Aggregate, Simple
from discreet.sql.asked.chosen import Choice
from discreet.sql.asked.groups import Grouping
from discreet.sql.asked.sentences import protected
from discreet.sql.places import refuse
from discreet.sql.rows.owners import is_settled
from discreet.sql.world import World

_HOW = "Give {0}=… with the question, write OPTIONS({1}=…), or ask the owner to declare {0} for the table."


def limit_for(grouped: Grouping, aggregates: Sequence[Aggregate | Choice], world: World, node: exp.Expr) -> Limit:
    """Return the limits of a question; refused if one is needed and nobody gave it."""
    relation = grouped.rows.relation
    copies = relation.shape.copies
    if relation.shape.unit is None or copies == 1:
        return Limit(1, 1)
    only_units = bool(aggregates) and all(each.function is Simple.UNITS for each in aggregates)
    wide, deep = _spread(grouped), 1 if only_units else _depth(relation, _keys(grouped))
    groups = 1 if wide == 1 else world.limits.groups or _declared(relation, "groups", world) or copies
    rows = 1 if deep == 1 else world.limits.rows or _declared(relation, "rows", world) or deep or copies
    if groups is None:
        cause = f"nobody said in how many groups one {protected(world)} may count"
        raise refuse(node, "GROUP BY", cause, _HOW.format("groups", "max_groups_contributed"))
    if rows is None:
        cause = f"nobody said with how many rows one {protected(world)} may count"
        raise refuse(node, "SELECT", cause, _HOW.format("rows", "max_rows_contributed"))
    return Limit(min(groups, wide or groups), min(rows, deep or rows))


def may_touch(question: Question, grouped: Grouping) -> Touched | None:
    """Return what to count to tell whom the limits touch; None if they can touch nobody, or no sum is asked for.

    A quantile hardly depends on the weight of single people, and to count them would take a look at the rows for that
    alone.
    """
    if not question.bounded or not any(isinstance(total, Count | Units | Sum) for total in question.totals):
        return None
    deep = _depth(question.relation, _keys(grouped))
    rows = any(isinstance(total, Count | Sum) for total in question.totals) and (deep is None or deep > question.rows)
    return Touched(rows) if rows or question.scaled else None


def _declared(relation: Relation, name: str, world: World) -> int | None:
    """Return the largest limit that the policy gives any private table whose rows are counted."""
    found = [getattr(world.policy.tables[table], name) for table in _tables(relation)]
    return max((limit for limit in found if limit is not None), default=None)


def _tables(relation: Relation) -> set[str]:
    match relation:
        case Scan(table):
            return {table}
        case JoinOwn(left, right) | Union(left, right):
            return _tables(left) | _tables(right)
    return _tables(relation.source)


def _spread(grouped: Grouping) -> int | None:
    """Return in how many groups a unit can be, from the keys that differ between its rows; None if nobody knows."""
    known = grouped.rows.by_column()
    free = [place for place, (_, expr) in enumerate(grouped.by) if not is_settled(expr, known)]
    if isinstance(grouped.groups, Public):
        return prod(len(grouped.groups.domains[place]) for place in free)
    return None if free else 1


def _keys(grouped: Grouping) -> frozenset[str]:
    return frozenset(expr.name for _, expr in grouped.by if isinstance(expr, Column))


def _depth(relation: Relation, keys: frozenset[str]) -> int | None:
    """Return how many rows of a unit share the same keys, at most; None if nobody knows."""
    match relation:
        case PerUnit(_, columns):
            return 1 if {name for name, _ in columns} <= keys else None
        case Where(source) | SemiOwn(source):
            return _depth(source, keys)
        case Derive(source, columns):
            plain = [expr.name for name, expr in columns if name in keys and isinstance(expr, Column)]
            return _depth(source, frozenset(plain))
        case JoinPublic(source, fanout=fanout):
            found = _depth(source, keys)
            return None if found is None else found * fanout
        case Union(left, right):
            sides = _depth(left, keys), _depth(right, keys)
            return None if None in sides else sum(filter(None, sides))
    return None
