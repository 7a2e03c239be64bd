"""Where a ledger lives: a file with its lock and its head beside it, or the memory of one process."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from discreet.kernel.errors import LedgerError
from discreet.kernel.ledger.head import Head, read_head, sync_folder, write_head


class File:
    """A ledger's file; `<file>.lock` and `<file>.head` lie beside it, all readable by the owner only."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, str | os.PathLike) or not Path(path).name:
            raise ValueError(f"path must name a file, not {path!r}")
        self._path = Path(path).absolute()
        self._lock, self._head = (self._path.with_name(self._path.name + end) for end in (".lock", ".head"))
        self._identity: tuple[int, int] | None = None
        self._made = False  # by this object: it may be empty, and is not taken for somebody else's file

    def __str__(self) -> str:
        return str(self._path)

    def create(self) -> None:
        """Make an empty file where there was none, nor any trace of an earlier ledger."""
        if self._head.exists() and not self._path.exists():
            raise LedgerError("a ledger was here, its head file remains. Restore the ledger from a backup.")
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            sync_folder(self._path.parent)
            self._made = True
        except FileExistsError:
            raise LedgerError("the file exists. Open it with open_ledger, or choose another path.") from None
        except FileNotFoundError:
            raise LedgerError(f"the folder {self._path.parent} does not exist. Make it first.") from None

    def take(self) -> None:
        """Make an empty file, unless there is one; one in which nothing was ever written is as good as made."""
        if self._path.is_file():
            with closing(sqlite3.connect(f"{self._path.as_uri()}?mode=rw", uri=True, timeout=10)) as connection:
                self._made = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
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
        if self._identity not in (None, self._found()):
            raise LedgerError("the file was exchanged while it was open. Open the ledger again.")
        if self._path.stat().st_nlink != 1:
            raise LedgerError("the file has a second name (a hard link), which would be locked apart. Remove one.")
        if not self._made and not connection.execute("PRAGMA user_version").fetchone()[0]:
            raise LedgerError("this is not a ledger, or was not completely created. Correct the path.")
        self._identity = self._found()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Queue for the lock file: SQLite's own waiting starves, that of the operating system does not."""
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            try:
                if self._identity not in (None, self._found()):
                    raise LedgerError("the file was exchanged while it was open. Open the ledger again.")
                yield
            finally:
                # Closing would not do: a child that was forked meanwhile has the descriptor open too.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)

    def head(self) -> Head | None:
        """Read the head file."""
        return read_head(self._head)

    def keep_head(self, head: Head) -> None:
        """Write the head file."""
        write_head(self._head, head)

    def _found(self) -> tuple[int, int]:
        found = self._path.stat()
        return found.st_dev, found.st_ino


def _make_durable(connection: sqlite3.Connection) -> None:
    wanted = {"journal_mode": "wal", "synchronous": 2, "fullfsync": 1}  # 2 is FULL: sync at every commit
    for setting, value in wanted.items():
        connection.execute(f"PRAGMA {setting} = {value}")
        if connection.execute(f"PRAGMA {setting}").fetchone()[0] != value:
            raise LedgerError(f"SQLite does not accept {setting} = {value} here. Move the ledger elsewhere.")


class Memory:
    """A ledger that ends with its process."""

    def __init__(self) -> None:
        self._head: Head | None = None

    def __str__(self) -> str:
        return "the ledger in memory"

    def connect(self) -> sqlite3.Connection:
        """Open an empty database in memory."""
        return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Do nothing: no other process can reach it."""
        yield

    def head(self) -> Head | None:
        """Return the head."""
        return self._head

    def keep_head(self, head: Head) -> None:
        """Remember the head."""
        self._head = head


Place = File | Memory
