"""The ledger's two tables in SQLite, and the triggers that make them append-only."""

import sqlite3
from collections.abc import Iterator

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.chain import LedgerRow
from discreet.kernel.ledger.storage import read_row
from discreet.kernel.ledger.terms import is_at_least, read_loss

FORMAT = 5
_RESERVED = -1  # not a ledger yet: one is moving here
_COLUMNS = ", ".join(f'"{column}"' for column in LedgerRow._fields)
_PLACEHOLDERS = ", ".join("?" for _ in LedgerRow._fields)

# No UNIQUE constraint: INSERT OR REPLACE would delete the row in its way without firing the DELETE trigger.
# not_below is a function of this module: no other program can append.
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
        f"CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table} BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END"
        for table in ("rows", "answers")
        for verb in ("UPDATE", "DELETE")
    ),
    """CREATE TRIGGER rows_follow BEFORE INSERT ON rows
        WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM rows)
        OR NEW.previous IS NOT coalesce((SELECT hash FROM rows ORDER BY seq DESC LIMIT 1), NEW.previous)
        BEGIN SELECT RAISE(ABORT, 'a row must follow the last one'); END""",
    """CREATE TRIGGER rows_grow BEFORE INSERT ON rows
        WHEN NOT not_below(NEW.spent, (SELECT spent FROM rows ORDER BY seq DESC LIMIT 1))
        BEGIN SELECT RAISE(ABORT, 'what is spent never falls'); END""",
    """CREATE TRIGGER rows_once BEFORE INSERT ON rows
        WHEN EXISTS (SELECT 1 FROM rows WHERE receipt = NEW.receipt AND kind = NEW.kind)
        OR EXISTS (SELECT 1 FROM rows WHERE "by" = NEW."by" AND key = NEW.key)
        BEGIN SELECT RAISE(ABORT, 'a receipt or key is used once'); END""",
    """CREATE TRIGGER answers_once BEFORE INSERT ON answers
        WHEN EXISTS (SELECT 1 FROM answers WHERE receipt = NEW.receipt)
        BEGIN SELECT RAISE(ABORT, 'an answer is stored once'); END""",
    # This module never appends after a move; a program that opened the file before would.
    """CREATE TRIGGER rows_moved BEFORE INSERT ON rows
        WHEN NEW.kind IS NOT 'arrive' AND (SELECT kind FROM rows ORDER BY seq DESC LIMIT 1) = 'move'
        BEGIN SELECT RAISE(ABORT, 'the ledger was moved'); END""",
    f"PRAGMA user_version = {FORMAT}",
)


class SQLiteTable:
    """The rows behind one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.last_appended: LedgerRow | None = None  # the newest row of the running transaction
        connection.create_function("not_below", 2, _not_below, deterministic=True)

    def create(self) -> None:
        """Make the tables, their indexes and triggers; a place that was reserved for them is used up."""
        for statement in ("DROP TABLE IF EXISTS moving", *_SCHEMA):
            self.connection.execute(statement)

    def last_row(self) -> LedgerRow:
        """Return the last row."""
        row = self._select_row("ORDER BY seq DESC LIMIT 1")
        if row is None:
            raise LedgerError("there are no rows: the ledger was not completely created")
        return row

    def row_at(self, seq: int) -> LedgerRow | None:
        """Return a row by its number."""
        return self._select_row("WHERE seq = ?", seq)

    def rows(self, start: int = 1) -> Iterator[LedgerRow]:
        """Return the rows in order, from one on."""
        query = f"SELECT {_COLUMNS} FROM rows WHERE seq >= ? ORDER BY seq"  # noqa: S608 - columns of ours
        return map(read_row, self.connection.execute(query, (start,)))

    def answers(self) -> Iterator[tuple[str, bytes]]:
        """Return all answers with their receipts."""
        return iter(self.connection.execute("SELECT receipt, answer FROM answers"))

    def answer(self, receipt: str) -> bytes | None:
        """Return the stored answer of a receipt."""
        row = self.connection.execute("SELECT answer FROM answers WHERE receipt = ?", (receipt,)).fetchone()
        return row and bytes(row[0])

    def add_row(self, row: LedgerRow) -> None:
        """Write a row as it is."""
        self.connection.execute(f"INSERT INTO rows ({_COLUMNS}) VALUES ({_PLACEHOLDERS})", row)  # noqa: S608 - as above
        self.last_appended = row

    def add_answer(self, receipt: str, answer: bytes) -> None:
        """Write an answer."""
        self.connection.execute("INSERT INTO answers (receipt, answer) VALUES (?, ?)", (receipt, answer))

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever made here."""
        return not self.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]

    def reserve(self, marker: str) -> None:
        """Keep an empty place for the ledger that moves here with this mark."""
        self.connection.execute("CREATE TABLE moving (mark TEXT NOT NULL) STRICT")
        self.connection.execute("INSERT INTO moving (mark) VALUES (?)", (marker,))
        self.connection.execute(f"PRAGMA user_version = {_RESERVED}")

    def reservation_marker(self) -> str | None:
        """Return the mark of the ledger that is moving here; None if there is a ledger already."""
        if self._format() != _RESERVED:
            self.check_format()
            return None
        return str(self.connection.execute("SELECT mark FROM moving").fetchone()[0])

    def check_format(self) -> None:
        """Stop if this is another kind of database, or of another version."""
        if (version := self._format()) == _RESERVED:
            raise LedgerError("a ledger is moving here and has not arrived. Give the command that moves it again.")
        if version != FORMAT:
            raise LedgerError(
                f"this is not a ledger of format {FORMAT} (found {version}), or was not completely created"
            )

    def _format(self) -> int:
        return int(self.connection.execute("PRAGMA user_version").fetchone()[0])

    def check_storage(self) -> None:
        """Stop if the database is damaged, or its tables and triggers are not those of this module."""
        integrity = self.connection.execute("PRAGMA integrity_check").fetchone()[0]
        if integrity != "ok":
            raise LedgerError(f"the database is damaged ({integrity})")
        definitions = {text for (text,) in self.connection.execute("SELECT sql FROM sqlite_master")}
        if definitions != {text for text in _SCHEMA if text.startswith("CREATE")}:
            raise LedgerError("the tables or triggers were changed")

    def _select_row(self, clause: str, *values: str | int) -> LedgerRow | None:
        columns = self.connection.execute(f"SELECT {_COLUMNS} FROM rows {clause}", values).fetchone()  # noqa: S608
        return None if columns is None else read_row(columns)


def _not_below(new: str, old: str | None) -> bool:
    return old is None or is_at_least(read_loss(new), read_loss(old))
