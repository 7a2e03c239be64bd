"""Tables of pandas, polars and Arrow: read column by column, and given back in the library they came in."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from discreet.anonymity.coding.bare import bare_arrow, bare_pandas, bare_polars

_SHOWN = 12  # so many column names still help in a message
_LONGEST = 60


class GiveBack(Protocol):
    """Makes a table like the one that was read: the rows at `kept`, in that order, with some columns replaced."""

    def __call__(
        self, replaced: Mapping[str, pa.Array], kept: np.ndarray | None = None, *, note: str | None = None
    ) -> Any:
        """Replace columns by arrays of as many values as rows are kept; all rows if `kept` is None."""


@dataclass(frozen=True)
class Rows:
    """A table's columns by name, each made an Arrow array when it is asked for.

    `give_back` leaves the values of every other column as they were, and takes away what else the table carried: its
    metadata, pandas' attrs and index, categories that no row has. Its `note` is put where the library has a place for
    it: pandas' attrs and Arrow's metadata, under "not_protected". In `loose` columns values that are equal may look
    different, as 1 and 1.0 do among objects of Python.

    >>> rows = read(pa.table({"age": [41, 29], "zip": ["13053", "13068"]}))
    >>> rows.names, rows.count, rows.column("age").to_pylist()
    (('age', 'zip'), 2, [41, 29])
    >>> rows.give_back({"zip": pa.array(["130**"])}, np.array([1])).to_pylist()
    [{'age': 29, 'zip': '130**'}]
    """

    names: tuple[str, ...]
    count: int
    column: Callable[[str], pa.ChunkedArray]
    give_back: GiveBack
    loose: frozenset[str] = frozenset()


def read(table: Any, argument: str = "table") -> Rows:
    """Look at a table of pandas, polars or Arrow; `argument` is what messages call it.

    >>> read([1, 2])
    Traceback (most recent call last):
    TypeError: table: give a table of pandas, polars or Arrow, not a list.
    """
    libraries = {base.__module__.partition(".")[0] for base in type(table).__mro__}
    if "pandas" in libraries and hasattr(table, "columns"):
        return _of_pandas(table)
    if "polars" in libraries and hasattr(table, "collect_schema"):
        return _of_polars(table)
    is_column = "pandas" in libraries or "polars" in libraries
    if not is_column and (hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__")):
        return _of_arrow(pa.table(table))
    raise TypeError(f"{argument}: give a table of pandas, polars or Arrow, not a {type(table).__name__}.")


def names(given: Any, argument: str, rows: Rows) -> tuple[str, ...]:
    """Check what a user gave for column names: one, or several, each once, all in the table.

    >>> names("zipp", "quasi", read(pa.table({"age": [41], "zip": ["13053"]})))
    Traceback (most recent call last):
    ValueError: quasi: the table has no column 'zipp'. It has: age, zip. Did you mean 'zip'?
    """
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        given = [given]
    found = tuple(_name(each, argument) for each in given)
    if not found:
        raise ValueError(f"{argument}: name at least one column. The table has: {_listed(rows.names)}.")
    for name in found:
        if found.count(name) > 1:
            raise ValueError(f"{argument}: {_short(name)} is named twice. Name each column once.")
        if name not in rows.names:
            raise ValueError(f"{argument}: {_missing(name, rows.names)}")
        if rows.names.count(name) > 1:
            raise ValueError(f"{argument}: the table has several columns {_short(name)}. Rename all but one.")
    return found


def _name(given: Any, argument: str) -> str:
    # Columns of pandas may be called by numbers; everybody else's names are texts.
    if isinstance(given, str | int | np.integer) and not isinstance(given, bool):
        return str(given)
    raise TypeError(f"{argument}: give the name of a column, or a list of names, not a {type(given).__name__}.")


def _missing(name: str, existing: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.lower()[:_LONGEST], [each.lower() for each in existing], n=1)
    meant = next((each for each in existing if near and each.lower() == near[0]), None)
    hint = f" Did you mean {_short(meant)}?" if meant is not None else ""
    return f"the table has no column {_short(name)}. It has: {_listed(existing)}.{hint}"


def _listed(existing: Sequence[str]) -> str:
    shown = ", ".join(name[:_LONGEST] for name in existing[:_SHOWN])
    more = len(existing) - _SHOWN
    return (f"{shown} and {more} more" if more > 0 else shown) or "no columns"


def _short(name: str) -> str:
    return repr(name if len(name) <= _LONGEST else name[:_LONGEST] + "…")


def _of_arrow(table: pa.Table) -> Rows:
    def give_back(
        replaced: Mapping[str, pa.Array], kept: np.ndarray | None = None, *, note: str | None = None
    ) -> pa.Table:
        out = table if kept is None else table.take(pa.array(kept))
        for name, array in replaced.items():
            out = out.set_column(out.schema.get_field_index(name), name, array)
        out = bare_arrow(out)
        return out if note is None else out.replace_schema_metadata({b"not_protected": note.encode()})

    return Rows(tuple(table.column_names), table.num_rows, table.column, give_back)


def _of_polars(frame: Any) -> Rows:
    import polars as pl  # noqa: PLC0415 - here, because whoever has such a frame has it

    whole = frame.collect() if isinstance(frame, pl.LazyFrame) else frame

    def column(name: str) -> pa.ChunkedArray:
        try:
            if whole.schema[name] != pl.Object:  # whose addresses in memory are all that Arrow would get
                return pa.chunked_array(whole.get_column(name))
        except pa.ArrowException:
            pass
        raise _unreadable(name)

    def give_back(replaced: Mapping[str, pa.Array], kept: np.ndarray | None = None, *, note: str | None = None) -> Any:
        del note  # a frame of polars has no place for it
        out = whole if kept is None else whole[kept]
        out = bare_polars(out.with_columns(pl.Series(name, array) for name, array in replaced.items()))
        return out.lazy() if isinstance(frame, pl.LazyFrame) else out

    return Rows(tuple(whole.columns), whole.height, column, give_back)


def _of_pandas(frame: Any) -> Rows:
    labels = [str(label) for label in frame.columns]

    def column(name: str) -> pa.ChunkedArray:
        return _arrow(frame.iloc[:, labels.index(name)], name)

    def give_back(replaced: Mapping[str, pa.Array], kept: np.ndarray | None = None, *, note: str | None = None) -> Any:
        out = frame.copy() if kept is None else frame.iloc[kept].copy()
        for name, array in replaced.items():
            values = array.to_pandas()
            values.index = out.index
            out.isetitem(labels.index(name), values)
        out = bare_pandas(out)
        if note is not None:
            out.attrs["not_protected"] = note
        return out

    loose = frozenset(name for name, kind in zip(labels, frame.dtypes, strict=True) if str(kind) == "object")
    return Rows(tuple(labels), len(frame), column, give_back, loose)


def _plain(series: Any) -> Any:
    """Make of pandas' own types what Arrow knows: intervals their texts, and periods the time of their start."""
    is_category = hasattr(series.dtype, "categories")
    kind = str(series.dtype.categories.dtype if is_category else series.dtype)
    if kind.startswith("interval"):
        return series.cat.rename_categories(str) if is_category else series.astype(str).where(series.notna())
    if kind.startswith("period"):
        return series.astype(kind).dt.to_timestamp()
    return series.sparse.to_dense() if kind.startswith("Sparse") else series


def _check_kinds(series: Any, name: str) -> None:
    kinds = {type(value) for value in series[series.notna()]}
    numbers = all(issubclass(kind, Real) and not issubclass(kind, bool) for kind in kinds)
    if len(kinds) > 1 and not numbers:
        listed = " and ".join(sorted(kind.__name__ for kind in kinds))
        words = f"Make them one: table[{name!r}] = table[{name!r}].astype(str), for example."
        raise TypeError(f"table: column {_short(name)} mixes {listed}. {words}")


def _arrow(series: Any, name: str) -> pa.ChunkedArray:
    """Make an Arrow array of a column of pandas; what holds objects must hold one kind of them."""
    if str(series.dtype) == "object":
        _check_kinds(series, name)
    try:
        array = pa.array(_plain(series), from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, UnicodeError, ValueError):
        raise _unreadable(name) from None
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _unreadable(name: str) -> TypeError:
    return TypeError(
        f"table: column {_short(name)} cannot be read as Arrow data. Convert it to texts or numbers first."
    )
