"""Ranges that are declared: known without the data, because a range that is taken from them tells of single people."""

from typing import Any

import numpy as np

Ends = tuple[np.ndarray, np.ndarray]
_ROUND = 3  # digits of a number that somebody may have thought of


def declared(bounds: Any, columns: int, name: str = "bounds") -> Ends:
    """Read (low, high), each a number or one for each column.

    >>> declared((0, [1, 10]), 2)
    (array([0., 0.]), array([ 1., 10.]))
    """
    example = f"such as {name}=(0, 100) or {name}=([0, -5], [100, 5])"
    if bounds is None or isinstance(bounds, str):
        raise ValueError(f"{name}: declare (low, high) from what is known without the data, {example}")
    if isinstance(bounds, list) and all(isinstance(each, tuple) and len(each) == 2 for each in bounds):
        raise ValueError(
            f"{name}: a list of pairs can be read in two ways; write all lower ends and then all upper, {example}"
        )
    try:
        low, high = (np.array(np.broadcast_to(np.asarray(end, np.float64), (columns,))) for end in bounds)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be (low, high), each a number or {columns} numbers, {example}") from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise ValueError(f"{name}: every end must be finite, and low below high, {example}")
    return low, high


def check_not_from_data(numbers: np.ndarray, low: np.ndarray, high: np.ndarray, name: str = "bounds") -> None:
    """Stop if ranges are the very extremes of the data: those are somebody's values, not anybody's declaration."""
    if not len(numbers):
        return
    least, largest = numbers.min(axis=0), numbers.max(axis=0)
    each = (low == least).all() and (high == largest).all()
    overall = (low == least.min()).all() and (high == largest.max()).all()
    if (each or overall) and not all(_is_round(end) for end in (*low, *high)):
        raise ValueError(
            f"{name}: these are the least and the largest values of the data, which belong to single people. Declare "
            "ranges from what is known without the data; rounded outwards they cost little."
        )


def _is_round(number: float) -> bool:
    return number == float(f"{number:.{_ROUND}g}")
