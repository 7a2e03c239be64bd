"""What the records and defences of these attacks are checked for, and how a column of whole numbers is declared."""

from typing import Any

import numpy as np

from discreet.attacks.checking import numbers


def array(value: Any) -> np.ndarray:
    """Return an array; of what is none, an object, which no check for numbers lets pass.

    >>> array([[1, 2]]).shape, array([[1], [1, 2]]).dtype.kind
    ((1, 2), 'O')
    """
    try:
        return np.asarray(value)
    except ValueError:  # rows of several lengths
        return np.array(None)


def zeros_and_ones(value: Any, what: str) -> np.ndarray:
    """Return an array of truth values, given as such or as zeros and ones.

    >>> zeros_and_ones([1, 0.0], "bits").tolist()
    [True, False]
    >>> zeros_and_ones(["1", "0"], "bits")
    Traceback (most recent call last):
        ...
    ValueError: bits must be zeros and ones
    """
    found = array(value)
    if found.dtype.kind not in "biuf" or not np.isin(found, (0, 1)).all():
        raise ValueError(f"{what} must be zeros and ones")
    return found.astype(bool)


def real(value: Any, what: str) -> np.ndarray:
    """Return an array of finite numbers.

    >>> real("many", "rates")
    Traceback (most recent call last):
        ...
    TypeError: rates must be numbers, not str
    """
    try:
        found = np.asarray(value, float)
    except (TypeError, ValueError):
        raise TypeError(f"{what} must be numbers, not {type(value).__name__}") from None
    if not np.isfinite(found).all():
        raise ValueError(f"{what} must be numbers without NaN and infinities")
    return found


def numbers_or_gaps(value: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """Return what a defence published, of this shape; NaN is where it published nothing.

    >>> numbers_or_gaps([0.5, np.nan], (2,), "the defence").tolist()
    [0.5, nan]
    """
    try:
        found = np.asarray(value, float)
    except (TypeError, ValueError):
        return numbers(value, shape, what)  # which says what is wrong with it
    numbers(np.where(np.isnan(found), 0, found), shape, what)
    return found


def below(size: int) -> tuple[int, int] | list[int]:
    """Return how the curator is told of a column with whole numbers from 0 to below a size.

    >>> below(3), below(1)
    ((0, 2), [0])
    """
    return (0, size - 1) if size > 1 else [0]
