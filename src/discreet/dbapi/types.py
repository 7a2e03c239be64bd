"""The type codes of columns and the constructors of PEP 249."""

import datetime as dt

import pyarrow as pa

from discreet.arrow_columns import type_name


class TypeGroup(frozenset[str]):
    """A type object of PEP 249, which equals each of its type codes.

    >>> NUMBER == "integer", NUMBER == "text", "real" == NUMBER
    (True, False, True)
    """

    def __eq__(self, other: object) -> bool:
        return other in self if isinstance(other, str) else super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = frozenset.__hash__


STRING = TypeGroup({"text"})
BINARY = TypeGroup()
NUMBER = TypeGroup({"integer", "real", "decimal", "boolean"})
DATETIME = TypeGroup({"date", "timestamp"})
ROWID = TypeGroup()

Date = dt.date
Time = dt.time
Timestamp = dt.datetime
Binary = bytes
DateFromTicks = dt.date.fromtimestamp


def TimeFromTicks(ticks: float) -> dt.time:  # noqa: N802 - PEP 249's name
    """Return the local time of day for seconds since the epoch."""
    return TimestampFromTicks(ticks).time()


def TimestampFromTicks(ticks: float) -> dt.datetime:  # noqa: N802 - PEP 249's name
    """Return the local timestamp for seconds since the epoch."""
    return dt.datetime.fromtimestamp(ticks)  # noqa: DTZ006 - PEP 249 asks for local time


def type_code(kind: pa.DataType) -> str:
    """Return the type code of a column: the name of its type in a policy.

    >>> type_code(pa.int64()), type_code(pa.string())
    ('integer', 'text')
    """
    return type_name(kind) or "text"
