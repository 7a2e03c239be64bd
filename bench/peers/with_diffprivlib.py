"""Fits diffprivlib's models as a file of jobs says, and tells how good each fit was and what it took, as JSON.

A job is {"model", "parameters", "table", "seeds"}: the table is an .npz with X and, where a model needs it, y; every
seed is one split into three quarters to fit and one to judge, and one draw of noise.
"""

import json
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
from diffprivlib import models
from judging import JUDGES, split


def main():
    warnings.simplefilter("ignore")  # it warns of scikit-learn's changes to come; bounds are always given
    jobs = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps({"version": version("diffprivlib"), "told": [run(job) for job in jobs]}))


def run(job):
    """Return the judgement and the seconds of every seed of one job."""
    table, seconds, judged = np.load(job["table"]), [], []
    for seed in job["seeds"]:
        fit, held = split(len(table["X"]), seed)
        model = getattr(models, job["model"])(**{name: arrays(value) for name, value in job["parameters"].items()})
        began = time.perf_counter()
        model.fit(table["X"][fit], table["y"][fit] if "y" in table else None)
        seconds.append(time.perf_counter() - began)
        judged.append(float(JUDGES[job["model"]](model, table["X"][held], table["y"][held] if "y" in table else None)))
    return {"judged": judged, "seconds": seconds}


def arrays(value):
    """Return bounds of several features as diffprivlib wants them: a pair of arrays."""
    several = isinstance(value, list) and any(isinstance(end, list) for end in value)
    if several:
        return tuple(np.array(end, dtype=float) for end in value)
    return tuple(value) if isinstance(value, list) else value


main()
