"""Convert an answer's table to pandas, polars or Arrow."""

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped, unused-ignore]
    import polars as pl


class FrameKind(StrEnum):
    """Whose tables they are."""

    ARROW = "arrow"
    PANDAS = "pandas"
    POLARS = "polars"


def as_pandas(table: pa.Table) -> "pd.DataFrame":
    """Return a pandas frame; whole numbers and booleans have pandas' nullable types, so that NULL stays NULL."""
    try:
        import pandas as pd  # noqa: PLC0415 - optional
    except ImportError:
        raise ImportError("to_pandas needs pandas: pip install pandas") from None

    def nullable_dtype(dtype: pa.DataType) -> Any:
        if pa.types.is_integer(dtype):
            return pd.Int64Dtype()
        return pd.BooleanDtype() if pa.types.is_boolean(dtype) else None

    return table.to_pandas(types_mapper=nullable_dtype)


def as_polars(table: pa.Table) -> "pl.DataFrame":
    """Return a polars frame."""
    try:
        import polars as pl  # noqa: PLC0415 - optional
    except ImportError:
        raise ImportError("to_polars needs polars: pip install polars") from None
    return pl.DataFrame(table)


def as_frame(table: pa.Table, kind: FrameKind) -> Any:
    """Return a table of this kind."""
    match kind:
        case FrameKind.PANDAS:
            return as_pandas(table)
        case FrameKind.POLARS:
            return as_polars(table)
    return table
