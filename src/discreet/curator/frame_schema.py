"""Column names and types of pandas, polars and Arrow tables, from their schemas alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from discreet.answer.frames import FrameKind
from discreet.arrow_columns import type_name
from discreet.kernel.errors import PolicyError

_PANDAS_TYPE_NAMES = {"b": "boolean", "i": "integer", "u": "integer", "f": "real", "M": "timestamp"}
_PANDAS_TEXT_TYPES = ("object", "str", "string")  # objects are read as str(object)


@dataclass(frozen=True)
class InputFrame:
    """A frame of any library, with the policy type of each column; None where a policy has no such type.

    `object_columns` hold Python objects, which are read as text but may be dates or numbers.
    """

    rows: object
    frame_kind: FrameKind
    columns: Mapping[str, str | None]
    object_columns: frozenset[str] = frozenset()


def inspect_frame(table: str, rows: Any) -> InputFrame:
    """Return the schema of a frame; PolicyError if the object is not a table.

    >>> inspect_frame("visits", pa.table({"ward": ["A"], "cost": [1.5]})).columns
    {'ward': 'text', 'cost': 'real'}
    """
    libraries = {base.__module__.partition(".")[0] for base in type(rows).__mro__}
    try:
        if "pandas" in libraries and hasattr(rows, "columns"):
            dtypes = dict(zip(map(str, rows.columns), rows.dtypes, strict=True))
            object_columns = frozenset(name for name, dtype in dtypes.items() if dtype.name == "object")
            return InputFrame(
                rows, FrameKind.PANDAS, {name: _pandas_type_name(kind) for name, kind in dtypes.items()}, object_columns
            )
        if "polars" in libraries and hasattr(rows, "collect_schema"):
            return InputFrame(rows, FrameKind.POLARS, _polars_type_names(rows.collect_schema()))
        if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__"):
            arrow_table = pa.table(rows)  # a stream can be read only once
            return InputFrame(
                arrow_table, FrameKind.ARROW, {field.name: type_name(field.type) for field in arrow_table.schema}
            )
    except Exception:  # noqa: BLE001 - a library's message may quote values of the table
        raise PolicyError(f"table {table}: the object cannot be read as a table.") from None
    raise PolicyError(f"table {table}: {type(rows).__name__} is not a table. Pass a pandas, polars or Arrow table.")


def _pandas_type_name(dtype: Any) -> str | None:
    if hasattr(dtype, "categories"):  # the categories themselves are private; only their type is used
        return None if dtype.categories is None else _pandas_type_name(dtype.categories.dtype)
    if hasattr(dtype, "pyarrow_dtype"):
        return type_name(dtype.pyarrow_dtype)
    return "text" if dtype.name in _PANDAS_TEXT_TYPES else _PANDAS_TYPE_NAMES.get(dtype.kind)


def _polars_type_names(schema: Any) -> dict[str, str | None]:
    import polars as pl  # noqa: PLC0415 - optional, and installed if there is a polars frame

    def polars_type_name(dtype: Any) -> str | None:
        try:
            return type_name(pl.Series(dtype=dtype).to_arrow().type)
        except Exception:  # noqa: BLE001 - a type that Arrow does not have
            return None

    return {name: polars_type_name(dtype) for name, dtype in schema.items()}
