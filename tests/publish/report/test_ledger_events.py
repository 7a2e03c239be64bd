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
