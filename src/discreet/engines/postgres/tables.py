"""Look up tables and columns in PostgreSQL's catalog; no row is read."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from discreet.engines.postgres import casts
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
_IS_TABLE = "c.relkind IN ('r', 'p', 'v', 'm', 'f')"  # tables, those of partitions, views, stored views, foreign ones

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
# What this connection has locked by now is compared: functions tell the newest name and file of a table, while the
# server's own tables tell those of the state that the question sees.
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
    """A table that was found: what stands after FROM, its columns in the kernel's types, and what was seen of it.

    `native` is PostgreSQL's type of each declared column; `type_oids` are those of the columns that are read, as the server
    numbers them; `rows_hidden` is a table of which the role sees some rows only. `lockable` is one that can be locked
    before a state is taken; `check_replaced` is one that should be, and cannot. `misfits` are the declared columns that are
    not there, or not as declared, each with its error: they read as NULL, and no question that uses them is answered.
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
        """The table's name with its schema, in quotes."""
        return f"{quote_name(self.schema)}.{quote_name(self.name)}"

    @property
    def exists(self) -> bool:
        """Whether there is such a table at all."""
        return bool(self.oid)

    def still_matches(self, snapshot: Snapshot) -> bool:
        """Whether the columns still have the types that were found; until the end they cannot change now.

        To name the columns in a SELECT locks the table against changes of its columns, and tells their newest types,
        which the server's own tables do not in an older state. No row is fetched.
        """
        if not self.columns_read:
            return True
        names = ", ".join(map(quote_name, self.columns_read))
        return snapshot.type_oids(f"SELECT {names} FROM {self.qualified_name} LIMIT 0") == self.type_oids  # noqa: S608 - quoted names

    def check_usable(self, snapshot: Snapshot, table: str, columns: Iterable[str]) -> None:
        """Stop if one of these columns is not as declared, or the rows were replaced while the question began."""
        used_misfits = self.misfits.keys() & set(columns) if self.columns_read else self.misfits.keys()
        for column in sorted(used_misfits):
            raise self.misfits[column]
        if self.check_replaced and snapshot.catalog_rows(_REPLACED_TABLES):
            raise EngineError(
                f"table {table}: somebody replaced its rows while the question began, and the role cannot wait for "
                f"that: it may not read all columns. Let it: GRANT SELECT ON {self.qualified_name} TO …, or make a view of some."
            )


def placeholder_table(table: str, source: TableSource, error: PolicyError) -> PostgresSourceTable:
    """Return what stands for a table that was not found: no question about it is answered."""
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
    """Find a table and its declared columns; PolicyError with the table, the cause and the fix if they do not fit."""
    stored_table = look_up_table(snapshot, table, source, schemas)
    for error in stored_table.misfits.values():
        raise error
    return stored_table


def look_up_table(snapshot: Snapshot, table: str, source: TableSource, schemas: Sequence[str]) -> PostgresSourceTable:
    """Find a table, PolicyError if it is not there, and which of its declared columns fit."""
    written_name, schema, name = parse_table_name(table, source.location)
    search_schemas = schemas if schema is None else [schema]
    matches = snapshot.catalog_rows(_FIND_TABLE, [name, search_schemas, search_schemas])
    if not matches:
        raise source_error(table, f"the database has no table {written_name}. {_suggest_table(snapshot, schema, name)}")
    ((oid, schema, usable, rows_hidden, needs_lock),) = matches
    if not usable:
        message = f"the role may not use the schema {schema}. Let it: GRANT USAGE ON SCHEMA {quote_name(schema)} TO …"
        raise source_error(table, message)
    catalog_columns = snapshot.catalog_rows(COLUMNS_QUERY.format(tables="attrelid = %s"), [oid])
    columns = [
        SourceColumn(column, quote_name(column), native, readable) for _, column, _, readable, native in catalog_columns
    ]
    part = SourcePart("", tuple(each for each in columns if source.columns or each.readable))
    types = column_types(table, source.columns, [part], casts)
    qualified_name = f"{quote_name(schema)}.{quote_name(name)}"
    fitting, misfits = _divide_by_fit(table, types, part, qualified_name)
    type_oids = {column: kind for _, column, kind, _, _ in catalog_columns}
    columns_read = tuple(dict.fromkeys(stored.name for stored in fitting.values()))
    # A stored view may not be locked, and need not be: whoever fills it anew leaves rows that every state sees.
    lockable = needs_lock and snapshot.can_lock(qualified_name)
    null_column = SourceColumn("", "NULL", casts.MISSING_COLUMN_TYPE)
    selected = {column: (fitting.get(column, null_column), kind) for column, kind in types.items()}
    select = casts.cast_select(
        qualified_name, {each: (one.sql, one.native_type, kind) for each, (one, kind) in selected.items()}
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
    """Divide columns into those that can be read as declared, and those that cannot, with the reason."""
    fitting, misfits = dict[str, SourceColumn](), dict[str, PolicyError]()
    for column, kind in types.items():
        try:
            source_column, _ = match_columns(table, {column: kind}, part, casts)[column]
            if not source_column.readable:
                raise source_error(
                    table, f"the role may not read it. Let it: GRANT SELECT ON {qualified_name} TO …", column
                )
            fitting[column] = source_column
        except PolicyError as error:
            misfits[column] = error
    return fitting, misfits


def parse_table_name(table: str, location: object) -> tuple[str, str | None, str]:
    """Read a table's name as SQL has it: without quotes, capital letters are small ones."""
    parts = _TABLE_NAME.fullmatch(location) if isinstance(location, str) else None
    if parts is None or not isinstance(location, str):
        raise source_error(
            table,
            "source must be the name of a table or view in the database, such as visits or clinic.visits. Write a name "
            'with other signs in quotes: clinic."visits 2026".',
        )
    names = [_unquote(name) for name in parts.groups() if name is not None]
    return location.strip(), names[0] if len(names) > 1 else None, names[-1]


def _unquote(name: str) -> str:
    if name.startswith('"'):
        return name[1:-1].replace('""', '"')
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def _suggest_table(snapshot: Snapshot, schema: str | None, name: str) -> str:
    """Offer a table that the role may read: its name is near, or the same in another schema or case."""
    readable = snapshot.catalog_rows(_READABLE_TABLES)
    wanted = f"{schema}.{name}" if schema else name
    names_by_spelling = {(f"{one[0]}.{one[1]}" if schema else one[1]).lower(): one for one in reversed(readable)}
    close_matches = difflib.get_close_matches(wanted.lower(), list(names_by_spelling), n=1)
    if not close_matches:
        close_matches = [each for each, one in names_by_spelling.items() if one[1].lower() == name.lower()][:1]
    if not close_matches:
        return "Correct its name, or let the role read it: GRANT SELECT ON … TO …"
    return f"It has {'.'.join(map(_quote_if_needed, names_by_spelling[close_matches[0]]))}."


def _quote_if_needed(name: str) -> str:
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else quote_name(name)
