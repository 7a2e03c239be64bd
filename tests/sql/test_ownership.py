"""Every relation that the reader makes keeps the property: each row belongs to one unit, and depends on it alone."""

import random

import pytest
from golden_policies import POLICIES, PUBLIC

from discreet.kernel.errors import Refused
from discreet.kernel.relation import JoinKind, JoinOnUnit, JoinPublic, PerUnit, SemiJoinKind, SemiJoinOnUnit, Where
from discreet.query.passes import plan_query
from tests.reference.engine import ReferenceEngine

SHOP, HOSPITAL, WEBLOG, METER = (POLICIES[name] for name in ("SHOP", "HOSPITAL", "WEBLOG", "METER"))


def relation(sql, policy=SHOP, **said):
    (part,) = plan_query(sql, policy, PUBLIC, **said).releases
    return part.question.relation


def refusal(sql, policy=SHOP, publics=PUBLIC):
    with pytest.raises(Refused) as refused:
        plan_query(sql, policy, publics)
    return str(refused.value)


def test_public_tables_are_joined_on_anything():
    found = relation("SELECT COUNT(*) FROM orders o JOIN regions r ON upper(o.city) = r.name")
    assert isinstance(found, JoinPublic)
    assert (found.equal, found.kind, found.fanout) == ((("c0", "name"),), JoinKind.INNER, 1)


def test_a_join_without_equality_may_match_every_public_row():
    found = relation("SELECT COUNT(*) FROM orders JOIN regions ON people > quantity")
    assert isinstance(found, Where)
    assert found.source.fanout == 3


def test_a_left_join_keeps_private_rows_from_either_side_of_the_word():
    left = relation("SELECT COUNT(*) FROM orders LEFT JOIN regions ON region = name")
    right = relation("SELECT COUNT(*) FROM regions RIGHT JOIN orders ON region = name")
    assert left == right
    assert left.kind is JoinKind.LEFT


def test_the_product_of_fanouts_is_capped_before_the_charge():
    class Wide:
        def fanout(self, table, columns):
            return 40

        columns, values = PUBLIC.columns, PUBLIC.values

    joins = "JOIN regions a ON a.name = o.region JOIN regions b ON b.name = o.region"
    text = refusal(f"SELECT COUNT(*) FROM orders o {joins}", SHOP, Wide())
    assert text.startswith("line 1, JOIN: joining regions could turn one private row into 1,600 rows")
    assert "1,000" in text
    assert "join_limit" in text


def test_private_tables_are_joined_on_the_complete_unit_key():
    found = relation("SELECT COUNT(*) FROM orders o JOIN visits v ON o.user = v.visitor AND o.category = v.category")
    assert isinstance(found, JoinOnUnit)
    assert found.max_rows_per_unit == 100
    assert "two private tables" in refusal("SELECT COUNT(*) FROM orders o JOIN visits v ON o.category = v.category")
    assert "two private tables" in refusal("SELECT COUNT(*) FROM orders, visits")


def test_half_of_a_units_key_is_not_the_unit():
    whole = "SELECT COUNT(*) FROM hits h JOIN logins l ON h.user_id = l.account AND date_trunc('day', h.at) = l.day"
    assert isinstance(relation(whole, WEBLOG), JoinOnUnit)
    for half in ("h.user_id = l.account", "h.at::date = l.day", "h.user_id = l.account AND h.at = l.day"):
        assert "whole privacy unit" in refusal(f"SELECT COUNT(*) FROM hits h JOIN logins l ON {half}", WEBLOG)


def test_other_windows_than_the_units_are_not_the_unit():
    for window in ("hour", "week", "month"):
        sql = f"SELECT COUNT(*) FROM (SELECT user_id, date_trunc('{window}', at) AS w FROM hits GROUP BY 1, 2) t"
        assert "within a time window" in refusal(sql, WEBLOG)


def test_a_childs_key_determines_the_owner():
    found = relation("SELECT COUNT(*) FROM labs l JOIN encounters e ON l.encounter = e.id", HOSPITAL)
    assert isinstance(found, JoinOnUnit)
    assert found.condition is not None
    assert "whole privacy unit" in refusal("SELECT COUNT(*) FROM labs l JOIN encounters e ON l.lab_id = e.id", HOSPITAL)


def test_grouping_by_a_childs_key_aggregates_per_unit():
    found = relation("SELECT COUNT(*) FROM (SELECT encounter FROM labs GROUP BY encounter) t", HOSPITAL)
    assert isinstance(found, PerUnit)


def test_the_unit_may_be_renamed_in_a_subquery():
    sql = (
        "WITH a AS (SELECT user AS x, paid FROM orders), b AS (SELECT x AS y, paid FROM a WHERE paid) "
        "SELECT COUNT(DISTINCT y) FROM b JOIN visits ON y = visitor"
    )
    assert isinstance(relation(sql), JoinOnUnit)


def test_a_computed_column_is_not_the_unit():
    for y in ("user + 0", "-user", "coalesce(user, 1)", "CASE WHEN paid THEN user ELSE 7 END"):
        sql = f"SELECT COUNT(*) FROM (SELECT {y} AS y FROM orders) a JOIN visits ON y = visitor"
        assert "two private tables" in refusal(sql)


def test_the_missing_side_of_an_outer_join_belongs_to_nobody():
    begin = "SELECT COUNT(*) FROM (SELECT v.visitor AS who FROM orders o LEFT JOIN visits v ON o.user = v.visitor) t"
    assert "two private tables" in refusal(f"{begin} JOIN orders b ON who = b.user")
    assert "would disclose who is in the data" in refusal(
        "SELECT AVG(n) FROM (SELECT v.visitor, COUNT(*) AS n FROM orders o LEFT JOIN visits v ON o.user = v.visitor "
        "GROUP BY v.visitor) t"
    )


def test_in_and_exists_on_the_unit_become_semi_joins():
    inside = relation("SELECT COUNT(*) FROM orders WHERE user IN (SELECT visitor FROM visits WHERE seconds > 9)")
    exists = relation(
        "SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM visits v WHERE o.user = v.visitor AND v.seconds > 9)"
    )
    assert isinstance(inside, SemiJoinOnUnit)
    assert inside == exists
    outside = relation("SELECT COUNT(*) FROM orders WHERE NOT (user IN (SELECT visitor FROM visits))")
    assert outside.kind is SemiJoinKind.ANTI


def test_semi_joins_nest():
    found = relation(
        "SELECT COUNT(*) FROM orders WHERE user IN (SELECT visitor FROM visits WHERE visitor NOT IN "
        "(SELECT user FROM orders WHERE paid))"
    )
    assert isinstance(found.other, SemiJoinOnUnit)


def test_row_level_units_are_never_joined_with_other_private_rows():
    for sql in (
        "SELECT COUNT(*) FROM readings a JOIN readings b ON a.station = b.station",
        "SELECT COUNT(*) FROM readings, readings b",
        "SELECT COUNT(*) FROM readings WHERE station IN (SELECT station FROM readings)",
        "SELECT COUNT(*) FROM readings a WHERE EXISTS (SELECT 1 FROM readings b WHERE b.station = a.station)",
        "SELECT COUNT(*) FROM (SELECT kwh FROM readings UNION ALL SELECT kwh FROM readings) t",
    ):
        assert "its own privacy unit" in refusal(sql, METER)


def test_grouping_by_the_unit_gives_one_row_per_unit():
    found = relation("SELECT COUNT(*) FROM (SELECT user FROM orders GROUP BY user) t")
    assert isinstance(found, PerUnit)
    assert found.shape.max_rows_per_unit == 1


def test_a_unit_with_several_keys_has_several_rows():
    found = relation("SELECT COUNT(*) FROM (SELECT user, city FROM orders GROUP BY user, city) t")
    assert [name for name, _ in found.keys] == ["k0"]
    assert found.shape.max_rows_per_unit is None


def test_the_unit_is_never_a_group_of_the_answer():
    assert "would disclose who is in the data" in refusal(
        "SELECT COUNT(*) FROM orders GROUP BY CASE WHEN paid THEN user END, category"
    )
    assert "single privacy unit" in refusal("SELECT user, COUNT(*) FROM orders GROUP BY user")
    assert "single privacy unit" in refusal("SELECT DISTINCT user FROM orders")


def test_tables_without_access_are_reported_like_missing_tables():
    with pytest.raises(Refused) as hidden:
        plan_query("SELECT COUNT(*) FROM visits", SHOP, PUBLIC, by="ana")
    with pytest.raises(Refused) as absent:
        plan_query("SELECT COUNT(*) FROM vizits", SHOP, PUBLIC, by="ana")
    assert str(hidden.value).replace("visits", "vizits") == str(absent.value)


def _rows(rng, people):
    orders = [
        {
            "user": rng.choice(people),
            "time": None,
            "amount": rng.choice([None, -5.0, 3.25, 499.0, 1e9]),
            "quantity": rng.choice([None, 1, 5, 99]),
            "discount": rng.random(),
            "rating": rng.choice([None, 1, 3, 9]),
            "category": rng.choice(["food", "books", "toys", "other", None]),
            "region": rng.choice(["north", "south", "nowhere"]),
            "city": rng.choice("xyz"),
            "paid": rng.choice([True, False, None]),
            "lat": rng.choice([None, 12.5, 95.0]),
            "weight": rng.choice([None, 1.0, 1e12]),
        }
        for _ in range(rng.randrange(40))
    ]
    visits = [
        {
            "visitor": rng.choice(people),
            "time": None,
            "page": rng.choice("pq"),
            "seconds": rng.choice([None, 0, 30, 99_999]),
            "category": rng.choice(["food", "toys"]),
        }
        for _ in range(rng.randrange(30))
    ]
    return {"orders": orders, "visits": visits}


REGIONS = [{"name": "north", "country": "A", "people": 9}, {"name": "south", "country": "A", "people": 4}]
PRICES = [{"category": "food", "price": 1.5, "year": 2024}, {"category": "food", "price": 2.0, "year": 2025}]
ASKED = """
SELECT category, COUNT(*), SUM(amount), AVG(amount), STDDEV(quantity), COUNT(DISTINCT user) FROM orders GROUP BY
    category;
SELECT city, COUNT(*), AVG(CLIP(weight, 0, 10)) FROM orders GROUP BY city;
SELECT r.country, p.year, COUNT(*) FROM orders o LEFT JOIN regions r ON o.region = r.name JOIN prices p USING
    (category) GROUP BY 1, 2;
SELECT o.city, COUNT(*), SUM(v.seconds) FROM orders o LEFT JOIN visits v ON o.user = v.visitor AND v.seconds > 5
    GROUP BY 1;
SELECT AVG(CLIP(n, 0, 9)), COUNT(*) FROM (SELECT user, COUNT(*) AS n FROM orders GROUP BY user HAVING
    MAX(amount) > 1) t;
SELECT category, SUM(CLIP(s, 0, 900)) FROM (SELECT user, category, SUM(amount) AS s FROM orders GROUP BY 1, 2) t
    GROUP BY 1;
SELECT COUNT(*) FROM orders WHERE user IN (SELECT visitor FROM visits) AND user NOT IN (SELECT user FROM orders
    WHERE paid);
SELECT city, COUNT(*), SUM(amount) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user ORDER BY amount DESC) AS n
    FROM orders) t WHERE n <= 2 GROUP BY city;
SELECT category, AVG(amount) FROM (SELECT * FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY user, city ORDER BY
    quantity) = 1) t GROUP BY category;
SELECT favourite, COUNT(*), SUM(last) FROM (SELECT user, MAX_BY(city, amount) AS favourite, ARG_MIN(quantity, amount)
    FILTER (WHERE paid) AS last FROM orders GROUP BY user) t GROUP BY favourite;
SELECT kind, COUNT(*) FROM (SELECT category AS kind FROM orders UNION ALL SELECT category FROM visits) t GROUP
    BY kind
""".strip().split(";\n")


@pytest.mark.parametrize("sql", ASKED)
@pytest.mark.parametrize("seed", range(4))
def test_without_a_unit_every_total_moves_by_no_more_than_its_sensitivity(sql, seed):
    rng = random.Random(seed)
    tables = _rows(rng, range(5)) | {"regions": REGIONS, "prices": PRICES}
    (part,) = plan_query(sql, SHOP, ReferenceEngine(tables), groups=2, rows=3).releases
    question = part.question
    for person in range(5):
        without = {
            name: [row for row in rows if person not in (row.get("user"), row.get("visitor"))]
            for name, rows in tables.items()
        }
        before, after = (ReferenceEngine(each).totals(question) for each in (tables, without))
        _check_moves(question, before, after)


def _check_moves(question, before, after):
    one, other = (dict(zip(found.keys, found.values.tolist(), strict=True)) for found in (before, after))
    zero = [0] * len(question.totals)
    for place, total in enumerate(question.totals):
        moves = [abs(one.get(key, zero)[place] - other.get(key, zero)[place]) for key in {*one, *other}]
        bound = question.sensitivity_of(total)
        assert sum(moves) <= bound.l1
        assert sum(move * move for move in moves) <= bound.l2_squared


ORDERS = [  # user, amount, category, city
    *((1, 5.0, "food", "a"), (1, 9.0, "toys", "b"), (1, 9.0, "books", None)),
    *((2, None, "food", "a"), (2, 1.0, "toys", "b")),
    *((3, -0.0, "toys", "c"), (3, 0.0, "books", "d")),
]


def totals(sql, **said):
    """Return the exact totals by group, on a few orders."""
    empty = dict.fromkeys(SHOP.tables["orders"].columns)
    rows = [dict(zip(("user", "amount", "category", "city"), each, strict=True)) for each in ORDERS]
    tables = {"orders": [empty | row for row in rows], "visits": [], "regions": REGIONS, "prices": PRICES}
    engine = ReferenceEngine(tables)
    (part,) = plan_query(sql, SHOP, engine, **said).releases
    found = engine.totals(part.question)
    return {key: values[-1] for key, values in zip(found.keys, found.values.tolist(), strict=True)}


@pytest.mark.parametrize(
    ("order", "first"),
    [
        ("amount", {"food": 1, "toys": 1, "books": 1}),  # of the zeros, that with the lesser category
        ("amount DESC", {"food": 1, "books": 2}),  # NULL comes first
        ("amount DESC NULLS LAST", {"books": 2, "toys": 1}),
        ("category", {"books": 2, "food": 1}),
        ("city NULLS FIRST, category", {"books": 1, "food": 1, "toys": 1}),
        ("city DESC NULLS LAST", {"toys": 2, "books": 1}),
        ("1", {"food": 1, "books": 1, "toys": 1}),
    ],
)
def test_the_first_row_of_each_unit_is_the_same_however_it_is_written(order, first):
    number = f"ROW_NUMBER() OVER (PARTITION BY user ORDER BY {order})"
    for inner in (
        f"(SELECT *, {number} AS n FROM orders) t WHERE n = 1",
        f"(SELECT *, {number} AS n FROM orders) t WHERE 2 > n",
        f"(SELECT * FROM orders QUALIFY {number} = 1) t",
        f"(SELECT category, {number} AS place FROM orders QUALIFY place <= 1) t",
        f"(SELECT * FROM orders QUALIFY ROW_NUMBER() OVER w = 1 WINDOW w AS (PARTITION BY user ORDER BY {order})) t",
    ):
        found = totals(f"SELECT category, COUNT(*) FROM {inner} GROUP BY category")
        assert {key: count for (key,), count in found.items() if count} == first, inner


@pytest.mark.parametrize(
    ("aggregate", "values"),
    [
        ("ARG_MAX(category, amount)", {"books": 2, "toys": 1}),  # of equal amounts, the least value
        ("MIN_BY(category, amount)", {"food": 1, "toys": 1, "books": 1}),
        ("ARG_MAX(category, city)", {"toys": 2, "books": 1}),  # rows whose city is NULL do not count
        ("ARG_MAX(category, amount) FILTER (WHERE amount < 9)", {"food": 1, "toys": 1, "books": 1}),
    ],
)
def test_the_value_of_the_first_row_of_each_unit(aggregate, values):
    inner = f"SELECT user, {aggregate} AS value, COUNT(*) AS n FROM orders GROUP BY user"
    found = totals(f"SELECT value, COUNT(*) FROM ({inner}) t GROUP BY value")
    assert {key: count for (key,), count in found.items() if count} == values


def test_a_unit_without_a_value_keeps_its_row():
    inner = "SELECT user, ARG_MAX(amount, city) FILTER (WHERE amount > 8) AS most FROM orders GROUP BY user"
    assert totals(f"SELECT COUNT(*) FROM ({inner}) t") == {(): 3}
    assert totals(f"SELECT COUNT(most) FROM ({inner}) t") == {(): 1}


@pytest.mark.parametrize(
    ("condition", "rows"),
    [("n = 1", 1), ("n <= 3", 3), ("n < 3", 2), ("n IN (2, 4)", 4), ("n BETWEEN 2 AND 5", 5), ("n > 1", None)],
)
def test_conditions_on_numbers_bound_the_rows_of_a_unit(condition, rows):
    numbered = "SELECT *, ROW_NUMBER() OVER (PARTITION BY user ORDER BY time) AS n FROM orders"
    for sql in (
        f"SELECT COUNT(*) FROM ({numbered}) t WHERE {condition}",
        f"WITH t AS ({numbered}), u AS (SELECT n AS n, amount * 2 AS a FROM t) SELECT SUM(a) FROM u WHERE {condition}",
    ):
        assert relation(sql).shape.max_rows_per_unit == rows
    joined = f"SELECT COUNT(*) FROM ({numbered}) t JOIN regions ON region = name WHERE {condition}"
    assert relation(joined).shape.max_rows_per_unit == rows


def test_a_number_that_is_computed_again_is_not_limited():
    numbered = "SELECT ROW_NUMBER() OVER (PARTITION BY user ORDER BY time) % 2 AS n FROM orders"
    assert relation(f"SELECT COUNT(*) FROM ({numbered}) t WHERE n = 1").shape.max_rows_per_unit is None
    united = "SELECT ROW_NUMBER() OVER (PARTITION BY user ORDER BY time) AS n FROM orders"
    both = f"SELECT COUNT(*) FROM ({united} UNION ALL SELECT quantity FROM orders) t WHERE n = 1"
    assert relation(both).shape.max_rows_per_unit is None


def test_a_limit_of_one_number_leaves_the_rows_that_another_number_counts():
    up, down = (f"ROW_NUMBER() OVER (PARTITION BY user ORDER BY amount{way})" for way in ("", " DESC"))
    alone = totals(f"SELECT COUNT(*) FROM (SELECT user FROM orders QUALIFY {up} = 1) t", rows=9)
    only = totals(f"SELECT COUNT(*) FROM (SELECT user FROM orders QUALIFY {up} = 1 AND {down} = 1) t", rows=9)
    nested = totals(
        f"SELECT COUNT(*) FROM (SELECT user, a, {down} AS b FROM (SELECT user, amount, {up} AS a FROM orders) s) t "
        "WHERE a = 1 AND b = 1",
        rows=9,
    )
    assert only == nested
    assert sum(only.values()) < sum(alone.values())


def test_numbers_of_rows_are_groups():
    numbered = "SELECT amount, ROW_NUMBER() OVER (PARTITION BY user ORDER BY amount) AS n FROM orders"
    found = totals(f"SELECT n, COUNT(*) FROM ({numbered}) t WHERE n <= 4 GROUP BY n", rows=9)
    assert {key: count >> 20 for key, count in found.items()} == {(1,): 3, (2,): 3, (3,): 1}  # weights are fractions


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT ROW_NUMBER() OVER (ORDER BY time) AS n FROM orders", "PARTITION BY orders.user"),
        ("SELECT ROW_NUMBER() OVER (PARTITION BY city) AS n FROM orders", "PARTITION BY orders.user"),
        ("SELECT ROW_NUMBER() OVER (PARTITION BY user + 0) AS n FROM orders", "PARTITION BY orders.user"),
        ("SELECT RANK() OVER (PARTITION BY user ORDER BY time) AS n FROM orders", "ROW_NUMBER"),
        ("SELECT SUM(amount) OVER (PARTITION BY user ORDER BY time) AS n FROM orders", "ROW_NUMBER"),
        ("SELECT 1 AS n FROM orders WHERE ROW_NUMBER() OVER (PARTITION BY user ORDER BY time) = 1", "ROW_NUMBER"),
        ("SELECT ROW_NUMBER() OVER w AS n FROM orders WINDOW w AS (PARTITION BY city)", "PARTITION BY orders.user"),
        ("SELECT ROW_NUMBER() OVER (PARTITION BY user ROWS 1 PRECEDING) AS n FROM orders", "PARTITION BY and ORDER BY"),
        ("SELECT 1 AS n FROM orders QUALIFY amount > 1", "QUALIFY needs a window function"),
        ("SELECT 1 AS n FROM orders QUALIFY RANK() OVER (PARTITION BY user ORDER BY time) = 1", "ROW_NUMBER"),
        ("SELECT user AS n FROM orders GROUP BY user QUALIFY ROW_NUMBER() OVER (PARTITION BY user) = 1", "ROW_NUMBER"),
        ("SELECT ARG_MAX(amount) AS n FROM orders GROUP BY user", "two expressions"),
        ("SELECT ARG_MAX(amount, time, 2) AS n FROM orders GROUP BY user", "two expressions"),
        ("SELECT ARG_MAX(amount, time) AS n FROM orders GROUP BY user, city", "PARTITION BY unit, key"),
    ],
)
def test_other_numbers_and_windows_are_refused_with_a_hint(sql, words):
    assert words in refusal(f"SELECT COUNT(n) FROM ({sql}) t")


def test_rows_that_are_units_are_not_numbered():
    table = next(name for name, table in METER.tables.items() if not table.public)
    inner = f"SELECT ROW_NUMBER() OVER () AS n FROM {table}"
    assert "every row is its own unit" in refusal(f"SELECT COUNT(n) FROM ({inner}) t", METER)
