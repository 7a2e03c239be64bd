"""The schema of a ledger in PostgreSQL: tables, indexes and the triggers that make it append-only.

Each data set has a schema of its own. Whoever may only SELECT and INSERT can charge; triggers stop the owner of the
tables too from changing or removing what is there. A row must be the next one, and its total not below the last.
"""

import re
from hashlib import sha256

FORMAT = "Discreet ledger, format 2"
RESERVED = "Discreet ledger, on its way"
TABLES = ("answers", "rows")
SEARCH_PATH = "pg_catalog, pg_temp"  # where the functions find names: nobody else's come in between
_READABLE_LENGTH = 20  # characters of a data set's name that its schema shows

_APPEND_ONLY_BODY = "BEGIN RAISE EXCEPTION 'a ledger only grows'; END"

# Fractions are compared by multiplication, which numeric does exactly; an unknown epsilon, -, is above all others.
_ROW_FOLLOWS_BODY = """
DECLARE
    last record;
    new_part text;
    old_part text;
    loss CONSTANT text := '^(-|[0-9]+(/[1-9][0-9]*)?)( [0-9]+(/[1-9][0-9]*)?){{2}}$';
BEGIN
    IF NEW.loss !~ loss OR NEW.spent !~ loss OR NEW.spent_by !~ loss THEN
        RAISE EXCEPTION 'a loss is three fractions';
    END IF;
    SELECT r.seq, r.kind, r.spent, r.hash INTO last FROM {schema}.rows AS r ORDER BY r.seq DESC LIMIT 1;
    IF last.seq IS NULL THEN
        IF NEW.seq <> 1 THEN RAISE EXCEPTION 'a row must follow the last one'; END IF;
        RETURN NEW;
    END IF;
    IF NEW.seq <> last.seq + 1 OR NEW.previous <> last.hash THEN
        RAISE EXCEPTION 'a row must follow the last one';
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
            RAISE EXCEPTION 'what is spent never falls';
        END IF;
    END LOOP;
    RETURN NEW;
END
"""

# Byte order, whatever language the server speaks: a new version of its sorting rules would spoil the indexes.
_TEXT_TYPE = 'text COLLATE pg_catalog."C"'
TABLE_COLUMNS = {
    "answers": (f"receipt {_TEXT_TYPE} NOT NULL", "answer bytea NOT NULL"),
    "rows": (
        "seq bigint NOT NULL",
        *(f"{name} {_TEXT_TYPE} NOT NULL" for name in ("time", "kind", '"by"')),
        *(f"{name} {_TEXT_TYPE}" for name in ("key", "receipt")),
        *(f"{name} {_TEXT_TYPE} NOT NULL" for name in ("body", "loss", "spent", "spent_by", "previous", "hash")),
    ),
}
# The primary key of each table, and the other indexes: name, table, whether it is unique, columns.
PRIMARY_KEYS = {"answers": ("receipt",), "rows": ("seq",)}
INDEXES = (
    ("rows_key", "rows", True, ("by", "key")),
    ("rows_receipt", "rows", True, ("receipt", "kind")),
)


def schema_name(name: str) -> str:
    """Return the schema of a data set: what is readable of its name, and a hash that no other name has.

    >>> schema_name("Visits 2024")
    'discreet_visits_2024_f3e407bbd6143f74c6e1aa1c991e4558'
    """
    readable = re.sub(r"[^a-z0-9]+", "_", name.lower())[:_READABLE_LENGTH].strip("_")
    return "_".join(part for part in ("discreet", readable, sha256(name.encode()).hexdigest()[:32]) if part)


def trigger_functions(schema: str) -> dict[str, str]:
    """Return the functions that the triggers call."""
    return {"only_grows": _APPEND_ONLY_BODY, "rows_follow": _ROW_FOLLOWS_BODY.format(schema=schema)}


def create_statements(schema: str) -> list[str]:
    """Return what makes the tables, their indexes and triggers in a schema that is there."""
    created = [
        f"CREATE FUNCTION {schema}.{name}() RETURNS trigger LANGUAGE plpgsql SET search_path = {SEARCH_PATH} AS $${body}$$"
        for name, body in trigger_functions(schema).items()
    ]
    for table in TABLES:
        qualified = f"{schema}.{table}"
        change = f"BEFORE UPDATE OR DELETE OR TRUNCATE ON {qualified} FOR EACH STATEMENT"
        created += [
            f"CREATE TABLE {qualified} ({', '.join(TABLE_COLUMNS[table])}, PRIMARY KEY ({', '.join(PRIMARY_KEYS[table])}))",
            f"CREATE TRIGGER {table}_grow {change} EXECUTE FUNCTION {schema}.only_grows()",
            f"ALTER TABLE {qualified} ENABLE ALWAYS TRIGGER {table}_grow",
        ]
    for name, table, unique, columns in INDEXES:
        quoted = ", ".join(f'"{column}"' for column in columns)
        created.append(f"CREATE {'UNIQUE ' if unique else ''}INDEX {name} ON {schema}.{table} ({quoted})")
    insert = f"BEFORE INSERT ON {schema}.rows FOR EACH ROW"
    return [
        *created,
        f"CREATE TRIGGER rows_follow {insert} EXECUTE FUNCTION {schema}.rows_follow()",
        f"ALTER TABLE {schema}.rows ENABLE ALWAYS TRIGGER rows_follow",
        f"REVOKE ALL ON SCHEMA {schema} FROM PUBLIC",
        f"REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM PUBLIC",
        f"COMMENT ON SCHEMA {schema} IS '{FORMAT}'",
    ]
