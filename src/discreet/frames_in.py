"""Tables that are given as objects: whose they are, and what type each column has by its schema. No value is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from discreet.answer_frames import FrameKind
from discreet.kernel.errors import PolicyError

_WORDS: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
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
_PANDAS = {"b": "boolean", "i": "integer", "u": "integer", "f": "real", "M": "timestamp"}
_TEXTS = ("object", "str", "string")  # objects are read as the texts that Python writes for them


@dataclass(frozen=True)
class Frame:
    """A table to be opened: its rows, in whatever library, and each column's type as a policy names it, if it can.

    `objects` are columns of Python's objects, which are read as texts and may well be dates or numbers.
    """

    rows: object
    kind: FrameKind
    columns: Mapping[str, str | None]
    objects: frozenset[str] = frozenset()


def frame_of(table: str, rows: Any) -> Frame:
    """Look at an object that holds a table; PolicyError if it holds none.

    >>> frame_of("visits", pa.table({"ward": ["A"], "cost": [1.5]})).columns
    {'ward': 'text', 'cost': 'real'}
    """
    libraries = {base.__module__.partition(".")[0] for base in type(rows).__mro__}
    try:
        if "pandas" in libraries and hasattr(rows, "columns"):
            kinds = dict(zip(map(str, rows.columns), rows.dtypes, strict=True))
            objects = frozenset(name for name, kind in kinds.items() if kind.name == "object")
            return Frame(rows, FrameKind.PANDAS, {name: _of_pandas(kind) for name, kind in kinds.items()}, objects)
        if "polars" in libraries and hasattr(rows, "collect_schema"):
            return Frame(rows, FrameKind.POLARS, _of_polars(rows.collect_schema()))
        if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__"):
            read = pa.table(rows)  # a stream can be read once, and this is the time
            return Frame(read, FrameKind.ARROW, {field.name: _of_arrow(field.type) for field in read.schema})
    except Exception:  # noqa: BLE001 - of whatever library; its words may quote what is in the table
        raise PolicyError(f"table {table}: the object that holds its rows cannot be read as a table.") from None
    raise PolicyError(
        f"table {table}: its rows are given as {type(rows).__name__}. Give a table of pandas, polars or Arrow."
    )


def _of_arrow(kind: pa.DataType) -> str | None:
    if pa.types.is_dictionary(kind):
        return _of_arrow(kind.value_type)
    return next((word for check, word in _WORDS if check(kind)), None)


def _of_pandas(kind: Any) -> str | None:
    if hasattr(kind, "categories"):  # which they are is what the rows hold, and none of a policy's business
        return None if kind.categories is None else _of_pandas(kind.categories.dtype)
    if hasattr(kind, "pyarrow_dtype"):
        return _of_arrow(kind.pyarrow_dtype)
    return "text" if kind.name in _TEXTS else _PANDAS.get(kind.kind)


def _of_polars(schema: Any) -> dict[str, str | None]:
    import polars as pl  # noqa: PLC0415 - here, because whoever has such a frame has it

    def arrow(kind: Any) -> str | None:
        try:
            return _of_arrow(pl.Series(dtype=kind).to_arrow().type)
        except Exception:  # noqa: BLE001 - a type that Arrow does not have
            return None

    return {name: arrow(kind) for name, kind in schema.items()}
