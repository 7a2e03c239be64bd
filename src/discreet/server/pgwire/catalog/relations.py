"""The relations of PostgreSQL's catalog: their columns and types.

The file has, for each relation, its name and `type: column column …`; a type holds for all columns up to the next one.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pyarrow as pa

CATALOG, INFORMATION = "pg_catalog", "information_schema"
CATALOG_OID, OWNER_OID = 11, 10
OID = pa.uint32()
_TYPES: Mapping[str, tuple[pa.DataType, str]] = {
    "oid": (OID, "UINTEGER"),
    "text": (pa.string(), "VARCHAR"),
    "bool": (pa.bool_(), "BOOLEAN"),
    "int2": (pa.int16(), "SMALLINT"),
    "int4": (pa.int32(), "INTEGER"),
    "int8": (pa.int64(), "BIGINT"),
    "float4": (pa.float32(), "FLOAT"),
    "float8": (pa.float64(), "DOUBLE"),
    "timestamptz": (pa.timestamp("us", "UTC"), "TIMESTAMPTZ"),
    "interval": (pa.duration("us"), "INTERVAL"),
}
_POLICY_COLUMNS = {  # what the policy says beyond the standard
    "tables": "text: is_private privacy_unit",
    "columns": "text: minimum maximum declared_values is_unit",
}
Columns = Sequence[tuple[str, str]]


@cache
def relations() -> Mapping[str, Columns]:
    """Return the names and types of the columns of every relation; those of information_schema have it as prefix.

    >>> relations()["pg_am"]
    [('oid', 'oid'), ('amname', 'text'), ('amhandler', 'text'), ('amtype', 'text')]
    """
    text = Path(__file__).with_name("relations.txt").read_text(encoding="utf-8").replace("\n  ", " ")
    found = {}
    for line in text.splitlines():
        name, _, words = line.partition(" = ")
        found[name] = _columns(f"{words} {_POLICY_COLUMNS.get(name.removeprefix(INFORMATION + '.'), '')}")
    return found


def _columns(words: str) -> Columns:
    columns, kind = [], ""
    for word in words.split():
        if word.endswith(":"):
            kind = word[:-1]
        else:
            columns.append((word, kind))
    return columns


def arrow_schema(name: str) -> pa.Schema:
    """Return the columns of a relation as Arrow knows them.

    >>> arrow_schema("pg_am").names
    ['oid', 'amname', 'amhandler', 'amtype']
    """
    return pa.schema([(column, _arrow_type(kind)) for column, kind in relations()[name]])


def _arrow_type(kind: str) -> pa.DataType:
    return pa.list_(_arrow_type(kind[:-2])) if kind.endswith("[]") else _TYPES[kind][0]


def create_statements() -> str:
    """Return the SQL that creates every relation in DuckDB."""
    return "".join(
        f'CREATE TABLE "{name}" ({", ".join(f"{_quoted(column)} {_duckdb_type(kind)}" for column, kind in columns)});'
        for name, columns in relations().items()
    )


def _duckdb_type(kind: str) -> str:
    return f"{_duckdb_type(kind[:-2])}[]" if kind.endswith("[]") else _TYPES[kind][1]


def _quoted(name: str) -> str:
    return f'"{name}"'
