"""The schema of a ledger in SQLite: tables, indexes and the triggers that make it append-only."""

from discreet.kernel.ledger.table import NOT_A_LEDGER, StorageDialect

# No UNIQUE constraints: INSERT OR REPLACE would delete the conflicting row without firing the DELETE trigger.
# not_below is a function of the location's connections, so no other program can append rows.
SQLITE_SCHEMA = (
    """CREATE TABLE rows (
        seq INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, "by" TEXT NOT NULL,
        dataset TEXT NOT NULL, key TEXT, receipt TEXT, body TEXT NOT NULL, loss TEXT NOT NULL, spent TEXT NOT NULL,
        spent_by TEXT NOT NULL, spent_in TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL) STRICT""",
    "CREATE TABLE answers (receipt TEXT NOT NULL, answer BLOB NOT NULL) STRICT",
    'CREATE INDEX rows_key ON rows ("by", dataset, key) WHERE key IS NOT NULL',
    "CREATE INDEX rows_receipt ON rows (receipt, kind) WHERE receipt IS NOT NULL",
    "CREATE INDEX answers_receipt ON answers (receipt)",
    *(
        f"CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table} "
        "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
        for table in ("rows", "answers")
        for verb in ("UPDATE", "DELETE")
    ),
    """CREATE TRIGGER rows_follow BEFORE INSERT ON rows
        WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM rows)
        OR NEW.previous IS NOT coalesce((SELECT hash FROM rows ORDER BY seq DESC LIMIT 1), NEW.previous)
        BEGIN SELECT RAISE(ABORT, 'a row must follow the last row'); END""",
    """CREATE TRIGGER rows_grow BEFORE INSERT ON rows
        WHEN NOT not_below(NEW.spent, (SELECT spent FROM rows ORDER BY seq DESC LIMIT 1))
        BEGIN SELECT RAISE(ABORT, 'the spent total must not decrease'); END""",
    """CREATE TRIGGER rows_once BEFORE INSERT ON rows
        WHEN EXISTS (SELECT 1 FROM rows WHERE receipt = NEW.receipt AND kind = NEW.kind)
        OR EXISTS (SELECT 1 FROM rows WHERE "by" = NEW."by" AND dataset = NEW.dataset AND key = NEW.key)
        BEGIN SELECT RAISE(ABORT, 'a receipt or key must not be reused'); END""",
    """CREATE TRIGGER answers_once BEFORE INSERT ON answers
        WHEN EXISTS (SELECT 1 FROM answers WHERE receipt = NEW.receipt)
        BEGIN SELECT RAISE(ABORT, 'an answer must not be replaced'); END""",
    # A second guard: this package itself never appends after a move.
    """CREATE TRIGGER rows_moved BEFORE INSERT ON rows
        WHEN NEW.kind IS NOT 'arrive' AND (SELECT kind FROM rows ORDER BY seq DESC LIMIT 1) = 'move'
        BEGIN SELECT RAISE(ABORT, 'the ledger was moved'); END""",
)
SQLITE_DIALECT = StorageDialect(
    schema="main",
    placeholder="?",
    create_schema=(),
    create_tables=SQLITE_SCHEMA,
    read_format=(
        "SELECT CASE WHEN EXISTS (SELECT 1 FROM sqlite_master) OR user_version <> 0 THEN user_version END "
        "FROM pragma_user_version"
    ),
    write_format="PRAGMA user_version = {}",
    nothing_here=NOT_A_LEDGER,
)
