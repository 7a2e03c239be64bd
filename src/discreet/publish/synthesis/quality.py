"""The quality report of a synthesis: what paid distances say about pairs of columns."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from discreet.publish.synthesis.junction_tree import Columns

_MARGIN = {1: math.log(20) / math.sqrt(2), 2: 1.959964}  # of 95 %, in standard deviations


@dataclass(frozen=True)
class PairQuality:
    """Estimated total variation between the data and the model in a pair of columns; None is not known.

    The pair was measured, or its merged columns were.
    """

    columns: Columns
    measured: bool
    total_variation: float | None


@dataclass(frozen=True)
class QualityReport:
    """The estimates for all pairs with the 95 % margin of each, and the mean of those that are known."""

    pairs: tuple[PairQuality, ...]
    margin: float | None
    mean: float | None
    mean_margin: float | None


def quality_report(
    total: float,
    pairs: Mapping[Columns, bool],
    distances: Mapping[Columns, float],
    deviation: float,
    norm: Literal[1, 2],
) -> QualityReport:
    """Return what noisy distances between the data and a model's tables say of pairs, which were measured or not.

    Half the distance over the model's total is the total variation; so a wrong number of rows counts too.

    >>> pairs = {(0, 1): True, (0, 2): False, (1, 2): False}
    >>> report = quality_report(100, pairs, {(0, 1): 8.0, (0, 2): 30.0}, deviation=5.0, norm=2)
    >>> report.mean, round(report.mean_margin, 4)
    (0.095, 0.0346)
    >>> report.pairs[2]
    PairQuality(columns=(1, 2), measured=False, total_variation=None)
    """
    variations = {pair: distance / (2 * total) for pair, distance in distances.items()}
    reported = tuple(
        PairQuality(pair, measured, _clamp(variations[pair]) if pair in variations else None)
        for pair, measured in pairs.items()
    )
    if not variations:
        return QualityReport(reported, None, None, None)
    margin = _MARGIN[norm] * deviation / (2 * total)
    mean = _clamp(sum(variations.values()) / len(variations))
    return QualityReport(reported, margin, mean, margin / math.sqrt(len(variations)))


def _clamp(share: float) -> float:
    return min(max(share, 0.0), 1.0)
