"""SmartNoise metadata (YAML): collection → schema → table → columns, with the options of the table among them."""

import re
from pathlib import Path
from typing import Any

from discreet.kernel.errors import PolicyError
from discreet.policy.drafting.sketch import (
    ColumnSketch,
    TableSketch,
    option_notes,
    positive_integer,
    toml_bound,
    unknown_key_notes,
)
from discreet.policy.problems import shorten
from discreet.policy.toml import FloatText

_MAX_METADATA_BYTES = 10_000_000
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$")  # 1e5 too, unlike YAML 1.1
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


def read_metadata(file: Path) -> tuple[str | None, list[TableSketch]]:
    """Read a metadata file; return the data set's name and its tables."""
    text = _read_text(file)
    try:
        return read_smartnoise(_parse_yaml(text))
    except PolicyError:
        raise
    except ValueError as error:
        hint = "Use SmartNoise metadata (collection, schema, table, columns), or write the policy by hand."
        raise PolicyError(f"{file}: {error}. {hint}") from None


def _read_text(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            content = stream.read(_MAX_METADATA_BYTES + 1)
        if len(content) > _MAX_METADATA_BYTES:
            raise PolicyError(f"{file}: larger than 10 MB, too large for metadata. Give a metadata file.")
        return content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise PolicyError(f"{file}: cannot read the file ({reason}). Give a metadata file in YAML.") from None


def _parse_yaml(text: str) -> Any:
    """Parse YAML; floats keep their digits, and dates stay text. ValueError names the line of a mistake."""
    try:
        import yaml  # noqa: PLC0415 - an extra
    except ImportError:
        raise PolicyError("metadata: reading YAML needs an extra. Run: pip install 'discreet[yaml]'") from None

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # it has no types
        pass

    Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))
    Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: FloatText(loader.construct_scalar(node)))
    Loader.add_constructor("tag:yaml.org,2002:timestamp", Loader.construct_yaml_str)
    try:
        return yaml.load(text, Loader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ValueError(f"{where}not YAML ({error.problem})") from None
    except yaml.YAMLError:
        raise ValueError("not YAML") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


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
