"""Reading ranges: which of the sorted values of a column lie between the ends that a text names."""

import re
from datetime import time
from decimal import Context, Decimal, InvalidOperation

import numpy as np
import pyarrow as pa

_BRACKETS = re.compile(r"([\[(])\s*(\S.*?)\s*,\s*(\S.*?)\s*([\])])")
_ONE_END = re.compile(r"(<=|>=|<|>|≤|≥)\s*(\S.*)")
_BETWEEN = re.compile(r"\s*(?:-|\u2013|\.\.|\bto\b)\s*")
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EXACT = Context(prec=160)
_End = tuple[Decimal | None, bool]
_OPEN: tuple[_End, _End] = ((Decimal("-inf"), True), (Decimal("inf"), True))


def run_of(label: str, places: np.ndarray, kind: pa.DataType, origin: int | Decimal = 0) -> range:
    """Return which of the sorted places on a line are in a range; none if the text is no range.

    The line begins at the origin: its place is 0.

    >>> ages = np.array([21.0, 28.0, 35.0, 40.0])
    >>> [list(run_of(label, ages, pa.int64())) for label in ("20-29", "[21, 28)", "<=35", "35+", "old")]
    [[0, 1], [0], [0, 1, 2], [2, 3], []]
    """
    (low, low_in), (high, high_in) = _ends(label, kind)
    if low is None or high is None:
        return range(0)
    start, end = float(_EXACT.subtract(low, origin)), float(_EXACT.subtract(high, origin))
    first = int(np.searchsorted(places, start, side="left" if low_in else "right"))
    last = int(np.searchsorted(places, end, side="right" if high_in else "left"))
    return range(first, max(first, last))


def _ends(label: str, kind: pa.DataType) -> tuple[_End, _End]:
    if match := _BRACKETS.fullmatch(label):
        opening, low, high, closing = match.groups()
        return (_place(low, kind), opening == "["), (_place(high, kind), closing == "]")
    if match := _ONE_END.fullmatch(label):
        end = _place(match[2], kind), match[1] not in {"<", ">"}
        return (_OPEN[0], end) if match[1] in {"<", "<=", "≤"} else (end, _OPEN[1])
    if label.endswith("+"):
        return (_place(label[:-1], kind), True), _OPEN[1]
    # An end may have dashes of its own, so each is tried.
    for between in _BETWEEN.finditer(label):
        first, last = _place(label[: between.start()], kind), _place(label[between.end() :], kind)
        if first is not None and last is not None:
            return (first, True), (last, True)
    return (None, True), (None, True)


def _place(text: str, kind: pa.DataType) -> Decimal | None:
    """Read the number of a text on the line of a column's values, exactly, if it is one of their kind."""
    try:
        if pa.types.is_time(kind):
            clock, _, fraction = text.partition(".")  # which Python reads to the microsecond only
            moment = time.fromisoformat(clock)
            seconds = (moment.hour * 60 + moment.minute) * 60 + moment.second
            return (seconds + Decimal(f"0.{fraction}0")) * _PER_SECOND[kind.unit]
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            whole = pa.int32() if kind.bit_width == 32 else pa.int64()
            return Decimal(pa.scalar(text).cast(kind).cast(whole).as_py())
        number = Decimal(text)
    except (pa.ArrowException, ValueError, InvalidOperation):
        return None
    return None if number.is_nan() else number
