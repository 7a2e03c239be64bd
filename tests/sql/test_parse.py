"""Whatever the text is, it is read or refused, with the place, the cause and the way out."""

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from discreet import Refused
from discreet.query.syntax.parse import PrivacyOptions, parse_query, tokenise
from discreet.query.syntax.syntax_tree import line_of, refuse


def refusal(text):
    with pytest.raises(Refused) as caught:
        parse_query(text)
    return str(caught.value)


def outcome(text):
    try:
        return parse_query(text)
    except Refused as refused:
        return str(refused)


def test_a_query_is_parsed_into_its_clauses():
    parsed = parse_query("SELECT city, COUNT(*) FROM visits GROUP BY city")
    assert parsed.query.sql() == "SELECT city, COUNT(*) FROM visits GROUP BY city"
    assert (parsed.explain, parsed.options, parsed.within) == (False, PrivacyOptions(), None)


def test_a_text_that_is_read_again_is_neither_tokenised_nor_parsed_again():
    text = "SELECT city, COUNT(*) FROM visits WHERE city <> 'again' GROUP BY city"
    assert tokenise(text) is tokenise(text)
    assert parse_query(text) is parse_query(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t LIMIT 10",
        "WITH a AS (SELECT 1 AS x) SELECT x FROM a",
        "SELECT 1 UNION ALL SELECT 2",
        "(SELECT 1) UNION (SELECT 2)",
        "((SELECT 1))",
        "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x) FROM t",
        "\ufeffSELECT 1",
        "/* why */ SELECT 1 -- and how",
        'SELECT 1 AS "within", "group" AS within FROM t',
        "SELECT 'WITHIN 5'",
        "SELECT " + "(" * 40 + "1" + ")" * 40,
        "SELECT 1;;",
    ],
)
def test_a_query_is_parsed(text):
    parsed = parse_query(text)
    assert isinstance(parsed.query, exp.Select | exp.SetOperation)
    assert parsed.query.parent is None
    assert parsed.within is None


def test_explain_is_stripped_and_positions_stay():
    parsed = parse_query("explain\nSELECT a,\n  count(*) FROM t")
    assert parsed.explain
    assert line_of(parsed.query.selects[1]) == "line 3"
    assert parse_query("EXPLAIN (SELECT 1)").explain


@pytest.mark.parametrize(
    ("text", "within"),
    [("50", Fraction(50)), ("2.5", Fraction(5, 2)), ("1e3", Fraction(1000)), ("'1/3'", Fraction(1, 3))],
)
def test_a_margin_at_the_end_is_exact(text, within):
    parsed = parse_query(f"SELECT COUNT(*) FROM t ORDER BY 1 LIMIT 5 WITHIN {text} ; ")
    assert parsed.within == within
    assert "WITHIN" not in parsed.query.sql()


def test_options_of_bigquery_are_read():
    options = (
        "epsilon = 0.1, delta=1e-9, max_groups_contributed=3, Max_Rows_Contributed = 7, privacy_unit_column=person"
    )
    parsed = parse_query(f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options})\n  city, COUNT(*) FROM t GROUP BY city")
    assert parsed.options == PrivacyOptions(Fraction(1, 10), Fraction(1, 10**9), 3, 7, "person")
    assert parsed.query.sql() == "SELECT city, COUNT(*) FROM t GROUP BY city"
    assert parse_query("SELECT WITH DIFFERENTIAL_PRIVACY a FROM t").options == PrivacyOptions()
    inside = parse_query("WITH g AS (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon='1/3') a FROM t) SELECT a FROM g")
    assert inside.options.epsilon == Fraction(1, 3)


def test_functions_keep_the_name_they_were_called_by():
    query = parse_query("SELECT CHAR_LENGTH(a), log10 (b), mod(a, 2), a % 2 FROM t").query
    assert [each.meta.get("name") for each in query.selects] == ["char_length", "log10", "mod", None]


PRIVATE = "SELECT WITH DIFFERENTIAL_PRIVACY"
REFUSALS = [  # a text, the place that the refusal names, and words of its cause and hint
    ("", "line 1", "empty", "SELECT"),
    (" ; ", "line 1", "empty", "SELECT"),
    ("-- nothing", "line 1", "empty", "SELECT"),
    ("EXPLAIN", "line 1", "empty", "SELECT"),
    ("SELECT 1;\nSELECT 2", "line 1, column 9", "one statement", "one query at a time"),
    ("insert into t values (1)", "line 1, column 1", 'syntax error at or near "INSERT"', "SELECT"),
    ("\n  SHOW DATABASES", "line 2, column 8", 'at or near "DATABASES"', "SHOW TABLES, or DESCRIBE"),
    ("DESCRIBE a b", "line 1, column 1", 'at or near "DESCRIBE"', "SHOW TABLES, or DESCRIBE"),
    ("SUMMARIZE t", "line 1, column 1", 'at or near "SUMMARIZE"', "what the policy declares"),
    ("EXPLAIN ANALYZE SELECT 1", "line 1, column 9", 'at or near "ANALYZE"', "EXPLAIN without ANALYZE"),
    ("EXPLAIN (ANALYZE) SELECT 1", "line 1, column 9", 'at or near "ANALYZE"', "EXPLAIN without ANALYZE"),
    ("VALUES (1)", "line 1, column 1", 'at or near "VALUES"', "Begin with SELECT"),
    ("SELECT (1", "line 1, column 8", 'unclosed "("', "Close it"),
    ("SELECT\n 1)", "line 2, column 3", 'unmatched ")"', "Open it"),
    ("SELECT (1]", "line 1, column 10", 'unmatched "]"', "Open it"),
    ("SELECT case when 1 then 2", "line 1, column 8", 'unclosed "case"', "Close it"),
    ("SELECT 'abc", "line 1, column 8", "unterminated", "Close it"),
    ("SELECT /* abc", "line 1", "unterminated", "Close it"),
    ("SELECT \0", "line 1, column 8", "NUL", "Remove it"),
    ("SELECT\n AG\u200bV(a)", "line 2, column 2", "invisible character (U+200B)", "Delete it"),
    ("SELECT\n'\ud800'", "line 2, column 2", "surrogate", "Remove it"),
    ("SELECT a\nFRM t", "line 2, column 5", 'syntax error at or near "t"', "before it"),
    ("SELECT QUANTILE(a) FROM t", "line 1, column 18", "an argument or operand is missing", "before it"),
    ("SELECT AVG(a, b) FROM t", "line 1, column 16", "too many arguments", "before it"),
    ("SELECT CAST(a) FROM t", "line 1, column 14", "expected AS after CAST", "before it"),
    ("SELECT a FROM t WHERE", "line 1, column 17", 'syntax error at or near "WHERE"', "before it"),
    ("WITH x AS (INSERT INTO t VALUES (1)) SELECT 1", "line 1", "INSERT is not supported", "Leave it out"),
    ("SELECT a INTO b FROM t", "line 1", "INTO is not supported", "Leave it out"),
    ("SELECT a FROM t FOR UPDATE", "line 1", "LOCK is not supported", "Leave it out"),
    ("(SELECT 1) LIMIT 2", "line 1", "in parentheses", "Remove the outer ones"),
    ("SELECT TOP 10 a FROM t", "line 1, column 8", "TOP is not supported", "ORDER BY … LIMIT 10 at the end"),
    ("SELECT 1 FROM\n (SELECT DISTINCT top 5 a FROM t) AS s", "line 2, column 19", "TOP is", "LIMIT 5 at the end"),
    ("SELECT a WITHIN -5", "line 1, column 18", "without a sign", "WITHIN 50"),
    ("SELECT a FROM t WITHIN 0", "line 1, column 24", "positive", "WITHIN 50"),
    (
        f"{PRIVATE} OPTIONS(epsilo=1) 1",
        "line 1, column 42",
        'option "epsilo" does not exist',
        'did you mean "epsilon"?',
    ),
    (f"{PRIVATE} OPTIONS(epsilo=1) 1", "line 1, column 42", "epsilon, delta, max_groups_contributed", "max_rows_contr"),
    (f"{PRIVATE} OPTIONS(epsilon=-1) 1", "line 1, column 42", "epsilon has no value", "epsilon = value"),
    (f"{PRIVATE} OPTIONS(epsilon=0) 1", "line 1, column 50", "epsilon must be a positive number", "epsilon = 0.1"),
    (f"{PRIVATE} OPTIONS(epsilon=1, epsilon=2) 1", "line 1, column 53", "epsilon is given twice", "once"),
    (f"{PRIVATE} OPTIONS(max_rows_contributed=1.5) 1", "line 1, column 63", "positive integer", "rows_contributed = 5"),
    (f"{PRIVATE} OPTIONS(privacy_unit_column=5) 1", "line 1, column 62", "column name", "privacy_unit_column = person"),
    (f"{PRIVATE} 1 UNION {PRIVATE} 2", "line 1, column 54", "more than once", "Give it once"),
    ("x" * 100_001, "the query has 100,001 characters", "100,000", "Shorten it"),
    ("SELECT " + "1," * 30_000 + "1", "line 1", "10,000 tokens", "Shorten it"),
]


@pytest.mark.long(only=["SELECT 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"])
@pytest.mark.parametrize(
    ("text", "place", "cause", "hint"), REFUSALS, ids=[f"{text[:40]}-{cause[:8]}" for text, _, cause, _ in REFUSALS]
)
def test_a_refusal_names_position_cause_and_hint(text, place, cause, hint):
    message = refusal(text)
    assert message.startswith((f"{place}: ", f"{place};"))
    assert cause in message
    assert hint in message


WORDS = """
    UPDATE DELETE MERGE COPY CREATE DROP ALTER TRUNCATE GRANT REVOKE SET RESET PRAGMA ATTACH DETACH CALL EXECUTE PREPARE
    DEALLOCATE SUMMARIZE BEGIN COMMIT ROLLBACK VACUUM LOAD INSTALL USE EXPORT IMPORT CHECKPOINT DO LISTEN LOCK
    COMMENT FROM TABLE KILL
"""


@pytest.mark.parametrize("word", WORDS.split())
def test_a_query_begins_with_select_or_with(word):
    assert "expected SELECT or WITH" in refusal(f"{word} t")


@pytest.mark.long(only=["SELECT a.a.a.a.a.a.a.a.a.a.a.a"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 41 + "1" + ")" * 41,
        "SELECT " + "CASE WHEN " * 41 + "1" + " THEN 1 END" * 41,
        "SELECT " + "array[" * 38 + "1" + "]" * 38,  # 2^38 steps without a limit
        "SELECT " + "decimal(1," * 38 + "1" + ")" * 38,
        "SELECT " + "struct(" * 30 + "1" + ")" * 30,
        "SELECT " + "NOT " * 2000 + "1",
        "SELECT " + "- " * 5000 + "1",
        "SELECT " + " + ".join(["1"] * 5000),
        "SELECT " + " OR ".join(["a"] * 300),
        "SELECT " + "a." * 3000 + "b",
        "SELECT 1" + " UNION SELECT 1" * 1000,
        "SELECT a" + "::int" * 1000,
        "SELECT " + "1 BETWEEN 1 AND " * 1000 + "1",
        "SELECT * FROM t " + "JOIN u " * 1000,
    ],
    ids=lambda text: text[:30],
)
def test_what_is_nested_too_deeply_is_refused(text):
    told = refusal(text)
    assert "deep" in told
    assert told.startswith("line 1")


def test_comments_do_not_affect_the_parser():
    query = parse_query("SELECT sum(a) /* sqlglot.anonymous */ FROM t").query
    assert isinstance(query.selects[0], exp.Sum)


SEEDS = [
    "SELECT city, COUNT(*) AS n FROM visits WHERE age > 5 GROUP BY city HAVING COUNT(*) > 3 ORDER BY n DESC LIMIT 5",
    "WITH g AS (SELECT a, AVG(b) AS m FROM t GROUP BY 1) SELECT a, RANK() OVER (PARTITION BY a ORDER BY m) FROM g",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-9) CASE WHEN x THEN 1 ELSE 2 END FROM t;",
    "EXPLAIN SELECT a::int, 'it''s', \"q\", $$x$$, x'ff', -1.5e-3 FROM t JOIN u USING (a) UNION ALL SELECT 1 -- end",
    "SELECT EXTRACT(YEAR FROM d), date '2020-01-01' - interval '1 day', a IN (1, 2), EXISTS (SELECT 1) /* c */",
]
MORE = """
    SELECT FROM WHERE WITH AS CASE WHEN END ARRAY STRUCT DECIMAL(1, CAST( NOT IN ( OVER ( INTERVAL WITHIN UNION EXPLAIN
    INSERT NULL '' "" -- /* */ $$ $a$ 0x 1e 1e999 OPTIONS( DIFFERENTIAL_PRIVACY LATERAL PIVOT UNNEST( IF[ WITHIN 5
"""
PIECES = [*"()[]{};,.:*+-/%<>=!~|&^@#$?'\"`\\\n\t\0é\u2028\ud800", *MORE.split()]


def mutated(chance):
    text = chance.choice(SEEDS)
    for _ in range(chance.randint(1, 6)):
        at, end = sorted(chance.randrange(len(text) + 1) for _ in range(2))
        match chance.randrange(4):
            case 0:
                text = text[:at] + text[end:]
            case 1:
                text = text[:at] + chance.choice(PIECES) * chance.choice([1, 1, 2, 30]) + text[at:]
            case 2:
                text = text[:at] + text[at:end] * 2 + text[end:]
            case 3:
                text = text[:at] + " " + chance.choice(PIECES) + " " + text[end:]
    return text[:3000]


@pytest.mark.parametrize("seed", range(4))
def test_every_mutation_of_a_query_is_parsed_or_refused(seed):
    chance = random.Random(seed)
    found = [outcome(mutated(chance)) for _ in range(800)]
    read = [each for each in found if not isinstance(each, str)]
    assert all(isinstance(each.query, exp.Select | exp.SetOperation) for each in read)
    assert all(each.startswith(("line ", "the query has")) for each in found if isinstance(each, str))
    assert 20 < len(read) < 780


@given(st.text(max_size=200))
def test_every_text_is_parsed_or_refused(text):
    assert all(outcome(words) for words in (text, f"SELECT {text}"))


def test_a_source_position_is_the_first_line_of_a_node_or_of_its_parent():
    query = parse_one("SELECT\n NULL,\n a + b FROM t", read="postgres")
    assert line_of(query.selects[1]) == "line 3"
    assert line_of(query.selects[0]) == "line 3"  # NULL has no place of its own
    assert line_of(exp.Null()) == "line 1"


def test_refusals_have_one_shape():
    query = parse_one("SELECT a\nFROM t", read="postgres")
    told = str(refuse(query.args["from_"], "FROM", "this is wrong", "Do that."))
    assert told == "line 2, FROM: this is wrong. Do that."
    assert str(refuse(None, "LIMIT", "wrong?", "Right!")) == "LIMIT: wrong? Right!"
    assert str(refuse(None, "", "wrong", "Right")) == "wrong. Right."
