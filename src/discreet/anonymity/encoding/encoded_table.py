"""Columns as integer codes, and a table with its quasi-identifiers and sensitive columns encoded."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.anonymity.encoding.table_adapters import TableAdapter, adapt_table, resolve_column_names
from discreet.arguments import ArgumentTypeError, require
from discreet.arrow_columns import decode_column

_EXACT_DECIMAL = Context(prec=160)  # enough digits for the exact difference of two 76-digit decimals
_ORDERED_TYPES: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_time,
    pa.types.is_duration,
)
_COMPARABLE_TYPES: tuple[Callable[[pa.DataType], bool], ...] = (
    *_ORDERED_TYPES,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_null,
)


@dataclass(frozen=True, eq=False)
class EncodedColumn:
    """A column's rows as codes 0, 1, ... into its distinct values.

    The values are sorted; null is a separate value, the last. A column `is_ordered` if its values have a distance:
    numbers, dates and times.
    """

    name: str
    codes: np.ndarray
    values: pa.Array
    is_ordered: bool
    null_code: int | None

    @property
    def origin(self) -> int | Decimal:
        """The exact smallest value of an ordered column, from which positions are measured; 0 for floats."""
        kind = self.values.type
        if pa.types.is_floating(kind) or len(self.values) == (self.null_code is not None):
            return 0
        smallest: int | Decimal = _as_numbers(self.values[:1])[0].as_py()
        return smallest

    @property
    def positions(self) -> np.ndarray:
        """The distance of each value of an ordered column from the origin, as float64; NaN for null."""
        numbers = _as_numbers(self.values)
        if pa.types.is_floating(numbers.type):
            return np.asarray(numbers.cast(pa.float64()).to_numpy(zero_copy_only=False))
        positions = np.full(len(numbers), np.nan)
        non_null = numbers.drop_null()
        if pa.types.is_decimal(numbers.type):
            positions[: len(non_null)] = [
                float(_EXACT_DECIMAL.subtract(number, self.origin)) for number in non_null.to_pylist()
            ]
        elif len(non_null):
            # Differences of 64-bit integers are exact in uint64; as floats, some different values would be equal.
            bits = non_null.to_numpy(zero_copy_only=False).astype(np.uint64)
            positions[: len(non_null)] = bits - bits[0]
        return positions


def encode_column(table: TableAdapter | pa.Table, name: str) -> EncodedColumn:
    """Encode the distinct values of a column; NaN counts as null, and -0.0 as 0.0.

    >>> column = encode_column(pa.table({"age": [41, 29, None, 29]}), "age")
    >>> column.codes.tolist(), column.values.to_pylist(), column.is_ordered, column.null_code
    ([1, 0, 2, 0], [29, 41, None], True, 2)
    """
    column = _to_comparable(table.column(name), name)
    first = column.dictionary_encode("encode")
    if not first.num_chunks:
        return EncodedColumn(
            name, np.empty(0, np.int32), pa.array([], column.type), _is_ordered_type(column.type), None
        )
    # Only the few distinct values are sorted, and the codes of the many rows are mapped.
    second = _normalise_floats(first.chunk(0).dictionary).dictionary_encode("encode")
    order = pc.sort_indices(second.dictionary)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    codes = rank[np.asarray(second.indices)][np.concatenate([np.asarray(chunk.indices) for chunk in first.chunks])]
    values = second.dictionary.take(order)
    null_code = len(values) - 1 if values.null_count else None
    return EncodedColumn(name, codes, values, _is_ordered_type(values.type), null_code)


def _as_numbers(values: pa.Array) -> pa.Array:
    """Return dates and times as the integers that represent them, and numbers unchanged."""
    if pa.types.is_temporal(values.type):
        return values.cast(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return values


def _is_ordered_type(kind: pa.DataType) -> bool:
    return any(check(kind) for check in _ORDERED_TYPES)


def _to_comparable(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return the column in a type whose values Arrow can compare and sort."""
    column = decode_column(column)
    kind = column.type
    if not any(check(_sortable_type(kind)) for check in _COMPARABLE_TYPES):
        hint = "Drop it, or unnest it into separate columns."
        raise ArgumentTypeError(
            "table", f"column {name[:60]!r} has type {str(kind)[:60]}, which cannot be compared. {hint}"
        )
    return column.cast(_sortable_type(kind))


def _sortable_type(kind: pa.DataType) -> pa.DataType:
    """Return a type that Arrow can sort and that represents all values of the given one."""
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    return kind


def _normalise_floats(values: pa.Array) -> pa.Array:
    """Replace NaN by null, and -0.0 by 0.0."""
    if not pa.types.is_floating(values.type):
        return values
    numbers = pc.add(values, pa.scalar(0, values.type))
    return pc.if_else(pc.is_nan(numbers), pa.scalar(None, values.type), numbers)


_MAX_EXACT_FLOAT = 2.0**53  # from here on, every float is an integer


def cast_whole_floats(values: pa.Array) -> pa.Array:
    """Cast floats that are all integers to int64: pandas stores integers as floats if one is missing.

    >>> cast_whole_floats(pa.array([21.0, None])).type, cast_whole_floats(pa.array([21.0, 0.5])).type
    (DataType(int64), DataType(double))
    """
    if not pa.types.is_floating(values.type):
        return values
    numbers = values.drop_null().to_numpy(zero_copy_only=False)
    is_whole = bool(((np.abs(numbers) < _MAX_EXACT_FLOAT) & (numbers == np.rint(numbers))).all())
    return values.cast(pa.int64()) if is_whole else values


@dataclass(frozen=True, eq=False)
class EncodedTable:
    """A table with its quasi-identifying and sensitive columns checked and encoded."""

    source: TableAdapter
    quasi: tuple[EncodedColumn, ...]
    sensitive: tuple[EncodedColumn, ...]

    @property
    def other_columns(self) -> tuple[str, ...]:
        """The columns that are neither quasi-identifying nor sensitive."""
        used = {column.name for column in (*self.quasi, *self.sensitive)}
        return tuple(name for name in self.source.column_names if name not in used)


def encode_table(table: Any, quasi: Any, sensitive: Any = None) -> EncodedTable:
    """Check a table and its column names, and encode the columns.

    >>> import pyarrow as pa
    >>> encode_table(pa.table({"age": [41, 29], "sex": ["F", "M"]}), "age", ["sex", "age"])
    Traceback (most recent call last):
    discreet.arguments.ArgumentError: sensitive: 'age' is already quasi-identifying. A column can be one or the other.
    """
    source = adapt_table(table)
    quasi_names = resolve_column_names(quasi, "quasi", source)
    sensitive_names = () if sensitive is None else resolve_column_names(sensitive, "sensitive", source)
    for name in sensitive_names:
        require(
            name not in quasi_names,
            f"{name[:60]!r} is already quasi-identifying. A column can be one or the other.",
            "sensitive",
        )
    require(source.row_count, "the table has no rows. Pass a table with at least one row.", "table")
    return EncodedTable(
        source, encode_columns(source, quasi_names, "quasi"), encode_columns(source, sensitive_names, "sensitive")
    )


def encode_columns(source: TableAdapter, names: tuple[str, ...], argument: str) -> tuple[EncodedColumn, ...]:
    """Encode columns of a table; ValueError if one has only nulls."""
    columns = tuple(encode_column(source, name) for name in names)
    for column in columns:
        require(column.null_code != 0, f"column {column.name[:60]!r} has only nulls. Leave it out.", argument)
    return columns
