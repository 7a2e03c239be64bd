"""Synthesises rows with OpenDP's AIM as a file of jobs says, and tells the time and memory as JSON.

A job is {"rows", "sizes", "rho", "columns", "out"}: a file with an array of codes, the number of codes per column, the
budget, the columns to use, and the file for the synthetic codes. All codes are declared, so delta is 0.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import measure
import numpy as np
import opendp.prelude as dp
import polars as pl


def main():
    dp.enable_features("contrib")
    jobs = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps({"told": [run(job) for job in jobs]}))


def run(job):
    """Write the synthetic codes, and return what that took."""
    codes = np.load(job["rows"])[:, job["columns"]]
    names = [f"c{column}" for column in job["columns"]]
    data = pl.DataFrame(codes, schema=names).lazy()
    began, started = time.process_time(), time.perf_counter()
    context = dp.Context.compositor(
        data=data, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=job["rho"])
    )
    keys = {name: list(range(job["sizes"][column])) for name, column in zip(names, job["columns"], strict=True)}
    table = context.query(rho=job["rho"]).contingency_table(keys=keys, algorithm=dp.mbi.AIM()).release()
    synthetic = table.synthesize(len(codes))
    told = {"cpu": time.process_time() - began, "wall": time.perf_counter() - started, "peak": measure._peak()}
    # A key of its own stands for null; it becomes the first code.
    np.save(job["out"], synthetic.select(pl.col(names).fill_null(0)).to_numpy())
    return told | {"version": version("opendp"), "rows": len(synthetic)}


main()
