"""The ledger's two tables in SQLite, and the triggers that make them append-only."""

import sqlite3
from collections.abc import Iterator

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.chain import RESTORE_HINT, LedgerRow
from discreet.kernel.ledger.storage import FORMAT, MOVE_UNFINISHED, read_row
from discreet.kernel.ledger.terms import is_at_least, read_loss

_RESERVED = -1  # user_version of a location that is reserved for a move
_COLUMNS = ", ".join(f'"{column}"' for column in LedgerRow._fields)
_PLACEHOLDERS = ", ".join("?" for _ in LedgerRow._fields)

# No UNIQUE constraints: INSERT OR REPLACE would delete the conflicting row without firing the DELETE trigger.
# not_below is a function of this module, so no other program can append rows.
_SCHEMA = (
    """CREATE TABLE rows (
        seq INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, "by" TEXT NOT NULL, key TEXT,
        receipt TEXT, body TEXT NOT NULL, loss TEXT NOT NULL, spent TEXT NOT NULL, spent_by TEXT NOT NULL,
        previous TEXT NOT NULL, hash TEXT NOT NULL) STRICT""",
    "CREATE TABLE answers (receipt TEXT NOT NULL, answer BLOB NOT NULL) STRICT",
    'CREATE INDEX rows_key ON rows ("by", key) WHERE key IS NOT NULL',
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
        OR EXISTS (SELECT 1 FROM rows WHERE "by" = NEW."by" AND key = NEW.key)
        BEGIN SELECT RAISE(ABORT, 'a receipt or key must not be reused'); END""",
    """CREATE TRIGGER answers_once BEFORE INSERT ON answers
        WHEN EXISTS (SELECT 1 FROM answers WHERE receipt = NEW.receipt)
        BEGIN SELECT RAISE(ABORT, 'an answer must not be replaced'); END""",
    # A second guard: this module itself never appends after a move.
    """CREATE TRIGGER rows_moved BEFORE INSERT ON rows
        WHEN NEW.kind IS NOT 'arrive' AND (SELECT kind FROM rows ORDER BY seq DESC LIMIT 1) = 'move'
        BEGIN SELECT RAISE(ABORT, 'the ledger was moved'); END""",
    f"PRAGMA user_version = {FORMAT}",
)


class SQLiteTable:
    """The rows and answers, through one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.last_appended: LedgerRow | None = None  # the last row appended in the current transaction
        connection.create_function("not_below", 2, _not_below, deterministic=True)

    def create(self) -> None:
        """Create the tables, indexes and triggers, and remove the reservation, if there is one."""
        for statement in ("DROP TABLE IF EXISTS moving", *_SCHEMA):
            self.connection.execute(statement)

    def last_row(self) -> LedgerRow:
        """Return the last row."""
        row = self._select_row("ORDER BY seq DESC LIMIT 1")
        if row is None:
            raise LedgerError("the ledger has no rows: its creation was interrupted")
        return row

    def row_at(self, seq: int) -> LedgerRow | None:
        """Return the row with this number, or None."""
        return self._select_row("WHERE seq = ?", seq)

    def rows(self, start: int = 1) -> Iterator[LedgerRow]:
        """Return the rows in order, beginning with number `start`."""
        query = f"SELECT {_COLUMNS} FROM rows WHERE seq >= ? ORDER BY seq"  # noqa: S608 - constant columns
        return map(read_row, self.connection.execute(query, (start,)))

    def answers(self) -> Iterator[tuple[str, bytes]]:
        """Return all answers with their receipts."""
        return iter(self.connection.execute("SELECT receipt, answer FROM answers"))

    def answer(self, receipt: str) -> bytes | None:
        """Return the stored answer of a receipt, or None."""
        row = self.connection.execute("SELECT answer FROM answers WHERE receipt = ?", (receipt,)).fetchone()
        return row and bytes(row[0])

    def add_row(self, row: LedgerRow) -> None:
        """Insert a row."""
        self.connection.execute(f"INSERT INTO rows ({_COLUMNS}) VALUES ({_PLACEHOLDERS})", row)  # noqa: S608 - as above
        self.last_appended = row

    def add_answer(self, receipt: str, answer: bytes) -> None:
        """Insert an answer."""
        self.connection.execute("INSERT INTO answers (receipt, answer) VALUES (?, ?)", (receipt, answer))

    @property
    def is_empty(self) -> bool:
        """Whether the database is empty."""
        return not self.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]

    def reserve(self, marker: str) -> None:
        """Reserve the empty database for the move with this marker."""
        self.connection.execute("CREATE TABLE moving (mark TEXT NOT NULL) STRICT")
        self.connection.execute("INSERT INTO moving (mark) VALUES (?)", (marker,))
        self.connection.execute(f"PRAGMA user_version = {_RESERVED}")

    def reservation_marker(self) -> str | None:
        """Return the marker of an unfinished move; None if there is a ledger."""
        if self._format() != _RESERVED:
            self.check_format()
            return None
        return str(self.connection.execute("SELECT mark FROM moving").fetchone()[0])

    def check_format(self) -> None:
        """Raise LedgerError unless this is a ledger of the supported format."""
        if (version := self._format()) == _RESERVED:
            raise LedgerError(MOVE_UNFINISHED)
        if version != FORMAT:
            raise LedgerError(
                f"ledger format {version} is not supported; this version of Discreet reads format {FORMAT}. "
                "Use the version that created the ledger, or start a new one."
            )

    def _format(self) -> int:
        return int(self.connection.execute("PRAGMA user_version").fetchone()[0])

    def check_storage(self) -> None:
        """Raise LedgerError if the database is corrupt, or its tables or triggers were modified."""
        integrity = self.connection.execute("PRAGMA integrity_check").fetchone()[0]
        if integrity != "ok":
            raise LedgerError(f"the database is corrupt ({integrity}){RESTORE_HINT}")
        definitions = {text for (text,) in self.connection.execute("SELECT sql FROM sqlite_master")}
        if definitions != {text for text in _SCHEMA if text.startswith("CREATE")}:
            raise LedgerError(f"the tables or triggers were modified{RESTORE_HINT}")

    def _select_row(self, clause: str, *values: str | int) -> LedgerRow | None:
        columns = self.connection.execute(f"SELECT {_COLUMNS} FROM rows {clause}", values).fetchone()  # noqa: S608
        return None if columns is None else read_row(columns)


def _not_below(new: str, old: str | None) -> bool:
    return old is None or is_at_least(read_loss(new), read_loss(old))
