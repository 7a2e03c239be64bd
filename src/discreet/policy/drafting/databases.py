"""The schemas of tables in PostgreSQL, from its catalog. No row is read, nor the statistics of any."""

from collections.abc import Sequence

from discreet.kernel.errors import PolicyError
from discreet.policy.drafting.sketch import ColumnSketch, TableSketch
from discreet.policy.problems import brief, nearest
from discreet.policy.values import place
from discreet.postgres.connecting import connect, shown

_SCHEMES = ("postgresql://", "postgres://")
_KINDS = {
    **dict.fromkeys(("int2", "int4", "int8"), "integer"),
    **dict.fromkeys(("float4", "float8"), "real"),
    "numeric": "decimal",
    "bool": "boolean",
    **dict.fromkeys(("text", "varchar", "bpchar", "citext", "name", "uuid"), "text"),
    "date": "date",
    **dict.fromkeys(("timestamp", "timestamptz"), "timestamp"),
}
# Tables, views, and whatever else has rows, that this user may read. A domain is what it is made of.
_COLUMNS = """
    WITH RECURSIVE base AS (
        SELECT oid AS first, oid, typname, typtype, typbasetype FROM pg_catalog.pg_type
        UNION ALL
        SELECT b.first, t.oid, t.typname, t.typtype, t.typbasetype
        FROM base AS b JOIN pg_catalog.pg_type AS t ON t.oid = b.typbasetype WHERE b.typtype = 'd'
    )
    SELECT pg_catalog.quote_ident(n.nspname), pg_catalog.quote_ident(c.relname), a.attname, b.typname, b.typtype = 'e'
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN base AS b ON b.first = a.atttypid AND b.typtype <> 'd'
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
    AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
    AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT')
    ORDER BY n.nspname <> 'public', n.nspname, c.relname, a.attnum
"""


def is_database(word: str) -> bool:
    """Tell whether a place is a database of PostgreSQL.

    >>> is_database("postgresql://reader@db.example/clinic"), is_database("visits.csv")
    (True, False)
    """
    return word.startswith(_SCHEMES)


def read_database(url: str, wanted: Sequence[str] = ()) -> list[TableSketch]:
    """Read what is known of the tables in a database, of all of them or of those with these names."""
    try:
        place(url, "the URL")
    except ValueError as error:
        raise PolicyError(str(error)) from None
    with connect(url, default_transaction_read_only="on") as connection:
        found = connection.execute(_COLUMNS).fetchall()
    tables: dict[str, list[ColumnSketch]] = {}
    for schema, table, column, native, listed in found:
        kind = "text" if listed else _KINDS.get(native)
        tables.setdefault(f"{schema}.{table}", []).append(ColumnSketch(column, kind, native))
    chosen = [_find(name, list(tables), url) for name in wanted] or list(tables)
    if not chosen:
        raise PolicyError(f"{shown(url)}: there is no table that this user may read. Grant SELECT on some.")
    return [TableSketch(_called(name), name, tuple(tables[name])) for name in chosen]


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
