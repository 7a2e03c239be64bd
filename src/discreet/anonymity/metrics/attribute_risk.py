"""Attribute-disclosure risk of a sensitive column: l-diversity, t-closeness and related measures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.anonymity.encoding.encoded_table import EncodedColumn
from discreet.anonymity.encoding.equivalence_classes import EquivalenceClasses, contingency_table
from discreet.anonymity.metrics.t_closeness import (
    distance_measure,
    distinct_counts,
    entropies,
    largest_shares,
    recursive_ratios,
    relative_gains,
)

_DIGITS = 12  # hides rounding errors that depend on the order of summation


@dataclass(frozen=True)
class AttributeRisk:
    """Attribute-disclosure risk of one sensitive column; `values` is its number of distinct values in the table.

    l               the smallest number of distinct values in a class
    entropy_l       the exponential of the smallest entropy of a class, at most l
    recursive       (c, l): the table is recursive (c', l)-diverse exactly for the c' above c
    alpha           the largest share of one value in a class, the attacker's highest confidence
    beta            the largest relative gain (q - p)/p of a value's share q in a class over its share p in the table
    enhanced_beta   the same if no value gains more than -ln p, otherwise infinite
    delta           the largest |ln(q/p)| of a value that occurs in a class
    t               the largest earth mover's distance of a class from the table, with the ground distance `distance`
    homogeneous     the number of classes with a single value; `exposed_rows` are the positions of their rows

    >>> import pyarrow as pa
    >>> from discreet.anonymity import measure
    >>> table = pa.table({"age": [30, 30, 40, 40], "ill": ["flu", "flu", "flu", "no"]})
    >>> ill = measure(table, "age", "ill").attribute_risk("ill")
    >>> ill.l, ill.t, ill.alpha, ill.homogeneous, ill.exposed_rows.tolist()
    (1, 0.25, 1.0, 1, [0, 1])
    """

    column: str
    values: int
    l: int  # noqa: E741 - the name in the literature
    entropy_l: float
    recursive: tuple[float, int]
    alpha: float
    beta: float
    enhanced_beta: float
    delta: float
    t: float
    distance: str
    homogeneous: int
    exposed_rows: np.ndarray = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the measures for JSON; infinite values become None, and exposed rows are counted, not listed."""
        names = ("values", "l", "entropy_l", "alpha", "beta", "enhanced_beta", "delta", "t", "distance", "homogeneous")
        c, min_l = self.recursive
        return {
            **{name: _none_if_infinite(getattr(self, name)) for name in names},
            "recursive": [_none_if_infinite(c), min_l],
            "exposed": len(self.exposed_rows),
        }


def _none_if_infinite(value: Any) -> Any:
    return None if value == math.inf else value


def measure_attribute_risk(
    column: EncodedColumn, classes: EquivalenceClasses, levels: Sequence[np.ndarray] | None = None
) -> AttributeRisk:
    """Measure a sensitive column; `levels` are the levels of its hierarchy, if it has one."""
    cells = contingency_table(classes, column.codes)
    distinct = distinct_counts(cells)
    min_distinct = int(distinct.min())
    gains = relative_gains(cells)
    share = cells.totals[cells.values] / cells.row_count
    beta = _round(gains.max())
    distance, distances, _ = distance_measure(column, levels)
    return AttributeRisk(
        column=column.name,
        values=len(column.values),
        l=min_distinct,
        entropy_l=_round(np.exp(entropies(cells).min())),
        recursive=(_round(recursive_ratios(cells, min_distinct).max()), min_distinct),
        alpha=_round(largest_shares(cells).max()),
        beta=beta,
        enhanced_beta=beta if (gains <= -np.log(share) + 10.0**-_DIGITS).all() else math.inf,
        delta=_round(np.abs(np.log1p(gains)).max()),
        t=_round(distances(cells).max()),
        distance=distance,
        homogeneous=int(np.count_nonzero(distinct == 1)),
        exposed_rows=np.flatnonzero((distinct == 1)[classes.ids]),
    )


def _round(number: float) -> float:
    return round(float(number), _DIGITS)
