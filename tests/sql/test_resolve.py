"""Names mean what they mean in PostgreSQL, on both sides of a release."""

import sys
from pathlib import Path

import pytest
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.eliminate_ctes import eliminate_ctes
from sqlglot.optimizer.qualify import qualify

from discreet.kernel.errors import Refused
from discreet.query.syntax.parse import parse_query
from discreet.query.syntax.resolve import resolve_query
from discreet.query.syntax.resolved_query import (
    ResolvedSelect,
    ResolvedTable,
    columns_in,
    inner_queries,
    reference_of,
)
from discreet.query.syntax.syntax_tree import refuse

sys.path.insert(0, str(Path(__file__).parent.parent / "golden"))

from golden_compact import resolved_sql
from golden_policies import PUBLIC
from test_golden import FILES, cases, policy_of

TABLES = {"t": ("a", "b", "c"), "u": ("a", "d"), "Mixed": ("Total", "total", "n")}


def find_table(node):
    for name, columns in TABLES.items():
        if name.lower() == node.name.lower():
            return ResolvedTable(name, columns)
    raise refuse(node, "FROM", f"table {node.name} does not exist", "None.")


def resolved(sql):
    return resolved_sql(resolve_query(parse_query(sql).query, find_table))


def refusal(sql):
    with pytest.raises(Refused) as caught:
        resolved(sql)
    return str(caught.value)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM t", "SELECT s1.a, s1.b, s1.c FROM t AS s1"),
        ("SELECT x.*, a FROM t AS x", "SELECT s1.a, s1.b, s1.c, s1.a FROM t AS s1"),
        ("SELECT p, c FROM t AS x(p, q)", "SELECT s1.p, s1.c FROM t AS s1"),
        ("SELECT a AS k, COUNT(*) FROM t GROUP BY k", "SELECT s1.a, COUNT(*) FROM t AS s1 GROUP BY s1.a"),
        ("SELECT b AS a, COUNT(*) FROM t GROUP BY a", "SELECT s1.b, COUNT(*) FROM t AS s1 GROUP BY s1.a"),
        ("SELECT a, COUNT(*) FROM t GROUP BY 1", "SELECT s1.a, COUNT(*) FROM t AS s1 GROUP BY s1.a"),
        ("SELECT a, b, COUNT(*) FROM t GROUP BY ALL", "SELECT s1.a, s1.b, COUNT(*) FROM t AS s1 GROUP BY s1.a, s1.b"),
        (
            "SELECT a, 1 AS one, COUNT(*) OVER () AS w, COUNT(*) FROM t GROUP BY ALL",
            "SELECT s1.a, 1, COUNT(*) OVER (), COUNT(*) FROM t AS s1 GROUP BY s1.a",
        ),
        ("SELECT b AS a FROM t ORDER BY a", "SELECT s1.b FROM t AS s1 ORDER BY 1"),
        ("SELECT b AS a FROM t ORDER BY a + 1", "SELECT s1.b FROM t AS s1 ORDER BY s1.a + 1"),
        ("SELECT b FROM t ORDER BY c, 1", "SELECT s1.b FROM t AS s1 ORDER BY s1.c, 1"),
        ("SELECT COUNT(*) AS n FROM t HAVING n > 3", "SELECT COUNT(*) FROM t AS s1 HAVING (COUNT(*)) > 3"),
        ("SELECT * FROM t JOIN u USING (a)", "SELECT s1.a, s1.b, s1.c, s2.d FROM t AS s1 JOIN u AS s2 ON s1.a = s2.a"),
        ("SELECT a FROM t RIGHT JOIN u USING (a)", "SELECT s2.a FROM t AS s1 RIGHT JOIN u AS s2 ON s1.a = s2.a"),
        (
            "SELECT a FROM t FULL JOIN u USING (a)",
            "SELECT COALESCE(s1.a, s2.a) FROM t AS s1 FULL JOIN u AS s2 ON s1.a = s2.a",
        ),
        ("SELECT u.a FROM t JOIN u USING (a)", "SELECT s2.a FROM t AS s1 JOIN u AS s2 ON s1.a = s2.a"),
        (
            "WITH x AS (SELECT a FROM t), y AS (SELECT 1) SELECT a FROM x",
            "WITH x AS (SELECT s4.a FROM t AS s4) SELECT s1.a FROM x AS s1",
        ),
        (
            "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND d = b)",
            "SELECT s1.a FROM t AS s1 WHERE EXISTS(SELECT 1 FROM u AS s3 WHERE s3.a = s1.a AND s3.d = s1.b)",
        ),
        (
            "SELECT SUM(n) OVER w FROM Mixed WINDOW w AS (PARTITION BY total ORDER BY n)",
            None,
        ),
        (
            'SELECT SUM(n) OVER w FROM Mixed WINDOW w AS (PARTITION BY "Total")',
            "SELECT SUM(s1.n) OVER (PARTITION BY s1.Total) FROM Mixed AS s1",
        ),
        ('SELECT "total", "Total" FROM mixed', "SELECT s1.total, s1.Total FROM Mixed AS s1"),
        ("SELECT column2 FROM (VALUES (1, 2)) AS v", "SELECT s1.column2 FROM (VALUES (1, 2)) AS s1"),
    ],
)
def test_names_are_resolved_as_in_postgresql(sql, expected):
    if expected is None:
        assert "ambiguous" in refusal(sql)
        return
    without_names = exp.maybe_parse(resolved(sql), dialect="postgres")
    for select in without_names.find_all(exp.Select):
        select.set("expressions", [each.unalias() for each in select.expressions])
    assert without_names.sql("postgres") == exp.maybe_parse(expected, dialect="postgres").sql("postgres")


@pytest.mark.parametrize(
    ("sql", "cause"),
    [
        ("SELECT aa FROM t", 'line 1, SELECT: column "aa" does not exist. Did you mean a?'),
        ("SELECT a\nFROM t, u", 'line 1, SELECT: column reference "a" is ambiguous. Write t.a or u.a.'),
        ("SELECT x.a FROM t", 'line 1, SELECT: missing FROM-clause entry for table "x".'),
        ("SELECT t.a FROM t AS x", 'line 1, SELECT: missing FROM-clause entry for table "t".'),
        ("SELECT a FROM t AS x, u AS x", 'line 1, FROM: table name "x" specified more than once.'),
        (
            "SELECT a AS k FROM t WHERE\n k > 1",
            'line 2, WHERE: column "k" does not exist: names of the SELECT list cannot be used in WHERE',
        ),
        (
            "SELECT a AS k, k + 1 FROM t",
            'line 1, SELECT: column "k" does not exist: names of the SELECT list cannot be used',
        ),
        ("SELECT a AS total FROM t ORDER BY x", 'line 1, ORDER BY: column "x" does not exist. Available: total, a, '),
        (
            "SELECT COUNT(*) AS total FROM t HAVING totl > 1",
            'line 1, HAVING: column "totl" does not exist. Did you mean total?',
        ),
        ("SELECT COUNT(*) WHERE a = 1", 'line 1, WHERE: column "a" does not exist. Add FROM and a table'),
        ("SELECT a FROM t ORDER BY 2", "line 1, ORDER BY: ORDER BY position 2 is not in the SELECT list."),
        ("SELECT a AS k, b AS k FROM t ORDER BY k", 'line 1, ORDER BY: column reference "k" is ambiguous.'),
        ("SELECT k FROM (SELECT a AS k, b AS k FROM t) AS x", 'line 1, SELECT: column reference "k" is ambiguous.'),
        ("SELECT b FROM t JOIN u ON u.a = v.a JOIN t AS v ON true", "line 1, ON: missing FROM-clause entry"),
        ("SELECT a FROM t AS x(p, q, r, s)", "line 1, FROM: the table has 3 columns, but 4 names were given."),
        ("SELECT a FROM t UNION SELECT a, d FROM u", "line 1, UNION: the two sides have different numbers of columns"),
        ("SELECT a FROM t UNION SELECT a FROM u ORDER BY d", "line 1, ORDER BY: after UNION"),
        ("SELECT SUM(a) OVER w FROM t", 'line 1, SELECT: window "w" does not exist.'),
        ("SELECT *", "line 1, SELECT: * needs a table in FROM."),
        ("SELECT COUNT(*) FROM t GROUP BY", "line 1, GROUP BY: GROUP BY has no expression."),
        (
            "SELECT a, COUNT(*) FROM t GROUP BY a WITH ROLLUP",
            ": WITH ROLLUP is not supported. Write GROUP BY ROLLUP (…)",
        ),
        ("SELECT a, COUNT(*) FROM t GROUP BY a WITH CUBE", ": WITH CUBE is not supported. Write GROUP BY ROLLUP (…)"),
        ("SELECT a, COUNT(*) FROM t GROUP BY a WITH TOTALS", "TOTALS is not supported."),
        ("SELECT a, COUNT(*) FROM t GROUP BY , a", 'line 1, column 36: syntax error at or near ","'),
        ("SELECT a FROM t ORDER BY a, , b", 'syntax error at or near ","'),
        ("SELECT a.b.c.d FROM t", "too many parts"),
    ],
)
def test_a_name_without_one_meaning_is_refused(sql, cause):
    assert cause in refusal(sql)


def test_a_name_without_quotation_marks_means_the_with_query_that_has_none_either():
    queries = 'WITH v AS (SELECT a FROM t), "V" AS (SELECT d FROM u) SELECT * FROM'
    plain, quoted = 'SELECT s1.a AS "a" FROM v AS s1', 'SELECT s1.d AS "d" FROM V AS s1'
    found = [resolved(f"{queries} {name}") for name in ("v", "V", '"V"')]
    assert [sql[sql.index(") ") + 2 :] for sql in found] == [plain, plain, quoted]
    assert resolved('WITH "V" AS (SELECT d FROM u) SELECT * FROM v').endswith(quoted)
    assert resolved('WITH V AS (SELECT d FROM u) SELECT * FROM "V"').endswith(quoted)


def test_the_tree_of_the_parser_is_not_modified():
    tree = parse_query("WITH x AS (SELECT * FROM t) SELECT a AS k, COUNT(*) FROM x GROUP BY k ORDER BY k").query
    before = repr(tree)
    resolve_query(tree, find_table)
    assert repr(tree) == before


def references(query):
    """Yield the table, or the alias of the query, and the column of each reference."""
    items = {}

    def collect(each):
        for inner in inner_queries(each):
            collect(inner)
        if isinstance(each, ResolvedSelect):
            items.update({item.ref: item for item in each.sources})

    def listed(each):
        for inner in inner_queries(each):
            yield from listed(inner)
        if isinstance(each, ResolvedSelect):
            for node in each.expressions:
                for column in columns_in(node):
                    item = items[reference_of(column).source]
                    yield (item.alias or "").lower(), item.columns[reference_of(column).index].lower()

    collect(query)
    return set(listed(query))


def oracle(query, schema):
    """Yield the same from sqlglot's own resolver."""
    tree = eliminate_ctes(qualify(query.copy(), schema=schema, dialect="postgres", quote_identifiers=False))
    return {
        (column.table.lower(), column.name.lower())
        for column in tree.find_all(exp.Column)
        if column.table and not isinstance(column.parent, exp.Ordered) and not column.find_ancestor(exp.Group)
    }


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_every_reference_is_that_of_sqlglots_resolver(path):
    text = path.read_text()
    policy = policy_of(text)
    compared = 0
    for case in cases(text):
        if case.expected.startswith("refused"):
            continue
        query = parse_query(case.sql).query
        tables = {name: tuple(table.columns) or tuple(PUBLIC.columns(name)) for name, table in policy.tables.items()}
        schema = {name.lower(): {column.lower(): "text" for column in columns} for name, columns in tables.items()}
        lower = {name.lower(): ResolvedTable(name, columns) for name, columns in tables.items()}
        try:
            theirs = oracle(query, schema)
            ours = references(resolve_query(query, lambda node, lower=lower: lower[node.name.lower()]))
        except (SqlglotError, KeyError, Refused):
            continue
        compared += 1
        assert theirs <= ours, case.title
    assert compared
