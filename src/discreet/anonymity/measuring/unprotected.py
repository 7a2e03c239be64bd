"""The line that says what a release does not protect against, each attack by its name."""

import math
from collections.abc import Sequence

from discreet.anonymity.measuring.exposure import Exposure
from discreet.anonymity.measuring.linkage import Linkage

_SHOWN = 6
_SURE = 0.5  # an attacker who is right more often than not has learnt something


def not_protected(
    prosecutor: Linkage, journalist: Linkage | None, sensitive: Sequence[Exposure], others: Sequence[str]
) -> str:
    """Name the attacks that what was found leaves open; without a population there is no journalist.

    >>> not_protected(Linkage({1: 2, 5: 10}), None, [], ["income"])
    'Not protected against: linkage attack (2 rows are alone in their class); homogeneity attack (no sensitive column \
was named, so nobody looked); intersection attack (two releases of the same people); linkage by other columns (income).'
    """
    found = [
        *_linkage(prosecutor, journalist),
        *_inference(sensitive),
        "intersection attack (two releases of the same people)",
        f"linkage by other columns ({_listed(others)})" if others else "linkage by what else an attacker knows",
    ]
    return f"Not protected against: {'; '.join(found)}."


def counted(count: int, one: str, many: str) -> str:
    """Write a number with the noun that fits it.

    >>> counted(1, "row", "rows"), counted(2000, "row", "rows")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {one if count == 1 else many}"


def _linkage(prosecutor: Linkage, journalist: Linkage | None) -> list[str]:
    found = []
    if prosecutor.single:
        found.append(f"{counted(prosecutor.single, 'row is', 'rows are')} alone in their class")
    if journalist is not None and journalist.single:
        found.append(f"{counted(journalist.single, 'row', 'rows')} could be one person of the population only")
    return [f"linkage attack ({', '.join(found)})"] if found else []


def _inference(sensitive: Sequence[Exposure]) -> list[str]:
    if not sensitive:
        return ["homogeneity attack (no sensitive column was named, so nobody looked)"]
    alike = [
        f"{counted(len(each.exposed), 'row', 'rows')} in {counted(each.homogeneous, 'class', 'classes')} "
        f"with one {each.column[:60]!r} only"
        for each in sensitive
        if each.homogeneous
    ]
    if alike:
        return [f"homogeneity attack ({', '.join(alike)})"]
    worst = max(sensitive, key=lambda each: each.alpha)
    percent = math.floor(worst.alpha * 1000) / 10  # 100 % is what homogeneity is called
    sure = f"a value of {worst.column[:60]!r} is up to {percent:g} % sure in a class"
    return [f"skewness attack ({sure})" if worst.alpha > _SURE else f"background-knowledge attack ({sure})"]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(name[:60] for name in names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
