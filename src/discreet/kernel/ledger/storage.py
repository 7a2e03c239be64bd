"""What an account needs from its storage, and the check that the stored rows and answers are intact."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Any, Protocol

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.chain import RESTORE_HINT, Chain, LedgerRow, check_rows
from discreet.kernel.ledger.checkpoint import Checkpoint
from discreet.kernel.ledger.terms import read_terms


class LedgerTable(Protocol):
    """The rows and answers, inside of one transaction."""

    def create(self) -> None:
        """Make the tables, their indexes and triggers."""

    def last_row(self) -> LedgerRow:
        """Return the last row."""

    def row_at(self, seq: int) -> LedgerRow | None:
        """Return a row by its number."""

    def rows(self, start: int = 1) -> Iterator[LedgerRow]:
        """Return the rows in order, from one on."""

    def answers(self) -> Iterator[tuple[str, bytes]]:
        """Return all answers with their receipts."""

    def answer(self, receipt: str) -> bytes | None:
        """Return the stored answer of a receipt."""

    def add_row(self, row: LedgerRow) -> None:
        """Write a row as it is."""

    def add_answer(self, receipt: str, answer: bytes) -> None:
        """Write an answer."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever made here."""

    def reserve(self, marker: str) -> None:
        """Keep an empty place for the ledger that moves here with this mark."""

    def reservation_marker(self) -> str | None:
        """Return the mark of the ledger that is moving here; None if there is a ledger already."""

    def check_storage(self) -> None:
        """Stop if the database is damaged, or its tables and triggers are not those that were made."""


class StorageLocation(Protocol):
    """Where a ledger is; its text names it in errors."""

    def checkpoint(self) -> Checkpoint | None:
        """Return how far the ledger had come by the record in the second place."""

    def store_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Record how far the ledger has come."""


class LedgerSession(Protocol):
    """The way to a ledger's tables, for all threads of a process."""

    @property
    def location(self) -> StorageLocation:
        """Where the ledger is."""

    def write_transaction(self) -> AbstractContextManager[LedgerTable]:
        """Run one durable transaction, alone among all threads and processes; move the head after the commit."""

    def read_transaction(self) -> AbstractContextManager[LedgerTable]:
        """Read one state of the ledger, whatever others write meanwhile."""

    def close(self) -> None:
        """Let go of the ledger, for good."""


def read_row(columns: Iterable[Any]) -> LedgerRow:
    """Read a stored row, and stop if its hash does not fit."""
    row = LedgerRow(*columns)
    if row.hash != row.digest():
        raise LedgerError(f"row {row.seq} was changed: its hash does not fit{RESTORE_HINT}")
    return row


def data_set_name(table: LedgerTable) -> str:
    """Return the name of the data set, by the first row alone."""
    row = table.row_at(1)
    if row is None:
        raise LedgerError("there are no rows: the ledger was not completely created")
    return read_terms(row.body).name


def check_table(table: LedgerTable) -> Chain:
    """Recompute every hash, total, state and answer, and return the chain; LedgerError names the first bad row.

    Claim: if nothing is raised, the rows are a whole chain, each answer is the one that was stored, none is missing.
    Proof: check_rows for the rows; each answer has the hash that its row names, and each settled row has one.
    Needs: check_row_clauses; the end of the chain is vouched for by the head only.
    Checked by: test_any_changed_field_of_any_row_is_found, test_a_changed_answer_is_found
    Seal: cd690d7c3e20
    """
    chain = check_rows(table.rows())
    settled = dict(chain.settlements)
    for receipt, answer in table.answers():
        seq, digest = settled.pop(receipt, (0, ""))
        if sha256(answer).hexdigest() != digest:
            what = f"row {seq}: its answer was changed" if seq else "an answer has no charge"
            raise LedgerError(what + RESTORE_HINT)
    for seq, _ in settled.values():
        raise LedgerError(f"row {seq}: its answer is missing{RESTORE_HINT}")
    return chain
