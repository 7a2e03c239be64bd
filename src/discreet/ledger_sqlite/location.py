"""The location of a SQLite ledger: a file with its lock and checkpoint, or memory."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.checkpoint import Checkpoint
from discreet.kernel.ledger.table import FORMAT, LedgerTable, closed_on_error
from discreet.kernel.ledger.terms import read_loss
from discreet.ledger_sqlite.checkpoint_file import read_checkpoint, sync_folder, write_checkpoint
from discreet.ledger_sqlite.schema import SQLITE_DIALECT


class FileLocation:
    """The file of a ledger, with `<file>.lock` and `<file>.checkpoint` next to it; only the owner can read them."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, str | os.PathLike) or not Path(path).name:
            raise ValueError(f"path must name a file, not {path!r}")
        self._path = Path(path).absolute()
        self._lock_path, self._checkpoint_path = (Path(f"{self._path}{end}") for end in (".lock", ".checkpoint"))
        self._identity: tuple[int, int] | None = None
        self.formats: tuple[int | None, ...] = (FORMAT,)  # those that may be found here; None for an empty file

    def __str__(self) -> str:
        return str(self._path)

    def create(self) -> None:
        """Create an empty file where neither a ledger nor a checkpoint exists."""
        if self._checkpoint_path.exists() and not self._path.exists():
            raise LedgerError(
                "the ledger file is missing, but its checkpoint exists. Restore the ledger from a backup."
            )
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            raise LedgerError("the file already exists. Open it with open_ledger, or choose another path.") from None
        except FileNotFoundError:
            raise LedgerError(f"the folder {self._path.parent} does not exist. Create it first.") from None
        sync_folder(self._path.parent)
        self.formats = (None, FORMAT)

    def connect(self) -> sqlite3.Connection:
        """Connect to the file, which must exist: a missing ledger is never treated as an empty one."""
        if not self._path.is_file():
            raise LedgerError(
                "the ledger does not exist. Correct the path, restore the file from a backup, "
                "or create a new ledger with create_ledger."
            )
        connection = _connect(f"{self._path.as_uri()}?mode=rw")
        with closed_on_error(connection):
            self._check_identity()
            LedgerTable(connection, SQLITE_DIALECT).check_format(*self.formats)  # before anything is written
            for setting, value in {
                "journal_mode": "wal",
                "synchronous": 2,
                "fullfsync": 1,
            }.items():  # 2: at each commit
                connection.execute(f"PRAGMA {setting} = {value}")
                if connection.execute(f"PRAGMA {setting}").fetchone()[0] != value:
                    raise LedgerError(f"SQLite does not support {setting} = {value} here. Use another file system.")
        return connection

    @contextmanager
    def exclusive_lock(self) -> Iterator[None]:
        """Wait for the lock file: waiting for SQLite's own lock can starve, flock does not."""
        descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._check_identity()
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child that was forked meanwhile keeps the descriptor open
            os.close(descriptor)

    def checkpoint(self) -> Checkpoint | None:
        """Read the checkpoint file."""
        return read_checkpoint(self._checkpoint_path)

    def store_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Write the checkpoint file."""
        write_checkpoint(self._checkpoint_path, checkpoint)

    def _check_identity(self) -> None:
        """Raise LedgerError if the file was replaced since it was first used, or has another name."""
        status = self._path.stat()
        if self._identity not in (None, (status.st_dev, status.st_ino)):
            raise LedgerError("the file was replaced while it was open. Reopen the ledger.")
        if status.st_nlink != 1:
            raise LedgerError("the file has several hard links, which would be locked separately. Remove all but one.")
        self._identity = status.st_dev, status.st_ino


class MemoryLocation:
    """A ledger in the memory of this process."""

    def __init__(self) -> None:
        self._checkpoint: Checkpoint | None = None

    def __str__(self) -> str:
        return "in-memory ledger"

    def connect(self) -> sqlite3.Connection:
        """Connect to a new in-memory database."""
        return _connect("file::memory:")

    def exclusive_lock(self) -> AbstractContextManager[None]:
        """Do nothing: no other process can access it."""
        return nullcontext()

    def checkpoint(self) -> Checkpoint | None:
        """Return the checkpoint."""
        return self._checkpoint

    def store_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Store the checkpoint."""
        self._checkpoint = checkpoint


SQLiteLocation = FileLocation | MemoryLocation


def _connect(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, timeout=10, isolation_level=None, check_same_thread=False)
    connection.create_function("not_below", 2, _not_below, deterministic=True)
    return connection


def _not_below(new: str, old: str | None) -> bool:
    return old is None or read_loss(new).includes(read_loss(old))
