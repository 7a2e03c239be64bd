"""Descriptions of published tables for the report: columns, and how accurate the numbers are, small cells first."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from discreet.answer.model import Answer
from discreet.kernel.loss import Loss
from discreet.publish.family_tables import PublishedTable
from discreet.publish.record import ColumnDescription, MarginSummary, PartKind, ReleasePart, SizeClass

Describable = PublishedTable | Answer
_CLASSES = ((10, "below 10"), (100, "10 to 100"), (1_000, "100 to 1,000"), (np.inf, "1,000 and more"))
_RELIABLE = 0.25  # of a value, at most which its margin is


def describe_tables(  # noqa: PLR0913, PLR0917 - the fields of a part
    names: Sequence[str],
    kind: PartKind,
    descriptions: Sequence[str],
    cost: Loss,
    receipt: str,
    tables: Sequence[Describable],
) -> list[ReleasePart]:
    """Return the record of each table of a part, which may be missing."""
    if not tables:
        return [
            ReleasePart(name, kind, text, cost, receipt, "charged, missing", None)
            for name, text in zip(names, descriptions, strict=True)
        ]
    return [
        ReleasePart(
            name,
            kind,
            text,
            cost,
            receipt,
            "released",
            shown.table.num_rows,
            column_descriptions(shown, kind),
            margin_summary(shown),
            tuple(getattr(shown, "notes", ())),
        )
        for name, text, shown in zip(names, descriptions, tables, strict=True)
    ]


def column_descriptions(shown: Describable, kind: PartKind) -> tuple[ColumnDescription, ...]:
    """Return what the columns of a published table mean, with those of margins and whole numbers."""
    columns = []
    for field in shown.table.schema:
        noisy = field.name in shown.margins
        meaning = "synthetic value" if kind == "synthetic rows" else "noisy number" if noisy else "group"
        columns.append(ColumnDescription(field.name, _type_name(field.type), meaning))
        if noisy:
            margin = f"95 % margin of error of {field.name} from privacy noise"
            columns.append(ColumnDescription(f"{field.name}_margin", "real", margin))
        if field.name in getattr(shown, "whole", {}):
            whole = f"{field.name} as a non-negative whole number that adds up across tables (biased)"
            columns.append(ColumnDescription(f"{field.name}_whole", "integer", whole))
    return tuple(columns)


def margin_summary(shown: Describable) -> MarginSummary | None:
    """Return the margins of a table's numbers, and the share that is reliable, by size; None without margins."""
    values, margins = [], []
    for name, column in shown.margins.items():
        for value, margin in zip(shown.table.column(name).to_pylist(), column, strict=True):
            if isinstance(value, int | float) and margin is not None:
                values.append(float(value))
                margins.append(float(margin))
    if not values:
        return None
    sizes, widths = np.abs(values), np.array(margins)
    reliable = widths <= _RELIABLE * sizes
    classes, low = [], 0.0
    for high, label in _CLASSES:
        chosen = (sizes >= low) & (sizes < high)
        if chosen.any():
            share, median = float(reliable[chosen].mean()), float(np.median(widths[chosen]))
            classes.append(SizeClass(label, int(chosen.sum()), median, share))
        low = high
    return MarginSummary(float(np.median(widths)), float(widths.max()), float(reliable.mean()), tuple(classes))


def _type_name(kind: pa.DataType) -> str:
    names = {"int64": "integer", "double": "real", "string": "text", "bool": "boolean", "date32[day]": "date"}
    return names.get(str(kind), str(kind))
