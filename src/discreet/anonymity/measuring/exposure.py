"""How exposed a sensitive column is: l-diversity, t-closeness and their kin, each at its worst class."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from discreet.anonymity.coding.cells import Cells, cells_of
from discreet.anonymity.coding.classes import Classes
from discreet.anonymity.coding.columns import Column
from discreet.anonymity.measuring import closeness, diversity

_DIGITS = 12  # so that a half is a half, whatever the order in which floats were added


@dataclass(frozen=True)
class Exposure:
    """What the classes tell about one sensitive column; `values` is how many different ones the table has.

    l               the fewest different values in a class
    entropy_l       the exponential of the smallest entropy of a class, at most l
    recursive       (c, l): the table is recursive (c', l)-diverse for every c' above c, and for no other
    alpha           the largest share of one value in a class: how sure an attacker can be
    beta            the largest relative gain (q - p)/p of a value's share q in a class over its share p in the table
    enhanced_beta   the same, if no value gains more than -ln p; else infinite
    delta           the largest |ln(q/p)| of a value that a class has; values that it lacks are left out
    t               the largest earth mover's distance of a class from the table, by `distance`
    homogeneous     the classes in which everybody has the same value, and `exposed`: their rows' positions

    >>> import pyarrow as pa
    >>> from discreet.anonymity import measure
    >>> table = pa.table({"age": [30, 30, 40, 40], "ill": ["flu", "flu", "flu", "no"]})
    >>> ill = measure(table, "age", "ill").sensitive[0]
    >>> ill.l, ill.t, ill.alpha, ill.homogeneous, ill.exposed.tolist()
    (1, 0.25, 1.0, 1, [0, 1])
    """

    column: str
    values: int
    l: int  # noqa: E741 - what everybody calls it
    entropy_l: float
    recursive: tuple[float, int]
    alpha: float
    beta: float
    enhanced_beta: float
    delta: float
    t: float
    distance: str
    homogeneous: int
    exposed: np.ndarray = field(repr=False, compare=False)


def exposure(column: Column, classes: Classes, levels: Sequence[np.ndarray] | None = None) -> Exposure:
    """Measure a sensitive column; `levels` are those of its hierarchy, if it has one."""
    cells = cells_of(classes, column.codes)
    distinct = diversity.distinct(cells)
    least = int(distinct.min())
    gains = diversity.gains(cells)
    share = cells.totals[cells.values] / cells.rows
    beta = _rounded(gains.max())
    distance, t = _farthest(cells, column, levels)
    return Exposure(
        column=column.name,
        values=len(column.values),
        l=least,
        entropy_l=_rounded(np.exp(diversity.entropies(cells).min())),
        recursive=(_rounded(diversity.recursive(cells, least).max()), least),
        alpha=_rounded(diversity.largest_shares(cells).max()),
        beta=beta,
        enhanced_beta=beta if (gains <= -np.log(share) + 10.0**-_DIGITS).all() else math.inf,
        delta=_rounded(np.abs(np.log1p(gains)).max()),
        t=t,
        distance=distance,
        homogeneous=int(np.count_nonzero(distinct == 1)),
        exposed=np.flatnonzero((distinct == 1)[classes.ids]),
    )


def _farthest(cells: Cells, column: Column, levels: Sequence[np.ndarray] | None) -> tuple[str, float]:
    if levels is not None:
        return "hierarchical", _rounded(closeness.hierarchical_distances(cells, levels).max())
    if column.ordered:
        return "ordered", _rounded(closeness.ordered_distances(cells, column.null).max())
    return "equal", _rounded(closeness.equal_distances(cells).max())


def _rounded(number: float) -> float:
    return round(float(number), _DIGITS)
