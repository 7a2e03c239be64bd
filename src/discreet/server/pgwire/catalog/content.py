"""The rows of the catalog: PostgreSQL's own schemas and types, and the tables of the policy that a person may query."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from discreet.policy.column_domains import References
from discreet.policy.declarations import DeclaredTable, ParentTableUnit
from discreet.server.pgwire.catalog.relations import CATALOG, CATALOG_OID, INFORMATION, OWNER_OID, relations
from discreet.server.pgwire.catalog.type_rows import (
    TEXT_TYPES,
    Row,
    base_types,
    long_type_names,
    type_numbers,
    type_rows,
)
from discreet.server.pgwire.settings import DEFAULTS

PUBLIC_OID, INFORMATION_OID, DATABASE_OID, HEAP_OID = 2200, 13_000, 5, 2
OWNER_NAME = "discreet"
_FIRST_TABLE, _FIRST_SYSTEM_TABLE, _FIRST_CONSTRAINT = 16_384, 10_000, 60_000
PG_CLASS, PG_TYPE = 1259, 1247
_KNOWN_OIDS = {
    "pg_class": PG_CLASS,
    "pg_type": PG_TYPE,
    "pg_attribute": 1249,
    "pg_proc": 1255,
    "pg_database": 1262,
    "pg_tablespace": 1213,
    "pg_constraint": 2606,
    "pg_namespace": 2615,
    "pg_description": 2609,
    "pg_extension": 3079,
}


@dataclass(frozen=True)
class CatalogSource:
    """What a person may know: the name of the data, the declared tables, and information_schema as queries show it."""

    database: str
    declared: Sequence[DeclaredTable]
    tables: pa.Table
    columns: pa.Table


def relation_numbers(source: CatalogSource) -> dict[str, int]:
    """Return the numbers of the policy's tables and of the catalog's own relations, by name."""
    system = {
        name: _KNOWN_OIDS.get(name, _FIRST_SYSTEM_TABLE + place)
        for place, name in enumerate(name for name in relations() if not name.startswith(INFORMATION))
    }
    return system | {table.name: _FIRST_TABLE + place for place, table in enumerate(source.declared)}


def catalog_rows(source: CatalogSource) -> Mapping[str, list[Row]]:
    """Return the rows of every relation that has some."""
    numbers = relation_numbers(source)
    constraints = list(_foreign_keys(source, numbers))
    return {
        "pg_namespace": [
            {"oid": oid, "nspname": name, "nspowner": OWNER_OID}
            for oid, name in ((CATALOG_OID, CATALOG), (PUBLIC_OID, "public"), (INFORMATION_OID, INFORMATION))
        ],
        "pg_database": [_database_row(source.database)],
        "pg_roles": [_role_row()],
        "pg_am": [
            {"oid": HEAP_OID, "amname": "heap", "amhandler": "heap_tableam_handler", "amtype": "t"},
            {"oid": 403, "amname": "btree", "amhandler": "bthandler", "amtype": "i"},
        ],
        "pg_collation": [_collation_row(100, "default", "d"), _collation_row(950, "C", "c")],
        "pg_tablespace": [{"oid": 1663, "spcname": "pg_default", "spcowner": OWNER_OID}],
        "pg_settings": [{"name": name, "setting": value, "context": "user"} for name, value in DEFAULTS.items()],
        "pg_type": list(type_rows()),
        "pg_class": list(_relation_rows(source, numbers)),
        "pg_attribute": list(_attribute_rows(source, numbers)),
        "pg_description": list(_description_rows(source, numbers)),
        "pg_constraint": [row for row, _ in constraints],
        "pg_tables": [
            {"schemaname": "public", "tablename": table.name, "tableowner": OWNER_NAME, "hasindexes": False}
            for table in source.declared
        ],
        "constraint_texts": [{"oid": row["oid"], "definition": text} for row, text in constraints],
        "type_texts": [{"oid": oid, "name": name} for oid, name in long_type_names().items()],
        f"{INFORMATION}.tables": source.tables.to_pylist(),
        f"{INFORMATION}.columns": [_column_row(row) for row in source.columns.to_pylist()],
        f"{INFORMATION}.schemata": [
            {"catalog_name": source.database, "schema_name": name, "schema_owner": OWNER_NAME}
            for name in ("public", CATALOG, INFORMATION)
        ],
        f"{INFORMATION}.information_schema_catalog_name": [{"catalog_name": source.database}],
        f"{INFORMATION}.enabled_roles": [{"role_name": OWNER_NAME}],
    }


def _database_row(name: str) -> Row:
    return {
        "oid": DATABASE_OID,
        "datname": name,
        "datdba": OWNER_OID,
        "encoding": 6,
        "datlocprovider": "c",
        "datistemplate": False,
        "datallowconn": True,
        "datconnlimit": -1,
        "dattablespace": 1663,
        "datcollate": "C.UTF-8",
        "datctype": "C.UTF-8",
    }


def _role_row() -> Row:
    rights = ("rolsuper", "rolcreaterole", "rolcreatedb", "rolreplication", "rolbypassrls", "rolcanlogin")
    return {
        "oid": OWNER_OID,
        "rolname": OWNER_NAME,
        "rolinherit": True,
        "rolconnlimit": -1,
        **dict.fromkeys(rights, False),
    }


def _collation_row(oid: int, name: str, provider: str) -> Row:
    return {
        "oid": oid,
        "collname": name,
        "collnamespace": CATALOG_OID,
        "collowner": OWNER_OID,
        "collprovider": provider,
        "collisdeterministic": True,
        "collencoding": -1,
    }


def _relation_rows(source: CatalogSource, numbers: Mapping[str, int]) -> Iterator[Row]:
    own = {table.name: table for table in source.declared}
    linked = {name for table in source.declared for name in _linked_tables(table)}
    for name, oid in numbers.items():
        width = len(own[name].columns) if name in own else len(relations()[name])
        yield {
            "oid": oid,
            "relname": name,
            "relnamespace": PUBLIC_OID if name in own else CATALOG_OID,
            "relowner": OWNER_OID,
            "relam": HEAP_OID,
            "relnatts": width,
            "relkind": "r",
            "relpersistence": "p",
            "relreplident": "d",
            "reltuples": -1.0,
            "relispopulated": True,
            "relhastriggers": name in linked,  # by which psql knows that there are foreign keys
            **dict.fromkeys(("reltype", "reloftype", "relfilenode", "reltablespace", "reltoastrelid", "relpages"), 0),
            **dict.fromkeys(("relallvisible", "relchecks", "relrewrite", "relfrozenxid", "relminmxid"), 0),
            **dict.fromkeys(("relhasindex", "relisshared", "relhasrules", "relhassubclass", "relispartition"), False),
            **dict.fromkeys(("relrowsecurity", "relforcerowsecurity"), False),
        }


def _attribute_rows(source: CatalogSource, numbers: Mapping[str, int]) -> Iterator[Row]:
    by_name, sizes = type_numbers(), {oid: size for oid, _, size, _ in base_types()}
    for row in source.columns.to_pylist():
        oid = by_name[row["data_type"]]
        yield {
            "attrelid": numbers[row["table_name"]],
            "attname": row["column_name"],
            "atttypid": oid,
            "attstattarget": -1,
            "attlen": sizes[oid],
            "attnum": row["ordinal_position"],
            "attcacheoff": -1,
            "atttypmod": -1,
            "attnotnull": row["is_nullable"] == "NO",
            "attbyval": 0 < sizes[oid] <= 8,
            "attalign": "i",
            "attstorage": "p" if sizes[oid] > 0 else "x",
            "attcollation": 100 if row["data_type"] in TEXT_TYPES else 0,
            "attislocal": True,
            **dict.fromkeys(("attndims", "attinhcount"), 0),
            **dict.fromkeys(("atthasdef", "atthasmissing", "attisdropped"), False),
            **dict.fromkeys(("attidentity", "attgenerated", "attcompression"), ""),
        }


def _column_row(row: Row) -> Row:
    name = next(name for name, oid in type_numbers().items() if oid == type_numbers()[row["data_type"]])
    return row | {"udt_name": name, "udt_schema": CATALOG, "is_updatable": "NO", "is_identity": "NO"}


def _description_rows(source: CatalogSource, numbers: Mapping[str, int]) -> Iterator[Row]:
    for table in source.declared:
        yield _description(numbers[table.name], 0, _table_text(table))
    for row in source.columns.to_pylist():
        if text := _column_text(row):
            yield _description(numbers[row["table_name"]], row["ordinal_position"], text)


def _description(oid: int, column: int, text: str) -> Row:
    return {"objoid": oid, "classoid": PG_CLASS, "objsubid": column, "description": text}


def _table_text(table: DeclaredTable) -> str:
    if table.public:
        return "Public. Queries on public tables alone need no budget."
    unit = getattr(table.unit, "name", None)
    whose = f"all rows with the same {unit}" if unit else "one row"
    if isinstance(table.unit, ParentTableUnit):
        whose = f"that of {table.unit.table}, by {table.unit.on}"
    return f"Private: answers are noisy, and each costs part of the budget. The privacy unit is {whose}."


def _column_text(row: Row) -> str:
    parts = []
    if row["is_unit"] == "YES":
        parts.append("identifies the privacy unit")
    if row["minimum"] is not None:
        parts.append(f"from {row['minimum']} to {row['maximum']}")
    if row["declared_values"] is not None:
        parts.append(f"values: {row['declared_values']}")
    return "; ".join(parts)


def _linked_tables(table: DeclaredTable) -> Iterator[str]:
    """Yield a table and those that it refers to, if it refers to any."""
    for _, other, _ in _references(table):
        yield table.name
        yield other


def _references(table: DeclaredTable) -> Iterator[tuple[str, str, str]]:
    """Yield each column that refers to another table, with that table and its column."""
    if isinstance(table.unit, ParentTableUnit):
        yield table.unit.on, table.unit.table, table.unit.key
    for column in table.columns.values():
        if isinstance(column.domain, References):
            yield column.name, column.domain.table, column.domain.column


def _foreign_keys(source: CatalogSource, numbers: Mapping[str, int]) -> Iterator[tuple[Row, str]]:
    """Yield the references between tables as foreign keys, with their definitions as text."""
    places = {(row["table_name"], row["column_name"]): row["ordinal_position"] for row in source.columns.to_pylist()}
    number = _FIRST_CONSTRAINT
    for table in source.declared:
        for column, other, key in _references(table):
            if (table.name, column) not in places or (other, key) not in places:
                continue
            number += 1
            row = {
                "oid": number,
                "conname": f"{table.name}_{column}_fkey",
                "connamespace": PUBLIC_OID,
                "contype": "f",
                "conrelid": numbers[table.name],
                "confrelid": numbers[other],
                "conkey": [places[table.name, column]],
                "confkey": [places[other, key]],
                "convalidated": True,
                "conislocal": True,
                **dict.fromkeys(("contypid", "conindid", "conparentid", "coninhcount"), 0),
                **dict.fromkeys(("condeferrable", "condeferred", "connoinherit"), False),
                **dict.fromkeys(("confupdtype", "confdeltype"), "a"),
                "confmatchtype": "s",
            }
            yield row, f'FOREIGN KEY ("{column}") REFERENCES "{other}"("{key}")'
