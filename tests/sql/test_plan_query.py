"""Reading a query: what it asks of the kernel means what the query means, and shares whatever can be shared."""

import logging
from datetime import datetime, timedelta
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from golden_policies import POLICIES, PUBLIC

from discreet import postprocess
from discreet.estimate.estimators import NumberKind
from discreet.estimate.planned_release import Mean, NoisyCount, NoisySum, Variance, assemble_table, release_schema
from discreet.kernel.errors import PolicyError, Refused
from discreet.kernel.expr import Call, Column, Type
from discreet.kernel.mechanism import Laplace
from discreet.kernel.question import PublicGroups, SelectedGroups
from discreet.kernel.relation import EachRow, ParentUnit, PublicTable, Scan, UnitKey
from discreet.kernel.totals import Count, CountUnits, SelectionWeight, Sum
from discreet.policy import Policy
from discreet.policy.catalog import scan_of
from discreet.query.passes import plan_query
from tests.reference.engine import ReferenceEngine

SHOP, HOSPITAL, WEBLOG, METER = (POLICIES[name] for name in ("SHOP", "HOSPITAL", "WEBLOG", "METER"))
MANY = 2_000  # limits that bind nobody


def shop(sql, **said):
    return plan_query(sql, SHOP, PUBLIC, **said)


def only(plan):
    (release,) = plan.releases
    return release


def orders():
    """Return orders of eight customers: every value is within its range, and every key appears."""
    start = datetime.fromisoformat("2025-01-01")
    return [
        {
            "user": i % 8,
            "time": start + timedelta(hours=37 * i),
            "amount": float(i * 7 % 500),
            "quantity": 1 + i % 10,
            "discount": i % 5 / 4,
            "rating": None if i % 6 == 5 else 1 + i % 6,
            "category": ("food", "books", "toys")[i * i % 3 if i % 2 else i % 3],
            "region": ("north", "south", "east")[i // 3 % 3],
            "city": f"city {i % 4}",
            "paid": i % 3 != 0,
            "lat": float(i % 90),
            "weight": i / 10,
        }
        for i in range(200)
    ]


def visits():
    start = datetime.fromisoformat("2025-02-01")
    return [
        {
            "visitor": 3 + i % 9,
            "time": start + timedelta(hours=11 * i),
            "page": f"/{i % 5}",
            "seconds": i * 13 % 3600,
            "category": ("food", "books", "toys")[i % 3],
        }
        for i in range(100)
    ]


PRIVATE = {"orders": orders(), "visits": visits()}
REGIONS = [
    {"name": name, "country": country, "people": people}
    for name, country, people in (("north", "A", 1200), ("south", "A", 3400), ("east", "B", 560))
]
PRICES = [
    {"category": category, "price": price, "year": year}
    for category, price, year in (("food", 1.5, 2024), ("food", 2.5, 2025), ("books", 12.0, 2024), ("toys", 30.0, 2025))
]
SHOP_TABLES = {"orders": orders(), "visits": visits(), "regions": REGIONS, "prices": PRICES}


def hospital():
    """Return a hospital of 30 encounters of 11 patients, with their tests and the flags of these."""
    start = datetime.fromisoformat("2016-05-01")
    encounters = [
        {
            "id": 100 + i,
            "patient_id": f"p{i * 7 % 11}",
            "admitted": start + timedelta(days=90 * i, hours=i),
            "discharged": None if i % 7 == 0 else start + timedelta(days=90 * i + i % 12),
            "icd": ("A00", "B01", "C02")[i % 3],
            "urgent": i % 4 == 0,
            "days": i % 12,
            "age": i * 5 % 120,
        }
        for i in range(30)
    ]
    labs = [
        {
            "lab_id": 1000 + i,
            "encounter": 100 + i * 3 % 30,
            "loinc": ("2345-7", "718-7")[i % 2],
            "value": float(i * 97 % 10_000),
            "taken": (start + timedelta(days=30 * i)).date(),
        }
        for i in range(90)
    ]
    flags = [{"lab_id": 1000 + i * 2 % 90, "flag": ("low", "high", "critical")[i % 3]} for i in range(60)]
    codes = [{"code": code, "chapter": chapter} for code, chapter in (("A00", 1), ("B01", 1), ("C02", 2))]
    return {"encounters": encounters, "labs": labs, "lab_flags": flags, "icd10": codes}


def weblog():
    start = datetime.fromisoformat("2026-01-01")
    hits = [
        {
            "user_id": f"u{i % 7}",
            "at": start + timedelta(hours=5 * i % 700),
            "status": (200, 404, 500)[i % 3],
            "bytes": i * 1_000_003 % 100_000_000,
            "mobile": i % 2 == 0,
            "path": f"/{i % 4}",
        }
        for i in range(150)
    ]
    logins = [{"account": f"u{i % 5}", "day": (start + timedelta(days=i * 2 % 30)).date()} for i in range(40)]
    return {"hits": hits, "logins": logins}


def meter():
    start = datetime.fromisoformat("2026-03-01")
    readings = [
        {"station": f"s{1 + i % 2}", "at": start + timedelta(hours=i), "kwh": i * 3 % 64 / 1, "phase": 1 + i % 3}
        for i in range(100)
    ]
    return {"readings": readings, "stations": [{"code": "s1", "area": "hill"}, {"code": "s2", "area": "coast"}]}


WORLDS = {
    "shop": (SHOP, SHOP_TABLES),
    "hospital": (HOSPITAL, hospital()),
    "weblog": (WEBLOG, weblog()),
    "meter": (METER, meter()),
}


def answered(world, sql):
    """Read a query, compute its totals by the reference, and leave out the noise: what its answer is about."""
    policy, tables = WORLDS[world]
    reference = ReferenceEngine(tables)
    plan = plan_query(sql, policy, reference, groups=MANY, rows=MANY)
    released = {}
    for part in plan.releases:
        keys, values = _found(part.question, reference.totals(part.question))
        noises = tuple(Laplace(1) for _ in part.question.totals)
        released[part.name], margins = assemble_table(part, keys, values, noises)
        assert released[part.name].schema == release_schema(part)
        assert set(margins) == {measure.name for measure in part.measures}
    return [tuple(row.values()) for row in postprocess.run(plan.postprocess, released).to_pylist()]


def _found(question, found):
    """Return the groups that the data has: what is listed besides holds zeros, and SQL does not show it."""
    return found.keys, np.asarray(found.values, np.int64).reshape(len(found.keys), len(question.totals))


def plainly(world, sql):
    with duckdb.connect() as connection:
        for name, rows in WORLDS[world][1].items():
            connection.register(name, pa.Table.from_pylist(rows))
        connection.sql("CREATE MACRO clip(x, low, high) AS least(greatest(x, low), high)")
        return connection.sql(sql).fetchall()


def in_order(rows):
    return sorted(rows, key=lambda row: [(each is None, str(type(each)), each) for each in row if not _is_real(each)])


def _is_real(value):
    return isinstance(value, float)


SHOP_SQL = """
SELECT COUNT(*), COUNT(rating), COUNT(DISTINCT user) FROM orders;
SELECT category, COUNT(*), SUM(amount), AVG(amount), STDDEV(amount), VAR_POP(amount) FROM orders GROUP BY
    category;
SELECT SUM(quantity), COUNT(quantity), AVG(rating), SUM(rating), COUNT(rating) FROM orders;
SELECT city, COUNT(DISTINCT user), AVG(quantity) FILTER (WHERE paid) FROM orders GROUP BY city;
SELECT rating, COUNT(*) FROM orders GROUP BY rating;
SELECT date_trunc('month', time), category, SUM(amount * quantity) FROM orders WHERE time >= '2025-03-01' GROUP
    BY 1, 2;
SELECT r.country, COUNT(*), SUM(r.people) FROM orders o JOIN regions r ON o.region = r.name GROUP BY r.country;
SELECT r.country, COUNT(*) FROM orders o, regions r WHERE o.region = r.name AND r.people > 1000 GROUP BY 1;
SELECT country, COUNT(*) FROM orders LEFT JOIN regions ON region = name AND people > 1000 GROUP BY country;
SELECT country, COUNT(*) FROM regions RIGHT JOIN orders ON region = name AND people > 1000 GROUP BY country;
SELECT category, AVG(price), COUNT(*) FROM orders JOIN prices USING (category) GROUP BY category;
SELECT COUNT(*) FROM orders o JOIN prices p ON o.amount > p.price;
SELECT year, COUNT(*) FROM orders CROSS JOIN prices GROUP BY year;
SELECT o.category, COUNT(*), AVG(v.seconds) FROM orders o JOIN visits v ON o.user = v.visitor AND v.time <
    o.time GROUP BY 1;
SELECT v.category, COUNT(*) FROM orders o LEFT JOIN visits v ON v.visitor = o.user AND v.seconds > 600 GROUP BY
    1;
SELECT o.paid, COUNT(*) FROM visits v RIGHT JOIN orders o ON v.visitor = o.user AND o.paid GROUP BY 1;
SELECT COUNT(*) FROM orders a JOIN orders b ON a.user = b.user AND a.time < b.time AND a.category = b.category;
SELECT COUNT(*), SUM(amount) FROM orders WHERE user IN (SELECT visitor FROM visits WHERE page = '/1');
SELECT COUNT(*) FROM orders WHERE user NOT IN (SELECT visitor FROM visits);
SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM visits v WHERE v.visitor = o.user AND v.seconds >
    1200);
SELECT COUNT(*) FROM orders o WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.visitor = o.user) AND paid;
SELECT SUM(amount) FROM orders WHERE user IN (SELECT user FROM orders WHERE paid GROUP BY user HAVING COUNT(*) >
    16);
SELECT COUNT(*) FROM orders WHERE region IN (SELECT name FROM regions);
SELECT AVG(clip(n, 0, 50)), COUNT(*) FROM (SELECT user, COUNT(*) AS n FROM orders GROUP BY user) t;
SELECT n, COUNT(*) FROM (SELECT user, COUNT(*) AS n FROM orders WHERE paid GROUP BY user) t WHERE n < 30 GROUP
    BY n;
SELECT AVG(m), AVG(l), AVG(d), COUNT(*) FILTER (WHERE f), AVG(clip(s, 0, 20000)), AVG(a) FROM (SELECT user,
    MAX(amount) m, MIN(quantity) l, COUNT(DISTINCT category) d, BOOL_AND(paid) f, SUM(amount) s, AVG(amount) a FROM
    orders GROUP BY user HAVING COUNT(*) > 3) t;
SELECT category, AVG(clip(n, 0, 30)), COUNT(*) FROM (SELECT user, category, COUNT(*) AS n FROM orders GROUP BY
    user, category) t GROUP BY category;
SELECT COUNT(*) FROM (SELECT DISTINCT user, city FROM orders) t;
SELECT kind, COUNT(*), COUNT(DISTINCT who) FROM (SELECT user AS who, 'order' AS kind FROM orders UNION ALL
    SELECT visitor, 'visit' FROM visits) t GROUP BY kind;
WITH b AS (SELECT user AS who, COUNT(*) AS n FROM orders GROUP BY user) SELECT COUNT(*), AVG(seconds) FROM
    visits JOIN b ON visitor = who WHERE n > 20;
WITH a AS (SELECT category, COUNT(*) AS n FROM orders GROUP BY category), b AS (SELECT category, COUNT(*) AS n
    FROM visits GROUP BY category) SELECT a.category, a.n, b.n FROM a JOIN b ON a.category = b.category WHERE a.n >
    3;
SELECT category, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS total FROM orders GROUP BY category HAVING COUNT(*) >
    60;
SELECT (SELECT COUNT(*) FROM orders WHERE paid), (SELECT COUNT(*) FROM orders);
SELECT MAX(n) FROM (SELECT city, COUNT(*) AS n FROM orders GROUP BY city) t;
SELECT size, COUNT(*), AVG(net) FROM (SELECT amount * (1 - discount) AS net, CASE WHEN quantity > 5 THEN 'many'
    ELSE 'few' END AS size FROM orders) t GROUP BY size;
SELECT COUNT(CASE WHEN paid THEN 1 END), COUNT(DISTINCT CASE WHEN paid THEN user END), SUM(CASE WHEN paid THEN 1
    ELSE 0 END) FROM orders;
SELECT 'all' AS what, COUNT(*) AS n FROM orders UNION ALL SELECT 'paid', COUNT(*) FROM orders WHERE paid;
SELECT paid, COUNT(*) FROM orders WHERE category = 'food' OR (amount BETWEEN 10 AND 90 AND city LIKE '%1') GROUP
    BY paid
"""


HOSPITAL_SQL = """
SELECT loinc, COUNT(*), AVG(value) FROM labs GROUP BY loinc;
SELECT e.urgent, AVG(l.value), COUNT(DISTINCT e.patient_id) FROM labs l JOIN encounters e ON e.id = l.encounter
    GROUP BY 1;
SELECT f.flag, l.loinc, COUNT(*) FROM lab_flags f JOIN labs l USING (lab_id) GROUP BY 1, 2;
SELECT e.icd, COUNT(*) FILTER (WHERE f.flag = 'critical') FROM lab_flags f JOIN labs l ON f.lab_id = l.lab_id
    JOIN encounters e ON l.encounter = e.id GROUP BY 1;
SELECT COUNT(*) FROM labs a JOIN labs b ON a.encounter = b.encounter AND a.taken < b.taken;
SELECT AVG(clip(n, 0, 30)), COUNT(*) FROM (SELECT encounter, COUNT(*) AS n FROM labs GROUP BY encounter) t;
SELECT COUNT(*) FILTER (WHERE worst > 5000), COUNT(*) FROM (SELECT e.patient_id, MAX(l.value) AS worst FROM labs
    l JOIN encounters e ON l.encounter = e.id GROUP BY e.patient_id) t;
SELECT chapter, COUNT(*), AVG(days) FROM encounters JOIN icd10 ON icd = code GROUP BY chapter;
SELECT date_trunc('year', discharged), COUNT(*) FROM encounters GROUP BY 1;
SELECT AVG(clip(discharged::date - admitted::date, 0, 60)) FROM encounters WHERE discharged IS NOT NULL;
SELECT COUNT(DISTINCT patient_id) FROM encounters WHERE patient_id IN (SELECT e.patient_id FROM labs l JOIN
    encounters e ON l.encounter = e.id WHERE l.value > 8000)
"""
WEBLOG_SQL = """
SELECT "at"::date, COUNT(*) FROM hits GROUP BY 1;
SELECT extract(hour FROM "at"), status, COUNT(*) FROM hits GROUP BY 1, 2;
SELECT COUNT(DISTINCT (user_id, "at"::date)), COUNT(DISTINCT (user_id, "at"::date)) FILTER (WHERE mobile) FROM
    hits;
SELECT AVG(clip(n, 0, 100)), COUNT(*) FROM (SELECT user_id, date_trunc('day', "at") AS d, COUNT(*) AS n FROM
    hits GROUP BY 1, 2) t;
SELECT d, AVG(clip(n, 0, 100)) FROM (SELECT user_id, "at"::date AS d, COUNT(*) AS n FROM hits GROUP BY 1, 2) t
    GROUP BY d;
SELECT status, COUNT(*) FROM hits h JOIN logins l ON h.user_id = l.account AND h."at"::date = l.day GROUP BY
    status;
SELECT COUNT(*) FROM hits WHERE (user_id, "at"::date) IN (SELECT account, day FROM logins);
SELECT COUNT(*) FROM hits h WHERE NOT EXISTS (SELECT 1 FROM logins l WHERE l.account = h.user_id AND l.day =
    h."at"::date);
SELECT AVG(bytes), STDDEV_POP(bytes) FROM hits WHERE status = 200
"""
METER_SQL = """
SELECT station, COUNT(*), AVG(kwh), VAR_SAMP(kwh) FROM readings GROUP BY station;
SELECT area, SUM(kwh) FROM readings JOIN stations ON station = code GROUP BY area;
SELECT s.area, COUNT(*) FROM readings r JOIN stations s ON r.station <> s.code GROUP BY s.area;
SELECT AVG(m) FROM (SELECT station, AVG(kwh) AS m FROM readings GROUP BY station) t
"""
SAME = [
    (world, sql)
    for world, queries in (("shop", SHOP_SQL), ("hospital", HOSPITAL_SQL), ("weblog", WEBLOG_SQL), ("meter", METER_SQL))
    for sql in queries.strip().split(";\n")
]


@pytest.mark.parametrize(("world", "sql"), SAME)
def test_without_noise_and_bounds_the_answer_equals_plain_sql(world, sql):
    found, wanted = in_order(answered(world, sql)), in_order(plainly(world, sql))
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        for mine, other in zip(ours, theirs, strict=True):
            assert mine == (pytest.approx(other, rel=1e-3, abs=1e-3) if _is_real(mine) else other)


def test_a_mean_and_a_sum_of_one_column_are_made_of_one_sum_and_one_count():
    part = only(shop("SELECT SUM(amount), AVG(amount), COUNT(amount) FROM orders"))
    total, count = part.question.totals
    assert isinstance(total, Sum)
    assert count == Count(Column("amount", Type.REAL))
    kinds = [measure.estimator for measure in part.measures]
    assert kinds == [NoisySum(0, NumberKind.REAL, 1), Mean(0, 1, Fraction(0), Fraction(500)), NoisyCount(1)]


def test_a_centred_sum_is_used_only_where_it_is_more_accurate():
    centred = only(shop("SELECT SUM(lat), COUNT(lat) FROM orders"))
    assert [measure.estimator for measure in centred.measures] == [NoisySum(0, NumberKind.REAL), NoisyCount(1)]
    beside = only(shop("SELECT SUM(quantity), COUNT(quantity) FROM orders"))
    assert beside.measures[0].estimator == NoisySum(0, NumberKind.WHOLE, 1)
    sql = "SELECT category, SUM(quantity), COUNT(quantity) FROM orders GROUP BY category"
    apart = only(shop(sql))  # over several groups each is clipped in a ball of its own
    assert apart.measures[0].estimator == NoisySum(0, NumberKind.WHOLE)
    alone = only(shop("SELECT SUM(quantity), COUNT(*) FROM orders"))
    assert alone.measures[0].estimator == NoisySum(0, NumberKind.WHOLE)


def test_a_count_used_only_as_a_divisor_gets_a_quarter_of_the_weight():
    assert only(shop("SELECT AVG(amount) FROM orders")).weights == (1, Fraction(1, 4))
    assert only(shop("SELECT AVG(amount), COUNT(amount) FROM orders")).weights == (1, Fraction(5, 4))


def test_a_sum_of_zeros_and_ones_has_the_sensitivity_of_a_count():
    part = only(shop("SELECT SUM(CASE WHEN paid THEN 1 ELSE 0 END), COUNT(*) FILTER (WHERE paid) FROM orders"))
    one, other = (part.question.sensitivity_of(total) for total in part.question.totals)
    assert one == other


def test_an_average_of_zeros_and_ones_is_centred_exactly():
    total = only(shop("SELECT AVG(CASE WHEN paid THEN 1 ELSE 0 END) FROM orders")).question.totals[0]
    assert (total.grid.step, total.grid.first, total.grid.last) == (Fraction(1, 2), -1, 1)


def test_the_four_variances_and_the_mean_share_three_totals():
    sql = "SELECT VAR_POP(amount), VARIANCE(amount), STDDEV_POP(amount), STDDEV(amount), AVG(amount) FROM orders"
    part = only(shop(sql))
    squares = next(total for total in part.question.totals if isinstance(total, Sum) and total.power == 2)
    assert len(part.question.totals) == 3
    assert abs(squares.grid.max_abs_index**2 - 2 * squares.shift) <= 1
    assert 2**11 <= squares.grid.max_abs_index <= 2**12 + 1
    assert all(isinstance(measure.estimator, Variance) for measure in part.measures[:4])


def test_grids_become_coarser_until_sums_fit():
    wide = "SELECT VAR_POP(seconds) FROM visits a"
    joined = f"{wide} JOIN orders b ON a.visitor = b.user"
    fine, coarse = (only(shop(sql)).question.totals[2].grid.step for sql in (wide, joined))
    assert coarse > fine


def test_partition_selection_weighs_keys_first():
    part = only(shop("SELECT city, AVG(amount) FROM orders GROUP BY city"))
    assert part.question.groups == SelectedGroups(160)  # 32 times the bound on groups
    assert part.question.totals[0] == SelectionWeight()
    assert part.weights[0] == 1
    for groups, most in ((1, 32), (40, 1024), (2000, 2000)):
        assert only(shop("SELECT DISTINCT city FROM orders", groups=groups)).question.groups.max_groups == most


def test_a_count_of_units_is_its_own_total_unless_each_has_one_key():
    several = only(shop('SELECT city, COUNT(DISTINCT "user") FROM orders GROUP BY city')).question
    assert several.totals == (SelectionWeight(), CountUnits())
    per_unit = 'SELECT "user", MIN(city) AS home FROM orders GROUP BY "user"'
    one = only(shop(f'SELECT home, COUNT(DISTINCT "user") FROM ({per_unit}) AS u GROUP BY home'))
    assert one.question.groups == SelectedGroups(1)
    assert one.question.totals == (SelectionWeight(),)
    assert one.weights == (2,)


@pytest.mark.parametrize(
    ("by", "note"),
    [
        ("category", "Rows are left out where category is NULL or not declared."),
        ("region", "Rows are left out where region is NULL or not declared."),
        ("paid", "Rows are left out where paid is NULL."),
        ("city", "Rows are left out where city is NULL."),
        ("rating", "Rows are left out where rating is not declared."),  # NULL is a group
        ("quantity", "Rows are left out where quantity is NULL or outside its range."),
        ("quantity / 5", "Rows are left out where the key from quantity is NULL or outside its range."),
        ("DATE_TRUNC('month', time)", "Rows are left out where the key from time is NULL or outside its range."),
        ("EXTRACT(month FROM time)", "Rows are left out where the key from time is NULL."),  # all twelve are groups
        ("FLOOR(lat)", "Rows are left out where the key from lat is NULL."),  # as are values outside the range
        ("CASE WHEN amount < 30 THEN 'cheap' ELSE 'dear' END", ""),
        ("CASE WHEN category = 'food' THEN 'food' ELSE 'other' END", ""),
        ("COALESCE(city, 'none')", ""),
        ("category, paid", "Rows are left out where category is NULL or not declared, or paid is NULL."),
        ("LOWER(category)", "Rows are left out where the key from category is NULL or not declared."),
    ],
)
def test_the_answer_says_which_keys_form_no_group(by, note):
    """From the query and the policy alone: the sentence is there whether or not there is such a row."""
    assert only(shop(f"SELECT COUNT(*) FROM orders GROUP BY {by}")).left_out == note


def test_declared_keys_are_listed_in_the_order_of_the_policy():
    part = only(shop("SELECT category, paid, COUNT(*) FROM orders GROUP BY category, paid"))
    assert part.question.groups == PublicGroups((("food", "books", "toys"), (False, True)))


def test_a_million_keys_are_too_many_to_list():
    sql = "SELECT date_trunc('hour', time), quantity, category, region, rating, COUNT(*) FROM orders GROUP BY ALL"
    assert isinstance(only(shop(sql)).question.groups, SelectedGroups)


def test_equal_releases_are_one_whatever_their_columns_are_called():
    plan = shop("SELECT (SELECT COUNT(*) AS a FROM orders), (SELECT COUNT(*) AS b FROM orders o)")
    assert len(plan.releases) == 1


def test_contribution_bounds_come_from_the_call_then_the_query_then_the_policy():
    text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_contributed=7) COUNT(*) FROM orders"
    assert only(shop("SELECT COUNT(*) FROM orders")).question.bounds.rows == 20
    assert only(shop(text)).question.bounds.rows == 7
    assert only(shop(text, rows=3)).question.bounds.rows == 3


def test_a_unit_is_in_one_group_only_if_the_key_is_part_of_the_unit():
    daily = plan_query("SELECT at::date, COUNT(*) FROM hits GROUP BY 1", WEBLOG, PUBLIC)
    hourly = plan_query("SELECT extract(hour FROM at), COUNT(*) FROM hits GROUP BY 1", WEBLOG, PUBLIC)
    assert only(daily).question.bounds.groups == 1
    assert only(hourly).question.bounds.groups == 10


def test_a_condition_on_a_column_narrows_its_range_and_its_groups():
    part = only(shop("SELECT category, AVG(amount) FROM orders WHERE amount > 100 AND category <> 'toys' GROUP BY 1"))
    assert part.question.groups == PublicGroups((("food", "books"),))
    assert part.measures[0].estimator == Mean(0, 1, Fraction(100), Fraction(500))


def test_two_ends_from_a_condition_and_an_expression_are_a_range():
    (total,) = only(shop("SELECT SUM(LEAST(weight, 10)) FROM orders WHERE weight >= 2")).question.totals
    assert (total.grid.low, total.grid.high) == (2, 10)
    with pytest.raises(Refused, match="needs bounds"):
        shop("SELECT SUM(weight) FROM orders WHERE weight >= 2")


def test_a_condition_that_leaves_nothing_changes_no_range():
    part = only(shop("SELECT AVG(amount) FROM orders WHERE amount > 1000"))
    assert part.measures[0].estimator == Mean(0, 1, Fraction(0), Fraction(500))


def test_unneeded_columns_are_not_carried_into_a_join():
    part = only(shop("SELECT COUNT(*) FROM orders o JOIN visits v ON o.user = v.visitor AND o.paid"))
    assert set(part.question.relation.source.left.shape.schema) == {"paid"}


def test_every_scan_is_the_registered_one():
    for policy, sql in (
        (SHOP, "SELECT COUNT(*) FROM orders o JOIN visits v ON o.user = v.visitor JOIN regions ON region = name"),
        (HOSPITAL, "SELECT COUNT(*) FROM lab_flags JOIN labs USING (lab_id)"),
        (WEBLOG, "SELECT COUNT(*) FROM hits"),
        (METER, "SELECT COUNT(*) FROM readings"),
    ):
        for part in plan_query(sql, policy, PUBLIC, groups=1, rows=1).releases:
            for table in part.question.relation.shape.tables:
                assert isinstance(table, PublicTable) or table == scan_of(policy, table.table)


def test_a_scan_names_its_owner_as_the_policy_does():
    assert scan_of(METER, "readings").owner == EachRow()
    assert scan_of(HOSPITAL, "encounters").owner == UnitKey((Column("patient_id", Type.TEXT),))
    labs = scan_of(HOSPITAL, "labs")
    assert labs.owner == ParentUnit("encounter", scan_of(HOSPITAL, "encounters"), "id")
    at, day = Column("at", Type.TIMESTAMP), Column("day", Type.DATE)
    assert scan_of(WEBLOG, "hits").owner == UnitKey((Column("user_id", Type.TEXT), Call("trunc_day", (at,))))
    moment = Call("to_timestamp", (day,))
    assert scan_of(WEBLOG, "logins").owner == UnitKey((Column("account", Type.TEXT), Call("trunc_day", (moment,))))
    assert scan_of(WEBLOG, "hits").max_rows == 2**36
    assert isinstance(labs, Scan)


def test_public_tables_are_read_only_when_a_query_needs_them():
    class Silent:
        def __getattr__(self, name):
            raise AssertionError(name)

    assert plan_query("SELECT category, COUNT(*) FROM orders GROUP BY category", SHOP, Silent()).releases


def test_a_reference_to_a_column_that_is_not_there_is_the_owners_mistake():
    policy = Policy.from_dict(
        {
            "data": {"name": "d"},
            "budget": {"epsilon": 1},
            "tables": {
                "t": {
                    "source": "t.csv",
                    "unit": "u",
                    "groups": 1,
                    "rows": 1,
                    "columns": {"u": {"type": "integer"}, "k": {"type": "text", "references": "prices.nothing"}},
                },
                "prices": {"source": "p.csv", "public": True},
            },
        }
    )
    with pytest.raises(PolicyError, match="nothing"):
        plan_query("SELECT k, COUNT(*) FROM t GROUP BY k", policy, PUBLIC)


def test_an_internal_error_while_planning_is_a_refusal_and_is_logged(caplog):
    class Broken:
        def fanout(self, table, columns):
            raise RuntimeError("a value of the data")

    with caplog.at_level(logging.ERROR, "discreet"), pytest.raises(Refused, match="not supported") as refusal:
        plan_query("SELECT COUNT(*) FROM orders JOIN regions ON region = name", SHOP, Broken())
    assert "a value of the data" not in str(refusal.value)
    assert "a value of the data" in caplog.text


def test_margins_are_given_for_every_measure_and_group():
    part = only(shop("SELECT category, COUNT(*), AVG(amount), STDDEV(amount) FROM orders GROUP BY category"))
    noisy = np.array([[100, 500_000, 90, 10**6], [5, 1000, 4, 10**4], [0, 0, 0, 0]], np.int64)
    table, margins = assemble_table(
        part, [("food",), ("books",), ("toys",)], noisy, tuple(Laplace(2) for _ in range(4))
    )
    assert table.column("k0").to_pylist() == ["food", "books", "toys"]
    assert table.column("m0").to_pylist() == [100, 5, 0]
    assert table.column("m1").to_pylist()[2] is None
    assert {name: len(each.margins) for name, each in margins.items()} == {"m0": 3, "m1": 3, "m2": 3}
    assert (margins["m0"].margins > 0).all()


def test_names_of_the_result_are_those_of_the_select_list():
    plan = shop('SELECT COUNT(*), COUNT(*), AVG(amount) AS "Mean Amount", SUM(quantity) AS Total FROM orders')
    assert list(plan.postprocess.names) == ["count", "count_1", "Mean Amount", "Total"]


def test_the_unit_of_a_date_difference_comes_first_or_last():
    """A column, a constant and a text at its end, and lower or upper case."""
    wanted = only(shop("SELECT COUNT(DATEDIFF(DATE '2025-12-31', time, MONTH)) AS n FROM orders")).question
    for sql in ("DATE_DIFF('month', time, DATE '2025-12-31')", "DATEDIFF('MONTH', time, '2025-12-31')"):
        assert only(shop(f"SELECT COUNT({sql}) AS n FROM orders")).question == wanted
    assert only(shop("SELECT COUNT(DATE_DIFF('day', time, TIME)) AS n FROM orders")).question.totals
    day = "(SELECT user, time AS day, time FROM orders) AS o"  # a column with the name of a unit
    assert only(shop(f"SELECT COUNT(DATE_DIFF('year', time, day)) AS n FROM {day}")).question.totals
    with pytest.raises(Refused, match="DATE_DIFF takes a constant unit"):
        shop("SELECT COUNT(DATE_DIFF('fortnight', time, time)) AS n FROM orders")


def test_all_columns_of_a_table_are_no_value():
    for sql in (
        "SELECT COUNT(o.*) AS n FROM orders o",
        "SELECT SUM(s.*) AS n FROM (SELECT region, COUNT(*) AS n FROM orders GROUP BY region) AS s",
    ):
        with pytest.raises(Refused, match=r"is not a value\. Name a column"):
            shop(sql)


def test_using_in_a_subquery_finds_its_own_columns_first():
    """The outer query has a column of this name, and the left source of the join has none."""
    sql = """
        SELECT COUNT(*) AS n FROM orders
        WHERE user IN (SELECT p.user FROM regions AS i JOIN orders AS p USING (user))
    """
    with pytest.raises(Refused, match="USING"):
        shop(sql)
