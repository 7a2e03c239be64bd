"""Arrow columns without encodings, whatever library made them, and the names of their types in a policy."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

_TYPE_NAMES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "real"),
    (pa.types.is_decimal, "decimal"),
    (pa.types.is_string, "text"),
    (pa.types.is_large_string, "text"),
    (pa.types.is_string_view, "text"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "timestamp"),
)


def type_name(kind: pa.DataType) -> str | None:
    """Return the name of a type in a policy; None if a policy has no such type.

    >>> type_name(pa.dictionary(pa.int8(), pa.string())), type_name(pa.binary())
    ('text', None)
    """
    if pa.types.is_dictionary(kind):
        return type_name(kind.value_type)
    return next((name for check, name in _TYPE_NAMES if check(kind)), None)


def decode_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return categories and runs as their values, extension types as their storage, and views as large texts.

    >>> decode_column(pa.chunked_array([pa.array(["a", "b", "a"]).dictionary_encode()])).type
    DataType(string)
    """
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return decode_column(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type))
    if pa.types.is_run_end_encoded(kind):
        return decode_column(pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], kind.value_type))
    if pa.types.is_dictionary(kind):
        values = _without_views(kind.value_type)  # Arrow cannot take from views
        chunks = [chunk.dictionary.cast(values).take(chunk.indices) for chunk in column.chunks]
        return decode_column(pa.chunked_array(chunks, values))
    return column.cast(_without_views(kind))


def _without_views(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(kind) else kind
