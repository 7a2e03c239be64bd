"""Validate the input of users and what their defences return: tables, arrays, class labels, bounds, seeds and files."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.arrow_columns import decode_column

Seed = int | np.random.Generator | None


def random_generator(random_state: Seed) -> np.random.Generator:
    """Return the random generator of an attack; a generator is returned as it is.

    >>> int(random_generator(1).integers(10))
    4
    >>> random_generator(-1)
    Traceback (most recent call last):
        ...
    ValueError: random_state must be None or a non-negative integer, not -1
    """
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, np.random.Generator):
        return random_state
    require(
        not isinstance(random_state, bool) and isinstance(random_state, int | np.integer) and random_state >= 0,
        f"random_state must be None or a non-negative integer, not {random_state!r:.40}",
    )
    return np.random.default_rng(int(random_state))


def require(condition: Any, problem: str) -> None:
    """Raise an error with this problem unless the condition holds.

    >>> require(2 + 2 == 5, "two and two must be five")
    Traceback (most recent call last):
        ...
    ValueError: two and two must be five
    """
    if not condition:
        raise ValueError(problem)


def require_type(data: Any, expected: type | tuple[type, ...], written: str, name: str = "data") -> Any:
    """Return the data if they have the expected type, else raise and say how they are written.

    >>> require_type([1], dict, "{name: column}")
    Traceback (most recent call last):
        ...
    TypeError: data must be {name: column}, not list
    """
    if not isinstance(data, expected):
        raise TypeError(f"{name} must be {written}, not {type(data).__name__}")
    return data


def set_fields(record: Any, **values: Any) -> None:
    """Store the checked values of a frozen record that is being made."""
    for name, value in values.items():
        object.__setattr__(record, name, value)


def array_or_object(value: Any) -> np.ndarray:
    """Return an array; for ragged input an object array, which fails every check for its type or shape.

    >>> array_or_object([[1, 2]]).shape, array_or_object([[1], [1, 2]]).dtype.kind
    ((1, 2), 'O')
    """
    try:
        return np.asarray(value)
    except (TypeError, ValueError):  # rows of several lengths
        return np.array(None)


def finite_array(value: Any, shape: tuple[int, ...], returned_by: str, *, may_withhold: bool = False) -> np.ndarray:
    """Return an array of finite numbers of this shape, or raise; -1 in the shape stands for any size.

    NaN marks what a defence withheld, if it may.

    >>> finite_array([1, 2], (2,), "the defence").tolist()
    [1.0, 2.0]
    >>> finite_array("much", (), "the defence")
    Traceback (most recent call last):
        ...
    TypeError: the defence must return a number, not str
    """
    size_text = " by ".join("any number" if size < 0 else f"{size:,}" for size in shape)
    expected = f"an array of numbers, {size_text}" if shape else "a number"
    message = f"{returned_by} must return {expected}, not {type(value).__name__}"
    if value is None or isinstance(value, str):
        raise TypeError(message)
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        raise TypeError(message) from None
    require(
        array.ndim == len(shape) and not any(has != size >= 0 for has, size in zip(array.shape, shape, strict=True)),
        f"{returned_by} must return {expected}, not an array of shape {array.shape}",
    )
    require(
        (np.isfinite(array) | (may_withhold & np.isnan(array))).all(),
        f"{returned_by} must return {expected}, without NaN or infinity",
    )
    return array


def float_array(value: Any, name: str) -> np.ndarray:
    """Return a new float array, or raise.

    >>> float_array(["ten"], "dose")
    Traceback (most recent call last):
        ...
    ValueError: dose must be an array of numbers: encode text as integers, for example with pandas.factorize
    """
    try:
        return np.array(value, float)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be an array of numbers: encode text as integers, for example with pandas.factorize"
        ) from None


def real_array(value: Any, name: str) -> np.ndarray:
    """Return an array of finite numbers, or raise.

    >>> real_array([4, float("nan")], "stars")
    Traceback (most recent call last):
        ...
    ValueError: stars must not contain missing values, NaN or infinity. Leave those rows out.
    """
    array = float_array(value, name)
    require(np.isfinite(array).all(), f"{name} must not contain missing values, NaN or infinity. Leave those rows out.")
    return array


def float_matrix(value: Any, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return a float matrix and, if a table was given, the names of its columns.

    >>> float_matrix({"age": [30, 40], "smokes": [0, 1]}, "X")
    (array([[30.,  0.],
           [40.,  1.]]), ('age', 'smokes'))
    >>> float_matrix([[30, "nurse"]], "X")
    Traceback (most recent call last):
        ...
    ValueError: X, column 1, must be an array of numbers: encode text as integers, for example with pandas.factorize
    """
    if isinstance(value, dict | pa.Table) or hasattr(value, "__arrow_c_stream__"):
        table = arrow_table(value, name)
        columns = [float_array(table[each].to_numpy(), f"{name}, column {each!r},") for each in table.column_names]
        return np.column_stack(columns) if columns else np.empty((table.num_rows, 0)), tuple(table.column_names)
    try:
        return np.array(value, float), ()
    except (TypeError, ValueError):
        has_rows = np.iterable(value) and all(map(np.iterable, value))
        for index, column in enumerate(zip(*value, strict=False) if has_rows else ()):
            float_array(column, f"{name}, column {index},")
        return float_array(value, name), ()


def boolean_array(value: Any, name: str) -> np.ndarray:
    """Return a boolean array from booleans or zeros and ones.

    >>> boolean_array([1, 0.0], "bits").tolist()
    [True, False]
    >>> boolean_array(["1", "0"], "bits")
    Traceback (most recent call last):
        ...
    ValueError: bits must consist of zeros and ones
    """
    bits = array_or_object(value)
    require(bits.dtype.kind in "biuf" and np.isin(bits, (0, 1)).all(), f"{name} must consist of zeros and ones")
    return bits.astype(bool)


def integer_array(value: Any, name: str) -> np.ndarray:
    """Return an integer array.

    >>> integer_array([1, 0], "who").tolist()
    [1, 0]
    >>> integer_array([0.5], "who")
    Traceback (most recent call last):
        ...
    TypeError: who must be an array of integers
    """
    array = array_or_object(value)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be an array of integers")
    return array.astype(np.int64)


def id_array(value: Any, name: str) -> np.ndarray:
    """Return an array of ids, either all integers or all texts.

    >>> id_array(["ana", "bob"], "user").tolist(), id_array([7, 5], "user").tolist()
    (['ana', 'bob'], [7, 5])
    >>> id_array([None, 5], "user")
    Traceback (most recent call last):
        ...
    TypeError: user must be a list of ids, either all integers or all texts
    """
    array = array_or_object(value)
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    if not all(isinstance(each, str) for each in array.ravel().tolist()):
        raise TypeError(f"{name} must be a list of ids, either all integers or all texts")
    return array.astype(str)


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


def class_codes(value: Any, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return class labels as integers from 0, and the names of the classes if they were texts or booleans.

    >>> class_codes(["yes", "no", "yes"], "y")
    (array([1, 0, 1]), ('no', 'yes'))
    """
    labels = array_or_object(value)
    if labels.dtype.kind == "O" and all(isinstance(each, int | np.integer) for each in labels.ravel()):
        labels = labels.astype(np.int64)
    if labels.dtype.kind in "iu" and not (labels < 0).any():
        return labels.astype(np.int64), ()
    require(
        labels.dtype.kind in "OUSbT" and all(isinstance(each, str | bytes | bool | np.bool_) for each in labels.flat),
        f"{name} must be class labels without gaps: non-negative integers, or texts",
    )
    names, indices = np.unique(labels.astype(str), return_inverse=True)
    return indices.reshape(labels.shape).astype(np.int64), tuple(names.tolist())


def column_bounds(bounds: Any, width: int, name: str = "bounds") -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and the upper bound of each column.

    >>> column_bounds((0, 9), 2)[1].tolist()
    [9.0, 9.0]
    """
    per_column = f" for each of the {width} columns" if width > 1 else ""
    message = f"{name} must be a lower and an upper bound with low < high{per_column}: write {name}=(low, high)"
    try:
        low, high = (np.broadcast_to(np.asarray(end, float), width) for end in bounds)
    except (TypeError, ValueError):
        raise ValueError(message) from None
    require((low < high).all(), message)
    return low, high


def arrow_table(value: Any, argument: str) -> pa.Table:
    """Return an Arrow, pandas or polars table, or a dict of columns, as an Arrow table with plain text columns.

    >>> arrow_table({"zip": ["02139"], "age": [30]}, "table").column_names
    ['zip', 'age']
    >>> arrow_table(5, "table")
    Traceback (most recent call last):
        ...
    TypeError: table must be an Arrow, pandas or polars table, or a dict of columns, not int
    """
    is_stream = hasattr(value, "__arrow_c_stream__")  # pandas, polars, and others
    if not isinstance(value, dict | pa.Table) and not is_stream:
        raise TypeError(
            f"{argument} must be an Arrow, pandas or polars table, or a dict of columns, not {type(value).__name__}"
        )
    try:
        table = pa.table(value)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ValueError(
            f"{argument} must have columns of equal length, each with values of one type ({error})"
        ) from None
    columns = [name for name in table.column_names if not name.startswith("__index_level_")]
    require(len(set(columns)) >= len(columns), f"{argument} must not have two columns with the same name")
    decoded = {name: decode_column(table[name]) for name in columns}
    return pa.table({
        name: each.cast(pa.string()) if pa.types.is_large_string(each.type) else each for name, each in decoded.items()
    })  # fmt: skip


def require_columns(table: pa.Table, names: Iterable[str], argument: str) -> None:
    """Raise an error unless the table has all of these columns.

    >>> require_columns(pa.table({"age": [30]}), ["zip"], "people")
    Traceback (most recent call last):
        ...
    ValueError: there is no column 'zip' in people; its columns are age
    """
    for name in names:
        known = ", ".join(table.column_names)
        require(name in table.column_names, f"there is no column {name!r} in {argument}; its columns are {known}")


def read_data_table(folder: Any, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file from a folder, or raise if it is missing.

    >>> read_data_table("nowhere", "adult.parquet")
    Traceback (most recent call last):
        ...
    FileNotFoundError: there is no adult.parquet in nowhere: give the folder that contains it
    """
    path = Path(folder) / name
    if not path.exists():
        raise FileNotFoundError(f"there is no {name} in {folder}: give the folder that contains it")
    return pq.read_table(path, columns=None if columns is None else list(columns))


def integer_domain(size: int) -> tuple[int, int] | list[int]:
    """Return the column declaration for integers from 0 to size - 1.

    >>> integer_domain(3), integer_domain(1)
    ((0, 2), [0])
    """
    return (0, size - 1) if size > 1 else [0]
