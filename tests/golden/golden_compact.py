"""A plan in few words: what is asked of the kernel, and what is computed from the answer."""

from fractions import Fraction
from itertools import chain

from discreet.estimate.planned_release import FrequencyFunction
from discreet.estimate.quantile_walk import QuantileTarget
from discreet.kernel.expr import Call, Column, Constant, Type
from discreet.kernel.grid import Grid
from discreet.kernel.question import ClippedUnits, Count, CountDistinct, CountUnits, HistogramTree, PublicGroups, Sum
from discreet.kernel.relation import (
    Derive,
    EachRow,
    JoinOnUnit,
    JoinPublic,
    ParentUnit,
    PerUnit,
    Scan,
    SemiJoinKind,
    SemiJoinOnUnit,
    Union,
    UnitKey,
    Where,
)


def compact(plan):
    """Write a plan, a line for each thing that matters."""
    lines = list(chain.from_iterable(_part(part) for part in plan.parts))
    around = [f"explain: {plan.explain}"] if plan.explain else []
    around += [f"within: {plan.within}"] if plan.within else []
    return "\n".join([*around, *lines, f"then {plan.above}"])


def _part(part):
    question = part.question
    yield f"{part.name} from"
    yield from (f"  {line}" for line in _relation(question.relation))
    for place, (name, expr) in enumerate(question.by):
        values = (
            _values(question.groups.domains[place]) if isinstance(question.groups, PublicGroups) else "to be discovered"
        )
        yield f"  by {name} = {_expr(expr)}: {values}"
    limit = question.limit
    told = "bounded" if question.bounded else "unbounded"
    yield f"  {told}, groups {limit.groups}, rows {limit.rows}" + (", scaled" if question.scaled else "")
    shares = [*(f"weight {weight}" for weight in part.weights), *([f"{part.report} of the price"] * bool(part.report))]
    for place, (total, share) in enumerate(zip(question.totals, shares, strict=True)):
        yield f"  t{place} = {_total(total)}, size {question.sensitivity_of(total).size}, {share}"
    for measure in part.measures:
        yield f"  {measure.name} = {_recipe(measure.recipe)}: {measure.label}"
    yield from (f"  {sentence}" for sentence in part.sentences)


def _values(values):
    shown = [str(value) for value in values]
    return ", ".join(shown) if len(shown) <= 8 else f"{', '.join(shown[:3])}, … {shown[-1]} ({len(shown)})"


def _relation(relation, depth=0):
    indent, below = "  " * depth, depth + 1
    match relation:
        case Scan(table, _, owner):
            yield f"{indent}{table} of {_owner(owner)}"
        case Where(source, condition):
            yield f"{indent}where {_expr(condition)}"
            yield from _relation(source, below)
        case Derive(source, columns):
            yield f"{indent}derive {_named(columns)}"
            yield from _relation(source, below)
        case JoinPublic(source, table, equal, also, keep, fanout):
            on = ", ".join(f"{ours} = {theirs}" for ours, theirs in equal)
            also = f" and {_expr(also)}" if also else ""
            kept = f" where {_expr(table.condition)}" if table.condition else ""
            what = f"{table.table} ({_named(table.columns)}){kept}"
            yield f"{indent}{keep.value} join {what} on {on or 'anything'}{also}, fanout {fanout}"
            yield from _relation(source, below)
        case JoinOnUnit(left, right, also, keep, most):
            also = f" and {_expr(also)}" if also else ""
            yield f"{indent}{keep.value} join on the unit{also}, most {most}"
            yield from _relation(left, below)
            yield from _relation(right, below)
        case SemiJoinOnUnit(source, other, has):
            yield f"{indent}units with {'a' if has is SemiJoinKind.SEMI else 'no'} row in the second"
            yield from _relation(source, below)
            yield from _relation(other, below)
        case PerUnit(source, keys, values):
            folds = ", ".join(f"{name} = {_folded(folded)}" for name, folded in values)
            yield f"{indent}per unit{' and ' if keys else ''}{_named(keys)}: {folds}"
            yield from _relation(source, below)
        case Union(left, right):
            yield f"{indent}union"
            yield from _relation(left, below)
            yield from _relation(right, below)


def _owner(owner):
    match owner:
        case UnitKey(unit):
            return ", ".join(map(_expr, unit))
        case EachRow():
            return "each row"
        case ParentUnit(on, parent, key):
            return f"{on} → {parent.table}.{key}, of {_owner(parent.owner)}"


def _named(columns):
    return ", ".join(
        name if isinstance(e, Column) and e.name == name else f"{name} = {_expr(e)}" for name, e in columns
    )


def _expr(expr):
    match expr:
        case Column(name):
            return name
        case Constant(value):
            return "NULL" if value is None else repr(value) if isinstance(value, str) else str(value)
        case Call(op, args):
            return f"{op}({', '.join(map(_expr, args))})"


def _folded(folded):
    grid = f" by {folded.grid.step}" if folded.grid else ""
    return f"{folded.fold.value}({_expr(folded.expr) if folded.expr else ''}{grid})"


def _total(total):
    match total:
        case Count(expr):
            return f"count({_expr(expr) if expr else '*'})"
        case CountUnits(expr):
            return f"units({_expr(expr) if expr else '*'})"
        case Sum(expr, grid, power, shift):
            centre = f" around {_number(grid.offset * grid.step)}" if grid.offset else ""
            squared = f" squared less {shift}" if power == 2 else ""
            return f"sum({_expr(expr)}{squared}, {_ends(grid)}{centre})"
        case CountDistinct(expr):
            return f"values({_expr(expr)})"
        case HistogramTree(expr, places, fan, depth):
            listed = _ends(places) if isinstance(places, Grid) else _values(places)
            return f"cells({_expr(expr)}, {listed}, {fan} to the {depth})"
        case ClippedUnits(rows):
            return f"touched({'groups or rows' if rows else 'groups'})"


def _ends(grid):
    return f"{_number(grid.low)} to {_number(grid.high)} by {_number(grid.step)}"


def _number(value):
    return str(value) if isinstance(value, Fraction) and value.denominator < 10**6 else f"{float(value):.6g}"


def _recipe(recipe):
    fields = [f"{name}={_field(value)}" for name, value in vars(recipe).items()]
    return f"{type(recipe).__name__.lower()}({', '.join(fields)})"


def _field(value):
    match value:
        case Fraction():
            return _number(value)
        case QuantileTarget(share):
            return _number(share)
        case FrequencyFunction(shown, most):
            return f"{shown.name.lower()} {most}"
        case Type():
            return value.name.lower()
    return getattr(value, "value", value)
