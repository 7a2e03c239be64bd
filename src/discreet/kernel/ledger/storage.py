"""What a ledger's account needs of the place that it is kept in."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.chain import RESTORE, Row
from discreet.kernel.ledger.head import Head
from discreet.kernel.ledger.terms import read_terms


class Table(Protocol):
    """The rows and answers, inside of one transaction."""

    def create(self) -> None:
        """Make the tables, their indexes and triggers."""

    def last(self) -> Row:
        """Return the last row."""

    def at(self, seq: int) -> Row | None:
        """Return a row by its number."""

    def rows(self, start: int = 1) -> Iterator[Row]:
        """Return the rows in order, from one on."""

    def answers(self) -> Iterator[tuple[str, bytes]]:
        """Return all answers with their receipts."""

    def answer(self, receipt: str) -> bytes | None:
        """Return the stored answer of a receipt."""

    def add_row(self, row: Row) -> None:
        """Write a row as it is."""

    def add_answer(self, receipt: str, answer: bytes) -> None:
        """Write an answer."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever made here."""

    def reserve(self, mark: str) -> None:
        """Keep an empty place for the ledger that moves here with this mark."""

    def reserved(self) -> str | None:
        """Return the mark of the ledger that is moving here; None if there is a ledger already."""

    def check_file(self) -> None:
        """Stop if the database is damaged, or its tables and triggers are not those that were made."""


class Place(Protocol):
    """Where a ledger is; its text names it in errors."""

    def head(self) -> Head | None:
        """Return how far the ledger had come by the record in the second place."""

    def keep_head(self, head: Head) -> None:
        """Record how far the ledger has come."""


class Session(Protocol):
    """The way to a ledger's tables, for all threads of a process."""

    @property
    def place(self) -> Place:
        """Where the ledger is."""

    def writing(self) -> AbstractContextManager[Table]:
        """Run one durable transaction, alone among all threads and processes; move the head after the commit."""

    def reading(self) -> AbstractContextManager[Table]:
        """Read one state of the ledger, whatever others write meanwhile."""

    def close(self) -> None:
        """Let go of the ledger, for good."""


def read_row(found: Iterable[Any]) -> Row:
    """Read a stored row, and stop if its hash does not fit."""
    row = Row(*found)
    if row.hash != row.digest():
        raise LedgerError(f"row {row.seq} was changed: its hash does not fit{RESTORE}")
    return row


def name_in(table: Table) -> str:
    """Return the name of the data set, by the first row alone."""
    row = table.at(1)
    if row is None:
        raise LedgerError("there are no rows: the ledger was not completely created")
    return read_terms(row.body).name
