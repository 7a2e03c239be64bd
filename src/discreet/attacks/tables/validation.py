"""Validate lists of texts, integers and ids, and the return values of defences; read tables from a folder."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.attacks.validation import data_file


def text_list(value: Any, name: str) -> list[str]:
    """Return a list of texts; a single text becomes a list, and integers become texts.

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
        raise TypeError(f"{name} must be a list of texts, but contains a {type(invalid[0]).__name__}")
    return list(map(str, items))


def integer_array(value: Any, name: str) -> np.ndarray:
    """Return an integer array.

    >>> integer_array([1, 0], "who").tolist()
    [1, 0]
    >>> integer_array([0.5], "who")
    Traceback (most recent call last):
        ...
    TypeError: who must be an array of integers
    """
    array = _array_or_none(value)
    if array is None or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(f"{name} must be an array of integers")
    return array.astype(np.int64)


def finite_number_array(value: Any, name: str) -> np.ndarray:
    """Return an array of finite numbers.

    >>> finite_number_array([4, float("nan")], "stars")
    Traceback (most recent call last):
        ...
    ValueError: stars must not contain missing values, NaN or infinity. Leave those ratings out.
    """
    array = _array_or_none(value)
    if array is None or array.dtype.kind not in "iufO":
        raise TypeError(f"{name} must be a list of numbers")
    try:
        numbers = array.astype(float)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a list of numbers") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must not contain missing values, NaN or infinity. Leave those ratings out.")
    return numbers


def id_array(value: Any, name: str) -> np.ndarray:
    """Return an array of ids, either all integers or all texts.

    >>> id_array(["ana", "bob"], "user").tolist(), id_array([7, 5], "user").tolist()
    (['ana', 'bob'], [7, 5])
    >>> id_array([None, 5], "user")
    Traceback (most recent call last):
        ...
    TypeError: user must be a list of ids, either all integers or all texts
    """
    array = _array_or_none(value)
    if array is not None and array.dtype.kind in "iu":
        return array.astype(np.int64)
    if array is not None and all(isinstance(each, str) for each in array.ravel().tolist()):
        return array.astype(str)
    raise TypeError(f"{name} must be a list of ids, either all integers or all texts")


def positions_of_ids(ids: np.ndarray, sorted_ids: np.ndarray) -> np.ndarray | None:
    """Return the positions of these ids among sorted ids, or None if one is missing.

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
    """Return the defence's return value if it is a function, else None.

    >>> count_oracle_or_none(dict)
    Traceback (most recent call last):
        ...
    TypeError: the defence returned the class dict, not an instance. Return a table, codes, or a function that answers \
counts.
    """
    if isinstance(returned, type):
        raise TypeError(
            f"the defence returned the class {returned.__name__}, not an instance. Return a table, codes, or a "
            "function that answers counts."
        )
    return returned if callable(returned) else None


def _array_or_none(value: Any) -> np.ndarray | None:
    try:
        return np.asarray(value)
    except (TypeError, ValueError):  # rows of different lengths
        return None


def read_data_table(folder: Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file from a folder, or raise if it is missing.

    >>> read_data_table(Path("nowhere"), "adult.parquet")
    Traceback (most recent call last):
        ...
    FileNotFoundError: there is no adult.parquet in nowhere: give the folder that contains it
    """
    return pq.read_table(data_file(folder, name), columns=None if columns is None else list(columns))
