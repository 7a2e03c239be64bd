"""Publishing: tables that add up, of all pairs and triples of Adult's columns, at epsilon 1 and delta 1e-9.

One row is one person. Errors are root mean squares over the cells of all tables: in theory, and of one release with
simulated noise of the same scale. The bars are those of the project. At the end, the plan with all tables of at most
three columns is published: from its file to the report, with the kernel's noise.
"""

import os
import time
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dc
from discreet.publish.marginals import (
    Axis,
    Measurement,
    choose_scales,
    least_squares,
    table_shape,
    whole_tables,
)

RHO = 0.014965
RELEASES = 10
BARS = {2: 48, 3: 91}
STEPS = {"age": 5, "fnlwgt": 75_000, "capital_gain": 5_000, "capital_loss": 250, "hours_per_week": 5}
END_TO_END = 5  # CPU seconds
POLICY = """
[data]
name = "adult"
protects = "person"
version = "1"
ledger = "adult.ledger"
[budget]
epsilon = 10
delta = 1e-9
[tables.adult]
source = "adult.parquet"
unit = "person"
groups = 1
rows = 1
[tables.adult.columns]
person = { type = "integer" }
"""
FEW = ("age", "education", "marital_status", "race", "sex", "income")


def main():
    if not os.environ.get("DISCREET_DATA"):
        print("needs adult.parquet in DISCREET_DATA")
        return
    tables_that_add_up(adult())
    whole_numbers(adult(FEW))
    end_to_end()


@dataclass(frozen=True)
class People:
    """The axes of a table of people, and a code per person on each."""

    axes: list[Axis]
    codes: list[np.ndarray]

    def count(self, table):
        """Return the true counts of a table."""
        shape = table_shape(self.axes, table)
        cells = np.zeros(len(self.codes[0]), np.int64)
        for (index, _), size in zip(table, shape, strict=True):
            cells = cells * size + self.codes[index]
        return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)


def adult(columns=None):
    """Return Adult, its five numbers in bins; a missing value is a value of its own."""
    data = pq.read_table(Path(os.environ["DISCREET_DATA"]) / "adult.parquet").drop(["split"])
    axes, codes = [], []
    for name in columns or data.column_names:
        values = data[name].to_numpy()
        if name in STEPS:
            binned = values // STEPS[name]
            code = binned - binned.min()
        else:
            code = np.unique(values.astype(str), return_inverse=True)[1]
        axes.append(Axis(name, int(code.max()) + 1))
        codes.append(code)
    return People(axes, codes)


def all_tables(axes, most):
    return [tuple((index, 0) for index in some) for k in range(most + 1) for some in combinations(range(len(axes)), k)]


def tables_that_add_up(people):
    print("columns  tables      cells  without own noise  equal split  in theory  measured  bar  CPU s")
    for most, bar in BARS.items():
        tables = all_tables(people.axes, most)
        sizes = np.array([np.prod(table_shape(people.axes, table)) for table in tables])
        truth = {table: people.count(table) for table in tables}
        start = time.process_time()
        scales = choose_scales(people.axes, dict.fromkeys(tables, 1.0))
        measurements = measure(truth, scales, 2026)
        noise_time, start = time.process_time() - start, time.process_time()
        release = least_squares(people.axes, measurements)
        found = {table: release.table(table) for table in tables}
        seconds = time.process_time() - start
        theory = np.sqrt(sum(float(variance.sum()) for _, variance in found.values()) / sizes.sum())
        measured = np.sqrt(sum(((found[t][0] - truth[t]) ** 2).sum() for t in tables) / sizes.sum())
        equal = np.sqrt(len(tables) / (2 * RHO))
        free = sum(scale == 0 for scale in scales.values())
        verdict = "" if max(theory, measured) <= bar else "  above the bar"
        print(
            f"{most:>7}{len(tables):>8}{int(sizes.sum()):>11,}{free:>19}{equal:>13.1f}{theory:>11.1f}{measured:>10.1f}{bar:>5}"
            f"{seconds:>7.2f}{verdict}  (scales and noise {noise_time:.2f} s)",
            flush=True,
        )


def measure(truth, scales, seed):
    """Return tables with simulated noise at the given scales."""
    random = np.random.default_rng(seed)
    variances = {table: 1 / (2 * RHO * scale**2) for table, scale in scales.items() if scale}
    return [
        Measurement(table, truth[table] + np.rint(random.normal(0, v**0.5, truth[table].shape)), v)
        for table, v in variances.items()
    ]


def whole_numbers(people):
    print(f"\nall pairs of {', '.join(axis.name for axis in people.axes)}")
    tables = all_tables(people.axes, 2)
    truth = {table: people.count(table) for table in tables}
    scales = choose_scales(people.axes, dict.fromkeys(tables, 1.0))
    zero = np.concatenate([truth[t].ravel() == 0 for t in tables])
    errors = {"unbiased": [], "whole numbers": []}
    seconds = 0.0
    for seed in range(RELEASES):
        measurements = measure(truth, scales, seed)
        release = least_squares(people.axes, measurements)
        start = time.process_time()
        whole = whole_tables(people.axes, measurements, tables)
        seconds += (time.process_time() - start) / RELEASES
        for name, found in (("unbiased", {t: release.table(t)[0] for t in tables}), ("whole numbers", whole)):
            errors[name].append(np.concatenate([(found[t] - truth[t]).ravel() for t in tables]))
    for name, each in errors.items():
        error, bias = np.sqrt(np.mean(np.square(each))), np.mean(np.array(each)[:, zero])
        print(f"{name:<14} error {error:.1f}, mean error of empty cells {bias:.1f}")
    cells = np.prod([axis.size for axis in people.axes])
    print(f"{seconds:.2f} CPU s for whole numbers over {cells:,} cells; means of {RELEASES} releases")


def end_to_end():
    """Publish all tables of at most three columns of Adult, and print the CPU time of everything."""
    with TemporaryDirectory() as folder:
        policy, plan = Path(folder, "policy.toml"), Path(folder, "plan.toml")
        write_plan(plan, write_policy(policy))
        start = time.process_time()
        with dc.open(policy) as curator:
            release = dc.publish.publish(curator, plan, Path(folder, "out"), progress=partial(show_step, start))
        seconds = time.process_time() - start
        cells = sum(table.table.num_rows for table in release.tables.values())
        verdict = "" if seconds <= END_TO_END else f" (above the bar of {END_TO_END})"
        print(f"{len(release.tables)} tables, {cells:,} cells, from plan to report: {seconds:.1f} CPU s{verdict}")


def show_step(start, step):
    print(f"{time.process_time() - start:>7.1f} CPU s: {step}", flush=True)


def write_policy(path):
    """Write a policy for Adult, where one row is one person; return the key of each column."""
    data = pq.read_table(Path(os.environ["DISCREET_DATA"]) / "adult.parquet").drop(["split"])
    with_person = data.append_column("person", pa.array(np.arange(data.num_rows)))
    pq.write_table(with_person, path.with_name("adult.parquet"))
    lines = []
    for name in data.column_names:
        values = data[name].drop_null().unique().to_pylist()
        null = ", null = true" if data[name].null_count else ""
        kind = "integer" if pa.types.is_integer(data[name].type) else "text"
        domain = f"between = [{min(values)}, {max(values)}]" if name in STEPS else f"in = {sorted(values)}"
        lines.append(f'{name} = {{ type = "{kind}", {domain}{null} }}')
    path.write_text(POLICY + "\n".join(lines))
    return {name: f"FLOOR({name} / {STEPS[name]})" if name in STEPS else name for name in data.column_names}


def write_plan(path, keys):
    lines = [f'[release]\nname = "Adult"\nrho = {RHO}']
    for some in (some for k in range(4) for some in combinations(keys, k)):
        named = [f"{keys[name]} AS {name}_bin" if name in STEPS else name for name in some]
        by = f" GROUP BY {', '.join(keys[name] for name in some)}" if some else ""
        lines.append(f"[tables.{'_and_'.join(some) or 'all'}]")
        lines.append(f'sql = "SELECT {", ".join([*named, "COUNT(*) AS n"])} FROM adult{by}"')
    path.write_text("\n".join(lines))
