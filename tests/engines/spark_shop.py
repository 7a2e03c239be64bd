"""A shop with tables in Parquet, policies for Spark and DuckDB, and queries on it."""

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.policy import Policy
from discreet.query.passes import plan_query

POLICY = """
[data]
name = "shop"
timezone = "Europe/Berlin"
{engine}
ledger = "{ledger}"
[budget]
epsilon = 100.0
delta = 1e-6
[budget.analysts]
ana = {{ epsilon = 40.0 }}
[tables.sales]
source = "{sales}"
unit = "customer"
groups = 3
rows = 5
rows_max = 1000000
[tables.sales.columns]
customer = {{ type = "integer" }}
city = {{ type = "text", references = "regions.name" }}
street = {{ type = "text" }}
amount = {{ type = "decimal", between = [0, 100], step = 0.01 }}
pieces = {{ type = "integer", between = [0, 9] }}
paid = {{ type = "boolean" }}
time = {{ type = "timestamp", between = [2026-01-01, 2026-12-31] }}
[tables.lines]
source = "{lines}"
unit = {{ through = "sales", on = "sale", key = "customer" }}
groups = 3
rows = 5
[tables.lines.columns]
sale = {{ type = "integer" }}
weight = {{ type = "real", between = [0, 10], step = 0.125 }}
[tables.regions]
source = "{regions}"
public = true
[tables.regions.columns]
name = {{ type = "text" }}
region = {{ type = "text" }}
"""
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM sales",
    "SELECT COUNT(DISTINCT customer) AS n FROM sales WHERE paid",
    "SELECT city, COUNT(*) AS n, SUM(amount) AS s, AVG(pieces) AS a FROM sales GROUP BY city",
    "SELECT r.region, COUNT(*) AS n FROM sales AS s JOIN regions AS r ON s.city = r.name GROUP BY r.region",
    "SELECT street, COUNT(*) AS n FROM sales GROUP BY street",
    "SELECT EXTRACT(MONTH FROM time) AS m, COUNT(*) AS n FROM sales GROUP BY m",
    "SELECT CAST(time AS DATE) AS d, COUNT(*) AS n FROM sales WHERE time < TIMESTAMP '2026-01-08 00:00:00' GROUP BY d",
    "SELECT QUANTILE_CONT(amount, 0.5) AS m FROM sales",
    "SELECT COUNT(DISTINCT street) AS n FROM sales",
    "SELECT SUM(weight) AS w FROM lines",
    "SELECT COUNT(*) AS n FROM sales WHERE LOWER(street) LIKE 'lane%' AND amount / NULLIF(pieces, 0) > 3",
    """SELECT n, COUNT(*) AS k FROM (SELECT customer, COUNT(*) AS n FROM sales GROUP BY customer) AS t
    WHERE n BETWEEN 1 AND 5 GROUP BY n""",
]
NAMES = ("sales", "lines", "regions")
CITIES = ["Bonn", "Köln", "Trier"]


def tables(count=1500):
    """Return the rows; the last column of sales is an instant."""
    start, people = 1_767_225_600_000_000, max(400, count // 4)  # 2026-01-01 in UTC
    return {
        "sales": pa.table(
            {
                "customer": [i % people if i % 17 else None for i in range(count)],
                "city": [CITIES[i % 3] if i % 5 else None for i in range(count)],
                "street": ["Main" if i % 4 else f"Lane {i % 50}" for i in range(count)],
                "amount": [(i * 37 % 10_000) / 100 for i in range(count)],
                "pieces": [i % 7 for i in range(count)],
                "paid": [i % 3 == 0 for i in range(count)],
                "time": pa.array([start + i * 10**10 for i in range(count)], pa.timestamp("us", "UTC")),
            }
        ),
        "lines": pa.table({"sale": [i % 500 for i in range(count)], "weight": [i % 80 / 8 for i in range(count)]}),
        "regions": pa.table({"name": CITIES, "region": ["west", "west", "south"]}),
    }


def written(folder, count=1500):
    """Write the tables, sales as several files, and return where each is."""
    places = {}
    for name, table in tables(count).items():
        (folder / name).mkdir()
        size = max(1, table.num_rows // 3)
        for start in range(0, table.num_rows, size):
            pq.write_table(table.slice(start, size), folder / name / f"{start}.parquet")
        places[name] = f"{folder}/{name}/"
    return places


def text(url, places, ledger=":memory:"):
    """Return the policy for Spark."""
    return POLICY.format(engine=f'engine = "spark"\nconnection = "{url}"', ledger=ledger, **places)


def here():
    """Return the policy for DuckDB, which gets its rows as frames."""
    return Policy.parse(POLICY.format(engine="", ledger=":memory:", **{name: f"{name}.parquet" for name in NAMES}))


def exact(curator, sql):
    """Return the exact totals of a question, which nobody but a test ever sees."""
    plan = plan_query(sql, curator.policy, curator._engine, by="owner", groups=None, rows=None)
    found = []
    for part in plan.releases:
        totals = curator._engine.totals(part.question)
        each = dict(zip(totals.keys, map(tuple, totals.values.tolist()), strict=True))
        cells = [
            sorted(
                (str(totals.keys[group]), cell, weight) for group, cell, weight in zip(*places, strict=True) if weight
            )
            for tally in totals.cell_counts.values()
            for places in [[column.tolist() for column in (tally.groups, tally.cells, tally.weights)]]
        ]
        found.append(({key: row for key, row in each.items() if any(row)}, cells))
    return found
