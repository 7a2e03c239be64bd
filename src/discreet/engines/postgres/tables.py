"""Look up tables and columns in PostgreSQL's catalog; no row is read."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from discreet.engines.postgres import casts
from discreet.engines.postgres.errors import refuse_if_locked
from discreet.engines.postgres.session import Snapshot
from discreet.engines.table_source import (
    ColumnTypes,
    EngineError,
    SourceColumn,
    SourcePart,
    TableSource,
    column_types,
    match_columns,
    source_error,
)
from discreet.kernel.errors import PolicyError
from discreet.kernel.sqlgen.dialect import quote_name
from discreet.postgres.server import COLUMNS_QUERY

_IDENTIFIER = r'("(?:[^"]|"")+"|[^\W\d][\w$]*)'
_TABLE_NAME = re.compile(rf"\s*{_IDENTIFIER}\s*(?:\.\s*{_IDENTIFIER}\s*)?")
_IS_TABLE = "c.relkind IN ('r', 'p', 'v', 'm', 'f')"  # (partitioned) tables, (materialized) views, foreign tables

_FIND_TABLE = f"""
SELECT c.oid::bigint, n.nspname::text, has_schema_privilege(n.oid, 'USAGE'), row_security_active(c.oid),
    c.relkind IN ('r', 'p', 'v')
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE {_IS_TABLE} AND c.relname = %s AND n.nspname = ANY(%s)
ORDER BY array_position(%s::text[], n.nspname::text) LIMIT 1
"""  # noqa: S608 - of constants
_READABLE_TABLES = f"""
SELECT n.nspname::text, c.relname::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE {_IS_TABLE} AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND has_table_privilege(c.oid, 'SELECT')
ORDER BY 1, 2 LIMIT 10000
"""  # noqa: S608 - of constants
# Compares the tables that this connection has locked: functions return a table's newest name and file, while the
# catalog has those of the snapshot that the question sees.
_REPLACED_TABLES = """
SELECT 1 FROM pg_locks AS l
LEFT JOIN pg_class AS c ON c.oid = l.relation LEFT JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE l.locktype = 'relation' AND l.pid = pg_backend_pid() AND (c.oid IS NULL OR n.nspname <> 'pg_catalog' AND (
    c.relkind = 'r' AND c.relfilenode <> pg_relation_filenode(c.oid)
    OR l.relation::regclass::text <> quote_ident(n.nspname) || '.' || quote_ident(c.relname)
)) LIMIT 1
"""


@dataclass(frozen=True)
class PostgresSourceTable:
    """A table of the database, with its subquery for FROM and its columns in kernel types.

    `native_types` are PostgreSQL's types of the declared columns; `type_oids` are the OIDs of the types of
    `columns_read`. `rows_hidden`: row-level security hides rows from the role. `lockable`: the table can be locked
    before the snapshot is taken; `check_replaced`: it must be checked for changes instead, because it cannot be locked.
    `misfits` are the declared columns that are missing or have another type, each with its error: they read as NULL,
    and questions that use them are refused.
    """

    oid: int
    schema: str
    name: str
    types: ColumnTypes
    native_types: Mapping[str, str]
    from_sql: str
    columns_read: tuple[str, ...]
    type_oids: tuple[int, ...]
    rows_hidden: bool
    lockable: bool
    check_replaced: bool
    misfits: Mapping[str, PolicyError] = field(default_factory=dict)

    @property
    def qualified_name(self) -> str:
        """The quoted name with its schema."""
        return f"{quote_name(self.schema)}.{quote_name(self.name)}"

    @property
    def exists(self) -> bool:
        """Whether the table exists in the database."""
        return bool(self.oid)

    def still_matches(self, snapshot: Snapshot) -> bool:
        """Whether the columns still have the same types; from here on they cannot change until the transaction ends.

        A SELECT of the columns locks the table against changes of its columns and returns their newest types, which the
        catalog of an older snapshot does not. No row is fetched.
        """
        if not self.columns_read:
            return True
        names = ", ".join(map(quote_name, self.columns_read))
        return snapshot.type_oids(f"SELECT {names} FROM {self.qualified_name} LIMIT 0") == self.type_oids  # noqa: S608 - quoted names

    def check_usable(self, snapshot: Snapshot, table: str, columns: Iterable[str]) -> None:
        """Raise if one of these columns is not as declared, or the table was replaced during preparation."""
        used_misfits = self.misfits.keys() & set(columns) if self.columns_read else self.misfits.keys()
        for column in sorted(used_misfits):
            raise self.misfits[column]
        if self.check_replaced and snapshot.catalog_rows(_REPLACED_TABLES):
            raise EngineError(
                f"table {table}: it was replaced while the query was being prepared, and the role cannot lock it "
                "because it has no privilege on some columns. "
                f"Run GRANT SELECT ON {self.qualified_name} TO …, or create a view."
            )


def placeholder_table(table: str, source: TableSource, error: PolicyError) -> PostgresSourceTable:
    """Return a placeholder for a table that does not exist; questions that use it are refused."""
    null_columns = {column: ("NULL", casts.MISSING_COLUMN_TYPE, kind) for column, kind in source.columns.items()}
    select = f"({casts.cast_select(quote_name(table), null_columns)})"
    misfits = dict.fromkeys(source.columns, error)
    return PostgresSourceTable(
        0,
        "",
        table,
        source.columns,
        {},
        select,
        (),
        (),
        rows_hidden=False,
        lockable=False,
        check_replaced=False,
        misfits=misfits,
    )


def look_up_fitting_table(
    snapshot: Snapshot, table: str, source: TableSource, schemas: Sequence[str]
) -> PostgresSourceTable:
    """Look up a table and its declared columns; PolicyError if one of them does not match."""
    stored_table = look_up_table(snapshot, table, source, schemas)
    for error in stored_table.misfits.values():
        raise error
    return stored_table


def look_up_table(snapshot: Snapshot, table: str, source: TableSource, schemas: Sequence[str]) -> PostgresSourceTable:
    """Look up a table and which of its declared columns match; PolicyError if it does not exist."""
    written_name, schema, name = parse_table_name(table, source.location)
    search_schemas = schemas if schema is None else [schema]
    matches = snapshot.catalog_rows(_FIND_TABLE, [name, search_schemas, search_schemas])
    if not matches:
        raise source_error(
            table, f"{written_name} does not exist in the database. {_suggest_table(snapshot, schema, name)}"
        )
    ((oid, schema, usable, rows_hidden, needs_lock),) = matches
    if not usable:
        message = f"permission denied for schema {schema}. Run GRANT USAGE ON SCHEMA {quote_name(schema)} TO …"
        raise source_error(table, message)
    catalog_columns = snapshot.catalog_rows(COLUMNS_QUERY.format(tables="attrelid = %s"), [oid])
    columns = [
        SourceColumn(column, quote_name(column), native, readable) for _, column, _, readable, native in catalog_columns
    ]
    part = SourcePart("", tuple(column for column in columns if source.columns or column.readable))
    types = column_types(table, source.columns, [part], casts)
    qualified_name = f"{quote_name(schema)}.{quote_name(name)}"
    fitting, misfits = _divide_by_fit(table, types, part, qualified_name)
    type_oids = {column: kind for _, column, kind, _, _ in catalog_columns}
    columns_read = tuple(dict.fromkeys(stored.name for stored in fitting.values()))
    # A materialized view cannot be locked and need not be: a refresh leaves rows that older snapshots see, too.
    with refuse_if_locked([table]):
        lockable = needs_lock and snapshot.can_lock(qualified_name)
    null_column = SourceColumn("", "NULL", casts.MISSING_COLUMN_TYPE)
    selected = {column: (fitting.get(column, null_column), kind) for column, kind in types.items()}
    select = casts.cast_select(
        qualified_name,
        {name: (column.sql, column.native_type, kind) for name, (column, kind) in selected.items()},
    )
    return PostgresSourceTable(
        oid,
        schema,
        name,
        types,
        native_types={column: one.native_type for column, one in fitting.items()},
        from_sql=f"({select})",
        columns_read=columns_read,
        type_oids=tuple(type_oids[column] for column in columns_read),
        rows_hidden=bool(rows_hidden),
        lockable=lockable,
        check_replaced=needs_lock and not lockable,
        misfits=misfits,
    )


def _divide_by_fit(
    table: str, types: ColumnTypes, part: SourcePart, qualified_name: str
) -> tuple[dict[str, SourceColumn], dict[str, PolicyError]]:
    """Split columns into those that can be read as declared, and those that cannot, with the error."""
    fitting, misfits = dict[str, SourceColumn](), dict[str, PolicyError]()
    for column, kind in types.items():
        try:
            source_column, _ = match_columns(table, {column: kind}, part, casts)[column]
            if not source_column.readable:
                raise source_error(table, f"permission denied. Run GRANT SELECT ON {qualified_name} TO …", column)
            fitting[column] = source_column
        except PolicyError as error:
            misfits[column] = error
    return fitting, misfits


def parse_table_name(table: str, location: object) -> tuple[str, str | None, str]:
    """Parse a table's name as SQL does: names without quotes are folded to lower case."""
    parts = _TABLE_NAME.fullmatch(location) if isinstance(location, str) else None
    if parts is None or not isinstance(location, str):
        raise source_error(
            table,
            "source must be the name of a table or view in the database, such as visits or clinic.visits. Quote names "
            'with special characters: clinic."visits 2026".',
        )
    names = [_unquote(name) for name in parts.groups() if name is not None]
    return location.strip(), names[0] if len(names) > 1 else None, names[-1]


def _unquote(name: str) -> str:
    if name.startswith('"'):
        return name[1:-1].replace('""', '"')
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def _suggest_table(snapshot: Snapshot, schema: str | None, name: str) -> str:
    """Suggest a table that the role may read, with a similar name, or the same one in another schema or case."""
    readable = snapshot.catalog_rows(_READABLE_TABLES)
    wanted = f"{schema}.{name}" if schema else name
    names_by_spelling = {(f"{one[0]}.{one[1]}" if schema else one[1]).lower(): one for one in reversed(readable)}
    close_matches = difflib.get_close_matches(wanted.lower(), list(names_by_spelling), n=1)
    if not close_matches:
        close_matches = [spelling for spelling, one in names_by_spelling.items() if one[1].lower() == name.lower()][:1]
    if not close_matches:
        return "Correct the name, or run GRANT SELECT ON … TO …"
    return f"Did you mean {'.'.join(map(_quote_if_needed, names_by_spelling[close_matches[0]]))}?"


def _quote_if_needed(name: str) -> str:
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else quote_name(name)
