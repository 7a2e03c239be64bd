"""Planning many tables: what they share is computed once, and the order of the groups is still that of the query."""

import numpy as np
import pytest
from publish.hospital import curator_on, visits

from discreet.curator.prepared_queries import plan_query, totals_planner
from discreet.postprocess import plan as plan_of_postprocessing
from discreet.publish import eligible, family, family_axes, file_tables, manifest
from discreet.publish.eligible import adding_table
from discreet.publish.plan import PublicationPlan
from discreet.publish.planning import plan_parts

HEADING = '[release]\nname = "Tables"\nepsilon = 4\n'
KEYS = ("ward", "sex", "age", "day")


def plan_with(*sqls):
    return PublicationPlan.parse(HEADING + "".join(f'[tables.t{n}]\nsql = "{sql}"\n' for n, sql in enumerate(sqls)))


def by(*keys):
    return f"SELECT {', '.join(keys)}, COUNT(*) AS n FROM visits GROUP BY {', '.join(keys)}"


def test_what_tables_share_is_computed_once_for_all(monkeypatch):
    forecasts, runs = [], []
    real_forecast, real_run = family.forecast, eligible.postprocess.run_with_margins
    monkeypatch.setattr(family, "forecast", lambda *given: forecasts.append(1) or real_forecast(*given))
    monkeypatch.setattr(eligible.postprocess, "run_with_margins", lambda *given: runs.append(1) or real_run(*given))
    plan = plan_with(*(by(one, other) for one in KEYS for other in KEYS if one < other), by("sex"))
    with curator_on(visits(100)) as curator:
        (part,) = plan_parts(curator, plan)
    assert len(part.family.tables) == 7
    assert len(forecasts) == len(part.family.measures) == 1
    assert not runs, "tables that just show their groups need no run of the query"


def test_files_are_prepared_and_hashed_once_and_axes_made_once(tmp_path, monkeypatch):
    hashed, prepared, axes = [], [], []
    real_digest, real_table, real_axis = manifest._digest, file_tables.file_table, family_axes.Axis
    monkeypatch.setattr(manifest, "_digest", lambda path: hashed.append(path.name) or real_digest(path))
    monkeypatch.setattr(file_tables, "file_table", lambda shown: prepared.append(shown.name) or real_table(shown))
    monkeypatch.setattr(family_axes, "Axis", lambda *given: axes.append(given[0]) or real_axis(*given))
    with curator_on(visits(100)) as curator:
        curator.publish(plan_with(by("ward"), by("sex"), by("ward", "sex")), tmp_path / "out")
    assert len(hashed) == len(set(hashed))
    assert {"t0.csv", "t2.parquet", "report.html"} <= set(hashed)
    assert prepared == ["t0", "t1", "t2"]
    assert len(axes) == 2


def test_queries_of_one_form_are_bound_in_the_sandbox_once(monkeypatch):
    bound, real = [], plan_of_postprocessing._sandbox_tables
    monkeypatch.setattr(plan_of_postprocessing, "_sandbox_tables", lambda *given: bound.append(1) or real(*given))
    plan_of_postprocessing._bound_schema.cache_clear()
    with curator_on(visits(100)) as curator:
        plan_parts(curator, plan_with(by("ward"), by("sex"), by("age"), by("ward", "age"), by("sex", "age")))
    assert len(bound) == 3, "one text, one number, and both"


@pytest.mark.parametrize(
    "sql",
    [
        by("ward", "sex"),
        "SELECT ward, sex, COUNT(*) AS n FROM visits GROUP BY sex, ward",
        "SELECT ward, sex, COUNT(*) AS n FROM visits GROUP BY sex, ward ORDER BY ward",
        f"{by('ward')} ORDER BY ward DESC",
        f"SELECT n, ward FROM ({by('ward')}) AS t",
        f"SELECT ward, n FROM ({by('ward')} ORDER BY ward DESC) AS t",
        f"SELECT a.ward, a.n FROM ({by('ward')}) AS a JOIN ({by('ward')}) AS b ON a.ward = b.ward",
    ],
)
def test_groups_come_in_the_order_of_the_answer(sql):
    with curator_on(visits(100)) as curator:
        table = adding_table("t", totals_planner(curator.releases)(sql))
        shown = curator.ask(sql, epsilon=1).table
    domains = table.release.question.groups.domains
    codes = np.unravel_index(table.rows, [len(domain) for domain in domains])
    values = {
        key: np.array(domain)[code].tolist()
        for key, domain, code in zip(table.release.keys, domains, codes, strict=True)
    }
    keys = {column: source for column, source in table.columns.items() if source in values}
    assert keys
    assert all(shown.column(column).to_pylist() == values[source] for column, source in keys.items())


@pytest.mark.parametrize(
    "sql",
    [
        f"{by('ward')} ORDER BY n",
        f"{by('ward')} LIMIT 2",
        f"{by('ward')} OFFSET 1",
        f"{by('ward')} HAVING COUNT(*) > 9",
        f"SELECT ward, n FROM ({by('ward')}) AS t WHERE ward <> 'A'",
        f"SELECT DISTINCT ward, n FROM ({by('ward')}) AS t",
        f"SELECT ward, SUM(n) AS n FROM ({by('ward', 'sex')}) AS t GROUP BY ward",
        "SELECT ward FROM visits GROUP BY ward HAVING COUNT(*) > -1",
    ],
)
def test_what_does_more_than_show_its_groups_is_no_table_of_a_family(sql):
    with curator_on(visits(100)) as curator:
        assert adding_table("t", totals_planner(curator.releases)(sql)) is None


def test_tables_of_a_family_are_planned_without_histograms_and_others_with_them():
    with curator_on(visits(100)) as curator:
        totals, whole = totals_planner(curator.releases)(by("ward")), plan_query(curator.releases, by("ward"))
    assert totals.answering == whole.answering
    assert not any(release.histogram for release in totals.releases)
    assert any(release.histogram for release in whole.releases)
