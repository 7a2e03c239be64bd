"""A query with too many parts is refused right after parsing, and what is allowed takes work in proportion."""

import sys
from pathlib import Path

import pytest
from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.sql import read
from discreet.sql.asked.aggregates import Aggregate
from discreet.sql.counts import MOST_AGGREGATES, MOST_COLUMNS, MOST_QUERIES, MOST_SOURCES, MOST_TERMS
from discreet.sql.places import written
from discreet.sql.text import parse

sys.path.insert(0, str(Path(__file__).parent))
from test_refusals import SHOP, outcome


def listed(count, write):
    return ", ".join(write(number) for number in range(count))


HOSTILE = {
    "sums": (MOST_AGGREGATES, lambda n: f"SELECT {listed(n, 'SUM(amount + {})'.format)} FROM orders"),
    "quantiles": (
        MOST_AGGREGATES,
        lambda n: f"SELECT {listed(n, 'QUANTILE_CONT(amount, 0.{:04})'.format)} FROM orders",
    ),
    "filters": (
        MOST_AGGREGATES,
        lambda n: f"SELECT {listed(n, 'COUNT(*) FILTER (WHERE amount > {})'.format)} FROM orders",
    ),
    "aggregates in ORDER BY": (
        MOST_AGGREGATES,
        lambda n: f"SELECT category FROM orders GROUP BY 1 ORDER BY GREATEST({listed(n, 'SUM(amount+{})'.format)})",
    ),
    "columns": (MOST_COLUMNS, lambda n: f"SELECT {listed(n, 'COUNT(*) AS c{}'.format)} FROM orders"),
    "inner columns": (
        MOST_COLUMNS,
        lambda n: f"SELECT COUNT(*) FROM (SELECT {listed(n, 'amount AS c{}'.format)} FROM orders) AS t",
    ),
    "stars": (MOST_COLUMNS, lambda n: f"SELECT COUNT(*) FROM (SELECT {listed(n, lambda _: '*')} FROM orders) AS t"),
    "keys": (MOST_TERMS, lambda n: f"SELECT COUNT(*) FROM orders GROUP BY {listed(n, 'amount > {}'.format)}"),
    "keys in a tuple": (
        MOST_TERMS,
        lambda n: f"SELECT COUNT(*) FROM orders GROUP BY ({listed(n, 'amount > {}'.format)})",
    ),
    "order": (MOST_TERMS, lambda n: f"SELECT COUNT(*) AS n FROM orders ORDER BY {listed(n, 'n + {}'.format)}"),
    "partition": (
        MOST_TERMS,
        lambda n: f"SELECT RANK() OVER (PARTITION BY {listed(n, 'COUNT(*) + {}'.format)}) FROM orders",
    ),
    "with": (
        MOST_QUERIES - 1,
        lambda n: f"WITH {listed(n, 'a{} AS (SELECT * FROM orders)'.format)} SELECT COUNT(*) FROM a0",
    ),
    "inner queries": (
        MOST_QUERIES - 1,
        lambda n: f"SELECT {listed(n, '(SELECT COUNT(*) FROM orders WHERE amount > {})'.format)}",
    ),
    "unions": (MOST_QUERIES, lambda n: " UNION ALL ".join(["SELECT COUNT(*) FROM orders"] * n)),
    "joins": (
        MOST_SOURCES - 1,
        lambda n: (
            f"SELECT COUNT(*) FROM orders{''.join(f' JOIN prices p{i} ON category = p{i}.category' for i in range(n))}"
        ),
    ),
}


@pytest.mark.long(only=["columns"])
@pytest.mark.parametrize(("most", "write"), HOSTILE.values(), ids=HOSTILE)
def test_one_part_too_many_is_refused_before_anything_is_resolved(most, write, monkeypatch):
    parse(write(most))
    monkeypatch.setattr(sys.modules["discreet.sql.read"], "separate", lambda *_: pytest.fail("resolved"))
    with pytest.raises(Refused, match=f"at most {most if most in (100, 200, 500) else most + 1} "):
        read(write(most + 1), SHOP, None)


def test_a_long_text_is_refused_before_it_is_parsed(monkeypatch):
    monkeypatch.setattr("discreet.sql.text.tree", lambda *_: pytest.fail("parsed"))
    for sql in ("SELECT " + "1," * 5_000 + "1", "SELECT " + "(" * 41, "SELECT '" + "x" * 100_000 + "'"):
        with pytest.raises(Refused):
            parse(sql)


def test_the_same_aggregate_again_and_again_counts_once():
    parse(f"SELECT {listed(300, 'SUM(amount) AS c{}'.format)} FROM orders")


def test_stars_that_multiply_columns_are_refused_and_a_wide_table_is_not():
    stars = listed(400, lambda _: "*")
    assert "columns" in outcome(f"SELECT COUNT(*) FROM (SELECT {stars} FROM orders) AS t", SHOP)
    assert not isinstance(outcome("SELECT COUNT(*) FROM (SELECT * FROM orders) AS t", SHOP), str)


def test_aggregates_are_told_apart_by_their_hashes(monkeypatch):
    compared = []
    monkeypatch.setattr(Aggregate, "__eq__", lambda self, other: compared.append(1) or vars(self) == vars(other))
    assert not isinstance(outcome(f"SELECT {listed(30, 'SUM(amount + {})'.format)} FROM orders", SHOP), str)
    assert len(compared) < 200  # each with each other would be 435


def test_a_chain_of_conditions_is_copied_once_not_once_for_each_link(monkeypatch):
    copied, before = [], exp.Expr.copy
    monkeypatch.setattr(exp.Expr, "copy", lambda node: copied.append(sum(1 for _ in node.walk())) or before(node))
    chain = " AND ".join(f"COUNT(*) > {number}" for number in range(40))
    assert not isinstance(outcome(f"SELECT category FROM orders GROUP BY category HAVING {chain}", SHOP), str)
    assert sum(copied) < 10 * 6 * 40  # nodes; with a copy at each link, they were 40 times as many


def test_a_message_does_not_write_out_a_long_expression(monkeypatch):
    query = parse(
        "SELECT SUM(CASE " + " ".join(f"WHEN amount = {i} THEN {i}" for i in range(200)) + " END) FROM orders"
    )
    monkeypatch.setattr(exp.Expr, "transform", lambda *_: pytest.fail("written"))
    assert written(query.query.selects[0]) == "SUM(…)"
