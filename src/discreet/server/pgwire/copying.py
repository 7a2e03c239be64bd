"""The output of COPY: rows as text, csv or binary."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from discreet.server.pgwire.actions import CopyFormat
from discreet.server.pgwire.pg_types import encode_columns, pg_type

_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = b"\xff\xff"
_ROWS_AT_ONCE = 1_000
_ESCAPES = str.maketrans({"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"})


def copy_rows(names: Sequence[str], table: pa.Table, form: CopyFormat) -> Iterator[bytes]:
    r"""Yield what COPY sends, one row at a time.

    >>> list(copy_rows(["n", "city"], pa.table({"n": [1, None], "city": ["a\tb", "c"]}), CopyFormat()))
    [b'1\ta\\tb\n', b'\\N\tc\n']
    """
    if form.header:
        yield _line([_csv_cell(name, form) if form.name == "csv" else name.translate(_ESCAPES) for name in names], form)
    start = _SIGNATURE  # in one message with the first row: clients expect a whole row in each
    for place in range(0, table.num_rows, _ROWS_AT_ONCE):
        part = table.slice(place, _ROWS_AT_ONCE)
        if form.name != "binary":
            yield from _text_rows(part, form)
            continue
        for row in _binary_rows(part):
            yield start + row
            start = b""
    if form.name == "binary":
        yield start + _END


def _binary_rows(table: pa.Table) -> Iterator[bytes]:
    width = table.num_columns.to_bytes(2)
    columns = encode_columns(table, [1] * table.num_columns)
    for fields in zip(*columns, strict=True):
        yield width + b"".join(fields)


def _text_rows(table: pa.Table, form: CopyFormat) -> Iterator[bytes]:
    columns = [[_cell(value, column.type, form) for value in column.to_pylist()] for column in table.columns]
    for cells in zip(*columns, strict=True):
        yield _line(cells, form)


def _line(cells: Sequence[str], form: CopyFormat) -> bytes:
    return (form.delimiter.join(cells) + "\n").encode()


def _cell(value: Any, kind: pa.DataType, form: CopyFormat) -> str:
    if value is None:
        return form.null
    text = pg_type(kind).to_text(value).decode()
    if form.name == "csv":
        return _csv_cell(text, form)
    escaped = text.translate(_ESCAPES)
    return escaped if form.delimiter == "\t" else escaped.replace(form.delimiter, "\\" + form.delimiter)


def _csv_cell(text: str, form: CopyFormat) -> str:
    needs_quotes = text in (form.null, "\\.") or any(char in text for char in (form.delimiter, form.quote, "\n", "\r"))
    return f"{form.quote}{text.replace(form.quote, form.quote * 2)}{form.quote}" if needs_quotes else text
