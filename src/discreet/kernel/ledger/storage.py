"""The storage interface of a ledger, and the verification of stored rows and answers."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Any, Protocol

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.chain import RESTORE_HINT, Chain, LedgerRow, check_rows
from discreet.kernel.ledger.checkpoint import Checkpoint
from discreet.kernel.ledger.terms import read_terms

FORMAT = 6  # of every ledger, in a file or a database; no other is read
MOVE_UNFINISHED = "a move to this location is unfinished. Run the move command again."


class LedgerTable(Protocol):
    """The rows and answers within one transaction."""

    def create(self) -> None:
        """Create the tables, indexes and triggers."""

    def last_row(self) -> LedgerRow:
        """Return the last row."""

    def row_at(self, seq: int) -> LedgerRow | None:
        """Return the row with this number, or None."""

    def rows(self, start: int = 1) -> Iterator[LedgerRow]:
        """Return the rows in order, beginning with number `start`."""

    def answers(self) -> Iterator[tuple[str, bytes]]:
        """Return all answers with their receipts."""

    def answer(self, receipt: str) -> bytes | None:
        """Return the stored answer of a receipt, or None."""

    def add_row(self, row: LedgerRow) -> None:
        """Insert a row."""

    def add_answer(self, receipt: str, answer: bytes) -> None:
        """Insert an answer."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been created here."""

    def reserve(self, marker: str) -> None:
        """Reserve the empty location for the move with this marker."""

    def reservation_marker(self) -> str | None:
        """Return the marker of an unfinished move; None if there is a ledger."""

    def check_storage(self) -> None:
        """Raise LedgerError if the database is corrupt, or its tables or triggers were modified."""


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


def read_row(columns: Iterable[Any]) -> LedgerRow:
    """Return a stored row; LedgerError if its hash does not match."""
    row = LedgerRow(*columns)
    if row.hash != row.digest():
        raise LedgerError(f"row {row.seq} was modified: its hash does not match{RESTORE_HINT}")
    return row


def data_set_name(table: LedgerTable) -> str:
    """Return the name of the data set, read from the first row."""
    row = table.row_at(1)
    if row is None:
        raise LedgerError("the ledger has no rows: its creation was interrupted")
    return read_terms(row.body).name


def check_table(table: LedgerTable) -> Chain:
    """Verify all rows and answers and return the chain; LedgerError names the first invalid row.

    Claim: if nothing is raised, the rows are a complete chain, each answer is the one that was stored, none is missing.
    Proof: check_rows for the rows; each answer has the hash that its row names, and each settled row has an answer.
    Needs: check_rows; only the checkpoint attests the end of the chain.
    Checked by: test_any_changed_field_of_any_row_is_found, test_a_changed_answer_is_found
    Seal: 306041f5e3e7
    """
    chain = check_rows(table.rows())
    settled = dict(chain.settlements)
    for receipt, answer in table.answers():
        seq, digest = settled.pop(receipt, (0, ""))
        if sha256(answer).hexdigest() != digest:
            problem = f"row {seq}: the stored answer was modified" if seq else "a stored answer has no charge"
            raise LedgerError(problem + RESTORE_HINT)
    for seq, _ in settled.values():
        raise LedgerError(f"row {seq}: the stored answer is missing{RESTORE_HINT}")
    return chain
