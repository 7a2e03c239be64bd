"""The head: a second place that remembers how far the ledger had come, so that a rollback is seen."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from discreet.kernel.errors import LedgerError
from discreet.kernel.event import canonical
from discreet.kernel.ledger.chain import Row
from discreet.kernel.ledger.terms import read_loss

_WAY_OUT = "Restore the newest copy, or let the owner acknowledge the loss with ledger.acknowledge()."


@dataclass(frozen=True)
class Head:
    """The last row that was committed when the head was written, and what was spent by then."""

    seq: int
    hash: str
    spent: str


def read_head(path: Path) -> Head | None:
    """Read a head; None if it is missing or makes no sense, which is the same to a ledger: no witness."""
    try:
        data = json.loads(path.read_text())
        read_loss(data["spent"])
        return Head(int(data["seq"]), str(data["hash"]), data["spent"])
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None


def write_head(path: Path, head: Head) -> None:
    """Replace the head in one step: a reader, also after a crash, finds the old one or the new one."""
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, canonical(vars(head)).encode())
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


def check_head(head: Head | None, last: Row | None, hash_at_head: str | None) -> None:
    """Stop if the ledger is not the head's ledger, or an older state of it; being ahead of it is fine.

    Claim: if nothing is raised, the ledger still has the row that the head names.
    Proof: the head names a row by number and hash, and `hash_at_head` is the hash found at that number; the
        row's hash depends on all rows before it. The head is written after the commit, under the lock, so it
        is never ahead of a ledger that was left alone: a crash leaves it at most one commit behind.
    Needs: that ledger and head are not both replaced (the owner's machine is trusted).
    Checked by: test_a_restored_old_copy_is_read_only_until_acknowledged, test_a_deleted_tail_is_found,
        test_a_missing_head_stops_charges
    Seal: 88292ecfb6dd
    """
    if last is None and head is None:
        return
    if head is None:
        raise LedgerError("the head file is missing or unreadable, so rows may have been lost unseen. " + _WAY_OUT)
    if last is None or head.seq > last.seq:
        rows = last.seq if last else 0
        raise LedgerError(f"the ledger was rolled back from row {head.seq} to row {rows}. {_WAY_OUT}")
    if head.hash != hash_at_head:
        raise LedgerError(
            f"row {head.seq} is not the one that the head names: the ledger was rewritten or exchanged. "
            "Restore it from a backup."
        )
