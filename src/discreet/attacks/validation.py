"""Validate what users and their defences give: tables, arrays, class labels, bounds, seeds and files."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa


def random_generator(random_state: int | None) -> np.random.Generator:
    """Return the source of an attack's own chances.

    >>> int(random_generator(1).integers(10))
    4
    >>> random_generator(-1)
    Traceback (most recent call last):
        ...
    ValueError: random_state must be None or a whole number from 0, not -1
    """
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise ValueError(f"random_state must be None or a whole number from 0, not {random_state!r:.40}")
    return np.random.default_rng(int(random_state))


def finite_array(value: Any, shape: tuple[int, ...], returned_by: str) -> np.ndarray:
    """Return finite numbers of this shape, or say what must have returned them; -1 in a shape is any size.

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
        raise ValueError(f"{returned_by} must return {expected}, without NaN and infinities")
    return array


def arrow_table(value: Any, argument: str) -> pa.Table:
    """Return a table of Arrow, pandas or polars, or a dict of columns, as Arrow; texts of every kind are plain texts.

    >>> arrow_table({"zip": ["02139"], "age": [30]}, "table").column_names
    ['zip', 'age']
    >>> arrow_table(5, "table")
    Traceback (most recent call last):
        ...
    TypeError: table must be a table of Arrow, pandas or polars, or a dict of columns, not int
    """
    is_stream = hasattr(value, "__arrow_c_stream__")  # pandas, polars, and others
    if not isinstance(value, dict | pa.Table) and not is_stream:
        raise TypeError(
            f"{argument} must be a table of Arrow, pandas or polars, or a dict of columns, not {type(value).__name__}"
        )
    try:
        table = pa.table(value)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ValueError(
            f"{argument} must have columns of one length and of one kind of value each ({error})"
        ) from None
    columns = [name for name in table.column_names if not name.startswith("__index_level_")]
    if len(set(columns)) < len(columns):
        raise ValueError(f"{argument} must have no two columns of the same name")
    return pa.table({name: _with_plain_texts(table[name]) for name in columns})


def _with_plain_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return categories and texts of every kind as plain texts."""
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
    """Return the path of a file of real data.

    >>> data_file("nowhere", "adult.parquet")
    Traceback (most recent call last):
        ...
    FileNotFoundError: adult.parquet is not in nowhere: name the folder that has it
    """
    path = Path(folder) / name
    if not path.exists():
        raise FileNotFoundError(f"{name} is not in {folder}: name the folder that has it")
    return path


def array_or_object(value: Any) -> np.ndarray:
    """Return an array; of what is none, an object, which no check for numbers lets pass.

    >>> array_or_object([[1, 2]]).shape, array_or_object([[1], [1, 2]]).dtype.kind
    ((1, 2), 'O')
    """
    try:
        return np.asarray(value)
    except ValueError:  # rows of several lengths
        return np.array(None)


def boolean_array(value: Any, name: str) -> np.ndarray:
    """Return an array of truth values, given as such or as zeros and ones.

    >>> boolean_array([1, 0.0], "bits").tolist()
    [True, False]
    >>> boolean_array(["1", "0"], "bits")
    Traceback (most recent call last):
        ...
    ValueError: bits must be zeros and ones
    """
    bits = array_or_object(value)
    if bits.dtype.kind not in "biuf" or not np.isin(bits, (0, 1)).all():
        raise ValueError(f"{name} must be zeros and ones")
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
        raise ValueError(f"{name} must be numbers without NaN and infinities")
    return array


def array_with_gaps(value: Any, shape: tuple[int, ...], returned_by: str) -> np.ndarray:
    """Return what a defence published, of this shape; NaN is where it published nothing.

    >>> array_with_gaps([0.5, np.nan], (2,), "the defence").tolist()
    [0.5, nan]
    """
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        return finite_array(value, shape, returned_by)  # which says what is wrong with it
    finite_array(np.where(np.isnan(array), 0, array), shape, returned_by)
    return array


def integer_domain(size: int) -> tuple[int, int] | list[int]:
    """Return how the curator is told of a column with whole numbers from 0 to below a size.

    >>> integer_domain(3), integer_domain(1)
    ((0, 2), [0])
    """
    return (0, size - 1) if size > 1 else [0]


def float_array(value: Any, name: str) -> np.ndarray:
    """Return an array of numbers, or say what is not one.

    >>> float_array(["ten"], "dose")
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


def float_matrix(value: Any, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return rows of numbers, and the names of their columns if a table was given.

    >>> float_matrix({"age": [30, 40], "smokes": [0, 1]}, "X")
    (array([[30.,  0.],
           [40.,  1.]]), ('age', 'smokes'))
    >>> float_matrix([[30, "nurse"]], "X")
    Traceback (most recent call last):
        ...
    ValueError: X, column 1, must be an array of numbers: code texts as whole numbers, as pandas.factorize does
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
    """Return one entry for each person, of whatever kind."""
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must have one entry for each row") from None


def class_codes(value: Any, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return classes as whole numbers from 0; texts and truths get the places of their names, which are returned too.

    >>> class_codes(["yes", "no", "yes"], "y")
    (array([1, 0, 1]), ('no', 'yes'))
    """
    labels = entry_array(value, name)
    if labels.dtype.kind == "O" and all(isinstance(each, int | np.integer) for each in labels.ravel()):
        labels = labels.astype(np.int64)
    if labels.dtype.kind in "iu":
        if labels.size and labels.min() < 0:
            raise ValueError(f"{name} must have the classes as whole numbers from 0, or as texts")
        return labels.astype(np.int64), ()
    are_texts = labels.dtype.kind in "OUSbT" and all(
        isinstance(each, str | bytes | bool | np.bool_) for each in labels.flat
    )
    if not are_texts:
        raise ValueError(f"{name} must have the classes as whole numbers from 0, or as texts, without gaps")
    names, indices = np.unique(labels.astype(str), return_inverse=True)
    return indices.reshape(labels.shape).astype(np.int64), tuple(names.tolist())


def column_bounds(bounds: Any, width: int, name: str = "bounds") -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and the highest value of each column.

    >>> column_bounds((0, 9), 2)[1].tolist()
    [9.0, 9.0]
    """
    per_column = f" for each of the {width} columns" if width > 1 else ""
    message = f"{name} must be a lowest and a higher highest value{per_column}: say {name}=(low, high)"
    try:
        low, high = (np.broadcast_to(np.asarray(end, float), width) for end in bounds)
    except (TypeError, ValueError):
        raise ValueError(message) from None
    if not (low < high).all():
        raise ValueError(message)
    return low, high
