"""The quality report of a synthesis: what paid distances say about pairs of columns."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from discreet.publish.synthesis.graphical_model import GraphicalModel
from discreet.publish.synthesis.junction_tree import Columns

_MARGIN = {1: math.log(20) / math.sqrt(2), 2: 1.959964}  # of 95 %, in standard deviations


@dataclass(frozen=True)
class PairQuality:
    """Estimated total variation between the data and the model in a pair of columns; None is not known."""

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
    model: GraphicalModel, distances: Mapping[Columns, float], deviation: float, norm: Literal[1, 2]
) -> QualityReport:
    """Return what noisy distances between the data and a model's tables say.

    Half the distance over the model's total is the total variation; so a wrong number of rows counts too.

    >>> from discreet.publish.synthesis.graphical_model import independent_model
    >>> model = independent_model([2, 2, 2], total=100)
    >>> report = quality_report(model, {(0, 1): 8.0, (0, 2): 30.0}, deviation=5.0, norm=2)
    >>> report.mean, round(report.mean_margin, 4)
    (0.095, 0.0346)
    >>> report.pairs[2]
    PairQuality(columns=(1, 2), measured=False, total_variation=None)
    """
    variations = {pair: distance / (2 * model.total) for pair, distance in distances.items()}
    pairs = tuple(
        PairQuality(pair, pair in model.factors, _clamp(variations[pair]) if pair in variations else None)
        for pair in combinations(range(len(model.sizes)), 2)
    )
    if not variations:
        return QualityReport(pairs, None, None, None)
    margin = _MARGIN[norm] * deviation / (2 * model.total)
    mean = _clamp(sum(variations.values()) / len(variations))
    return QualityReport(pairs, margin, mean, margin / math.sqrt(len(variations)))


def _clamp(share: float) -> float:
    return min(max(share, 0.0), 1.0)
