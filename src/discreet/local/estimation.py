"""Unbiased estimates from aggregated reports, with margins of error."""

import math
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple, Self

import numpy as np

from discreet.kernel.numbers import Number
from discreet.plotting import BLUE, INK, panels, save_figure, style
from discreet.privacy.probability import as_probability

_MIN_ERROR_PROBABILITY = Fraction(1, 10**15)


def z_score(confidence: Number) -> float:
    """Return the z-score of a two-sided confidence level; a float for margins, on which privacy does not depend.

    >>> round(z_score(0.95), 2)
    1.96
    """
    inside = as_probability(confidence, "confidence")
    if 1 - inside < _MIN_ERROR_PROBABILITY:
        raise ValueError(f"confidence must be at most 1 - {float(_MIN_ERROR_PROBABILITY):g}")
    return -NormalDist().inv_cdf(float((1 - inside) / 2))


def debias_shares(
    supports: np.ndarray, people: int, rates: tuple[Fraction, Fraction], z: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return unbiased shares and their margins, from the number of reports that support each value.

    `rates` are the probabilities that a report supports its person's value, and any other value.
    """
    own, other = map(float, rates)
    gap = float(rates[0] - rates[1])
    shares = (supports / people - other) / gap
    # So that margins also hold for few people: a continuity correction of 1, the skewness of rare events (Cornish and
    # Fisher), and the variance at the end of the interval where it is larger.
    surplus = 1 + (z**2 - 1) / 6
    margins = np.zeros(shares.shape)
    for _ in range(2):
        shifted = shares + margins if own * (1 - own) > other * (1 - other) else shares - margins
        likely = np.clip(shifted, 0, 1)
        variance = likely * own * (1 - own) + (1 - likely) * other * (1 - other)
        margins = (z * np.sqrt(people * variance) + surplus) / (people * gap)
    return shares, margins


def smallest_uint(count: int) -> np.dtype:
    """Return the smallest unsigned little-endian type that holds 0 to count - 1."""
    return np.dtype(next(kind for kind, bits in (("<u1", 8), ("<u2", 16), ("<u4", 32)) if count <= 1 << bits))


ROUNDING_ERROR = 0.5  # in steps: values are rounded to the nearest step


@dataclass(frozen=True)
class MeanError:
    """The variance of one report's contribution to a mean, its largest possible value, and the maximum deviation."""

    variance: float
    worst_variance: float
    max_deviation: float

    def margin(self, people: int, z: float) -> float:
        """Return a margin of z standard deviations of the mean, in steps, with a correction for few people."""
        square = z * z
        # The variance is estimated, so a few people are added with the worst variance; the Cornish-Fisher expansion
        # corrects for skewness, which the maximum deviation bounds.
        total = (
            z * math.sqrt(people * self.variance + 2 * square * self.worst_variance)
            + self.max_deviation * (square + 3) / 6
        )
        return total / people + ROUNDING_ERROR


def project_onto_simplex(shares: np.ndarray) -> np.ndarray:
    """Return the nearest nonnegative shares that sum to one.

    >>> project_onto_simplex(np.array([0.8, 0.4, -0.1]))
    array([0.7, 0.3, 0. ])
    """
    descending = np.sort(shares)[::-1]
    surplus = (np.cumsum(descending) - 1) / np.arange(1, len(shares) + 1)
    # The number of shares that stay positive, minus one.
    last_positive = int(np.flatnonzero(descending > surplus)[-1])
    nearest: np.ndarray = np.maximum(shares - surplus[last_positive], 0)
    return nearest


_MAX_LINES = 20


class _EstimatePair(NamedTuple):
    estimates: Any
    margins: Any


class LocalEstimate(_EstimatePair):
    """Estimates and margins of error: arrays of the share of each value, or a mean; and the names of the values.

    It unpacks as a pair (estimates, margins).

    >>> import discreet as dc
    >>> survey = dc.local.GRR(["yes", "no"], epsilon=30)
    >>> estimate = survey.estimate(survey.perturb(["yes", "no", "no", "no"]))
    >>> shares, margins = estimate
    >>> shares.round(3), estimate.names
    (array([0.25, 0.75]), ('yes', 'no'))
    """

    names: tuple[Any, ...] | None

    def __new__(cls, estimates: Any, margins: Any, names: tuple[Any, ...] | None = None) -> Self:
        """Create an estimate; without names, values are numbered from 0."""
        estimate = super().__new__(cls, estimates, margins)
        estimate.names = names
        return estimate

    def to_pandas(self) -> Any:
        """Return a pandas frame with one row per value."""
        columns = {"estimate": np.atleast_1d(self.estimates), "margin": np.atleast_1d(self.margins)}
        return import_module("pandas").DataFrame(columns, index=None if self.names is None else list(self.names))

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot the estimates with their margins; return the matplotlib axes, and save the figure if a path is given."""
        figure, (axes,) = panels()
        heights, margins = np.atleast_1d(self.estimates), np.atleast_1d(self.margins)
        bar_positions = np.arange(len(heights))
        with style():
            axes.bar(bar_positions, heights, yerr=margins, color=BLUE, ecolor=INK, capsize=2)
            axes.axhline(0, color=INK, lw=0.5)
            axes.set_ylabel("estimate (error bars: 95 % margin)")
            if self.names is not None:
                rotation = 90 if len(heights) > 5 else 0
                axes.set_xticks(
                    bar_positions, [f"{name!s:.30}" for name in self.names], rotation=rotation, parse_math=False
                )
        if path is not None:
            save_figure(figure, path)
        return axes

    def __repr__(self) -> str:
        values, margins = np.atleast_1d(self.estimates), np.atleast_1d(self.margins)
        digits = [_decimals_for(margin) for margin in margins[:_MAX_LINES]]
        formatted = [f"{v:,.{d}f} ± {m:,.{d}f}" for v, m, d in zip(values, margins, digits, strict=False)]
        if np.ndim(self.estimates) == 0:
            return formatted[0]
        names = [f"{name!s:.40}" for name in (self.names or range(len(values)))[:_MAX_LINES]]
        width = max(map(len, names))
        lines = [f"{name:<{width}}  {text}" for name, text in zip(names, formatted, strict=True)]
        return "\n".join(lines + ([f"… {len(values):,} values"] if len(values) > _MAX_LINES else []))


def _decimals_for(margin: float) -> int:
    """Return the number of decimals that show two significant digits of the margin."""
    return int(min(max(1 - np.floor(np.log10(margin)), 0), 12)) if np.isfinite(margin) and margin > 0 else 6
