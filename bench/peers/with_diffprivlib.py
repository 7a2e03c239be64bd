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


def split(rows, seed):
    """Return the places of the rows to fit and of those to judge."""
    order = np.random.default_rng(seed).permutation(rows)
    return np.split(order, [rows * 3 // 4])


def arrays(value):
    """Return bounds of several features as diffprivlib wants them: a pair of arrays."""
    several = isinstance(value, list) and any(isinstance(end, list) for end in value)
    return tuple(np.array(end, dtype=float) for end in value) if several else value


def score(model, held, labels):
    """Return the accuracy of a classifier, the R² of a regression."""
    return model.score(held, labels)


def inertia(model, held, _):
    """Return the mean squared distance to the nearest centre."""
    apart = held[:, None, :] - model.cluster_centers_[None, :, :]
    return (apart**2).sum(axis=2).min(axis=1).mean()


def kept(model, held, _):
    """Return the share of the variance that lies in the components' subspace."""
    centred = held - held.mean(axis=0)
    basis, _ = np.linalg.qr(model.components_.T)
    return ((centred @ basis) ** 2).sum() / (centred**2).sum()


def spread(model, held, _):
    """Return how far means and deviations are off, in deviations, as the root of the mean square over features."""
    deviation = held.std(axis=0)
    known = deviation > 0
    off = np.r_[model.mean_ - held.mean(axis=0), np.sqrt(model.var_) - deviation]
    return np.sqrt(np.mean((off / np.r_[deviation, deviation])[np.r_[known, known]] ** 2))


JUDGES = {
    "GaussianNB": score,
    "KMeans": inertia,
    "LinearRegression": score,
    "LogisticRegression": score,
    "PCA": kept,
    "StandardScaler": spread,
}

main()
