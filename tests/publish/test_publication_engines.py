"""The same plan on the same rows gives the same tables on every engine: NULLs, infinities, dates and a public table."""

import datetime as dt
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from publish.test_publication import quiet

import discreet as dc
from discreet.policy import Policy
from discreet.publish.plan import PublicationPlan

pytestmark = pytest.mark.long
POLICY = """
[data]
name = "visits"
{engine}
ledger = ":memory:"
[budget]
epsilon = {epsilon}
{delta}
[tables.visits]
source = "{visits}"
unit = "patient"
groups = 10
rows = 10
rows_max = 1000000
[tables.visits.columns]
patient = {{ type = "integer" }}
ward = {{ type = "text", references = "wards.ward" }}
day = {{ type = "date", between = [2025-01-30, 2025-02-03] }}
cost = {{ type = "real", between = [0, 500], step = 0.5 }}
age = {{ type = "integer", between = [0, 99] }}
urgent = {{ type = "boolean" }}
[tables.wards]
source = "{wards}"
public = true
[tables.wards.columns]
ward = {{ type = "text" }}
region = {{ type = "text" }}
"""
QUERIES = {
    "by_ward": "SELECT ward, COUNT(*) AS n, COUNT(cost) AS k, SUM(cost) AS c, SUM(age) AS a FROM visits GROUP BY ward",
    "by_ward_and_day": "SELECT day, ward, COUNT(*) AS n FROM visits GROUP BY ward, day ORDER BY day DESC, ward",
    "by_month": "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY 1",
    "by_adult": "SELECT age >= 18 AS adult, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY 1",
    "urgent": "SELECT ward, COUNT(*) AS n FROM visits WHERE urgent AND (age > 17 OR cost < 100) GROUP BY ward",
    "urgent_days": "SELECT day, COUNT(*) AS n FROM visits WHERE urgent AND (age > 17 OR cost < 100) GROUP BY day",
    "by_region": "SELECT region, COUNT(*) AS n, SUM(cost) AS c "
    "FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY region",
    "region_and_age": "SELECT region, age >= 18 AS adult, COUNT(*) AS n "
    "FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY 1, 2",
}
BUDGETS = {"rho": "delta = 1e-6", "pure": ""}


def rows(count=1_000):
    """Return visits with everything that columns can hold, within the ranges and outside of them."""
    odd = [None, math.inf, -math.inf, math.nan, -3.0, 1e300, 0.25, 499.75]
    start = dt.date(2025, 1, 29)
    return pa.table(
        {
            "patient": [index % 300 if index % 41 else None for index in range(count)],
            "ward": [["A", "B", "Ć", "elsewhere", None][index % 5] for index in range(count)],
            "day": [start + dt.timedelta(index % 7) if index % 11 else None for index in range(count)],
            "cost": [odd[index // 9 % 8] if index % 9 == 0 else index % 1000 / 2 for index in range(count)],
            "age": pa.array([index % 130 - 10 if index % 13 else None for index in range(count)], pa.int64()),
            "urgent": [[True, False, None][index % 3] for index in range(count)],
        }
    )


WARDS = pa.table({"ward": ["A", "B", "Ć"], "region": ["north", "north", "south"]})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("visits")
    for name, table in (("visits", rows()), ("wards", WARDS)):
        pq.write_table(table, folder / f"{name}.parquet")
    return {name: str(folder / f"{name}.parquet") for name in ("visits", "wards")}


@pytest.fixture(scope="module")
def in_postgres(postgres):
    """Copy the rows to a database of its own; return the places for the policy."""
    from discreet.postgres.server import connect

    with connect(postgres.url()) as server:
        server.execute("DROP DATABASE IF EXISTS published WITH (FORCE)")
        server.execute("CREATE DATABASE published")
        server.execute("CREATE ROLE publisher LOGIN")
    with connect(postgres.url("published")) as server:
        server.execute(
            "CREATE TABLE visits (patient bigint, ward text, day date, cost float8, age bigint, urgent boolean);"
            "CREATE TABLE wards (ward text, region text);"
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO publisher"
        )
        for name, table in (("visits", rows()), ("wards", WARDS)):
            with server.cursor().copy(f"COPY {name} FROM STDIN") as copy:
                for row in table.to_pylist():
                    copy.write_row(list(row.values()))
    url = postgres.url("published").replace("postgres@", "publisher@")
    engine = f'engine = "postgresql"\nconnection = "{url}"'
    return {"engine": engine, "visits": "public.visits", "wards": "public.wards"}


@pytest.fixture
def in_spark(sail, files):
    return {"engine": f'engine = "spark"\nconnection = "{sail.url}"', **files}


def published(places, out, delta, *, epsilon=50):
    text = POLICY.format(**{"engine": "", **places}, epsilon=epsilon, delta=delta)
    plan = f"[release]\nname = 'x'\nepsilon = {epsilon}\nrows = 10\n"
    plan += "".join(f'[tables.{name}]\nsql = "{sql}"\n' for name, sql in QUERIES.items())
    with dc.open(Policy.parse(text)) as curator:
        release = curator.publish(PublicationPlan.parse(plan), out)
    kinds = {part.name: part.kind for part in release.record.parts}
    assert set(kinds.values()) == {"family table"}
    assert not release.missing
    return {name: shown.table for name, shown in release.tables.items()}


@pytest.mark.parametrize("delta", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("engine", ["in_postgres", "in_spark"])
def test_engines_publish_the_same_tables(  # noqa: PLR0917 - fixtures
    request, monkeypatch, files, tmp_path, engine, delta
):
    quiet(monkeypatch)
    here = published(files, tmp_path / "here", delta)
    there = published(request.getfixturevalue(engine), tmp_path / "there", delta)
    for name, table in here.items():
        assert there[name].equals(table), name
    assert all(sum(table.column("n").to_pylist()) > 10 for table in here.values())


def test_tables_without_noise_are_those_of_the_rows(monkeypatch, files, tmp_path):
    """Computed in Python: rows without one of the family's keys are left out; NULL and infinities add nothing."""
    quiet(monkeypatch)
    found = published(files, tmp_path / "out", BUDGETS["rho"])
    days = (dt.date(2025, 1, 30), dt.date(2025, 2, 3))
    kept = [
        row
        for row in rows().to_pylist()
        if None not in (row["patient"], row["day"], row["age"]) and row["ward"] in ("A", "B", "Ć")
        if days[0] <= row["day"] <= days[1]
    ]
    table = found["by_ward"].to_pydict()
    for index, ward in enumerate(table["ward"]):
        costs = [row["cost"] for row in kept if row["ward"] == ward]
        known = [min(max(cost, 0), 500) for cost in costs if cost is not None and math.isfinite(cost)]
        assert table["n"][index] == pytest.approx(len(costs), abs=0.01)
        assert table["k"][index] == pytest.approx(len(known), abs=0.01)
        assert table["c"][index] == pytest.approx(sum(known), abs=1)
