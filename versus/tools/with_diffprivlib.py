"""diffprivlib: its tools on arrays, with all that concerns patients done by hand.

- Its privacy unit is a row, and it has no groups. So visits are limited to 24 per patient, chosen at random, with
  pandas; every row then gets a 24th of epsilon (group privacy). A row is in one group only, so groups compose in
  parallel.
- The mean is a sum over a count, with half of the share each: its own mean assumes that the number of rows is public.
- It has no partition selection, so that diagnoses, whose codes are not public, cannot be counted.
- It states no margins of error.
"""

import common
import numpy as np
import pandas as pd
from diffprivlib import BudgetAccountant, tools

BINS = ["1", "2", "3-5", "6-12", "13+"]


def publish(job):
    protocol, bounds = job["protocol"], job["protocol"]["bounds"]
    wards, months = protocol["data"]["wards"], protocol["data"]["months"]
    table = pd.read_csv(job["data"])
    each = table.groupby("patient").size().to_numpy()
    pairs = _at_most(bounds["wards"], table[["patient", "ward"]].drop_duplicates())
    visits = _at_most(bounds["visits"], table)
    ward = visits["ward"].map(wards.index).to_numpy()
    month = visits["month"].to_numpy() - 1
    cost, part = visits["cost"].to_numpy(), common.share(protocol)
    row = part / bounds["visits"]
    by_month = [[m + 1] for m in range(months)]
    by_both = [[w, m + 1] for w in wards for m in range(months)]
    names = [[w] for w in wards]
    low_high = tuple(map(float, bounds["cost"]))
    grouped = [cost[ward == place] for place in range(len(wards))]
    sums = [tools.sum(values, epsilon=row / 2, bounds=low_high) for values in grouped]
    lengths = histogram(ward, len(wards), row / 2)
    means = np.clip([total / max(1, length) for total, length in zip(sums, lengths, strict=True)], *low_high)
    patients = np.searchsorted([2, 3, 6, 13], each, side="right")
    return {
        "visits": common.rows_of([[]], histogram(np.zeros(len(visits), int), 1, row)),
        "visits_by_ward": common.rows_of(names, histogram(ward, len(wards), row)),
        "visits_by_month": common.rows_of(by_month, histogram(month, months, row)),
        "visits_by_ward_and_month": common.rows_of(by_both, histogram(ward * months + month, len(wards) * months, row)),
        "patients_by_ward": common.rows_of(
            names, histogram(pairs["ward"].map(wards.index).to_numpy(), len(wards), part / bounds["wards"])
        ),
        "cost_by_ward": common.rows_of(names, [tools.sum(values, epsilon=row, bounds=low_high) for values in grouped]),
        "mean_cost_by_ward": common.rows_of(names, means),
        "median_cost_by_ward": common.rows_of(
            names, [tools.median(values, epsilon=row, bounds=low_high) for values in grouped]
        ),
        "visits_by_diagnosis": "no: keys must be known",
        "patients_by_visits": common.rows_of([[name] for name in BINS], histogram(patients, len(BINS), part)),
    }


def _at_most(rows, table):
    """Return at most so many rows of every patient, chosen at random."""
    mixed = table.sample(frac=1)
    return mixed[mixed.groupby("patient").cumcount() < rows]


def histogram(codes, size, epsilon, accountant=None):
    """Return the noisy count of every code."""
    counts, _ = tools.histogram(codes, epsilon=epsilon, bins=size, range=(-0.5, size - 0.5), accountant=accountant)
    return counts.tolist()


def counts(job):
    boxes = pd.read_csv(job["data"])["box"].to_numpy()
    return histogram(boxes, job["keys"], job["epsilon"] / job["groups"])


def sums(job):
    table = pd.read_csv(job["data"])
    grouped = dict(iter(table.groupby("box")["value"]))
    empty = np.zeros(0)
    return [
        float(tools.sum(np.asarray(grouped.get(box, empty)), epsilon=job["epsilon"], bounds=(0.0, 1.0)))
        for box in range(job["keys"])
    ]


def repeats(job):
    """Request one count again and again, under a budget accountant."""
    people, answers = len(pd.read_csv(job["data"])), []
    accountant = BudgetAccountant(epsilon=job["epsilon"])
    for _ in range(job["requests"]):
        try:
            answers += histogram(np.zeros(people, int), 1, job["each"], accountant)
        except Exception as error:  # noqa: BLE001 - whatever it refuses with
            return {"answers": answers, "refusal": common.refused(error), "spent": float(accountant.total()[0])}
    return {"answers": answers, "refusal": None, "spent": float(accountant.total()[0])}


def spend(job):
    accountant = BudgetAccountant(epsilon=job["epsilon"])
    histogram(np.zeros(len(pd.read_csv(job["data"])), int), 1, job["spend"], accountant)


def remaining(job):
    """A new accountant starts anew."""
    return float(BudgetAccountant(epsilon=job["epsilon"]).remaining()[0])


if __name__ == "__main__":
    common.main("diffprivlib", {task.__name__: task for task in (publish, counts, sums, repeats, spend, remaining)})
