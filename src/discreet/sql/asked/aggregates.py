"""Aggregates: what each call asks of the rows, and what is publicly known of its values."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from sqlglot import exp

from discreet.kernel.expr import Call, Constant, Expr, Type
from discreet.sql.asked.calls import function_name, kept, text_of
from discreet.sql.asked.chosen import Choice, chosen
from discreet.sql.asked.grids import Scale
from discreet.sql.estimates import Statistic
from discreet.sql.places import refuse
from discreet.sql.rows.conditions import condition
from discreet.sql.rows.owners import is_person_or_null, never_null, part_of, unit_names
from discreet.sql.rows.scope import Known, Rows, held, stored, value_of, without_clip
from discreet.sql.rows.walking import first_aggregate, first_query, first_window
from discreet.sql.values.bound import Bound

_ONE = Constant(1, Type.INTEGER)
_NUMBERS = (Type.INTEGER, Type.REAL)
_FARTHEST = Fraction(10) ** 60  # noise on sums of squares is squared once more, and must stay a double


class Simple(Enum):
    """The aggregates that are one total or two."""

    COUNT = "count"
    UNITS = "units"
    SUM = "sum"
    AVG = "avg"
    DISTINCT = "distinct"


Function = Simple | Statistic


@dataclass(frozen=True)
class Aggregate:
    """One aggregate: over the rows where `expr` is not NULL, or over all; with a scale if it adds numbers."""

    function: Function
    expr: Expr | None
    scale: Scale | None = None


_ADDED: dict[type[exp.Expr], Function] = {
    exp.Sum: Simple.SUM,
    exp.Avg: Simple.AVG,
    exp.Variance: Statistic.VAR_SAMP,
    exp.VariancePop: Statistic.VAR_POP,
    exp.Stddev: Statistic.STDDEV_SAMP,
    exp.StddevSamp: Statistic.STDDEV_SAMP,
    exp.StddevPop: Statistic.STDDEV_POP,
}


def aggregate(node: exp.Expr, rows: Rows) -> Aggregate | Choice:
    """Read an aggregate call, with its FILTER."""
    call, when = kept_when(node, rows)
    if not isinstance(call, exp.Count | exp.CountIf | exp.ApproxDistinct) and type(call) not in _ADDED:
        for part in _arguments(call):
            _check_argument(part)
        choice = chosen(call, rows, when)
        if choice is None:
            raise _unknown(call)
        return choice
    check_arguments(call)
    if isinstance(call, exp.ApproxDistinct):
        call = exp.Count(this=exp.Distinct(expressions=[call.this]))
    if isinstance(call, exp.Count):
        return _counted(call, rows, when)
    if isinstance(call, exp.CountIf):
        wanted = condition(call.this, rows.views, "COUNT_IF")
        return Aggregate(Simple.COUNT, kept(kept(_ONE, wanted), when))
    function = _ADDED[type(call)]
    if isinstance(call.this, exp.Distinct):
        way_out = "Leave out DISTINCT, or gather each unit's values in a subquery first."
        raise refuse(call, "SELECT", f"{function_name(call)} of DISTINCT values is not supported", way_out)
    bound = value_of(call.this, held(rows.views, function_name(call)), function_name(call))
    return Aggregate(function, kept(without_clip(bound.expr), when), _scale(call, bound, rows))


def kept_when(node: exp.Expr, rows: Rows) -> tuple[exp.Expr, Expr | None]:
    """Return an aggregate call, and the condition of its FILTER."""
    if isinstance(node, exp.Filter):
        return node.this, condition(node.expression.this, rows.views, "FILTER")
    return node, None


def check_arguments(call: exp.Expr) -> None:
    """Refuse an aggregate of nothing, or of what cannot be computed from a single row."""
    if call.this is None:
        name = function_name(call)
        raise refuse(
            call, name, f"{name} of nothing is not defined", f"Write {name}(…) with an expression, or COUNT(*)."
        )
    for part in call.iter_expressions():
        _check_argument(part)


def _arguments(call: exp.Expr) -> list[exp.Expr]:
    """Return what an aggregate is applied to, and what it is ordered by."""
    if isinstance(call, exp.WithinGroup):
        return [*call.this.iter_expressions(), *call.expression.iter_expressions()]
    return list(call.iter_expressions())


def _check_argument(node: exp.Expr) -> None:
    if (found := first_aggregate(node)) is not None:
        raise refuse(found, "SELECT", "an aggregate cannot contain another", "Aggregate per unit in a subquery first.")
    if (found := first_window(node)) is not None:
        cause = "a window function mixes rows of different people"
        raise refuse(found, "SELECT", cause, "Aggregate first; window functions work on the result.")
    if (found := first_query(node)) is not None:
        cause = "a private row cannot be compared with the result of a query"
        raise refuse(found, "SELECT", cause, "Ask the inner query first, then write the number.")


def _counted(call: exp.Count, rows: Rows, when: Expr | None) -> Aggregate:
    if isinstance(call.this, exp.Distinct):
        return _distinct(call, rows, when)
    if call.expressions:
        raise refuse(call, "SELECT", "COUNT takes one expression", "Count one column, or *.")
    if isinstance(call.this, exp.Star):
        return Aggregate(Simple.COUNT, counted(kept(_ONE, when), rows.by_column()))
    bound = value_of(call.this, held(rows.views, "COUNT"), "COUNT")
    return Aggregate(Simple.COUNT, counted(kept(without_clip(bound.expr), when), rows.by_column()))


def counted(expr: Expr, known: Mapping[str, Known]) -> Expr | None:
    """Return the simplest expression that is NULL in the same rows; None if it never is."""
    if never_null(expr, known):
        return None
    match expr:
        case Call("case", (when, value, Constant(None))) if never_null(value, known):
            return kept(_ONE, when)
    return expr


def _distinct(call: exp.Count, rows: Rows, when: Expr | None) -> Aggregate:
    """Return the count of units, or of different values."""
    known = rows.by_column()
    nodes = [part for each in call.this.expressions for part in _flat(each)]
    bounds = [value_of(node, stored(rows.views, "COUNT"), "COUNT") for node in nodes]
    unit = rows.relation.shape.unit
    wanted = set(range(len(unit or ())))
    if wanted and {part_of(bound.expr, known) for bound in bounds} == wanted:
        missing = [bound.expr for bound in bounds if not never_null(bound.expr, known)]
        return Aggregate(Simple.UNITS, counted(kept(missing[0] if missing else _ONE, when), known))
    if wanted == {0} and len(bounds) == 1 and is_person_or_null(bounds[0].expr, known):
        return Aggregate(Simple.UNITS, counted(kept(bounds[0].expr, when), known))
    if len(wanted) > 1 and any(part_of(bound.expr, known) == 0 for bound in bounds):
        way_out = f"Count COUNT(DISTINCT ({', '.join(unit_names(rows))})) instead."
        cause = "what is protected is a person's window of time, so persons as a whole cannot be counted"
        raise refuse(call, "COUNT", cause, way_out)
    if len(bounds) != 1:
        way_out = "Count one, or join texts with || first."
        raise refuse(call, "COUNT", "different combinations of several expressions cannot be counted", way_out)
    if bounds[0].type in (Type.REAL, Type.TIMESTAMP):
        cause = "real numbers and times are hardly ever equal, so that different ones are not counted"
        raise refuse(call, "COUNT", cause, "Count CAST(… AS INTEGER), or CAST(… AS DATE).")
    return Aggregate(Simple.DISTINCT, kept(without_clip(bounds[0].expr), when))


def _flat(node: exp.Expr) -> list[exp.Expr]:
    bare = node.unnest()
    return list(bare.expressions) if isinstance(bare, exp.Tuple) else [bare]


def _scale(call: exp.Expr, bound: Bound, rows: Rows) -> Scale:
    name, text = function_name(call), text_of(call.this)
    if is_person_or_null(bound.expr, rows.by_column()):
        cause = f"{name} of the unit's own column would tell about single people"
        raise refuse(call, name, cause, "Count units with COUNT(DISTINCT …).")
    if bound.type not in _NUMBERS:
        way_out = f"Count rows with COUNT(*) FILTER (WHERE …), or write {name}(CASE WHEN … THEN 1 ELSE 0 END)."
        raise refuse(call, name, f"{name} takes a number", way_out)
    if bound.low is None or bound.high is None:
        cause = f"{name}({text}) needs a public range, and none is known"
        way_out = (
            f"Write {name}(CLIP({text}, low, high)) with ends that you choose, or ask the owner to declare between."
        )
        raise refuse(call, name, cause, way_out)
    assert isinstance(bound.low, Fraction)
    assert isinstance(bound.high, Fraction)
    if any(size and not 1 / _FARTHEST < size < _FARTHEST for size in _sizes(bound.low, bound.high)):
        way_out = f"Write {name}(CLIP({text}, low, high)) with ends of an ordinary size."
        raise refuse(call, name, f"the range of {text} is too wide or too narrow to compute with", way_out)
    return Scale.of(bound.low, bound.high, bound.step, bound.type)


def _sizes(low: Fraction, high: Fraction) -> tuple[Fraction, ...]:
    return abs(low), abs(high), high - low


_SHOWN = frozenset({"ANY_VALUE", "ARG_MAX", "ARG_MIN", "ARRAY_AGG", "FIRST", "LAST", "LIST", "LISTAGG", "STRING_AGG"})


def _unknown(call: exp.Expr) -> Exception:
    name = function_name(call.this if isinstance(call, exp.WithinGroup) else call)
    cause = f"{name} shows or mixes values of single rows" if name in _SHOWN else f"{name} is not offered"
    way_out = (
        "There are COUNT, COUNT(DISTINCT x), SUM, AVG, VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP, MEDIAN, "
        "PERCENTILE_CONT, QUANTILE_CONT, MIN, MAX, MODE, TOP_K and HISTOGRAM."
    )
    return refuse(call, "SELECT", cause, way_out)
