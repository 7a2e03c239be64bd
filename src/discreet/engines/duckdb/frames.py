"""Tables given as objects: pandas, polars, and anything with Arrow's interface.

Columns are converted to Arrow arrays that DuckDB can read whatever they contain. A column of Python objects is read as
text, each value as Python formats it; objects other than numbers, texts, dates, times and UUIDs become NULL.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from numbers import Integral, Real
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.arrow_columns import decode_column
from discreet.engines.table_source import SourceColumn, SourcePart, source_error
from discreet.kernel.errors import PolicyError
from discreet.kernel.sqlgen.dialect import quote_name

_MAX_INTEGER_BITS = 4000  # Python refuses to format much larger integers, and no column type holds them
_MAX_EPOCH_SECONDS = 253_500_000_000  # in the year 10003; its negative is in the year -6063
_READABLE_TYPES = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_null,
)


def open_frame(connection: duckdb.DuckDBPyConnection, table: str, frame: object, wanted: Collection[str]) -> SourcePart:
    """Register the wanted columns of a frame, or all of them if `wanted` is empty, so that they can be copied."""
    try:
        names, columns = _frame_columns(table, frame, {name.lower() for name in wanted})
    except PolicyError:
        raise
    except Exception:  # noqa: BLE001 - a library's message may quote values of the table
        raise source_error(table, "the object cannot be read as a table. Check that it is a complete table.") from None
    arrays: dict[int, pa.ChunkedArray] = {}
    unreadable_types: dict[int, str] = {}
    for index, column in columns.items():
        try:
            arrays[index] = _readable_column(_to_arrow(column))
        except Exception:  # noqa: BLE001 - as above
            unreadable_types[index] = type(getattr(column, "dtype", getattr(column, "type", column))).__name__
    arrow_table = pa.table(list(arrays.values()), names=[f"c{index}" for index in arrays])
    part = register_arrow(connection, arrow_table, [names[index] for index in arrays]) if arrays else SourcePart("", ())
    registered = dict(zip(arrays, part.columns, strict=True))
    unregistered = (SourceColumn(name, "", unreadable_types.get(index, "")) for index, name in enumerate(names))
    return replace(part, columns=tuple(registered.get(index, other) for index, other in enumerate(unregistered)))


def open_parquet(connection: duckdb.DuckDBPyConnection, path: str, names: Sequence[str]) -> SourcePart:
    """Register columns of a Parquet file that DuckDB itself may fail to read, so that they can be copied."""
    from pyarrow import parquet as pq  # noqa: PLC0415 - slow to import, and rarely needed

    file = pq.ParquetFile(path)
    empty = _readable_table(file.schema_arrow.empty_table().select(names))

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in file.iter_batches(columns=list(names)):
            yield from _readable_table(pa.Table.from_batches([batch]).select(names)).to_batches()

    return register_arrow(connection, pa.RecordBatchReader.from_batches(empty.schema, batches()), names)


def register_arrow(
    connection: duckdb.DuckDBPyConnection, rows: pa.Table | pa.RecordBatchReader, names: Sequence[str]
) -> SourcePart:
    """Register Arrow data with DuckDB under a name that no table has."""
    name = f".frame{id(rows)}"
    connection.register(name, rows)
    column_rows = connection.execute(f"DESCRIBE {quote_name(name)}").fetchall()
    columns = tuple(
        SourceColumn(column, quote_name(alias), native)
        for column, (alias, native, *_) in zip(names, column_rows, strict=True)
    )
    return SourcePart(quote_name(name), columns, frame_name=name)


def _frame_columns(table: str, frame: Any, wanted: Collection[str]) -> tuple[list[str], dict[int, Any]]:
    """Return the names of all columns, and the wanted columns by index."""
    libraries = {base.__module__.partition(".")[0] for base in type(frame).__mro__}
    if "pandas" in libraries and hasattr(frame, "columns"):
        names = [str(name) for name in frame.columns]
        return names, {index: frame.iloc[:, index] for index in _wanted_indices(names, wanted)}
    if "polars" in libraries and hasattr(frame, "collect_schema"):
        names = frame.collect_schema().names()
        indices = _wanted_indices(names, wanted)
        selected = frame.lazy().select([names[index] for index in indices]).collect()
        return names, {index: selected.get_column(names[index]) for index in indices}
    if hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__"):
        rows = pa.table(frame)
        return rows.column_names, {index: rows.column(index) for index in _wanted_indices(rows.column_names, wanted)}
    message = f"{type(frame).__name__} is not a table. Pass a path, or a pandas, polars or Arrow table."
    raise source_error(table, message)


def _wanted_indices(names: Sequence[str], wanted: Collection[str]) -> list[int]:
    return [index for index, name in enumerate(names) if not wanted or name.lower() in wanted]


def _to_arrow(column: Any) -> pa.ChunkedArray:
    """Convert a column to Arrow; pandas' categories become their values, and objects become text."""
    if isinstance(column, pa.ChunkedArray):
        return column
    if hasattr(column, "cat") and hasattr(column.cat, "codes"):
        codes = column.cat.codes.to_numpy()
        return _to_arrow(column.cat.categories.to_series()).take(pa.array(codes, mask=codes < 0))
    if str(column.dtype) == "object":
        return pa.chunked_array([pa.array([_object_as_text(value) for value in column], pa.large_string())])
    if hasattr(column, "__arrow_c_stream__"):
        return pa.chunked_array(column)
    array = pa.array(column, from_pandas=True)
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _object_as_text(value: object) -> str | None:
    """Return an object as text; None if it is missing or of an unsupported type."""
    text: str | None = None
    match value:
        case str():
            text = value.encode(errors="replace").decode()  # lone surrogates are not valid UTF-8
        case bool() | np.bool_():
            text = str(value).lower()
        case Integral() if int(value).bit_length() <= _MAX_INTEGER_BITS:
            text = str(int(value))
        case Decimal() if value.is_finite():
            text = str(value)
        case Real() if not isinstance(value, Integral) and math.isfinite(value):
            text = repr(float(value))
        case date() if value == value:  # noqa: PLR0124 - pandas' NaT is a date that does not equal itself
            text = value.isoformat()
        case UUID():
            text = str(value)
    return text


def _readable_table(rows: pa.Table) -> pa.Table:
    return pa.table([_readable_column(column) for column in rows.columns], names=rows.column_names)


def _readable_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a column to a type that DuckDB reads whatever it contains; TypeError if there is none."""
    if isinstance(column.type, pa.BaseExtensionType) and column.type.extension_name == "arrow.uuid":
        return column
    column = decode_column(column)
    kind = column.type
    if not any(check(kind) for check in _READABLE_TYPES):
        raise TypeError(str(kind))
    if pa.types.is_float16(kind) or pa.types.is_decimal256(kind) or (pa.types.is_decimal(kind) and kind.scale < 0):
        return column.cast(pa.float64())
    if pa.types.is_date64(kind) or (pa.types.is_timestamp(kind) and kind.unit in ("s", "ms")):
        return _to_microseconds(column.cast(pa.timestamp("ms")) if pa.types.is_date64(kind) else column)
    return _valid_utf8(column)


def _to_microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert to microseconds; timestamps far beyond the year 9999, which would overflow 64 bits, become NULL."""
    limit = _MAX_EPOCH_SECONDS * (1 if column.type.unit == "s" else 1000)
    number = column.cast(pa.int64())
    in_range = pc.and_(pc.greater(number, -limit), pc.less(number, limit))
    return pc.if_else(in_range, column, pa.scalar(None, column.type)).cast(pa.timestamp("us", column.type.tz))


def _valid_utf8(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Replace invalid UTF-8, which Arrow does not check and on which DuckDB fails."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        raw = column.cast(pa.large_binary()).to_pylist()
        repaired = [None if value is None else value.decode(errors="replace") for value in raw]
        return pa.chunked_array([pa.array(repaired, column.type)])
    return column
