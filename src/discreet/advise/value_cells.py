"""Public cells for the values of a column: a coarse grid that fits any data, and finer cells within a part of it."""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from discreet.kernel.sqlgen.dialect import quote_name
from discreet.policy.column_domains import ColumnType
from discreet.policy.toml import decimal_text

_MANTISSAS = (1, 2, 5)
_DECADES = {"integer": (0, 18), "real": (-6, 15), "decimal": (-6, 15)}
_YEARS = (1850, 2151)
_FINE_CELLS = 20  # of a part that is refined, at most
_FINE_CELLS_ALONE = 200  # if it is a single cell, whose values may be close together
NULL_CELL = -1


class ValueScale(Enum):
    """What the edges of cells are: values, calendar years, or months since the year 0."""

    VALUE = "{0}"
    YEAR = "EXTRACT(YEAR FROM {0})"
    MONTH = "12 * EXTRACT(YEAR FROM {0}) + EXTRACT(MONTH FROM {0}) - 1"


@dataclass(frozen=True)
class ValueCells:
    """Cells of values: below the first edge, from each edge to below the next, and from the last edge on."""

    edges: tuple[Fraction, ...]
    scale: ValueScale = ValueScale.VALUE

    def count_sql(self, table: str, column: str) -> str:
        """Return the query that counts rows by cell, and those without a value.

        >>> ValueCells((Fraction(0), Fraction(1, 2))).count_sql("visits", "cost")
        'SELECT COALESCE(WIDTH_BUCKET("cost", ARRAY[0, 0.5]), -1) AS cell, COUNT(*) AS n FROM "visits" GROUP BY cell'
        """
        value = self.scale.value.format(quote_name(column))
        edges = ", ".join(map(decimal_text, self.edges))
        cell = f"COALESCE(WIDTH_BUCKET({value}, ARRAY[{edges}]), {NULL_CELL})"
        return f"SELECT {cell} AS cell, COUNT(*) AS n FROM {quote_name(table)} GROUP BY cell"  # noqa: S608 - parsed by the front end


def coarse_cells(kind: ColumnType) -> ValueCells:
    """Return cells that end at 1, 2 and 5 times powers of ten, with both signs; for dates, calendar years.

    >>> [decimal_text(edge) for edge in coarse_cells("integer").edges[55:61]]
    ['1', '2', '5', '10', '20', '50']
    """
    if kind in ("date", "timestamp"):
        return ValueCells(tuple(map(Fraction, range(*_YEARS))), ValueScale.YEAR)
    first, last = _DECADES[kind]
    sizes = [Fraction(10) ** power * mantissa for power in range(first, last) for mantissa in _MANTISSAS]
    return ValueCells((*(-size for size in reversed(sizes)), Fraction(0), *sizes))


def fine_cells(
    low: tuple[Fraction, Fraction], high: tuple[Fraction, Fraction], scale: ValueScale, *, whole: bool
) -> ValueCells:
    """Return finer cells of the lowest and the highest occupied coarse cell; those of years are months.

    >>> fine = fine_cells((Fraction(0), Fraction(1)), (Fraction(5), Fraction(10)), ValueScale.VALUE, whole=True)
    >>> [int(edge) for edge in fine.edges]
    [0, 1, 5, 6, 7, 8, 9, 10]
    """
    if scale is ValueScale.YEAR:
        months = {Fraction(month) for year in (low, high) for month in range(int(12 * year[0]), int(12 * year[1]) + 1)}
        return ValueCells(tuple(sorted(months)), ValueScale.MONTH)
    if low == high:
        return ValueCells(_divided(*low, _FINE_CELLS_ALONE, whole=whole))
    edges = {*_divided(*low, _FINE_CELLS, whole=whole), *_divided(*high, _FINE_CELLS, whole=whole)}
    return ValueCells(tuple(sorted(edges)))


def _divided(low: Fraction, high: Fraction, cells: int, *, whole: bool) -> tuple[Fraction, ...]:
    """Return the ends and the multiples of a round step between them."""
    step = round_step(low, high, cells, whole=whole)
    inner = (step * number for number in range(low // step + 1, -(-high // step)))
    return (low, *inner, high)


def round_step(low: Fraction, high: Fraction, cells: int, *, whole: bool) -> Fraction:
    """Return the smallest of 1, 2 and 5 times a power of ten that divides a range into at most this many cells.

    >>> round_step(Fraction(17), Fraction(90), 20, whole=True), round_step(Fraction(0), Fraction(1), 20, whole=False)
    (Fraction(5, 1), Fraction(1, 20))
    """
    least = max((high - low) / cells, Fraction(1) if whole else Fraction(0))
    power = Fraction(10) ** (len(str(int(least))) - 1 if least >= 1 else -len(str(int(1 / least))))
    return next(step for mantissa in (1, 2, 5, 10, 20) if (step := mantissa * power) >= least)
