"""Find privileges of the engine's role beyond reading, each of which could turn a mistake into damage.

The privileges are those of the login role and of every role that it is a member of, inherited or not.
"""

from collections.abc import Sequence

from discreet.engines.postgres.session import Snapshot
from discreet.engines.postgres.tables import PostgresSourceTable
from discreet.kernel.sqlgen.dialect import quote_name

_MAX_TABLES_NAMED = 3
_ROLES_CTE = "roles AS (SELECT * FROM pg_roles WHERE pg_has_role(session_user, oid, 'MEMBER'))"
_ROLE_ATTRIBUTES = f"""
WITH {_ROLES_CTE}
SELECT rolname = session_user, rolname::text, rolsuper, rolcreaterole, rolcreatedb, rolbypassrls, rolreplication
FROM roles ORDER BY 1 DESC, 2
"""  # noqa: S608 - of constants
_POWERFUL_ROLES = {
    "pg_write_all_data",
    "pg_write_server_files",
    "pg_read_server_files",
    "pg_execute_server_program",
    "pg_signal_backend",
    "pg_maintain",
    "pg_create_subscription",
    "pg_checkpoint",
}
_ATTRIBUTE_ACTIONS = ("create roles", "create databases", "bypass row-level security", "replicate the whole server")
_CREATE_PRIVILEGES = f"""
WITH {_ROLES_CTE}
SELECT 'in schema ' || quote_ident(nspname) FROM pg_namespace AS n
WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
AND EXISTS (SELECT 1 FROM roles AS r WHERE has_schema_privilege(r.oid, n.oid, 'CREATE'))
UNION ALL SELECT 'schemas in the database'
WHERE EXISTS (SELECT 1 FROM roles AS r WHERE has_database_privilege(r.oid, current_database(), 'CREATE'))
"""  # noqa: S608 - of constants
# Privileges on tables and columns as they are stored, in one pass over all tables of the database: functions such as
# has_table_privilege would take seconds with thousands of tables. The role 0 is PUBLIC.
_WRITE_PRIVILEGES = f"""
WITH {_ROLES_CTE}, granted AS (
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
ORDER BY c.oid = ANY(%s::oid[]) DESC, 1, 2 LIMIT {_MAX_TABLES_NAMED}
"""  # noqa: S608 - of constants
_PRIVILEGE_ORDER = ("INSERT", "UPDATE", "DELETE", "TRUNCATE")  # these first, others alphabetically


def excess_privileges(snapshot: Snapshot, tables: Sequence[PostgresSourceTable]) -> list[str]:
    """Return phrases for what the role can do besides reading; of writable tables, the given ones come first."""
    privileges = []
    for is_login_role, name, superuser, *attributes in snapshot.catalog_rows(_ROLE_ATTRIBUTES):
        if superuser:
            return ["do everything, as a superuser" if is_login_role else f"do everything, as {name}, a superuser"]
        through = "" if is_login_role else f", as {name}"
        privileges += [f"{deed}{through}" for deed, holds in zip(_ATTRIBUTE_ACTIONS, attributes, strict=True) if holds]
        privileges += [f"act as {name}"] if name in _POWERFUL_ROLES else []
    privileges += [f"create {where}" for (where,) in snapshot.catalog_rows(_CREATE_PRIVILEGES)]
    writable = snapshot.catalog_rows(_WRITE_PRIVILEGES, [[table.oid for table in tables]])
    for schema, table, owned, grants, _ in writable:
        qualified_name = f"{quote_name(schema)}.{quote_name(table)}"
        if owned:
            privileges.append(f"change and drop {qualified_name}, which it owns")
        else:
            privileges.append(f"{', '.join(sorted(grants, key=_privilege_rank))} on {qualified_name}")
    if writable and (more := writable[0][-1] - len(writable)):
        privileges.append(f"change {more} more tables")
    return privileges


def _privilege_rank(privilege: str) -> tuple[int, str]:
    return (_PRIVILEGE_ORDER.index(privilege) if privilege in _PRIVILEGE_ORDER else len(_PRIVILEGE_ORDER)), privilege


def read_only_role_sql(tables: Sequence[PostgresSourceTable]) -> str:
    """Return the statements that create a role that can only read these tables.

    >>> flags = {"rows_hidden": False, "lockable": True, "check_replaced": False}
    >>> visits = PostgresSourceTable(1, "clinic", "visits", {}, {}, "", (), (), **flags)
    >>> for statement in read_only_role_sql([visits]).split("; "):
    ...     print(statement)
    CREATE ROLE discreet_reader LOGIN
    GRANT USAGE ON SCHEMA "clinic" TO discreet_reader
    GRANT SELECT ON "clinic"."visits" TO discreet_reader
    ALTER ROLE discreet_reader SET default_transaction_read_only = on;
    """
    names = ", ".join(dict.fromkeys(table.qualified_name for table in tables))
    schemas = ", ".join(dict.fromkeys(quote_name(table.schema) for table in tables))
    return (
        f"CREATE ROLE discreet_reader LOGIN; GRANT USAGE ON SCHEMA {schemas} TO discreet_reader; "
        f"GRANT SELECT ON {names} TO discreet_reader; "
        "ALTER ROLE discreet_reader SET default_transaction_read_only = on;"
    )
