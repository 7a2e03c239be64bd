"""Expressions on single rows: what is understood, what it means, and what is refused."""

import re
from datetime import date, datetime
from fractions import Fraction
from itertools import product

import pytest
import sqlglot
from sqlglot import exp

from discreet.engines.reference.evaluate import evaluate
from discreet.kernel.errors import Refused
from discreet.kernel.expr import Column, Constant, Type, check_value
from discreet.query.expressions.binder import bind_expr
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.syntax.parse import _parse_tokens, tokenise

at = datetime.fromisoformat

COLUMNS = {
    "i": BoundExpr(Column("i", Type.INTEGER), Fraction(-5), Fraction(120), Fraction(1)),
    "j": BoundExpr(Column("j", Type.INTEGER), Fraction(1), Fraction(10), Fraction(1)),
    "k": BoundExpr(Column("k", Type.INTEGER)),
    "x": BoundExpr(Column("x", Type.REAL), Fraction(0), Fraction(100), Fraction(1, 100)),
    "y": BoundExpr(Column("y", Type.REAL)),
    "b": BoundExpr(Column("b", Type.BOOLEAN)),
    "c": BoundExpr(Column("c", Type.BOOLEAN)),
    "t": BoundExpr(Column("t", Type.TEXT)),
    "u": BoundExpr(Column("u", Type.TEXT), domain=("food", "shop"), unit_key_index=0),
    "d": BoundExpr(Column("d", Type.DATE), date(2010, 1, 1), date(2010, 12, 31)),
    "e": BoundExpr(Column("e", Type.DATE)),
    "s": BoundExpr(Column("s", Type.TIMESTAMP), at("2010-01-01"), at("2010-12-31 23:59:59")),
    "r": BoundExpr(Column("r", Type.TIMESTAMP)),
}


def parsed(text):
    text = f"SELECT {text}"
    return _parse_tokens(text, tokenise(text)).selects[0]


def column(node):
    return COLUMNS[node.name]


def bound(text, clause="WHERE"):
    return bind_expr(parsed(text), column, clause)


def shown(expr):
    if isinstance(expr, Column):
        return expr.name
    if isinstance(expr, Constant):
        return str(expr.value) if isinstance(expr.value, date) else repr(expr.value)
    return f"{expr.op}({', '.join(map(shown, expr.args))})"


def value(text):
    found = bound(text).expr
    assert isinstance(found, Constant), shown(found)
    return found.value


def cases(table):
    """Read a table of a query's words and what they become, one pair a line."""
    pairs = [re.split(r"\s+=>\s+", line.strip()) for line in table.strip().splitlines()]
    return pytest.mark.parametrize(("text", "expected"), pairs, ids=[pair[0] for pair in pairs])


@cases(r"""
    i = j                             => equal(i, j)
    i <> j                            => not(equal(i, j))
    i != j                            => not(equal(i, j))
    i < j                             => less(i, j)
    i <= j                            => at_most(i, j)
    i > j                             => less(j, i)
    i >= j                            => at_most(j, i)
    i = x                             => equal(to_real(i), x)
    i = 1.5                           => equal(to_real(i), 1.5)
    i > '5'                           => less(5, i)
    x > '5.5'                         => less(5.5, x)
    b = 'yes'                         => equal(b, True)
    t = 'x'                           => equal(t, 'x')
    i = NULL                          => equal(i, None)
    d >= '2010-01-01'                 => at_most(2010-01-01, d)
    d >= '2010-1-5'                   => at_most(2010-01-05, d)
    d = '2010-01-01 00:00:00'         => equal(d, 2010-01-01)
    s >= '2010-01-01'                 => at_most(2010-01-01 00:00:00, s)
    s >= '2010-01-01 12:30'           => at_most(2010-01-01 12:30:00, s)
    s < '2010-01-01T12:30:15.25'      => less(s, 2010-01-01 12:30:15.250000)
    s >= DATE '2010-01-01'            => at_most(2010-01-01 00:00:00, s)
    s < TIMESTAMP '2010-01-01 1:02'   => less(s, 2010-01-01 01:02:00)
    d < s                             => less(to_timestamp(d), s)
    '2010-01-01'::date < d            => less(2010-01-01, d)
    i BETWEEN 1 AND 5                 => and(at_most(1, i), at_most(i, 5))
    i NOT BETWEEN 1 AND 5             => not(and(at_most(1, i), at_most(i, 5)))
    i BETWEEN 1 AND 5.5               => and(at_most(1.0, to_real(i)), at_most(to_real(i), 5.5))
    s BETWEEN '2010-01-01' AND d      => and(at_most(2010-01-01 00:00:00, s), at_most(s, to_timestamp(d)))
    i IN (1, 2)                       => one_of(i, 1, 2)
    i IN ((1), -2)                    => one_of(i, 1, -2)
    i NOT IN (1, 2)                   => not(one_of(i, 1, 2))
    i IN (1, NULL)                    => or(one_of(i, 1), None)
    i NOT IN (1, NULL)                => not(or(one_of(i, 1), None))
    i IN (NULL)                       => None
    i IN (1, j)                       => or(one_of(i, 1), equal(i, j))
    i IN (j)                          => equal(i, j)
    i IN (1, 2.5)                     => one_of(to_real(i), 1.0, 2.5)
    t IN ('a', 'b')                   => one_of(t, 'a', 'b')
    d IN ('2010-01-01')               => one_of(d, 2010-01-01)
    i IS NULL                         => is_null(i)
    i IS NOT NULL                     => not(is_null(i))
    i ISNULL                          => is_null(i)
    b IS UNKNOWN                      => is_null(b)
    b IS TRUE                         => coalesce(b, False)
    b IS NOT TRUE                     => not(coalesce(b, False))
    b IS FALSE                        => coalesce(not(b), False)
    b IS NOT FALSE                    => not(coalesce(not(b), False))
    i IS NOT DISTINCT FROM j          => coalesce(equal(i, j), and(is_null(i), is_null(j)))
    i IS DISTINCT FROM j              => not(coalesce(equal(i, j), and(is_null(i), is_null(j))))
""")
def test_constants_are_coerced_to_the_type_they_are_compared_with(text, expected):
    assert shown(bound(text).expr) == expected
    assert bound(text).type is Type.BOOLEAN


@cases(r"""
    b                                 => b
    (b)                               => b
    NOT b                             => not(b)
    b AND c                           => and(b, c)
    b AND c AND NOT b                 => and(b, c, not(b))
    b AND (c AND b)                   => and(b, and(c, b))
    b OR c OR TRUE                    => or(b, c, True)
    b AND c OR b                      => or(and(b, c), b)
    b AND 'f'                         => and(b, False)
    b OR NULL                         => or(b, None)
    CASE WHEN b THEN 1 ELSE 2 END     => case(b, 1, 2)
    CASE WHEN b THEN 1 END            => case(b, 1, None)
    CASE WHEN b THEN 1 ELSE 2.5 END   => case(b, 1.0, 2.5)
    CASE WHEN b THEN i ELSE x END     => case(b, to_real(i), x)
    CASE WHEN b THEN NULL END         => case(b, None, None)
    CASE WHEN b THEN 'x' ELSE t END   => case(b, 'x', t)
    CASE WHEN b THEN d ELSE '2010-01-01' END => case(b, d, 2010-01-01)
    CASE WHEN NULL THEN i ELSE j END  => case(None, i, j)
    CASE i WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE 'c' END => case(equal(i, 1), 'a', equal(i, 2), 'b', 'c')
    CASE d WHEN '2010-01-01' THEN 1 END => case(equal(d, 2010-01-01), 1, None)
    CASE WHEN b THEN 1 WHEN c THEN 2 END => case(b, 1, c, 2, None)
    IF(b, 1, 2)                       => case(b, 1, 2)
    COALESCE(i, 0)                    => coalesce(i, 0)
    COALESCE(i, x, 1)                 => coalesce(to_real(i), x, 1.0)
    COALESCE(t, 'none')               => coalesce(t, 'none')
    COALESCE(i)                       => i
    IFNULL(i, j)                      => coalesce(i, j)
    NULLIF(i, 0)                      => nullif(i, 0)
    NULLIF(t, '')                     => nullif(t, '')
    LEAST(i, j, 5)                    => least(i, j, 5)
    GREATEST(x, 1)                    => greatest(x, 1.0)
    GREATEST(i)                       => i
    CLIP(y, 0, 10)                    => clip(y, 0.0, 10.0)
    CLIP(k, -10 * 2, 3 + 4)           => clip(k, -20, 7)
    clip(i, 0.5, 10)                  => clip(to_real(i), 0.5, 10.0)
    CLIP(d, '2010-01-01', '2010-06-30') => clip(d, 2010-01-01, 2010-06-30)
""")
def test_conditions_and_choices(text, expected):
    assert shown(bound(text).expr) == expected


@cases(r"""
    i + j                             => add(i, j)
    i - j                             => subtract(i, j)
    i * j                             => multiply(i, j)
    i / j                             => divide(i, j)
    i % j                             => modulo(i, j)
    MOD(i, 3)                         => modulo(i, 3)
    i + x                             => add(to_real(i), x)
    i / 2.0                           => divide(to_real(i), 2.0)
    -i                                => negate(i)
    +i                                => i
    i + '2'                           => add(i, 2)
    ABS(i)                            => abs(i)
    ABS(x)                            => abs(x)
    SIGN(x)                           => sign(x)
    FLOOR(x)                          => floor(x)
    FLOOR(i)                          => floor(to_real(i))
    CEIL(x)                           => ceil(x)
    CEILING(x)                        => ceil(x)
    ROUND(x)                          => round(x, 0)
    ROUND(x, 2)                       => round(x, 2)
    ROUND(x, -1)                      => round(x, -1)
    TRUNC(x)                          => case(less(x, 0.0), ceil(x), floor(x))
    LN(x)                             => ln(x)
    LOG(x)                            => log10(x)
    LOG10(x)                          => log10(x)
    LOG(2, x)                         => divide(ln(x), ln(2.0))
    EXP(x)                            => exp(x)
    SQRT(x)                           => sqrt(x)
    |/ x                              => sqrt(x)
    POWER(x, 2)                       => power(x, 2.0)
    POW(i, j)                         => power(to_real(i), to_real(j))
    x ^ 2                             => power(x, 2.0)
    EXTRACT(YEAR FROM s) / 10         => divide(to_real(year(s)), 10.0)
    (EXTRACT(YEAR FROM s) - 1) / 10   => divide(to_real(subtract(year(s), 1)), 10.0)
    EXTRACT(YEAR FROM s)::int / 10    => divide(year(s), 10)
""")
def test_arithmetic(text, expected):
    assert shown(bound(text).expr) == expected


@cases(r"""
    LOWER(t)                          => lower(t)
    UPPER(t)                          => upper(t)
    TRIM(t)                           => trim(t)
    TRIM(BOTH ' ' FROM t)             => trim(t)
    LTRIM(t)                          => trim_left(t)
    TRIM(LEADING FROM t)              => trim_left(t)
    RTRIM(t, ' ')                     => trim_right(t)
    LENGTH(t)                         => length(t)
    CHAR_LENGTH(t)                    => length(t)
    SUBSTR(t, 2, 3)                   => part(t, 2, 3)
    SUBSTRING(t FROM 2 FOR 3)         => part(t, 2, 3)
    SUBSTRING(t FOR 3)                => part(t, 1, 3)
    SUBSTRING(t FROM 0 FOR 3)         => part(t, 1, 2)
    SUBSTRING(t, -5, 3)               => part(t, 1, 0)
    SUBSTRING(t, 2)                   => part(t, 2, 99999)
    SUBSTRING(t, -2)                  => part(t, 1, 100000)
    LEFT(t, 2)                        => part(t, 1, 2)
    LEFT(t, -2)                       => drop_last(t, 2)
    RIGHT(t, 2)                       => keep_last(t, 2)
    RIGHT(t, 0)                       => part(t, 1, 0)
    RIGHT(t, -2)                      => part(t, 3, 99998)
    POSITION('a' IN t)                => position(t, 'a')
    STRPOS(t, 'a')                    => position(t, 'a')
    INSTR(t, 'a')                     => position(t, 'a')
    STRPOS(t, '')                     => as_integer(at_most('', t))
    REPLACE(t, 'a', '')               => replace(t, 'a', '')
    REPLACE(t, '', 'a')               => t
    SPLIT_PART(t, ',', -2)            => split_part(t, -2, ',')
    SPLIT_PART(t, '', -1)             => t
    SPLIT_PART(t, '', 2)              => part(t, 1, 0)
    CONCAT(t, '-', i)                 => join(coalesce(t, ''), '-', coalesce(write_integer(i), ''))
    CONCAT(t, NULL)                   => coalesce(t, '')
    t || '-' || i || d || b           => join(t, '-', write_integer(i), write_date(d), write_boolean(b))
    t LIKE 'a%'                       => like(t, 'a%')
    t NOT LIKE 'a_'                   => not(like(t, 'a_'))
    t ILIKE 'A%'                      => like_any_case(t, 'A%')
    t NOT ILIKE 'A%'                  => not(like_any_case(t, 'A%'))
    t LIKE 'a' || '%'                 => like(t, 'a%')
    t LIKE 'a\%'                      => like(t, 'a\\%')
    t LIKE 'a\b'                      => like(t, 'ab')
    t LIKE 'a!%!!\%' ESCAPE '!'       => like(t, 'a\\%!\\\\%')
    t LIKE 'a\%' ESCAPE ''            => like(t, 'a\\\\%')
    STARTS_WITH(t, 'a%')              => like(t, 'a\\%%')
    t ^@ 'a'                          => like(t, 'a%')
    ENDS_WITH(t, 'a')                 => like(t, '%a')
    CONTAINS(t, 'a')                  => like(t, '%a%')
    t ~ '^a.*b$'                      => matches(t, '^a.*b$')
    t !~ 'a|b'                        => not(matches(t, 'a|b'))
    t ~* '^Ab'                        => matches(lower(t), '^ab')
    t ~* '[a-c]+'                     => matches(lower(t), '[a-c]+')
    REGEXP_LIKE(t, 'x')               => matches(t, 'x')
    REGEXP_LIKE(t, 'X', 'i')          => matches(lower(t), 'x')
    t SIMILAR TO '%(b|d)_'            => matches(t, '^(.*(b|d).)$')
    t SIMILAR TO 'a.b\%'              => matches(t, '^(a\\.b%)$')
    t NOT SIMILAR TO 'a'              => not(matches(t, '^(a)$'))
""")
def test_texts(text, expected):
    assert shown(bound(text).expr) == expected


@cases(r"""
    EXTRACT(YEAR FROM s)              => year(s)
    EXTRACT(quarter FROM s)           => quarter(s)
    EXTRACT(MONTH FROM d)             => month(to_timestamp(d))
    EXTRACT(WEEK FROM s)              => week(s)
    EXTRACT(DAYS FROM s)              => day(s)
    EXTRACT(DOW FROM s)               => dow(s)
    EXTRACT(ISODOW FROM s)            => isodow(s)
    EXTRACT(DOY FROM s)               => doy(s)
    EXTRACT(HOUR FROM s)              => hour(s)
    EXTRACT(MINUTE FROM s)            => minute(s)
    EXTRACT(SECOND FROM s)            => second(s)
    DATE_PART('month', s)             => month(s)
    YEAR(d)                           => year(to_timestamp(d))
    DATE_TRUNC('month', s)            => trunc_month(s)
    DATE_TRUNC('WEEK', d)             => trunc_week(to_timestamp(d))
    DATE_TRUNC('day', s)::date        => to_date(trunc_day(s))
    DATE(s)                           => to_date(s)
    d - e                             => days_between(e, d)
    d - '2010-01-01'                  => days_between(2010-01-01, d)
    '2010-12-31' - d                  => days_between(d, 2010-12-31)
    d + 7                             => add_days(d, 7)
    7 + d                             => add_days(d, 7)
    d - 7                             => add_days(d, -7)
    d + INTERVAL '1 day'              => add_seconds(to_timestamp(d), 86400)
    s + INTERVAL '1 day 2 hours'      => add_seconds(s, 93600)
    INTERVAL '1 week' + s             => add_seconds(s, 604800)
    s - INTERVAL '90 minutes'         => add_seconds(s, -5400)
    s - INTERVAL '1.5 hours'          => add_seconds(s, -5400)
    s + INTERVAL '30' SECOND          => add_seconds(s, 30)
    s + INTERVAL '01:30'              => add_seconds(s, 5400)
    s + 3 * INTERVAL '1 day'          => add_seconds(s, 259200)
    s + '2 days'::interval            => add_seconds(s, 172800)
    s + -INTERVAL '1 day'             => add_seconds(s, -86400)
    DATE_ADD(s, INTERVAL '1 day')     => add_seconds(s, 86400)
    DATE_SUB(s, INTERVAL '1 day')     => add_seconds(s, -86400)
    DATE_DIFF('day', d, e)            => days_between(d, e)
    DATE_DIFF('day', r, s)            => days_between(to_date(r), to_date(s))
    DATEDIFF(day, d, e)               => days_between(d, e)
    DATE_DIFF(d, e, DAY)              => days_between(e, d)
    DATEDIFF(d, e)                    => days_between(e, d)
    DATE_DIFF('day', d, DATE '2010-01-01') => days_between(d, 2010-01-01)
    DATE_DIFF('year', r, s)           => subtract(year(s), year(r))
    DATE_DIFF('hour', r, s) => add(multiply(days_between(to_date(r), to_date(s)), 24), subtract(hour(s), hour(r)))
    DATE_DIFF('month', r, s) => subtract(add(multiply(year(s), 12), month(s)), add(multiply(year(r), 12), month(r)))
""")
def test_dates_and_times(text, expected):
    assert shown(bound(text).expr) == expected


@cases(r"""
    i::int                            => i
    i::bigint                         => i
    i::double precision               => to_real(i)
    CAST(i AS numeric)                => to_real(i)
    x::int                            => to_integer(x)
    x::numeric(10, 2)                 => round(x, 2)
    i::numeric(5)                     => round(to_real(i), 0)
    i::text                           => write_integer(i)
    b::text                           => write_boolean(b)
    d::text                           => write_date(d)
    b::int                            => as_integer(b)
    i::boolean                        => not(equal(i, 0))
    t::int                            => read_integer(trim(t))
    t::real                           => read_real(trim(t))
    t::date            => coalesce(read_date(trim(t)), to_date(read_timestamp(trim(t))))
    t::timestamp       => coalesce(read_timestamp(trim(t)), to_timestamp(read_date(trim(t))))
    TRY_CAST(t AS int)                => read_integer(trim(t))
    t::varchar(3)                     => part(t, 1, 3)
    s::date                           => to_date(s)
    d::timestamp                      => to_timestamp(d)
    CAST(s AS timestamp without time zone) => s
    NULL::int                         => None
""")
def test_casts_are_total(text, expected):
    assert shown(bound(text).expr) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("7 / -2", -3),
        ("7 / 2.0", 3.5),
        ("-7 % 3", -1),
        ("7 % -3", 1),
        ("1 / 0", None),
        ("1 % 0", None),
        ("-2 ^ 2", 4.0),
        ("2 ^ 3 ^ 2", 64.0),
        ("0.1 + 0.2", 0.3),
        ("1 - 2 - 3", -4),
        ("2 + 3 * 4", 14),
        ("9223372036854775807 + 1", None),
        ("ABS(-5)", 5),
        ("NULL + 1", None),
        ("NULL AND FALSE", False),
        ("NULL AND TRUE", None),
        ("NULL OR TRUE", True),
        ("NOT NULL", None),
        ("NULL = NULL", None),
        ("NULL IS NULL", True),
        ("NULL IS DISTINCT FROM NULL", False),
        ("1 IS DISTINCT FROM NULL", True),
        ("NULL IS NOT TRUE", True),
        ("1 IN (2, NULL)", None),
        ("1 NOT IN (2, NULL)", None),
        ("1 IN (1, NULL)", True),
        ("COALESCE(NULL, 3)", 3),
        ("NULLIF(3, 3)", None),
        ("NULLIF(1.5, 1.5)", None),
        ("LEAST(2.5, 1.5)", 1.5),
        ("LEAST(NULL, 3, 2)", 2),
        ("GREATEST(1, NULL)", 1),
        ("CASE WHEN NULL THEN 1 ELSE 2 END", 2),
        ("CASE 3 WHEN 3 THEN 'a' END", "a"),
        ("CONCAT('a', NULL, 1)", "a1"),
        ("'a' || NULL", None),
        ("LOWER('AbC')", "abc"),
        ("TRIM('  a ')", "a"),
        ("SUBSTRING('abcdef' FROM 0 FOR 3)", "ab"),
        ("LENGTH('abc')", 3),
        ("TRUE::int", 1),
        ("' 12 '::int", 12),
        ("'off'::boolean", False),
        ("TRY_CAST('x' AS date)", None),
        ("TRY_CAST('1e999' AS double precision)", None),
        ("DATE '2010-01-31' - DATE '2010-01-01'", 30),
        ("DATE '2010-02-28' + 1", date(2010, 3, 1)),
        ("DATE '1998-12-01' - INTERVAL '90 day'", at("1998-09-02")),
        ("DATE '2010-01-31' + INTERVAL '1 month'", at("2010-02-28")),
        ("DATE '2012-02-29' - INTERVAL '1 year'", at("2011-02-28")),
        ("DATE '2010-03-31' - INTERVAL '1 month 1 day'", at("2010-02-27")),
        ("TIMESTAMP '2010-01-01 12:00' + INTERVAL '36 hours'", at("2010-01-03")),
        ("DATE_TRUNC('quarter', DATE '2010-05-17')", at("2010-04-01")),
        ("EXTRACT(DOW FROM DATE '2010-01-03')", 0),
        ("EXTRACT(ISODOW FROM DATE '2010-01-03')", 7),
        ("EXTRACT(EPOCH FROM TIMESTAMP '1970-01-02 00:00:01')", 86401.0),
        ("EXTRACT(EPOCH FROM TIMESTAMP '2010-01-02 01:00' - TIMESTAMP '2010-01-01 23:00')", 7200.0),
        ("EXTRACT(DAY FROM TIMESTAMP '2010-01-05' - TIMESTAMP '2010-01-01 12:00')", 3),
        ("EXTRACT(YEAR FROM DATE '2010-01-05' - 5)", 2009),
        ("DATE_DIFF('month', DATE '2009-11-30', DATE '2010-01-01')", 2),
        ("DATE_DIFF('quarter', DATE '2009-11-30', DATE '2010-01-01')", 1),
        ("DATE_DIFF('week', DATE '2010-01-03', DATE '2010-01-04')", 1),
        ("DATE_DIFF('minute', TIMESTAMP '2010-01-01 23:59:59', TIMESTAMP '2010-01-02')", 1),
        ("DATE_DIFF('second', TIMESTAMP '2010-01-02', TIMESTAMP '2010-01-01 23:59:58')", -2),
        ("9223372036854775807", 9223372036854775807),
        ("9223372036854775808", 9223372036854775808.0),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("$$it's$$", "it's"),
        ("'it''s'", "it's"),
    ],
)
def test_constants_are_computed_as_postgresql_does(text, expected):
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


def test_a_bound_column_is_the_declared_column():
    assert bound("(u)") is COLUMNS["u"]


@pytest.mark.parametrize(
    ("text", "low", "high", "step"),
    [
        ("i + j", -4, 130, 1),
        ("i * 10", -50, 1200, 10),
        ("x * 2 + 1", 1, 201, Fraction(1, 50)),
        ("x / 4", 0, 25, Fraction(1, 400)),
        ("LEAST(GREATEST(y, 0), 10)", 0, 10, None),
        ("CASE WHEN b THEN x END", 0, 100, Fraction(1, 100)),
        ("CASE WHEN y > 3 THEN 1 ELSE 0 END", 0, 1, 1),
        ("EXTRACT(EPOCH FROM s)", 1262304000, 1293839999, 1),
        ("DATE_TRUNC('week', s)", at("2009-12-28"), at("2010-12-27"), None),
        ("d - '2010-01-01'", 0, 364, 1),
    ],
)
def test_ranges_follow_from_the_columns(text, low, high, step):
    found = bound(text)
    assert (found.low, found.high, found.step) == (low, high, step)


@pytest.mark.parametrize("text", ["y", "GREATEST(y, 0)", "LENGTH(t)", "x / i", "LN(x)", "ABS(y)", "k + 1", "d - e"])
def test_one_end_is_not_yet_a_range(text):
    assert not bound(text).has_range


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("now()", "changes from call to call. Write the date"),
        ("CURRENT_DATE", "CURRENT_DATE is not supported"),
        ("CURRENT_TIMESTAMP", "from call to call"),
        ("LOCALTIMESTAMP", "from call to call"),
        ("clock_timestamp()", "CLOCK_TIMESTAMP is not supported"),
        ("random()", "RANDOM is not supported"),
        ("gen_random_uuid()", "from call to call"),
        ("pg_sleep(1)", "function PG_SLEEP is not supported. Use arithmetic"),
        ("loer(t)", "Did you mean LOWER?"),
        ("lenght(t)", "Did you mean LENGTH?"),
        ("date_trnc('month', s)", "Did you mean DATE_TRUNC?"),
        ("clipp(x, 0, 1)", "Did you mean CLIP?"),
        ("age(d)", "AGE is not supported.*EXTRACT"),
        ("EXTRACT(YEAR FROM AGE(d))", "AGE takes two dates"),
        ("EXTRACT(DAY FROM AGE(d, e))", "only YEAR and MONTH.*Subtract dates"),
        ("to_char(s, 'YYYY')", "TO_CHAR is not supported.*EXTRACT"),
        ("strftime(s, '%Y')", "STRFTIME is not supported.*EXTRACT"),
        ("isnull(i, 0)", "ISNULL is not supported. Write COALESCE"),
        ("dateadd(d, 7)", "DATEADD is not supported.*INTERVAL"),
        ("md5(t)", "MD5 is not supported"),
        ("reverse(t)", "REVERSE is not supported"),
        ("replace(t, 'a', t)", "constant of type text"),
        ("replace(t, 'a', '123456789')", "8 times as long"),
        ("strpos(t, u)", "constant of type text"),
        ("strpos(i, 'a')", "expected text, not integer"),
        ("right(t, i)", "constant of type integer"),
        ("right(t, 200000)", "from 1 to 100000"),
        ("split_part(t, ',', 0)", "must not be zero"),
        ("split_part(t, ',', 2001)", "from -2000 to 2000"),
        ("WIDTH_BUCKET(x, 0, 1)", "two bounds and a number of buckets.*ARRAY"),
        ("WIDTH_BUCKET(x, 0, y, 5)", "constant bounds"),
        ("WIDTH_BUCKET(x, 0, NULL, 5)", "constant bounds"),
        ("WIDTH_BUCKET(x, 1, 1, 5)", "two different bounds"),
        ("WIDTH_BUCKET(x, 0, 1, 0)", "from 1 to 100,000 buckets"),
        ("WIDTH_BUCKET(x, ARRAY[2, 1])", "must be sorted"),
        ("WIDTH_BUCKET(x, ARRAY[])", "constant bounds"),
        ("WIDTH_BUCKET(d, '2020-01-01', '2021-01-01', 3)", "takes a number"),
        ("WIDTH_BUCKET(i, 0, 9000000000000000000, 5)", "too far apart"),
        ("query('x')", "QUERY is not supported"),
        ("pg_catalog.lower(t)", "is not supported"),
        ("sin(x)", "SIN is not supported"),
        ("i & j", "i & j is not supported"),
        ("~i", "is not supported"),
        ('t COLLATE "C"', "Leave COLLATE out"),
        ("s AT TIME ZONE 'UTC'", "policy's time zone"),
        ("i BETWEEN SYMMETRIC 1 AND 2", "SYMMETRIC"),
        ("i = ANY(ARRAY[1, 2])", r"Write IN \(…\)"),
        ("i[1]", "is not supported"),
        ("(i, j)", "is not supported"),
        ("ARRAY[1, 2]", "ARRAY is not supported"),
        ("E'x'", "single quotes"),
        ("x'1F'", "is not supported"),
        ("INTERVAL '1 day'", "Add it to a date"),
        ("$1", "parameters are not supported"),
        ("?", "parameters"),
        (":name", "parameters"),
        ("*", r"\* is not a value"),
        ("t.*", r"\* is not a value"),
        ("COUNT(*)", "aggregate functions are not allowed"),
        ("SUM(i) + 1", "aggregate functions"),
        ("string_agg(t, ',')", "aggregate functions"),
        ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)", "aggregate functions"),
        ("COUNT(i) FILTER (WHERE b)", "aggregate functions"),
        ("LOWER(DISTINCT t)", "aggregate functions"),
        ("ROW_NUMBER() OVER (ORDER BY i)", "window functions are not allowed"),
        ("SUM(i) OVER ()", "window functions"),
        ("(SELECT 1)", "only as a separate condition in WHERE"),
        ("i IN (SELECT 1)", "only as a separate condition"),
        ("i NOT IN (SELECT 1)", "only as a separate condition"),
        ("EXISTS (SELECT 1)", "only as a separate condition"),
        ("i = ANY(SELECT 1)", "only as a separate condition"),
        ("i IN j", r"Write IN \(…\)"),
        ("i + b", "expected integer, not boolean: b. Write CASE"),
        ("t + 1", "not text"),
        ("'a' + 'b'", "invalid input syntax for type double precision"),
        ("-t", "expected double precision, not text"),
        ("i = t", "cannot compare integer with text: i = t. Cast one"),
        ("t = 3", "cannot compare text with integer: t = 3. Quote the text: '3'"),
        ("b > 3", "cannot compare boolean with integer"),
        ("d = 5", "cannot compare date with integer: d = 5. Cast one"),
        ("d > 2026-02-01", "cannot compare date with integer: d > 2026 - 02 - 01. Quote the date: '2026-02-01'"),
        ("d BETWEEN '2026-01-01' AND 2026-02-01", "Quote the date: '2026-02-01'"),
        ("s IN (2026-02-01)", "Quote the date: '2026-02-01'"),
        ("d IN ('2026-02-01', 5)", "cannot compare date with text and integer: .*. Cast one"),
        ("d > 2026-02-30", "cannot compare date with integer: d > 2026 - 02 - 30. Cast one"),
        ("i > 2026-02-01 AND b > 2026-02-01", "cannot compare boolean with integer: b > 2026 - 02 - 01. Write TRUE"),
        ("CASE WHEN b THEN 1 ELSE 'x' END", "invalid input syntax for type integer"),
        ("CASE WHEN b THEN i ELSE t END", "types integer and text cannot be matched"),
        ("CASE WHEN i THEN 1 END", "expected boolean, not integer: i. Write x <> 0"),
        ("i AND b", "Write x <> 0"),
        ("NOT t", "Compare it with a value"),
        ("d = 'tomorrow'", "invalid input syntax for type date: 'tomorrow' is not a date. Write YYYY"),
        ("d = '2010-02-30'", "'2010-02-30' is not a date. Write YYYY-MM-DD"),
        ("x > '12,5'", "invalid input syntax for type double precision: '12,5'. Write a decimal point: 12.5"),
        ("x > '1,000'", ": '1,000'. Write a value such as 4.2"),
        ("d >= '2010-01-01 12:00'", "invalid input syntax for type date"),
        ("s >= '2010-01-01T00:00:00Z'", "without an offset"),
        ("s >= 'now'", "invalid input syntax for type timestamp"),
        ("i > '5.5'", "invalid input syntax for type integer"),
        ("i > ''", "invalid input syntax for type integer"),
        ("'abc'::int", "invalid input syntax for type integer"),
        ("x % 3", "integers only"),
        ("ROUND(x, i)", "expected a constant of type"),
        ("ROUND(x, 20)", "from -15 to 15"),
        ("TRUNC(x, 20)", "from -15 to 15"),
        ("ROUND(x, 2, 1)", "is not supported"),
        ("FLOOR(x, 2)", "is not supported"),
        ("SQRT(t)", "expected double precision, not text"),
        ("LOWER(i)", "expected text, not integer: i. Write CAST"),
        ("LENGTH(d)", "expected text"),
        ("TRIM('x' FROM t)", "only spaces can be trimmed"),
        ("SUBSTRING(t, i)", "expected a constant of type"),
        ("SUBSTRING(t FROM 'a.')", "invalid input syntax for type integer"),
        ("SUBSTRING(t, 1, -1)", "negative substring length"),
        ("CONCAT(b)", "CONCAT does not support type boolean"),
        ("t || x", "engines format it differently"),
        ("s::text", "engines format it differently"),
        ("t LIKE t", "expected a constant of type"),
        ("t LIKE ANY (ARRAY['x'])", r"Write IN \(…\)"),
        ("i LIKE '1%'", "expected text"),
        ("t LIKE 'x\\'", "end with its escape character"),
        ("t LIKE 'x' ESCAPE 'ab'", "ESCAPE takes one character"),
        ("t SIMILAR TO 'x' ESCAPE '!'", "ESCAPE takes one character"),
        ("t SIMILAR TO 'a)|(b'", "invalid regular expression"),
        ("t ~ '(?=x)'", "regular expression may only contain letters"),
        (r"t ~ '\d'", "regular expression may only contain"),
        (r"t ~ '(a)\1'", "regular expression may only contain"),
        ("t ~ '(a'", "invalid regular expression"),
        ("t ~* '[A-Z]'", "Write .classes. in lower case"),
        ("REGEXP_LIKE(t, 'x', 'n')", "only the flags i and c"),
        ("t ~ u", "expected a constant of type"),
        ("STARTS_WITH(t, t)", "expected a constant of type"),
        ("EXTRACT(CENTURY FROM s)", "EXTRACT does not support CENTURY. Supported: YEAR"),
        ("EXTRACT(MONTH FROM s - r)", "only EPOCH and DAY"),
        ("EXTRACT(YEAR FROM d - e)", "expected timestamp, not integer"),
        ("EXTRACT(YEAR FROM i)", "expected timestamp, not integer"),
        ("DATE_TRUNC('decade', s)", "DATE_TRUNC does not support this unit"),
        ("DATE_TRUNC('month', s, 'UTC')", "is not supported"),
        ("DATE_TRUNC('month', i)", "expected timestamp"),
        ("s - r", r"DATE_DIFF\('second', start, end\)"),
        ("s - d", "the difference of two timestamps is an interval"),
        ("d + i", "constant number of days"),
        ("d + 1.5", "expected integer, not double precision"),
        ("d + e", "expected (integer|double precision), not date"),
        ("d * 2", "not date"),
        ("s + INTERVAL '1 month'", "months or years.*Move the interval"),
        ("d - INTERVAL '2 years'", "months or years"),
        ("s + INTERVAL '0.5 seconds'", "whole seconds"),
        ("s + INTERVAL '1-2' YEAR TO MONTH", "invalid input syntax for type interval"),
        ("s + INTERVAL 'a while'", "invalid input syntax for type interval"),
        ("s + i * INTERVAL '1 day'", "invalid input syntax for type interval"),
        ("i + INTERVAL '1 day'", "expected timestamp"),
        ("INTERVAL '1 day' + INTERVAL '1 day'", "Add it to a date"),
        ("DATE_DIFF('eon', d, e)", "constant unit and two dates"),
        ("DATE_DIFF('day', i, e)", "expected timestamp"),
        ("CLIP(x, 10, 0)", "wrong order"),
        ("CLIP(x, 0)", "a value and two bounds"),
        ("CLIP(x, 0, y)", "must be constants"),
        ("CLIP(x, NULL, 1)", "must be constants"),
        ("CLIP(t, 'a', 'b')", "CLIP does not support type text"),
        ("CLIP(x, low => 0, high => 1)", "is not supported"),
        ("x::boolean", "cannot cast type double precision to boolean"),
        ("i::date", "cannot cast type integer to date"),
        ("s::timestamptz", "cannot cast to type TIMESTAMPTZ"),
        ("i::json", "cannot cast to type JSON. Supported: INTEGER"),
        ("t::int[]", "cannot cast to type"),
        ("t::char(3)", "cannot cast to type CHAR"),
        ("s::timestamp(0)", "cannot cast to type"),
        ("1e999", "out of range"),
        ("i IS JSON", "Write IS NULL"),
        ("i IS TRUE", "expected boolean"),
        ("least(i, t)", "types integer and text cannot be matched"),
        ("CAST(t AS date FORMAT 'YYYY')", "is not supported"),
    ],
)
def test_unsupported_expressions_are_refused_with_a_hint(text, words):
    with pytest.raises(Refused, match=f"(?s)^line 1, WHERE: .*{words}"):
        bound(text)


def test_a_refusal_names_the_line_and_the_clause():
    tree = sqlglot.parse_one("SELECT 1\nFROM t\nWHERE b AND\n  now() > s", dialect="postgres")
    with pytest.raises(Refused, match=r"^line 4, WHERE: CURRENT_TIMESTAMP"):
        bind_expr(tree.args["where"].this, column, "WHERE")


def test_the_third_name_of_date_diff_is_a_column_like_any_other():
    def missing(node):
        if node.name in COLUMNS:
            return COLUMNS[node.name]
        raise Refused(f"there is no column {node.name}, {node.find_ancestor(exp.DateDiff) is not None}")

    for name in ("Nowhere", '"No where"', '"D"'):
        with pytest.raises(Refused, match=f"there is no column {name.strip(chr(34))}, True"):
            bind_expr(parsed(f"DATE_DIFF('day', d, {name})"), missing, "WHERE")


def test_a_long_chain_is_not_a_deep_one():
    found = bound(" AND ".join(f"i <> {place}" for place in range(1000))).expr
    assert len(found.args) == 1000
    assert len(bound(" || ".join(["t"] * 500)).expr.args) == 500


@pytest.mark.long(only=["text2"])
@pytest.mark.parametrize(
    "text", [" + ".join(["i"] * 300), "-(" * 3000 + "i" + ")" * 3000, "i IN (" + "1," * 30000 + "1)"]
)
def test_expressions_that_are_too_long_or_too_deep_are_refused(text):
    tree = exp.column("i")
    if text.startswith("-"):
        for _ in range(3000):
            tree = exp.Neg(this=exp.Paren(this=tree))
    else:
        tree = sqlglot.parse_one(text, dialect="postgres")
    with pytest.raises(Refused, match=r"Simplify|too long"):
        bind_expr(tree, column, "SELECT")


def test_nested_subjects_do_not_explode():
    text = "i"
    for _ in range(30):
        text = f"CASE {text} WHEN 1 THEN 1 WHEN 2 THEN 2 ELSE 3 END"
    with pytest.raises(Refused, match="too long"):
        bound(text)
    text = "2010"
    for _ in range(30):
        text = f"EXTRACT(YEAR FROM DATE '2010-01-01' - {text})"
    assert isinstance(bound(text).expr, Constant)


@pytest.mark.parametrize("error", [LookupError, ValueError, TypeError, OverflowError, RecursionError])
def test_a_failing_callback_is_a_refusal_without_its_message(error):
    def broken(_node):
        raise error("secret")

    with pytest.raises(Refused, match="this expression is not supported") as caught:
        bind_expr(parsed("i + 1"), broken, "SELECT")
    assert "secret" not in str(caught.value)


def classes(kind):
    for each in kind.__subclasses__():
        yield each
        yield from classes(each)


NODES = sorted(set(classes(exp.Expression)), key=lambda kind: kind.__name__)
ODD = [None, "x", 7, True, exp.column("i"), exp.Literal.string("x"), [exp.column("t")], exp.Null(), exp.Var(this="day")]


@pytest.mark.long
def test_no_node_of_the_parser_leads_to_another_exception():
    outcomes = {BoundExpr: 0, Refused: 0}
    for kind in NODES:
        for filled in ODD:
            node = kind(
                **{name: filled.copy() if isinstance(filled, exp.Expression) else filled for name in kind.arg_types}
            )
            try:
                outcomes[type(bind_expr(node, column, "SELECT"))] += 1
            except Refused:
                outcomes[Refused] += 1
    assert outcomes[Refused] > 5000
    assert outcomes[BoundExpr] > 30


ONE = "ABS SIGN FLOOR CEIL ROUND TRUNC SQRT LN LOG EXP LOWER UPPER TRIM LTRIM RTRIM LENGTH DATE YEAR HOUR"
TWO = "COALESCE LEAST GREATEST CONCAT NULLIF POWER MOD LEFT SUBSTR STARTS_WITH REGEXP_LIKE DATE_DIFF LOG ROUND"
OPERATORS = ("+", "-", "*", "/", "%", "^", "||", "=", "<", "AND", "OR", "LIKE", "~", "IS DISTINCT FROM")
SHAPES = (
    *(
        f"{{0}}::{kind}"
        for kind in ("int", "text", "float", "date", "timestamp", "boolean", "numeric(8,1)", "varchar(2)")
    ),
    *("-({0})", "NOT {0}", "{0} IS NULL", "{0} IS TRUE", "EXTRACT(DOW FROM {0})", "DATE_TRUNC('month', {0})"),
    "{0} + INTERVAL '3 days'",
)
PAIRS = (
    "CASE WHEN b THEN {0} ELSE {1} END",
    "CASE {0} WHEN {1} THEN 1 END",
    "{0} BETWEEN {1} AND {0}",
    "{0} IN ({1}, NULL)",
    "CLIP({0}, {1}, 7)",
    "SUBSTRING({0} FROM {1} FOR 2)",
    "EXTRACT(EPOCH FROM {0} - {1})",
    "DATE_DIFF('minute', {0}, {1})",
)
PARTS = ("i", "x", "b", "t", "d", "s", "2", "-1.5", "'2010-01-01'", "'a'", "NULL", "TRUE")
ROWS = [
    dict.fromkeys(COLUMNS),
    {"i": 0, "j": 1, "x": 0.0, "b": True, "t": "", "d": date(2010, 1, 1), "s": at("2010-01-01"), "u": "food"},
    {
        "i": -5,
        "j": 10,
        "x": 99.5,
        "b": False,
        "t": "-7",
        "d": date(2010, 12, 31),
        "s": at("2010-06-30 23:59"),
        "u": "shop",
    },
    {"i": 120, "j": 3, "x": 0.1, "b": None, "t": "2010-01-31", "d": None, "s": None, "u": None},
]


def combinations():
    for first, second in product(PARTS, PARTS):
        yield from (f"{name}({first}, {second})" for name in TWO.split())
        yield from (f"{first} {operator} {second}" for operator in OPERATORS)
        yield from (shape.format(first, second) for shape in PAIRS)
    for first in PARTS:
        yield from (f"{name}({first})" for name in ONE.split())
        yield from (shape.format(first) for shape in SHAPES)


@pytest.mark.long
def test_every_bound_expression_has_its_type_and_range_in_every_row():
    understood = 0
    for text in combinations():
        try:
            found = bound(text)
        except (Refused, sqlglot.errors.ParseError):
            continue
        understood += 1
        for row in ROWS:
            outcome = evaluate(found.expr, {**dict.fromkeys(COLUMNS), **row})
            check_value(outcome, found.type)
            low, high = found.low, found.high  # numbers, dates or times; either may be unknown
            if found.type is Type.REAL:
                low, high = (None if end is None else end + slack for end, slack in ((low, -1e-9), (high, 1e-9)))
            if outcome is not None:
                assert low is None or low <= outcome, text
                assert high is None or outcome <= high, text
    assert understood > 800
