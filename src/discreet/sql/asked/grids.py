"""Which grids an expression is summed on: fine for sums, centred for means, coarser for squares."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from discreet.kernel.expr import Expr, Type
from discreet.kernel.grid import Grid
from discreet.kernel.question import Sum, Total
from discreet.kernel.relation import MOST
from discreet.policy.columns import default_step

_HALF_RANGE = 1 << 12  # steps of half the range, for squares: their own size is the square of that
_MOST_LEVELS = 120


@dataclass(frozen=True)
class Scale:
    """The public range of a number, and how finely it is to be rounded."""

    low: Fraction
    high: Fraction
    step: Fraction

    @classmethod
    def of(cls, low: Fraction, high: Fraction, step: Fraction | None, kind: Type) -> "Scale":
        """Choose a step where none is given: the policy's rule, and whole numbers for integers."""
        if step is None and low < high:
            step = default_step(low, high)
        elif step is None:
            step = default_step(Fraction(0), abs(low)) if low else Fraction(1)
        return cls(low, high, max(step, Fraction(1)) if kind is Type.INTEGER else step)


@dataclass(frozen=True)
class Sums:
    """The totals that serve one expression; mean and spread share their centre, and so the sum around it."""

    plain: Sum
    around: Sum
    squares: Sum


def steps_grid(scale: Scale, rows: int) -> Grid:
    """Return the finest grid whose sum over so many rows fits into 64 bits."""
    step = scale.step
    for _ in range(_MOST_LEVELS):
        try:
            grid = Grid(scale.low, scale.high, step)
        except ValueError:  # more steps than a grid may have
            step *= 2
            continue
        if grid.size * rows < MOST:
            return grid
        step *= 2
    raise ValueError("the sum could exceed 64 bits")


def sums(expr: Expr, scale: Scale, fits: Callable[[Total], bool], *, squared: bool) -> Sums:
    """Return the sums of an expression on the finest grids whose totals fit into 64 bits.

    >>> from discreet.kernel.expr import Column
    >>> zero_or_one = Scale.of(Fraction(0), Fraction(1), None, Type.INTEGER)
    >>> found = sums(Column("x", Type.INTEGER), zero_or_one, lambda total: True, squared=True)
    >>> found.plain.grid.size, str(found.around.grid.step), found.around.grid.size, found.squares.grid.size
    (1, '1/2', 1, 4096)
    """
    for level in range(_MOST_LEVELS):
        try:
            found = _sums(expr, scale, 1 << level)
        except ValueError:  # more steps than a grid may have
            continue
        if fits(found.plain) and fits(found.around) and (not squared or fits(found.squares)):
            return found
    raise ValueError("the sum could exceed 64 bits")


def _sums(expr: Expr, scale: Scale, coarser: int) -> Sums:
    fine, rough = scale.step * coarser, _rough(scale) * coarser
    middle = round((scale.low + scale.high) / 2 / rough) * rough
    around = fine
    while middle % around and around > rough:
        around /= 2  # with few steps the middle may lie between two of them, and would be half a step off
    squares = Grid(scale.low, scale.high, rough, int(middle / rough))
    return Sums(
        Sum(expr, Grid(scale.low, scale.high, fine)),
        Sum(expr, Grid(scale.low, scale.high, around, int(middle / around))),
        # Less half of the largest square, so that the farthest is half as far.
        Sum(expr, squares, power=2, shift=squares.size**2 // 2),
    )


def _rough(scale: Scale) -> Fraction:
    """Return the step for squares: the fine one, doubled or halved until half the range is some 2^12 of them."""
    half, step = (scale.high - scale.low) / 2, scale.step
    while half > _HALF_RANGE * step:
        step *= 2
    while 0 < half <= _HALF_RANGE // 2 * step:
        step /= 2
    return step
