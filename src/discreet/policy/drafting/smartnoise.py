"""SmartNoise's metadata: collection → schema → table → columns, beside the options of the table."""

from typing import Any

from discreet.policy.drafting.sketch import ColumnSketch, TableSketch
from discreet.policy.drafting.told import bound_text, option_notes, unknown_notes, whole
from discreet.policy.problems import brief

_TYPES = {"int": "integer", "float": "real", "string": "text", "boolean": "boolean", "datetime": "timestamp"}
_OPTIONS = {
    "rows": "a rough number of rows; rows_max would be an upper bound that always holds",
    "rows_exact": "a count of the data itself, which a policy does not tell",
    "censor_dims": "groups are declared here, or discovered with a delta",
    "clamp_counts": "noisy counts are shown as they are here, also below zero",
    "clamp_columns": "numbers are always clipped here where they are added up",
    "sample_max_ids": "what is beyond the limits is scaled down here, never sampled",
    "use_dpsu": "groups are declared here, or discovered with a delta",
    "max_contributions": "an older word for max_ids",
}
_COLUMN_OPTIONS = {
    "cardinality": "the number of values; list them with in if they are known",
    "card": "the number of values; list them with in if they are known",
    "missing_value": "nothing is filled in here: a missing value is left out",
    "sensitivity": "follows from the bounds here",
}
_READ = ("row_privacy", "max_ids", "type", "name", "lower", "upper", "nullable", "private_id")


def read_smartnoise(values: Any) -> tuple[str | None, list[TableSketch]]:
    """Read what SmartNoise is told about tables; ValueError if it is something else."""
    named = {key: value for key, value in values.items() if key != "engine"} if isinstance(values, dict) else {}
    if len(named) != 1 or not isinstance(schemas := next(iter(named.values())), dict):
        raise ValueError("not one collection of schemas")
    tables = [
        _table(str(name), entry)
        for schema in schemas.values()
        if isinstance(schema, dict)
        for name, entry in schema.items()
        if isinstance(entry, dict)
    ]
    if not tables:
        raise ValueError("no table in the collection")
    collection = str(next(iter(named))).strip()
    return (brief(collection) or None) if len(tables) > 1 else None, tables


def _table(name: str, entry: dict[str, Any]) -> TableSketch:
    columns = {key: value for key, value in entry.items() if isinstance(value, dict)}
    options = {key: value for key, value in entry.items() if key not in columns}
    units = [key for key, column in columns.items() if column.get("private_id") is True]
    most = whole(options.get("max_ids", options.get("max_contributions")))
    notes = option_notes(options, _OPTIONS)
    if len(units) > 1:
        notes.append(f"several columns are private_id: {', '.join(map(brief, units))}; choose one as unit")
    if most and most > 1:
        notes.append(f"max_ids = {most}: so many rows of one unit in all, hence in one group at most")
    return TableSketch(
        name.replace(".", "_"),
        None,
        tuple(_column(key, column) for key, column in columns.items()),
        unit=units[0] if len(units) == 1 else None,
        row=options.get("row_privacy") is True,
        groups=1 if most == 1 else None,
        rows=most,
        notes=(*notes, *unknown_notes(options, (*_OPTIONS, *_READ))),
    )


def _column(name: str, entry: dict[str, Any]) -> ColumnSketch:
    kind = _TYPES.get(str(entry.get("type")))
    low, high = (bound_text(kind, entry.get(end)) for end in ("lower", "upper"))
    notes = option_notes(entry, _COLUMN_OPTIONS)
    is_unit = entry.get("private_id") is True
    return ColumnSketch(
        name,
        kind,
        f"the type {brief(str(entry.get('type')))}",
        low=None if is_unit else low,
        high=None if is_unit else high,
        notes=(*notes, *unknown_notes(entry, (*_COLUMN_OPTIONS, *_READ))),
    )
