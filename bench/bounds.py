"""Contribution bounds: total error and coverage of counts with declared and with automatic bounds.

The error is against the true counts, without clipping: bias and noise together, as the root mean square over cells and
releases. Coverage is the share of cells whose margin contains the true count. The yardstick is the rule that bounds had
before, computed in numpy: rows are capped in each group, then a unit with k groups has the weight groups/k. Bounds are
declared in two ways: so that 95 % of units keep them, and by the rule of thumb that docs/choosing.md used to give,
applied to the true data, which nobody may do: as many people above `rows` as the margin at `rows=1`.
"""

import math
import os
import statistics
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dc
from discreet.policy import Policy
from discreet.privacy import cost_of

EPSILON, DELTA = Fraction(1), Fraction(1, 10**7)
ROUND_NUMBERS = [digit * 10**power for power in range(7) for digit in (1, 2, 3, 5, 8)]
AUTOMATIC_BAR, COVERAGE_BAR, BALL_BAR = 0.2, 0.85, 0.5


@dataclass(frozen=True)
class Population:
    """Rows of units in cells, and their numbers per unit and cell."""

    name: str
    unit: np.ndarray
    cell: np.ndarray
    cells: int

    @property
    def truth(self):
        return np.bincount(self.cell, minlength=self.cells)

    def contributions(self):
        """Return the unit (from 0), the cell and the rows of each pair that occurs."""
        _, unit = np.unique(self.unit, return_inverse=True)
        pairs, rows = np.unique(unit * self.cells + self.cell, return_counts=True)
        return pairs // self.cells, pairs % self.cells, rows


@dataclass(frozen=True)
class Measured:
    """Root mean square error over cells and releases, and the share of cells whose margin contains the truth."""

    error: float
    coverage: float


def populations():
    rng = np.random.default_rng(20_261_118)
    sizes = {
        "log-normal, sigma 1.5": np.ceil(np.exp(rng.normal(1, 1.5, 100_000))),
        "Pareto, alpha 1.5": np.floor(rng.random(100_000) ** (-1 / 1.5)),
        "Pareto, alpha 2.5": np.floor(rng.random(200_000) ** (-1 / 2.5)),
    }
    for name, size in sizes.items():
        unit = np.repeat(np.arange(len(size)), size.astype(np.int64))
        yield Population(f"{name}, total", unit, np.zeros_like(unit), 1)
        yield Population(f"{name}, 20 even cells", unit, rng.integers(0, 20, len(unit)), 20)
        home = np.searchsorted(np.cumsum(1 / np.arange(1, 101)), rng.random(len(size)) * 5.187)
        away = rng.integers(0, 100, len(unit))
        yield Population(
            f"{name}, 100 cells, 4 of 5 at home", unit, np.where(rng.random(len(unit)) < 0.8, home[unit], away), 100
        )
    if folder := os.environ.get("DISCREET_DATA"):
        yield from checkins(Path(folder))
        ratings = pq.read_table(Path(folder) / "movielens_latest_small_ratings.parquet")
        stars = (2 * ratings["rating"].to_numpy() - 1).astype(np.int64)
        yield Population("MovieLens ratings (610 people)", ratings["userId"].to_numpy(), stars, 10)


def checkins(folder):
    table = pq.read_table(folder / "gowalla_nyc_checkins.parquet")
    user, seconds = table["user"].to_numpy(), table["time"].to_numpy().astype("datetime64[s]").astype(np.int64)
    west = np.searchsorted(np.quantile(table["lon"].to_numpy(), np.arange(1, 10) / 10), table["lon"].to_numpy())
    yield Population("Gowalla check-ins, total", user, np.zeros_like(seconds), 1)
    yield Population("Gowalla check-ins by weekday", user, (seconds // 86_400 + 3) % 7, 7)
    yield Population("Gowalla check-ins by hour", user, seconds // 3600 % 24, 24)
    yield Population("Gowalla check-ins by area", user, west, 10)


def noise_deviation(delta):
    """Return the standard deviation of the noise of a count of units in one group each, for the whole cost."""
    if not delta:
        return math.sqrt(2) / float(EPSILON)
    return 1 / math.sqrt(2 * float(cost_of(dc.Budget(EPSILON, delta), EPSILON).rho))


def radius_of(groups, rows, delta):
    return rows * (math.sqrt(groups) if delta else groups)


def bounds_for_most(population):
    """Return groups and rows that 95 % of units, and of their groups, keep."""
    unit, _, rows = population.contributions()
    groups = np.quantile(np.bincount(unit), 0.95)
    return min(population.cells, _round_up(groups)), _round_up(np.quantile(rows, 0.95))


def bounds_by_rule(population, delta):
    """Return the groups and rows that as many exceed, in a typical group, as the margin at rows = 1."""
    unit, _, rows = population.contributions()
    margin = noise_deviation(delta) * (1.96 if delta else math.log(20) / math.sqrt(2))
    per_unit = np.bincount(unit)
    groups = next(
        limit
        for limit in ROUND_NUMBERS
        if limit >= population.cells or (per_unit > limit).sum() <= margin * population.cells
    )
    groups = min(groups, population.cells)
    allowed = margin * radius_of(groups, 1, delta) * population.cells
    return groups, next(limit for limit in ROUND_NUMBERS if (rows > limit).sum() <= allowed)


def _round_up(number):
    return next(limit for limit in ROUND_NUMBERS if limit >= number)


def former_error(population, groups, rows, delta):
    """Return the error of the former rule: rows capped in each group, then weights groups/k."""
    unit, cell, counts = population.contributions()
    weights = np.minimum(1, groups / np.bincount(unit))[unit]
    kept = np.bincount(cell, np.minimum(counts, rows) * weights, population.cells)
    noise = noise_deviation(delta) * radius_of(groups, rows, delta)
    return math.sqrt(np.mean((population.truth - kept) ** 2) + noise**2)


def curator_for(population, delta):
    """Open a curator with a new ledger, so that nothing is cached."""
    budget = {"epsilon": 1000, **({"delta": str(delta), "discover": 0} if delta else {})}
    columns = {"unit": {"type": "integer"}, "cell": {"type": "integer", "between": [0, max(1, population.cells - 1)]}}
    table = {"source": "data.parquet", "unit": "unit", "rows_max": 10**8, "columns": columns}
    policy = Policy.from_dict(
        {"data": {"name": "bench", "ledger": ":memory:"}, "budget": budget, "tables": {"data": table}}
    )
    frame = pa.table({"unit": population.unit.astype(np.int64), "cell": population.cell.astype(np.int64)})
    return dc.open(policy, data={"data": frame})


def measure(population, delta, bounds, rounds):
    """Ask a new curator in every round, with each of the bounds."""
    found = {each: [] for each in bounds}
    for _ in range(rounds):
        with curator_for(population, delta) as curator:
            for (groups, rows), answers in found.items():
                answers.append(_asked(curator, population, groups, rows))
    truth = population.truth
    return {
        each: Measured(
            math.sqrt(np.mean([(counts - truth) ** 2 for counts, _ in answers])),
            float(np.mean([np.abs(counts - truth) <= margins for counts, margins in answers])),
        )
        for each, answers in found.items()
    }


def _asked(curator, population, groups, rows):
    sql = "SELECT COUNT(*) AS n FROM data"
    if population.cells > 1:
        sql = "SELECT cell, COUNT(*) AS n FROM data GROUP BY cell ORDER BY cell"
    answer = curator.ask(sql, epsilon=EPSILON, groups=groups, rows=rows)
    return answer.to_arrow()["n"].to_numpy(), np.array(answer.margins["n"], float)


def main(rounds="10"):
    automatic, summary = ("auto", "auto"), {"automatic": [], "by rule": [], "coverage": [], "ball": []}
    print(
        f"COUNT(*) at epsilon {EPSILON}, {rounds} releases\n"
        f"{'':<47}{'':>5} | {'for 95 %: bounds':>17}{'former':>9}{'ball':>9}{'ratio':>6} | {'by rule: bounds':>17}"
        f"{'former':>9} | {'automatic':>9}{'/95 %':>6}{'/rule':>6}{'covered':>8}"
    )
    for population in populations():
        for delta in (DELTA, Fraction(0)):
            usual, rule = bounds_for_most(population), bounds_by_rule(population, delta)
            former = {each: former_error(population, *each, delta) for each in (usual, rule)}
            found = measure(population, delta, dict.fromkeys((usual, automatic)), int(rounds))
            chosen, ball = found[automatic], found[usual].error / former[usual]
            summary["automatic"].append(chosen.error / former[usual])
            summary["by rule"].append(chosen.error / former[rule])
            summary["coverage"].append(chosen.coverage)
            summary["ball"].append(ball)
            declared = f"{_text(usual)}{former[usual]:>9,.0f}{found[usual].error:>9,.0f}{ball:>6.2f}"
            informed = f"{_text(rule)}{former[rule]:>9,.0f}"
            ratios = "".join(f"{summary[name][-1]:>6.2f}" for name in ("automatic", "by rule"))
            print(
                f"{population.name:<47}{'zCDP' if delta else 'pure':>5} | {declared} | {informed} | "
                f"{chosen.error:>9,.0f}{ratios}{chosen.coverage:>8.2f}",
                flush=True,
            )
    _print_summary(summary)


def _text(bounds):
    groups, rows = bounds
    return f"{groups:>9,} of {rows:>4,}"


def _print_summary(summary):
    median = {name: statistics.median(values) for name, values in summary.items()}
    print(
        f"\nautomatic beside the former rule with bounds for 95 % of units: median {median['automatic']:.2f} "
        f"(bar {AUTOMATIC_BAR}), worst {max(summary['automatic']):.2f}"
        f"\nautomatic beside the former rule with the best informed bounds: median {median['by rule']:.2f}, "
        f"worst {max(summary['by rule']):.2f}"
        f"\ncoverage of the truth with automatic bounds: median {median['coverage']:.2f} (bar {COVERAGE_BAR}), "
        f"worst {min(summary['coverage']):.2f}"
        f"\nball beside the former rule, same declared bounds: median {median['ball']:.2f} (bar {BALL_BAR}), "
        f"worst {max(summary['ball']):.2f} (bar 1)"
    )
