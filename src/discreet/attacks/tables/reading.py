"""What users give, read or refused: lists of texts, whole numbers, ids, and functions that answer counts."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np


def texts(value: Any, what: str) -> list[str]:
    """Return a list of texts; a single text is a list of one, and whole numbers are read as texts.

    >>> texts("9A99", "forms"), texts([5, "6"], "numbers")
    (['9A99'], ['5', '6'])
    >>> texts(None, "forms")
    Traceback (most recent call last):
        ...
    TypeError: forms must be a list of texts, not NoneType
    """
    if isinstance(value, str):
        return [value]
    entries = value.to_pylist() if hasattr(value, "to_pylist") else value
    if not isinstance(entries, Iterable) or isinstance(entries, bytes | Mapping | np.generic):
        raise TypeError(f"{what} must be a list of texts, not {type(value).__name__}")
    read = list(np.atleast_1d(entries)) if isinstance(entries, np.ndarray) else list(entries)
    wrong = [each for each in read if isinstance(each, bool) or not isinstance(each, str | int | np.integer)]
    if wrong:
        raise TypeError(f"{what} must be a list of texts, and not have a {type(wrong[0]).__name__} in it")
    return list(map(str, read))


def whole_numbers(value: Any, what: str) -> np.ndarray:
    """Return an array of whole numbers.

    >>> whole_numbers([1, 0], "who").tolist()
    [1, 0]
    >>> whole_numbers([0.5], "who")
    Traceback (most recent call last):
        ...
    TypeError: who must have whole numbers only, and as many in each row
    """
    found = _array(value)
    if found is None or (found.size and found.dtype.kind not in "iu"):
        raise TypeError(f"{what} must have whole numbers only, and as many in each row")
    return found.astype(np.int64)


def finite_numbers(value: Any, what: str) -> np.ndarray:
    """Return an array of numbers.

    >>> finite_numbers([4, float("nan")], "stars")
    Traceback (most recent call last):
        ...
    ValueError: stars must have no empty entries, NaN or infinities. Leave those ratings out.
    """
    found = _array(value)
    if found is None or found.dtype.kind not in "iufO":
        raise TypeError(f"{what} must be a list of numbers")
    try:
        made = found.astype(float)
    except (TypeError, ValueError):
        raise TypeError(f"{what} must be a list of numbers") from None
    if not np.isfinite(made).all():
        raise ValueError(f"{what} must have no empty entries, NaN or infinities. Leave those ratings out.")
    return made


def ids(value: Any, what: str) -> np.ndarray:
    """Return ids, all of them whole numbers or all of them texts.

    >>> ids(["ana", "bob"], "user").tolist(), ids([7, 5], "user").tolist()
    (['ana', 'bob'], [7, 5])
    >>> ids([None, 5], "user")
    Traceback (most recent call last):
        ...
    TypeError: user must be a list of ids: all whole numbers, or all texts
    """
    found = _array(value)
    if found is not None and found.dtype.kind in "iu":
        return found.astype(np.int64)
    if found is not None and all(isinstance(each, str) for each in found.ravel().tolist()):
        return found.astype(str)
    raise TypeError(f"{what} must be a list of ids: all whole numbers, or all texts")


def places(wanted: np.ndarray, known: np.ndarray) -> np.ndarray | None:
    """Return where these ids are among sorted ones, or None if one of them is not.

    >>> places(np.array([7, 5]), np.array([5, 6, 7])).tolist()
    [2, 0]
    >>> places(np.array(["7"]), np.array([5, 6, 7])) is None
    True
    """
    if wanted.dtype.kind != known.dtype.kind:
        return None
    found = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return found if bool((known[found] == wanted).all()) else None


def oracle(seen: Any) -> Callable[..., Any] | None:
    """Return what a defence returned if it is a function that answers, None if it is something else.

    >>> oracle(dict)
    Traceback (most recent call last):
        ...
    TypeError: the defence returned the class dict itself. Return a table or codes, or a function that answers counts.
    """
    if isinstance(seen, type):
        raise TypeError(
            f"the defence returned the class {seen.__name__} itself. Return a table or codes, or a function that "
            "answers counts."
        )
    return seen if callable(seen) else None


def _array(value: Any) -> np.ndarray | None:
    try:
        return np.asarray(value)
    except (TypeError, ValueError):  # rows of different lengths
        return None
