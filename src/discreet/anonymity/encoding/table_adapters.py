"""Adapters that read pandas, polars and Arrow tables by column, and rebuild them in the same library."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.anonymity.encoding.metadata_removal import strip_arrow, strip_pandas, strip_polars
from discreet.arguments import ArgumentError, ArgumentTypeError, require

_MAX_LISTED_COLUMNS = 12
_MAX_NAME_LENGTH = 60


@dataclass(frozen=True)
class TableAdapter:
    """A table's columns by name, each converted to Arrow on demand.

    `rebuild(replacements, kept_rows=None, note=None)` returns the kept rows in that order, with columns replaced by
    arrays of one value per kept row. It keeps the values of all other columns, and removes metadata, the attrs and
    index of pandas, and unused categories. Its `note` is stored as "not_protected" in the attrs of pandas or in the
    metadata of Arrow. In `object_columns`, equal values can have different representations, such as 1 and 1.0.

    >>> table = adapt_table(pa.table({"age": [41, 29], "zip": ["13053", "13068"]}))
    >>> table.column_names, table.row_count, table.column("age").to_pylist()
    (('age', 'zip'), 2, [41, 29])
    >>> table.rebuild({"zip": pa.array(["130**"])}, np.array([1])).to_pylist()
    [{'age': 29, 'zip': '130**'}]
    """

    column_names: tuple[str, ...]
    row_count: int
    column: Callable[[str], pa.ChunkedArray]
    rebuild: Callable[..., Any]
    object_columns: frozenset[str] = frozenset()


def adapt_table(table: Any, argument: str = "table") -> TableAdapter:
    """Return an adapter for a pandas, polars or Arrow table; `argument` is its name in error messages.

    >>> adapt_table([1, 2])
    Traceback (most recent call last):
    discreet.arguments.ArgumentTypeError: table: expected a pandas, polars or Arrow table, not list.
    """
    libraries = {base.__module__.partition(".")[0] for base in type(table).__mro__}
    if "pandas" in libraries and hasattr(table, "columns"):
        return _adapt_pandas(table)
    if "polars" in libraries and hasattr(table, "collect_schema"):
        return _adapt_polars(table)
    is_column = "pandas" in libraries or "polars" in libraries
    if not is_column and (hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__")):
        return _adapt_arrow(pa.table(table))
    raise ArgumentTypeError(argument, f"expected a pandas, polars or Arrow table, not {type(table).__name__}.")


def resolve_column_names(given: Any, argument: str, table: TableAdapter) -> tuple[str, ...]:
    """Return one or several column names as a tuple, after checking that each occurs once in the table.

    >>> resolve_column_names("zipp", "quasi", adapt_table(pa.table({"age": [41], "zip": ["13053"]})))
    Traceback (most recent call last):
    discreet.arguments.ArgumentError: quasi: column 'zipp' does not exist. The table has: age, zip. Did you mean 'zip'?
    """
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        given = [given]
    resolved = tuple(_check_column_name(item, argument) for item in given)
    require(resolved, f"name at least one column. The table has: {_list_columns(table.column_names)}.", argument)
    for name in resolved:
        require(resolved.count(name) <= 1, f"{_quote_name(name)} is named twice. Name each column once.", argument)
        if name not in table.column_names:
            raise ArgumentError(argument, _missing_column_message(name, table.column_names))
        require(
            table.column_names.count(name) <= 1,
            f"the table has several columns {_quote_name(name)}. Rename all but one.",
            argument,
        )
    return resolved


def _check_column_name(given: Any, argument: str) -> str:
    # Column names in pandas can be integers.
    if isinstance(given, str | int | np.integer) and not isinstance(given, bool):
        return str(given)
    raise ArgumentTypeError(argument, f"expected a column name or a list of names, not {type(given).__name__}.")


def _missing_column_message(name: str, existing: Sequence[str]) -> str:
    close_matches = difflib.get_close_matches(
        name.lower()[:_MAX_NAME_LENGTH], [candidate.lower() for candidate in existing], n=1
    )
    suggestion = next((known for known in existing if close_matches and known.lower() == close_matches[0]), None)
    hint = f" Did you mean {_quote_name(suggestion)}?" if suggestion is not None else ""
    return f"column {_quote_name(name)} does not exist. The table has: {_list_columns(existing)}.{hint}"


def _list_columns(existing: Sequence[str]) -> str:
    shown = ", ".join(name[:_MAX_NAME_LENGTH] for name in existing[:_MAX_LISTED_COLUMNS])
    omitted = len(existing) - _MAX_LISTED_COLUMNS
    return (f"{shown} and {omitted} more" if omitted > 0 else shown) or "no columns"


def _quote_name(name: str) -> str:
    return repr(name if len(name) <= _MAX_NAME_LENGTH else name[:_MAX_NAME_LENGTH] + "…")


def _adapt_arrow(table: pa.Table) -> TableAdapter:
    def rebuild(
        replacements: Mapping[str, pa.Array], kept_rows: np.ndarray | None = None, *, note: str | None = None
    ) -> pa.Table:
        out = table if kept_rows is None else table.take(pa.array(kept_rows))
        for name, array in replacements.items():
            out = out.set_column(out.schema.get_field_index(name), name, array)
        out = strip_arrow(out)
        return out if note is None else out.replace_schema_metadata({b"not_protected": note.encode()})

    return TableAdapter(tuple(table.column_names), table.num_rows, table.column, rebuild)


def _adapt_polars(frame: Any) -> TableAdapter:
    import polars as pl  # noqa: PLC0415 - optional dependency, present if there is such a frame

    collected = frame.collect() if isinstance(frame, pl.LazyFrame) else frame

    def column(name: str) -> pa.ChunkedArray:
        try:
            if collected.schema[name] != pl.Object:  # Arrow would only get the addresses of the objects
                return pa.chunked_array(collected.get_column(name))
        except pa.ArrowException:
            pass
        raise _unreadable_column_error(name)

    def rebuild(
        replacements: Mapping[str, pa.Array], kept_rows: np.ndarray | None = None, *, note: str | None = None
    ) -> Any:
        del note  # polars frames have no metadata
        out = collected if kept_rows is None else collected[kept_rows]
        out = strip_polars(out.with_columns(pl.Series(name, array) for name, array in replacements.items()))
        return out.lazy() if isinstance(frame, pl.LazyFrame) else out

    return TableAdapter(tuple(collected.columns), collected.height, column, rebuild)


def _adapt_pandas(frame: Any) -> TableAdapter:
    labels = [str(label) for label in frame.columns]

    def column(name: str) -> pa.ChunkedArray:
        return _series_to_arrow(frame.iloc[:, labels.index(name)], name)

    def rebuild(
        replacements: Mapping[str, pa.Array], kept_rows: np.ndarray | None = None, *, note: str | None = None
    ) -> Any:
        out = frame.copy() if kept_rows is None else frame.iloc[kept_rows].copy()
        for name, array in replacements.items():
            values = array.to_pandas()
            values.index = out.index
            out.isetitem(labels.index(name), values)
        out = strip_pandas(out)
        if note is not None:
            out.attrs["not_protected"] = note
        return out

    object_columns = frozenset(name for name, kind in zip(labels, frame.dtypes, strict=True) if str(kind) == "object")
    return TableAdapter(tuple(labels), len(frame), column, rebuild, object_columns)


def _to_arrow_compatible(series: Any) -> Any:
    """Convert the types that only pandas has: intervals to text, periods to their start, sparse columns to dense."""
    is_category = hasattr(series.dtype, "categories")
    kind = str(series.dtype.categories.dtype if is_category else series.dtype)
    if kind.startswith("interval"):
        return series.cat.rename_categories(str) if is_category else series.astype(str).where(series.notna())
    if kind.startswith("period"):
        return series.astype(kind).dt.to_timestamp()
    return series.sparse.to_dense() if kind.startswith("Sparse") else series


def _check_single_type(series: Any, name: str) -> None:
    kinds = {type(value) for value in series[series.notna()]}
    are_numbers = all(issubclass(kind, Real) and not issubclass(kind, bool) for kind in kinds)
    if len(kinds) > 1 and not are_numbers:
        listed = " and ".join(sorted(kind.__name__ for kind in kinds))
        hint = f"Convert it to one type, for example: table[{name!r}] = table[{name!r}].astype(str)."
        raise ArgumentTypeError("table", f"column {_quote_name(name)} mixes {listed}. {hint}")


def _series_to_arrow(series: Any, name: str) -> pa.ChunkedArray:
    """Convert a pandas column to Arrow; objects must all be of one type."""
    if str(series.dtype) == "object":
        _check_single_type(series, name)
    try:
        array = pa.array(_to_arrow_compatible(series), from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, UnicodeError, ValueError):
        raise _unreadable_column_error(name) from None
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _unreadable_column_error(name: str) -> TypeError:
    return TypeError(
        f"table: column {_quote_name(name)} cannot be converted to Arrow. Convert it to text or numbers first."
    )
