"""Check against the server's catalog that a ledger's schema is as it was created."""

from typing import Any

from discreet.kernel.errors import LedgerError
from discreet.ledger_postgres.schema import INDEXES, PRIMARY_KEYS, SEARCH_PATH, TABLE_COLUMNS, TABLES, trigger_functions

_BEFORE_INSERT_OF_ROW = 1 + 2 + 4  # pg_trigger.tgtype: each row, before, insert
_BEFORE_ANY_CHANGE = 2 + 8 + 16 + 32  # before, delete, update, truncate
_C_COLLATION = 950  # the collation "C" in every server's catalog

# pg_class.relhasrules may stay true after the last rule was dropped, so pg_rewrite is queried.
_RELATIONS_QUERY = """SELECT c.relname, c.relkind::text, c.relpersistence::text, c.relrowsecurity,
    c.relforcerowsecurity, EXISTS (SELECT FROM pg_rewrite AS w WHERE w.ev_class = c.oid), c.relispartition
    FROM pg_class AS c WHERE c.relnamespace = to_regnamespace(%(schema)s)"""
_COLUMNS_QUERY = """SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
    a.attcollation::int, a.atthasdef, a.attgenerated::text, a.attidentity::text
    FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
    WHERE c.relnamespace = to_regnamespace(%(schema)s) AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped"""
_INDEXES_QUERY = """SELECT i.relname, t.relname, m.amname, x.indisunique, x.indisprimary,
    x.indisvalid AND x.indisready AND x.indislive AND x.indimmediate AND x.indpred IS NULL AND x.indexprs IS NULL
    AND (SELECT bool_and(o.opcdefault) FROM pg_opclass AS o WHERE o.oid = ANY (x.indclass)),
    ARRAY(SELECT a.attname FROM unnest(x.indkey) WITH ORDINALITY AS k (number, place)
    JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = k.number ORDER BY k.place)::text[],
    x.indcollation::text
    FROM pg_index AS x JOIN pg_class AS i ON i.oid = x.indexrelid JOIN pg_class AS t ON t.oid = x.indrelid
    JOIN pg_am AS m ON m.oid = i.relam WHERE t.relnamespace = to_regnamespace(%(schema)s)"""
_CONSTRAINTS_QUERY = """SELECT conname, contype::text FROM pg_constraint
    WHERE connamespace = to_regnamespace(%(schema)s) AND contype <> 'n'"""
_FUNCTIONS_QUERY = """SELECT p.proname, p.prosrc, l.lanname, p.provolatile::text, p.prokind::text, p.prosecdef,
    p.pronargs, p.proconfig FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
    WHERE p.pronamespace = to_regnamespace(%(schema)s)"""
_TRIGGERS_QUERY = """SELECT c.relname, g.tgname, p.pronamespace::regnamespace::text, p.proname, g.tgtype,
    g.tgenabled::text, g.tgqual IS NULL, g.tgattr::text, g.tgnargs FROM pg_trigger AS g JOIN pg_class AS c ON c.oid =
    g.tgrelid JOIN pg_proc AS p ON p.oid = g.tgfoid WHERE c.relnamespace = to_regnamespace(%(schema)s)"""
_INHERITANCE_QUERY = """SELECT h.inhrelid::regclass::text FROM pg_inherits AS h JOIN pg_class AS c
    ON c.oid = h.inhparent OR c.oid = h.inhrelid WHERE c.relnamespace = to_regnamespace(%(schema)s)"""
_OWNERS_QUERY = """SELECT o.name FROM pg_namespace AS n JOIN (
    SELECT relname AS name, relnamespace AS space, relowner AS owner FROM pg_class
    UNION ALL SELECT proname, pronamespace, proowner FROM pg_proc) AS o ON o.space = n.oid
    WHERE n.oid = to_regnamespace(%(schema)s) AND o.owner <> n.nspowner"""
# With more privileges than SELECT and INSERT, a user could add a trigger before these, or block others with a lock.
_RIGHTS_QUERY = """SELECT o.name, r.privilege_type FROM (
    SELECT relname AS name, relowner AS owner, relacl AS acl, '{SELECT,INSERT}'::text[] AS needed
    FROM pg_class WHERE relnamespace = to_regnamespace(%(schema)s)
    UNION ALL SELECT c.relname, c.relowner, a.attacl, '{SELECT,INSERT}' FROM pg_attribute AS a JOIN pg_class AS c
    ON c.oid = a.attrelid WHERE c.relnamespace = to_regnamespace(%(schema)s)
    UNION ALL SELECT nspname, nspowner, nspacl, '{USAGE}' FROM pg_namespace WHERE oid = to_regnamespace(%(schema)s)
    ) AS o, aclexplode(o.acl) AS r
    WHERE r.grantee <> o.owner AND (r.privilege_type <> ALL (o.needed) OR r.is_grantable)"""


def check_schema(connection: Any, schema: str) -> None:
    """Raise LedgerError if tables, functions or triggers were modified, or others have privileges to modify them."""
    for what, (query, expected) in _expected_catalog(schema).items():
        actual = [tuple(map(_as_hashable, row)) for row in connection.execute(query, {"schema": schema}).fetchall()]
        if sorted(actual, key=str) != sorted(expected, key=str):
            names = ", ".join(sorted({str(row[0]) for row in {*actual} ^ {*expected}}))
            raise LedgerError(
                f"the {what} of {names} in schema {schema} were modified. Undo the change, or restore the ledger from "
                "a backup."
            )


def _expected_catalog(schema: str) -> dict[str, tuple[str, list[tuple[Any, ...]]]]:
    """Return the catalog queries and the rows that each must return."""
    indexes = [(f"{table}_pkey", table, True, PRIMARY_KEYS[table]) for table in TABLES] + list(INDEXES)
    relations = [(name, "r") for name in TABLES] + [(name, "i") for name, *_ in indexes]
    setting = (f"search_path={SEARCH_PATH}",)
    return {
        "relations": (_RELATIONS_QUERY, [(name, kind, "p", False, False, False, False) for name, kind in relations]),
        "columns": (_COLUMNS_QUERY, [column for table in TABLES for column in _expected_columns(table)]),
        "indexes": (
            _INDEXES_QUERY,
            [
                (name, table, "btree", unique, name.endswith("_pkey"), True, *_expected_index_columns(columns))
                for name, table, unique, columns in indexes
            ],
        ),
        "constraints": (_CONSTRAINTS_QUERY, [(f"{table}_pkey", "p") for table in TABLES]),
        "functions": (
            _FUNCTIONS_QUERY,
            [(name, body, "plpgsql", "v", "f", False, 0, setting) for name, body in trigger_functions(schema).items()],
        ),
        "triggers": (
            _TRIGGERS_QUERY,
            [("rows", "rows_follow", schema, "rows_follow", _BEFORE_INSERT_OF_ROW, "A", True, "", 0)]
            + [
                (table, f"{table}_grow", schema, "only_grows", _BEFORE_ANY_CHANGE, "A", True, "", 0) for table in TABLES
            ],
        ),
        "inheritance": (_INHERITANCE_QUERY, []),
        "owners": (_OWNERS_QUERY, []),
        "rights": (_RIGHTS_QUERY, []),
    }


def _expected_columns(table: str) -> list[tuple[Any, ...]]:
    expected = []
    for column in TABLE_COLUMNS[table]:
        name, kind = column.split(" ")[:2]
        expected.append(
            (table, name.strip('"'), kind, "NOT NULL" in column, _C_COLLATION if kind == "text" else 0, False, "", "")
        )
    return expected


def _expected_index_columns(columns: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Return the columns of an index and their collations in the notation of the catalog."""
    return columns, " ".join("0" if column == "seq" else str(_C_COLLATION) for column in columns)


def _as_hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
