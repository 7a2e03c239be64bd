"""How Spark writes constants and names safely."""

import math
import re
from datetime import date, datetime

from discreet.kernel.expr import Type, Value

_SAFE_TEXT = re.compile(r"[A-Za-z0-9 _.,:;+/-]*")  # what no setting of a session reads as anything else


def text_literal(value: str) -> str:
    """Write a text.

    >>> text_literal("Aachen"), text_literal("it's ${me}")
    ("'Aachen'", "CAST(X'6974277320247B6D657D' AS STRING)")
    """
    return f"'{value}'" if _SAFE_TEXT.fullmatch(value) else f"CAST(X'{value.encode().hex().upper()}' AS STRING)"


def real_literal(value: float) -> str:
    """Write a real by the shortest text that gives this double again; zero without a sign, which Spark finds in lists.

    >>> real_literal(0.1), real_literal(-0.0)
    ("CAST('0.1' AS DOUBLE)", "CAST('0.0' AS DOUBLE)")
    """
    return f"CAST('{value + 0.0!r}' AS DOUBLE)"


def constant(value: Value, _kind: Type) -> str:
    """Write a constant that is not NULL.

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
            return f"CAST('{value}' AS BIGINT)"  # a bare number would be the place of a column in GROUP BY
    return text_literal(str(value))


def requote_names(sql: str) -> str:
    """Write the kernel's names as Spark does: no constant of this dialect holds a double quote.

    >>> requote_names('SELECT "a""b" FROM "say `hi`"')
    'SELECT `a"b` FROM `say ``hi```'
    """
    return re.sub(r'"((?:[^"]|"")*)"', _requote, sql)


def _requote(quoted_name: re.Match[str]) -> str:
    name = quoted_name[1].replace('""', '"').replace("`", "``")
    return f"`{name}`"
