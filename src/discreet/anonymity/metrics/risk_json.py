"""Risk records as numbers and strings for JSON."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from discreet.anonymity.metrics.attribute_risk import AttributeRisk
from discreet.anonymity.metrics.information_loss import InformationLoss
from discreet.anonymity.metrics.linkage_risk import LinkageRisk


def attribute_risks_dict(sensitive: tuple[AttributeRisk, ...]) -> dict[str, Any]:
    """Return the measures of each sensitive column by name; exposed rows are counted, not listed."""
    return {risk.column: _attribute_risk_dict(risk) for risk in sensitive}


def linkage_risk_dict(risk: LinkageRisk) -> dict[str, Any]:
    """Return the linkage risk.

    >>> linkage_risk_dict(LinkageRisk({1: 2, 4: 8}))
    {'highest': 1.0, 'mean': 0.4, 'single': 2, 'unmatched': 0}
    """
    return {
        "highest": risk.highest_risk,
        "mean": risk.mean_risk,
        "single": risk.uniquely_linked_rows,
        "unmatched": risk.unmatched_rows,
    }


def information_loss_dict(information_loss: InformationLoss | None) -> dict[str, Any] | None:
    """Return the information loss, if it was measured."""
    return None if information_loss is None else {**asdict(information_loss), "columns": dict(information_loss.columns)}


def class_sizes_dict(sizes: Mapping[int, int]) -> dict[str, int]:
    """Return the number of classes of each size; keys are strings, as JSON requires."""
    return {str(size): count for size, count in sizes.items()}


def _attribute_risk_dict(risk: AttributeRisk) -> dict[str, Any]:
    names = ("values", "l", "entropy_l", "alpha", "beta", "enhanced_beta", "delta", "t", "distance", "homogeneous")
    c, min_l = risk.recursive
    return {
        **{name: _none_if_infinite(getattr(risk, name)) for name in names},
        "recursive": [_none_if_infinite(c), min_l],
        "exposed": len(risk.exposed_rows),
    }


def _none_if_infinite(value: Any) -> Any:
    return None if isinstance(value, float) and math.isinf(value) else value
