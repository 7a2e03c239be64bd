"""What every attack checks at its boundaries: tables, numbers, seeds and files that others give it."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa


def generator(random_state: int | None) -> np.random.Generator:
    """Return the source of an attack's own chances.

    >>> int(generator(1).integers(10))
    4
    >>> generator(-1)
    Traceback (most recent call last):
        ...
    ValueError: random_state must be None or a whole number from 0, not -1
    """
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise ValueError(f"random_state must be None or a whole number from 0, not {random_state!r:.40}")
    return np.random.default_rng(int(random_state))


def numbers(value: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """Return finite numbers of this shape, or say what must have returned them; -1 in a shape is any size.

    >>> numbers([1, 2], (2,), "the defence").tolist()
    [1.0, 2.0]
    >>> numbers("much", (), "the defence")
    Traceback (most recent call last):
        ...
    TypeError: the defence must return a number, not str
    """
    wanted = " by ".join("any number" if size < 0 else f"{size:,}" for size in shape)
    words = f"an array of numbers, {wanted}" if shape else "a number"
    wrong = f"{what} must return {words}, not {type(value).__name__}"
    if value is None or isinstance(value, str):
        raise TypeError(wrong)
    try:
        found = np.asarray(value, float)
    except (TypeError, ValueError):
        raise TypeError(wrong) from None
    if found.ndim != len(shape) or any(has != size >= 0 for has, size in zip(found.shape, shape, strict=True)):
        raise ValueError(f"{what} must return {words}, not an array of shape {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError(f"{what} must return {words}, without NaN and infinities")
    return found


def arrow_table(thing: Any, what: str) -> pa.Table:
    """Return a table of Arrow, pandas or polars, or a dict of columns, as Arrow; texts of every kind are plain texts.

    >>> arrow_table({"zip": ["02139"], "age": [30]}, "table").column_names
    ['zip', 'age']
    >>> arrow_table(5, "table")
    Traceback (most recent call last):
        ...
    TypeError: table must be a table of Arrow, pandas or polars, or a dict of columns, not int
    """
    is_stream = hasattr(thing, "__arrow_c_stream__")  # pandas, polars, and others
    if not isinstance(thing, dict | pa.Table) and not is_stream:
        raise TypeError(
            f"{what} must be a table of Arrow, pandas or polars, or a dict of columns, not {type(thing).__name__}"
        )
    try:
        table = pa.table(thing)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ValueError(f"{what} must have columns of one length and of one kind of value each ({error})") from None
    names = [name for name in table.column_names if not name.startswith("__index_level_")]
    if len(set(names)) < len(names):
        raise ValueError(f"{what} must have no two columns of the same name")
    return pa.table({name: _plain(table[name]) for name in names})


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return categories and texts of every kind as plain texts."""
    if pa.types.is_dictionary(column.type):
        texts = column.type.value_type
        chunks = [
            pa.DictionaryArray.from_arrays(chunk.indices, _plain_array(chunk.dictionary)).dictionary_decode()
            for chunk in column.chunks
        ]
        return pa.chunked_array(chunks, type=_plain_type(texts))
    return column.cast(_plain_type(column.type))


def _plain_array(values: pa.Array) -> pa.Array:
    return values.cast(_plain_type(values.type))


def _plain_type(stored: pa.DataType) -> pa.DataType:
    is_text = pa.types.is_large_string(stored) or pa.types.is_string_view(stored)
    return pa.string() if is_text else stored


def file_in(folder: Any, name: str) -> Path:
    """Return the path of a file of real data.

    >>> file_in("nowhere", "adult.parquet")
    Traceback (most recent call last):
        ...
    FileNotFoundError: adult.parquet is not in nowhere: name the folder that has it
    """
    path = Path(folder) / name
    if not path.exists():
        raise FileNotFoundError(f"{name} is not in {folder}: name the folder that has it")
    return path
