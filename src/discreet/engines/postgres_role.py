"""What the role of an engine may do besides reading: each is a way for a mistake to become a loss."""

from collections.abc import Sequence

from discreet.engines.postgres_catalog import Stored
from discreet.engines.postgres_session import Snapshot
from discreet.kernel.dialect import quoted

_ROLE = """
SELECT rolsuper, rolcreaterole, rolcreatedb, rolbypassrls, rolreplication
FROM pg_roles WHERE rolname = current_user
"""
_MEMBER = """
SELECT rolname::text FROM pg_roles WHERE rolname = ANY(%s) AND pg_has_role(oid, 'MEMBER') ORDER BY rolname
"""
_MIGHTY = [
    "pg_write_all_data",
    "pg_write_server_files",
    "pg_read_server_files",
    "pg_execute_server_program",
    "pg_signal_backend",
    "pg_maintain",
    "pg_create_subscription",
    "pg_checkpoint",
]
_OWNED = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = %s"
_WRITTEN = """
SELECT word FROM unnest(ARRAY['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS word
WHERE has_table_privilege(%s, word)
"""
_CREATES = """
SELECT 'in schema ' || quote_ident(nspname) FROM pg_namespace
WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' AND has_schema_privilege(oid, 'CREATE')
UNION ALL SELECT 'schemas in the database' WHERE has_database_privilege(current_database(), 'CREATE')
"""


def powers(snapshot: Snapshot, tables: Sequence[Stored]) -> list[str]:
    """Return what the role can do besides reading, in words."""
    ((superuser, roles, databases, bypasses, replicates),) = snapshot.rows(_ROLE)
    if superuser:
        return ["do everything, as a superuser"]
    can = [
        words
        for words, holds in (
            ("make roles", roles),
            ("make databases", databases),
            ("bypass row-level security", bypasses),
            ("copy the whole server", replicates),
        )
        if holds
    ]
    can += [f"act as {name}" for (name,) in snapshot.rows(_MEMBER, [_MIGHTY])]
    can += [f"create {where}" for (where,) in snapshot.rows(_CREATES)]
    for table in tables:
        if snapshot.rows(_OWNED, [table.number])[0][0]:
            can.append(f"change and drop {table.place}, which it owns")
        elif words := [word for (word,) in snapshot.rows(_WRITTEN, [table.number])]:
            can.append(f"{', '.join(words)} on {table.place}")
    return can


def reader_sql(tables: Sequence[Stored]) -> str:
    """Write what makes a role that can read these tables, and nothing else.

    >>> visits = Stored(1, "clinic", "visits", {}, {}, "", (), (), filtered=False, lockable=True, watched=False)
    >>> for statement in reader_sql([visits]).split("; "):
    ...     print(statement)
    CREATE ROLE discreet_reader LOGIN
    GRANT USAGE ON SCHEMA "clinic" TO discreet_reader
    GRANT SELECT ON "clinic"."visits" TO discreet_reader
    ALTER ROLE discreet_reader SET default_transaction_read_only = on;
    """
    places = ", ".join(dict.fromkeys(table.place for table in tables))
    schemas = ", ".join(dict.fromkeys(quoted(table.schema) for table in tables))
    return (
        f"CREATE ROLE discreet_reader LOGIN; GRANT USAGE ON SCHEMA {schemas} TO discreet_reader; "
        f"GRANT SELECT ON {places} TO discreet_reader; "
        "ALTER ROLE discreet_reader SET default_transaction_read_only = on;"
    )
