"""Fits interpret's private additive models as a file of jobs says, and tells how good each fit was and what it took.

A job is {"task", "table", "epsilon", "delta", "bounds", "categories", "target_bounds", "seeds"}: the table is an .npz
with X and y, where categories are numbers; every seed is one split into three quarters to fit and one to judge.
"""

import json
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
from judging import ADDITIVE, split


def main():
    warnings.simplefilter("ignore")  # one about delta: it wants less than 1/n
    jobs = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps({"version": version("interpret-core"), "told": [run(job) for job in jobs]}))


def run(job):
    """Return the judgement and the CPU seconds of every seed of one job."""
    table, seconds, judged = np.load(job["table"]), [], []
    for seed in job["seeds"]:
        fit, held = split(len(table["X"]), seed)
        model = made(job, seed)
        began = time.process_time()
        model.fit(table["X"][fit], table["y"][fit])
        seconds.append(time.process_time() - began)
        judged.append(float(ADDITIVE[job["task"]](model, table["X"][held], table["y"][held])))
    return {"judged": judged, "seconds": seconds}


def made(job, seed):
    kinds = ["nominal" if str(j) in job["categories"] else "continuous" for j in range(len(job["bounds"]))]
    settings = {
        "feature_types": kinds,
        "privacy_bounds": np.array(job["bounds"], dtype=float),
        "epsilon": job["epsilon"],
        "delta": job["delta"],
        "random_state": seed,
        "n_jobs": 1,
    }
    if job["task"] == "classification":
        return DPExplainableBoostingClassifier(**settings)
    low, high = job["target_bounds"]
    return DPExplainableBoostingRegressor(**settings, privacy_target_min=low, privacy_target_max=high)


main()
