"""Every relation that the reader makes keeps the property: each row belongs to one unit, and depends on it alone."""

import random

import pytest
from golden_policies import POLICIES, PUBLIC

from discreet.engines.reference.engine import ReferenceEngine
from discreet.kernel.errors import Refused
from discreet.kernel.relation import JoinKind, JoinOnUnit, JoinPublic, PerUnit, SemiJoinKind, SemiJoinOnUnit, Where
from discreet.query.passes import plan_query

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
