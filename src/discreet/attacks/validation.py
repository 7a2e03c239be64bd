"""Validate input from users and their defences: tables, arrays, class labels, bounds, seeds and files."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa


def random_generator(random_state: int | None) -> np.random.Generator:
    """Return the random generator of an attack.

    >>> int(random_generator(1).integers(10))
    4
    >>> random_generator(-1)
    Traceback (most recent call last):
        ...
    ValueError: random_state must be None or a non-negative integer, not -1
    """
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise ValueError(f"random_state must be None or a non-negative integer, not {random_state!r:.40}")
    return np.random.default_rng(int(random_state))


def finite_array(value: Any, shape: tuple[int, ...], returned_by: str) -> np.ndarray:
    """Return an array of finite numbers of this shape, or raise; -1 in the shape stands for any size.

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
    if array.ndim != len(shape) or any(has != size >= 0 for has, size in zip(array.shape, shape, strict=True)):
        raise ValueError(f"{returned_by} must return {expected}, not an array of shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{returned_by} must return {expected}, without NaN or infinity")
    return array


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
    if len(set(columns)) < len(columns):
        raise ValueError(f"{argument} must not have two columns with the same name")
    return pa.table({name: _with_plain_texts(table[name]) for name in columns})


def _with_plain_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return categories, large strings and string views as plain strings."""
    if pa.types.is_dictionary(column.type):
        value_type = column.type.value_type
        chunks = [
            pa.DictionaryArray.from_arrays(chunk.indices, _with_plain_text_values(chunk.dictionary)).dictionary_decode()
            for chunk in column.chunks
        ]
        return pa.chunked_array(chunks, type=_plain_text_type(value_type))
    return column.cast(_plain_text_type(column.type))


def _with_plain_text_values(values: pa.Array) -> pa.Array:
    return values.cast(_plain_text_type(values.type))


def _plain_text_type(stored: pa.DataType) -> pa.DataType:
    is_text = pa.types.is_large_string(stored) or pa.types.is_string_view(stored)
    return pa.string() if is_text else stored


def data_file(folder: Any, name: str) -> Path:
    """Return the path of a data file, or raise if it is missing.

    >>> data_file("nowhere", "adult.parquet")
    Traceback (most recent call last):
        ...
    FileNotFoundError: there is no adult.parquet in nowhere: give the folder that contains it
    """
    path = Path(folder) / name
    if not path.exists():
        raise FileNotFoundError(f"there is no {name} in {folder}: give the folder that contains it")
    return path


def array_or_object(value: Any) -> np.ndarray:
    """Return an array; for ragged input an object array, which fails every check for numbers.

    >>> array_or_object([[1, 2]]).shape, array_or_object([[1], [1, 2]]).dtype.kind
    ((1, 2), 'O')
    """
    try:
        return np.asarray(value)
    except ValueError:  # rows of several lengths
        return np.array(None)


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
    if bits.dtype.kind not in "biuf" or not np.isin(bits, (0, 1)).all():
        raise ValueError(f"{name} must consist of zeros and ones")
    return bits.astype(bool)


def real_array(value: Any, name: str) -> np.ndarray:
    """Return an array of finite numbers.

    >>> real_array("many", "rates")
    Traceback (most recent call last):
        ...
    TypeError: rates must be numbers, not str
    """
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numbers, not {type(value).__name__}") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be numbers without NaN or infinity")
    return array


def array_with_gaps(value: Any, shape: tuple[int, ...], returned_by: str) -> np.ndarray:
    """Return an array of this shape that a defence published; NaN marks values that it withheld.

    >>> array_with_gaps([0.5, np.nan], (2,), "the defence").tolist()
    [0.5, nan]
    """
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        return finite_array(value, shape, returned_by)  # raises with the right message
    finite_array(np.where(np.isnan(array), 0, array), shape, returned_by)
    return array


def integer_domain(size: int) -> tuple[int, int] | list[int]:
    """Return the column declaration for integers from 0 to size - 1.

    >>> integer_domain(3), integer_domain(1)
    ((0, 2), [0])
    """
    return (0, size - 1) if size > 1 else [0]


def float_array(value: Any, name: str) -> np.ndarray:
    """Return a float array, or raise.

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


def entry_array(value: Any, name: str) -> np.ndarray:
    """Return an array of any type with one entry per row, or raise."""
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must have one entry per row") from None


def class_codes(value: Any, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return class labels as integers from 0, and the names of the classes if they were texts or booleans.

    >>> class_codes(["yes", "no", "yes"], "y")
    (array([1, 0, 1]), ('no', 'yes'))
    """
    labels = entry_array(value, name)
    if labels.dtype.kind == "O" and all(isinstance(each, int | np.integer) for each in labels.ravel()):
        labels = labels.astype(np.int64)
    if labels.dtype.kind in "iu":
        if labels.size and labels.min() < 0:
            raise ValueError(f"{name} must be class labels: non-negative integers, or texts")
        return labels.astype(np.int64), ()
    are_texts = labels.dtype.kind in "OUSbT" and all(
        isinstance(each, str | bytes | bool | np.bool_) for each in labels.flat
    )
    if not are_texts:
        raise ValueError(f"{name} must be class labels without gaps: non-negative integers, or texts")
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
    if not (low < high).all():
        raise ValueError(message)
    return low, high
