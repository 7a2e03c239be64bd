"""Values as text and as binary, in PostgreSQL's formats."""

import datetime as dt
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

_EPOCH_DAY, _EPOCH = dt.date(2000, 1, 1), dt.datetime(2000, 1, 1)  # noqa: DTZ001 - PostgreSQL's timestamp has no zone
_MICROSECOND = dt.timedelta(microseconds=1)
_NUMERIC_SIGNS = {0x0000: 0, 0x4000: 1}
_MAX_NUMERIC_TEXT = 1_000  # characters of a parameter

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]


class UnreadableValue(Exception):  # noqa: N818 - an outcome
    """Bytes of a parameter that are not a value of its type."""


def packed(form: str) -> tuple[Encode, Decode]:
    """Return how numbers of one size are written and read."""
    packer = struct.Struct("!" + form)
    return packer.pack, lambda data: packer.unpack(data)[0]


def plain_text(value: Any) -> bytes:
    """Return a value as Python writes it, which is as PostgreSQL does."""
    return str(value).encode()


def float_text(value: float) -> bytes:
    """Return the shortest text that reads as the same number.

    >>> float_text(2.0), float_text(float("-inf"))
    (b'2', b'-Infinity')
    """
    if value != value:  # noqa: PLR0124 - NaN
        return b"NaN"
    if value in (float("inf"), float("-inf")):
        return b"Infinity" if value > 0 else b"-Infinity"
    return repr(float(value)).removesuffix(".0").encode()


def float4_text(value: float) -> bytes:
    """Return a float of 32 bits as text, without the digits of a wider one."""
    return float_text(float(f"{value:.9g}"))


def read_text(data: bytes) -> str:
    """Read text."""
    return data.decode()


def read_number(data: bytes) -> Any:
    """Read a decimal number."""
    number = Decimal(data.decode()) if len(data) <= _MAX_NUMERIC_TEXT else Decimal("NaN")
    return number if number.is_finite() and abs(number.adjusted()) <= _MAX_NUMERIC_TEXT else unreadable()


def unreadable(*_: object) -> Any:
    """Refuse a value of a type that parameters cannot have."""
    raise UnreadableValue


def read_bool(data: bytes) -> bool:
    """Read a truth value in one of the ways to write it."""
    words = {"t": True, "true": True, "on": True, "1": True, "f": False, "false": False, "off": False, "0": False}
    return words[data.decode().strip().lower()]


def binary_date(value: dt.date) -> bytes:
    """Return the days since 2000."""
    return struct.pack("!i", (value - _EPOCH_DAY).days)


def read_binary_date(data: bytes) -> dt.date:
    """Read a date from the days since 2000."""
    return _EPOCH_DAY + dt.timedelta(days=struct.unpack("!i", data)[0])


def timestamp_text(value: dt.datetime) -> bytes:
    """Return a timestamp as text."""
    return value.isoformat(" ").encode()


def timestamptz_text(value: dt.datetime) -> bytes:
    """Return a timestamp with its offset as text."""
    return value.isoformat(" ").removesuffix(":00").encode()  # +00 for +00:00


def binary_timestamp(value: dt.datetime) -> bytes:
    """Return the microseconds since 2000, in UTC if there is an offset."""
    naive = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
    return struct.pack("!q", (naive - _EPOCH) // _MICROSECOND)


def read_binary_timestamp(data: bytes) -> dt.datetime:
    """Read a timestamp from the microseconds since 2000."""
    return _EPOCH + dt.timedelta(microseconds=struct.unpack("!q", data)[0])


def read_binary_timestamptz(data: bytes) -> dt.datetime:
    """Read a timestamp in UTC from the microseconds since 2000."""
    return read_binary_timestamp(data).replace(tzinfo=dt.UTC)


def binary_time(value: dt.time) -> bytes:
    """Return the microseconds since midnight."""
    return struct.pack("!q", (dt.datetime.combine(_EPOCH_DAY, value) - _EPOCH) // _MICROSECOND)


def read_binary_time(data: bytes) -> dt.time:
    """Read a time of day from the microseconds since midnight."""
    return read_binary_timestamp(data).time()


def interval_text(value: dt.timedelta) -> bytes:
    """Return a duration as hours, minutes and seconds.

    >>> import datetime as dt
    >>> interval_text(dt.timedelta(hours=-30, seconds=0.5))
    b'-29:59:59.500000'
    """
    seconds, microseconds = divmod(abs(value) // _MICROSECOND, 1_000_000)
    sign = "-" if value < dt.timedelta() else ""
    hours, minutes = divmod(seconds // 60, 60)
    fraction = f".{microseconds:06}" if microseconds else ""
    return f"{sign}{hours:02}:{minutes:02}:{seconds % 60:02}{fraction}".encode()


def binary_interval(value: dt.timedelta) -> bytes:
    """Return a duration in microseconds, without days and months."""
    return struct.pack("!qii", value // _MICROSECOND, 0, 0)


def binary_numeric(value: Decimal) -> bytes:
    """Return digits to the base 10,000, as `numeric_send` does."""
    if not value.is_finite():
        return struct.pack("!HhHH", 0, 0, 0xC000, 0)
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    text = ("".join(map(str, digits)) + "0" * max(0, exponent)).rjust(scale, "0")
    whole, fraction = text[: len(text) - scale], text[len(text) - scale :]
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    fraction = fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    groups = [int((whole + fraction)[at : at + 4]) for at in range(0, len(whole) + len(fraction), 4)]
    weight = len(whole) // 4 - 1
    while groups and groups[0] == 0:
        groups.pop(0)
        weight -= 1
    while groups and groups[-1] == 0:
        groups.pop()
    body = struct.pack(f"!{len(groups)}H", *groups)
    return struct.pack("!HhHH", len(groups), weight if groups else 0, 0x4000 * sign, scale) + body


def read_binary_numeric(data: bytes) -> Decimal:
    """Read a decimal number from digits to the base 10,000."""
    count, weight, sign, scale = struct.unpack("!HhHH", data[:8])
    groups = struct.unpack(f"!{count}H", data[8:])
    if any(group >= 10_000 for group in groups) or sign not in _NUMERIC_SIGNS or scale > 2_000:
        raise UnreadableValue
    digits = tuple(map(int, "".join(f"{group:04}" for group in groups) or "0"))
    number = Decimal((_NUMERIC_SIGNS[sign], digits, 4 * (weight - count + 1)))
    return number if number.adjusted() <= _MAX_NUMERIC_TEXT else unreadable()
