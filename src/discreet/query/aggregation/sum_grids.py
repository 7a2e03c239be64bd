"""Grids for sums: fine for sums, centred for means, coarser for squares."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from discreet.kernel.expr import Call, Constant, Expr, Type
from discreet.kernel.grid import Grid
from discreet.kernel.relation import MAX_SUM
from discreet.kernel.totals import Sum, Total
from discreet.policy.column_domains import default_step

_HALF_RANGE_STEPS = 1 << 12  # steps in half the range, for squares: a square has the square of this many
_MAX_DOUBLINGS = 120


@dataclass(frozen=True)
class Scale:
    """The public range of a number, and its rounding step."""

    low: Fraction
    high: Fraction
    step: Fraction

    @classmethod
    def with_default_step(cls, low: Fraction, high: Fraction, step: Fraction | None, kind: Type) -> "Scale":
        """Return a scale with the policy's default step, or step 1 for integers, if none is given."""
        if step is None and low < high:
            step = default_step(low, high)
        elif step is None:
            step = default_step(Fraction(0), abs(low)) if low else Fraction(1)
        return cls(low, high, max(step, Fraction(1)) if kind is Type.INTEGER else step)


@dataclass(frozen=True)
class SumTotals:
    """The sums of one expression; mean and variance share the centred sum."""

    uncentred: Sum
    centred: Sum
    squares: Sum


def finest_grid(scale: Scale, rows: int) -> Grid:
    """Return the finest grid whose sum over `rows` rows fits into 64 bits."""
    step = scale.step
    for _ in range(_MAX_DOUBLINGS):
        try:
            grid = Grid(scale.low, scale.high, step)
        except ValueError:  # more steps than a grid may have
            step *= 2
            continue
        if grid.max_abs_index * rows < MAX_SUM:
            return grid
        step *= 2
    raise ValueError("the sum could exceed 64 bits")


def sum_totals(expr: Expr, scale: Scale, fits: Callable[[Total], bool], *, squared: bool) -> SumTotals:
    """Return the sums of an expression on the finest grids whose totals fit into 64 bits.

    >>> from discreet.kernel.expr import Column
    >>> zero_or_one = Scale.with_default_step(Fraction(0), Fraction(1), None, Type.INTEGER)
    >>> totals = sum_totals(Column("x", Type.INTEGER), zero_or_one, lambda total: True, squared=True)
    >>> uncentred, centred, squares = totals.uncentred.grid, totals.centred.grid, totals.squares.grid
    >>> uncentred.max_abs_index, str(centred.step), centred.max_abs_index, squares.max_abs_index
    (1, '1/2', 1, 4096)
    """
    for level in range(_MAX_DOUBLINGS):
        # Squares have few steps already, so they are coarsened no more than they need.
        for squares_level in range(level + 1) if squared else (level,):
            try:
                totals = _sum_totals_on(expr, scale, 1 << level, 1 << squares_level)
            except ValueError:  # more steps than a grid may have
                continue
            if fits(totals.uncentred) and fits(totals.centred) and (not squared or fits(totals.squares)):
                return totals
    raise ValueError("the sum could exceed 64 bits")


def product_total(x: Sum, y: Sum, fits: Callable[[Total], bool]) -> Sum:
    """Return the sum of (x - centre)·(y - centre), with the centres of two centred sums."""
    largest = max_magnitude(x) * max_magnitude(y)
    product = Call("multiply", (_centred_value(x), _centred_value(y)))
    scale = Scale.with_default_step(-largest, largest, None, Type.REAL)
    return sum_totals(product, scale, fits, squared=False).uncentred


def _centred_value(total: Sum) -> Expr:
    """Return the clamped value minus the centre, as a real."""
    value = total.expr if total.expr.type is Type.REAL else Call("to_real", (total.expr,))
    low, high, centre = (
        Constant(float(end), Type.REAL)
        for end in (total.grid.low, total.grid.high, total.grid.offset * total.grid.step)
    )
    return Call("subtract", (Call("clip", (value, low, high)), centre))


def max_magnitude(total: Sum) -> Fraction:
    """Return the largest absolute value of a term."""
    return total.grid.max_abs_index * total.grid.step


def _sum_totals_on(expr: Expr, scale: Scale, factor: int, squares_factor: int) -> SumTotals:
    fine, rough = scale.step * factor, _squares_step(scale) * squares_factor
    middle = round((scale.low + scale.high) / 2 / rough) * rough
    around = fine
    while middle % around and around > rough:
        around /= 2  # with few steps, the centre may lie between two of them
    squares = Grid(scale.low, scale.high, rough, int(middle / rough))
    return SumTotals(
        Sum(expr, Grid(scale.low, scale.high, fine)),
        Sum(expr, Grid(scale.low, scale.high, around, int(middle / around))),
        # Subtracting half of the largest square halves the largest absolute value.
        Sum(expr, squares, power=2, shift=squares.max_abs_index**2 // 2),
    )


def _squares_step(scale: Scale) -> Fraction:
    """Return the step for squares: doubled or halved until half the range has about 2^12 steps."""
    half, step = (scale.high - scale.low) / 2, scale.step
    while half > _HALF_RANGE_STEPS * step:
        step *= 2
    while 0 < half <= _HALF_RANGE_STEPS // 2 * step:
        step /= 2
    return step
