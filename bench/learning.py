"""Private estimators compared with diffprivlib (same splits, bounds, pure epsilon), and time with scikit-learn."""

import json
import os
import time
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from sklearn import cluster as clustering
from sklearn import datasets, decomposition, linear_model, mixture, naive_bayes, preprocessing

from bench.peers import judging, running
from discreet import learn

PLACE = Path(".bench")
DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
EPSILONS = (0.5, 1, 3, 10)
SEEDS = list(range(3000, 3020))  # none of them chose anything in the methods
ADULT = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")
MORE_IS_BETTER = {"GaussianNB", "LogisticRegression", "LinearRegression", "PCA"}
PATIENCE = 120  # seconds for the fits of one model on one data set
TIMES, SLACK = 10, 0.02  # a fit may take so many times scikit-learn's, and so many seconds


def main():
    tables = {name: made(name) for name in ("breast_cancer", "wine", "digits", "diabetes", "adult")}
    jobs = [job for job in every_job() if tables[job["name"]] is not None]
    jobs.sort(key=lambda job: (job["model"], job["name"], job["epsilon"]))
    told = beside(jobs)
    print(f"{'':38}{'ours':>9}{'diffprivlib':>13}{'':9}{'fit, ms':>9}{'allowed':>9}")
    compared = lost = 0
    for job, theirs in zip(jobs, told, strict=True):
        judged, seconds = fitted(job)
        allowed = TIMES * exact_seconds(job) + SLACK
        peer = float(np.median(theirs["judged"])) if theirs else float("nan")
        ours = float(np.median(judged))
        wins = ours >= peer if job["model"] in MORE_IS_BETTER else ours <= peer
        compared += theirs is not None
        lost += theirs is not None and not wins
        label = f"{job['model']}, {job['name']}, epsilon {job['epsilon']:g}"
        words = "" if theirs is None else "better" if wins else "WORSE"
        slow = "" if np.median(seconds) <= allowed else "  SLOW"
        print(
            f"{label:38}{ours:9.3f}{peer:13.3f}  {words:7}{1000 * np.median(seconds):9.1f}{1000 * allowed:9.1f}{slow}"
        )
    print(f"{compared - lost} of {compared} better (higher accuracy, R² and variance; lower inertia and error)")
    million()


def made(name):
    """Write a data set with its declared bounds: whole numbers that anybody might say, rounded outwards."""
    PLACE.mkdir(exist_ok=True)
    if name == "adult":
        if not (DATA / "adult.parquet").exists():
            return None
        table = pq.read_table(DATA / "adult.parquet").to_pandas()
        X = table[[column for column in table.columns if column.replace("-", "_") in ADULT]].to_numpy(float)
        y = table[table.columns[-2] if table.columns[-1] == "split" else table.columns[-1]]
        y = y.astype(str).str.contains(">50K").to_numpy(int)
    else:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    np.savez(PLACE / f"{name}.npz", X=X, y=y)
    return X


def bounds_of(name):
    X = np.load(PLACE / f"{name}.npz")["X"]
    if name == "digits":
        return [0, 16]
    return [[float(-_round_up(-v)) if v < 0 else 0.0 for v in X.min(axis=0)], [_round_up(v) for v in X.max(axis=0)]]


def _round_up(value):
    """Return a number of one digit that is not below; at least a little above zero."""
    size = 10.0 ** np.floor(np.log10(max(value, 1e-6)))
    return float(np.ceil(value / size) * size)


def every_job():
    for name in ("breast_cancer", "wine", "digits", "adult"):
        bounds = bounds_or_none(name)
        if bounds is None:
            continue
        norm = float(np.linalg.norm(np.max(np.abs(np.broadcast_arrays(*bounds, np.zeros(width(name)))[:2]), axis=0)))
        yield from jobs_of(name, bounds, norm)
    bounds = bounds_or_none("diabetes")
    for epsilon in EPSILONS:
        settings = {"epsilon": epsilon, "bounds_X": bounds, "bounds_y": [0, 400]}
        yield job("LinearRegression", "diabetes", epsilon, settings, {"bounds": bounds, "target_bounds": (0, 400)})


def jobs_of(name, bounds, norm):
    labels = np.unique(np.load(PLACE / f"{name}.npz")["y"]).tolist()
    for epsilon in EPSILONS:
        base, ours = {"epsilon": epsilon, "bounds": bounds}, {"bounds": bounds}
        yield job("GaussianNB", name, epsilon, base, {**ours, "classes": labels})
        yield job(
            "LogisticRegression", name, epsilon, {"epsilon": epsilon, "data_norm": norm}, {**ours, "classes": labels}
        )
        count = len(labels)
        yield job("KMeans", name, epsilon, {**base, "n_clusters": count}, {**ours, "n_clusters": count})
        yield job("PCA", name, epsilon, {**base, "n_components": 2, "data_norm": norm}, {**ours, "n_components": 2})
        yield job("StandardScaler", name, epsilon, base, ours)


def job(model, name, epsilon, parameters, ours):
    table = str(PLACE / f"{name}.npz")
    return {
        "model": model,
        "name": name,
        "epsilon": epsilon,
        "table": table,
        "seeds": SEEDS,
        "parameters": parameters,
        "ours": ours,
    }


def bounds_or_none(name):
    return bounds_of(name) if (PLACE / f"{name}.npz").exists() else None


def width(name):
    return np.load(PLACE / f"{name}.npz")["X"].shape[1]


def beside(jobs):
    """Return what diffprivlib reaches in each job; None where it did not finish: some of its samplers stall."""
    path, found = PLACE / "jobs.json", []
    for _, group in groupby(jobs, key=lambda each: (each["model"], each["name"])):
        several = list(group)
        asked = [{key: each[key] for key in ("model", "parameters", "table", "seeds")} for each in several]
        path.write_text(json.dumps(asked))
        try:
            found += running.run_jobs("diffprivlib", path, PATIENCE)
        except running.NotMeasuredError as reason:
            print(f"diffprivlib, {several[0]['model']}, {several[0]['name']}: {reason}", flush=True)
            found += [None] * len(several)
    return found


def fitted(each):
    table, judged, seconds = np.load(each["table"]), [], []
    settings = {name: arrays(value) for name, value in each["ours"].items()}
    for seed in each["seeds"]:
        fit, held = judging.split(len(table["X"]), seed)
        model = getattr(learn, each["model"])(epsilon=each["epsilon"], neighbours="replacement", **settings)
        began = time.perf_counter()
        model.fit(table["X"][fit], table["y"][fit])
        seconds.append(time.perf_counter() - began)
        judged.append(float(judging.JUDGES[each["model"]](model, table["X"][held], table["y"][held])))
    return judged, seconds


def arrays(value):
    several = isinstance(value, list) and any(isinstance(end, list) for end in value)
    return tuple(np.array(end) for end in value) if several else value


EXACT = {
    "GaussianNB": lambda _: naive_bayes.GaussianNB(),
    "LogisticRegression": lambda _: linear_model.LogisticRegression(),
    "LinearRegression": lambda _: linear_model.LinearRegression(),
    "KMeans": lambda ours: clustering.KMeans(ours["n_clusters"]),
    "PCA": lambda ours: decomposition.PCA(ours["n_components"]),
    "StandardScaler": lambda _: preprocessing.StandardScaler(),
}


def exact_seconds(each, times=5):
    """Return what a fit of scikit-learn's takes, at best."""
    table, found = np.load(each["table"]), []
    for seed in each["seeds"][:times]:
        fit, _ = judging.split(len(table["X"]), seed)
        X, y = table["X"][fit], table["y"][fit]
        if each["model"] == "LogisticRegression":
            X = preprocessing.StandardScaler().fit_transform(X)
        began = time.perf_counter()
        EXACT[each["model"]](each["ours"]).fit(X, y)
        found.append(time.perf_counter() - began)
    return float(np.median(found))


def million(rows=1_000_000):
    """Fit a million points: no slower than scikit-learn's mixture."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-8, 8, (5, 2))[rng.integers(0, 5, rows)] + rng.normal(0, 1, (rows, 2))
    spent = []
    for model in (mixture.GaussianMixture(5), learn.GaussianMixture(5, epsilon=1, delta=1e-6, bounds=(-14, 14))):
        began = time.process_time()
        model.fit(X)
        spent.append(time.process_time() - began)
    print(f"GaussianMixture, {rows:,} points, K = 5: CPU {spent[1]:.1f} s, scikit-learn {spent[0]:.1f} s (the target)")
