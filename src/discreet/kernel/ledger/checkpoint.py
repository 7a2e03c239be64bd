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

_COMMAND = "run: discreet ledger acknowledge POLICY (from Python: ledger.acknowledge())"
_HINT = f"Restore the newest copy, or let the owner acknowledge the loss and {_COMMAND}."
_NEAR_BITS = 4  # 2**4 rows are remembered of each stretch that is twice as far back as the one before


@dataclass(frozen=True)
class Checkpoint:
    """The last row that was committed when the head was written, what was spent by then, and where it moved to.

    `earlier` are the numbers and hashes of some rows before it, if other heads belong to the same ledger: whoever has
    one of those may go on after a rollback that this one has yet to see.
    """

    seq: int
    hash: str
    spent: str
    moved: str = ""
    earlier: tuple[tuple[int, str], ...] = ()

    @classmethod
    def of_row(cls, row: LedgerRow) -> "Checkpoint":
        """Return the head of a ledger that ends with this row."""
        return cls(row.seq, row.hash, row.spent, moved_to(row) or "")


EMPTY_CHECKPOINT = Checkpoint(
    0, GENESIS_HASH, loss_text(ZERO_LOSS)
)  # bears witness to nothing: every ledger continues it


def read_checkpoint(path: Path) -> Checkpoint | None:
    """Read a head; None if it is missing or makes no sense, which is the same to a ledger: no witness."""
    try:
        data = json.loads(path.read_text())
        read_loss(data["spent"])
        earlier = tuple((int(seq), str(prefix)) for seq, prefix in data.get("earlier", ()))
        return Checkpoint(int(data["seq"]), str(data["hash"]), data["spent"], str(data.get("moved", "")), earlier)
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Replace the head in one step: a reader, also after a crash, finds the old one or the new one."""
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
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_checkpoint(checkpoint: Checkpoint | None, last: LedgerRow | None, stored_hash: str | None) -> None:
    """Stop if the ledger is not the head's ledger, or an older state of it; being ahead of it is fine.

    Claim: if nothing is raised, the ledger still has the row that the head names.
    Proof: the head names a row by number and hash, and `stored_hash` is the hash found at that number; the
        row's hash depends on all rows before it. The head is written after the commit, so it is never ahead of a
        ledger that was left alone: a crash leaves it behind, and so do the charges of others who have their own.
    Needs: that ledger and head are not both replaced (the owner's machine is trusted).
    Checked by: test_a_restored_old_copy_is_read_only_until_acknowledged, test_a_deleted_tail_is_found,
        test_a_missing_head_stops_charges
    Seal: 3fce874b70f4
    """
    if last is None and checkpoint is None:
        return
    if checkpoint is None:
        raise LedgerError("the head file is missing or unreadable, so rows may have been lost unseen. " + _HINT)
    if last is None or checkpoint.seq > last.seq:
        rows = last.seq if last else 0
        if checkpoint.moved:
            raise LedgerError(f"this is an older copy, from row {rows}. {moved_message(checkpoint.moved)}")
        raise LedgerError(f"the ledger was rolled back from row {checkpoint.seq} to row {rows}. {_HINT}")
    if checkpoint.hash != stored_hash:
        hint = _HINT if checkpoint.earlier else "Restore it from a backup."
        raise LedgerError(
            f"row {checkpoint.seq} is not the one that the head names: the ledger was rewritten or exchanged. {hint}"
        )


def rolled_back_loss(checkpoint: Checkpoint, last: LedgerRow, row_at: Callable[[int], LedgerRow | None]) -> Loss:
    """Return what the head says was spent and the ledger has lost, given its last row and a way to look up others.

    Claim: with it, the ledger's total is not below what was spent up to the head and, since the rollback, by others.
    Proof: without earlier rows, this head is the only one and nobody charges until it is acknowledged: the last row
        is where the ledger was rolled back to, and the difference to the head was lost. With earlier rows, the
        newest of them that is still there is not after the row that the ledger was rolled back to, and totals never
        fall: the difference from it to the head is at least what was lost, and what others charged since comes on top.
        A ledger that has none of them is another one, and is refused.
    Needs: shortfall, row_after; that the earlier rows are rows before the head's (SHA-256 has no known collisions).
    Checked by: test_a_restored_old_copy_is_read_only_until_acknowledged,
        test_what_is_lost_is_never_less_than_what_others_cannot_know,
        test_another_history_of_the_same_length_cannot_be_acknowledged
    Seal: 03e25fe6be2b
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
    raise LedgerError("no row that the head knows is in the ledger: it was exchanged. Restore it from a backup.")


def hash_at_checkpoint(checkpoint: Checkpoint, row_at: Callable[[int], LedgerRow | None]) -> str | None:
    """Return the hash that the ledger has where the head is; what comes before the first row is always the same."""
    row = row_at(checkpoint.seq)
    return GENESIS_HASH if checkpoint.seq == 0 else row.hash if row else None


def milestones(seq: int) -> list[int]:
    """Return the rows before a row that its head remembers: all of the nearest, ever fewer of those far back.

    >>> milestones(20)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]
    >>> len(milestones(1_000_000)), milestones(1_000_000)[:3]
    (270, [1, 32768, 65536])
    """
    numbers = {1} if seq > 1 else set()
    for size in range((seq - 1).bit_length()):  # those whose distance has this many binary digits after the first
        step = 1 << max(0, size - _NEAR_BITS)
        nearest, farthest = seq - (1 << size), max(1, seq + 1 - (2 << size))
        numbers.update(range(-(-farthest // step) * step, nearest + 1, step))
    return sorted(numbers)
