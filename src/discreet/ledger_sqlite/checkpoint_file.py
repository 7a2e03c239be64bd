"""The checkpoint file of a ledger: read, and replaced atomically; PostgreSQL ledgers have one on each server, too."""

import json
import os
from pathlib import Path

from discreet.kernel.event import canonical_json
from discreet.kernel.ledger.checkpoint import Checkpoint
from discreet.kernel.ledger.terms import read_loss


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
    text = canonical_json({name: part for name, part in vars(checkpoint).items() if part}).encode()
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the directory entries of a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
