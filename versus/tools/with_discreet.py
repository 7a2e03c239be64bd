"""Discreet: a policy, and a publication plan whose tables share one charge (docs/publishing.md).

Tables of counts, sums and means over the same rows are released together and add up; medians, distinct patients and
undeclared diagnoses stand by themselves. `groups` and `rows` make the radius of a patient's contribution
rows x sqrt(groups) = 24 visits, as the protocol has it. Everything is native: no question needs work by hand.
"""

import math
import shutil
import tempfile
from pathlib import Path

import common
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import discreet as dc

POLICY = """
[data]
name     = "hospital"
protects = "patient"
version  = "2026"
ledger   = "{ledger}"
[budget]
epsilon = {epsilon}
delta   = {delta}
[release]
invariants = "none"
[tables.visits]
source   = "visits.parquet"
unit     = "patient"
groups   = {groups}
rows     = {rows}
rows_max = {most}
[tables.visits.columns]
patient   = {{ type = "integer" }}
ward      = {{ type = "text", in = {wards} }}
month     = {{ type = "integer", between = [1, {months}] }}
diagnosis = {{ type = "text" }}
cost      = {{ type = "real", between = {cost}, step = 0.01 }}
"""
PLAN = """
[release]
name = "Visits"
{cost}
[tables.visits]
sql = "SELECT COUNT(*) AS n FROM visits"
[tables.visits_by_ward]
sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
[tables.visits_by_month]
sql = "SELECT month, COUNT(*) AS n FROM visits GROUP BY month"
[tables.visits_by_ward_and_month]
sql = "SELECT ward, month, COUNT(*) AS n FROM visits GROUP BY ward, month"
[tables.patients_by_ward]
sql = "SELECT ward, COUNT(DISTINCT patient) AS n FROM visits GROUP BY ward"
[tables.cost_by_ward]
sql = "SELECT ward, SUM(cost) AS n FROM visits GROUP BY ward"
[tables.mean_cost_by_ward]
sql = "SELECT ward, AVG(cost) AS n FROM visits GROUP BY ward"
[tables.median_cost_by_ward]
sql = "SELECT ward, MEDIAN(cost) AS n FROM visits GROUP BY ward"
[tables.visits_by_diagnosis]
sql = "SELECT diagnosis, COUNT(*) AS n FROM visits GROUP BY diagnosis"
[tables.patients_by_visits]
sql = '''SELECT visits, COUNT(*) AS n FROM (SELECT patient, CASE WHEN COUNT(*) >= 13 THEN '13+'
WHEN COUNT(*) >= 6 THEN '6-12' WHEN COUNT(*) >= 3 THEN '3-5' WHEN COUNT(*) = 2 THEN '2' ELSE '1' END AS visits
FROM visits GROUP BY patient) AS patients GROUP BY visits'''
"""


def publish(job):
    """Publish with the protocol's bounds."""
    with dc.open(_policy(job["protocol"]), data={"visits": pa.csv.read_csv(job["data"])}) as curator:
        return _published(curator, f"epsilon = {job['protocol']['privacy']['epsilon']}")


def publish_advised(job):
    """Let the curator choose the radius of the tables that add up, for an eighth of epsilon; the rest is published."""
    protocol = job["protocol"]
    with dc.open(_policy(protocol), data={"visits": pa.csv.read_csv(job["data"])}) as curator:
        epsilon = str(protocol["privacy"]["epsilon"] / 8)
        (advice,) = curator.advise("visits", epsilon=epsilon, by_columns=["ward,month"], columns=[]).bounds
        rows = math.ceil(advice.bounds.rows * math.sqrt(advice.bounds.groups))
        return _published(curator, f'rho = "{curator.budget().remaining.rho}"\nrows = {rows}')


def _policy(protocol):
    privacy, data = protocol["privacy"], protocol["data"]
    text = POLICY.format(
        ledger=":memory:",
        epsilon=privacy["epsilon"],
        delta=privacy["delta"],
        groups=protocol["bounds"]["wards"],
        rows=protocol["bounds"]["per_group"],
        most=protocol["bounds"]["most_visits"],
        wards=data["wards"],
        months=data["months"],
        cost=protocol["bounds"]["cost"],
    )
    return dc.policy.Policy.parse(text)


def _published(curator, cost):
    folder = Path(tempfile.mkdtemp())
    try:
        release = curator.publish(dc.publish.PublicationPlan.parse(PLAN.format(cost=cost)), folder / "release")
        assert not release.missing, release.missing
        tables = folder / "release" / "tables"
        return {name: _cells(pq.read_table(tables / f"{name}.parquet")) for name in release.tables}
    finally:
        shutil.rmtree(folder)


def _cells(table):
    keys = [name for name in table.column_names if name not in ("n", "n_margin", "n_whole", "n_bias", "n_bias_low")]
    rows = [row for row in table.to_pylist() if row["n"] is not None]
    margins = [row["n_margin"] for row in rows]
    return common.rows_of([[row[key] for key in keys] for row in rows], [row["n"] for row in rows], margins)


def counts(job):
    """Count the people of every group; with `half_noise`, by a Discreet that was tampered with."""
    if job.get("half_noise"):
        _halve_noise()
    return _grouped(job, "COUNT(*)")


def sums(job):
    """Sum a value between 0 and 1 in every group."""
    return _grouped(job, "SUM(value)")


def _grouped(job, total):
    with _people(job, ":memory:", job["groups"], job["epsilon"]) as curator:
        answer = curator.ask(f"SELECT box, {total} AS n FROM people GROUP BY box ORDER BY box", epsilon=job["epsilon"])
        return answer.to_arrow()["n"].to_pylist()


def _people(job, ledger, groups, epsilon):
    """Open the table of an attack or audit: people in boxes, each with a value."""
    columns = {"box": (0, job["keys"] - 1), "value": (0.0, 1.0)}
    people = pa.csv.read_csv(job["data"], convert_options=pa.csv.ConvertOptions(column_types={"value": pa.float64()}))
    return dc.open(
        people,
        table="people",
        unit="person",
        budget=epsilon,
        columns=columns,
        groups=groups,
        rows=1,
        ledger=str(ledger),
        name="people",
        version="1",
    )


def repeats(job):
    """Request one count again and again: from the second time it is the stored answer, at no charge."""
    with _people(job, ":memory:", 1, job["epsilon"]) as curator:
        answers = [_count(curator, job["each"]) for _ in range(job["requests"])]
        spent = job["epsilon"] - float(curator.budget().remaining.epsilon)
    return {"answers": answers, "refusal": None, "spent": spent}


def _count(curator, epsilon):
    return int(curator.ask("SELECT COUNT(*) AS n FROM people", epsilon=epsilon).to_arrow()["n"][0].as_py())


def spend(job):
    """Spend a part of the budget; the ledger is a file."""
    curator = _people(job, Path(job["folder"]) / "people.ledger", 1, job["epsilon"])
    _count(curator, job["spend"])


def remaining(job):
    """Open the same data again: the ledger knows."""
    with _people(job, Path(job["folder"]) / "people.ledger", 1, job["epsilon"]) as curator:
        return float(curator.budget().remaining.epsilon)


def _halve_noise():
    """Break the Laplace mechanism: half of the noise that its loss was computed for."""
    honest = dc.Laplace.perturb
    dc.Laplace.perturb = lambda self, values: honest(dc.Laplace(self.scale / 2), values)


if __name__ == "__main__":
    common.main(
        "discreet",
        {task.__name__: task for task in (publish, publish_advised, counts, sums, repeats, spend, remaining)},
    )
