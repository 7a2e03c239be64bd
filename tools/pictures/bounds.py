"""The picture of clipping bias against noise over the radius, for the former rule of clipping and for the norm ball.

Everything is computed from simulated patients, a few of whom come nearly every day; the true counts are known only
because the data is simulated. The chosen radii come from contribution histograms with noise.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import discreet as dc
from discreet.estimate.contribution_buckets import ContributionBuckets, RadiusGoal, choose_radius
from discreet.plotting import BLUE, INK, ORANGE, add_legend, format_plain_numbers, panels, set_title, style

CLINICS = 20
PATIENTS = 100_000
MOST_VISITS = 366  # one on each day of a year
EPSILON, DELTA = Fraction(1), Fraction(1, 10**7)
HISTOGRAM_SHARE = Fraction(1, 20)
GROUPS = (1, 2, 3, 5, 8, 12, 20)  # the former rule is shown with the best of them at each radius
RADII = tuple(2 ** (place / 2) for place in range(18))
CHOICES = 200  # releases of the histogram


@dataclass(frozen=True)
class Point:
    """Effects of a radius on a clinic's count, as root mean squares: clipping bias, noise, and both together."""

    radius: float
    bias: float
    noise: float

    @property
    def error(self) -> float:
        """Root mean square of bias and noise together."""
        return math.hypot(self.bias, self.noise)


@dataclass(frozen=True)
class Comparison:
    """The two rules of clipping at every radius, and the radii that were chosen from histograms."""

    former: Sequence[Point]
    ball: Sequence[Point]
    chosen: Sequence[float]


def visits_of(patients: int) -> np.ndarray:
    """Return the number of visits of each patient: mostly one or two, for a few nearly one a day."""
    chance = (np.arange(patients) + 0.5) / patients
    return np.minimum(MOST_VISITS, chance**-0.5).astype(np.int64)


def simulated(patients: int = PATIENTS) -> np.ndarray:
    """Return visits by patient and clinic; every second visit is to the patient's own clinic, others are anywhere."""
    rng = np.random.default_rng(366)
    patient = np.repeat(np.arange(patients), visits_of(patients))
    clinic = np.where(rng.random(len(patient)) < 0.5, patient % CLINICS, rng.integers(0, CLINICS, len(patient)))
    return np.bincount(patient * CLINICS + clinic, minlength=patients * CLINICS).reshape(patients, CLINICS)


def clipped_by_former_rule(visits: np.ndarray, radius: float) -> np.ndarray:
    """Return the counts if rows are capped in each group, and patients with k groups have the weight groups/k."""
    reached = np.maximum((visits > 0).sum(axis=1), 1)
    counts = [np.minimum(1, limit / reached) @ np.minimum(visits, radius / math.sqrt(limit)) for limit in GROUPS]
    return max(counts, key=np.sum)


def clipped_to_ball(visits: np.ndarray, radius: float) -> np.ndarray:
    """Return the counts if each patient's visits are scaled to an l2 norm of at most the radius."""
    counts: np.ndarray = np.minimum(1, radius / np.maximum(_norms(visits), 1)) @ visits
    return counts


def measured(visits: np.ndarray, radii: Sequence[float] = RADII, choices: int = CHOICES) -> Comparison:
    """Compare both rules with the true counts, and choose radii from histograms."""
    rho = dc.privacy.cost_of(dc.Budget(EPSILON, DELTA), EPSILON).rho
    former = _points(visits, radii, clipped_by_former_rule, _deviation(rho))
    rest = _deviation(rho * (1 - HISTOGRAM_SHARE))
    ball = _points(visits, radii, clipped_to_ball, rest)
    noise = dc.gaussian_for(dc.Sensitivity(1, 1), rho=rho * HISTOGRAM_SHARE)
    octaves = tuple(radii[::2])
    counts = np.histogram(_norms(visits), [*octaves, math.inf])[0].astype(np.int64)
    released = (ContributionBuckets(octaves, noise.perturb(counts), noise) for _ in range(choices))
    chosen = [choose_radius(buckets, rest, CLINICS, RadiusGoal.MARGINS).radius for buckets in released]
    return Comparison(former, ball, chosen)


def _deviation(rho: Fraction) -> float:
    """Return the standard deviation of the noise, divided by the radius."""
    return float(dc.gaussian_for(dc.Sensitivity(1, 1), rho=rho).scale)


def _norms(visits: np.ndarray) -> np.ndarray:
    return np.sqrt((visits**2).sum(axis=1)) * (1 + 1e-12)  # a norm on the ladder is not below it


def _points(
    visits: np.ndarray, radii: Sequence[float], clipped: Callable[[np.ndarray, float], np.ndarray], deviation: float
) -> list[Point]:
    truth = visits.sum(axis=0)
    return [
        Point(radius, float(np.sqrt(np.mean((truth - clipped(visits, radius)) ** 2))), deviation * radius)
        for radius in radii
    ]


def best(points: Sequence[Point]) -> Point:
    """Return the point with the smallest error."""
    return min(points, key=lambda point: point.error)


def bounds_figure(found: Comparison) -> Any:
    """Draw a panel for each rule: bias decreases with the radius, noise increases, the error has a minimum."""
    figure, every = panels(2, sharey=True)
    rules = {"before: rows capped, weight groups/k": found.former, "now: norm ball": found.ball}
    top = max(max(point.bias, point.noise) for points in rules.values() for point in points)
    low, middle, high = np.quantile(found.chosen, [0.05, 0.5, 0.95])
    with style():
        for axes, (name, points) in zip(every, rules.items(), strict=True):
            radii = [point.radius for point in points]
            axes.plot(radii, [point.bias for point in points], color=BLUE, ls="--", label="clipping bias")
            axes.plot(radii, [point.noise for point in points], color=ORANGE, ls="-.", label="noise")
            axes.plot(radii, [point.error for point in points], ".-", color=INK, lw=1, label="total error")
            least = best(points)
            axes.plot([least.radius], [least.error], "o", color=INK, ms=6)
            above = {"textcoords": "offset points", "ha": "center", "fontsize": 8}
            axes.annotate(f"{least.error:,.0f}", (least.radius, least.error), (0, 9), **above)
            axes.set(xscale="log", yscale="log", xlabel="radius: rows times root of groups", ylim=(4, 2 * top))
            axes.set_title(name)
            format_plain_numbers(axes.xaxis, axes.yaxis)
        every[1].axvspan(low, high, color=BLUE, alpha=0.15, lw=0, label="chosen automatically (9 of 10)")
        every[0].set_ylabel("visits to a clinic, root mean square")
        add_legend(figure, every)
        set_title(
            figure, f"The radius chosen automatically, {middle:,.0f}, keeps the bias of the norm ball below the noise"
        )
    return figure


PICTURES = {"bounds": (lambda: measured(simulated()), bounds_figure)}
