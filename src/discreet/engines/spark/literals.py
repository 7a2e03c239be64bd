"""Constants and quoted names in Spark SQL."""

import math
import re
from datetime import date, datetime

from discreet.kernel.expr import Type, Value

_SAFE_TEXT = re.compile(r"[A-Za-z0-9 _.,:;+/-]*")  # plain under every session setting


def text_literal(value: str) -> str:
    """Return a text as a literal.

    Claim: whatever the text is, the literal is this text and nothing else, under every setting of the session.
    Proof: it is in quotes if it has only characters that mean nothing there; otherwise it is the digits of its bytes.
    Needs: nothing.
    Checked by: test_a_constant_ends_where_it_should

    >>> text_literal("Aachen"), text_literal("it's ${me}")
    ("'Aachen'", "CAST(X'6974277320247B6D657D' AS STRING)")
    """
    return f"'{value}'" if _SAFE_TEXT.fullmatch(value) else f"CAST(X'{value.encode().hex().upper()}' AS STRING)"


def real_literal(value: float) -> str:
    """Return a real as the shortest literal that parses to it; zero is unsigned, which matters in IN lists.

    >>> real_literal(0.1), real_literal(-0.0)
    ("CAST('0.1' AS DOUBLE)", "CAST('0.0' AS DOUBLE)")
    """
    return f"CAST('{value + 0.0!r}' AS DOUBLE)"


def constant(value: Value, _kind: Type) -> str:
    """Return a constant other than NULL as a literal.

    >>> constant(-7, Type.INTEGER), constant(True, Type.BOOLEAN)
    ("CAST('-7' AS BIGINT)", 'TRUE')
    """
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case float():
            assert math.isfinite(value)
            return real_literal(value)
        case datetime():
            return f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE'{value.isoformat()}'"
        case int():
            return f"CAST('{value}' AS BIGINT)"  # in GROUP BY, a bare number would be a column position
    return text_literal(str(value))


def requote_names(sql: str) -> str:
    """Replace the kernel's double quotes by backticks.

    Claim: each quoted name becomes the same name in backticks, and nothing else changes.
    Proof: no constant of this dialect contains a double quote (text_literal), so each of them opens or closes a name,
        or is one of two within it.
    Needs: text_literal, constant, quote_name.
    Checked by: test_names_are_quoted_and_nothing_else_is_in_double_quotes

    >>> requote_names('SELECT "a""b" FROM "say `hi`"')
    'SELECT `a"b` FROM `say ``hi```'
    """
    return re.sub(r'"((?:[^"]|"")*)"', _requote, sql)


def _requote(quoted_name: re.Match[str]) -> str:
    name = quoted_name[1].replace('""', '"').replace("`", "``")
    return f"`{name}`"
