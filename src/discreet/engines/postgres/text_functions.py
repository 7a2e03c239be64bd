"""Text functions in PostgreSQL, which compare code points and parse without errors."""

import hashlib
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime

from discreet.engines.common_sql import changed_letters, constant_regex, constant_text
from discreet.engines.reference.evaluate import lower_case, upper_case
from discreet.kernel.expr import Expr, Value

_MAX_NAME_BYTES = 63  # PostgreSQL truncates longer names


def text_literal(text: str) -> str:
    r"""Return a text as a literal whose meaning does not depend on the server's settings.

    Claim: whatever the text is, the literal is this text and nothing else.
    Proof: quotes are doubled. A backslash, which settings may give a meaning, occurs only doubled, within E'…'.
    Needs: nothing.
    Checked by: test_settings_of_the_server_change_nothing, test_each_operation_means_the_same_on_constants

    >>> print(text_literal("it's"), text_literal("\\"))
    'it''s' E'\\'
    """
    doubled = text.replace("'", "''")
    return "E'" + doubled.replace("\\", "\\\\") + "'" if "\\" in text else f"'{doubled}'"


def collated_literal(text: str) -> str:
    """Return a text as a literal that is compared by code points.

    >>> print(collated_literal("a"))
    (CAST('a' AS TEXT) COLLATE "C")
    """
    return f'(CAST({text_literal(text)} AS TEXT) COLLATE "C")'


def array_literal(values: Sequence[Value]) -> str:
    """Return constants as an array literal.

    >>> print(array_literal(["a", "b,c"]))
    '{"a","b,c"}'
    """
    texts = (value.isoformat() if isinstance(value, date | datetime) else str(value) for value in values)
    quoted = ('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts)
    return text_literal("{" + ",".join(quoted) + "}")


# Parsing. A text that matches is never out of range, so the cast cannot fail; texts longer than 300 characters cannot
# match even after truncation.

_VALID_DATE = (
    r"(?:(?!0000)[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    r"|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)-02-29)"
)
_VALID_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?"
_DECIMAL_DIGITS = r"(?:[0-9]{1,100}(?:\.[0-9]{0,100})?|\.[0-9]{1,100})"
INTEGER_PATTERN = "[+-]?[0-9]{1,18}"
REAL_PATTERN = rf"[+-]?{_DECIMAL_DIGITS}(?:[eE][+-]?(?:0?[0-9]{{1,2}}|1[0-9]{{2}}))?"
DATE_PATTERN = _VALID_DATE
TIMESTAMP_PATTERN = rf"{_VALID_DATE}[ T]{_VALID_TIME}"


def cast_if_matches(pattern: str, sql_type: str) -> Callable[[Sequence[str], Sequence[Expr]], str]:
    """Return an operation that casts a text to another type, or to NULL unless the whole text matches.

    Claim: no text makes the cast raise.
    Proof: SUBSTRING is NULL unless the pattern matches all of the first 300 characters, so a text that is longer is
        NULL: no match has so many. What the patterns match are numbers in the range of their type, and valid dates and
        times, leap years included.
    Needs: INTEGER_PATTERN, REAL_PATTERN, DATE_PATTERN, TIMESTAMP_PATTERN.
    Checked by: test_postgresql_never_raises_because_of_a_row, test_all_dates_are_read_and_no_others

    >>> cast_if_matches("[0-9]", "BIGINT")(["t"], [])
    "CAST(SUBSTRING(LEFT(t, 300) FROM '^[0-9]$') AS BIGINT)"
    """
    return lambda texts, _: f"CAST(SUBSTRING(LEFT({texts[0]}, 300) FROM {text_literal(f'^{pattern}$')}) AS {sql_type})"


# Case mapping of single code points, as in the reference. TRANSLATE searches all of its letters for each character, so
# it is used with the letters of Latin-1 only; other texts are split into characters.

_LATIN_1_END = 0x100
_NOT_LATIN_1 = text_literal(r"[^\u0001-\u00ff]")


def _change_case(change: Callable[[str], str], function: str, text: str) -> str:
    pairs = {letter: changed for letter, changed in changed_letters(change).items() if not letter.isascii()}
    latin = "".join(letter for letter in pairs if ord(letter) < _LATIN_1_END)
    others = ",".join(f'"{letter}":"{changed}"' for letter, changed in pairs.items())
    letter = f"COALESCE(CAST('{{{others}}}' AS JSONB) ->> w.letter, w.letter)"
    apart = f"UNNEST(STRING_TO_ARRAY({text}, NULL)) WITH ORDINALITY AS w(letter, place)"
    joined = f"(SELECT STRING_AGG({letter}, '' ORDER BY w.place) FROM {apart})"  # noqa: S608 - of the kernel's texts
    mapped = (
        f"CASE WHEN OCTET_LENGTH({text}) = CHAR_LENGTH({text}) THEN {text} "
        f"WHEN {text} !~ {_NOT_LATIN_1} THEN TRANSLATE({text}, '{latin}', '{change(latin)}') ELSE {joined} END"
    )
    return f'{function}({mapped} COLLATE "C")'


def lower(texts: Sequence[str], _: Sequence[Expr]) -> str:
    """Return SQL for a text in lower case.

    >>> lower(["t"], [])[:53]
    'LOWER(CASE WHEN OCTET_LENGTH(t) = CHAR_LENGTH(t) THEN'
    """
    return _change_case(lower_case, "LOWER", texts[0])


def upper(texts: Sequence[str], _: Sequence[Expr]) -> str:
    """Return SQL for a text in upper case.

    >>> upper(["t"], [])[-38:]
    ' AS w(letter, place)) END COLLATE "C")'
    """
    return _change_case(upper_case, "UPPER", texts[0])


# Patterns.


def like(texts: Sequence[str], exprs: Sequence[Expr]) -> str:
    r"""Return SQL for LIKE with a constant pattern.

    >>> from discreet.kernel.expr import Constant, Type
    >>> print(like(["t"], [Constant("", Type.TEXT), Constant("a%", Type.TEXT)]))
    t LIKE 'a%' ESCAPE E'\\'
    """
    return f"{texts[0]} LIKE {text_literal(constant_text(exprs[1]))} ESCAPE {text_literal(chr(92))}"


def like_any_case(texts: Sequence[str], exprs: Sequence[Expr]) -> str:
    r"""Return SQL for ILIKE with a constant pattern.

    >>> from discreet.kernel.expr import Constant, Type
    >>> print(like_any_case(["t"], [Constant("", Type.TEXT), Constant("A%", Type.TEXT)])[-22:])
    LIKE 'a%' ESCAPE E'\\'
    """
    pattern = text_literal(lower_case(constant_text(exprs[1])))
    return f"{lower(texts, exprs)} LIKE {pattern} ESCAPE {text_literal(chr(92))}"


def matches(texts: Sequence[str], exprs: Sequence[Expr]) -> str:
    r"""Return SQL for a match of a constant regular expression, in which a dot does not match a line break.

    Matching a constant first makes the planner compile the expression; otherwise the first row that needs it would, and
    the running time would disclose that there is one.

    >>> from discreet.kernel.expr import Constant, Type
    >>> print(matches(["t"], [Constant("", Type.TEXT), Constant("[.]a.$", Type.TEXT)]))
    CASE WHEN ('' ~ E'[.]a[^\\n]$') IS NOT NULL THEN t ~ E'[.]a[^\\n]$' END
    """
    parts = r"\\.|\[[^\]]*\]|\."
    pattern = re.sub(
        parts, lambda part: r"[^\n]" if part[0] == "." else part[0], constant_regex(exprs[1]), flags=re.DOTALL
    )
    return f"CASE WHEN ('' ~ {text_literal(pattern)}) IS NOT NULL THEN {texts[0]} ~ {text_literal(pattern)} END"


# Names.

_TEXT_OR_NAME = re.compile(r"""'[^']*'|"([^"]*(?:""[^"]*)*)\"""")


def shorten_names(sql: str) -> str:
    """Replace names that PostgreSQL would truncate by short ones that no table has.

    Claim: different names stay different, and constants stay as they are.
    Proof: PostgreSQL compares the first 63 bytes. A longer name becomes a dot and 96 bits of its SHA-256; no column of
        a table begins with a dot, and the kernel's own such names are shorter. Texts in quotes are matched first.
    Needs: quote_name, check_name, text_literal.
    Checked by: test_names_are_shortened_and_constants_are_not

    >>> shorten_names('''SELECT "a" AS "%s" FROM t''' % ("é" * 40))
    'SELECT "a" AS ".84fe2e03d50dd3a18b630669" FROM t'
    """

    def shorten(token: re.Match[str]) -> str:
        name = token[1]
        if name is None or len(name.replace('""', '"').encode()) <= _MAX_NAME_BYTES:
            return token[0]
        return f'".{hashlib.sha256(name.encode()).hexdigest()[:24]}"'

    return _TEXT_OR_NAME.sub(shorten, sql)
