"""Measures tables with pycanon as a file of jobs says, and tells the numbers and seconds as JSON.

A job is {"table", "quasi", "sensitive"}: a Parquet file and its columns.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pandas as pd
from pycanon import anonymity


def main():
    jobs = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps({"version": version("pycanon"), "told": [run(job) for job in jobs]}))


def run(job):
    """Return each measure of one table with its seconds."""
    table, told = pd.read_parquet(job["table"]), {}
    for name, measure in MEASURES.items():
        began = time.perf_counter()
        value = measure(table, job["quasi"], [job["sensitive"]])
        told[name] = {"value": value, "seconds": time.perf_counter() - began}
    return told


MEASURES = {
    "k": lambda table, quasi, _: int(anonymity.k_anonymity(table, quasi)),
    "alpha": lambda *given: float(anonymity.alpha_k_anonymity(*given)[0]),
    "l": lambda *given: int(anonymity.l_diversity(*given)),
    "entropy_l": lambda *given: int(anonymity.entropy_l_diversity(*given)),
    "recursive_c": lambda *given: float(anonymity.recursive_c_l_diversity(*given)[0]),
    "beta": lambda *given: float(anonymity.basic_beta_likeness(*given)),
    "enhanced_beta": lambda *given: float(anonymity.enhanced_beta_likeness(*given)),
    "delta": lambda *given: float(anonymity.delta_disclosure(*given)),
    "t": lambda *given: float(anonymity.t_closeness(*given)),
}
main()
