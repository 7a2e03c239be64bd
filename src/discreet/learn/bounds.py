"""Declared bounds: they come from public knowledge, because bounds taken from the data disclose individual values."""

from typing import Any

import numpy as np

BoundArrays = tuple[np.ndarray, np.ndarray]
_SMALLEST, _LARGEST = 1e-60, 1e60  # of widths and of bounds: products of four numbers in between are finite doubles
_ROUND_DIGITS = 3  # significant digits up to which a number counts as declared by hand


def parse_bounds(bounds: Any, n_columns: int, name: str = "bounds") -> BoundArrays:
    """Return lower and upper bounds as arrays, from (low, high) with one number or one per column.

    >>> parse_bounds((0, [1, 10]), 2)
    (array([0., 0.]), array([ 1., 10.]))
    """
    example = f"such as {name}=(0, 100) or {name}=([0, -5], [100, 5])"
    if bounds is None or isinstance(bounds, str):
        raise ValueError(f"{name}: declare (low, high) from public knowledge, not from the data, {example}")
    if isinstance(bounds, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in bounds):
        raise ValueError(
            f"{name}: a list of pairs is ambiguous; give all lower bounds, then all upper bounds, {example}"
        )
    try:
        low, high = (np.array(np.broadcast_to(np.asarray(end, np.float64), (n_columns,))) for end in bounds)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be (low, high), where each is one number or {n_columns} numbers, {example}"
        ) from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise ValueError(f"{name}: all bounds must be finite, with low < high, {example}")
    if np.maximum(-low, high).max(initial=0) > _LARGEST or (high - low).min(initial=1) < _SMALLEST:
        raise ValueError(
            f"{name}: bounds must be at most {_LARGEST:g} in size, and {_SMALLEST:g} apart. Use another unit, {example}"
        )
    return low, high


def check_bounds_not_from_data(values: np.ndarray, low: np.ndarray, high: np.ndarray, name: str = "bounds") -> None:
    """Raise ValueError if the bounds are exactly the minimum and maximum of the data."""
    if not len(values):
        return
    smallest, largest = values.min(axis=0), values.max(axis=0)
    per_column = (low == smallest).all() and (high == largest).all()
    overall = (low == smallest.min()).all() and (high == largest.max()).all()
    if (per_column or overall) and not all(_is_round(end) for end in (*low, *high)):
        raise ValueError(
            f"{name}: these are the minimum and maximum of the data, which are individual people's values. Declare "
            "bounds from public knowledge; rounding them outwards costs little accuracy."
        )


def _is_round(number: float) -> bool:
    return number == float(f"{number:.{_ROUND_DIGITS}g}")
