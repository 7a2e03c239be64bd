"""What a ledger's account needs of the place that it is kept in."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.chain import Act, Kind, Row
from discreet.kernel.ledger.head import Head
from discreet.kernel.ledger.terms import Terms
from discreet.kernel.loss import Loss


class Table(Protocol):
    """The rows, answers and topics, inside of one transaction."""

    def create(self) -> None:
        """Make the tables, their indexes and triggers."""

    def last(self) -> Row:
        """Return the last row."""

    def at(self, seq: int) -> Row | None:
        """Return a row by its number."""

    def spent_by(self, by: str) -> Loss:
        """Return what one analyst has spent."""

    def charge_with_key(self, by: str, key: str) -> Row | None:
        """Return the charge that an analyst made with a key."""

    def about(self, kind: Kind, receipt: str) -> Row | None:
        """Return the charge, or the settlement, of a receipt."""

    def terms(self) -> Terms:
        """Return the terms in force."""

    def rows(self) -> Iterator[Row]:
        """Return all rows in order."""

    def unsettled(self, after: int) -> list[Row]:
        """Return the charges without an answer since the last acknowledgement, beyond a row."""

    def about_topics(self, topics: Iterable[str]) -> list[Row]:
        """Return the charges that have any of these topics, oldest first."""

    def newest(self, topic: str) -> str | None:
        """Return the receipt of the newest charge with a topic since the last acknowledgement."""

    def topics(self) -> Iterator[tuple[str, int]]:
        """Return all topics with the numbers of their rows."""

    def answers(self) -> Iterator[tuple[str, bytes]]:
        """Return all answers with their receipts."""

    def answer(self, receipt: str) -> bytes | None:
        """Return the stored answer of a receipt."""

    def append(self, last: Row | None, act: Act) -> None:
        """Write the row that records an act after the last one."""

    def add_row(self, row: Row) -> None:
        """Write a row as it is, and its topics."""

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
        raise LedgerError(f"row {row.seq} was changed: its hash does not fit")
    return row
