"""The tables of a ledger, in SQLite or PostgreSQL, and the interface of a storage."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Protocol

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.chain import NO_ROWS, RESTORE_HINT, Chain, LedgerRow
from discreet.kernel.ledger.checkpoint import Checkpoint

FORMAT = 8  # of every ledger, in a file or a database; no other is read
RESERVED = -1  # in place of the format: a location that is reserved for a move
NOT_A_LEDGER = "this is not a ledger, or its creation was interrupted. Correct the path or the URL."
_FORMAT_PROBLEMS = {0: NOT_A_LEDGER, RESERVED: "a move to this location is unfinished. Run the move command again."}
_OTHER_FORMAT = (
    f"ledger format {{}} is not supported; this version of Discreet reads format {FORMAT}. Use the version that "
    "created the ledger, or start a new one."
)
_COLUMNS = ", ".join(f'"{column}"' for column in LedgerRow._fields)
_PLACEHOLDERS = ", ".join("?" for _ in LedgerRow._fields)
_PAGE_ROWS = 500  # rows fetched at once


@dataclass(frozen=True)
class StorageDialect:
    """What differs between the databases: names, placeholders, and the statements for tables and for the format."""

    schema: str
    placeholder: str
    create_schema: tuple[str, ...]
    create_tables: tuple[str, ...]
    read_format: str  # a query for the number; NULL if nothing was created, 0 if this is not a ledger
    write_format: str  # a statement with {} for the number
    nothing_here: str  # the message if nothing was created


class LedgerTable:
    """The rows and answers, through one connection and within one transaction."""

    def __init__(self, connection: Any, dialect: StorageDialect) -> None:
        self.connection, self.dialect = connection, dialect
        self.last_appended: LedgerRow | None = None  # the last row appended in this transaction
        self.last_checked: LedgerRow | None = None  # the last row of the chain that this transaction has checked
        self._rows, self._answers = (f"{dialect.schema}.{name}" for name in ("rows", "answers"))

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement, with ? for each value, and return the rows that it selects."""
        cursor = self.connection.execute(statement.replace("?", self.dialect.placeholder), values)
        return cursor.fetchall() if cursor.description else []

    def create(self) -> None:
        """Create the tables, indexes and triggers."""
        for statement in (*self.dialect.create_schema, *self.dialect.create_tables):
            self.connection.execute(statement)
        self.write_format(FORMAT)

    def format(self) -> int | None:
        """Return the format of the ledger, or RESERVED; None if nothing was created, 0 if this is not a ledger."""
        number: int | None = self.query(self.dialect.read_format)[0][0]
        return number

    def write_format(self, number: int) -> None:
        """Record the format of the ledger, or RESERVED."""
        self.connection.execute(self.dialect.write_format.format(number))

    def check_format(self, *accepted: int | None) -> None:
        """Raise LedgerError unless the format is one of those accepted."""
        if (number := self.format()) not in accepted:
            problem = self.dialect.nothing_here if number is None else _FORMAT_PROBLEMS.get(number, _OTHER_FORMAT)
            raise LedgerError(problem.format(number))

    def last_row(self) -> LedgerRow:
        """Return the last row."""
        row = self._select("ORDER BY seq DESC LIMIT 1")
        if row is None:
            raise LedgerError(NO_ROWS)
        return row

    def row_at(self, seq: int) -> LedgerRow | None:
        """Return the row with this number, or None."""
        return self._select("WHERE seq = ?", seq)

    def rows(self, start: int = 1) -> Iterator[LedgerRow]:
        """Return the rows in order, beginning with number `start`; they are fetched in pages and checked one by one."""
        query = f"SELECT {_COLUMNS} FROM {self._rows} WHERE seq >= ? ORDER BY seq LIMIT ?"
        while page := self.query(query, start, _PAGE_ROWS):
            yield from map(read_row, page)
            if len(page) < _PAGE_ROWS:
                return
            start = page[-1][0] + 1

    def answer(self, receipt: str) -> bytes | None:
        """Return the stored answer of a receipt, or None."""
        answers = self.query(f"SELECT answer FROM {self._answers} WHERE receipt = ?", receipt)
        return bytes(answers[0][0]) if answers else None

    def count_answers(self) -> int:
        """Return the number of stored answers."""
        return int(self.query(f"SELECT count(*) FROM {self._answers}")[0][0])

    def add_row(self, row: LedgerRow) -> None:
        """Insert a row."""
        self.query(f"INSERT INTO {self._rows} ({_COLUMNS}) VALUES ({_PLACEHOLDERS})", *row)
        self.last_appended = row

    def add_answer(self, receipt: str, answer: bytes) -> None:
        """Insert an answer."""
        self.query(f"INSERT INTO {self._answers} (receipt, answer) VALUES (?, ?)", receipt, answer)

    def _select(self, clause: str, *values: int) -> LedgerRow | None:
        rows = self.query(f"SELECT {_COLUMNS} FROM {self._rows} {clause}", *values)
        return read_row(rows[0]) if rows else None


def read_row(columns: tuple[Any, ...]) -> LedgerRow:
    """Return a stored row; LedgerError if its hash does not match."""
    row = LedgerRow(*columns)
    if row.hash != row.digest():
        raise LedgerError(f"row {row.seq} was modified: its hash does not match{RESTORE_HINT}")
    return row


def stored_answer(table: LedgerTable, chain: Chain, receipt: str) -> bytes | None:
    """Return the answer of a charge, which must have the hash in the chain; None if it was not settled."""
    if receipt not in chain.settlements:
        return None
    seq, digest = chain.settlements[receipt]
    answer = table.answer(receipt)
    if answer is None or sha256(answer).hexdigest() != digest:
        raise LedgerError(f"row {seq}: the stored answer was modified or deleted{RESTORE_HINT}")
    return answer


def check_answers(table: LedgerTable, chain: Chain) -> None:
    """Raise LedgerError unless the stored answers are exactly those in the chain."""
    for receipt in chain.settlements:
        stored_answer(table, chain, receipt)
    if table.count_answers() != len(chain.settlements):
        raise LedgerError(f"a stored answer has no charge{RESTORE_HINT}")


class StorageLocation(Protocol):
    """The location of a ledger; str() names it in error messages."""

    def checkpoint(self) -> Checkpoint | None:
        """Return the stored checkpoint; None if it is missing or invalid."""

    def store_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Store a checkpoint."""


class LedgerSession(Protocol):
    """Access to a ledger's tables for all threads of a process."""

    @property
    def location(self) -> StorageLocation:
        """The location of the ledger."""

    def write_transaction(self) -> AbstractContextManager[LedgerTable]:
        """Run one exclusive, durable transaction; update the checkpoint after the commit."""

    def read_transaction(self) -> AbstractContextManager[LedgerTable]:
        """Read a snapshot of the ledger."""

    def close(self) -> None:
        """Close the session for good."""


@contextmanager
def closed_on_error(resource: Any) -> Iterator[None]:
    """Close a session or connection if its construction fails."""
    try:
        yield
    except BaseException:
        resource.close()
        raise
