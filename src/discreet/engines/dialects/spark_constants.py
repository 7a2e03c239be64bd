"""How Spark writes constants and names: nothing in them can end them, be replaced, or be read as an escape."""

import math
import re
from datetime import date, datetime

from discreet.kernel.expr import Type, Value

_PLAIN = re.compile(r"[A-Za-z0-9 _.,:;+/-]*")  # what no setting of a session reads as anything else


def text(value: str) -> str:
    """Write a text.

    >>> text("Aachen"), text("it's ${me}")
    ("'Aachen'", "CAST(X'6974277320247B6D657D' AS STRING)")
    """
    return f"'{value}'" if _PLAIN.fullmatch(value) else f"CAST(X'{value.encode().hex().upper()}' AS STRING)"


def real(value: float) -> str:
    """Write a real by the shortest text that gives this double again; zero without a sign, which Spark finds in lists.

    >>> real(0.1), real(-0.0)
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
            return real(value)
        case datetime():
            return f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE'{value.isoformat()}'"
        case int():
            return f"CAST('{value}' AS BIGINT)"  # a bare number would be the place of a column in GROUP BY
    return text(str(value))


def requoted(sql: str) -> str:
    """Write the kernel's names as Spark does: no constant of this dialect holds a double quote.

    >>> requoted('SELECT "a""b" FROM "say `hi`"')
    'SELECT `a"b` FROM `say ``hi```'
    """
    return re.sub(r'"((?:[^"]|"")*)"', _requoted, sql)


def _requoted(found: re.Match[str]) -> str:
    name = found[1].replace('""', '"').replace("`", "``")
    return f"`{name}`"
