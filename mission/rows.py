"""The registry of rows, and the record that a row returns: numbers, and a text formatted from them."""

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from discreet.audit import Proportion

SURE = 1 - 1e-9  # the confidence of a verdict; intervals are printed at 95 %


class NeedsDataError(Exception):
    """A row's data set is not on this machine."""


@dataclass(frozen=True)
class Record:
    """The result of a row: numbers by name, and a text formatted from them."""

    text: str
    numbers: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.numbers[name]


def record(template: str, **numbers: Any) -> Record:
    """Return a record whose text is the formatted template."""
    return Record(template.format(**numbers), numbers)


@dataclass(frozen=True)
class Rate:
    """A random share with its interval, and with a ceiling if an epsilon sets one."""

    value: float
    interval: tuple[float, float]  # at 95 %
    low: float  # lower end of the interval at `SURE`
    high: float
    ceiling: float | None = None
    holds: bool = True  # whether the ceiling is not refuted at `SURE`

    @property
    def verdict(self) -> str:
        """The comparison with the ceiling."""
        if self.ceiling is None:
            return ""
        if not self.holds:
            return f"ABOVE the ceiling of {self.ceiling:.1%}"
        if self.value <= self.ceiling:
            return f"within the ceiling of {self.ceiling:.1%}"
        if self.interval[0] <= self.ceiling:
            return f"above the ceiling of {self.ceiling:.1%} within the 95 % interval"
        return f"above the ceiling of {self.ceiling:.1%} outside the 95 % interval, but not refuted at {SURE:.7%}"

    @property
    def ends(self) -> str:
        """The share with its interval, without the verdict."""
        return f"{self.value:.1%} ({self.interval[0]:.1%} to {self.interval[1]:.1%})"

    def __str__(self) -> str:
        return f"{self.ends[:-1]}; {self.verdict})" if self.verdict else self.ends


def rate(hits: Any, trials: Any, ceiling: float | None = None) -> Rate:
    """Return the share of hits; the ceiling holds unless the lower end of the interval is above it."""
    share = Proportion(int(hits), int(trials))
    low, high = share.interval(SURE)
    return Rate(share.value, share.interval(), low, high, ceiling, ceiling is None or low <= ceiling)


def share_of(value: float, trials: Any) -> Rate:
    """Return a share that is known as a fraction of so many trials, with its interval."""
    return rate(round(value * int(trials)), trials)


def outside_of(result: Any) -> Rate:
    """Return how often an attack succeeds on non-members, with its interval."""
    return rate(result.evidence.non_members.hits, result.evidence.non_members.trials)


def rate_of(result: Any) -> Rate:
    """Return the success of an attack; the ceiling holds unless the attack implies a larger epsilon than claimed."""
    low, high = result.evidence.interval(SURE)
    holds = result.epsilon is None or result.evidence.implied(result.delta, SURE).low <= result.epsilon
    return Rate(result.success, result.evidence.interval(), low, high, result.ceiling, holds)


@dataclass(frozen=True)
class Runs:
    """Repeated measurements of a number: median and range."""

    values: tuple[float, ...]
    spec: str = ".3f"

    @property
    def median(self) -> float:
        """Median of the runs."""
        return statistics.median(self.values)

    def __str__(self) -> str:
        return f"{self.median:{self.spec}} ({min(self.values):{self.spec}} to {max(self.values):{self.spec}})"


def median_of(values: Any, spec: str) -> str:
    """Return the median of independent values with its 95 % interval, from their order statistics."""
    ordered = sorted(float(each) for each in values)
    ranks = (round(len(ordered) / 2 + side * 1.96 * math.sqrt(len(ordered)) / 2) for side in (-1, 1))
    low, high = (ordered[min(max(rank, 0), len(ordered) - 1)] for rank in ranks)
    return f"{statistics.median(ordered):{spec}} ({low:{spec}} to {high:{spec}})"


def listed(values: Any, spec: str = "") -> str:
    """Return numbers separated by slashes."""
    return " / ".join(format(each, spec) for each in values)


@dataclass(frozen=True)
class Row:
    """A row of the mission; `uses` names what it needs outside the public interface."""

    id: str
    what: str
    run: Callable[[], Record]
    uses: str = ""


ROWS: list[Row] = []

# The order of the mission, including rows that are not implemented yet.
ORDER = (
    "A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12 A13 A14 A15 A16 B1 B2 B3 B4 B5 B6 B7 B8 "
    "C1 C2 C3 C4 C5 C6 C7 C8 C9 C10 C11 D1 D2 D3 D4 D5 D6 D7 D8 E1 E2 E3 E4 E5 E6 E7 E8 E9 E10 E11"
).split()


def row(id_: str, what: str, uses: str = "") -> Callable[[Callable[[], Record]], Callable[[], Record]]:
    """Register a function as a row."""

    def join(run: Callable[[], Record]) -> Callable[[], Record]:
        ROWS.append(Row(id_, what, run, uses))
        return run

    return join
