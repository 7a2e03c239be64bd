"""Draft a policy from schemas, or from the metadata of SmartNoise."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, get_args

from discreet.kernel.errors import PolicyError
from discreet.policy.column_domains import ColumnType
from discreet.policy.drafting.policy_text import unit_noun, write_header, write_table
from discreet.policy.drafting.schemas import is_postgres_url, read_postgres_schemas, read_schemas
from discreet.policy.drafting.sketch import (
    CatalogSketch,
    ColumnSketch,
    TableSketch,
    option_notes,
    positive_integer,
    toml_bound,
    unknown_key_notes,
)
from discreet.policy.drafting.table_roles import find_roles
from discreet.policy.problems import did_you_mean, shorten
from discreet.policy.toml import FloatText
from discreet.policy.validators import URL_PREFIX

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


AnyPath = str | PathLike[str]

_COLUMN_TYPES = get_args(ColumnType)


def draft(  # noqa: PLR0913 - each has a name and a default
    paths: Iterable[AnyPath] = (),
    *,
    unit: str | None = None,
    types: Mapping[str, str] | None = None,
    metadata: AnyPath | None = None,
    base: AnyPath = ".",
    catalog: CatalogSketch | None = None,
) -> str:
    r"""Return a draft policy from schemas, with FILL IN for every value that the owner must supply. No row is read.

    Paths are Parquet and CSV files, patterns, "file.duckdb" or "file.duckdb/table"; or a postgresql:// URL, optionally
    followed by the names of its tables. `types` maps columns of CSV files, "column" or "table.column", to their types.
    `metadata` is a SmartNoise file (YAML), whose values are filled in. Sources are relative to
    the folder `base`. `catalog` describes the tables of another server, such as Spark (see `discreet init sc://…`).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "visits.csv")
    ...     size = file.write_text("patient,ward\n")
    ...     text = draft([file], unit="patient", base=folder)
    >>> [line for line in text.splitlines() if line.startswith(("source", "unit"))]
    ['source = "visits.csv"', 'unit = "patient"  # protected with all of their rows']
    """
    locations = [os.fspath(path) for path in paths]
    if catalog is None and locations and is_postgres_url(locations[0]):
        catalog = CatalogSketch("postgresql", locations[0], tuple(read_postgres_schemas(locations[0], locations[1:])))
    schema_tables = (
        list(catalog.tables) if catalog else [table for location in locations for table in read_schemas(location)]
    )
    name, metadata_tables = read_metadata(Path(metadata)) if metadata is not None else (None, [])
    tables = _with_types(
        _with_sources(metadata_tables, schema_tables) if metadata_tables else schema_tables, types or {}
    )
    if not tables:
        raise PolicyError("nothing to draft from. Give data files, a database URL or metadata.")
    tables = [table if catalog else _with_relative_source(table, Path(base)) for table in _with_unique_names(tables)]
    if unit is not None:
        tables = _with_unit(tables, unit)
    roles = find_roles(tables, unit)
    first = next((table.name for table in tables if table.name not in roles.lookups), tables[0].name)
    origin = "metadata" if metadata_tables else "schemas"
    header = write_header(name or first, unit_noun(tables), origin, catalog, csv_values=any(map(_may_misread, tables)))
    return "\n".join([header, *(write_table(table, roles) for table in tables)])


def _may_misread(table: TableSketch) -> bool:
    """Return whether a CSV file may have numbers or dates in a local format, which become NULL."""
    kinds = ("real", "decimal", "date", "timestamp")
    is_csv = (table.source or "").lower().removesuffix(".gz").endswith((".csv", ".tsv"))
    return is_csv and any(column.guessed or column.type in kinds for column in table.columns)


def _suggest_column(name: str, tables: Sequence[TableSketch]) -> str:
    """Suggest the column that may be meant: one with a similar spelling, or one that starts with the name."""
    known = [column.name for table in tables for column in table.columns]
    extensions = sorted((candidate for candidate in known if candidate.lower().startswith(f"{name.lower()}_")), key=len)
    return did_you_mean(extensions[0] if extensions else name, known)


def _with_sources(metadata_tables: Sequence[TableSketch], schema_tables: Sequence[TableSketch]) -> list[TableSketch]:
    """Set the sources of metadata tables by table name; if there is one of each, they belong together."""
    if len(metadata_tables) == 1 and len(schema_tables) == 1:
        return [replace(metadata_tables[0], source=schema_tables[0].source)]
    sources = {table.name.lower(): table.source for table in schema_tables}
    unknown = set(sources) - {table.name.lower() for table in metadata_tables}
    if unknown:
        raise PolicyError(
            f'table "{shorten(min(unknown))}" is not in the metadata, which has {_table_names(metadata_tables)}.'
        )
    return [replace(table, source=sources.get(table.name.lower(), table.source)) for table in metadata_tables]


def _table_names(tables: Sequence[TableSketch]) -> str:
    return ", ".join(shorten(table.name) for table in tables)


def _with_types(tables: Sequence[TableSketch], types: Mapping[str, str]) -> list[TableSketch]:
    """Set the given column types."""
    known = {column.name.lower() for table in tables for column in table.columns}
    known |= {f"{table.name}.{column.name}".lower() for table in tables for column in table.columns}
    for name, kind in types.items():
        if name.lower() not in known:
            raise PolicyError(f'types: no table has a column "{shorten(name)}"{_suggest_column(name, tables)}')
        if kind not in _COLUMN_TYPES:
            raise PolicyError(f'types: type "{shorten(kind)}" does not exist. Use one of {", ".join(_COLUMN_TYPES)}.')
    types_by_name = {name.lower(): kind for name, kind in types.items()}
    return [
        replace(table, columns=tuple(_with_type(column, table.name, types_by_name) for column in table.columns))
        for table in tables
    ]


def _with_type(column: ColumnSketch, table: str, types_by_name: Mapping[str, str]) -> ColumnSketch:
    kind = types_by_name.get(f"{table}.{column.name}".lower()) or types_by_name.get(column.name.lower())
    return replace(column, type=kind, guessed=False) if kind else column


def _with_unique_names(tables: Sequence[TableSketch]) -> list[TableSketch]:
    """Append a number to names that are already taken, ignoring case."""
    counts: dict[str, int] = {}
    result = []
    for table in tables:
        count = counts[table.name.lower()] = counts.get(table.name.lower(), 0) + 1
        result.append(table if count == 1 else replace(table, name=f"{table.name}_{count}"))
    return result


def _with_relative_source(table: TableSketch, base: Path) -> TableSketch:
    """Make a source inside the policy's folder relative to it, so that both can be moved together."""
    if table.source is None or URL_PREFIX.match(table.source):
        return table
    path, folder = Path(os.path.abspath(table.source)), Path(os.path.abspath(base))  # noqa: PTH100 - without ".."
    if not path.is_relative_to(folder):
        return replace(table, source=str(path))
    relative = str(path.relative_to(folder))
    is_recognised = os.sep in relative or relative.lower().endswith((".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz"))
    return replace(table, source=relative if is_recognised else f".{os.sep}{relative}")


def _with_unit(tables: Sequence[TableSketch], unit: str) -> list[TableSketch]:
    """Set the column that identifies units; without a column of that name, "row" makes each row a unit."""
    columns = [table.column(unit) for table in tables]
    if not any(columns) and unit == "row":
        return [replace(table, unit=None, row_is_unit=True) for table in tables]
    if not any(columns):
        raise PolicyError(f'unit: no table has a column "{shorten(unit)}"{_suggest_column(unit, tables)}')
    return [
        replace(table, unit=column.name, row_is_unit=False) if column else table
        for table, column in zip(tables, columns, strict=True)
    ]
