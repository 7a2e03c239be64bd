"""The hospital that every tool publishes: generated visits, with a heavy tail of visits per patient and of costs."""

import tomllib
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PROTOCOL = Path(__file__).with_name("protocol.toml")
MOST_VISITS = 156  # three a week
BINS = ("1", "2", "3-5", "6-12", "13+")  # of patients by visits
_EDGES = (2, 3, 6, 13)
_WARD_WEIGHTS = (11, 9, 24, 7, 21, 8, 6, 14)
_MONTH_WEIGHTS = (10, 9, 9, 8, 8, 7, 7, 7, 8, 8, 9, 10)
_TYPICAL_COST = (260, 90, 140, 310, 180, 420, 120, 380)


def protocol():
    """Return the protocol."""
    return tomllib.loads(PROTOCOL.read_text(encoding="utf-8"))


def visits(data):
    """Return a table of visits: patient, ward, month, diagnosis and cost; the same for the same `data` section."""
    draw = np.random.default_rng(data["seed"])
    people = data["patients"]
    # Pareto with exponent 2: 25 % come twice or more, 1 % ten times or more.
    each = np.minimum(MOST_VISITS, np.floor(draw.random(people) ** -0.5)).astype(np.int64)
    patient = np.repeat(np.arange(people), each)
    total = len(patient)
    home = _choose(draw, _WARD_WEIGHTS, people)
    ward = np.where(draw.random(total) < 0.7, home[patient], _choose(draw, _WARD_WEIGHTS, total))
    month = _choose(draw, _MONTH_WEIGHTS, total) + 1
    ranks = 1 / np.arange(1, data["codes"] + 1) ** 1.1
    main = _choose(draw, ranks, people)
    diagnosis = np.where(draw.random(total) < 0.6, main[patient], _choose(draw, ranks, total))
    cost = np.round(np.array(_TYPICAL_COST)[ward] * np.exp(0.9 * draw.standard_normal(total)), 2)
    order = draw.permutation(total)
    return pa.table(
        {
            "patient": patient[order],
            "ward": np.array(data["wards"])[ward[order]],
            "month": month[order],
            "diagnosis": np.char.add("D", np.char.zfill(diagnosis[order].astype(str), 3)),
            "cost": cost[order],
        }
    )


def write(folder, data):
    """Write the visits as Parquet and return the hash of their contents."""
    table = visits(data)
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / "visits.parquet")
    return digest(table)


def digest(table):
    """Return a hash of a table's values, whatever the file format."""
    found = sha256()
    for name in table.column_names:
        found.update("\n".join(map(str, table[name].to_pylist())).encode())
    return found.hexdigest()


def truth(table, months):
    """Return the unclipped truth: for every question a number for every key; keys are tuples."""
    frame = table.to_pandas()
    by = frame.groupby
    each = by("patient").size().to_numpy()
    bins = np.bincount(np.searchsorted(_EDGES, each, side="right"), minlength=len(BINS))
    found = {
        "visits": {(): len(frame)},
        "visits_by_ward": by("ward").size(),
        "visits_by_month": by("month").size(),
        "visits_by_ward_and_month": by(["ward", "month"]).size(),
        "patients_by_ward": by("ward")["patient"].nunique(),
        "cost_by_ward": by("ward")["cost"].sum(),
        "mean_cost_by_ward": by("ward")["cost"].mean(),
        "median_cost_by_ward": by("ward")["cost"].median(),
        "visits_by_diagnosis": by("diagnosis").size(),
        "patients_by_visits": dict(zip(BINS, bins, strict=True)),
    }
    assert len(found["visits_by_month"]) == months
    return {
        question: {key if isinstance(key, tuple) else (key,): float(value) for key, value in dict(cells).items()}
        for question, cells in found.items()
    }


def _choose(draw, weights, count):
    """Return indices drawn with these weights, by inversion of uniform numbers, which every numpy draws alike."""
    shares = np.cumsum(np.asarray(weights, float))
    return np.minimum(np.searchsorted(shares / shares[-1], draw.random(count), side="right"), len(shares) - 1)
