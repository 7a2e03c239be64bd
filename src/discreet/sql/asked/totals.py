"""From aggregates to totals: shared wherever one number serves several columns, each with its weight in the price."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from discreet.kernel.expr import Expr, Type
from discreet.kernel.question import Count, Sum, Total, Units
from discreet.sql.asked.aggregates import Aggregate, Simple, counted
from discreet.sql.asked.grids import Sums, sums
from discreet.sql.estimates import Kind, Statistic
from discreet.sql.plan import Averaged, Counted, Recipe, Spread, Summed, centre
from discreet.sql.rows.scope import Known

_SHOWN = Fraction(1)
# A mean moves by its distance from the centre, at most half the range and typically half of that, where its count moves
# by one: a quarter in squares.
_DENOMINATOR = Fraction(1, 4)


class Totals:
    """The totals of one question, in the order in which they were first needed, with their weights."""

    def __init__(self, known: Mapping[str, Known], fits: Callable[[Total], bool], *, discovers: bool) -> None:
        self._known = known
        self._fits = fits
        self._weights: dict[Total, Fraction] = {Units(): _SHOWN} if discovers else {}

    def recipes(self, aggregates: Sequence[Aggregate]) -> list[Recipe]:
        """Return what each aggregate is made of."""
        counting = [each for each in aggregates if each.function not in (Simple.UNITS, Simple.SUM)]
        counts = {self._counted(each.expr) for each in counting}
        squared = {each.expr for each in aggregates if isinstance(each.function, Statistic)}
        return [self._recipe(each, counts, squared) for each in aggregates]

    def all(self) -> tuple[tuple[Total, ...], tuple[Fraction, ...]]:
        """Return the totals and their weights; if nothing is counted, one count stands in."""
        if not self._weights:
            self._add(Count(), _SHOWN)
        return tuple(self._weights), tuple(weight.limit_denominator(100) for weight in self._weights.values())

    def _counted(self, expr: Expr | None) -> Expr | None:
        return None if expr is None else counted(expr, self._known)

    def _add(self, total: Total, weight: Fraction) -> int:
        self._weights[total] = self._weights.get(total, Fraction(0)) + weight
        return list(self._weights).index(total)

    def _recipe(self, asked: Aggregate, counts: set[Expr | None], squared: set[Expr | None]) -> Recipe:
        if asked.function is Simple.COUNT:
            return Counted(self._add(Count(self._counted(asked.expr)), _SHOWN))
        if asked.function is Simple.UNITS:
            return Counted(self._add(Units(asked.expr), _SHOWN))
        expr, scale = asked.expr, asked.scale
        assert expr is not None
        assert scale is not None
        found, count = sums(expr, scale, self._fits, squared=expr in squared), self._counted(expr)
        if asked.function is Simple.SUM:
            kind = Kind.WHOLE if expr.type is Type.INTEGER else Kind.REAL
            return self._around(found, count, kind) if count in counts and _nearer(found) else self._plain(found, kind)
        total, divisor = self._add(found.around, _SHOWN), self._add(Count(count), _DENOMINATOR)
        if asked.function is Simple.AVG:
            return Averaged(total, divisor, scale.low, scale.high)
        return Spread(self._add(found.squares, _SHOWN), total, divisor, scale.low, scale.high, asked.function)

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
