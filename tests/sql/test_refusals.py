"""Whatever is written, the outcome is a plan or a refusal; a refusal says where, what and what to do instead."""

import logging
import random
import re

import pytest
from golden_policies import POLICIES, PUBLIC
from sqlglot import exp
from test_golden import FILES, cases, policy_of

from discreet.estimate.planned_release import QueryPlan
from discreet.kernel.errors import Refused
from discreet.query.passes import plan_query
from discreet.query.syntax.parse import parse_query

SHOP, WEBLOG = POLICIES["SHOP"], POLICIES["WEBLOG"]
SHAPE = re.compile(r"line \d+(?:, [^:]+)?: .+[.?!…] .+[.?!]", re.DOTALL)


def outcome(sql, policy):
    """Return a plan, or the words of a refusal."""
    try:
        return plan_query(sql, policy, PUBLIC)
    except Refused as refused:
        return str(refused)


def refusal(sql, policy=SHOP, **said):
    with pytest.raises(Refused) as refused:
        plan_query(sql, policy, PUBLIC, **said)
    return str(refused.value)


def test_a_refusal_names_its_line():
    text = refusal(
        "SELECT category,\n  COUNT(*)\nFROM orders\nWHERE amount > 3\n  AND colour = 'red'\nGROUP BY category"
    )
    assert text.startswith('line 5, WHERE: column "colour" does not exist.')


def test_a_refusal_in_a_subquery_names_its_own_line():
    assert refusal("SELECT AVG(x)\nFROM (\n  SELECT amuont AS x FROM orders) t").startswith("line 3, SELECT: ")


@pytest.mark.parametrize(
    ("sql", "clause"),
    [
        ("SELECT AVG(nothing) FROM orders", "SELECT"),
        ("SELECT COUNT(*) FROM nothing", "FROM"),
        ("SELECT COUNT(*) FROM orders WHERE nothing", "WHERE"),
        ("SELECT COUNT(*) FROM orders GROUP BY nothing", "GROUP BY"),
        ("SELECT COUNT(*) FROM orders GROUP BY category HAVING nothing > 1", "HAVING"),
        ("SELECT COUNT(*) FROM orders GROUP BY category ORDER BY nothing", "ORDER BY"),
        ("SELECT COUNT(*) FILTER (WHERE nothing) FROM orders", "SELECT"),
        ("SELECT COUNT(*) FROM orders LEFT JOIN regions ON region = name AND nothing", "ON"),
        ("SELECT COUNT(*) FROM orders JOIN regions USING (nothing)", "USING"),
    ],
)
def test_a_refusal_names_the_clause(sql, clause):
    assert refusal(sql).startswith(f"line 1, {clause}: ")


def test_the_nearest_names_are_offered():
    assert refusal("SELECT AVG(discont) FROM orders").endswith("Did you mean discount?")
    assert refusal("SELECT COUNT(*) FROM region").endswith("Did you mean regions?")


@pytest.mark.parametrize("value", ["food", '"food"'])
def test_a_declared_value_without_single_quotes_is_recognised(value):
    sql = f"SELECT COUNT(*) FROM orders WHERE category = {value}"
    assert refusal(sql).endswith("Text needs single quotes: 'food'.")
    assert "quotes" not in refusal(sql.replace("food", "foot"))
    assert "quotes" not in refusal(sql.replace("orders", "(SELECT city FROM orders) AS o"))
    nested = f"SELECT COUNT(*) FROM orders WHERE user IN (SELECT visitor FROM visits WHERE category = {value})"
    assert "Text needs single quotes: 'food'." in refusal(nested)


def test_a_missing_contribution_bound_is_refused_with_a_hint():
    text = refusal("SELECT COUNT(DISTINCT flag) FROM lab_flags", POLICIES["HOSPITAL"])
    assert "Pass groups and rows" in text
    assert "max_rows_contributed" in text


def test_a_sum_without_a_range_is_refused_with_clip_as_a_hint():
    assert "SUM(CLIP(weight, low, high))" in refusal("SELECT SUM(weight) FROM orders")
    assert "AVG(CLIP(n, low, high))" in refusal("SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM orders GROUP BY user) t")


def test_refused_partition_selection_names_the_column_and_a_hint():
    text = refusal("SELECT path, COUNT(*) FROM hits GROUP BY path", WEBLOG)
    assert "groups of path" in text
    assert "delta" in text


def test_too_many_keys_are_refused_with_their_number():
    sql = "SELECT date_trunc('minute', at), status, bytes / 1000000, COUNT(*) FROM hits GROUP BY 1, 2, 3"
    assert "13,525,920 combinations" in refusal(sql, WEBLOG)


@pytest.mark.long(only=["sql10", "sql3"])
@pytest.mark.parametrize(
    "sql",
    [
        'SELECT COUNT(*) FROM (SELECT user AS ".u0", \'.\' AS "." FROM orders) t',
        'SELECT COUNT(*) FROM (SELECT amount AS "' + "x" * 500 + '" FROM orders) t',
        'SELECT COUNT(*) AS "" FROM orders',
        "SELECT COUNT(*) FROM orders WHERE amount IN (" + ", ".join(map(str, range(5000))) + ")",
        "SELECT COUNT(*) FROM orders WHERE " + " AND ".join(["amount > 1"] * 3000),
        "SELECT COUNT(*) FROM orders WHERE " + " OR ".join(f"amount = {i}" for i in range(3000)),
        "SELECT " + ", ".join(f"SUM(amount + {i})" for i in range(300)) + " FROM orders",
        "SELECT SUM(" + "+".join(["amount"] * 1000) + ") FROM orders",
        "WITH " + ", ".join(f"a{i + 1} AS (SELECT amount FROM a{i})" for i in range(70)) + " SELECT COUNT(*) FROM a70",
        "WITH a0 AS (SELECT amount + 1 AS amount FROM orders), "
        + ", ".join(f"a{i + 1} AS (SELECT amount + 1 AS amount FROM a{i})" for i in range(70))
        + " SELECT AVG(amount) FROM a70",
        "SELECT COUNT(*) FROM orders " + " ".join(f"JOIN regions r{i} ON region = r{i}.name" for i in range(80)),
        "SELECT COUNT(*) FROM orders " + " ".join(f"JOIN visits v{i} ON orders.user = v{i}.visitor" for i in range(20)),
        "SELECT " + "(" * 39 + "COUNT(*)" + ")" * 39 + " FROM orders",
        "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 38 + "orders" + ") t" * 38,
        "SELECT COUNT(*) FROM orders AS o (user, time, amount, quantity)",
        "SELECT COUNT(*) FROM orders AS o (a, b, c, d, e, f, g, h, i, j, k, l, m)",
        "SELECT COUNT() FROM orders",
        "SELECT COUNT(*, 1) FROM orders",
        "SELECT COUNT(DISTINCT) FROM orders",
        "SELECT SUM(amount, quantity) FROM orders",
        "SELECT AVG(NULL) FROM orders",
        "SELECT SUM(1e400) FROM orders",
        "SELECT SUM(CLIP(amount, 5, 5)) FROM orders",
        "SELECT SUM(CLIP(amount, 9, 1)) FROM orders",
        "SELECT AVG(CLIP(amount, 1000000000000, 1000000000001)) FROM orders",
        "SELECT STDDEV(CLIP(amount, 0, 1e-290)) FROM orders",
        "SELECT SUM(CLIP(amount, -1e299, 1e299)) FROM orders",
        "SELECT COUNT(*) FROM orders WHERE NULL",
        "SELECT COUNT(*) FROM orders GROUP BY NULL",
        "SELECT COUNT(*) FROM orders GROUP BY ()",
        "SELECT COUNT(*) FROM orders GROUP BY 99999999999999999999",
        "SELECT 1 FROM orders GROUP BY 1",
        "SELECT FROM orders",
        "SELECT * EXCLUDE (user) FROM orders",
        "SELECT t.* FROM orders o GROUP BY ALL",
        "SELECT COUNT(*) FROM orders, orders",
        "SELECT COUNT(*) FROM orders JOIN visits USING (category)",
        "SELECT COUNT(*) FROM orders o JOIN visits v ON o.user = v.visitor JOIN prices USING (category)",
        "SELECT COUNT(*) FROM (orders JOIN regions ON region = name)",
        "SELECT COUNT(*) FROM orders WHERE (user, city) IN (SELECT visitor, page FROM visits)",
        "SELECT COUNT(*) FROM orders WHERE user IN (SELECT visitor, page FROM visits)",
        "SELECT COUNT(*) FROM orders WHERE user = ANY (SELECT visitor FROM visits)",
        "SELECT COUNT(*) FROM orders WHERE user IN (VALUES (1), (2))",
        "SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM visits v WHERE v.visitor = o.user UNION SELECT 1)",
        "SELECT COUNT(*) OVER () FROM orders",
        "SELECT category, COUNT(*) FROM orders GROUP BY category WINDOW w AS (ORDER BY category)",
        "SELECT COUNT(*) FROM orders LIMIT (SELECT COUNT(*) FROM visits)",
        "SELECT COUNT(*) FROM orders ORDER BY (SELECT AVG(seconds) FROM visits)",
        "SELECT (SELECT amount FROM orders) FROM (SELECT COUNT(*) FROM orders) t",
        "SELECT COUNT(*) FROM orders EXCEPT SELECT COUNT(*) FROM visits",
        "SELECT COUNT(*) FROM orders UNION ALL SELECT amount FROM orders",
    ],
)
def test_unusual_queries_are_planned_or_refused_and_never_raise(sql, caplog):
    with caplog.at_level(logging.ERROR, "discreet"):
        found = outcome(sql, SHOP)
    assert isinstance(found, QueryPlan) or SHAPE.fullmatch(found)
    assert not caplog.records


def _trees(path):
    text = path.read_text()
    for case in cases(text):
        try:
            yield policy_of(text), parse_query(case.sql).query
        except Refused:
            continue


def _kind(node):
    return (
        exp.Query if isinstance(node, exp.Query) else exp.Condition if isinstance(node, exp.Condition) else type(node)
    )


@pytest.mark.long
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_queries_with_parts_of_other_queries_are_planned_or_refused(path, caplog):
    rng = random.Random(path.stem)
    trees = list(_trees(path))
    parts = [part for _, tree in trees for part in tree.walk()]
    with caplog.at_level(logging.ERROR, "discreet"):
        for _ in range(150):
            policy, tree = rng.choice(trees)
            tree = tree.copy()
            place = rng.choice([node for node in tree.walk() if node.parent is not None])
            place.replace(rng.choice([part for part in parts if _kind(part) is _kind(place)]).copy())
            found = outcome(tree.sql(dialect="postgres"), policy)
            assert isinstance(found, QueryPlan) or SHAPE.fullmatch(found)
    assert not caplog.records


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("CONUT(*)", "COUNT"),
        ("MEDAIN(amount)", "MEDIAN"),
        ("AVERAGE(amount)", "AVG"),
        ("COUNT_DISTINCT(city)", "COUNT(DISTINCT"),
        ("ROUDN(AVG(amount), 1)", "ROUND"),
    ],
)
@pytest.mark.parametrize("rest", ["", " GROUP BY category"])
def test_a_misspelt_function_is_answered_with_the_nearest_one(call, hint, rest):
    """Also if its column is not grouped, which would be the next complaint."""
    text = refusal(f"SELECT {call} FROM orders{rest}")
    assert call.partition("(")[0] in text
    assert hint in text.partition("not supported")[2]


def test_correlations_of_text_are_refused_with_a_hint_for_both_operands():
    text = refusal("SELECT CORR(category, amount) FROM orders")
    assert "category is not" in text
    assert "CASE WHEN category" in text


@pytest.mark.parametrize(
    "condition", ["1 = 0", "FALSE", "NULL", "amount > 3 AND 2 < 1", "'a' = 'b'", "city = NULL", "NULL <> amount"]
)
def test_a_condition_that_is_never_true_is_refused(condition):
    assert "WHERE: the condition is never true" in refusal(f"SELECT COUNT(*) FROM orders WHERE {condition}")
    inner = f"SELECT SUM(n) FROM (SELECT user, COUNT(*) AS n FROM orders WHERE {condition} GROUP BY user) AS u"
    assert "never true" in refusal(inner)
    assert outcome("SELECT COUNT(*) FROM orders WHERE 1 = 1", SHOP).releases


def test_conditions_on_groups_are_refused_where_the_query_wrote_them():
    by_city = "SELECT city, COUNT(*) AS n FROM orders GROUP BY city"
    assert refusal(f"{by_city} HAVING city").startswith("line 1, HAVING: expected boolean")
    assert "QUALIFY needs a window function. Use HAVING" in refusal(f"{by_city} QUALIFY n > 3")
    assert outcome(f"{by_city} QUALIFY RANK() OVER (ORDER BY n) = 1", SHOP).releases


def test_a_sum_of_something_else_names_it_and_what_fits_its_type():
    assert "SUM needs a number, not timestamp: SUM(time). Use MEDIAN, or" in refusal("SELECT SUM(time) FROM orders")
    assert "AVG needs a number, not text: AVG(category). Count" in refusal("SELECT AVG(category) FROM orders")
    per_user = "SELECT AVG(s) FROM (SELECT user, SUM(category) AS s FROM orders GROUP BY user) AS u"
    assert "SUM needs a number, not text" in refusal(per_user)
