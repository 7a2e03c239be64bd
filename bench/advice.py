"""Advice: how many values a chosen range loses, how wide it is, and how near chosen bounds are to the best ones.

Each release is simulated: exact counts by public cells, of units whose rows weigh as much as one, with noise. The
width of a range is divided by that between the 0.5 % and 99.5 % quantiles of the rows. The error of a bound is clipping
bias and noise of a count together; the best radius is that of the least error, which only simulated data can show. Real
data is added if it is in DISCREET_DATA.
"""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import discreet as dc
from discreet.advise.value_cells import ValueCells, coarse_cells
from discreet.advise.value_range import ChosenRange, ValueCounts, chosen_range, coarse_range, refined_cells
from discreet.estimate.contribution_buckets import ContributionBuckets, RadiusGoal, choose_radius
from discreet.estimate.contribution_histogram import norm_of, octave_ends
from discreet.kernel.ball import Norm
from discreet.kernel.mechanism import Gaussian, Laplace

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
BUDGETS = (dc.Budget(4), dc.Budget(4, delta="1e-9"))
RANGE_EPSILONS = ("1/20", "1/5", "1/2")
BOUNDS_EPSILONS = (("1/20", "1"), ("1/5", "1/2"), ("1/2", "1/2"))  # of the histogram, and of the query
SIZES = (500, 2_000, 10_000, 50_000)
ADULT = ("age", "hours_per_week", "education_num", "fnlwgt", "capital_gain", "capital_loss")
KEPT_BAR, WIDTH_BAR, ERROR_BAR = 0.9, 5.0, 2.0  # on the medians over all settings of a group


@dataclass
class Column:
    """The values of a column with their units; exact counts by cells are computed once."""

    group: str
    unit: np.ndarray
    values: np.ndarray
    kind: str = "real"
    counted: dict[tuple[tuple[Fraction, ...], bool], np.ndarray] = field(default_factory=dict)

    def counts(self, cells: ValueCells, *, is_l1: bool) -> np.ndarray:
        """Return the counts by cell, with each unit's rows clipped to the norm 1."""
        if (key := (cells.edges, is_l1)) not in self.counted:
            size = len(cells.edges) + 1
            places = np.searchsorted([float(edge) for edge in cells.edges], self.values, side="right")
            pairs, rows = np.unique(self.unit.astype(np.int64) * size + places, return_counts=True)
            units = pairs // size
            norms = np.bincount(units, rows) if is_l1 else np.sqrt(np.bincount(units, rows.astype(float) ** 2))
            self.counted[key] = np.bincount(pairs % size, rows / norms[units], minlength=size)
        return self.counted[key]

    def lost(self, chosen: ChosenRange) -> float:
        """Return the share of the rows outside a range."""
        return float(((self.values < float(chosen.low)) | (self.values > float(chosen.high))).mean())


def simulated_columns(rng: np.random.Generator) -> Iterator[Column]:
    """Yield columns of people with heavy-tailed numbers of rows."""
    for size in SIZES:
        rows = np.minimum((rng.pareto(1.5, size) + 1).astype(int), 1_000)
        unit = np.repeat(np.arange(size), rows)
        count = len(unit)
        name = f"{size:,} people"
        yield Column(name, unit, rng.lognormal(3, 1, count))
        yield Column(name, unit, (rng.pareto(2, count) + 1) * 10)
        yield Column(name, unit, rng.normal(0, 1, count))
        yield Column(name, unit, np.clip(rng.normal(45, 18, size), 0, 100).astype(int)[unit], "integer")
        yield Column("active people differ", unit, rng.lognormal(2, 0.5, count) * rows[unit] ** 0.7)


def real_columns() -> Iterator[Column]:
    """Yield columns of real data, if it is there."""
    if (path := DATA / "adult.parquet").exists():
        adult = pq.read_table(path)
        for name in ADULT:
            yield Column("Adult", np.arange(len(adult)), adult[name].to_numpy().astype(float), "integer")
    if (path := DATA / "gowalla_nyc_checkins.parquet").exists():
        checkins = pq.read_table(path)
        unit = np.unique(checkins["user"].to_numpy(), return_inverse=True)[1]
        for name in ("lat", "lon"):
            yield Column("coordinates in New York", unit, checkins[name].to_numpy())


def noise_scale(budget: dc.Budget, epsilon: str, share: float = 1.0) -> float:
    """Return the scale of the noise of a count of sensitivity 1 at a share of this cost."""
    cost = dc.privacy.cost_of(budget, epsilon)
    return 1 / (share * float(cost.epsilon)) if cost.epsilon is not None else 1 / math.sqrt(2 * share * float(cost.rho))


def one_range(column: Column, budget: dc.Budget, epsilon: str, rng: np.random.Generator) -> ChosenRange | None:
    """Simulate the two histograms of a column, and choose its range."""
    is_l1, whole = budget.rho is None, column.kind == "integer"
    scale = noise_scale(budget, epsilon, 0.98)  # the rest is for the report on clipping

    def released(cells: ValueCells) -> ValueCounts:
        exact = column.counts(cells, is_l1=is_l1)
        noise = rng.laplace(0, scale, len(exact)) if is_l1 else rng.normal(0, scale, len(exact))
        return ValueCounts(cells, np.round(exact + noise), 0.0, scale * (math.sqrt(2) if is_l1 else 1), is_l1)

    first = released(coarse_cells(column.kind))
    coarse = coarse_range(first)
    if coarse is None:
        return None
    return chosen_range(coarse, first, released(refined_cells(coarse, whole=whole)), whole=whole)


def measure_ranges(draws: int) -> None:
    """Print and check how many values ranges lose, and how wide they are."""
    rng = np.random.default_rng(11)
    columns = [*simulated_columns(rng), *real_columns()]
    print("ranges: settings | cannot tell | under 1 % of rows lost: lowest, mean | width: median, largest")
    for group in dict.fromkeys(column.group for column in columns):
        blind, kept, widths = [], [], []
        for column in (each for each in columns if each.group == group):
            true_width = np.quantile(column.values, 0.995) - np.quantile(column.values, 0.005)
            for budget in BUDGETS:
                for epsilon in RANGE_EPSILONS:
                    drawn = [one_range(column, budget, epsilon, rng) for _ in range(draws)]
                    ranges = [each for each in drawn if each]
                    blind.append(1 - len(ranges) / draws)
                    if len(ranges) > draws / 2:
                        kept.append(np.mean([column.lost(each) < 0.01 for each in ranges]))
                        widths.append(np.median([float(each.high - each.low) / true_width for each in ranges]))
        print(
            f"  {group:24} {len(blind):3} | {np.mean(blind):4.0%} | {min(kept):4.0%} {np.mean(kept):4.0%} |"
            f" {np.median(widths):.2f} {max(widths):.2f}"
        )
        if group != "active people differ":
            assert np.mean(kept) > KEPT_BAR, group
            assert np.median(widths) < WIDTH_BAR, group


def populations(rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """Yield numbers of rows of people."""
    for size in (2_000, 20_000):
        for alpha in (1.5, 2.0, 3.0):
            yield f"Pareto {alpha:g}", np.minimum((rng.pareto(alpha, size) + 1).astype(int), 100_000)
        yield "log-normal", np.ceil(rng.lognormal(1, 1, size)).astype(int)
        yield "geometric", rng.geometric(0.2, size)
    if (path := DATA / "gowalla_nyc_checkins.parquet").exists():
        yield "check-ins in New York", np.unique(pq.read_table(path)["user"].to_numpy(), return_counts=True)[1]


def error_ratios(rows: np.ndarray, budget: dc.Budget, epsilons: tuple[str, str], draws: int, seed: int) -> np.ndarray:
    """Return for each draw the errors for both goals, divided by the least error, and whether the choice was blind."""
    rng, is_l1 = np.random.default_rng(seed), budget.rho is None
    norm, scale = Norm.L1 if is_l1 else Norm.L2, noise_scale(budget, epsilons[0])
    ratio = noise_scale(budget, epsilons[1]) * (math.sqrt(2) if is_l1 else 1)
    lows = np.array([norm_of(end, norm) for end in octave_ends(norm, 1 << 40)])
    exact = np.bincount(np.searchsorted(lows, rows * (1 + 1e-12), side="right") - 1, minlength=len(lows))

    def error(radius: float) -> float:
        return math.hypot(np.maximum(rows - radius, 0).sum(), ratio * radius)

    least = min(error(radius) for radius in np.geomspace(1, lows[-1], 600))
    noise = (Laplace if is_l1 else Gaussian)(Fraction(scale).limit_denominator(1000))
    ratios = []
    for _ in range(draws):
        drawn = rng.laplace(0, scale, len(lows)) if is_l1 else rng.normal(0, scale, len(lows))
        buckets = ContributionBuckets(tuple(lows), exact + np.round(drawn).astype(np.int64), noise)
        choices = [choose_radius(buckets, ratio, 1, goal) for goal in (RadiusGoal.MARGINS, RadiusGoal.ERROR)]
        ratios.append([*(error(choice.radius) / least for choice in choices), choices[0].blind])
    return np.array(ratios, float)


def measure_bounds(draws: int) -> None:
    """Print and check how near the error of chosen bounds is to the least error."""
    found: dict[str, list[np.ndarray]] = {}
    for seed, (name, rows) in enumerate(populations(np.random.default_rng(3))):
        for budget in BUDGETS:
            for epsilons in BOUNDS_EPSILONS:
                found.setdefault(name, []).append(error_ratios(rows, budget, epsilons, draws, seed))
    print("bounds: blind | error of the least, chosen: median, within sqrt(2) | the same for the least total error")
    for name, several in found.items():
        ratios = np.concatenate(several)
        shares = (ratios[:, :2] <= math.sqrt(2)).mean(axis=0)
        medians = np.median(ratios[:, :2], axis=0)
        print(
            f"  {name:24} {ratios[:, 2].mean():4.0%} | {medians[0]:.2f} {shares[0]:4.0%}"
            f" | {medians[1]:.2f} {shares[1]:4.0%}"
        )
        assert medians[1] < ERROR_BAR, name


def main(draws: str = "100") -> None:
    """Measure ranges and bounds."""
    measure_ranges(int(draws))
    measure_bounds(int(draws))
