"""Validate lists of texts, integers and ids, and what a defence returns; read tables from a folder."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.attacks.validation import data_file


def text_list(value: Any, name: str) -> list[str]:
    """Return a list of texts; a single text is a list of one, and whole numbers are read as texts.

    >>> text_list("9A99", "forms"), text_list([5, "6"], "numbers")
    (['9A99'], ['5', '6'])
    >>> text_list(None, "forms")
    Traceback (most recent call last):
        ...
    TypeError: forms must be a list of texts, not NoneType
    """
    if isinstance(value, str):
        return [value]
    entries = value.to_pylist() if hasattr(value, "to_pylist") else value
    if not isinstance(entries, Iterable) or isinstance(entries, bytes | Mapping | np.generic):
        raise TypeError(f"{name} must be a list of texts, not {type(value).__name__}")
    items = list(np.atleast_1d(entries)) if isinstance(entries, np.ndarray) else list(entries)
    invalid = [each for each in items if isinstance(each, bool) or not isinstance(each, str | int | np.integer)]
    if invalid:
        raise TypeError(f"{name} must be a list of texts, and not have a {type(invalid[0]).__name__} in it")
    return list(map(str, items))


def integer_array(value: Any, name: str) -> np.ndarray:
    """Return an array of whole numbers.

    >>> integer_array([1, 0], "who").tolist()
    [1, 0]
    >>> integer_array([0.5], "who")
    Traceback (most recent call last):
        ...
    TypeError: who must have whole numbers only, and as many in each row
    """
    array = _array_or_none(value)
    if array is None or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(f"{name} must have whole numbers only, and as many in each row")
    return array.astype(np.int64)


def finite_number_array(value: Any, name: str) -> np.ndarray:
    """Return an array of numbers.

    >>> finite_number_array([4, float("nan")], "stars")
    Traceback (most recent call last):
        ...
    ValueError: stars must have no empty entries, NaN or infinities. Leave those ratings out.
    """
    array = _array_or_none(value)
    if array is None or array.dtype.kind not in "iufO":
        raise TypeError(f"{name} must be a list of numbers")
    try:
        numbers = array.astype(float)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a list of numbers") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must have no empty entries, NaN or infinities. Leave those ratings out.")
    return numbers


def id_array(value: Any, name: str) -> np.ndarray:
    """Return ids, all of them whole numbers or all of them texts.

    >>> id_array(["ana", "bob"], "user").tolist(), id_array([7, 5], "user").tolist()
    (['ana', 'bob'], [7, 5])
    >>> id_array([None, 5], "user")
    Traceback (most recent call last):
        ...
    TypeError: user must be a list of ids: all whole numbers, or all texts
    """
    array = _array_or_none(value)
    if array is not None and array.dtype.kind in "iu":
        return array.astype(np.int64)
    if array is not None and all(isinstance(each, str) for each in array.ravel().tolist()):
        return array.astype(str)
    raise TypeError(f"{name} must be a list of ids: all whole numbers, or all texts")


def positions_of_ids(ids: np.ndarray, sorted_ids: np.ndarray) -> np.ndarray | None:
    """Return where these ids are among sorted ones, or None if one of them is not.

    >>> positions_of_ids(np.array([7, 5]), np.array([5, 6, 7])).tolist()
    [2, 0]
    >>> positions_of_ids(np.array(["7"]), np.array([5, 6, 7])) is None
    True
    """
    if ids.dtype.kind != sorted_ids.dtype.kind:
        return None
    positions = np.minimum(np.searchsorted(sorted_ids, ids), len(sorted_ids) - 1)
    return positions if bool((sorted_ids[positions] == ids).all()) else None


def count_oracle_or_none(returned: Any) -> Callable[..., Any] | None:
    """Return what a defence returned if it is a function that answers, None if it is something else.

    >>> count_oracle_or_none(dict)
    Traceback (most recent call last):
        ...
    TypeError: the defence returned the class dict itself. Return a table or codes, or a function that answers counts.
    """
    if isinstance(returned, type):
        raise TypeError(
            f"the defence returned the class {returned.__name__} itself. Return a table or codes, or a function that "
            "answers counts."
        )
    return returned if callable(returned) else None


def _array_or_none(value: Any) -> np.ndarray | None:
    try:
        return np.asarray(value)
    except (TypeError, ValueError):  # rows of different lengths
        return None


def read_data_table(folder: Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a table of a folder, or say what is missing where.

    >>> read_data_table(Path("nowhere"), "adult.parquet")
    Traceback (most recent call last):
        ...
    FileNotFoundError: adult.parquet is not in nowhere: name the folder that has it
    """
    return pq.read_table(data_file(folder, name), columns=None if columns is None else list(columns))
