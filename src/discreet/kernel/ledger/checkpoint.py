"""The checkpoint: a separate record of the last committed row, which reveals a rollback."""

import errno
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from discreet.kernel.errors import LedgerError
from discreet.kernel.event import canonical_json
from discreet.kernel.ledger.chain import GENESIS_HASH, LedgerRow, moved_message, moved_to
from discreet.kernel.ledger.terms import loss_text, read_loss, shortfall
from discreet.kernel.loss import ZERO_LOSS, Loss

_HINT = (
    "Restore the latest copy, or acknowledge the loss as the owner: discreet ledger acknowledge POLICY "
    "(in Python: ledger.acknowledge())."
)
_NEAR_BITS = 4  # 2**4 milestones in each interval of distances from 2**n to 2**(n+1)


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

    @classmethod
    def of_row(cls, row: LedgerRow) -> "Checkpoint":
        """Return the checkpoint of a ledger that ends with this row."""
        return cls(row.seq, row.hash, row.spent, moved_to(row) or "")


EMPTY_CHECKPOINT = Checkpoint(0, GENESIS_HASH, loss_text(ZERO_LOSS))  # every ledger agrees with it


def read_checkpoint(path: Path) -> Checkpoint | None:
    """Read a checkpoint file; None if it is missing or invalid."""
    try:
        data = json.loads(path.read_text())
        read_loss(data["spent"])
        earlier = tuple((int(seq), str(prefix)) for seq, prefix in data.get("earlier", ()))
        return Checkpoint(int(data["seq"]), str(data["hash"]), data["spent"], str(data.get("moved", "")), earlier)
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint atomically: even after a crash, a reader finds either the old one or the new one."""
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        text = canonical_json({name: part for name, part in vars(checkpoint).items() if part}).encode()
        if os.write(descriptor, text) < len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    fresh.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the directory entries of a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_checkpoint(checkpoint: Checkpoint | None, last: LedgerRow | None, stored_hash: str | None) -> None:
    """Raise LedgerError if the ledger does not continue the checkpoint; it may be ahead of it.

    Claim: if nothing is raised, the ledger still contains the row of the checkpoint.
    Proof: the checkpoint identifies a row by number and hash, and `stored_hash` is the hash at that number; the hash of
        a row depends on all rows before it. The checkpoint is written after the commit, so it is never ahead of a
        ledger that nobody tampered with: after a crash it is behind, and so it is after charges by servers that keep
        a checkpoint of their own.
    Needs: ledger and checkpoint are not both replaced (the owner's machine is trusted).
    Checked by: test_a_restored_old_copy_is_read_only_until_acknowledged, test_a_deleted_tail_is_found,
        test_a_missing_head_stops_charges
    Seal: d8fa1b3e7308
    """
    if last is None and checkpoint is None:
        return
    if checkpoint is None:
        raise LedgerError("the checkpoint file is missing or unreadable, so lost rows cannot be detected. " + _HINT)
    if last is None or checkpoint.seq > last.seq:
        rows = last.seq if last else 0
        if checkpoint.moved:
            raise LedgerError(f"this is an older copy that ends at row {rows}: {moved_message(checkpoint.moved)}")
        raise LedgerError(f"the ledger was rolled back from row {checkpoint.seq} to row {rows}. {_HINT}")
    if checkpoint.hash != stored_hash:
        hint = _HINT if checkpoint.earlier else "Restore it from a backup."
        raise LedgerError(
            f"row {checkpoint.seq} differs from the checkpoint: the ledger was rewritten or replaced. {hint}"
        )


def rolled_back_loss(checkpoint: Checkpoint, last: LedgerRow, row_at: Callable[[int], LedgerRow | None]) -> Loss:
    """Return the loss that the checkpoint recorded and the ledger no longer contains.

    Claim: added to the ledger's total, it gives at least the loss spent up to the checkpoint plus the loss that others
        spent since the rollback.
    Proof: without earlier rows, this checkpoint is the only one and nothing is charged until it is acknowledged: the
        last row is where the ledger was rolled back to, and the difference to the checkpoint was lost. With earlier
        rows, the latest of them that still exists is not after the row that the ledger was rolled back to, and totals
        never decrease: the difference from it to the checkpoint is at least the loss of the lost rows, and the charges
        of others since are added to it. A ledger that contains none of them is a different one, and is refused.
    Needs: shortfall, row_after; the earlier rows are rows before that of the checkpoint (SHA-256 has no known
        collisions).
    Checked by: test_a_restored_old_copy_is_read_only_until_acknowledged,
        test_what_is_lost_is_never_less_than_what_others_cannot_know,
        test_another_history_of_the_same_length_cannot_be_acknowledged
    Seal: 9738239a5f5a
    """
    stored_hash = hash_at_checkpoint(checkpoint, row_at)
    if stored_hash == checkpoint.hash:
        return ZERO_LOSS
    if checkpoint.moved or (checkpoint.seq <= last.seq and not checkpoint.earlier):
        check_checkpoint(checkpoint, last, stored_hash)
    if not checkpoint.earlier:
        return shortfall(read_loss(last.spent), read_loss(checkpoint.spent))
    for seq, prefix in reversed(checkpoint.earlier):
        row = row_at(seq)
        if row and row.hash.startswith(prefix):
            return shortfall(read_loss(row.spent), read_loss(checkpoint.spent))
    raise LedgerError("no row of the ledger matches the checkpoint: the ledger was replaced. Restore it from a backup.")


def hash_at_checkpoint(checkpoint: Checkpoint, row_at: Callable[[int], LedgerRow | None]) -> str | None:
    """Return the hash of the ledger's row with the number of the checkpoint, or None."""
    row = row_at(checkpoint.seq)
    return GENESIS_HASH if checkpoint.seq == 0 else row.hash if row else None


def milestones(seq: int) -> list[int]:
    """Return the earlier rows that a checkpoint lists: all of the nearest ones, ever fewer further back.

    >>> milestones(20)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]
    >>> len(milestones(1_000_000)), milestones(1_000_000)[:3]
    (270, [1, 32768, 65536])
    """
    numbers = {1} if seq > 1 else set()
    for size in range((seq - 1).bit_length()):  # rows at a distance from 2**size to 2**(size+1)
        step = 1 << max(0, size - _NEAR_BITS)
        nearest, farthest = seq - (1 << size), max(1, seq + 1 - (2 << size))
        numbers.update(range(-(-farthest // step) * step, nearest + 1, step))
    return sorted(numbers)
