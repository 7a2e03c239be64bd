"""SmartNoise metadata: collection → schema → table → columns, with the options of the table among them."""

from typing import Any

from discreet.policy.drafting.sketch import (
    ColumnSketch,
    TableSketch,
    option_notes,
    positive_integer,
    toml_bound,
    unknown_key_notes,
)
from discreet.policy.problems import shorten

_TYPES = {"int": "integer", "float": "real", "string": "text", "boolean": "boolean", "datetime": "timestamp"}
_TABLE_OPTIONS = {
    "rows": "an approximate number of rows; rows_max would need an upper bound that always holds",
    "rows_exact": "an exact count of the data, which a policy must not disclose",
    "censor_dims": "not needed: groups are declared, or released by partition selection with a delta",
    "clamp_counts": "not supported: noisy counts are not clamped and may be negative",
    "clamp_columns": "not needed: values are always clamped before they are summed",
    "sample_max_ids": "not supported: contributions above the bounds are clipped, never sampled",
    "use_dpsu": "not needed: groups are declared, or released by partition selection with a delta",
    "max_contributions": "an older name for max_ids",
}
_COLUMN_OPTIONS = {
    "cardinality": "the number of values; list them with in if they are known",
    "card": "the number of values; list them with in if they are known",
    "missing_value": "not supported: NULL is not imputed but ignored",
    "sensitivity": "not needed: it follows from the bounds",
}
_KNOWN_KEYS = ("row_privacy", "max_ids", "type", "name", "lower", "upper", "nullable", "private_id")


def read_smartnoise(values: Any) -> tuple[str | None, list[TableSketch]]:
    """Read SmartNoise metadata; raise ValueError if the document is something else."""
    collections = {key: value for key, value in values.items() if key != "engine"} if isinstance(values, dict) else {}
    if len(collections) != 1 or not isinstance(schemas := next(iter(collections.values())), dict):
        raise ValueError("expected one collection of schemas")
    tables = [
        _table_sketch(str(name), entry)
        for schema in schemas.values()
        if isinstance(schema, dict)
        for name, entry in schema.items()
        if isinstance(entry, dict)
    ]
    if not tables:
        raise ValueError("the collection has no tables")
    collection = str(next(iter(collections))).strip()
    return (shorten(collection) or None) if len(tables) > 1 else None, tables


def _table_sketch(name: str, entry: dict[str, Any]) -> TableSketch:
    columns = {key: value for key, value in entry.items() if isinstance(value, dict)}
    options = {key: value for key, value in entry.items() if key not in columns}
    units = [key for key, column in columns.items() if column.get("private_id") is True]
    max_ids = positive_integer(options.get("max_ids", options.get("max_contributions")))
    notes = option_notes(options, _TABLE_OPTIONS)
    if len(units) > 1:
        notes.append(f"several columns are private_id: {', '.join(map(shorten, units))}; choose one as the unit")
    if max_ids and max_ids > 1:
        notes.append(f"max_ids = {max_ids}: maximum rows per unit in total, and so in any one group")
    return TableSketch(
        name.replace(".", "_"),
        None,
        tuple(_column_sketch(key, column) for key, column in columns.items()),
        unit=units[0] if len(units) == 1 else None,
        row_is_unit=options.get("row_privacy") is True,
        groups=1 if max_ids == 1 else None,
        rows=max_ids,
        notes=(*notes, *unknown_key_notes(options, (*_TABLE_OPTIONS, *_KNOWN_KEYS))),
    )


def _column_sketch(name: str, entry: dict[str, Any]) -> ColumnSketch:
    kind = _TYPES.get(str(entry.get("type")))
    low, high = (toml_bound(kind, entry.get(end)) for end in ("lower", "upper"))
    notes = option_notes(entry, _COLUMN_OPTIONS)
    is_unit = entry.get("private_id") is True
    return ColumnSketch(
        name,
        kind,
        shorten(str(entry.get("type"))),
        low=None if is_unit else low,
        high=None if is_unit else high,
        nullable=entry.get("nullable") is True,
        notes=(*notes, *unknown_key_notes(entry, (*_COLUMN_OPTIONS, *_KNOWN_KEYS))),
    )
