"""The checkpoint: a separate record of the last committed row, which reveals a rollback."""

from collections.abc import Callable
from dataclasses import dataclass

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.chain import GENESIS, Chain, LedgerRow, moved_message, moved_to
from discreet.kernel.ledger.terms import read_loss, shortfall
from discreet.kernel.loss import ZERO_LOSS, Loss

_HINT = (
    "Restore the latest copy, or acknowledge the loss as the owner: discreet ledger acknowledge POLICY "
    "(in Python: ledger.acknowledge())."
)


@dataclass(frozen=True)
class Checkpoint:
    """The last committed row, the total spent, and the destination if the ledger was moved.

    `earlier` lists the numbers and hash prefixes of some earlier rows, if several servers keep a checkpoint of the same
    ledger: another server may continue after a rollback before this one notices it.
    """

    seq: int
    hash: str
    spent: str
    moved: str = ""
    earlier: tuple[tuple[int, str], ...] = ()


def checkpoint_of(row: LedgerRow, earlier: tuple[tuple[int, str], ...] = ()) -> Checkpoint:
    """Return the checkpoint of a ledger that ends with this row."""
    return Checkpoint(row.seq, row.hash, row.spent, moved_to(row) or "", earlier)


EMPTY_CHECKPOINT = checkpoint_of(GENESIS)  # every ledger agrees with it


def check_checkpoint(chain: Chain, checkpoint: Checkpoint | None) -> None:
    """Raise LedgerError if the ledger does not continue the checkpoint; it may be ahead of it, or end with a move.

    Claim: if nothing is raised, the ledger still contains the row of the checkpoint, or accepts no more rows.
    Proof: the checkpoint identifies a row by number and hash, which depends on all rows before it, and the chain has
        that hash at that number. Nothing but an arrival follows a move (Chain.add). The checkpoint is written after
        the commit, so it is behind the ledger after a crash or after charges by other servers, but never ahead of a
        ledger that nobody tampered with.
    Needs: Chain.add, Chain.hash_at, moved_to; ledger and checkpoint are not both replaced (the owner's machine is
        trusted).
    Checked by: test_a_restored_old_copy_is_read_only_until_acknowledged, test_a_deleted_tail_is_found,
        test_a_missing_checkpoint_stops_charges
    """
    last = chain.last.seq
    if moved_to(chain.last) is not None:
        return
    if checkpoint is None:
        raise LedgerError("the checkpoint file is missing or unreadable, so lost rows cannot be detected. " + _HINT)
    if checkpoint.seq > last and checkpoint.moved:
        raise LedgerError(f"this is an older copy that ends at row {last}: {moved_message(checkpoint.moved)}")
    if checkpoint.seq > last:
        raise LedgerError(f"the ledger was rolled back from row {checkpoint.seq} to row {last}. {_HINT}")
    if checkpoint.hash != chain.hash_at(checkpoint.seq):
        hint = _HINT if checkpoint.earlier else "Restore it from a backup."
        raise LedgerError(
            f"row {checkpoint.seq} differs from the checkpoint: the ledger was rewritten or replaced. {hint}"
        )


def rolled_back_loss(chain: Chain, checkpoint: Checkpoint, row_at: Callable[[int], LedgerRow | None]) -> Loss:
    """Return the loss that the checkpoint recorded and the ledger no longer contains.

    Claim: added to the ledger's total, it gives at least the loss spent up to the checkpoint plus the loss that others
        spent since the rollback.
    Proof: without earlier rows, this checkpoint is the only one and nothing is charged until it is acknowledged: the
        last row is where the ledger was rolled back to, and the difference to the checkpoint was lost. With earlier
        rows, the latest of them that still exists is not after the row that the ledger was rolled back to, and totals
        never decrease: the difference from it to the checkpoint is at least the loss of the lost rows, and the charges
        of others since are added to it. A ledger that contains none of them is a different one, and is refused.
    Needs: shortfall, Chain.next_row, Chain.add, Chain.hash_at, check_checkpoint; the earlier rows are rows before that
        of the checkpoint (SHA-256 has no known collisions).
    Checked by: test_a_restored_old_copy_is_read_only_until_acknowledged,
        test_the_acknowledged_loss_covers_charges_unknown_to_other_servers,
        test_another_history_of_the_same_length_cannot_be_acknowledged
    """
    if chain.hash_at(checkpoint.seq) == checkpoint.hash:
        return ZERO_LOSS
    if checkpoint.moved or (checkpoint.seq <= chain.last.seq and not checkpoint.earlier):
        check_checkpoint(chain, checkpoint)
    if not checkpoint.earlier:
        return shortfall(chain.spent(), read_loss(checkpoint.spent))
    for seq, prefix in reversed(checkpoint.earlier):
        row = row_at(seq)
        if row and row.hash == chain.hash_at(seq) and row.hash.startswith(prefix):
            return shortfall(read_loss(row.spent), read_loss(checkpoint.spent))
    raise LedgerError("no row of the ledger matches the checkpoint: the ledger was replaced. Restore it from a backup.")
