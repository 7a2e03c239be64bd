"""A small hospital: generated visits, its policy, and plans."""

import numpy as np
import pyarrow as pa

import discreet as dc

POLICY = """
[data]
name = "visits"
protects = "patient"
ledger = "{ledger}"
version = "1"
[budget]
{budget}
[tables.visits]
source = "visits.parquet"
unit = "patient"
groups = {groups}
rows = {rows}
[tables.visits.columns]
patient = {{ type = "integer" }}
ward = {{ type = "text", in = ["A", "B", "C"] }}
sex = {{ type = "text", in = ["f", "m"] }}
day = {{ type = "date", between = [2025-01-30, 2025-02-03] }}
cost = {{ type = "real", between = [0, 500] }}
age = {{ type = "integer", between = [0, 99] }}
"""
PLAN = """
[release]
name = "Hospital tables"
epsilon = {epsilon}
[tables.by_ward_and_sex]
sql = "SELECT ward, sex, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY ward, sex"
weight = 2
[tables.by_sex_and_ward]
sql = "SELECT sex, ward, COUNT(*) AS n, SUM(cost) AS total FROM visits GROUP BY sex, ward ORDER BY ward DESC, sex"
[tables.by_ward]
sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
[tables.by_day]
sql = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"
[tables.by_month]
sql = "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n, COUNT(cost) AS known FROM visits GROUP BY 1"
[tables.all_visits]
sql = "SELECT COUNT(*) AS n FROM visits"
"""
PEOPLE = """
[tables.people]
sql = "SELECT ward, COUNT(DISTINCT patient) AS patients FROM visits GROUP BY ward"
"""
ROWS = """
[synthetic.rows]
table = "visits"
columns = ["ward", "sex", "age", "cost"]
bins = { age = 25 }
"""


def visits(count=3_000, people=3_000, seed=5):
    """Generated visits; a few rows have no ward or no cost."""
    draw = np.random.default_rng(seed)
    ward = draw.choice(["A", "B", "C"], count, p=[0.5, 0.3, 0.2])
    cost = np.where(ward == "A", draw.gamma(2, 50, count), draw.gamma(2, 90, count))
    return pa.table(
        {
            "patient": np.arange(count) % people,
            "ward": pa.array(ward, mask=np.arange(count) % 97 == 0),
            "sex": draw.choice(["f", "m"], count),
            "day": pa.array(draw.integers(20118, 20123, count).astype("int32")).cast(pa.date32()),
            "cost": pa.array(cost.clip(0, 500), mask=np.arange(count) % 31 == 0),
            "age": draw.integers(0, 100, count),
        }
    )


def policy_text(ledger=":memory:", budget="epsilon = 8\ndelta = 1e-6", groups=2, rows=2):
    return POLICY.format(ledger=ledger, budget=budget, groups=groups, rows=rows)


def curator_on(table, **settings):
    return dc.open(dc.policy.Policy.parse(policy_text(**settings)), data={"visits": table})


def truth(table, *keys, column=None):
    """The exact counts or sums of rows with a ward, a sex and a day, by key."""
    kept = [row for row in table.to_pylist() if row["ward"] is not None]
    found = {}
    for row in kept:
        key = tuple(row[name] for name in keys)
        found[key] = found.get(key, 0) + (1 if column is None else row[column] or 0)
    return found
