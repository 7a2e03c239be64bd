"""Every kind of charge that a curator makes is reported with its mechanism, scale and sensitivity."""

import pyarrow as pa
import pytest

import discreet as dc
from discreet.kernel.event import Event
from discreet.publish import report_of
from discreet.publish.report.ledger_events import reported_event

VISITS = pa.table({"patient": list(range(40)), "street": ["Elm"] * 40, "cost": [10.0] * 40, "ward": ["A", "B"] * 20})
COLUMNS = {"ward": ["A", "B"], "cost": (0, 500), "street": "text"}
GAUSSIAN = "discrete Gaussian noise"
QUERIES = {
    "SELECT ward, COUNT(*) AS n FROM data GROUP BY ward": {GAUSSIAN},
    "SELECT street, COUNT(*) AS n FROM data GROUP BY street": {f"partition selection, round 1: {GAUSSIAN}", GAUSSIAN},
    "SELECT MEDIAN(cost) AS m FROM data": {"exponential mechanism (quantiles)"},
}


@pytest.fixture(scope="module")
def curator():
    with dc.open(
        VISITS, unit="patient", budget=(5, "1e-6"), columns=COLUMNS, groups=1, rows=1, ledger=":memory:"
    ) as opened:
        for sql in QUERIES:
            opened.ask(sql, epsilon="1/2")
        yield opened


def test_each_query_has_its_mechanisms(curator):
    events = [reported_event(event) for event in curator.ledger.events()]
    found = {event.query: {noise.mechanism for noise in event.noises} for event in events if not event.purpose}
    assert found == QUERIES


def test_every_noise_has_a_scale_and_a_sensitivity(curator):
    for event in map(reported_event, curator.ledger.events()):
        for noise in event.noises:
            assert noise.scale, event
            assert noise.l1, event
        assert event.state == "released"


def test_a_curator_s_ledger_has_a_report(curator):
    text = report_of(curator.policy, curator.ledger).to_text(10**6)
    assert "partition selection, round 1: discrete Gaussian noise, scale " in text
    assert "delta" in text


def test_a_charge_that_discreet_did_not_write_is_shown_as_it_is():
    event = Event(mechanism='{"name":"mine","x":"1"}', sensitivity="{}", question="a question")
    reported = reported_event(event)
    assert (reported.query, [str(noise) for noise in reported.noises]) == ("a question", ["mine"])


def test_a_part_of_a_publication_is_named_instead_of_its_record(tmp_path):
    tables = {"sexes": "SELECT ward, COUNT(*) AS n FROM data GROUP BY ward", "all": "SELECT COUNT(*) AS n FROM data"}
    plan = '[release]\nname = "Wards 2026"\nepsilon = 1\n'
    plan += "".join(f"[tables.{name}]\nsql = '{sql}'\n" for name, sql in tables.items())
    plan += "[tables.people]\nsql = 'SELECT COUNT(DISTINCT patient) AS n FROM data'\n"
    plan += "[synthetic.rows]\ntable = 'data'\ncolumns = ['ward', 'cost']\n"
    with dc.open(
        VISITS, unit="patient", budget=(5, "1e-6"), columns=COLUMNS, groups=1, rows=1, ledger=":memory:"
    ) as curator:
        curator.publish(dc.publish.PublicationPlan.parse(plan), tmp_path / "out")
        queries = [reported_event(event).query for event in curator.ledger.events()]
    assert all(query.startswith("Wards 2026: ") and "{" not in query for query in queries)
    assert "sexes, all" in queries[0]
    assert queries[1].endswith("table people")
    assert queries[2].endswith("synthetic rows rows of data: ward, cost")


def test_bounds_that_were_declared_after_advice_are_not_reported_as_a_guess():
    """The report does not know whether the owner followed the advice, and does not say so."""
    with dc.open(
        VISITS, unit="patient", budget=(5, "1e-6"), columns=COLUMNS, groups=1, rows=1, ledger=":memory:"
    ) as curator:
        before = report_of(curator.policy, curator.ledger).chapter("bounds").facts
        curator.advise(epsilon=1, columns=["cost"])
        after = report_of(curator.policy, curator.ledger).chapter("bounds").facts
    assert {bound["origin"] for bound in before["contributions"]} == {"declared"}
    assert {bound["origin"] for bound in after["contributions"]} == {"declared after paid histograms"}
    origins = {each["column"]: each["origin"] for each in after["values"]}
    assert origins["cost"] == "declared after paid histograms"
    assert origins["ward"] == "declared"


def test_a_long_query_is_folded_on_the_page_and_whole_in_the_data(curator):
    values = ", ".join(["'A'"] * 90)
    sql = f"SELECT COUNT(*) AS n FROM data WHERE ward IN ({values})"
    curator.ask(sql, epsilon="1/10")
    report = report_of(curator.policy, curator.ledger)
    assert sql in [event["query"] for event in report.chapter("events").facts["events"]]
    assert "<details><summary>SELECT COUNT(*) AS n FROM data WHERE ward IN (" in report.to_html()
    assert "…" in report.to_text()
