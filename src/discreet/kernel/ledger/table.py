"""The ledger's two tables in SQLite, and the questions that are put to them."""

import sqlite3
from collections.abc import Iterable, Iterator

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.chain import Act, Kind, Row, row_after, topics_in
from discreet.kernel.ledger.storage import read_row
from discreet.kernel.ledger.terms import Terms, at_least, read_loss, read_terms
from discreet.kernel.loss import NOTHING, Loss

FORMAT = 4
_RESERVED = -1  # not a ledger yet: one is moving here
_COLUMNS = ", ".join(f'"{column}"' for column in Row._fields)
_PLACES = ", ".join("?" for _ in Row._fields)

# A topic names what was asked: the rows of charges about the same are found by it.
_TOPICS = (
    "CREATE TABLE topics (topic TEXT NOT NULL, seq INTEGER NOT NULL) STRICT",
    "CREATE INDEX topics_topic ON topics (topic, seq)",
    *(
        f"CREATE TRIGGER topics_{verb} BEFORE {verb} ON topics BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END"
        for verb in ("UPDATE", "DELETE")
    ),
)

# This module never appends after a move; a program of an earlier version that has the file open would.
_MOVED = (
    """CREATE TRIGGER rows_moved BEFORE INSERT ON rows
        WHEN NEW.kind IS NOT 'arrive' AND (SELECT kind FROM rows ORDER BY seq DESC LIMIT 1) = 'move'
        BEGIN SELECT RAISE(ABORT, 'the ledger was moved'); END""",
    f"PRAGMA user_version = {FORMAT}",
)
_ADDED = {2: (*_TOPICS, *_MOVED), 3: _MOVED}  # to ledgers of the formats before this one

# No UNIQUE constraint: INSERT OR REPLACE would delete the row in its way without firing the DELETE trigger.
# not_below is a function of this module: no other program can append.
_SCHEMA = (
    """CREATE TABLE rows (
        seq INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, "by" TEXT NOT NULL, key TEXT,
        receipt TEXT, body TEXT NOT NULL, loss TEXT NOT NULL, spent TEXT NOT NULL, spent_by TEXT NOT NULL,
        previous TEXT NOT NULL, hash TEXT NOT NULL) STRICT""",
    "CREATE TABLE answers (receipt TEXT NOT NULL, answer BLOB NOT NULL) STRICT",
    'CREATE INDEX rows_by ON rows ("by", seq)',
    'CREATE INDEX rows_key ON rows ("by", key) WHERE key IS NOT NULL',
    "CREATE INDEX rows_receipt ON rows (receipt, kind) WHERE receipt IS NOT NULL",
    "CREATE INDEX rows_terms ON rows (seq) WHERE kind IN ('create', 'budget')",
    "CREATE INDEX rows_kind ON rows (kind, seq)",
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
    *_TOPICS,
    *_MOVED,
)


class SQLiteTable:
    """The rows behind one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.appended: Row | None = None  # the newest row of the running transaction
        connection.create_function("not_below", 2, _not_below, deterministic=True)

    def create(self) -> None:
        """Make the tables, their indexes and triggers; a place that was reserved for them is used up."""
        for statement in ("DROP TABLE IF EXISTS moving", *_SCHEMA):
            self.connection.execute(statement)

    def last(self) -> Row:
        """Return the last row."""
        row = self._one("ORDER BY seq DESC LIMIT 1")
        if row is None:
            raise LedgerError("there are no rows: the ledger was not completely created")
        return row

    def at(self, seq: int) -> Row | None:
        """Return a row by its number."""
        return self._one("WHERE seq = ?", seq)

    def spent_by(self, by: str) -> Loss:
        """Return what one analyst has spent."""
        row = self._one('WHERE "by" = ? ORDER BY seq DESC LIMIT 1', by)
        return read_loss(row.spent_by) if row else NOTHING

    def charge_with_key(self, by: str, key: str) -> Row | None:
        """Return the charge that an analyst made with a key."""
        return self._one('WHERE "by" = ? AND key = ?', by, key)

    def about(self, kind: Kind, receipt: str) -> Row | None:
        """Return the charge, or the settlement, of a receipt."""
        return self._one("WHERE receipt = ? AND kind = ?", receipt, kind.value)

    def terms(self) -> Terms:
        """Return the terms in force."""
        row = self._one("WHERE kind IN ('create', 'budget') ORDER BY seq DESC LIMIT 1")
        if row is None:
            raise LedgerError("there are no rows: the ledger was not completely created")
        return read_terms(row.body)

    def rows(self) -> Iterator[Row]:
        """Return all rows in order."""
        return (read_row(found) for found in self.connection.execute(f"SELECT {_COLUMNS} FROM rows ORDER BY seq"))  # noqa: S608

    def unsettled(self, after: int) -> list[Row]:
        """Return the charges without an answer since the last acknowledgement, beyond a row."""
        found = self.connection.execute(
            f"SELECT {_COLUMNS} FROM rows AS c WHERE kind = 'charge' "  # noqa: S608
            "AND seq > ? AND seq > (SELECT coalesce(max(seq), 0) FROM rows WHERE kind = 'acknowledge') "
            "AND NOT EXISTS (SELECT 1 FROM rows AS s WHERE s.receipt = c.receipt AND s.kind = 'settle') ORDER BY seq",
            (after,),
        )
        return [read_row(row) for row in found]

    def about_topics(self, topics: Iterable[str]) -> list[Row]:
        """Return the charges that have any of these topics, oldest first."""
        found = {
            seq
            for topic in topics
            for (seq,) in self.connection.execute("SELECT seq FROM topics WHERE topic = ?", (topic,))
        }
        return [row for seq in sorted(found) if (row := self.at(seq))]

    def newest(self, topic: str) -> str | None:
        """Return the receipt of the newest charge with a topic since the last acknowledgement."""
        row = self._one(
            "WHERE seq = (SELECT max(seq) FROM topics WHERE topic = ?) "
            "AND seq > (SELECT coalesce(max(seq), 0) FROM rows WHERE kind = 'acknowledge')",
            topic,
        )
        return row.receipt if row else None

    def topics(self) -> Iterator[tuple[str, int]]:
        """Return all topics with the numbers of their rows."""
        return iter(self.connection.execute("SELECT topic, seq FROM topics"))

    def answers(self) -> Iterator[tuple[str, bytes]]:
        """Return all answers with their receipts."""
        return iter(self.connection.execute("SELECT receipt, answer FROM answers"))

    def answer(self, receipt: str) -> bytes | None:
        """Return the stored answer of a receipt."""
        found = self.connection.execute("SELECT answer FROM answers WHERE receipt = ?", (receipt,)).fetchone()
        return found and bytes(found[0])

    def append(self, last: Row | None, act: Act) -> None:
        """Write the row that records an act after the last one."""
        self.add_row(row_after(last, self.spent_by(act.by), act))

    def add_row(self, row: Row) -> None:
        """Write a row as it is, and its topics."""
        self.connection.execute(f"INSERT INTO rows ({_COLUMNS}) VALUES ({_PLACES})", row)  # noqa: S608
        if row.kind == Kind.CHARGE:
            named = [(topic, row.seq) for topic in topics_in(row.body)]
            self.connection.executemany("INSERT INTO topics (topic, seq) VALUES (?, ?)", named)
        self.appended = row

    def add_answer(self, receipt: str, answer: bytes) -> None:
        """Write an answer."""
        self.connection.execute("INSERT INTO answers (receipt, answer) VALUES (?, ?)", (receipt, answer))

    @property
    def is_older(self) -> bool:
        """Whether the ledger is of a format before this one."""
        return self._format() in _ADDED

    def upgrade(self) -> None:
        """Bring a ledger of a format before this one up to date, unless somebody did; its rows stay as they are."""
        for statement in _ADDED.get(self._format(), ()):
            self.connection.execute(statement)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever made here."""
        return not self.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]

    def reserve(self, mark: str) -> None:
        """Keep an empty place for the ledger that moves here with this mark."""
        self.connection.execute("CREATE TABLE moving (mark TEXT NOT NULL) STRICT")
        self.connection.execute("INSERT INTO moving (mark) VALUES (?)", (mark,))
        self.connection.execute(f"PRAGMA user_version = {_RESERVED}")

    def reserved(self) -> str | None:
        """Return the mark of the ledger that is moving here; None if there is a ledger already."""
        if self._format() != _RESERVED:
            self.check_format()
            return None
        return str(self.connection.execute("SELECT mark FROM moving").fetchone()[0])

    def check_format(self) -> None:
        """Stop if this is another kind of database, or of another version."""
        if (found := self._format()) == _RESERVED:
            raise LedgerError("a ledger is moving here and has not arrived. Give the command that moves it again.")
        if found != FORMAT:
            raise LedgerError(f"this is not a ledger of format {FORMAT} (found {found}), or was not completely created")

    def _format(self) -> int:
        return int(self.connection.execute("PRAGMA user_version").fetchone()[0])

    def check_file(self) -> None:
        """Stop if the database is damaged, or its tables and triggers are not those of this module."""
        found = self.connection.execute("PRAGMA integrity_check").fetchone()[0]
        if found != "ok":
            raise LedgerError(f"the database is damaged ({found})")
        written = {text for (text,) in self.connection.execute("SELECT sql FROM sqlite_master")}
        if written != {text for text in _SCHEMA if text.startswith("CREATE")}:
            raise LedgerError("the tables or triggers were changed")

    def _one(self, rest: str, *values: str | int) -> Row | None:
        found = self.connection.execute(f"SELECT {_COLUMNS} FROM rows {rest}", values).fetchone()  # noqa: S608
        return None if found is None else read_row(found)


def _not_below(new: str, old: str | None) -> bool:
    return old is None or at_least(read_loss(new), read_loss(old))
