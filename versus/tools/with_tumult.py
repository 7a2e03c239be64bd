"""Tumult Analytics: one session per publication on a local Spark, with constraints on what a patient contributes.

- Laplace noise under an (epsilon, delta) budget: delta is needed by the selection of diagnoses only, which gets all of
  it and half of that question's share of epsilon; the counts of the groups it selects get the other half.
- `MaxRowsPerID` bounds visits; distinct patients are at most one row per ward, in at most four wards.
- Patients are binned by their number of visits with `flat_map_by_id`.
- It states no margins of error with its answers.
"""

import logging
import os
import sys
import tempfile

import common
from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddRowsWithID,
    ApproxDPBudget,
    ColumnDescriptor,
    ColumnType,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    MaxRowsPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)

BINS = ["1", "2", "3-5", "6-12", "13+"]
TEXT = ColumnDescriptor(ColumnType.VARCHAR, allow_null=False)


def publish(job):
    protocol, bounds = job["protocol"], job["protocol"]["bounds"]
    wards, months = protocol["data"]["wards"], list(range(1, protocol["data"]["months"] + 1))
    privacy, part = protocol["privacy"], common.share(protocol)
    session = _session(job, "visits", "patient", ApproxDPBudget(privacy["epsilon"], privacy["delta"]))
    by_ward, by_month = KeySet.from_dict({"ward": wards}), KeySet.from_dict({"month": months})
    by_both = KeySet.from_dict({"ward": wards, "month": months})
    low, high = bounds["cost"]

    def rows():
        return QueryBuilder("visits").enforce(MaxRowsPerID(bounds["visits"]))

    def ask(query, keys, epsilon=part):
        return _cells(session.evaluate(query, ApproxDPBudget(epsilon, 0)), keys)

    few = QueryBuilder("visits").enforce(MaxGroupsPerID("ward", bounds["wards"]))
    one = few.enforce(MaxRowsPerGroupPerID("ward", 1)).groupby(by_ward).count(name="n")
    each = QueryBuilder("visits").flat_map_by_id(_bin, new_column_types={"visits": TEXT}).enforce(MaxRowsPerID(1))
    by_bin = KeySet.from_dict({"visits": BINS})
    codes = session.evaluate(rows().get_groups(["diagnosis"]), ApproxDPBudget(part / 2, privacy["delta"]))
    found = {
        "visits": ask(rows().count(name="n"), []),
        "visits_by_ward": ask(rows().groupby(by_ward).count(name="n"), ["ward"]),
        "visits_by_month": ask(rows().groupby(by_month).count(name="n"), ["month"]),
        "visits_by_ward_and_month": ask(rows().groupby(by_both).count(name="n"), ["ward", "month"]),
        "patients_by_ward": ask(one, ["ward"]),
        "cost_by_ward": ask(rows().groupby(by_ward).sum("cost", low, high, name="n"), ["ward"]),
        "mean_cost_by_ward": ask(rows().groupby(by_ward).average("cost", low, high, name="n"), ["ward"]),
        "median_cost_by_ward": ask(rows().groupby(by_ward).median("cost", low, high, name="n"), ["ward"]),
        "visits_by_diagnosis": [],
        "patients_by_visits": ask(each.groupby(by_bin).count(name="n"), ["visits"]),
    }
    if codes.count():
        counted = rows().groupby(KeySet.from_dataframe(codes)).count(name="n")
        found["visits_by_diagnosis"] = ask(counted, ["diagnosis"], part / 2)
    session.stop()
    return found


def _bin(rows):
    """Return the bin of a patient's visits."""
    places = zip(BINS, (1, 2, 5, 12, 10**9), strict=True)
    return [{"visits": next(name for name, most in places if len(rows) <= most)}]


def _spark():
    logging.disable(logging.WARNING)
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers need this environment too
    warehouse = tempfile.mkdtemp()  # its temporary tables, which would lie in the current folder
    builder = (
        SparkSession.builder.config("spark.sql.warehouse.dir", warehouse)
        .master("local[1]")
        .config("spark.sql.shuffle.partitions", 2)
    )
    builder = builder.config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1")
    return builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.memory", "2g").getOrCreate()


def _session(job, name, person, budget):
    table = _spark().read.csv(job["data"], header=True, inferSchema=True).fillna(0).fillna("")
    return Session.from_dataframe(budget, name, table.cache(), protected_change=AddRowsWithID(person))


def _cells(table, keys):
    rows = table.collect()
    return common.rows_of([[row[key] for key in keys] for row in rows], [row["n"] for row in rows])


def counts(job):
    query = QueryBuilder("people").enforce(MaxGroupsPerID("box", job["groups"])).enforce(MaxRowsPerGroupPerID("box", 1))
    return _grouped(job, query.groupby(_boxes(job)).count(name="n"))


def sums(job):
    query = QueryBuilder("people").enforce(MaxRowsPerID(1))
    return _grouped(job, query.groupby(_boxes(job)).sum("value", 0.0, 1.0, name="n"))


def _boxes(job):
    keys = [(box,) for box in range(job["keys"])]
    return KeySet.from_dataframe(_spark().createDataFrame(keys, ["box"]))


def _grouped(job, query):
    session = _session(job, "people", "person", PureDPBudget(job["epsilon"]))
    found = {
        int(box): value for box, value, *_ in _cells(session.evaluate(query, session.remaining_privacy_budget), ["box"])
    }
    return [found[box] for box in range(job["keys"])]


def _count(session, epsilon):
    query = QueryBuilder("people").enforce(MaxRowsPerID(1)).count(name="n")
    return _cells(session.evaluate(query, PureDPBudget(epsilon)), [])[0][0]


def repeats(job):
    session, answers = _session(job, "people", "person", PureDPBudget(job["epsilon"])), []
    for _ in range(job["requests"]):
        try:
            answers.append(_count(session, job["each"]))
        except Exception as error:  # noqa: BLE001 - whatever it refuses with
            return {"answers": answers, "refusal": common.refused(error), "spent": job["epsilon"]}
    return {"answers": answers, "refusal": None, "spent": None}


def spend(job):
    global SESSION  # noqa: PLW0603 - as long as the process lives
    SESSION = _session(job, "people", "person", PureDPBudget(job["epsilon"]))
    _count(SESSION, job["spend"])


def remaining(job):
    """A new session has the budget that it is given."""
    session = _session(job, "people", "person", PureDPBudget(job["epsilon"]))
    return float(session.remaining_privacy_budget.epsilon)


if __name__ == "__main__":
    common.main("tmlt.analytics", {task.__name__: task for task in (publish, counts, sums, repeats, spend, remaining)})
