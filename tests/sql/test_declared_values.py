"""A comparison with a value that the policy does not list is refused before the charge, with the nearest one."""

import sys
from pathlib import Path

import pyarrow as pa
import pytest

import discreet as dc
from discreet.kernel.loss import ZERO_LOSS

sys.path.insert(0, str(Path(__file__).parents[1]))
from test_curator import opened


@pytest.fixture(scope="module")
def curator():
    with opened() as found:
        yield found


@pytest.mark.parametrize(
    ("sql", "unknown", "hint"),
    [
        ("SELECT COUNT(*) FROM sales WHERE city = 'bonn'", "'bonn'", "'Bonn'"),
        ("SELECT COUNT(*) FROM sales WHERE 'bonn' = city", "'bonn'", "'Bonn'"),
        ("SELECT COUNT(*) FROM sales WHERE city <> 'Koeln'", "'Koeln'", "'Köln'"),
        ("SELECT COUNT(*) FROM sales WHERE NOT city = 'trier'", "'trier'", "'Trier'"),
        ("SELECT COUNT(*) FROM sales WHERE city IN ('Bonn', 'Trir')", "'Trir'", "'Trier'"),
        ("SELECT COUNT(*) FROM sales WHERE city NOT IN ('Bonn', 'Trir')", "'Trir'", "'Trier'"),
        ("SELECT COUNT(*) FROM sales WHERE city IS DISTINCT FROM 'bonn'", "'bonn'", "'Bonn'"),
        ("SELECT COUNT(*) FROM sales WHERE city = 'Paris'", "'Paris'", "'Bonn', 'Köln', 'Trier'"),
        ("SELECT COUNT(*) FROM sales WHERE LOWER(city) = 'Bonn'", "'Bonn'", "'bonn'"),
        ("SELECT COUNT(*) FROM sales WHERE LENGTH(city) = 9", "9", "4, 5"),
        ("SELECT COUNT(*) FROM sales WHERE city LIKE 'bonn%'", "'bonn%'", "'Bonn'"),
        ("SELECT COUNT(*) FROM sales WHERE city NOT LIKE '%x%'", "'%x%'", "'Bonn'"),
        ("SELECT COUNT(*) FILTER (WHERE city = 'bonn') FROM sales", "'bonn'", "'Bonn'"),
        ("SELECT SUM(CASE city WHEN 'Bonn' THEN 1 WHEN 'koeln' THEN 2 END) FROM sales", "'koeln'", "'Köln'"),
        ("SELECT SUM(CASE WHEN city = 'bonn' THEN pieces END) FROM sales", "'bonn'", "'Bonn'"),
        ("SELECT CASE WHEN city = 'bonn' THEN 1 END AS k, COUNT(*) FROM sales GROUP BY k", "'bonn'", "'Bonn'"),
        ("SELECT city, COUNT(*) FROM sales GROUP BY city HAVING city = 'bonn'", "'bonn'", "'Bonn'"),
        ("SELECT COUNT(*) FROM (SELECT city AS c FROM sales) AS t WHERE c = 'bonn'", "'bonn'", "'Bonn'"),
        ("SELECT COUNT(*) FROM (SELECT customer, city FROM sales GROUP BY 1, 2) t WHERE city = 'b'", "'b'", "'Bonn'"),
    ],
)
def test_a_value_that_is_not_listed_is_refused_with_a_hint(curator, sql, unknown, hint):
    with pytest.raises(dc.Refused, match="declared value") as refused:
        curator.ask(sql, epsilon="1/10")
    assert type(refused.value) is dc.Refused
    cause, _, told = str(refused.value).partition(". ")
    assert unknown in cause
    assert hint in told
    assert curator.budget().spent == ZERO_LOSS
    assert not curator.ledger.events()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM sales WHERE LOWER(city) = 'bonn'",
        "SELECT COUNT(*) FROM sales WHERE city LIKE 'B%' OR city ILIKE '%RIER'",
        "SELECT COUNT(*) FROM sales WHERE city LIKE '%o%n%x%'",  # more wildcards than are tried
        "SELECT COUNT(*) FROM sales WHERE city > 'C' AND city BETWEEN 'a' AND 'z'",
        "SELECT COUNT(*) FROM sales WHERE COALESCE(city, 'none') = 'none'",
        "SELECT COUNT(*) FROM sales WHERE city = NULL OR city IN ('Bonn', NULL)",
        "SELECT COUNT(*) FROM sales WHERE street = 'nowhere'",
        "SELECT COUNT(*) FROM sales WHERE pieces = 999 OR pieces < 200",  # may be stored, and mean something
        "SELECT COUNT(*) FILTER (WHERE city = 'Köln') FROM sales WHERE city IN ('Bonn', 'Trier')",
        "SELECT COUNT(*) FROM (SELECT * FROM sales WHERE city = 'Bonn') AS t WHERE city = 'Köln'",
        "SELECT COUNT(*) FROM sales JOIN regions ON city = name WHERE region = 'north'",
        "SELECT CASE WHEN city = 'Bonn' THEN 'here' ELSE 'there' END AS k, COUNT(*) FROM sales GROUP BY k",
        "SELECT COUNT(*) FROM sales WHERE CAST(city AS BOOLEAN)",
    ],
)
def test_comparisons_that_the_policy_allows_are_accepted(curator, sql):
    assert curator.explain(sql, epsilon="1/10").paid != ZERO_LOSS


def test_a_number_that_is_not_listed_is_refused_also_as_a_real():
    rows = pa.table({"who": [1, 2], "code": [200, 404]})
    with dc.open(
        rows, unit="who", budget=4, groups=1, rows=1, columns={"code": {"in": [200, 404]}}, ledger=":memory:"
    ) as curator:
        for wrong in ("code = 201", "code = 200.5", "code IN (200, 999)"):
            with pytest.raises(dc.Refused, match="declared value"):
                curator.ask(f"SELECT COUNT(*) FROM data WHERE {wrong}", epsilon=1)
        assert (
            curator.explain("SELECT COUNT(*) FROM data WHERE code = 200.0 AND code < 999", epsilon=1).paid != ZERO_LOSS
        )
