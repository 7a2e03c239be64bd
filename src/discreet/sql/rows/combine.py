"""UNION ALL of private rows, and any set operation of released tables."""

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from discreet.kernel.expr import Call, Column, Expr, Type, Value
from discreet.kernel.relation import Derive, Union
from discreet.sql.building import built
from discreet.sql.places import refuse
from discreet.sql.rows.naming import fresh
from discreet.sql.rows.projection import check_rows
from discreet.sql.rows.scope import Known, Released, Rows, Source, Values, View
from discreet.sql.values.bound import Bound


def combined(query: exp.SetOperation, read: Callable[[exp.Expr], Source]) -> Source:
    """Understand UNION, INTERSECT or EXCEPT."""
    left, right = read(query.this), read(query.expression)
    if isinstance(left, Released) and isinstance(right, Released):
        query.set("this", left.query)
        query.set("expression", right.query)
        return Released(query)
    name = type(query).__name__.upper()
    if not (isinstance(left, Rows) and isinstance(right, Rows)):
        cause = f"{name} cannot mix private rows with others"
        raise refuse(query, name, cause, "Aggregate each side first, or use private tables on both sides.")
    if not isinstance(query, exp.Union) or query.args.get("distinct"):
        cause = f"{name} compares rows of different people"
        raise refuse(query, name, cause, "Use UNION ALL, or GROUP BY the unit.")
    if query.args.get("by_name"):
        raise refuse(query, name, "UNION BY NAME is not supported", "List the columns in the same order.")
    check_rows(query)
    return _union(query, left, right)


def _union(query: exp.Expr, left: Rows, right: Rows) -> Rows:
    ours, theirs = left.known, right.known
    if left.relation.shape.unit is None or right.relation.shape.unit is None:
        cause = "every row is protected on its own, so private tables cannot be put together"
        raise refuse(query, "UNION", cause, "Ask about one private table at a time.")
    if len(ours) != len(theirs):
        cause = f"the two sides have {len(ours)} and {len(theirs)} columns"
        raise refuse(query, "UNION", cause, "Select the same columns on both sides.")
    names: list[str] = []
    for known in ours:
        names.append(fresh(known.name, names))
    kinds = [_common(query, a, b) for a, b in zip(ours, theirs, strict=True)]
    sides = [
        Derive(
            rows.relation,
            tuple((name, _as(known, kind)) for name, known, kind in zip(names, rows.known, kinds, strict=True)),
        )
        for rows in (left, right)
    ]
    view = tuple(_either(name, kind, a, b) for name, kind, a, b in zip(names, kinds, ours, theirs, strict=True))
    return Rows(built(lambda: Union(sides[0], sides[1]), query, "UNION"), (View(None, view),))


def _common(query: exp.Expr, ours: Known, theirs: Known) -> Type:
    kinds = {ours.column.type, theirs.column.type}
    if len(kinds) == 1:
        return ours.column.type
    if kinds == {Type.INTEGER, Type.REAL}:
        return Type.REAL
    cause = f"column {ours.name} has another type on the other side"
    raise refuse(query, "UNION", cause, "Convert one of them with CAST.")


def _as(known: Known, kind: Type) -> Expr:
    return known.column if known.column.type is kind else Call("to_real", (known.column,))


def _either(name: str, kind: Type, ours: Known, theirs: Known) -> Known:
    """Return what is known of a column that comes from two sides."""
    a, b = ours.bound, theirs.bound
    bound = Bound(Column(name, kind), unit=a.unit if a.unit == b.unit else None)
    if a.low is not None and b.low is not None and a.high is not None and b.high is not None:
        step = min(a.step, b.step) if a.step is not None and b.step is not None else None
        bound = replace(bound, low=min(a.low, b.low), high=max(a.high, b.high), step=step)
    clock = ours.clock if ours.clock is theirs.clock else None
    links = ours.links & theirs.links
    return Known(
        ours.name,
        bound,
        _listed(kind, ours, theirs),
        null=ours.null or theirs.null,
        links=links,
        clock=clock,
        sure=ours.sure and theirs.sure,
        inside=ours.inside and theirs.inside,
        settled=bound.unit is not None,
        unique=ours.unique or theirs.unique,
    )


def _listed(kind: Type, ours: Known, theirs: Known) -> Values:
    def values() -> tuple[Value, ...] | None:
        a, b = ours.values(), theirs.values()
        if a is None or b is None:
            return None
        return tuple(dict.fromkeys(_turned(value, kind) for value in (*a, *b)))

    return values


def _turned(value: Value, kind: Type) -> Value:
    """Return a whole number as a real where the other side has reals."""
    return float(value) if kind is Type.REAL and isinstance(value, int) else value
