"""What the role of an engine may do besides reading: each is a way for a mistake to become a loss.

What counts is whoever logged in, with all roles that it can become, whether it has their rights already or not.
"""

from collections.abc import Sequence

from discreet.engines.postgres_catalog import Stored
from discreet.engines.postgres_session import Snapshot
from discreet.kernel.dialect import quoted

_SHOWN = 3  # tables that are named
_ROLES = "roles AS (SELECT * FROM pg_roles WHERE pg_has_role(session_user, oid, 'MEMBER'))"
_ABLE = f"""
WITH {_ROLES}
SELECT rolname = session_user, rolname::text, rolsuper, rolcreaterole, rolcreatedb, rolbypassrls, rolreplication
FROM roles ORDER BY 1 DESC, 2
"""  # noqa: S608 - of constants
_MIGHTY = {
    "pg_write_all_data",
    "pg_write_server_files",
    "pg_read_server_files",
    "pg_execute_server_program",
    "pg_signal_backend",
    "pg_maintain",
    "pg_create_subscription",
    "pg_checkpoint",
}
_DEEDS = ("make roles", "make databases", "bypass row-level security", "copy the whole server")
_CREATES = f"""
WITH {_ROLES}
SELECT 'in schema ' || quote_ident(nspname) FROM pg_namespace AS n
WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
AND EXISTS (SELECT 1 FROM roles AS r WHERE has_schema_privilege(r.oid, n.oid, 'CREATE'))
UNION ALL SELECT 'schemas in the database'
WHERE EXISTS (SELECT 1 FROM roles AS r WHERE has_database_privilege(r.oid, current_database(), 'CREATE'))
"""  # noqa: S608 - of constants
# Rights as they are stored, of tables and of columns, in one pass over all tables of the database: to ask the server
# about each table and role would take seconds where there are thousands. The role 0 is everybody.
_WRITTEN = f"""
WITH {_ROLES}, granted AS (
    SELECT c.oid AS number, a.grantee, a.privilege_type AS word
    FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a
    UNION SELECT c.attrelid, a.grantee, a.privilege_type
    FROM pg_attribute AS c CROSS JOIN LATERAL aclexplode(c.attacl) AS a
), written AS (
    SELECT number, array_agg(DISTINCT word) AS words FROM granted
    WHERE word <> 'SELECT' AND (grantee = 0 OR grantee IN (SELECT oid FROM roles)) GROUP BY number
)
SELECT nspname::text, relname::text, relowner IN (SELECT oid FROM roles), words, COUNT(*) OVER ()
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace LEFT JOIN written ON number = c.oid
WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND nspname !~ '^pg_' AND nspname <> 'information_schema'
AND (words IS NOT NULL OR relowner IN (SELECT oid FROM roles))
ORDER BY c.oid = ANY(%s::oid[]) DESC, 1, 2 LIMIT {_SHOWN}
"""  # noqa: S608 - of constants
_WORDS = ("INSERT", "UPDATE", "DELETE", "TRUNCATE")  # first


def powers(snapshot: Snapshot, tables: Sequence[Stored]) -> list[str]:
    """Return what the role can do besides reading, in words; of what it can change, these tables come first."""
    can = []
    for itself, name, superuser, *able in snapshot.rows(_ABLE):
        if superuser:
            return ["do everything, as a superuser" if itself else f"do everything, as {name}, a superuser"]
        means = "" if itself else f", as {name}"
        can += [f"{deed}{means}" for deed, holds in zip(_DEEDS, able, strict=True) if holds]
        can += [f"act as {name}"] if name in _MIGHTY else []
    can += [f"create {where}" for (where,) in snapshot.rows(_CREATES)]
    found = snapshot.rows(_WRITTEN, [[table.number for table in tables]])
    for schema, table, owned, words, _ in found:
        place = f"{quoted(schema)}.{quoted(table)}"
        if owned:
            can.append(f"change and drop {place}, which it owns")
        else:
            can.append(f"{', '.join(sorted(words, key=_order))} on {place}")
    if found and (more := found[0][-1] - len(found)):
        can.append(f"change {more} more tables")
    return can


def _order(word: str) -> tuple[int, str]:
    return (_WORDS.index(word) if word in _WORDS else len(_WORDS)), word


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
