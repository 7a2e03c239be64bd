"""Makes a table k-anonymous with anonypy as a file of jobs says, writes the releases, and tells the seconds as JSON.

A job is {"table", "quasi", "sensitive", "k", "release"}: a Parquet file to read and one to write. In a release a row
stands for as many people as its column "count" says.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import anonypy
import pandas as pd


def main():
    jobs = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps({"version": version("anonypy"), "told": [run(job) for job in jobs]}))


def run(job):
    """Return the seconds of one table; to make categories of its texts is not counted."""
    table = pd.read_parquet(job["table"])[[*job["quasi"], job["sensitive"]]]
    for name in table.columns:
        if not pd.api.types.is_numeric_dtype(table[name]):
            table[name] = table[name].astype("category")
    began = time.perf_counter()
    release = pd.DataFrame(anonypy.Preserver(table, job["quasi"], job["sensitive"]).anonymize_k_anonymity(job["k"]))
    seconds = time.perf_counter() - began
    for name in job["quasi"]:  # a set is a list of one text, in which commas stand between the values
        release[name] = [cell if isinstance(cell, str) else cell[0] for cell in release[name]]
    release.to_parquet(job["release"])
    return {"seconds": seconds}


main()
