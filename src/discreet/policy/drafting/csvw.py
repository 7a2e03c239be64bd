"""CSV on the Web metadata (JSON), with the terms that CSVW-EO adds for differential privacy.

Prefixes of terms (csvw-eo:maxContributions, csvw-eo:bounds.maxContributions, dp:maxContributions) are ignored. From
CSV on the Web itself, tables, names, types, ranges and foreign keys are read.
"""

import re
from pathlib import Path
from typing import Any

from discreet.policy.drafting.sketch import (
    ColumnSketch,
    TableSketch,
    option_notes,
    positive_integer,
    toml_bound,
    toml_keys,
    unknown_key_notes,
)
from discreet.policy.problems import shorten

_TYPES = {
    **dict.fromkeys(("integer", "long", "int", "short", "byte"), "integer"),
    **dict.fromkeys(("nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"), "integer"),
    **dict.fromkeys(("unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte", "gYear"), "integer"),
    **dict.fromkeys(("double", "float", "number"), "real"),
    "decimal": "decimal",
    "boolean": "boolean",
    "date": "date",
    **dict.fromkeys(("dateTime", "datetime", "dateTimeStamp"), "timestamp"),
    **dict.fromkeys(("string", "normalizedString", "token", "anyURI", "anyAtomicType", "any"), "text"),
    **dict.fromkeys(("language", "Name", "NMTOKEN", "gMonth", "gDay", "gMonthDay", "gYearMonth"), "text"),
}
_KEY_LIST_TERMS = ("keyValues", "publicKeys", "publicKeyValues")
_TABLE_NOTES = {
    "publicLength": "an exact count of the data, which a policy must not disclose",
    "tableLength": "an exact count of the data, which a policy must not disclose",
    "length": "an exact count of the data, which a policy must not disclose",
    "privacyModel": "not needed: all private tables of a policy have the same unit",
    "additionalInformation": "not supported: grouping by two declared columns returns every pair",
}
_COLUMN_NOTES = {
    "nullableProportion": "a statistic of the data, which a policy must not disclose",
    "maxNumPartitions": "not needed: it follows from the listed values",
    "maxGroupsPerUnit": "could be used as groups of the table",
    "maxContributions": "could be used as rows of the table",
    "maxLength": "the rows of one group; rows_max is for the whole table",
    "rowDependencies": "not supported: a policy has no dependencies between columns",
}
_TABLE_TERMS = (
    "@context", "@type", "@id", "type", "id", "url", "name", "title", "titles", "description", "tableSchema", "dialect",
    "privacyUnit", "maxContributions", "maxLength", "maxGroupsPerUnit",
)  # fmt: skip
_COLUMN_TERMS = (
    "@type", "type", "name", "titles", "datatype", "required", "minimum", "maximum", "privacyId", "nullable", "null",
    "partitions", "exhaustiveKeys", "exhaustivePartitions", "invariantPublicKeys", "description", "propertyUrl",
    *_KEY_LIST_TERMS,
)  # fmt: skip
_LAST_WORD = re.compile(r"[^:.#/]+$")


def is_csvw(values: Any) -> bool:
    """Whether a document is CSV on the Web metadata: a table with a schema, or several tables."""
    return isinstance(values, dict) and ("tableSchema" in values or isinstance(values.get("tables"), list))


def read_csvw(values: dict[str, Any], folder: Path) -> tuple[str | None, list[TableSketch]]:
    """Read the name of the data set and its tables; raise ValueError if a table has no schema."""
    entries = [entry for entry in values.get("tables", [values]) if isinstance(entry, dict)]
    raw_schemas = [entry.get("tableSchema", values.get("tableSchema")) for entry in entries]
    schemas = [schema for schema in raw_schemas if isinstance(schema, dict)]
    if not entries or len(schemas) < len(entries):
        raise ValueError("a table has no tableSchema")
    tables_by_url = {str(entry.get("url")): _table_name(entry, index) for index, entry in enumerate(entries)}
    tables = [
        _table_sketch(_without_prefixes(entry), schema, _table_name(entry, index), folder, tables_by_url)
        for index, (entry, schema) in enumerate(zip(entries, schemas, strict=True))
    ]
    name = values.get("name")
    return (shorten(name) if isinstance(name, str) else None), tables


def _without_prefixes(entry: dict[str, Any]) -> dict[str, Any]:
    """Remove prefixes from keys, and flatten the groups public, bounds, contrib and synth."""
    flat: dict[str, Any] = {}
    for key, value in entry.items():
        if key in ("public", "bounds", "contrib", "synth") and isinstance(value, dict):
            flat.update(_without_prefixes(value))
        else:
            word = _LAST_WORD.search(key)
            flat[key if key.startswith("@") or not word else word[0]] = value
    return flat


def _table_name(entry: dict[str, Any], index: int) -> str:
    named = entry.get("name") or Path(str(entry.get("url") or f"table{index + 1}")).name.partition(".")[0]
    return str(named).replace(".", "_") or f"table{index + 1}"


def _table_sketch(
    entry: dict[str, Any], schema: dict[str, Any], name: str, folder: Path, tables_by_url: dict[str, str]
) -> TableSketch:
    raw_columns = [_without_prefixes(column) for column in schema.get("columns", []) if isinstance(column, dict)]
    units = [str(column.get("name")) for column in raw_columns if column.get("privacyId") is True]
    privacy_unit = entry.get("privacyUnit")
    unit = str(privacy_unit) if isinstance(privacy_unit, str) else units[0] if len(units) == 1 else None
    links = _foreign_keys(schema, tables_by_url)
    columns = tuple(_column_sketch(column, unit, links) for column in raw_columns if not column.get("virtual"))
    notes = option_notes(entry, _TABLE_NOTES)
    if unit is not None and not any(column.name == unit for column in columns):
        notes.append(f"privacyUnit: column {shorten(unit)} does not exist")
        unit = None
    is_exact_count = entry.get("maxLength") in [
        entry[key] for key in ("publicLength", "tableLength", "length") if key in entry
    ]
    if is_exact_count:
        notes.append("maxLength: the exact count; rows_max would need an upper bound that always holds")
    url = entry.get("url")
    max_contributions = positive_integer(entry.get("maxContributions"))
    return TableSketch(
        name,
        str(url) if isinstance(url, str) and "://" in url else str(folder / url) if isinstance(url, str) else None,
        columns,
        unit=unit,
        groups=positive_integer(entry.get("maxGroupsPerUnit")) or (1 if max_contributions == 1 else None),
        rows=max_contributions,
        rows_max=None if is_exact_count else positive_integer(entry.get("maxLength")),
        notes=(*notes, *unknown_key_notes(entry, (*_TABLE_NOTES, *_TABLE_TERMS))),
    )


def _column_sketch(entry: dict[str, Any], unit: str | None, links: dict[str, tuple[str, str]]) -> ColumnSketch:
    name, datatype = str(entry.get("name") or _first_title(entry.get("titles"))), entry.get("datatype", "string")
    details = datatype if isinstance(datatype, dict) else {}
    type_name = str(details.get("base", "string") if details else datatype)
    kind = _TYPES.get(type_name.rpartition(":")[2])
    ends = {**{key: details[key] for key in ("minimum", "maximum") if key in details}, **entry}
    low, high = (None if name == unit else toml_bound(kind, ends.get(end)) for end in ("minimum", "maximum"))
    keys = None if name == unit else toml_keys(kind, _public_keys(entry))
    notes = option_notes(entry, _COLUMN_NOTES)
    if keys and entry.get("exhaustiveKeys") is False:
        notes.append("the listed keys are not exhaustive: grouping ignores other values")
    elif not keys and name != unit and _public_keys(entry):
        notes.append(f"its keys are omitted, because they are not of type {kind or type_name}")
    return ColumnSketch(
        name,
        kind,
        shorten(type_name),
        low=low,
        high=high,
        keys=() if kind == "boolean" else keys or (),
        references=links.get(name),
        nullable=entry.get("nullable") is True or entry.get("required") is False,
        notes=(*notes, *unknown_key_notes(entry, (*_COLUMN_NOTES, *_COLUMN_TERMS))),
    )


def _first_title(titles: Any) -> str:
    if isinstance(titles, list) and titles:
        return str(titles[0])
    return titles if isinstance(titles, str) else "unnamed"


def _public_keys(entry: dict[str, Any]) -> list[Any]:
    """Return the public keys of a column: its list, or its partitions if each is a single value."""
    for term in _KEY_LIST_TERMS:
        if isinstance(entry.get(term), list):
            return list(entry[term])
    parts = [_without_prefixes(part) for part in entry.get("partitions") or () if isinstance(part, dict)]
    predicates = [part["predicate"] for part in parts if isinstance(part.get("predicate"), dict)]
    values = [_without_prefixes(predicate).get("partitionValue") for predicate in predicates]
    return values if values and all(value is not None for value in values) and len(values) == len(parts) else []


def _foreign_keys(schema: dict[str, Any], tables_by_url: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Map each column with a foreign key to the table and column that it references."""
    links = {}
    for key in schema.get("foreignKeys") or ():
        target = key.get("reference") if isinstance(key, dict) else None
        if isinstance(target, dict):
            ends = [_single_column(key.get("columnReference")), _single_column(target.get("columnReference"))]
            table = tables_by_url.get(str(target.get("resource")))
            if table and ends[0] and ends[1]:
                links[ends[0]] = (table, ends[1])
    return links


def _single_column(reference: Any) -> str | None:
    if isinstance(reference, list):
        return str(reference[0]) if len(reference) == 1 else None
    return reference if isinstance(reference, str) else None
