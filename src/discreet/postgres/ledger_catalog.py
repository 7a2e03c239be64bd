"""Whether a ledger's tables, functions and triggers are still as they were made, by the server's own catalog."""

from typing import TYPE_CHECKING, Any

from discreet.kernel.errors import LedgerError
from discreet.postgres.ledger_schema import COLUMNS, INDEXES, KEYS, SEARCH, TABLES, functions

if TYPE_CHECKING:
    import psycopg

_BEFORE_INSERT_OF_ROW = 1 + 2 + 4  # pg_trigger.tgtype: each row, before, insert
_BEFORE_ANY_CHANGE = 2 + 8 + 16 + 32  # before, delete, update, truncate
_C = 950  # the collation "C" in every server's catalog

# pg_class.relhasrules is a hint that stays after the last rule is gone: the rules themselves are asked for.
_RELATIONS = """SELECT c.relname, c.relkind::text, c.relpersistence::text, c.relrowsecurity, c.relforcerowsecurity,
    EXISTS (SELECT FROM pg_rewrite AS w WHERE w.ev_class = c.oid), c.relispartition
    FROM pg_class AS c WHERE c.relnamespace = to_regnamespace(%(schema)s)"""
_COLUMNS_FOUND = """SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
    a.attcollation::int, a.atthasdef, a.attgenerated::text, a.attidentity::text
    FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
    WHERE c.relnamespace = to_regnamespace(%(schema)s) AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped"""
_INDEXES_FOUND = """SELECT i.relname, t.relname, m.amname, x.indisunique, x.indisprimary,
    x.indisvalid AND x.indisready AND x.indislive AND x.indimmediate AND x.indpred IS NULL AND x.indexprs IS NULL
    AND (SELECT bool_and(o.opcdefault) FROM pg_opclass AS o WHERE o.oid = ANY (x.indclass)),
    ARRAY(SELECT a.attname FROM unnest(x.indkey) WITH ORDINALITY AS k (number, place)
    JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = k.number ORDER BY k.place)::text[],
    x.indcollation::text
    FROM pg_index AS x JOIN pg_class AS i ON i.oid = x.indexrelid JOIN pg_class AS t ON t.oid = x.indrelid
    JOIN pg_am AS m ON m.oid = i.relam WHERE t.relnamespace = to_regnamespace(%(schema)s)"""
_CONSTRAINTS = """SELECT conname, contype::text FROM pg_constraint
    WHERE connamespace = to_regnamespace(%(schema)s) AND contype <> 'n'"""
_FUNCTIONS = """SELECT p.proname, p.prosrc, l.lanname, p.provolatile::text, p.prokind::text, p.prosecdef, p.pronargs,
    p.proconfig FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
    WHERE p.pronamespace = to_regnamespace(%(schema)s)"""
_TRIGGERS = """SELECT c.relname, g.tgname, p.pronamespace::regnamespace::text, p.proname, g.tgtype, g.tgenabled::text,
    g.tgqual IS NULL, g.tgattr::text, g.tgnargs FROM pg_trigger AS g JOIN pg_class AS c ON c.oid = g.tgrelid
    JOIN pg_proc AS p ON p.oid = g.tgfoid WHERE c.relnamespace = to_regnamespace(%(schema)s)"""
_INHERITANCE = """SELECT h.inhrelid::regclass::text FROM pg_inherits AS h JOIN pg_class AS c
    ON c.oid = h.inhparent OR c.oid = h.inhrelid WHERE c.relnamespace = to_regnamespace(%(schema)s)"""
_OWNERS = """SELECT o.name FROM pg_namespace AS n JOIN (
    SELECT relname AS name, relnamespace AS space, relowner AS owner FROM pg_class
    UNION ALL SELECT proname, pronamespace, proowner FROM pg_proc) AS o ON o.space = n.oid
    WHERE n.oid = to_regnamespace(%(schema)s) AND o.owner <> n.nspowner"""
# Whoever may do more than read and add could put a trigger in front of those here, or hold everybody up with a lock.
_RIGHTS = """SELECT o.name, r.privilege_type FROM (
    SELECT relname AS name, relowner AS owner, relacl AS acl, '{SELECT,INSERT}'::text[] AS needed
    FROM pg_class WHERE relnamespace = to_regnamespace(%(schema)s)
    UNION ALL SELECT c.relname, c.relowner, a.attacl, '{SELECT,INSERT}' FROM pg_attribute AS a JOIN pg_class AS c
    ON c.oid = a.attrelid WHERE c.relnamespace = to_regnamespace(%(schema)s)
    UNION ALL SELECT nspname, nspowner, nspacl, '{USAGE}' FROM pg_namespace WHERE oid = to_regnamespace(%(schema)s)
    ) AS o, aclexplode(o.acl) AS r
    WHERE r.grantee <> o.owner AND (r.privilege_type <> ALL (o.needed) OR r.is_grantable)"""


def check_schema(connection: "psycopg.Connection[tuple[Any, ...]]", schema: str) -> None:
    """Stop if the tables, functions and triggers are not those of this module, or anybody got rights to change them."""
    for what, (query, wanted) in _facts(schema).items():
        found = [tuple(map(_plain, row)) for row in connection.execute(query, {"schema": schema}).fetchall()]
        if sorted(found, key=str) != sorted(wanted, key=str):
            names = ", ".join(sorted({str(row[0]) for row in {*found} ^ {*wanted}}))
            raise LedgerError(
                f"the tables, functions, rights or triggers were changed: see the {what} of {names} in {schema}. Undo "
                "that, or restore the ledger from a backup."
            )


def _facts(schema: str) -> dict[str, tuple[str, list[tuple[Any, ...]]]]:
    """Return what the server's catalog is asked, and what it must answer: no more, no less."""
    indexes = [(f"{table}_pkey", table, True, KEYS[table]) for table in TABLES] + list(INDEXES)
    relations = [(name, "r") for name in TABLES] + [(name, "i") for name, *_ in indexes]
    setting = (f"search_path={SEARCH}",)
    return {
        "relations": (_RELATIONS, [(name, kind, "p", False, False, False, False) for name, kind in relations]),
        "columns": (_COLUMNS_FOUND, [fact for table in TABLES for fact in _column_facts(table)]),
        "indexes": (
            _INDEXES_FOUND,
            [
                (name, table, "btree", unique, name.endswith("_pkey"), True, *_sorted_by(columns))
                for name, table, unique, columns in indexes
            ],
        ),
        "constraints": (_CONSTRAINTS, [(f"{table}_pkey", "p") for table in TABLES]),
        "functions": (
            _FUNCTIONS,
            [(name, body, "plpgsql", "v", "f", False, 0, setting) for name, body in functions(schema).items()],
        ),
        "triggers": (
            _TRIGGERS,
            [("rows", "rows_follow", schema, "rows_follow", _BEFORE_INSERT_OF_ROW, "A", True, "", 0)]
            + [
                (table, f"{table}_grow", schema, "only_grows", _BEFORE_ANY_CHANGE, "A", True, "", 0) for table in TABLES
            ],
        ),
        "inheritance": (_INHERITANCE, []),
        "owners": (_OWNERS, []),
        "rights": (_RIGHTS, []),
    }


def _column_facts(table: str) -> list[tuple[Any, ...]]:
    facts = []
    for column in COLUMNS[table]:
        name, kind = column.split(" ")[:2]
        facts.append((table, name.strip('"'), kind, "NOT NULL" in column, _C if kind == "text" else 0, False, "", ""))
    return facts


def _sorted_by(columns: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Return the columns of an index and their collations, as the catalog writes them."""
    return columns, " ".join("0" if column == "seq" else str(_C) for column in columns)


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
