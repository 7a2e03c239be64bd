"""Refusals point into the query, and what is offered in place of a refused query would be answered."""

import pytest
from page_server import hostile_policy

import discreet as dc
from discreet.server.pages.corrections import Correction, corrections, find_place

VISITS = """
    [data]
    name = "visits"
    ledger = ":memory:"
    [budget]
    epsilon = 1
    [tables.visits]
    source = "visits"
    unit = "patient"
    groups = 1
    rows = 1
    [tables.visits.columns]
    patient = { type = "integer" }
    ward = { type = "text", in = ["A", "B"] }
    cost = { type = "real", between = [0, 100] }
    free = { type = "real" }
    [tables.stays]
    source = "visits"
    unit = "patient"
    groups = 1
    rows = 1
    [tables.stays.columns]
    patient = { type = "integer" }
"""


@pytest.fixture(scope="module")
def curator():
    import pyarrow as pa

    rows = pa.table({"patient": [1, 2], "ward": ["A", "B"], "cost": [1.0, 2.0], "free": [1.0, 2.0]})
    with dc.open(dc.policy.Policy.parse(VISITS), data={"visits": rows, "stays": rows}) as opened:
        yield opened


def refusal(curator, sql):
    try:
        curator.explain(sql, epsilon="1/10")
    except dc.Refused as refused:
        return str(refused)
    return None


CASES = {
    "SELECT wrd, COUNT(*) AS n FROM visits GROUP BY wrd": (
        "wrd",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    ),
    "SELECT ward,\n  AVG(csot) AS m\nFROM visits GROUP BY ward": (
        "csot",
        "SELECT ward,\n  AVG(cost) AS m\nFROM visits GROUP BY ward",
    ),
    "SELECT COUNT(*) AS n FROM vists": ("vists", "SELECT COUNT(*) AS n FROM visits"),
    "SELECT AVERAGE(cost) AS m FROM visits": ("AVERAGE", "SELECT AVG(cost) AS m FROM visits"),
    "SELECT ward, COUNT(*) AS n FROM visits": ("ward", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"),
    "SELECT ward, COUNT(*) AS n FROM visits ORDER BY n": (
        "ward",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n",
    ),
    "SELECT ward FROM visits": ("SELECT", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"),
    "SELECT * FROM visits LIMIT 5": ("SELECT", "SELECT COUNT(*) AS n FROM visits"),
    'SELECT COUNT(*) AS n FROM visits WHERE ward = "A"': ("A", "SELECT COUNT(*) AS n FROM visits WHERE ward = 'A'"),
    "SELEC COUNT(*) AS n FROM visits": ("SELEC", "SELECT COUNT(*) AS n FROM visits"),
    "SELECT ward, AVERAGE(csot) AS m FROM vists": ("vists", "SELECT ward, AVG(cost) AS m FROM visits GROUP BY ward"),
    "SELEC ward FROM visits": ("SELEC", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"),
    "SELECT COUNT(*) AS n FROM visits, stays": (
        None,
        "SELECT COUNT(*) AS n FROM visits JOIN stays ON visits.patient = stays.patient",
    ),
}


@pytest.mark.parametrize("sql", CASES)
def test_a_refused_query_is_corrected_where_the_refusal_points(curator, sql):
    marked, corrected = CASES[sql]
    message = refusal(curator, sql)
    assert message is not None
    start, end = find_place(sql, message)
    assert marked in {None, sql[start:end]}
    offered = corrections(sql, message, lambda text: refusal(curator, text))
    assert Correction(corrected) in offered


def test_bounds_are_left_for_the_reader_to_choose(curator):
    sql = "SELECT AVG(free) AS m FROM visits"
    (offered,) = corrections(sql, refusal(curator, sql), lambda text: refusal(curator, text))
    assert offered == Correction("SELECT AVG(CLIP(free, low, high)) AS m FROM visits", is_complete=False)


def test_nothing_is_offered_that_would_be_refused():
    message = 'line 1, SELECT: column "x" does not exist. Did you mean y or z?'
    assert corrections("SELECT x FROM t", message, lambda _: message) == []


@pytest.mark.parametrize(
    "message", ["", "epsilon: missing", "line 9: x", "line 1, column 900: syntax error", "line 0: x"]
)
def test_every_message_has_a_place_inside_the_query_or_none(message):
    sql = "SELECT 1"
    place = find_place(sql, message)
    assert place is None or 0 <= place[0] <= place[1] <= len(sql)


def test_a_correction_that_leads_to_another_refusal_ends():
    tried = []

    def refusal(sql):
        tried.append(sql)
        return f'line 1, SELECT: column "x" does not exist. Did you mean {len(tried)}x or y{len(tried)}?'

    assert corrections("SELECT x FROM t", refusal("SELECT x FROM t"), refusal) == []
    assert len(tried) < 20


def test_the_hostile_policy_is_a_policy(tmp_path):
    assert hostile_policy(tmp_path).data.protects == "patient"
