"""Columns as small integers: every different value of a column is given a code."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_EXACT = Context(prec=160)  # digits: more than the difference of two decimals of 76 can have
_ORDERED: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_time,
    pa.types.is_duration,
)
_COMPARED: tuple[Callable[[pa.DataType], bool], ...] = (
    *_ORDERED,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_null,
)


class HasColumns(Protocol):
    """A table as far as it is needed here: `Rows`, or Arrow's own."""

    def column(self, name: str, /) -> pa.ChunkedArray:
        """Return a column."""


@dataclass(frozen=True, eq=False)
class Column:
    """A column's rows as codes 0, 1, ... into its different values.

    The values are sorted; null is a value of its own, the last. `ordered` columns are those whose values have a
    distance: numbers, dates and times.
    """

    name: str
    codes: np.ndarray
    values: pa.Array
    ordered: bool
    null: int | None

    @property
    def origin(self) -> int | Decimal:
        """The number of an ordered column's smallest value, exact: positions begin there. Reals begin at 0."""
        kind = self.values.type
        if pa.types.is_floating(kind) or len(self.values) == (self.null is not None):
            return 0
        smallest: int | Decimal = _numbers(self.values[:1])[0].as_py()
        return smallest

    @property
    def positions(self) -> np.ndarray:
        """How far each value of an ordered column lies from the origin, as float64; NaN for null."""
        numbers = _numbers(self.values)
        if pa.types.is_floating(numbers.type):
            return np.asarray(numbers.cast(pa.float64()).to_numpy(zero_copy_only=False))
        found = np.full(len(numbers), np.nan)
        filled = numbers.drop_null()
        if pa.types.is_decimal(numbers.type):
            found[: len(filled)] = [float(_EXACT.subtract(each, self.origin)) for each in filled.to_pylist()]
        elif len(filled):
            # Differences are exact in 64 bits without a sign, whatever the numbers are; as floats some would be equal.
            bits = filled.to_numpy(zero_copy_only=False).astype(np.uint64)
            found[: len(filled)] = bits - bits[0]
        return found


def encode(table: HasColumns, name: str) -> Column:
    """Give every different value of a column a code; NaN counts as null, and -0.0 as 0.0.

    >>> column = encode(pa.table({"age": [41, 29, None, 29]}), "age")
    >>> column.codes.tolist(), column.values.to_pylist(), column.ordered, column.null
    ([1, 0, 2, 0], [29, 41, None], True, 2)
    """
    column = _plain(table.column(name), name)
    first = column.dictionary_encode("encode")
    if not first.num_chunks:
        return Column(name, np.empty(0, np.int32), pa.array([], column.type), _is_ordered(column.type), None)
    # The few different values are put in order, and the codes of the many rows follow.
    second = _merged(first.chunk(0).dictionary).dictionary_encode("encode")
    order = pc.sort_indices(second.dictionary)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    codes = rank[np.asarray(second.indices)][np.concatenate([np.asarray(chunk.indices) for chunk in first.chunks])]
    values = second.dictionary.take(order)
    null = len(values) - 1 if values.null_count else None
    return Column(name, codes, values, _is_ordered(values.type), null)


def _numbers(values: pa.Array) -> pa.Array:
    """Return dates and times as the whole numbers that they are stored as, and numbers as they are."""
    if pa.types.is_temporal(values.type):
        return values.cast(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return values


def _is_ordered(kind: pa.DataType) -> bool:
    return any(check(kind) for check in _ORDERED)


def _plain(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return a column of a type whose values Arrow can tell apart and sort."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type), name)
    if pa.types.is_run_end_encoded(kind):
        return _plain(pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], kind.value_type), name)
    if pa.types.is_dictionary(kind):
        inner = _readable(kind.value_type)
        chunks = [chunk.dictionary.cast(inner).take(chunk.indices) for chunk in column.chunks]
        return _plain(pa.chunked_array(chunks, inner), name)
    if not any(check(_readable(kind)) for check in _COMPARED):
        words = "Leave it out, or put its parts into columns of their own."
        raise TypeError(f"table: column {name[:60]!r} holds {str(kind)[:60]}, which cannot be compared. {words}")
    return column.cast(_readable(kind))


def _readable(kind: pa.DataType) -> pa.DataType:
    """Return the type that Arrow can sort and that holds all values of another."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    return kind


def _merged(values: pa.Array) -> pa.Array:
    """Make NaN null, and -0.0 the same as 0.0."""
    if not pa.types.is_floating(values.type):
        return values
    numbers = pc.add(values, pa.scalar(0, values.type))
    return pc.if_else(pc.is_nan(numbers), pa.scalar(None, values.type), numbers)
