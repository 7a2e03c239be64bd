"""Data of the user's own as numbers: rows of columns, classes that may be texts, and what is known of their ends."""

from typing import Any

import numpy as np
import pyarrow as pa

from discreet.attacks.checking import arrow_table


def floats(value: Any, name: str) -> np.ndarray:
    """Return an array of numbers, or say what is not one.

    >>> floats(["ten"], "dose")
    Traceback (most recent call last):
        ...
    ValueError: dose must be an array of numbers: code texts as whole numbers, as pandas.factorize does
    """
    try:
        return np.array(value, float)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be an array of numbers: code texts as whole numbers, as pandas.factorize does"
        ) from None


def matrix(value: Any, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return rows of numbers, and the names of their columns if a table was given.

    >>> matrix({"age": [30, 40], "smokes": [0, 1]}, "X")
    (array([[30.,  0.],
           [40.,  1.]]), ('age', 'smokes'))
    >>> matrix([[30, "nurse"]], "X")
    Traceback (most recent call last):
        ...
    ValueError: X, column 1, must be an array of numbers: code texts as whole numbers, as pandas.factorize does
    """
    if isinstance(value, dict | pa.Table) or hasattr(value, "__arrow_c_stream__"):
        table = arrow_table(value, name)
        columns = [floats(table[each].to_numpy(), f"{name}, column {each!r},") for each in table.column_names]
        return np.column_stack(columns) if columns else np.empty((table.num_rows, 0)), tuple(table.column_names)
    try:
        return np.array(value, float), ()
    except (TypeError, ValueError):
        readable = np.iterable(value) and all(map(np.iterable, value))
        for place, column in enumerate(zip(*value, strict=False) if readable else ()):
            floats(column, f"{name}, column {place},")
        return floats(value, name), ()


def entries(value: Any, name: str) -> np.ndarray:
    """Return one entry for each person, of whatever kind."""
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must have one entry for each row") from None


def codes(value: Any, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return classes as whole numbers from 0; texts and truths get the places of their names, which are returned too.

    >>> codes(["yes", "no", "yes"], "y")
    (array([1, 0, 1]), ('no', 'yes'))
    """
    given = entries(value, name)
    if given.dtype.kind == "O" and all(isinstance(each, int | np.integer) for each in given.ravel()):
        given = given.astype(np.int64)
    if given.dtype.kind in "iu":
        if given.size and given.min() < 0:
            raise ValueError(f"{name} must have the classes as whole numbers from 0, or as texts")
        return given.astype(np.int64), ()
    texts = given.dtype.kind in "OUSbT" and all(isinstance(each, str | bytes | bool | np.bool_) for each in given.flat)
    if not texts:
        raise ValueError(f"{name} must have the classes as whole numbers from 0, or as texts, without gaps")
    names, places = np.unique(given.astype(str), return_inverse=True)
    return places.reshape(given.shape).astype(np.int64), tuple(names.tolist())


def ends(bounds: Any, width: int, name: str = "bounds") -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and the highest value of each column.

    >>> ends((0, 9), 2)[1].tolist()
    [9.0, 9.0]
    """
    each = f" for each of the {width} columns" if width > 1 else ""
    wrong = f"{name} must be a lowest and a higher highest value{each}: say {name}=(low, high)"
    try:
        low, high = (np.broadcast_to(np.asarray(end, float), width) for end in bounds)
    except (TypeError, ValueError):
        raise ValueError(wrong) from None
    if not (low < high).all():
        raise ValueError(wrong)
    return low, high
