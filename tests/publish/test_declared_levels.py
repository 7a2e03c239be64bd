"""Hierarchies of two columns that the policy declares: towns in regions add up, and nothing of them comes from data."""

import numpy as np
import pyarrow as pa
import pytest
from publish.test_publication import cells, quiet

import discreet as dc
from discreet.kernel.errors import PolicyError, Refused
from discreet.policy import Policy, dummy, write_policy
from discreet.publish.dry_run import forecast
from discreet.publish.plan import PublicationPlan

LISTS = """
country = { type = "text", in = ["C", "D"] }
region = { type = "text", within = "country", in = { C = ["North", "South"], D = ["East"] } }
town = { type = "text", within = "region", in = { North = ["Aby", "Bex"], South = ["Cey"], East = ["Dax", "Ely"] } }
"""
LOOKUP = """
country = { type = "text", in = ["C", "D"] }
region = { type = "text", references = "regions.name", within = "country" }
town = { type = "text", references = "towns.name", within = "region" }
[tables.towns]
source = "towns.csv"
public = true
[tables.regions]
source = "regions.csv"
public = true
"""
POLICY = """
[data]
name = "visits"
ledger = "{ledger}"
[budget]
epsilon = 8
delta = 1e-6
[tables.visits]
source = "visits.parquet"
unit = "person"
groups = 1
rows = 1
[tables.visits.columns]
person = {{ type = "integer" }}
day = {{ type = "date", between = [2025-01-30, 2025-02-02] }}
{columns}
"""
PLAN = """
[release]
name = "Towns"
epsilon = 4
[tables.by_town]
sql = "SELECT town, COUNT(*) AS n FROM visits GROUP BY town"
[tables.by_region_and_town]
sql = "SELECT region, town, COUNT(*) AS n FROM visits GROUP BY region, town"
[tables.by_region]
sql = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
[tables.by_country]
sql = "SELECT country, COUNT(*) AS n FROM visits GROUP BY country"
[tables.by_month_and_day]
sql = "SELECT DATE_TRUNC('month', day) AS month, day, COUNT(*) AS n FROM visits GROUP BY 1, 2"
[tables.everybody]
sql = "SELECT COUNT(*) AS n FROM visits"
"""
REGION_OF = {"Aby": "North", "Bex": "North", "Cey": "South", "Dax": "East", "Ely": "East"}
COUNTRY_OF = {"North": "C", "South": "C", "East": "D"}
TOWNS = pa.table({"name": list(REGION_OF), "region": list(REGION_OF.values())})
REGIONS = pa.table({"name": list(COUNTRY_OF), "country": list(COUNTRY_OF.values())})


def visits(count=500, strangers=40):
    """Visits, of which the last ones are in a region that their town is not part of."""
    draw = np.random.default_rng(8)
    town = draw.choice(list(REGION_OF), count)
    region = np.array([REGION_OF[each] for each in town])
    country = np.array([COUNTRY_OF[each] for each in region])
    region[-strangers:] = np.where(region[-strangers:] == "North", "South", "North")
    day = pa.array(draw.integers(20118, 20122, count).astype("int32")).cast(pa.date32())
    return pa.table({"person": range(count), "day": day, "country": country, "region": region, "town": town})


def curator_on(columns, table, towns=TOWNS, ledger=":memory:"):
    data = {"visits": table} | ({"towns": towns, "regions": REGIONS} if "references" in columns else {})
    return dc.open(Policy.parse(POLICY.format(columns=columns, ledger=ledger)), data=data)


def counted(table, *names):
    """The exact counts of the rows whose region is that of their town."""
    rows = [row for row in table.to_pylist() if REGION_OF[row["town"]] == row["region"]]
    counts = {}
    for row in rows:
        key = tuple(row[name] for name in names)
        counts[key] = counts.get(key, 0) + 1
    return counts


declared_in = pytest.mark.parametrize("columns", [LISTS, LOOKUP], ids=["lists", "public tables"])


@declared_in
def test_declared_levels_add_up_and_rows_that_contradict_them_are_left_out(tmp_path, monkeypatch, columns):
    quiet(monkeypatch)
    table = visits()
    with curator_on(columns, table) as curator:
        release = curator.publish(PublicationPlan.parse(PLAN), tmp_path / "out")
    assert {part.kind for part in release.record.parts} == {"family table"}
    for name, keys in (("by_town", ["town"]), ("by_region", ["region"]), ("by_country", ["country"])):
        shown = release.tables[name].table
        exact = counted(table, *keys)
        assert shown.column("n").to_pylist() == pytest.approx([exact[key] for key in cells(shown, *keys)], abs=0.01)
    assert release.tables["everybody"].table.column("n").to_pylist() == pytest.approx([460], abs=0.01)
    note = "region is not that of town"
    assert all(note in " ".join(each.notes) for each in release.tables.values())


@declared_in
def test_a_table_with_two_levels_shows_what_belongs_together(tmp_path, columns):
    with curator_on(columns, visits()) as curator:
        plan = PublicationPlan.parse(PLAN)
        expected = {table.name: table.cells for table in forecast(curator, plan).tables}
        release = curator.publish(plan, tmp_path / "out")
    both = release.tables["by_region_and_town"].table
    assert expected["by_region_and_town"] == len(both) == 5
    assert {town: region for region, town in cells(both, "region", "town")} == REGION_OF
    towns = release.tables["by_town"]
    assert dict(zip(both.column("town").to_pylist(), both.column("n").to_pylist(), strict=True)) == pytest.approx(
        dict(zip(towns.table.column("town").to_pylist(), towns.table.column("n").to_pylist(), strict=True))
    )
    days = release.tables["by_month_and_day"].table
    assert [(month.month, day.month) for month, day in cells(days, "month", "day")] == [(1, 1), (1, 1), (2, 2), (2, 2)]


def test_roll_ups_along_declared_levels_are_free(tmp_path):
    with curator_on(LISTS, visits()) as curator:
        release = curator.publish(PublicationPlan.parse(PLAN), tmp_path / "out")
        answer = curator.ask("SELECT region, country, COUNT(*) AS n FROM visits GROUP BY region, country")
    assert not answer.paid.rho
    rows = {region: (country, n) for region, country, n in cells(answer.table, "region", "country", "n")}
    published = release.tables["by_region"].table
    for region, n in cells(published, "region", "n"):
        assert rows[region] == (COUNTRY_OF[region], round(n))


def test_a_plan_without_the_coarser_column_leaves_no_row_out(tmp_path, monkeypatch):
    quiet(monkeypatch)
    plan = PublicationPlan.parse(PLAN[: PLAN.index("[tables.by_region_and")] + PLAN[PLAN.index("[tables.everybody") :])
    with curator_on(LISTS, visits()) as curator:
        release = curator.publish(plan, tmp_path / "out")
    assert release.tables["everybody"].table.column("n").to_pylist() == pytest.approx([500], abs=0.01)


def test_columns_of_the_same_names_elsewhere_are_not_levels(tmp_path):
    """What is called region in a subquery is not the declared column."""
    other = "CASE WHEN day < '2025-02-01' THEN region ELSE 'North' END"
    plan = PublicationPlan.parse(
        PLAN.replace("FROM visits", f"FROM (SELECT town, {other} AS region, country, day FROM visits) AS v")
    )
    with curator_on(LISTS, visits()) as curator:
        tables = {table.name: table.cells for table in forecast(curator, plan).tables}
    assert tables["by_region_and_town"] == 15


def test_other_levels_are_another_meaning_of_the_plan(tmp_path):
    plan, ledger = PublicationPlan.parse(PLAN), str(tmp_path / "ledger.sqlite")
    with curator_on(LISTS, visits(), ledger=ledger) as curator:
        curator.publish(plan, tmp_path / "out")
    other = LISTS.replace('["North", "South"], D = ["East"]', '["South"], D = ["North", "East"]')
    reordered = LISTS.replace('in = ["C", "D"]', 'in = ["D", "C"]')
    for columns in (other, reordered):
        with curator_on(columns, visits(), ledger=ledger) as curator, pytest.raises(Refused, match="another key"):
            curator.publish(plan, tmp_path / "again")


def test_a_public_table_that_contradicts_itself_is_refused():
    towns = pa.concat_tables([TOWNS, pa.table({"name": ["Aby"], "region": ["South"]})])
    with curator_on(LOOKUP, visits(), towns) as curator, pytest.raises(PolicyError, match=r"Aby.*two values"):
        forecast(curator, PublicationPlan.parse(PLAN))


@declared_in
def test_dummy_data_follows_declared_levels_and_the_policy_is_written_as_it_was_read(columns, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "towns.csv").write_text("name,region\n")
    (tmp_path / "regions.csv").write_text("name,country\n")
    policy = Policy.parse(POLICY.format(columns=columns, ledger=":memory:"))
    assert Policy.parse(write_policy(policy)) == policy
    tables = dummy(policy, 300)
    pairs = set(cells(tables["visits"], "town", "region"))
    assert len({town for town, _ in pairs}) == len(pairs) > 2
    above = set(cells(tables["visits"], "region", "country"))
    assert len({region for region, _ in above}) == len(above)
    assert None not in tables["visits"].column("country").to_pylist()
