"""The rows and answers of a ledger in PostgreSQL."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.chain import Row
from discreet.kernel.ledger.head import Head, milestones
from discreet.kernel.ledger.storage import read_row
from discreet.postgres.ledger_catalog import check_schema
from discreet.postgres.ledger_schema import FORMAT, RESERVED, statements

if TYPE_CHECKING:
    import psycopg

_COLUMNS = ", ".join(f'"{column}"' for column in Row._fields)
_PLACES = ", ".join("%s" for _ in Row._fields)
_PAGE = 500  # rows that are read at once
_ANSWERS = 8 * 1024 * 1024  # bytes of answers that are read at once, unless a single one is longer
_ENOUGH = 16  # characters of a hash by which a head knows an earlier row


class PostgresTable:
    """The rows behind one connection, inside of one transaction."""

    def __init__(self, connection: "psycopg.Connection[tuple[Any, ...]]", schema: str) -> None:
        self.connection = connection
        self.appended: Row | None = None  # the newest row of this transaction
        self.seen: Row | None = None  # the last row, if somebody looked: only this transaction can add another
        self._schema = schema

    def create(self) -> None:
        """Make the tables, their indexes and triggers; a place that was reserved for them is used up."""
        first = f"DROP TABLE {self._schema}.moving" if self._format() == RESERVED else f"CREATE SCHEMA {self._schema}"
        for statement in (first, *statements(self._schema)):
            self.connection.execute(statement)

    def last(self) -> Row:
        """Return the last row."""
        self.seen = self.seen or self._one("ORDER BY seq DESC LIMIT 1")
        if self.seen is None:
            raise LedgerError("there are no rows: the ledger was not completely created")
        return self.seen

    def at(self, seq: int) -> Row | None:
        """Return a row by its number."""
        return self.seen if self.seen and self.seen.seq == seq else self._one("WHERE seq = %s", seq)

    def rows(self, start: int = 1) -> Iterator[Row]:
        """Return the rows in order, from one on, a page at a time; each is checked when its turn comes."""
        query = f"SELECT {_COLUMNS} FROM {{schema}}.rows WHERE seq >= %s ORDER BY seq LIMIT %s"  # noqa: S608 - ours
        row, page = None, self._found(query, start, _PAGE)
        while page:
            for found in page:
                row = _read(*found)
                yield row
            page = self._found(query, page[-1][0] + 1, _PAGE) if len(page) == _PAGE else []
        self.seen = row or self.seen

    def answers(self) -> Iterator[tuple[str, bytes]]:
        """Return all answers with their receipts, a few at a time."""
        query = "SELECT receipt, answer FROM {schema}.answers WHERE receipt = ANY (%s::text[])"
        for receipts in self._batches():
            for receipt, answer in self._found(query, receipts):
                yield _unescaped(receipt), bytes(answer)

    def answer(self, receipt: str) -> bytes | None:
        """Return the stored answer of a receipt."""
        found = self._found("SELECT answer FROM {schema}.answers WHERE receipt = %s", _escaped(receipt))
        return bytes(found[0][0]) if found else None

    def add_row(self, row: Row) -> None:
        """Write a row as it is."""
        stored = row._replace(by=_escaped(row.by), key=None if row.key is None else _escaped(row.key))
        self._run(f"INSERT INTO {{schema}}.rows ({_COLUMNS}) VALUES ({_PLACES})", *stored)  # noqa: S608 - as above
        self.appended = self.seen = row

    def add_answer(self, receipt: str, answer: bytes) -> None:
        """Write an answer."""
        self._run("INSERT INTO {schema}.answers (receipt, answer) VALUES (%s, %s)", _escaped(receipt), answer)

    def head_at(self, row: Row) -> Head:
        """Return a head that ends with this row, and remembers some of those before."""
        found = self._found(
            "SELECT seq, hash FROM {schema}.rows WHERE seq = ANY (%s::bigint[]) ORDER BY seq", milestones(row.seq)
        )
        head = Head.of(row)
        return Head(head.seq, head.hash, head.spent, head.moved, tuple((seq, known[:_ENOUGH]) for seq, known in found))

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever made here."""
        return bool(self.connection.execute("SELECT to_regnamespace(%s) IS NULL", (self._schema,)).fetchall()[0][0])

    def reserve(self, mark: str) -> None:
        """Keep an empty place for the ledger that moves here with this mark."""
        self._run("CREATE SCHEMA {schema}")
        self._run("CREATE TABLE {schema}.moving (mark text NOT NULL)")
        self._run("INSERT INTO {schema}.moving (mark) VALUES (%s)", mark)
        self._run(f"COMMENT ON SCHEMA {{schema}} IS '{RESERVED}'")

    def reserved(self) -> str | None:
        """Return the mark of the ledger that is moving here; None if there is a ledger already."""
        if self._format() != RESERVED:
            self.check_format()
            return None
        return str(self._found("SELECT mark FROM {schema}.moving")[0][0])

    def check_format(self) -> None:
        """Stop if there is no ledger, or one of another version."""
        found = self._format()
        if found == RESERVED:
            raise LedgerError("a ledger is moving here and has not arrived. Give the command that moves it again.")
        if self.is_empty:
            raise LedgerError(
                "there is no ledger of this name here. Correct the URL or the name, restore the schema "
                f"{self._schema} from a backup, or make a new ledger with create_postgres_ledger."
            )
        if found != FORMAT:
            raise LedgerError(
                f"schema {self._schema} is not a ledger that this version knows. Use the one that made it."
            )

    def check_file(self) -> None:
        """Stop if the tables, functions and triggers are not those that were made."""
        self.check_format()
        check_schema(self.connection, self._schema)

    def _format(self) -> str | None:
        query = "SELECT obj_description(to_regnamespace(%s)::oid, 'pg_namespace')"
        found = self.connection.execute(query, (self._schema,)).fetchall()[0][0]
        return None if found is None else str(found)

    def _batches(self) -> Iterator[list[str]]:
        """Return the receipts of all answers, as many at a time as fit in the memory together."""
        last, query = (
            "",
            ("SELECT receipt, octet_length(answer) FROM {schema}.answers WHERE receipt > %s ORDER BY receipt LIMIT %s"),
        )
        while page := self._found(query, last, _PAGE):
            batch: list[str] = []
            room = _ANSWERS
            for receipt, size in page:
                if batch and size > room:
                    yield batch
                    batch, room = [], _ANSWERS
                batch.append(receipt)
                room -= size
            yield batch
            last = page[-1][0]

    def _one(self, rest: str, *values: Any) -> Row | None:
        query = f"SELECT {_COLUMNS} FROM {{schema}}.rows {rest}"  # noqa: S608 - columns of ours
        found = self._found(query, *values)
        return _read(*found[0]) if found else None

    def _found(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(query.format(schema=self._schema), values).fetchall()

    def _run(self, statement: str, *values: Any) -> None:
        self.connection.execute(statement.format(schema=self._schema), values)


def _read(*columns: Any) -> Row:
    row = Row(*columns)
    return read_row(row._replace(by=_unescaped(row.by), key=None if row.key is None else _unescaped(row.key)))


def _escaped(text: str) -> str:
    """Write a text as PostgreSQL can store it: it has no character zero."""
    return text.replace("\\", "\\\\").replace("\0", "\\0")


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\0" if found[1] == "0" else found[1], text) if "\\" in text else text
