"""Descriptions of published tables for the report: columns, and how accurate the numbers are, small cells first."""

import datetime as dt
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from discreet.estimate.planned_release import QueryPlan
from discreet.kernel.expr import Value
from discreet.kernel.question import PublicGroups
from discreet.postprocess.sql_expression import ColumnOrigin
from discreet.publish.file_tables import Describable, FileTable
from discreet.publish.record import ColumnDescription, MarginSummary, PartKind, SizeClass

_CLASSES = ((10, "below 10"), (100, "10 to 100"), (1_000, "100 to 1,000"), (np.inf, "1,000 and more"))
_RELIABLE = 0.25  # of a value, at most which its margin is
_FEW_VALUES = 12
ADDED_SUFFIXES = {  # of the columns that belong to a number
    "_margin": "95 % margin of error of {} from privacy noise",
    "_noise_margin": "95 % margin of error of {} from privacy noise alone",
    "_sampling_margin": "95 % margin of error of {} from sampling alone",
    "_whole": "{} as a non-negative whole number that adds up across tables (biased)",
    "_bias": "estimated clipping bias of {}, which is too low by it; NULL if there is no estimate",
    "_bias_low": "lower bound of the clipping bias of {}: it is too low by at least this",
}
_FORMULA_NOTE = "; in the CSV file an apostrophe precedes texts that begin with = + - @, a tab or a carriage return"


def column_descriptions(
    shown: Describable, written: FileTable, kind: PartKind, domains: Mapping[str, str]
) -> tuple[ColumnDescription, ...]:
    """Return what the columns of a published file mean; `domains` has the values of groups and synthetic columns."""
    columns = []
    for name, type_ in zip(written.table.schema.names, written.table.schema.types, strict=True):
        meaning = (
            "synthetic value" if kind == "synthetic rows" else "noisy number" if name in shown.margins else "group"
        )
        for suffix, text in ADDED_SUFFIXES.items():
            if (number := name.removesuffix(suffix)) in shown.margins and name not in shown.table.column_names:
                meaning = text.format(number)
        if kind != "synthetic rows" and name in written.formulas:
            meaning += _FORMULA_NOTE
        columns.append(ColumnDescription(name, _type_name(type_), meaning, domains.get(name, "")))
    return tuple(columns)


def group_domains(plan: QueryPlan) -> dict[str, str]:
    """Return the values of the groups of a query, by column."""
    keys = {
        (release.name, key): values_text(release.question.groups.domains[at])
        if isinstance(release.question.groups, PublicGroups)
        else "values of the data in enough units, chosen privately"
        for release in plan.answering
        for at, key in enumerate(release.keys)
    }
    return {
        name: keys[origin.table, origin.column]
        for name, origin in zip(plan.postprocess.names, plan.postprocess.origins, strict=True)
        if isinstance(origin, ColumnOrigin) and (origin.table, origin.column) in keys
    }


def values_text(values: Sequence[Value]) -> str:
    """Return the values of a group as a text.

    >>> values_text(("A", "B", None)), values_text(tuple(range(100)))
    ('A, B, NULL', '0 to 99')
    """
    known = [value for value in values if value is not None]
    null = ["NULL"] * (len(known) < len(values))
    if len(values) <= _FEW_VALUES:
        return ", ".join([*map(_value_text, known), *null])
    if not isinstance(known[0], int | dt.date) or isinstance(known[0], bool):
        return ", ".join([f"{len(known):,} values, such as {', '.join(map(_value_text, known[:3]))}", *null])
    first, last = min(known), max(known)
    every = isinstance(first, int) and last - first == len(known) - 1  # type: ignore[operator]
    count = "" if every else f" ({len(known):,} values)"
    return ", ".join([f"{_value_text(first)} to {_value_text(last)}{count}", *null])


def _value_text(value: Value) -> str:
    is_day = isinstance(value, dt.datetime) and value.time() == dt.time()
    return value.date().isoformat() if is_day else str(value)  # type: ignore[union-attr]


def margin_summary(shown: Describable) -> MarginSummary | None:
    """Return the margins of a table's numbers, and the share that is reliable, by size; None without margins."""
    pairs = [
        (shown.table.column(name).to_numpy().astype(float), np.array(margins, float))
        for name, margins in shown.margins.items()
        if _is_number(shown.table.column(name).type)
    ]
    values, widths = (np.concatenate(each) for each in zip(*pairs, strict=True)) if pairs else (np.zeros(0),) * 2
    known = ~(np.isnan(values) | np.isnan(widths))
    if not known.any():
        return None
    sizes, widths = np.abs(values[known]), widths[known]
    reliable = widths <= _RELIABLE * sizes
    classes, low = [], 0.0
    for high, label in _CLASSES:
        chosen = (sizes >= low) & (sizes < high)
        if chosen.any():
            share, median = float(reliable[chosen].mean()), float(np.median(widths[chosen]))
            classes.append(SizeClass(label, int(chosen.sum()), median, share))
        low = high
    return MarginSummary(float(np.median(widths)), float(widths.max()), float(reliable.mean()), tuple(classes))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _type_name(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "timestamp"
    names = {"int64": "integer", "double": "real", "string": "text", "bool": "boolean", "date32[day]": "date"}
    return names.get(str(kind), str(kind))
