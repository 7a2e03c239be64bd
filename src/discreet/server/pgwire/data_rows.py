"""Rows of results as messages, and results that are brought into the shape that was announced."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from discreet.server.pgwire.errors import WireError
from discreet.server.pgwire.pg_types import encode_columns, pg_type
from discreet.server.pgwire.replies import ColumnHeader, Outgoing, Reply

_ROWS_AT_ONCE = 500


def headers(names: Sequence[str], schema: pa.Schema, formats: Sequence[int]) -> list[ColumnHeader]:
    """Return the headers of a result's columns.

    >>> headers(["n"], pa.schema([("c0", pa.int64())]), [0])
    [ColumnHeader(name='n', oid=20, size=8, format=0)]
    """
    kinds = [pg_type(each.type) for each in schema]
    return [
        ColumnHeader(name, kind.oid, kind.size, form) for name, kind, form in zip(names, kinds, formats, strict=True)
    ]


def column_formats(requested: Sequence[int], width: int) -> list[int]:
    """Return the format of each column: none requested means text, one is for all.

    >>> column_formats((), 2), column_formats((1,), 2), column_formats((0, 1), 2)
    ([0, 0], [1, 1], [0, 1])
    """
    formats = [0] * width if not requested else list(requested) * (width if len(requested) == 1 else 1)
    if len(formats) != width or not set(formats) <= {0, 1}:
        raise WireError("08P01", f"Bind has formats for {len(requested)} columns, and the result has {width}.")
    return formats


def data_rows(table: pa.Table, formats: Sequence[int]) -> Iterator[Outgoing]:
    """Yield the rows of a table as messages, many at a time."""
    width = table.num_columns.to_bytes(2)
    for start in range(0, table.num_rows, _ROWS_AT_ONCE):
        columns = encode_columns(table.slice(start, _ROWS_AT_ONCE), formats)
        parts = []
        for fields in zip(*columns, strict=True):
            body = b"".join(fields)
            parts += [b"D", (len(body) + 6).to_bytes(4), width, body]
        yield Outgoing(Reply.ROWS, b"".join(parts))


def align(names: Sequence[str], table: pa.Table, announced: Sequence[str], schema: pa.Schema) -> pa.Table:
    """Return a result with the columns that were announced; those that this result does not have are NULL.

    Which columns of biases there are may depend on what is in the ledger by the time that a query runs.
    """
    if tuple(names) == tuple(announced) and table.schema.types == schema.types:
        return table
    places = {name: place for place, name in enumerate(names)}
    columns = [
        table.column(places[name]).cast(field.type, safe=False)
        if name in places
        else pa.nulls(table.num_rows, field.type)
        for name, field in zip(announced, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)
