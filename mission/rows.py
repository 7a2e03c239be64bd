"""The list of rows, how a row joins it, and the record that a row returns: numbers, and a text made of them."""

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
    """What a row saw: numbers by name, and a text that is formatted from them."""

    text: str
    numbers: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.numbers[name]


def record(template: str, **numbers: Any) -> Record:
    """Return a record whose text is the template with the numbers in their places."""
    return Record(template.format(**numbers), numbers)


@dataclass(frozen=True)
class Rate:
    """A share that chance decides, with its interval, and with a ceiling where an epsilon sets one."""

    value: float
    interval: tuple[float, float]  # at 95 %
    low: float  # of the interval at `SURE`
    high: float
    ceiling: float | None = None
    holds: bool = True  # whether the ceiling stands, at `SURE`

    @property
    def verdict(self) -> str:
        """What the numbers say about the ceiling."""
        if self.ceiling is None:
            return ""
        if not self.holds:
            return f"ABOVE the ceiling of {self.ceiling:.1%}"
        if self.value <= self.ceiling:
            return f"within the ceiling of {self.ceiling:.1%}"
        if self.interval[0] <= self.ceiling:
            return f"above the ceiling of {self.ceiling:.1%} by no more than chance"
        return f"above the ceiling of {self.ceiling:.1%} beyond the 95 % interval, not refuted at {SURE:.7%}"

    @property
    def ends(self) -> str:
        """The share with its interval, without the verdict."""
        return f"{self.value:.1%} ({self.interval[0]:.1%} to {self.interval[1]:.1%})"

    def __str__(self) -> str:
        return f"{self.ends[:-1]}; {self.verdict})" if self.verdict else self.ends


def rate(hits: Any, trials: Any, ceiling: float | None = None) -> Rate:
    """Return the share of hits; its ceiling stands unless the lower end is above it."""
    share = Proportion(int(hits), int(trials))
    low, high = share.interval(SURE)
    return Rate(share.value, share.interval(), low, high, ceiling, ceiling is None or low <= ceiling)


def rate_of(result: Any) -> Rate:
    """Return what an attack reached; its ceiling stands unless the epsilon that it implies is above the promised."""
    low, high = result.evidence.interval(SURE)
    holds = result.epsilon is None or result.evidence.implied(result.delta, SURE).low <= result.epsilon
    return Rate(result.success, result.evidence.interval(), low, high, result.ceiling, holds)


@dataclass(frozen=True)
class Runs:
    """A number that was measured several times: its median and how far the runs are apart."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.values)

    def __str__(self) -> str:
        return f"{self.median:.3f} ({min(self.values):.3f} to {max(self.values):.3f})"


def listed(values: Any, spec: str = "") -> str:
    """Return numbers as a list with slashes."""
    return " / ".join(format(each, spec) for each in values)


@dataclass(frozen=True)
class Row:
    """A row of the mission. `uses` says what it needs beside public names."""

    id: str
    what: str
    run: Callable[[], Record]
    uses: str = ""


ROWS: list[Row] = []

# The order of the mission, with what is still to be built.
ORDER = (
    "A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12 A13 A14 A15 A16 B1 B2 B3 B4 B5 B6 B7 B8 "
    "C1 C2 C3 C4 C5 C6 C7 C8 C9 C10 C11 D1 D2 D3 D4 D5 D6 D7 D8 E1 E2 E3 E4 E5 E6 E7 E8 E9 E10 E11"
).split()


def row(id_: str, what: str, uses: str = "") -> Callable[[Callable[[], Record]], Callable[[], Record]]:
    """Let a function join the list."""

    def join(run: Callable[[], Record]) -> Callable[[], Record]:
        ROWS.append(Row(id_, what, run, uses))
        return run

    return join
