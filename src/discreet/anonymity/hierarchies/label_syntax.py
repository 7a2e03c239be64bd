"""The syntax of ranges and sets in a released table: formatting and parsing."""

import re
from collections.abc import Container, Iterator, Sequence
from datetime import time
from decimal import Context, Decimal, InvalidOperation

import numpy as np
import pyarrow as pa


def format_range(low: str, high: str) -> str:
    """Return a closed range as text: with a dash between plain numbers, with "to" if an end has a dash.

    >>> format_range("20", "29"), format_range("-5", "-2"), format_range("2024-01-01", "2024-01-31")
    ('20-29', '-5 to -2', '2024-01-01 to 2024-01-31')
    """
    return f"{low} to {high}" if "-" in low + high else f"{low}-{high}"


_BRACKETS = re.compile(r"([\[(])\s*(\S.*?)\s*,\s*(\S.*?)\s*([\])])")
_ONE_SIDED = re.compile(r"(<=|>=|<|>|≤|≥)\s*(\S.*)")
_SEPARATOR = re.compile(r"\s*(?:-|\u2013|\.\.|\bto\b)\s*")
_UNITS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EXACT_DECIMAL = Context(prec=160)
_End = tuple[Decimal | None, bool]
_UNBOUNDED: tuple[_End, _End] = ((Decimal("-inf"), True), (Decimal("inf"), True))


def positions_in_range(label: str, positions: np.ndarray, kind: pa.DataType, origin: int | Decimal = 0) -> range:
    """Return the indices of the sorted positions in a range, none if the text is not a range.

    Positions are relative to the origin.

    >>> ages = np.array([21.0, 28.0, 35.0, 40.0])
    >>> [list(positions_in_range(label, ages, pa.int64())) for label in ("20-29", "[21, 28)", "<=35", "35+", "old")]
    [[0, 1], [0], [0, 1, 2], [2, 3], []]
    """
    (low, low_in), (high, high_in) = _parse_ends(label, kind)
    if low is None or high is None:
        return range(0)
    start, end = float(_EXACT_DECIMAL.subtract(low, origin)), float(_EXACT_DECIMAL.subtract(high, origin))
    first = int(np.searchsorted(positions, start, side="left" if low_in else "right"))
    last = int(np.searchsorted(positions, end, side="right" if high_in else "left"))
    return range(first, max(first, last))


def _parse_ends(label: str, kind: pa.DataType) -> tuple[_End, _End]:
    if match := _BRACKETS.fullmatch(label):
        opening, low, high, closing = match.groups()
        return (_parse_position(low, kind), opening == "["), (_parse_position(high, kind), closing == "]")
    if match := _ONE_SIDED.fullmatch(label):
        end = _parse_position(match[2], kind), match[1] not in {"<", ">"}
        return (_UNBOUNDED[0], end) if match[1] in {"<", "<=", "≤"} else (end, _UNBOUNDED[1])
    if label.endswith("+"):
        return (_parse_position(label[:-1], kind), True), _UNBOUNDED[1]
    # The ends can contain dashes, so each separator is tried.
    for separator in _SEPARATOR.finditer(label):
        first, last = _parse_position(label[: separator.start()], kind), _parse_position(label[separator.end() :], kind)
        if first is not None and last is not None:
            return (first, True), (last, True)
    return (None, True), (None, True)


def _parse_position(text: str, kind: pa.DataType) -> Decimal | None:
    """Parse a value of a column's type as the exact number that represents it, or return None."""
    try:
        if pa.types.is_time(kind):
            clock, _, fraction = text.partition(".")  # time.fromisoformat is limited to microseconds
            moment = time.fromisoformat(clock)
            seconds = (moment.hour * 60 + moment.minute) * 60 + moment.second
            return (seconds + Decimal(f"0.{fraction}0")) * _UNITS_PER_SECOND[kind.unit]
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            integer_type = pa.int32() if kind.bit_width == 32 else pa.int64()
            return Decimal(pa.scalar(text).cast(kind).cast(integer_type).as_py())
        number = Decimal(text)
    except (pa.ArrowException, ValueError, InvalidOperation):
        return None
    return None if number.is_nan() else number


_NULL = "null"
_NEEDS_QUOTES = re.compile(r'^$|^\s|\s$|^null$|[,{}"]')
_QUOTED_MEMBER = re.compile(r'"((?:[^"]|"")*)"(?:, |$)')


def format_set_member(text: str | None) -> str:
    """Return a value as a member of a set, in quotes if needed.

    >>> [format_set_member(text) for text in ("cook", "York, PA", "null", None)]
    ['cook', '"York, PA"', '"null"', 'null']
    """
    if text is None:
        return _NULL
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text


def parse_set(inside: str, known_values: Container[str]) -> set[str | None]:
    """Parse the members of a set, the text between its braces; None is null.

    Other programs may omit the quotes: if some parts are unknown, consecutive parts that form a known value are joined.

    >>> sorted(parse_set('"York, PA", cook', {"York, PA", "cook"}))
    ['York, PA', 'cook']
    >>> parse_set("York, PA", {"York, PA", "York"}), sorted(parse_set("York, PA", {"York", "PA", "York, PA"}))
    ({'York, PA'}, ['PA', 'York'])
    """
    members: set[str | None] = set()
    unquoted: list[str] = []
    start = 0
    while start < len(inside):
        if match := _QUOTED_MEMBER.match(inside, start):
            members.add(match[1].replace('""', '"'))
            start = match.end()
        else:
            end = inside.find(", ", start)
            unquoted.append(inside[start:] if end < 0 else inside[start:end])
            start = len(inside) if end < 0 else end + 2
    are_all_known = all(part in known_values or part == _NULL for part in unquoted)
    members.update(
        None if part == _NULL else part
        for part in (unquoted if are_all_known else _join_known_parts(unquoted, known_values))
    )
    return members


def _join_known_parts(parts: Sequence[str], known_values: Container[str]) -> Iterator[str]:
    """Join consecutive parts that form a known value, the longest first."""
    start = 0
    while start < len(parts):
        ends = (end for end in range(len(parts), start, -1) if ", ".join(parts[start:end]) in known_values)
        end = next(ends, start + 1)
        yield ", ".join(parts[start:end])
        start = end
