"""From aggregates to totals: shared wherever one number serves several columns, each with its weight in the price."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from discreet.kernel.expr import Expr, Type
from discreet.kernel.grid import Grid
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.question import Cells, Count, Sum, Total, Units, Values
from discreet.sql.asked.aggregates import Aggregate, Simple, counted
from discreet.sql.asked.chosen import Choice
from discreet.sql.asked.grids import Sums, sums
from discreet.sql.descent import Target, shape_for
from discreet.sql.estimates import Kind, Statistic
from discreet.sql.plan import Averaged, Counted, Frequent, Quantile, Recipe, Spread, Summed, Tabled, centre
from discreet.sql.rows.scope import Known

_SHOWN = Fraction(1)
# A mean moves by its distance from the centre, at most half the range and typically half of that, where its count moves
# by one: a quarter in squares.
_DENOMINATOR = Fraction(1, 4)


class Totals:
    """The totals of one question, in the order in which they were first needed, with their weights."""

    def __init__(
        self,
        known: Mapping[str, Known],
        fits: Callable[[Total], bool],
        noise: type[Laplace | Gaussian],
        *,
        discovers: bool,
    ) -> None:
        self._known = known
        self._noise = noise
        self._fits = fits
        self._weights: dict[Total, Fraction] = {Units(): _SHOWN} if discovers else {}
        self._places = {total: place for place, total in enumerate(self._weights)}

    def recipes(self, aggregates: Sequence[Aggregate | Choice]) -> list[Recipe]:
        """Return what each aggregate is made of."""
        added = [each for each in aggregates if isinstance(each, Aggregate)]
        counting = [each for each in added if each.function not in (Simple.UNITS, Simple.SUM, Simple.DISTINCT)]
        counts = {self._counted(each.expr) for each in counting}
        squared = {each.expr for each in added if isinstance(each.function, Statistic)}
        return [
            self._recipe(each, counts, squared) if isinstance(each, Aggregate) else self._chosen(each)
            for each in aggregates
        ]

    def all(self) -> tuple[tuple[Total, ...], tuple[Fraction, ...]]:
        """Return the totals and their weights; if nothing is counted, one count stands in."""
        if not self._weights:
            self._add(Count(), _SHOWN)
        return tuple(self._weights), tuple(weight.limit_denominator(100) for weight in self._weights.values())

    def _counted(self, expr: Expr | None) -> Expr | None:
        return None if expr is None else counted(expr, self._known)

    def _add(self, total: Total, weight: Fraction) -> int:
        self._weights[total] = self._weights.get(total, Fraction(0)) + weight
        return self._places.setdefault(total, len(self._places))

    def _recipe(self, asked: Aggregate, counts: set[Expr | None], squared: set[Expr | None]) -> Recipe:
        if asked.function is Simple.COUNT:
            return Counted(self._add(Count(self._counted(asked.expr)), _SHOWN))
        if asked.function is Simple.UNITS:
            return Counted(self._add(Units(asked.expr), _SHOWN))
        expr, scale = asked.expr, asked.scale
        assert expr is not None
        if asked.function is Simple.DISTINCT:
            return Counted(self._add(Values(expr), _SHOWN))
        assert scale is not None
        found, count = sums(expr, scale, self._fits, squared=expr in squared), self._counted(expr)
        if asked.function is Simple.SUM:
            kind = Kind.WHOLE if expr.type is Type.INTEGER else Kind.REAL
            return self._around(found, count, kind) if count in counts and _nearer(found) else self._plain(found, kind)
        total, divisor = self._add(found.around, _SHOWN), self._add(Count(count), _DENOMINATOR)
        if asked.function is Simple.AVG:
            return Averaged(total, divisor, scale.low, scale.high)
        return Spread(self._add(found.squares, _SHOWN), total, divisor, scale.low, scale.high, asked.function)

    def _chosen(self, asked: Choice) -> Recipe:
        if isinstance(asked.function, Frequent):
            total = Cells(asked.expr, asked.places, fan=len(asked.places), depth=1)
            return Tabled(self._add(total, _SHOWN), asked.function)
        assert asked.scale is not None
        grid = Grid(asked.scale.low, asked.scale.high, asked.scale.step)
        fan, depth = shape_for(grid.last - grid.first + 1, power=2 if self._noise is Laplace else 1)
        place = self._add(Cells(asked.expr, grid, fan, depth), Fraction(depth))
        return Quantile(place, Target(asked.function.share), asked.kind, asked.origin)

    def _plain(self, found: Sums, kind: Kind) -> Summed:
        return Summed(self._add(found.plain, _SHOWN), kind)

    def _around(self, found: Sums, count: Expr | None, kind: Kind) -> Summed:
        whole = _size(found.plain) ** 2
        total = self._add(found.around, _size(found.around) ** 2 / whole)
        return Summed(total, kind, self._add(Count(count), centre(found.around) ** 2 / whole))


def _nearer(found: Sums) -> bool:
    """Tell whether a sum comes out better from the sum around the centre and a count that is released anyway.

    With values from c - h to c + h a sum alone gets noise for |c| + h; the two parts get independent noises for h and
    for |c|, whose variances add, and h² + c² is less than (|c| + h)² unless c is 0.
    """
    return _size(found.around) ** 2 + centre(found.around) ** 2 < _size(found.plain) ** 2


def _size(total: Sum) -> Fraction:
    return total.grid.size * total.grid.step
