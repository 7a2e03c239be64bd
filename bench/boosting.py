"""Private additive models compared with interpret's DP-EBM: same splits, bounds, epsilon, delta and neighbours.

Neighbours differ by one row that is removed: interpret's noise covers a count of one per histogram and one residual per
sum, and no more, so that its claim is about removal. It takes the number of rows and the categories from the data at no
cost. Several splits, one fit of each; the interpret column is what its defaults reach.
"""

import json
import os
import time
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from sklearn import datasets

from bench.peers import judging, running
from discreet import learn

PLACE = Path(".bench")
DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
EPSILONS, DELTA = (0.5, 1, 4), 1e-5
SEEDS = list(range(7000, 7007))  # none of them chose anything in the methods
PATIENCE = 600  # seconds for all fits of one data set
MODELS = {
    "classification": learn.ExplainableBoostingClassifier,
    "regression": learn.ExplainableBoostingRegressor,
}


def main(*names):
    """Compare the models on all data sets, or on those with these names."""
    PLACE.mkdir(exist_ok=True)
    jobs = [
        job
        for name, make in SETS.items()
        if name in (names or SETS) and (made := make())
        for job in jobs_of(name, *made)
    ]
    print(f"{'AUC, or RMSE; medians (ranges)':28}{'ours':>26}{'interpret':>26}{'':8}{'CPU s per fit':>22}")
    won = 0
    for job, theirs in zip(jobs, beside(jobs), strict=True):
        ours = fitted(job)
        higher = job["task"] == "classification"
        wins = theirs and (_median(ours, "judged") >= _median(theirs, "judged")) == higher
        won += bool(wins)
        words = "" if theirs is None else "better" if wins else "WORSE"
        label = f"{job['name']}, epsilon {job['epsilon']:g}"
        print(
            f"{label:28}{_shown(ours, 'judged'):>26}{_shown(theirs, 'judged'):>26}  {words:6}"
            f"{_median(ours, 'seconds'):11.2f}{_median(theirs, 'seconds'):11.2f}",
            flush=True,
        )
    print(f"{won} of {len(jobs)} better; {len(SEEDS)} splits each, delta {DELTA:g}, neighbours by removal of a row")


def adult_income():
    """Income class of the Adult census data from its other columns."""
    return _adult("income", "classification", None)


def adult_hours():
    """Hours of work per week of the Adult census data from its other columns."""
    return _adult("hours_per_week", "regression", (0, 100))


def _adult(target, task, target_bounds):
    bounds = {
        "age": (0, 120),
        "fnlwgt": (0, 2e6),
        "education_num": (0, 17),
        "capital_gain": (0, 1e5),
        "capital_loss": (0, 5000),
        "hours_per_week": (0, 100),
    }
    if (table := _table("adult")) is None:
        return None
    table = table.drop(columns="split")
    y = table.pop(target)
    y = y.astype(str).str.contains(">50K") if target == "income" else y
    categories, columns, ends = {}, [], []
    for j, name in enumerate(table.columns):
        if name in bounds:
            columns.append(table[name].to_numpy(float))
            ends.append([*map(float, bounds[name])])
        else:
            names, codes = np.unique(table[name].fillna("?").astype(str), return_inverse=True)
            columns.append(codes.astype(float))
            ends.append([0.0, float(len(names) - 1)])
            categories[str(j)] = list(range(len(names)))
    return np.column_stack(columns), y.to_numpy(float), task, ends, categories, target_bounds


def taxi_fares():
    """Fares of taxis in New York from distance, seconds, places, payment and hour."""
    if (table := _table("nyctaxi2013_trips_newyear")) is None:
        return None
    codes = {"CSH": 0, "CRD": 1}
    X = np.column_stack(
        [
            table["trip_distance"],
            table["trip_time_in_secs"],
            table["pickup_longitude"],
            table["pickup_latitude"],
            table["dropoff_longitude"],
            table["dropoff_latitude"],
            table["pickup_datetime"].dt.hour,
            table["payment_type"].map(codes).fillna(2),
        ]
    ).astype(float)
    city = [[-74.3, -73.6], [40.5, 41.0]]
    bounds = [[0, 30], [0, 3600], *city, *city, [0, 24], [0, 2]]
    return (
        np.clip(X, *np.transpose(bounds)),
        table["fare_amount"].clip(0, 100),
        "regression",
        bounds,
        {"7": [0, 1, 2]},
        (0, 100),
    )


def life_science():
    """The label of the Life Science data from its ten components."""
    if (table := _table("lifesci_dpem")) is None:
        return None
    y = table.pop("y").to_numpy(float)
    return table.to_numpy(float), y, "classification", [[-20, 20]] * table.shape[1], {}, None


def ten_squares():
    """scikit-learn's make_hastie_10_2: the sign of a sum of ten squares."""
    X, y = datasets.make_hastie_10_2(12_000, random_state=1)
    return np.clip(X, -4, 4), (y > 0).astype(float), "classification", [[-4, 4]] * 10, {}, None


def friedman():
    """scikit-learn's make_friedman1: a sum of a product, a square and two lines, and five columns without effect."""
    X, y = datasets.make_friedman1(20_000, noise=1.0, random_state=1)
    return X, np.clip(y, -5, 35), "regression", [[0, 1]] * 10, {}, (-5, 35)


SETS = {
    "Adult, income": adult_income,
    "Life Science": life_science,
    "ten squares": ten_squares,
    "Adult, hours": adult_hours,
    "taxi fares": taxi_fares,
    "Friedman 1": friedman,
}


def _table(name):
    path = DATA / f"{name}.parquet"
    return pq.read_table(path).to_pandas() if path.exists() else None


def jobs_of(name, X, y, task, bounds, categories, target_bounds):  # noqa: PLR0913, PLR0917 - one data set
    path = PLACE / f"additive_{name.replace(', ', '_').replace(' ', '_')}.npz"
    np.savez(path, X=X, y=y)
    settings = {"table": str(path), "bounds": bounds, "categories": categories, "target_bounds": target_bounds}
    return [
        {"name": name, "task": task, "epsilon": epsilon, "delta": DELTA, "seeds": SEEDS, **settings}
        for epsilon in EPSILONS
    ]


def beside(jobs):
    """Return what interpret reaches in each job; None where it did not finish."""
    path, found = PLACE / "jobs.json", []
    for name, group in groupby(jobs, key=lambda each: each["name"]):
        several = list(group)
        path.write_text(json.dumps(several))
        try:
            found += running.run_jobs("interpret", path, PATIENCE)
        except running.NotMeasuredError as reason:
            print(f"interpret, {name}: {reason}", flush=True)
            found += [None] * len(several)
    return found


def fitted(job):
    """Return how good our fits are, and their CPU seconds."""
    table, judged, seconds = np.load(job["table"]), [], []
    for seed in job["seeds"]:
        fit, held = judging.split(len(table["X"]), seed)
        model = model_of(job)
        began = time.process_time()
        model.fit(table["X"][fit], table["y"][fit])
        seconds.append(time.process_time() - began)
        judged.append(float(judging.ADDITIVE[job["task"]](model, table["X"][held], table["y"][held])))
    return {"judged": judged, "seconds": seconds}


def model_of(job):
    """Return our model with what a job declares."""
    categories = {int(j): values for j, values in job["categories"].items()}
    numeric = [ends for j, ends in enumerate(job["bounds"]) if j not in categories]
    declared = {"bounds": tuple(map(list, zip(*numeric, strict=True))), "categories": categories or None}
    target = {"classes": [0, 1]} if job["task"] == "classification" else {"target_bounds": tuple(job["target_bounds"])}
    return MODELS[job["task"]](epsilon=job["epsilon"], delta=job["delta"], **declared, **target)


def _median(told, what):
    return float(np.median(told[what])) if told else float("nan")


def _shown(told, what):
    return f"{np.median(told[what]):.3f} ({min(told[what]):.3f}-{max(told[what]):.3f})" if told else "-"
