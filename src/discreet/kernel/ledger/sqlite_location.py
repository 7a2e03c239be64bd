"""The location of a SQLite ledger: a file with its lock and checkpoint, or memory."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.checkpoint import Checkpoint, read_checkpoint, sync_folder, write_checkpoint


class FileLocation:
    """The file of a ledger, with `<file>.lock` and `<file>.checkpoint` next to it; only the owner can read them."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, str | os.PathLike) or not Path(path).name:
            raise ValueError(f"path must name a file, not {path!r}")
        self._path = Path(path).absolute()
        self._lock_path, self._checkpoint_path = (
            self._path.with_name(self._path.name + end) for end in (".lock", ".checkpoint")
        )
        self._identity: tuple[int, int] | None = None
        self._created_here = False  # then the file may still be empty

    def __str__(self) -> str:
        return str(self._path)

    def create(self) -> None:
        """Create an empty file where neither a ledger nor a checkpoint exists."""
        if self._checkpoint_path.exists() and not self._path.exists():
            raise LedgerError(
                "the ledger file is missing, but its checkpoint exists. Restore the ledger from a backup."
            )
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            sync_folder(self._path.parent)
            self._created_here = True
        except FileExistsError:
            raise LedgerError("the file already exists. Open it with open_ledger, or choose another path.") from None
        except FileNotFoundError:
            raise LedgerError(f"the folder {self._path.parent} does not exist. Create it first.") from None

    def create_or_reuse(self) -> None:
        """Create an empty file, unless there is one; an existing empty database counts as just created."""
        if self._path.is_file():
            with closing(sqlite3.connect(f"{self._path.as_uri()}?mode=rw", uri=True, timeout=10)) as connection:
                self._created_here = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        else:
            self.create()

    def connect(self) -> sqlite3.Connection:
        """Connect to the file, which must exist: a missing ledger is never treated as an empty one."""
        if not self._path.is_file():
            raise LedgerError(
                "the ledger does not exist. Correct the path, restore the file from a backup, "
                "or create a new ledger with create_ledger."
            )
        connection = sqlite3.connect(
            f"{self._path.as_uri()}?mode=rw",
            uri=True,
            timeout=10,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._check_identity(connection)
            _make_durable(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_identity(self, connection: sqlite3.Connection) -> None:
        """Raise LedgerError, before anything is written, if the file was replaced or is not a ledger."""
        if self._identity not in (None, self._current_identity()):
            raise LedgerError("the file was replaced while it was open. Reopen the ledger.")
        if self._path.stat().st_nlink != 1:
            raise LedgerError("the file has several hard links, which would be locked separately. Remove all but one.")
        if not self._created_here and not connection.execute("PRAGMA user_version").fetchone()[0]:
            raise LedgerError("the file is not a ledger, or its creation was interrupted. Correct the path.")
        self._identity = self._current_identity()

    @contextmanager
    def exclusive_lock(self) -> Iterator[None]:
        """Wait for the lock file: waiting for SQLite's own lock can starve, flock does not."""
        descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            try:
                if self._identity not in (None, self._current_identity()):
                    raise LedgerError("the file was replaced while it was open. Reopen the ledger.")
                yield
            finally:
                # Closing is not enough: a child that was forked meanwhile also holds the descriptor.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)

    def checkpoint(self) -> Checkpoint | None:
        """Read the checkpoint file."""
        return read_checkpoint(self._checkpoint_path)

    def store_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Write the checkpoint file."""
        write_checkpoint(self._checkpoint_path, checkpoint)

    def _current_identity(self) -> tuple[int, int]:
        status = self._path.stat()
        return status.st_dev, status.st_ino


def _make_durable(connection: sqlite3.Connection) -> None:
    settings = {"journal_mode": "wal", "synchronous": 2, "fullfsync": 1}  # 2 is FULL: sync at every commit
    for setting, value in settings.items():
        connection.execute(f"PRAGMA {setting} = {value}")
        if connection.execute(f"PRAGMA {setting}").fetchone()[0] != value:
            raise LedgerError(f"SQLite does not support {setting} = {value} here. Use another file system.")


class MemoryLocation:
    """A ledger in the memory of this process."""

    def __init__(self) -> None:
        self._checkpoint: Checkpoint | None = None

    def __str__(self) -> str:
        return "in-memory ledger"

    def connect(self) -> sqlite3.Connection:
        """Connect to a new in-memory database."""
        return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)

    @contextmanager
    def exclusive_lock(self) -> Iterator[None]:
        """Do nothing: no other process can access it."""
        yield

    def checkpoint(self) -> Checkpoint | None:
        """Return the checkpoint."""
        return self._checkpoint

    def store_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Store the checkpoint."""
        self._checkpoint = checkpoint


SQLiteLocation = FileLocation | MemoryLocation
