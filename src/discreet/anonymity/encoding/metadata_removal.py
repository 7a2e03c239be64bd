"""Removal of metadata, indices and unused categories, which can identify people whose rows were generalised."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def strip_arrow(table: pa.Table) -> pa.Table:
    """Return an Arrow table without metadata, and with only the values of its rows in dictionaries.

    >>> ill = pa.array(["flu", "rare"]).dictionary_encode().take(pa.array([0]))
    >>> ill.dictionary.to_pylist(), strip_arrow(pa.table({"ill": ill}))["ill"].chunk(0).dictionary.to_pylist()
    (['flu', 'rare'], ['flu'])
    """
    columns = [strip_column(column) for column in table.columns]
    fields = [pa.field(old.name, column.type, old.nullable) for old, column in zip(table.schema, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def strip_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with rebuilt dictionaries, and without the metadata of nested fields."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return pa.chunked_array([_rebuild_dictionary(chunk) for chunk in column.chunks], kind)
    if not pa.types.is_nested(kind) or pa.types.is_union(kind):
        return column
    stripped_type = _strip_type(kind)
    if not _has_dictionary(kind) and kind.equals(stripped_type, check_metadata=True):
        return column
    return pa.chunked_array([pa.array(chunk.to_pylist(), stripped_type) for chunk in column.chunks], stripped_type)


def _rebuild_dictionary(chunk: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return the chunk with a dictionary of the values that occur, each once, in their previous order."""
    dictionary = chunk.dictionary
    used_codes = np.unique(chunk.indices.drop_null().to_numpy(zero_copy_only=False).astype(np.int64))
    used = dictionary.take(pa.array(used_codes)).drop_null()
    try:
        used = used.unique()
        new_codes = pc.index_in(dictionary, used)
    except pa.ArrowNotImplementedError:  # nested values, which Arrow cannot compare
        new_codes = pc.index_in(pa.array(np.arange(len(dictionary))), pa.array(used_codes))
        used = dictionary.take(pa.array(used_codes))
    indices = new_codes.take(chunk.indices).cast(chunk.type.index_type)
    return pa.DictionaryArray.from_arrays(indices, used, ordered=chunk.type.ordered)


def _child_fields(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(index) for index in range(kind.num_fields)]


def _has_dictionary(kind: pa.DataType) -> bool:
    return pa.types.is_dictionary(kind) or any(_has_dictionary(field.type) for field in _child_fields(kind))


def _strip_type(kind: pa.DataType) -> pa.DataType:
    inner = [pa.field(field.name, _strip_type(field.type), field.nullable) for field in _child_fields(kind)]
    if pa.types.is_struct(kind):
        return pa.struct(inner)
    if pa.types.is_map(kind):
        return pa.map_(_strip_type(kind.key_type), _strip_type(kind.item_type), kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(inner[0], kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(inner[0])
    return pa.list_(inner[0]) if pa.types.is_list(kind) else kind


def strip_polars(frame: Any) -> Any:
    """Return a polars frame whose categories and enums are limited to the values that occur."""
    import polars as pl  # noqa: PLC0415 - optional dependency, present if there is such a frame

    def strip_series(series: Any) -> Any:
        texts = series.cast(pl.String)
        if isinstance(series.dtype, pl.Categorical):
            return texts.cast(pl.Categorical)
        used = set(texts.unique())
        return texts.cast(pl.Enum([category for category in series.dtype.categories if category in used]))

    return frame.with_columns(
        strip_series(series) for series in frame if isinstance(series.dtype, pl.Categorical | pl.Enum)
    )


def strip_pandas(frame: Any) -> Any:
    """Return a pandas frame without attrs, with a range index, and with only the categories that occur."""
    import pandas as pd  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415 - as for polars

    frame.attrs = {}
    frame.index = pd.RangeIndex(len(frame))
    for index, kind in enumerate(frame.dtypes):
        column = frame.iloc[:, index]
        if isinstance(kind, pd.CategoricalDtype):
            frame.isetitem(index, column.cat.remove_unused_categories())
        elif isinstance(kind, pd.ArrowDtype):
            array = strip_column(pa.table({"": column})[""])
            frame.isetitem(index, pd.Series(pd.arrays.ArrowExtensionArray(array), frame.index))
    return frame
