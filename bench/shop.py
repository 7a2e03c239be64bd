"""Simulated data for timing queries: ten million purchases by half a million people, with heavy tails."""

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CITIES, CATEGORIES, REGIONS = 2_000, 20, 25
POLICY = """
[data]
name = "shop"
ledger = ":memory:"
[budget]
epsilon = 1000
delta = 1e-7
[tables.sales]
source = "sales.parquet"
unit = "user"
groups = 5
rows = 10
rows_max = 1_000_000_000
[tables.sales.columns]
user = {{ type = "integer" }}
city = {{ type = "integer" }}
category = {{ type = "integer", in = [{categories}] }}
amount = {{ type = "real", between = [0, 500] }}
[tables.cities]
source = "cities.parquet"
public = true
"""


def make(folder: Path, rows: int = 10_000_000, people: int = 500_000) -> Path:
    """Write the tables and the policies once; return their folder."""
    place = folder / f"shop-{rows}"
    if (place / "policy.toml").exists():
        return place
    place.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(2026)
    # People's numbers of rows: log-normal around a median of 9 with a Pareto tail; the most active has over 100,000.
    sizes = np.exp(rng.normal(np.log(9), 1.05, people)) + (rng.pareto(1.1, people) * 0.6)
    sizes = np.maximum(1, sizes / sizes.sum() * rows).astype(np.int64)
    user = np.repeat(np.arange(people), sizes)[:rows]
    user = np.concatenate([user, rng.integers(0, people, rows - user.size)])
    # Everybody has a few places of their own; the rest of their rows are anywhere, popular cities more often.
    home = (rng.pareto(0.9, (people, 4)) * 15).astype(np.int64) % CITIES
    away = (rng.pareto(0.8, rows) * 20).astype(np.int64) % CITIES
    stay = rng.random(rows) < 0.8
    city = np.where(stay, home[user, rng.integers(0, 4, rows)], away)
    category = np.minimum((rng.pareto(1.2, rows) * 3).astype(np.int64), CATEGORIES - 1)
    amount = np.minimum(rng.gamma(1.5, 30, rows), 500.0).round(2)
    order = rng.permutation(rows)
    table = pa.table({"user": user, "city": city, "category": category, "amount": amount}).take(order)
    pq.write_table(table, place / "sales.parquet", compression="zstd", row_group_size=500_000)
    regions = [f"region {number % REGIONS}" for number in range(CITIES)]
    pq.write_table(pa.table({"city": np.arange(CITIES), "region": regions}), place / "cities.parquet")
    text = POLICY.format(categories=", ".join(map(str, range(CATEGORIES))))
    (place / "row.toml").write_text(text.replace('unit = "user"', 'unit = "row"'))
    (place / "policy.toml").write_text(text)
    return place


if __name__ == "__main__":
    began = time.perf_counter()
    print(make(Path(".bench")), f"{time.perf_counter() - began:.1f} s")
