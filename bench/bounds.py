"""Contribution bounds: total error and coverage of counts and sums, with declared and with automatic bounds.

The error is against the true numbers, without clipping: bias and noise together, as the root mean square over cells and
releases. Coverage is the share of cells whose margin contains the true number. The yardstick is the rule that bounds
had before, computed in numpy: rows are capped in each group, then a unit with k groups has the weight groups/k.
"""

import math
import statistics
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

import discreet as dc
from bench.populations import declared_sets, heavy_tailed_sets, small_sets
from discreet.curator.curator import Curator
from discreet.curator.ledger_terms import policy_terms
from discreet.policy import Policy
from discreet.privacy import cost_of

DELTA = Fraction(1, 10**7)
SETTINGS = [
    (statistic, epsilon, delta)
    for statistic in ("COUNT", "SUM")
    for delta in (DELTA, Fraction(0))
    for epsilon in (Fraction(1, 2), Fraction(1))
]
AUTO, GUIDE = ("auto", "auto"), (1, 5)
ROUND_NUMBERS = [digit * 10**power for power in range(7) for digit in (1, 2, 5)]
BALL_BAR, AUTOMATIC_BAR, COVERAGE_BAR, SMALL_BAR = 0.5, 0.2, 0.85, 1.1


@dataclass(frozen=True)
class Measured:
    """Root mean square error over cells and releases, the cells whose margin contains the truth, the mean margin."""

    error: float
    covered: np.ndarray
    margin: float


class Bench:
    """Releases of a population, all from one open engine, each with a ledger of its own so that nothing is reused."""

    def __init__(self, population, declared=AUTO):
        self.population = population
        groups, rows = declared
        value = {"type": "integer", "between": [0, population.largest]}
        cell = {"type": "integer", "between": [0, max(1, population.cells - 1)]}
        columns = {"unit": {"type": "integer"}, "cell": cell, "value": value}
        table = {"source": "d.parquet", "unit": "unit", "groups": groups, "rows": rows, "rows_max": 10**8}
        budgets = {
            DELTA: {"epsilon": 1000, "delta": str(DELTA), "discover": 0},
            Fraction(0): {"epsilon": 1000},
        }
        self.policies = {
            delta: Policy.from_dict(
                {
                    "data": {"name": "bench", "ledger": ":memory:"},
                    "budget": budget,
                    "tables": {"data": table | {"columns": columns}},
                }
            )
            for delta, budget in budgets.items()
        }
        frame = pa.table({name: getattr(population, name).astype(np.int64) for name in columns})
        self.curator = dc.open(self.policies[DELTA], data={"data": frame})

    def measure(self, statistic, epsilon, delta, bounds, rounds):
        policy, truth = self.policies[delta], self.population.truth(statistic)
        sql = f"SELECT {'COUNT(*)' if statistic == 'COUNT' else 'SUM(value)'} AS n FROM data"
        if self.population.cells > 1:
            sql = f"{sql.replace('SELECT', 'SELECT cell,')} GROUP BY cell ORDER BY cell"
        distances, margins = [], []
        for _ in range(rounds):
            curator = Curator(policy, self.curator._engine, dc.memory_ledger(**policy_terms(policy)))
            answer = curator.ask(sql, epsilon=epsilon, groups=bounds[0], rows=bounds[1])
            distances.append(np.abs(answer.to_arrow()["n"].to_numpy() - truth))
            margins.append(np.array(answer.margins["n"], float))
        covered = np.array(distances) <= np.array(margins)
        return Measured(math.sqrt(np.mean(np.square(distances))), covered, float(np.mean(margins)))


def noise_deviation(epsilon, delta):
    """Return the standard deviation of the noise of a count of units in one group each, for the whole cost."""
    if not delta:
        return math.sqrt(2) / float(epsilon)
    return 1 / math.sqrt(2 * float(cost_of(dc.Budget(1000, delta), epsilon).rho))


class FormerRule:
    """The error of the former rule: rows capped in each group, then weights groups/k."""

    def __init__(self, population):
        self.population, self._biases = population, {}

    def error(self, statistic, epsilon, delta, bounds):
        groups, rows = bounds
        radius = (
            rows * (math.sqrt(groups) if delta else groups) * (self.population.largest if statistic == "SUM" else 1)
        )
        return math.hypot(self._bias(statistic, bounds), noise_deviation(epsilon, delta) * radius)

    def _bias(self, statistic, bounds):
        """Return the root mean square over cells of what is clipped."""
        if (statistic, bounds) not in self._biases:
            unit, cell, counts, sums = self.population.contributions
            kept = np.minimum(1, bounds[1] / counts) * np.minimum(1, bounds[0] / np.bincount(unit))[unit]
            removed = np.bincount(cell, (1 - kept) * (sums if statistic == "SUM" else counts), self.population.cells)
            self._biases[statistic, bounds] = math.sqrt(np.mean(removed**2))
        return self._biases[statistic, bounds]

    def best_error(self, statistic, epsilon, delta):
        """Return the least error of any bounds, which only somebody who knows the true data could choose."""
        most_rows = self.population.contributions[2].max()
        groups = [limit for limit in ROUND_NUMBERS if limit < self.population.cells] + [self.population.cells]
        rows = [limit for limit in ROUND_NUMBERS if limit < 2 * most_rows]
        return min(self.error(statistic, epsilon, delta, (few, many)) for few in groups for many in rows)


def bounds_for_most(population):
    """Return groups and rows that 95 % of units, and of their groups, keep."""
    unit, _, rows, _ = population.contributions
    groups, most = (
        next(limit for limit in ROUND_NUMBERS if limit >= number)
        for number in (np.quantile(np.bincount(unit), 0.95), np.quantile(rows, 0.95))
    )
    return min(population.cells, groups), most


def main(rounds="4"):
    print(
        f"Errors of {rounds} releases beside those of the former rule with several bounds\n"
        f"{'':<69} | {'former':>9} {'now':>9} {'ratio':>6} | {'/ 95 %':>6} {'/ best':>6} {'covered':>7}"
    )
    compare_declared(int(rounds))
    compare_automatic(int(rounds))
    compare_small(5 * int(rounds))


def print_line(population, setting, former, measured, others=()):
    statistic, epsilon, delta = setting
    name = f"{population.name:<54}{statistic:>6}{'zCDP' if delta else 'pure':>5}{float(epsilon):>4}"
    ratios = "".join(f" {measured.error / other:>6.2f}" for other in others) or " " * 14
    print(
        f"{name} | {former:>9,.0f} {measured.error:>9,.0f} {measured.error / former:>6.2f} |{ratios} "
        f"{measured.covered.mean():>7.0%}",
        flush=True,
    )


def compare_declared(rounds):
    print("\nThe norm ball beside the former rule, with the same declared bounds")
    ratios = []
    for population, bounds in declared_sets():
        bench, former_rule = Bench(population, bounds), FormerRule(population)
        for setting in SETTINGS:
            former, ball = former_rule.error(*setting, bounds), bench.measure(*setting, bounds, rounds)
            ratios.append(ball.error / former)
            print_line(population, setting, former, ball)
        bench.curator.close()
    print(f"median {statistics.median(ratios):.2f} (bar {BALL_BAR}), largest {max(ratios):.2f} (bar 1)")


def compare_automatic(rounds):
    print(f"\nAutomatic bounds beside the former rule with groups = {GUIDE[0]}, rows = {GUIDE[1]}")
    columns = {"guide": [], "most": [], "best": []}
    covered = {"COUNT": [], "SUM": []}
    for population in heavy_tailed_sets():
        bench, former_rule, most = Bench(population), FormerRule(population), bounds_for_most(population)
        for setting in SETTINGS:
            chosen = bench.measure(*setting, AUTO, rounds)
            former = {
                "guide": former_rule.error(*setting, GUIDE),
                "most": former_rule.error(*setting, most),
                "best": former_rule.best_error(*setting),
            }
            for name, error in former.items():
                columns[name].append(chosen.error / error)
            covered[setting[0]].append(chosen.covered)
            print_line(population, setting, former["guide"], chosen, (former["most"], former["best"]))
        bench.curator.close()
    guide, most, best = (statistics.median(values) for values in columns.values())
    print(
        f"median {guide:.2f} (bar {AUTOMATIC_BAR}); beside bounds for 95 % of units {most:.2f}; beside the best bounds "
        f"{best:.2f}"
    )
    for statistic, cells in covered.items():
        pooled = np.concatenate([each.ravel() for each in cells])
        median = statistics.median(each.mean() for each in cells)
        print(
            f"truth within the margin, {statistic}: {pooled.mean():.0%} of cells (bar {COVERAGE_BAR:.0%}), "
            f"median set {median:.0%}"
        )


def compare_small(rounds):
    """Compare errors, which vary by a tenth or more from run to run, and margins, which are exact."""
    print("\nAutomatic beside declared bounds, few people; the last ratio is that of the margins")
    errors, margins = [], []
    for population in small_sets():
        declared = bounds_for_most(population)
        bench = Bench(population, declared)
        for setting in SETTINGS:
            known, chosen = (bench.measure(*setting, bounds, rounds) for bounds in ((None, None), AUTO))
            errors.append(chosen.error / known.error)
            margins.append(chosen.margin / known.margin)
            print_line(population, setting, known.error, chosen, (known.error, chosen.error / margins[-1]))
        bench.curator.close()
    if errors:
        print(
            f"errors: median {statistics.median(errors):.2f}; margins: median {statistics.median(margins):.3f}, "
            f"largest {max(margins):.3f} (bar {SMALL_BAR})"
        )
