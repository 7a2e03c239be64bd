"""What was measured, in plain numbers and texts: for JSON, a log, or a test."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from discreet.anonymity.measuring.exposure import Exposure
from discreet.anonymity.measuring.linkage import Linkage
from discreet.anonymity.measuring.loss import InformationLoss


def exposures(sensitive: tuple[Exposure, ...]) -> dict[str, Any]:
    """Return what was measured of each sensitive column; exposed rows are counted, not listed."""
    return {each.column: _exposure(each) for each in sensitive}


def linkage(found: Linkage) -> dict[str, Any]:
    """Return how surely rows can be linked.

    >>> linkage(Linkage({1: 2, 4: 8}))
    {'highest': 1.0, 'mean': 0.4, 'single': 2, 'unmatched': 0}
    """
    return {"highest": found.highest, "mean": found.mean, "single": found.single, "unmatched": found.unmatched}


def loss(lost: InformationLoss | None) -> dict[str, Any] | None:
    """Return what was lost, if that is known."""
    return None if lost is None else {**asdict(lost), "columns": dict(lost.columns)}


def histogram(sizes: Mapping[int, int]) -> dict[str, int]:
    """Return how many classes there are of each size, by texts, as JSON wants it."""
    return {str(size): count for size, count in sizes.items()}


def _exposure(each: Exposure) -> dict[str, Any]:
    names = ("values", "l", "entropy_l", "alpha", "beta", "enhanced_beta", "delta", "t", "distance", "homogeneous")
    c, least = each.recursive
    return {
        **{name: _finite(getattr(each, name)) for name in names},
        "recursive": [_finite(c), least],
        "exposed": len(each.exposed),
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and math.isinf(value) else value
