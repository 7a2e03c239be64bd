"""Published tables as they are written into files: with margins, dates without times, and CSV without formulas."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from discreet.answer.model import Answer
from discreet.publish.family_tables import PublishedTable

Describable = PublishedTable | Answer
_FORMULA = r"^('*[=+@\t\r-])"  # with the apostrophes before it, so that removing one gives the value back


def file_table(shown: Describable) -> pa.Table:
    """Return a table with the margin of each number, and its whole number or bias, in columns after it.

    A group column of timestamps that are all at midnight, such as months, becomes one of dates.
    """
    if isinstance(shown, Answer):
        table = shown.with_margins().replace_schema_metadata(None)
    else:
        columns: dict[str, pa.Array] = {}
        for name in shown.table.column_names:
            columns[name] = shown.table.column(name)
            if name in shown.margins:
                columns[f"{name}_margin"] = pa.array(shown.margins[name], pa.float64(), from_pandas=True)
            if name in shown.whole:
                columns[f"{name}_whole"] = pa.array(shown.whole[name], pa.int64())
        table = pa.table(columns).replace_schema_metadata(shown.table.schema.metadata)
    for name in shown.table.column_names:
        if name not in shown.margins and _are_days(table.column(name)):
            at = table.column_names.index(name)
            table = table.set_column(at, name, table.column(name).cast(pa.date32()))
    return table


@dataclass(frozen=True, eq=False)
class FileTable:
    """A table as it is written, and its columns with texts that are quoted in CSV."""

    table: pa.Table
    formulas: list[str]

    @classmethod
    def of(cls, shown: Describable) -> Self:
        """Return the file of a published table."""
        table = file_table(shown)
        return cls(table, formula_columns(table))


def _are_days(values: pa.ChunkedArray) -> bool:
    if not pa.types.is_timestamp(values.type):
        return False
    known = values.drop_null()
    return len(known) > 0 and pc.all(pc.equal(known, pc.floor_temporal(known, unit="day"))).as_py()


def csv_table(table: pa.Table, formulas: Iterable[str] | None = None) -> pa.Table:
    """Return a table in which an apostrophe precedes texts that a spreadsheet would take for formulas.

    `formulas` are the columns that have such texts, if these are known.

    Group keys are data: `=HYPERLINK(…)` as someone's place of birth must remain a text.

    >>> csv_table(pa.table({"ward": ["A", "=1+1", "-", "'=", "'s-Heer"]})).column("ward").to_pylist()
    ['A', "'=1+1", "'-", "''=", "'s-Heer"]
    """
    for name in formula_columns(table) if formulas is None else formulas:
        quoted = pc.replace_substring_regex(table.column(name), _FORMULA, r"'\1")
        table = table.set_column(table.column_names.index(name), name, quoted)
    return table


def formula_columns(table: pa.Table) -> list[str]:
    """Return the columns with texts that `csv_table` changes."""
    texts = [field.name for field in table.schema if pa.types.is_string(field.type)]
    return [name for name in texts if pc.any(pc.match_substring_regex(table.column(name).unique(), _FORMULA)).as_py()]
