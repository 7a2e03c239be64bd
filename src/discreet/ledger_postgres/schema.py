"""The schema of a ledger in PostgreSQL: tables, indexes and the triggers that make it append-only.

Each data set has a schema of its own. SELECT and INSERT privileges are enough to charge; triggers keep even the owner
of the tables from updating or deleting rows. A row must have the next number, and its total must not be below the last.
"""

import re
from hashlib import sha256

from discreet.kernel.ledger.table import StorageDialect

_FORMAT_COMMENT = "Discreet ledger, format "
TABLES = ("answers", "rows")
SEARCH_PATH = "pg_catalog, pg_temp"  # of the functions, so that they use no objects of other users
_READABLE_LENGTH = 20  # characters of the data set's name in the name of its schema

_APPEND_ONLY_BODY = "BEGIN RAISE EXCEPTION 'a ledger is append-only'; END"

# Fractions are compared by cross-multiplication, which is exact for numeric; a missing epsilon (-) counts as infinite.
_ROW_FOLLOWS_BODY = """
DECLARE
    last record;
    new_part text;
    old_part text;
    loss CONSTANT text := '^(-|[0-9]+(/[1-9][0-9]*)?)( [0-9]+(/[1-9][0-9]*)?){{2}}$';
BEGIN
    IF NEW.loss !~ loss OR NEW.spent !~ loss OR NEW.spent_by !~ loss OR NEW.spent_in !~ loss THEN
        RAISE EXCEPTION 'a loss must be three fractions';
    END IF;
    SELECT r.seq, r.kind, r.spent, r.hash INTO last FROM {schema}.rows AS r ORDER BY r.seq DESC LIMIT 1;
    IF last.seq IS NULL THEN
        IF NEW.seq <> 1 THEN RAISE EXCEPTION 'a row must follow the last row'; END IF;
        RETURN NEW;
    END IF;
    IF NEW.seq <> last.seq + 1 OR NEW.previous <> last.hash THEN
        RAISE EXCEPTION 'a row must follow the last row';
    END IF;
    IF last.kind = 'move' AND NEW.kind <> 'arrive' THEN
        RAISE EXCEPTION 'the ledger was moved';
    END IF;
    FOR part IN 1..3 LOOP
        new_part := split_part(NEW.spent, ' ', part);
        old_part := split_part(last.spent, ' ', part);
        CONTINUE WHEN new_part = '-';
        IF old_part = '-'
            OR split_part(new_part, '/', 1)::numeric * coalesce(nullif(split_part(old_part, '/', 2), ''), '1')::numeric
            < split_part(old_part, '/', 1)::numeric * coalesce(nullif(split_part(new_part, '/', 2), ''), '1')::numeric
        THEN
            RAISE EXCEPTION 'the spent total must not decrease';
        END IF;
    END LOOP;
    RETURN NEW;
END
"""

# Byte order, whatever the server's locale: a new version of its collation would corrupt the indexes.
_TEXT_TYPE = 'text COLLATE pg_catalog."C"'
TABLE_COLUMNS = {
    "answers": (f"receipt {_TEXT_TYPE} NOT NULL", "answer bytea NOT NULL"),
    "rows": (
        "seq bigint NOT NULL",
        *(f"{name} {_TEXT_TYPE} NOT NULL" for name in ("time", "kind", '"by"', "dataset")),
        *(f"{name} {_TEXT_TYPE}" for name in ("key", "receipt")),
        *(f"{name} {_TEXT_TYPE} NOT NULL" for name in ("body", "loss", "spent", "spent_by", "spent_in")),
        *(f"{name} {_TEXT_TYPE} NOT NULL" for name in ("previous", "hash")),
    ),
}
# The primary key of each table, and the other indexes: name, table, whether it is unique, columns.
PRIMARY_KEYS = {"answers": ("receipt",), "rows": ("seq",)}
INDEXES = (
    ("rows_key", "rows", True, ("by", "dataset", "key")),
    ("rows_receipt", "rows", True, ("receipt", "kind")),
)


def schema_name(name: str) -> str:
    """Return the schema name of a data set: a readable part and a hash of its name.

    >>> schema_name("Visits 2024")
    'discreet_visits_2024_f3e407bbd6143f74c6e1aa1c991e4558'
    """
    readable = re.sub(r"[^a-z0-9]+", "_", name.lower())[:_READABLE_LENGTH].strip("_")
    return "_".join(part for part in ("discreet", readable, sha256(name.encode()).hexdigest()[:32]) if part)


def trigger_functions(schema: str) -> dict[str, str]:
    """Return the bodies of the trigger functions by name."""
    return {"only_grows": _APPEND_ONLY_BODY, "rows_follow": _ROW_FOLLOWS_BODY.format(schema=schema)}


def create_statements(schema: str) -> list[str]:
    """Return the statements that create the tables, indexes and triggers in an existing schema."""
    created = [
        f"CREATE FUNCTION {schema}.{name}() RETURNS trigger LANGUAGE plpgsql "
        f"SET search_path = {SEARCH_PATH} AS $${body}$$"
        for name, body in trigger_functions(schema).items()
    ]
    for table in TABLES:
        qualified, columns = f"{schema}.{table}", ", ".join(TABLE_COLUMNS[table])
        change = f"BEFORE UPDATE OR DELETE OR TRUNCATE ON {qualified} FOR EACH STATEMENT"
        created += [
            f"CREATE TABLE {qualified} ({columns}, PRIMARY KEY ({', '.join(PRIMARY_KEYS[table])}))",
            f"CREATE TRIGGER {table}_grow {change} EXECUTE FUNCTION {schema}.only_grows()",
            f"ALTER TABLE {qualified} ENABLE ALWAYS TRIGGER {table}_grow",
        ]
    for name, table, unique, index_columns in INDEXES:
        quoted = ", ".join(f'"{column}"' for column in index_columns)
        created.append(f"CREATE {'UNIQUE ' if unique else ''}INDEX {name} ON {schema}.{table} ({quoted})")
    insert = f"BEFORE INSERT ON {schema}.rows FOR EACH ROW"
    return [
        *created,
        f"CREATE TRIGGER rows_follow {insert} EXECUTE FUNCTION {schema}.rows_follow()",
        f"ALTER TABLE {schema}.rows ENABLE ALWAYS TRIGGER rows_follow",
        f"REVOKE ALL ON SCHEMA {schema} FROM PUBLIC",
        f"REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM PUBLIC",
    ]


def postgres_dialect(schema: str) -> StorageDialect:
    """Return the statements for a ledger in this schema; its comment records the format."""
    comment = f"obj_description(to_regnamespace('{schema}')::oid, 'pg_namespace')"
    number = f"coalesce(substring({comment} FROM '^{_FORMAT_COMMENT}([-0-9]+)$')::int, 0)"
    return StorageDialect(
        schema=schema,
        placeholder="%s",
        create_schema=(f"CREATE SCHEMA {schema}",),
        create_tables=tuple(create_statements(schema)),
        read_format=f"SELECT CASE WHEN to_regnamespace('{schema}') IS NOT NULL THEN {number} END",
        write_format=f"COMMENT ON SCHEMA {schema} IS '{_FORMAT_COMMENT}{{}}'",
        nothing_here=(
            f"the ledger does not exist. Correct the URL or the name, restore schema {schema} from a backup, or create "
            "a new ledger with create_postgres_ledger."
        ),
    )
