"""The schemas of tables in PostgreSQL, from its catalog. No row is read, nor the statistics of any."""

from collections.abc import Sequence
from typing import Any

from discreet.kernel.errors import PolicyError
from discreet.policy.drafting.sketch import ColumnSketch, TableSketch
from discreet.policy.problems import brief, nearest
from discreet.policy.values import place
from discreet.postgres.columns import COLUMNS, FAMILIES
from discreet.postgres.connecting import SCHEMES, connect, driver, shown

_KINDS = {"narrow": "integer", "local": "timestamp", "instant": "timestamp"}  # others are called as in a policy
# Tables, views, and whatever else has rows, that this user may read.
_TABLES = """
    SELECT c.oid::bigint, quote_ident(n.nspname) || '.' || quote_ident(c.relname)
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
    AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
    AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
    ORDER BY n.nspname <> 'public', n.nspname, c.relname
"""

# Columns with a PRIMARY KEY or UNIQUE constraint, or a unique index, of their own.
_UNIQUE = """
    SELECT i.indrelid::bigint, a.attname::text FROM pg_index AS i
    JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
    WHERE i.indrelid = ANY(%s::oid[]) AND i.indisunique AND i.indisvalid AND i.indnkeyatts = 1 AND i.indpred IS NULL
"""


def is_database(word: str) -> bool:
    """Tell whether a place is a database of PostgreSQL.

    >>> is_database("postgresql://reader@db.example/clinic"), is_database("visits.csv")
    (True, False)
    """
    return word.startswith(SCHEMES)


def read_database(url: str, wanted: Sequence[str] = ()) -> list[TableSketch]:
    """Read what is known of the tables in a database, of all of them or of those with these names."""
    try:
        place(url, "the URL")
    except ValueError as error:
        raise PolicyError(str(error)) from None
    names, columns, unique = _read(url)
    tables: dict[str, list[ColumnSketch]] = {name: [] for name in names.values()}
    for table, column, _, _, native in columns:
        family = FAMILIES.get(native)
        kind = _KINDS.get(family, family) if family else None
        tables[names[table]].append(ColumnSketch(column, kind, native, unique=(table, column) in unique))
    chosen = [_find(name, list(tables), url) for name in wanted] or [name for name, found in tables.items() if found]
    if not chosen:
        raise PolicyError(f"{shown(url)}: there is no table that this user may read. Grant SELECT on some.")
    return [TableSketch(_called(name), name, tuple(tables[name])) for name in chosen]


def _read(url: str) -> tuple[dict[int, str], list[tuple[Any, ...]], set[tuple[int, str]]]:
    """Return the names of tables by their numbers, all of their columns, and which of these are unique."""
    with connect(url, default_transaction_read_only="on", search_path="pg_catalog") as connection:
        try:
            names = dict(connection.execute(_TABLES).fetchall())
            columns = connection.execute(COLUMNS.format(tables="attrelid = ANY(%s::oid[])"), [list(names)]).fetchall()
            unique = {(table, column) for table, column in connection.execute(_UNIQUE, [list(names)]).fetchall()}
        except driver().Error as error:
            words = f"the server does not tell its tables (SQLSTATE {error.sqlstate}). Its log has the reason."
            raise PolicyError(f"{shown(url)}: {words}") from None
    return names, columns, unique


def _called(place: str) -> str:
    """Call a table as it is called there, without the marks that SQL needs."""
    return place.removeprefix("public.").replace('"', "").replace(".", "_")


def _find(name: str, known: list[str], url: str) -> str:
    whole = name if "." in name else f"public.{name}"
    found = next((each for each in known if whole.lower() in (each.lower(), each.replace('"', "").lower())), None)
    if found is None:
        near = nearest(name, [each.removeprefix("public.") for each in known])
        raise PolicyError(f'{shown(url)}: there is no table "{brief(name)}" that this user may read{near} Correct it.')
    return found
