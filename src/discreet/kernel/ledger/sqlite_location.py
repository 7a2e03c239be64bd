"""Where a SQLite ledger is: a file with its lock and checkpoint, or the memory of a process."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.checkpoint import Checkpoint, read_checkpoint, sync_folder, write_checkpoint


class FileLocation:
    """A ledger's file; `<file>.lock` and `<file>.checkpoint` lie beside it, all readable by the owner only."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, str | os.PathLike) or not Path(path).name:
            raise ValueError(f"path must name a file, not {path!r}")
        self._path = Path(path).absolute()
        self._lock_path, self._checkpoint_path = (
            self._path.with_name(self._path.name + end) for end in (".lock", ".head")
        )
        self._identity: tuple[int, int] | None = None
        self._created_here = False  # by this object: it may be empty, and is not taken for somebody else's file

    def __str__(self) -> str:
        return str(self._path)

    def create(self) -> None:
        """Make an empty file where there was none, nor any trace of an earlier ledger."""
        if self._checkpoint_path.exists() and not self._path.exists():
            raise LedgerError("a ledger was here, its head file remains. Restore the ledger from a backup.")
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            sync_folder(self._path.parent)
            self._created_here = True
        except FileExistsError:
            raise LedgerError("the file exists. Open it with open_ledger, or choose another path.") from None
        except FileNotFoundError:
            raise LedgerError(f"the folder {self._path.parent} does not exist. Make it first.") from None

    def create_or_reuse(self) -> None:
        """Make an empty file, unless there is one; one in which nothing was ever written is as good as made."""
        if self._path.is_file():
            with closing(sqlite3.connect(f"{self._path.as_uri()}?mode=rw", uri=True, timeout=10)) as connection:
                self._created_here = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        else:
            self.create()

    def connect(self) -> sqlite3.Connection:
        """Open the file, which must be there: a missing ledger is never taken for an empty one."""
        if not self._path.is_file():
            raise LedgerError(
                "there is no ledger here. Correct the path, restore the file from a backup, "
                "or make a new ledger with create_ledger."
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
        """Stop before anything is written if this is another file than before, or nobody's ledger."""
        if self._identity not in (None, self._current_identity()):
            raise LedgerError("the file was exchanged while it was open. Open the ledger again.")
        if self._path.stat().st_nlink != 1:
            raise LedgerError("the file has a second name (a hard link), which would be locked apart. Remove one.")
        if not self._created_here and not connection.execute("PRAGMA user_version").fetchone()[0]:
            raise LedgerError("this is not a ledger, or was not completely created. Correct the path.")
        self._identity = self._current_identity()

    @contextmanager
    def exclusive_lock(self) -> Iterator[None]:
        """Queue for the lock file: SQLite's own waiting starves, that of the operating system does not."""
        descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            try:
                if self._identity not in (None, self._current_identity()):
                    raise LedgerError("the file was exchanged while it was open. Open the ledger again.")
                yield
            finally:
                # Closing would not do: a child that was forked meanwhile has the descriptor open too.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)

    def checkpoint(self) -> Checkpoint | None:
        """Read the head file."""
        return read_checkpoint(self._checkpoint_path)

    def store_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Write the head file."""
        write_checkpoint(self._checkpoint_path, checkpoint)

    def _current_identity(self) -> tuple[int, int]:
        status = self._path.stat()
        return status.st_dev, status.st_ino


def _make_durable(connection: sqlite3.Connection) -> None:
    settings = {"journal_mode": "wal", "synchronous": 2, "fullfsync": 1}  # 2 is FULL: sync at every commit
    for setting, value in settings.items():
        connection.execute(f"PRAGMA {setting} = {value}")
        if connection.execute(f"PRAGMA {setting}").fetchone()[0] != value:
            raise LedgerError(f"SQLite does not accept {setting} = {value} here. Move the ledger elsewhere.")


class MemoryLocation:
    """A ledger that ends with its process."""

    def __init__(self) -> None:
        self._checkpoint: Checkpoint | None = None

    def __str__(self) -> str:
        return "the ledger in memory"

    def connect(self) -> sqlite3.Connection:
        """Open an empty database in memory."""
        return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)

    @contextmanager
    def exclusive_lock(self) -> Iterator[None]:
        """Do nothing: no other process can reach it."""
        yield

    def checkpoint(self) -> Checkpoint | None:
        """Return the head."""
        return self._checkpoint

    def store_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Remember the head."""
        self._checkpoint = checkpoint


SQLiteLocation = FileLocation | MemoryLocation
