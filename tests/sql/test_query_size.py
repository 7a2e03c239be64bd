"""A query with too many parts is refused right after parsing, and what is allowed takes work in proportion."""

import sys
from pathlib import Path

import pytest
from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.query.aggregation.additive_aggregates import Aggregate
from discreet.query.passes import plan_query
from discreet.query.syntax.parse import parse_query
from discreet.query.syntax.resolve import resolve_query
from discreet.query.syntax.resolved_query import ResolvedTable
from discreet.query.syntax.syntax_tree import MAX_AGGREGATES, MAX_COLUMNS, MAX_QUERIES, MAX_SOURCES, MAX_TERMS, sql_of

sys.path.insert(0, str(Path(__file__).parent))
from test_refusals import SHOP, outcome


def listed(count, write):
    return ", ".join(write(number) for number in range(count))


HOSTILE = {
    "sums": (MAX_AGGREGATES, lambda n: f"SELECT {listed(n, 'SUM(amount + {})'.format)} FROM orders"),
    "quantiles": (
        MAX_AGGREGATES,
        lambda n: f"SELECT {listed(n, 'QUANTILE_CONT(amount, 0.{:04})'.format)} FROM orders",
    ),
    "filters": (
        MAX_AGGREGATES,
        lambda n: f"SELECT {listed(n, 'COUNT(*) FILTER (WHERE amount > {})'.format)} FROM orders",
    ),
    "aggregates in ORDER BY": (
        MAX_AGGREGATES,
        lambda n: f"SELECT category FROM orders GROUP BY 1 ORDER BY GREATEST({listed(n, 'SUM(amount+{})'.format)})",
    ),
    "columns": (MAX_COLUMNS, lambda n: f"SELECT {listed(n, 'COUNT(*) AS c{}'.format)} FROM orders"),
    "inner columns": (
        MAX_COLUMNS,
        lambda n: f"SELECT COUNT(*) FROM (SELECT {listed(n, 'amount AS c{}'.format)} FROM orders) AS t",
    ),
    "stars": (MAX_COLUMNS, lambda n: f"SELECT COUNT(*) FROM (SELECT {listed(n, lambda _: '*')} FROM orders) AS t"),
    "keys": (MAX_TERMS, lambda n: f"SELECT COUNT(*) FROM orders GROUP BY {listed(n, 'amount > {}'.format)}"),
    "keys in a tuple": (
        MAX_TERMS,
        lambda n: f"SELECT COUNT(*) FROM orders GROUP BY ({listed(n, 'amount > {}'.format)})",
    ),
    "order": (MAX_TERMS, lambda n: f"SELECT COUNT(*) AS n FROM orders ORDER BY {listed(n, 'n + {}'.format)}"),
    "partition": (
        MAX_TERMS,
        lambda n: f"SELECT RANK() OVER (PARTITION BY {listed(n, 'COUNT(*) + {}'.format)}) FROM orders",
    ),
    "with": (
        MAX_QUERIES - 1,
        lambda n: f"WITH {listed(n, 'a{} AS (SELECT * FROM orders)'.format)} SELECT COUNT(*) FROM a0",
    ),
    "inner queries": (
        MAX_QUERIES - 1,
        lambda n: f"SELECT {listed(n, '(SELECT COUNT(*) FROM orders WHERE amount > {})'.format)}",
    ),
    "unions": (MAX_QUERIES, lambda n: " UNION ALL ".join(["SELECT COUNT(*) FROM orders"] * n)),
    "joins": (
        MAX_SOURCES - 1,
        lambda n: (
            f"SELECT COUNT(*) FROM orders{''.join(f' JOIN prices p{i} ON category = p{i}.category' for i in range(n))}"
        ),
    ),
}


@pytest.mark.long(only=["columns"])
@pytest.mark.parametrize(("most", "write"), HOSTILE.values(), ids=HOSTILE)
def test_one_part_above_the_limit_is_refused_before_anything_is_resolved(most, write, monkeypatch):
    parse_query(write(most))
    monkeypatch.setattr(sys.modules["discreet.query.passes"], "resolve_query", lambda *_: pytest.fail("resolved"))
    with pytest.raises(Refused, match=f"at most {most if most in (100, 200, 500) else most + 1} "):
        plan_query(write(most + 1), SHOP, None)


def test_a_long_text_is_refused_before_it_is_parsed(monkeypatch):
    monkeypatch.setattr("discreet.query.syntax.parse.build_tree", lambda *_: pytest.fail("parsed"))
    for sql in ("SELECT " + "1," * 5_000 + "1", "SELECT " + "(" * 41, "SELECT '" + "x" * 100_000 + "'"):
        with pytest.raises(Refused):
            parse_query(sql)


def test_the_same_aggregate_again_and_again_counts_once():
    parse_query(f"SELECT {listed(300, 'SUM(amount) AS c{}'.format)} FROM orders")


def test_stars_that_multiply_columns_are_refused_and_a_wide_table_is_not():
    stars = listed(400, lambda _: "*")
    assert "columns" in outcome(f"SELECT COUNT(*) FROM (SELECT {stars} FROM orders) AS t", SHOP)
    assert not isinstance(outcome("SELECT COUNT(*) FROM (SELECT * FROM orders) AS t", SHOP), str)


@pytest.mark.parametrize("join", ["a{0}, a{0} AS x", "a{0} JOIN a{0} AS x USING (user)"])
def test_with_queries_do_not_double_the_columns_of_a_star_for_ever(join):
    doubled = listed(11, lambda n: f"a{n + 1} AS (SELECT * FROM {join.format(n)})")
    sql = f"WITH a0 AS (SELECT * FROM orders), {doubled} SELECT COUNT(*) FROM a11"
    assert "at most 500 columns" in outcome(sql, SHOP)


def test_all_columns_of_wide_tables_are_allowed():
    wide = ResolvedTable("t", tuple(f"c{number}" for number in range(MAX_COLUMNS)))
    query = parse_query("SELECT * FROM (SELECT * FROM t, t AS u) AS v").query
    assert len(resolve_query(query, lambda _: wide).names) == 2 * MAX_COLUMNS


def test_aggregates_are_distinguished_by_their_hashes(monkeypatch):
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
    query = parse_query(
        "SELECT SUM(CASE " + " ".join(f"WHEN amount = {i} THEN {i}" for i in range(200)) + " END) FROM orders"
    )
    monkeypatch.setattr(exp.Expr, "transform", lambda *_: pytest.fail("written"))
    assert sql_of(query.query.selects[0]) == "SUM(…)"
