"""The attacks that a release does not protect against, as one sentence."""

import math
from collections.abc import Sequence

from discreet.anonymity.metrics.attribute_risk import AttributeRisk
from discreet.anonymity.metrics.linkage_risk import LinkageRisk

_MAX_LISTED_NAMES = 6
_SKEWNESS_THRESHOLD = 0.5  # above it, guessing the most frequent value is right more often than not


def describe_open_attacks(
    prosecutor: LinkageRisk,
    journalist: LinkageRisk | None,
    sensitive: Sequence[AttributeRisk],
    other_columns: Sequence[str],
) -> str:
    """Return a sentence that names the remaining attacks; `journalist` is None if no population was given.

    >>> describe_open_attacks(LinkageRisk({1: 2, 5: 10}), None, [], ["income"])
    'Not protected against: linkage attack (2 rows are unique); homogeneity attack (not checked: no sensitive column \
was named); intersection attack (several releases about the same people); linkage by other columns (income).'
    """
    attacks = [
        *_linkage_attacks(prosecutor, journalist),
        *_inference_attacks(sensitive),
        "intersection attack (several releases about the same people)",
        f"linkage by other columns ({_list_names(other_columns)})"
        if other_columns
        else "linkage by anything else an attacker knows",
    ]
    return f"Not protected against: {'; '.join(attacks)}."


def format_count(count: int, singular: str, plural: str) -> str:
    """Return a number with its noun in the singular or plural.

    >>> format_count(1, "row", "rows"), format_count(2000, "row", "rows")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {singular if count == 1 else plural}"


def _linkage_attacks(prosecutor: LinkageRisk, journalist: LinkageRisk | None) -> list[str]:
    reasons = []
    if prosecutor.uniquely_linked_rows:
        reasons.append(f"{format_count(prosecutor.uniquely_linked_rows, 'row is', 'rows are')} unique")
    if journalist is not None and journalist.uniquely_linked_rows:
        matches = format_count(journalist.uniquely_linked_rows, "row matches", "rows match")
        reasons.append(f"{matches} exactly one person of the population")
    return [f"linkage attack ({', '.join(reasons)})"] if reasons else []


def _inference_attacks(sensitive: Sequence[AttributeRisk]) -> list[str]:
    if not sensitive:
        return ["homogeneity attack (not checked: no sensitive column was named)"]
    homogeneous = [
        f"{format_count(len(risk.exposed_rows), 'row', 'rows')} in {format_count(risk.homogeneous, 'class', 'classes')}"
        f" with a single value of {risk.column[:60]!r}"
        for risk in sensitive
        if risk.homogeneous
    ]
    if homogeneous:
        return [f"homogeneity attack ({', '.join(homogeneous)})"]
    worst = max(sensitive, key=lambda risk: risk.alpha)
    percent = math.floor(worst.alpha * 1000) / 10  # rounded down: 100 % would be a homogeneous class
    confidence = f"up to {percent:g} % of a class have the same value of {worst.column[:60]!r}"
    return [
        f"skewness attack ({confidence})"
        if worst.alpha > _SKEWNESS_THRESHOLD
        else f"background-knowledge attack ({confidence})"
    ]


def _list_names(names: Sequence[str]) -> str:
    omitted = len(names) - _MAX_LISTED_NAMES
    return ", ".join(name[:60] for name in names[:_MAX_LISTED_NAMES]) + (f" and {omitted} more" if omitted > 0 else "")
