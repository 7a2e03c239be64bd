"""Groups that partition selection shows at one cost: two rounds with weights 1/√k beside one round with weights L/k."""

import math
import os
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.stats import norm

import discreet as dc
from bench import shop

DRAWS = 20
MOST = 1024  # keys of a unit that counted before


def main():
    print(f"mean of {DRAWS} draws, COUNT(*) at epsilon 1{'keys':>22}{'L/k':>8}{'rounds':>8}")
    for name, (table, groups) in sets().items():
        now, loss = shown_now(table, groups)
        before = shown_before(table, groups, loss)
        keys = len(np.unique(table["key"].to_numpy()))
        verdict = "" if now >= before else "  fewer than before"
        print(f"{name:<40}{keys:>22,}{before:>8,.1f}{now:>8,.1f}{verdict}", flush=True)


def sets():
    """Return tables of units and keys, each with a bound on groups."""
    sales = pq.read_table(shop.make(Path(".bench"), 1_000_000, 50_000) / "sales.parquet")
    found = {"shop, 1,000,000 rows, by city": (as_table(sales["user"], sales["city"]), 5)}
    if folder := os.environ.get("DISCREET_DATA"):
        visits = pq.read_table(Path(folder) / "gowalla_nyc_checkins.parquet")
        found["check-ins by place"] = (as_table(visits["user"], visits["location"]), 2)
    for people, exponent, keys in (
        (20_000, 0.5, 3),
        (20_000, 1.0, 3),
        (20_000, 1.0, 20),
        (100_000, 1.0, 1),
        (20_000, 1.5, 1),
    ):
        found[f"{people:,} with {keys} keys, Zipf {exponent}"] = (zipf(people, exponent, keys), keys)
    return found


def as_table(units, keys):
    return pa.table({"unit": np.asarray(units), "key": np.asarray(keys)})


def zipf(people, exponent, keys):
    rng = np.random.default_rng(2026)
    chances = 1 / np.arange(1, 5001) ** exponent
    return as_table(np.repeat(np.arange(people), keys), rng.choice(5000, people * keys, p=chances / chances.sum()))


def opened(table, groups):
    columns = {"unit": "integer", "key": "integer"}
    return dc.open(table, unit="unit", budget=(1000, "1e-7"), columns=columns, groups=groups, rows=1, ledger=":memory:")


def shown_now(table, groups):
    with opened(table, groups) as curator:
        answers = [fresh_answer(curator, number) for number in range(DRAWS)]
        return statistics.mean(map(len, answers)), answers[0].loss


def fresh_answer(curator, number):
    """Ask about another version of the data, so that no earlier answer is reused."""
    data = curator.policy.data.model_copy(update={"version": f"version {number}"})
    other = dc.Curator(replace(curator.policy, data=data), curator._engine, curator.ledger)
    return other.ask("SELECT key, COUNT(*) AS n FROM data GROUP BY key", epsilon=1)


def shown_before(table, groups, loss):
    """Return what one round with weights min(1, L/k) shows at the same cost: COUNT(*) and the report have 51 %."""
    rho, delta = 0.49 * float(loss.rho), float(loss.delta)
    pairs = np.unique(np.stack([table["unit"].to_numpy(), table["key"].to_numpy()]), axis=1)
    units, keys = (np.unique(side, return_inverse=True)[1] for side in pairs)
    k = np.bincount(units)[units]
    weights = np.bincount(keys, np.where(k > MOST, 0, np.minimum(1, groups / k)))
    scale, counts = math.sqrt(groups / (2 * rho)), np.arange(1, MOST + 1)
    low, high = 0.0, 60 * scale
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        tails = norm.sf((middle - np.minimum(1, groups / counts)) / scale)
        fits = (-np.expm1(counts * np.log1p(-tails))).max() <= delta
        low, high = (low, middle) if fits else (middle, high)
    rng = np.random.default_rng(2026)
    return statistics.mean(int((weights + rng.normal(0, scale, len(weights)) >= high).sum()) for _ in range(DRAWS))
