"""UNION ALL of private rows, and set operations over released tables."""

from dataclasses import replace

from sqlglot import exp

from discreet.kernel.expr import Call, Column, Expr, Type, Value
from discreet.kernel.relation import Derive, Union
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.relations.bound_sources import (
    BoundSource,
    ColumnInfo,
    PrivateSource,
    ReleasedSource,
    ValuesLookup,
    View,
    unused_name,
)
from discreet.query.relations.projection import check_row_clauses
from discreet.query.syntax.resolved_query import ResolvedSetOperation
from discreet.query.syntax.syntax_tree import build_or_refuse, refuse


def combine_sources(query: ResolvedSetOperation, left: BoundSource, right: BoundSource) -> BoundSource:
    """Bind UNION, INTERSECT or EXCEPT."""
    if isinstance(left, ReleasedSource) and isinstance(right, ReleasedSource):
        return ReleasedSource(replace(query, left=left.query, right=right.query))
    node, name = query.node, type(query.node).__name__.upper()
    if not (isinstance(left, PrivateSource) and isinstance(right, PrivateSource)):
        cause = f"{name} cannot combine private rows with other rows"
        raise refuse(node, name, cause, "Aggregate each side first, or use private tables on both sides.")
    if not isinstance(node, exp.Union) or node.args.get("distinct"):
        cause = f"{name} would compare rows of different privacy units"
        raise refuse(node, name, cause, "Use UNION ALL, or GROUP BY the unit.")
    check_row_clauses(query)
    return _union_all(node, left, right)


def _union_all(query: exp.Expr, left: PrivateSource, right: PrivateSource) -> PrivateSource:
    ours, theirs = left.columns, right.columns
    if left.relation.shape.unit is None or right.relation.shape.unit is None:
        cause = "each row is its own privacy unit, so private tables cannot be combined"
        raise refuse(query, "UNION", cause, "Query one private table at a time.")
    names: list[str] = []
    for info in ours:
        names.append(unused_name(info.name, names))
    kinds = [_common_type(query, a, b) for a, b in zip(ours, theirs, strict=True)]
    sides = [
        Derive(
            rows.relation,
            tuple((name, _as_type(known, kind)) for name, known, kind in zip(names, rows.columns, kinds, strict=True)),
        )
        for rows in (left, right)
    ]
    view = tuple(_union_info(name, kind, a, b) for name, kind, a, b in zip(names, kinds, ours, theirs, strict=True))
    return PrivateSource(build_or_refuse(lambda: Union(sides[0], sides[1]), query, "UNION"), (View(None, None, view),))


def _common_type(query: exp.Expr, ours: ColumnInfo, theirs: ColumnInfo) -> Type:
    kinds = {ours.column.type, theirs.column.type}
    if len(kinds) == 1:
        return ours.column.type
    if kinds == {Type.INTEGER, Type.REAL}:
        return Type.REAL
    cause = f"column {ours.name} has different types on the two sides"
    raise refuse(query, "UNION", cause, "Convert one of them with CAST.")


def _as_type(info: ColumnInfo, kind: Type) -> Expr:
    return info.column if info.column.type is kind else Call("to_real", (info.column,))


def _union_info(name: str, kind: Type, ours: ColumnInfo, theirs: ColumnInfo) -> ColumnInfo:
    """Return the facts that hold for a column on both sides."""
    a, b = ours.bound, theirs.bound
    bound = BoundExpr(
        Column(name, kind), unit_key_index=a.unit_key_index if a.unit_key_index == b.unit_key_index else None
    )
    if a.low is not None and b.low is not None and a.high is not None and b.high is not None:
        step = min(a.step, b.step) if a.step is not None and b.step is not None else None
        bound = replace(bound, low=min(a.low, b.low), high=max(a.high, b.high), step=step)
    window = ours.window if ours.window is theirs.window else None
    parent_keys = ours.parent_keys & theirs.parent_keys
    return ColumnInfo(
        ours.name,
        bound,
        _union_values(kind, ours, theirs),
        null_is_group=ours.null_is_group or theirs.null_is_group,
        parent_keys=parent_keys,
        window=window,
        never_null=ours.never_null and theirs.never_null,
        in_range=ours.in_range and theirs.in_range,
        constant_per_unit=bound.unit_key_index is not None,
        unique=ours.unique or theirs.unique,
    )


def _union_values(kind: Type, ours: ColumnInfo, theirs: ColumnInfo) -> ValuesLookup:
    def values() -> tuple[Value, ...] | None:
        a, b = ours.values(), theirs.values()
        if a is None or b is None:
            return None
        return tuple(dict.fromkeys(_as_real(value, kind) for value in (*a, *b)))

    return values


def _as_real(value: Value, kind: Type) -> Value:
    """Convert an integer to a real if the column is real."""
    return float(value) if kind is Type.REAL and isinstance(value, int) else value
