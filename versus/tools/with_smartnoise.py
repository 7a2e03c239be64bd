"""SmartNoise SQL: one private reader per question, on pandas (it copies the frame into SQLite).

- Its epsilon is for every column of every query, so AVG, which is a sum over a count, gets half of the share for each.
- `max_ids` bounds the rows of a patient over all groups, chosen by reservoir sampling; keys that are public are not
  censored (`censor_dims: false`), diagnoses are, by the threshold that its delta gives.
- `get_simple_accuracy` states the margin of counts and sums; `execute_with_accuracy` was removed by its makers.
- Distinct patients by ward, and patients by their number of visits, are counted in tables with one row per patient and
  group, made by hand with pandas: sampling rows first would lose patients.
"""

import common
import pandas as pd
from snsql import Privacy, from_connection

VISITS = {
    "patient": {"type": "int", "private_id": True},
    "ward": {"type": "string"},
    "visit_month": {"type": "int"},  # MONTH is a word of its grammar
    "diagnosis": {"type": "string"},
}
PEOPLE = {"person": {"type": "int", "private_id": True}, "box": {"type": "int"}}


def publish(job):
    protocol, bounds = job["protocol"], job["protocol"]["bounds"]
    table = pd.read_csv(job["data"]).rename(columns={"month": "visit_month"})
    low, high = map(float, bounds["cost"])
    columns = {**VISITS, "cost": {"type": "float", "lower": low, "upper": high}}
    part, rows = common.share(protocol), bounds["visits"]
    pairs = table[["patient", "ward"]].drop_duplicates()
    each = table.groupby("patient").size()
    binned = pd.cut(each, [0, 1, 2, 5, 12, 10**6], labels=["1", "2", "3-5", "6-12", "13+"]).astype(str)
    patients = pd.DataFrame({"patient": each.index, "visits": binned.to_numpy()})
    by_pair = {"patient": VISITS["patient"], "ward": {"type": "string"}}
    by_bin = {"patient": VISITS["patient"], "visits": {"type": "string"}}
    return {
        "visits": ask(table, columns, rows, part, [], "COUNT(*)"),
        "visits_by_ward": ask(table, columns, rows, part, ["ward"], "COUNT(*)"),
        "visits_by_month": ask(table, columns, rows, part, ["visit_month"], "COUNT(*)"),
        "visits_by_ward_and_month": ask(table, columns, rows, part, ["ward", "visit_month"], "COUNT(*)"),
        "patients_by_ward": ask(pairs, by_pair, bounds["wards"], part, ["ward"], "COUNT(*)"),
        "cost_by_ward": ask(table, columns, rows, part, ["ward"], "SUM(cost)"),
        "mean_cost_by_ward": ask(table, columns, rows, part / 2, ["ward"], "AVG(cost)"),
        "median_cost_by_ward": "no: no quantiles",
        "visits_by_diagnosis": ask(table, columns, rows, part, ["diagnosis"], "COUNT(*)", protocol["privacy"]["delta"]),
        "patients_by_visits": ask(patients, by_bin, 1, part, ["visits"], "COUNT(*)"),
    }


def ask(table, columns, rows, epsilon, keys, total, delta=None):  # noqa: PLR0913, PLR0917 - a question
    """Return the cells of one query; without a delta, its keys are public."""
    reader, query = _reader(table, columns, rows, epsilon, delta), _query(keys, total)
    accuracy = reader.get_simple_accuracy(query, 0.05)[-1]
    cells = reader.execute(query)[1:]
    values = [row[-1] for row in cells]
    return common.rows_of([row[:-1] for row in cells], values, None if accuracy is None else [accuracy] * len(cells))


def _reader(table, columns, rows, epsilon, delta=None):
    options = {"max_ids": rows, "sample_max_ids": True, "censor_dims": delta is not None, "clamp_counts": False}
    metadata = {"": {"own": {"rows": {**options, **columns}}}}
    # At its default delta of 1e-15 where no key is censored: no mechanism uses it.
    privacy = Privacy(epsilon=epsilon) if delta is None else Privacy(epsilon=epsilon, delta=delta)
    return from_connection(table, privacy=privacy, metadata=metadata)


def _query(keys, total):
    chosen, by = "".join(f"{key}, " for key in keys), ", ".join(keys)
    return f"SELECT {chosen}{total} AS n FROM own.rows" + (f" GROUP BY {by}" if by else "")


def counts(job):
    return _grouped(job, "COUNT(*)")


def sums(job):
    return _grouped(job, "SUM(value)")


def _grouped(job, total):
    columns = {**PEOPLE, "value": {"type": "float", "lower": 0.0, "upper": 1.0}}
    cells = ask(pd.read_csv(job["data"]), columns, job["groups"], job["epsilon"], ["box"], total)
    found = {int(box): value for box, value, *_ in cells}
    return [found.get(box, 0.0) for box in range(job["keys"])]


def repeats(job):
    """Request one count again and again; the odometer of the reader says what was spent."""
    reader = _reader(pd.read_csv(job["data"]), PEOPLE, 1, job["each"])
    answers = [reader.execute(_query([], "COUNT(*)"))[1][0] for _ in range(job["requests"])]
    return {"answers": answers, "refusal": None, "spent": float(reader.odometer.spent[0])}


def spend(job):
    reader = _reader(pd.read_csv(job["data"]), PEOPLE, 1, job["spend"])
    reader.execute(_query([], "COUNT(*)"))


def remaining(job):
    """A new reader has a new odometer; it knows no limit, so what is left is the budget less what it counts."""
    reader = _reader(pd.read_csv(job["data"]), PEOPLE, 1, job["spend"])
    return job["epsilon"] - float(reader.odometer.spent[0])


if __name__ == "__main__":
    common.main("smartnoise-sql", {task.__name__: task for task in (publish, counts, sums, repeats, spend, remaining)})
