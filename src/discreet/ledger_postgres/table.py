"""The rows and answers of a ledger in PostgreSQL."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.chain import LedgerRow
from discreet.kernel.ledger.checkpoint import Checkpoint, milestones
from discreet.kernel.ledger.storage import FORMAT, MOVE_UNFINISHED, read_row
from discreet.ledger_postgres.schema import FORMAT_COMMENT, FORMAT_PREFIX, RESERVED_COMMENT, create_statements
from discreet.ledger_postgres.schema_check import check_schema

if TYPE_CHECKING:
    import psycopg

_COLUMNS = ", ".join(f'"{column}"' for column in LedgerRow._fields)
_PLACEHOLDERS = ", ".join("%s" for _ in LedgerRow._fields)
_PAGE_ROWS = 500  # rows fetched at once
_BATCH_BYTES = 8 * 1024 * 1024  # bytes of answers fetched at once, unless a single one is longer
_HASH_PREFIX = 16  # characters of the hash of an earlier row in a checkpoint


class PostgresTable:
    """The rows and answers, through one connection and within one transaction."""

    def __init__(self, connection: "psycopg.Connection[tuple[Any, ...]]", schema: str) -> None:
        self.connection = connection
        self.last_appended: LedgerRow | None = None  # the last row appended in this transaction
        self.last_seen: LedgerRow | None = None  # the last row, once it was read: only this transaction can append
        self._schema = schema

    def create(self) -> None:
        """Create the tables, indexes and triggers, and remove the reservation, if there is one."""
        first = (
            f"DROP TABLE {self._schema}.moving"
            if self._comment() == RESERVED_COMMENT
            else f"CREATE SCHEMA {self._schema}"
        )
        for statement in (first, *create_statements(self._schema)):
            self.connection.execute(statement)

    def last_row(self) -> LedgerRow:
        """Return the last row."""
        self.last_seen = self.last_seen or self._select_row("ORDER BY seq DESC LIMIT 1")
        if self.last_seen is None:
            raise LedgerError("the ledger has no rows: its creation was interrupted")
        return self.last_seen

    def row_at(self, seq: int) -> LedgerRow | None:
        """Return the row with this number, or None."""
        return (
            self.last_seen if self.last_seen and self.last_seen.seq == seq else self._select_row("WHERE seq = %s", seq)
        )

    def rows(self, start: int = 1) -> Iterator[LedgerRow]:
        """Return the rows in order, beginning with number `start`; they are fetched in pages and checked one by one."""
        query = f"SELECT {_COLUMNS} FROM {{schema}}.rows WHERE seq >= %s ORDER BY seq LIMIT %s"  # noqa: S608 - constant columns
        row, page = None, self._fetch_all(query, start, _PAGE_ROWS)
        while page:
            for columns in page:
                row = _read_escaped_row(*columns)
                yield row
            page = self._fetch_all(query, page[-1][0] + 1, _PAGE_ROWS) if len(page) == _PAGE_ROWS else []
        self.last_seen = row or self.last_seen

    def answers(self) -> Iterator[tuple[str, bytes]]:
        """Return all answers with their receipts, fetched in batches."""
        query = "SELECT receipt, answer FROM {schema}.answers WHERE receipt = ANY (%s::text[])"
        for receipts in self._receipt_batches():
            for receipt, answer in self._fetch_all(query, receipts):
                yield _unescape_nul(receipt), bytes(answer)

    def answer(self, receipt: str) -> bytes | None:
        """Return the stored answer of a receipt, or None."""
        rows = self._fetch_all("SELECT answer FROM {schema}.answers WHERE receipt = %s", _escape_nul(receipt))
        return bytes(rows[0][0]) if rows else None

    def add_row(self, row: LedgerRow) -> None:
        """Insert a row."""
        stored = row._replace(by=_escape_nul(row.by), key=None if row.key is None else _escape_nul(row.key))
        self._execute(f"INSERT INTO {{schema}}.rows ({_COLUMNS}) VALUES ({_PLACEHOLDERS})", *stored)  # noqa: S608 - as above
        self.last_appended = self.last_seen = row

    def add_answer(self, receipt: str, answer: bytes) -> None:
        """Insert an answer."""
        self._execute("INSERT INTO {schema}.answers (receipt, answer) VALUES (%s, %s)", _escape_nul(receipt), answer)

    def checkpoint_at(self, row: LedgerRow) -> Checkpoint:
        """Return the checkpoint for this row, with some earlier rows."""
        milestone_rows = self._fetch_all(
            "SELECT seq, hash FROM {schema}.rows WHERE seq = ANY (%s::bigint[]) ORDER BY seq", milestones(row.seq)
        )
        latest = Checkpoint.of_row(row)
        return Checkpoint(
            latest.seq,
            latest.hash,
            latest.spent,
            latest.moved,
            tuple((seq, row_hash[:_HASH_PREFIX]) for seq, row_hash in milestone_rows),
        )

    @property
    def is_empty(self) -> bool:
        """Whether the schema does not exist."""
        return bool(self.connection.execute("SELECT to_regnamespace(%s) IS NULL", (self._schema,)).fetchall()[0][0])

    def reserve(self, marker: str) -> None:
        """Reserve the schema for the move with this marker."""
        self._execute("CREATE SCHEMA {schema}")
        self._execute("CREATE TABLE {schema}.moving (mark text NOT NULL)")
        self._execute("INSERT INTO {schema}.moving (mark) VALUES (%s)", marker)
        self._execute(f"COMMENT ON SCHEMA {{schema}} IS '{RESERVED_COMMENT}'")

    def reservation_marker(self) -> str | None:
        """Return the marker of an unfinished move; None if there is a ledger."""
        if self._comment() != RESERVED_COMMENT:
            self.check_format()
            return None
        return str(self._fetch_all("SELECT mark FROM {schema}.moving")[0][0])

    def check_format(self) -> None:
        """Raise LedgerError unless this is a ledger of the supported format."""
        comment = self._comment()
        if comment == RESERVED_COMMENT:
            raise LedgerError(MOVE_UNFINISHED)
        if self.is_empty:
            raise LedgerError(
                "the ledger does not exist. Correct the URL or the name, restore schema "
                f"{self._schema} from a backup, or create a new ledger with create_postgres_ledger."
            )
        if comment is None or not comment.startswith(FORMAT_PREFIX):
            raise LedgerError(
                f"schema {self._schema} is not a ledger. Correct the URL, or restore the schema from a backup."
            )
        if comment != FORMAT_COMMENT:
            raise LedgerError(
                f"ledger format {comment.removeprefix(FORMAT_PREFIX)} is not supported; this version of Discreet reads "
                f"format {FORMAT}. Use the version that created the ledger, or start a new one."
            )

    def check_storage(self) -> None:
        """Raise LedgerError if tables, functions, triggers or privileges were modified."""
        self.check_format()
        check_schema(self.connection, self._schema)

    def _comment(self) -> str | None:
        query = "SELECT obj_description(to_regnamespace(%s)::oid, 'pg_namespace')"
        comment = self.connection.execute(query, (self._schema,)).fetchall()[0][0]
        return None if comment is None else str(comment)

    def _receipt_batches(self) -> Iterator[list[str]]:
        """Return the receipts of all answers, in batches of at most _BATCH_BYTES."""
        last = ""
        query = (
            "SELECT receipt, octet_length(answer) FROM {schema}.answers WHERE receipt > %s ORDER BY receipt LIMIT %s"
        )
        while page := self._fetch_all(query, last, _PAGE_ROWS):
            batch: list[str] = []
            bytes_left = _BATCH_BYTES
            for receipt, size in page:
                if batch and size > bytes_left:
                    yield batch
                    batch, bytes_left = [], _BATCH_BYTES
                batch.append(receipt)
                bytes_left -= size
            yield batch
            last = page[-1][0]

    def _select_row(self, clause: str, *values: Any) -> LedgerRow | None:
        query = f"SELECT {_COLUMNS} FROM {{schema}}.rows {clause}"  # noqa: S608 - constant columns
        rows = self._fetch_all(query, *values)
        return _read_escaped_row(*rows[0]) if rows else None

    def _fetch_all(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(query.format(schema=self._schema), values).fetchall()

    def _execute(self, statement: str, *values: Any) -> None:
        self.connection.execute(statement.format(schema=self._schema), values)


def _read_escaped_row(*columns: Any) -> LedgerRow:
    row = LedgerRow(*columns)
    return read_row(row._replace(by=_unescape_nul(row.by), key=None if row.key is None else _unescape_nul(row.key)))


def _escape_nul(text: str) -> str:
    """Escape NUL characters, which PostgreSQL cannot store."""
    return text.replace("\\", "\\\\").replace("\0", "\\0")


def _unescape_nul(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: "\0" if match[1] == "0" else match[1], text) if "\\" in text else text
