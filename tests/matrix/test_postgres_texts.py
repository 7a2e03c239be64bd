"""Texts in PostgreSQL: case, order, patterns, and parsing of dates."""

import random
from contextlib import suppress

import operations
import pytest
from postgres_under import compared, fill
from strategies import INT, TEXT

from discreet.engines.postgres import text_functions
from discreet.engines.postgres.dialect import POSTGRES
from discreet.kernel.expr import Call, Column, Constant
from discreet.kernel.sqlgen.expr_sql import write_expr
from discreet.postgres.server import driver


@pytest.mark.long
def test_every_letter_has_the_upper_case_of_the_reference(connection):
    letters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    cased = [letter for letter in letters if len({letter, letter.lower(), letter.upper(), letter.title()}) > 1]
    known = [*letters[:0x3000], *cased, *letters[0x3000::50]]
    texts = ["".join(known[at : at + 100]) for at in range(0, len(known), 100)]
    texts += [f"{one}a{other}" for one, other in zip(cased, reversed(cased), strict=True)]
    calls = [Call(op, (Column("t", TEXT),)) for op in ("lower", "upper")]
    compared(connection, calls, {"t": TEXT}, [{"t": text} for text in texts])


def test_some_letters_have_the_case_of_the_reference(connection, monkeypatch):
    """Also the last of Latin-1, whose upper case is beyond it. With a short list of letters, which is made quickly."""
    letters = "aAéÉÿŸßẞµ\u039cāĀ"
    changed = lambda change: {letter: change(letter) for letter in letters if change(letter) != letter}  # noqa: E731
    monkeypatch.setattr(text_functions, "changed_letters", changed)
    t = Column("t", TEXT)
    calls = [Call(op, (t,)) for op in ("lower", "upper")]
    calls += [Call("like_any_case", (t, Constant(pattern, TEXT))) for pattern in ("É%", "_ÿ", "Āb%")]
    texts = [*letters, *(f"{one}b{other}" for one in letters for other in letters), "é1", "zŸ", "āBc", ""]
    compared(connection, calls, {"t": TEXT}, [{"t": text} for text in texts])


@pytest.mark.parametrize("op", ["less", "least"])
def test_texts_are_in_the_order_of_their_code_points(connection, op):
    """Also those that were made here, in a database with the order of a language."""
    texts = ["a", "A", "b", "B", "-7", "12", "é", "e\u0301", "Z", "_", "", " a"]
    rows = [{"t": one, "u": other} for one in texts for other in texts]
    t, u = Column("t", TEXT), Column("u", TEXT)
    made = [
        Call("lower", (t,)),
        Call("join", (t, u)),
        Call("part", (u, Constant(1, INT), Constant(1, INT))),
        Call("trim", (u,)),
    ]
    made += [
        Call("write_integer", (Call("length", (t,)),)),
        Call("coalesce", (t, u)),
        Constant("B", TEXT),
        Constant("a", TEXT),
    ]
    exprs = [Call(op, (one, other)) for one in ([t, *made] if op == "less" else made) for other in made]
    compared(connection, exprs, {"t": TEXT, "u": TEXT}, rows)


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "",
            ".",
            "^.$",
            "a.b",
            "[a-c-]",
            "[^a-]",
            "[.]",
            "[:a:]",
            "[ _,;:@#.]+",
            "(a|)b",
            "()a",
            "a||b",
            "(a*)b",
            "a{0}b",
        ),
        *(
            "\\.\\*\\?\\+\\(\\)\\[\\]\\{\\}\\^\\$\\|\\\\\\/\\-",
            "a\\$",
            "^a|b$",
            "(ab){2,}",
            "a{2}",
            "[ab-]",
            "é+",
            "👩",
            "#a",
            "[0-9]{99}",
        ),
        *("(.{33}){30}", "((a{9}){9}){9}", "(a|b|c|d)*abcd", "[a-zA-Z0-9]{1,99}@[a-z.]+", "\"'", "-,;:@#%&=<>!/~`"),
    ],
)
def test_patterns_are_read_alike(connection, pattern):
    known = [
        "",
        "a",
        "b",
        "ab",
        "abab",
        "a.b",
        "a\nb",
        "\n",
        "-",
        ":",
        "[",
        "aaa",
        "a$",
        "é",
        "👩",
        "#a",
        "9" * 99,
        "x" * 990,
    ]
    known += [
        "a" * 729,
        "user@example.org",
        "\"'",
        "-,;:@#%&=<>!/~`",
        ".*?+()[]{}^$|\\/-",
        "abcabcd",
        "c",
        "\r",
        "\x85",
        "\u2028",
    ]
    call = Call("matches", (Column("t", TEXT), Constant(pattern, TEXT)))
    compared(connection, [call], {"t": TEXT}, [{"t": text} for text in known])


@pytest.mark.parametrize("op", ["matches", "like", "like_any_case"])
def test_random_patterns_are_read_alike(connection, op):
    rng = random.Random(op)
    calls = []
    while len(calls) < 150:
        drawn = operations.pattern(rng) if op == "matches" else "".join(rng.choices("aAé%_\\.", k=rng.randint(0, 6)))
        with suppress(ValueError):  # not of the kernel's language
            calls.append(Call(op, (Column("t", TEXT), Constant(drawn, TEXT))))
    rows = [{"t": text} for text in ["", "\n", "a\n", *operations.short_texts(rng, 100)]]
    compared(connection, calls, {"t": TEXT}, rows)


def test_a_pattern_is_compiled_before_any_row_is_read(connection):
    """Else the row that needs it would take the time for it, or fail if it is too complex for PostgreSQL."""
    text = Column("t", TEXT)
    found = Call("matches", (text, Constant("a?b", TEXT)))
    sql = f"SELECT CASE WHEN t = 'x' THEN {write_expr(found, POSTGRES)} END FROM given"
    fill(connection, "given", {"t": TEXT}, [{"t": "a"}])
    (plan,) = [row for (row,) in connection.execute(f"EXPLAIN (VERBOSE) {sql}").fetchall() if "Output" in row]
    assert plan.count("~") == 1  # of the two that are written
    beyond = sql.replace("a?b", "((" + "a" * 880 + "){30}){30}")
    for rows in ([], [{"t": "x"}]):
        fill(connection, "given", {"t": TEXT}, rows)
        with pytest.raises(driver().Error, match="too complex"):
            connection.execute(beyond)


@pytest.mark.long
def test_patterns_at_the_limit_are_compiled(connection):
    calls = [Call("matches", (Column("t", TEXT), Constant(each, TEXT))) for each in operations.large_patterns(40)]
    compared(connection, calls, {"t": TEXT}, [{"t": text} for text in ("", "a", "ab")])


def test_all_dates_are_read_and_no_others(connection):
    day = Column("t", TEXT)
    years = [0, 1, 4, 100, 400, 1900, 2000, 2023, 2024, 9999]
    texts = [f"{year:04}-{month:02}-{number:02}" for year in years for month in range(14) for number in range(33)]
    calls = [Call("read_date", (day,)), Call("read_timestamp", (Call("join", (day, Constant(" 23:59", TEXT))),))]
    compared(connection, calls, {"t": TEXT}, [{"t": text} for text in texts])
    clocks = [
        "24:00",
        "23:59:60",
        "23:60",
        "1:00",
        "00:00:00.",
        "00:00:00.1234567",
        "00:00:59.999999",
        "00:00Z",
        " 00:00",
    ]
    rows = [
        {"t": f"2024-02-29{between}{clock}{end}"} for between in " Tt" for clock in clocks for end in ("", "\n", " ")
    ]
    compared(connection, [Call("read_timestamp", (day,))], {"t": TEXT}, rows)
