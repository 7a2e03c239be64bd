"""Populations of many groups, simple random samples of them, and how often the margins of one answer hold."""

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.policy import Policy

POLICY = """
[data]
name = "survey"
ledger = ":memory:"
[budget]
epsilon = 1000000
{delta}
[tables.people]
source = "people"
{table}
[tables.people.columns]
person = {{ type = "integer" }}
area = {{ type = "text", in = [{areas}] }}
smokes = {{ type = "integer", between = [0, 1] }}
income = {{ type = "real", between = [0, 200] }}
"""


def open_sample(data, table, areas, delta=""):
    listed = ", ".join(f'"{area}"' for area in areas)
    return dc.open(Policy.parse(POLICY.format(table=table, areas=listed, delta=delta)), data={"people": data})


SQL = {
    "proportion": "SELECT area, AVG(smokes) AS v FROM people GROUP BY area",
    "mean": "SELECT area, AVG(income) AS v, STDDEV(income) AS d FROM people GROUP BY area",
    "total": "SELECT area, COUNT(*) AS v FROM people GROUP BY area",
    "sum": "SELECT area, SUM(income) AS v, STDDEV(income) AS d FROM people GROUP BY area",
}


def population(measure, groups, seed, size=200, share=0.5, *, different=None):
    """Return a measure, a finite population of equally large groups, and the rows that are sampled.

    The first `different` groups (all of them by default) have values of their own, and the others repeat these.
    """
    rng = np.random.default_rng(seed)
    own, copies = (different or groups) * size, groups // (different or groups)
    area = np.repeat(np.arange(groups), size)
    people = {
        "person": np.arange(groups * size),
        "area": np.char.add("g", area.astype(str)),
        "smokes": np.tile((rng.random(own) < 0.3).astype(int), copies),
        "income": np.tile(np.minimum(rng.gamma(2.0, 20.0, own), 200.0), copies),
    }
    return measure, pa.table(people), rng.permutation(groups * size)[: round(share * groups * size)]


def answer_on_sample(case, epsilon, delta=""):
    measure, people, drawn = case
    areas = list(dict.fromkeys(people.column("area").to_pylist()))
    table = f'unit = "row"\nsample = "simple"\nsample_size = {len(drawn)}\npopulation_size = {len(people)}'
    with open_sample(people.take(pa.array(drawn)), table, areas, delta) as curator:
        return curator.ask(SQL[measure], epsilon=epsilon), areas


def coverage(case, epsilon, delta="", part="margins"):
    """Return the share of groups whose true value in the population is within the margin."""
    answer, areas = answer_on_sample(case, epsilon, delta)
    measure, people, _ = case
    values = {"proportion": "smokes", "mean": "income", "sum": "income", "total": "person"}
    column = people.column(values[measure]).to_numpy().reshape(len(areas), -1)
    truth = {"proportion": column.mean(1), "mean": column.mean(1), "sum": column.sum(1)}.get(
        measure, np.full(len(areas), column.shape[1])
    )
    errors = np.abs(np.array(answer.table.column("v").to_pylist(), float) - truth)
    return float((errors <= np.array(getattr(answer, part)["v"], float)).mean())


def false_positives(case, epsilon, delta=""):
    """Return how often two groups are called different."""
    answer, areas = answer_on_sample(case, epsilon, delta)
    return float(np.mean([answer.differs(row, row + 1, "v").significant for row in range(0, len(areas) - 1, 2)]))
