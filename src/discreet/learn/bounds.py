"""Ranges that are declared: known without the data, because a range that is taken from them tells of single people."""

from typing import Any

import numpy as np

BoundArrays = tuple[np.ndarray, np.ndarray]
_ROUND_DIGITS = 3  # digits of a number that somebody may have thought of


def parse_bounds(bounds: Any, n_columns: int, name: str = "bounds") -> BoundArrays:
    """Read (low, high), each a number or one for each column.

    >>> parse_bounds((0, [1, 10]), 2)
    (array([0., 0.]), array([ 1., 10.]))
    """
    example = f"such as {name}=(0, 100) or {name}=([0, -5], [100, 5])"
    if bounds is None or isinstance(bounds, str):
        raise ValueError(f"{name}: declare (low, high) from what is known without the data, {example}")
    if isinstance(bounds, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in bounds):
        raise ValueError(
            f"{name}: a list of pairs can be read in two ways; write all lower ends and then all upper, {example}"
        )
    try:
        low, high = (np.array(np.broadcast_to(np.asarray(end, np.float64), (n_columns,))) for end in bounds)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be (low, high), each a number or {n_columns} numbers, {example}") from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise ValueError(f"{name}: every end must be finite, and low below high, {example}")
    return low, high


def check_bounds_not_from_data(values: np.ndarray, low: np.ndarray, high: np.ndarray, name: str = "bounds") -> None:
    """Stop if ranges are the very extremes of the data: those are somebody's values, not anybody's declaration."""
    if not len(values):
        return
    smallest, largest = values.min(axis=0), values.max(axis=0)
    per_column = (low == smallest).all() and (high == largest).all()
    overall = (low == smallest.min()).all() and (high == largest.max()).all()
    if (per_column or overall) and not all(_is_round(end) for end in (*low, *high)):
        raise ValueError(
            f"{name}: these are the least and the largest values of the data, which belong to single people. Declare "
            "ranges from what is known without the data; rounded outwards they cost little."
        )


def _is_round(number: float) -> bool:
    return number == float(f"{number:.{_ROUND_DIGITS}g}")
