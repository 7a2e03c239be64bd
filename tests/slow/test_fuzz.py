"""Twenty thousand queries made at random: each is answered or refused, soon, in words of ours, whatever the rows are.

A failure tells the seed and the number of a query; `made(seed, number)` makes it again.
"""

import os

import pytest
from fuzzing.driving import checked
from fuzzing.queries import made

pytestmark = pytest.mark.slow

SEED = os.environ.get("DISCREET_FUZZ", "tonight")
QUERIES = 20_000


def shown(number):
    query = made(SEED, number)
    return f"made({SEED!r}, {number}): {query.policy} {query.given} {query.sql[:2_000]!r}"


@pytest.fixture(scope="module")
def report():
    found = checked(SEED, QUERIES, workers=min(2, os.cpu_count() or 1))
    print(found.endings)
    for number in found.outliers()[:10]:
        print(f"{found.seconds[number]:.2f} s: {shown(number)}")
    return found


def test_every_query_is_answered_or_refused_and_discloses_nothing_else(report):
    assert len(report.seconds) == QUERIES
    told = [f"{problem}\n    {shown(number)}" for number, problem in report.problems]
    assert told == [], "\n".join(told[:20])


def test_nothing_is_printed(report):
    assert report.printed == ""


def test_the_queries_are_of_all_kinds(report):
    made_answered, made_refused = report.endings["made, answered"], report.endings["made, Refused"]
    assert 0.35 < made_answered / (made_answered + made_refused) < 0.75
    assert report.endings["changed, answered"] > QUERIES // 50
    assert set(report.endings) <= {
        *("made, answered", "made, Refused", "made, Explanation", "changed, answered", "changed, Refused"),
        "changed, Explanation",
    }
