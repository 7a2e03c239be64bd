"""Where a shared ledger is: a schema of a database, and the head file of this server."""

import errno
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.kernel.errors import PolicyError
from discreet.kernel.ledger.head import BEGINNING, Head, read_head, write_head
from discreet.postgres.connecting import connect, doubt_of_server, shown
from discreet.postgres.ledger_schema import schema_of

if TYPE_CHECKING:
    import psycopg

# No function or operator of anybody else's is ever called. The server, too, notices within half a minute that this
# machine is gone, or has stopped in the middle of an answer. That a commit did not wait for its standby is a warning.
_SETTINGS = {
    "search_path": "pg_catalog",
    "client_min_messages": "warning",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "4",
    "tcp_user_timeout": "30000",
}
PATIENCE, _PAUSE = 30, 0.002  # seconds for the head's lock, in all and between two tries


class Database:
    """The ledger of one data set in a database; its text says where the database is, and nothing about who asks.

    Each server that shares the ledger has a head file of its own, which all its processes share. Without one there is
    no witness: a ledger that was rolled back is then taken as it is.
    """

    def __init__(self, url: str, name: str, head: str | os.PathLike[str] | None) -> None:
        if doubt := doubt_of_server(url):
            raise PolicyError(f"ledger: {doubt}, and each could get an account of its own. Name one server.")
        self._url = url
        self._shown = shown(url)
        self._head = None if head is None else Path(head).absolute()
        self.schema = schema_of(name)
        digest = sha256(self.schema.encode()).digest()
        self.lock = int.from_bytes(digest[:8], "big", signed=True)

    def __str__(self) -> str:
        return self._shown

    def connect(self) -> "psycopg.Connection[tuple[Any, ...]]":
        """Open a connection to the database."""
        return connect(self._url, **_SETTINGS)

    @property
    def has_head(self) -> bool:
        """Whether this server has a head file, readable or not."""
        return self._head is not None and self._head.exists()

    @property
    def lost_head(self) -> bool:
        """Whether this server had a head file and has none: the lock file remains, and a new server has neither."""
        if self._head is None or not _lock_of(self._head).exists():
            return False
        with _alone(_lock_of(self._head)):  # whoever makes the first head holds it
            return not self._head.exists()

    def head(self) -> Head | None:
        """Read the head file of this server."""
        return BEGINNING if self._head is None else read_head(self._head)

    def keep_head(self, head: Head, instead_of: Head | None = None) -> None:
        """Write the head file of this server; it goes back only from the head that an owner acknowledged to be lost."""
        if self._head is None:
            return
        with _alone(_lock_of(self._head)):
            found = read_head(self._head)
            if found is None or found.seq < head.seq or found == instead_of:
                write_head(self._head, head)


_ONE_WRITER = threading.Lock()  # held at forks: a child would inherit the lock file, open and locked


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Wait for the lock file, and not for ever: whoever has it may have been stopped."""
    with _ONE_WRITER:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            end = time.monotonic() + PATIENCE
            while not _locked(descriptor):
                if time.monotonic() > end:
                    raise TimeoutError(errno.ETIMEDOUT, "another process holds the lock", str(path))
                time.sleep(_PAUSE)
            yield
        finally:
            os.close(descriptor)


def _lock_of(head: Path) -> Path:
    return head.with_name(head.name + ".lock")


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


os.register_at_fork(before=_ONE_WRITER.acquire, after_in_parent=_ONE_WRITER.release, after_in_child=_ONE_WRITER.release)
