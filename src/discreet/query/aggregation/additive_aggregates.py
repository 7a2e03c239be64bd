"""Additive aggregates (counts, sums, means, variances, statistics of pairs), and the public range of their values."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from sqlglot import exp

from discreet.estimate.estimators import VarianceStatistic
from discreet.estimate.pair_statistics import PairStatistic
from discreet.kernel.expr import Call, Constant, Expr, Type
from discreet.query.aggregation.quantile_aggregates import (
    ValueAggregate,
    bind_operand,
    bind_value_aggregate,
    null_unless,
    owner_hint,
)
from discreet.query.aggregation.sum_grids import Scale
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.expressions.operands import TYPE_NAMES
from discreet.query.relations.bound_sources import ColumnInfo, PrivateSource, bind_clamped, bind_stored, without_clip
from discreet.query.relations.ownership import is_unit_or_null, never_null, unit_key_index, unit_key_names
from discreet.query.relations.predicates import bind_condition, conjunction
from discreet.query.syntax.syntax_tree import check_row_wise, flat_terms, function_name, refuse, short_sql

_ONE = Constant(1, Type.INTEGER)
_NUMBERS = (Type.INTEGER, Type.REAL)
_MAX_MAGNITUDE = Fraction(10) ** 60  # the variance of noise on a sum of squares must still fit a double


class BasicFunction(Enum):
    """Aggregate functions that are computed from counts and sums."""

    COUNT = "count"
    COUNT_UNITS = "units"
    SUM = "sum"
    AVG = "avg"
    COUNT_DISTINCT = "distinct"


AggregateFunction = BasicFunction | VarianceStatistic


@dataclass(frozen=True)
class Aggregate:
    """An aggregate over the rows where `expr` is not NULL (all rows if None); `scale` is set if it sums values."""

    function: AggregateFunction
    expr: Expr | None
    scale: Scale | None = None


@dataclass(frozen=True)
class PairAggregate:
    """A statistic of value pairs; `x` and `y` are their means over the rows where both are not NULL."""

    function: PairStatistic
    x: Aggregate
    y: Aggregate

    @property
    def counted(self) -> Expr:
        """The simpler of two expressions that are not NULL in the same rows."""
        operands = [each.expr for each in (self.x, self.y) if each.expr is not None]
        return min(operands, key=lambda expr: (expr.size, repr(expr)))


SelectedAggregate = Aggregate | PairAggregate | ValueAggregate

_SUMMING: dict[type[exp.Expr], AggregateFunction] = {
    exp.Sum: BasicFunction.SUM,
    exp.Avg: BasicFunction.AVG,
    exp.Variance: VarianceStatistic.VAR_SAMP,
    exp.VariancePop: VarianceStatistic.VAR_POP,
    exp.Stddev: VarianceStatistic.STDDEV_SAMP,
    exp.StddevSamp: VarianceStatistic.STDDEV_SAMP,
    exp.StddevPop: VarianceStatistic.STDDEV_POP,
}
_PAIRS: dict[type[exp.Expr], PairStatistic | None] = {
    exp.CovarPop: PairStatistic.COVAR_POP,
    exp.CovarSamp: PairStatistic.COVAR_SAMP,
    exp.Corr: PairStatistic.CORR,
    exp.RegrSlope: PairStatistic.REGR_SLOPE,
    exp.RegrIntercept: PairStatistic.REGR_INTERCEPT,
    exp.RegrR2: PairStatistic.REGR_R2,
    **dict.fromkeys((exp.RegrCount, exp.RegrAvgx, exp.RegrAvgy)),
}


def bind_aggregate(node: exp.Expr, rows: PrivateSource) -> SelectedAggregate:
    """Bind an aggregate call and its FILTER."""
    call, when = split_filter(node, rows)
    if type(call) in _PAIRS:
        return _bind_pair(call, rows, when)
    if not isinstance(call, exp.Count | exp.CountIf | exp.ApproxDistinct) and type(call) not in _SUMMING:
        for argument in _aggregate_arguments(call):
            _check_argument(argument)
        choice = bind_value_aggregate(call, rows, when)
        if choice is None:
            raise _unsupported_refusal(call)
        return choice
    check_arguments(call)
    if isinstance(call, exp.ApproxDistinct):
        call = exp.Count(this=exp.Distinct(expressions=[call.this]))
    if isinstance(call, exp.Count):
        return _bind_count(call, rows, when)
    if isinstance(call, exp.CountIf):
        test = bind_condition(call.this, rows.views, "COUNT_IF")
        return Aggregate(BasicFunction.COUNT, null_unless(null_unless(_ONE, test), when))
    bound, scale = _bind_summed(call, call.this, rows)
    return Aggregate(_SUMMING[type(call)], null_unless(without_clip(bound.expr), when), scale)


def _bind_summed(call: exp.Expr, node: exp.Expr, rows: PrivateSource) -> tuple[BoundExpr, Scale]:
    """Bind an operand whose values are summed."""
    name = function_name(call)
    if isinstance(node, exp.Distinct):
        hint = "Leave out DISTINCT, or aggregate per unit in a subquery first."
        raise refuse(call, "SELECT", f"{name}(DISTINCT …) is not supported", hint)
    bound = bind_operand(call, node, rows)
    return bound, _summation_scale(call, node, bound, rows)


def _bind_pair(call: exp.Expr, rows: PrivateSource, when: Expr | None) -> Aggregate | PairAggregate:
    """Bind a statistic of pairs, which come as (y, x), over the rows where both are not NULL."""
    if call.this is None or call.args.get("expression") is None:
        name = function_name(call)
        raise refuse(call, name, f"{name} takes two expressions", f"Write {name}(y, x).")
    check_arguments(call)
    columns = rows.columns_by_name()
    operands = [_bind_summed(call, node, rows) for node in (call.this, call.expression)]
    exprs = [without_clip(bound.expr) for bound, _ in operands]
    present = [None if never_null(expr, columns) else Call("not", (Call("is_null", (expr,)),)) for expr in exprs]
    y, x = (
        Aggregate(BasicFunction.AVG, null_unless(expr, conjunction([each for each in (other, when) if each])), scale)
        for expr, other, (_, scale) in zip(exprs, reversed(present), operands, strict=True)
    )
    match call:
        case exp.RegrAvgx():
            return x
        case exp.RegrAvgy():
            return y
    statistic = _PAIRS[type(call)]
    pair = PairAggregate(statistic or PairStatistic.CORR, x, y)
    return pair if statistic else Aggregate(BasicFunction.COUNT, count_operand(pair.counted, columns))


def split_filter(node: exp.Expr, rows: PrivateSource) -> tuple[exp.Expr, Expr | None]:
    """Return an aggregate call without its FILTER, and the condition of the FILTER."""
    if isinstance(node, exp.Filter):
        return node.this, bind_condition(node.expression.this, rows.views, "FILTER")
    return node, None


def check_arguments(call: exp.Expr) -> None:
    """Refuse an aggregate without arguments, or with arguments that need more than one row."""
    if call.this is None:
        name = function_name(call)
        raise refuse(call, name, f"{name} needs an expression", f"Write {name}(…) with an expression, or COUNT(*).")
    for argument in call.iter_expressions():
        _check_argument(argument)


def _aggregate_arguments(call: exp.Expr) -> list[exp.Expr]:
    """Return the arguments of an aggregate and the expressions of its ORDER BY."""
    if isinstance(call, exp.WithinGroup):
        return [*call.this.iter_expressions(), *call.expression.iter_expressions()]
    return list(call.iter_expressions())


def _check_argument(node: exp.Expr) -> None:
    check_row_wise(node, "SELECT", ("aggregate functions cannot be nested", "Aggregate per unit in a subquery first."))


def _bind_count(call: exp.Count, rows: PrivateSource, when: Expr | None) -> Aggregate:
    if isinstance(call.this, exp.Distinct):
        return _bind_count_distinct(call, rows, when)
    if call.expressions:
        raise refuse(call, "SELECT", "COUNT takes one expression", "Count one column, or *.")
    if isinstance(call.this, exp.Star):
        return Aggregate(BasicFunction.COUNT, count_operand(null_unless(_ONE, when), rows.columns_by_name()))
    bound = bind_clamped(call.this, rows.views, "COUNT")
    return Aggregate(
        BasicFunction.COUNT, count_operand(null_unless(without_clip(bound.expr), when), rows.columns_by_name())
    )


def count_operand(expr: Expr, columns: Mapping[str, ColumnInfo]) -> Expr | None:
    """Return the simplest expression that is NULL in the same rows; None if there are no such rows."""
    if never_null(expr, columns):
        return None
    match expr:
        case Call("case", (when, value, Constant(None))) if never_null(value, columns):
            return null_unless(_ONE, when)
    return expr


def _bind_count_distinct(call: exp.Count, rows: PrivateSource, when: Expr | None) -> Aggregate:
    """Bind COUNT(DISTINCT …), of units or of values."""
    columns = rows.columns_by_name()
    nodes = [part for expression in call.this.expressions for part in flat_terms(expression)]
    bounds = [bind_stored(node, rows.views, "COUNT") for node in nodes]
    unit = rows.relation.shape.unit
    unit_parts = set(range(len(unit or ())))
    if unit_parts and {unit_key_index(bound.expr, columns) for bound in bounds} == unit_parts:
        nullable = [bound.expr for bound in bounds if not never_null(bound.expr, columns)]
        return Aggregate(
            BasicFunction.COUNT_UNITS, count_operand(null_unless(nullable[0] if nullable else _ONE, when), columns)
        )
    if unit_parts == {0} and len(bounds) == 1 and is_unit_or_null(bounds[0].expr, columns):
        return Aggregate(BasicFunction.COUNT_UNITS, count_operand(null_unless(bounds[0].expr, when), columns))
    if len(unit_parts) > 1 and any(unit_key_index(bound.expr, columns) == 0 for bound in bounds):
        hint = f"Use COUNT(DISTINCT ({', '.join(unit_key_names(rows))}))."
        cause = "the privacy unit is a person within a time window, so distinct persons cannot be counted"
        raise refuse(call, "COUNT", cause, hint)
    if len(bounds) != 1:
        hint = "Count one expression, or concatenate text columns with ||."
        raise refuse(call, "COUNT", "COUNT(DISTINCT …) of several expressions is not supported", hint)
    if bounds[0].type in (Type.REAL, Type.TIMESTAMP):
        cause = "COUNT(DISTINCT …) of double precision or timestamp is not supported"
        raise refuse(call, "COUNT", cause, "Count CAST(… AS INTEGER), or CAST(… AS DATE).")
    return Aggregate(BasicFunction.COUNT_DISTINCT, null_unless(without_clip(bounds[0].expr), when))


def _summation_scale(call: exp.Expr, node: exp.Expr, bound: BoundExpr, rows: PrivateSource) -> Scale:
    name, text = function_name(call), short_sql(node)
    clipped = f"CLIP({text}, low, high)" if type(call) in _PAIRS else f"{name}(CLIP({text}, low, high))"
    if bound.type not in _NUMBERS:
        if type(call) in _PAIRS:
            cause = f"{name} needs two numbers, and {text} is not one"
            raise refuse(call, name, cause, f"Write CASE WHEN {text} = … THEN 1 ELSE 0 END.")
        hint = f"Count rows with COUNT(*) FILTER (WHERE …), or write {name}(CASE WHEN … THEN 1 ELSE 0 END)."
        if bound.type in (Type.DATE, Type.TIMESTAMP):
            hint = f"Use MEDIAN, or a number of days: DATE_DIFF('day', DATE '2010-01-31', {text})."
        raise refuse(call, name, f"{name} needs a number, not {TYPE_NAMES[bound.type]}: {name}({text})", hint)
    if bound.low is None or bound.high is None:
        cause = f"{text} in {name} needs bounds" if type(call) in _PAIRS else f"{name}({text}) needs bounds"
        hint = f"Write {clipped} with bounds of your choice"
        raise refuse(call, name, cause, hint + owner_hint(bound, rows))
    assert isinstance(bound.low, Fraction)
    assert isinstance(bound.high, Fraction)
    magnitudes = abs(bound.low), abs(bound.high), bound.high - bound.low
    if any(size and not 1 / _MAX_MAGNITUDE < size < _MAX_MAGNITUDE for size in magnitudes):
        hint = f"Write {clipped} with bounds of an ordinary size."
        raise refuse(call, name, f"the range of {text} is too wide or too narrow to compute with", hint)
    return Scale.with_default_step(bound.low, bound.high, bound.step, bound.type)


_ROW_REVEALING = frozenset(
    {"ANY_VALUE", "ARG_MAX", "ARG_MIN", "ARRAY_AGG", "FIRST", "LAST", "LIST", "LISTAGG", "STRING_AGG"}
)


def _unsupported_refusal(call: exp.Expr) -> Exception:
    name = function_name(call)
    cause = f"{name} would disclose values of individual rows" if name in _ROW_REVEALING else f"{name} is not supported"
    hint = (
        "Supported: COUNT, COUNT(DISTINCT x), SUM, AVG, VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP, CORR, COVAR_POP, "
        "COVAR_SAMP, REGR_SLOPE, REGR_INTERCEPT, REGR_R2, MEDIAN, PERCENTILE_CONT, QUANTILE_CONT, MIN, MAX, MODE, "
        "TOP_K and HISTOGRAM."
    )
    return refuse(call, "SELECT", cause, hint)
