"""CSV as a person would write it: quotes only where a reader would else go wrong, and values as they were."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_QUOTE, _NOTHING, _NO_FRACTION = (pa.scalar(text, pa.large_string()) for text in ('"', "", ".0"))
_ROWS = 65_536  # that are in memory as text at once


def write_csv(table: pa.Table, path: Path, delimiter: str) -> None:
    """Write a table; null is an empty field, and an empty text is "" in quotes.

    >>> import tempfile
    >>> table = pa.table({"zip": ["02139", None], "jobs": ["cook, nurse", ""], "pay": [6000.0, 0.5]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_csv(table, Path(folder) / "t.csv", ",")
    ...     print((Path(folder) / "t.csv").read_text(), end="")
    zip,jobs,pay
    02139,"cook, nurse",6000.0
    ,"",0.5
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(delimiter.join(_quoted(pa.array(table.column_names), delimiter).to_pylist()) + "\n")
        for batch in table.to_batches(_ROWS):
            fields = [pc.fill_null(_quoted(_text(column), delimiter), "") for column in batch.columns]
            lines = pc.binary_join_element_wise(*fields, pa.scalar(delimiter, pa.large_string()))
            file.writelines(f"{line}\n" for line in lines.to_pylist())


def _text(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.large_string())
    if pa.types.is_floating(column.type):
        is_bare = pc.match_substring_regex(texts, "^-?[0-9]+$")  # Arrow writes 6000.0 as 6000
        texts = pc.if_else(is_bare, pc.binary_join_element_wise(texts, _NO_FRACTION, _NOTHING), texts)
    return texts


def _quoted(texts: pa.Array, delimiter: str) -> pa.Array:
    texts = texts.cast(pa.large_string())
    inside = pc.replace_substring(texts, '"', '""')
    is_odd = pc.match_substring_regex(texts, f'^$|["\r\n{delimiter}]')
    return pc.if_else(is_odd, pc.binary_join_element_wise(_QUOTE, inside, _QUOTE, _NOTHING), texts)


def as_written(made: pa.Table, texts: pa.Table, kept: np.ndarray | None, quasi: Iterable[str]) -> pa.Table:
    """Give columns that were not made coarser the texts that they had in the file: 6000.0, or 1e3.

    Of quasi-identifying ones only those where equal values have equal texts: others would tell rows of a class apart.

    >>> table = pa.table({"age": ["20", "30"], "pay": ["6e3", "7"]})
    >>> as_written(pa.table({"age": ["20-30"] * 2, "pay": [6000.0, 7.0]}), table, None, ["age"]).to_pydict()
    {'age': ['20-30', '20-30'], 'pay': ['6e3', '7']}
    """
    known = frozenset(quasi)
    before = texts if kept is None else texts.take(pa.array(kept))
    for place, name in enumerate(made.column_names):
        if pa.types.is_string(made.schema.field(place).type) or not pa.types.is_string(before.schema.field(place).type):
            continue
        if name not in known or _distinct(made.column(place)) == _distinct(before.column(place)):
            made = made.set_column(place, name, before.column(place))
    return made


def _distinct(column: pa.ChunkedArray) -> int:
    return int(pc.count_distinct(column, mode="all").as_py())
