"""Where a shared ledger is: a database schema, this server's checkpoint file, and error messages."""

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

from discreet.kernel.errors import LedgerError, PolicyError
from discreet.kernel.ledger.checkpoint import EMPTY_CHECKPOINT, Checkpoint, read_checkpoint, write_checkpoint
from discreet.ledger_postgres.schema import schema_name
from discreet.postgres.server import ServerUnreachable, connect, driver, server_ambiguity, server_description

if TYPE_CHECKING:
    import psycopg


# No function or operator of anybody else's is ever called. The server, too, notices within half a minute that this
# machine is gone, or has stopped in the middle of an answer. That a commit did not wait for its standby is a warning.
_SESSION_SETTINGS = {
    "search_path": "pg_catalog",
    "client_min_messages": "warning",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "4",
    "tcp_user_timeout": "30000",
}
CHECKPOINT_LOCK_TIMEOUT, _RETRY_PAUSE = 30, 0.002  # seconds for the head's lock, in all and between two tries


class PostgresLocation:
    """The ledger of one data set in a database; its text says where the database is, and nothing about who asks.

    Each server that shares the ledger has a head file of its own, which all its processes share. Without one there is
    no witness: a ledger that was rolled back is then taken as it is.
    """

    def __init__(self, url: str, name: str, checkpoint: str | os.PathLike[str] | None) -> None:
        if ambiguity := server_ambiguity(url):
            raise PolicyError(f"ledger: {ambiguity}, and each could get an account of its own. Name one server.")
        self._url = url
        self._description = server_description(url)
        self._checkpoint_path = None if checkpoint is None else Path(checkpoint).absolute()
        self.schema = schema_name(name)
        digest = sha256(self.schema.encode()).digest()
        self.lock_number = int.from_bytes(digest[:8], "big", signed=True)

    def __str__(self) -> str:
        return self._description

    def connect(self) -> "psycopg.Connection[tuple[Any, ...]]":
        """Open a connection to the database."""
        return connect(self._url, **_SESSION_SETTINGS)

    @property
    def has_checkpoint(self) -> bool:
        """Whether this server has a head file, readable or not."""
        return self._checkpoint_path is not None and self._checkpoint_path.exists()

    @property
    def lost_checkpoint(self) -> bool:
        """Whether this server had a head file and has none: the lock file remains, and a new server has neither."""
        if self._checkpoint_path is None or not _lock_path(self._checkpoint_path).exists():
            return False
        with _file_lock(_lock_path(self._checkpoint_path)):  # whoever makes the first head holds it
            return not self._checkpoint_path.exists()

    def checkpoint(self) -> Checkpoint | None:
        """Read the head file of this server."""
        return EMPTY_CHECKPOINT if self._checkpoint_path is None else read_checkpoint(self._checkpoint_path)

    def store_checkpoint(self, checkpoint: Checkpoint, replaces: Checkpoint | None = None) -> None:
        """Write the head file of this server; it goes back only from the head that an owner acknowledged to be lost."""
        if self._checkpoint_path is None:
            return
        with _file_lock(_lock_path(self._checkpoint_path)):
            stored = read_checkpoint(self._checkpoint_path)
            if stored is None or stored.seq < checkpoint.seq or stored == replaces:
                write_checkpoint(self._checkpoint_path, checkpoint)


_WRITER_LOCK = threading.Lock()  # held at forks: a child would inherit the lock file, open and locked


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    """Wait for the lock file, and not for ever: whoever has it may have been stopped."""
    with _WRITER_LOCK:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            end = time.monotonic() + CHECKPOINT_LOCK_TIMEOUT
            while not _try_lock(descriptor):
                if time.monotonic() > end:
                    raise TimeoutError(errno.ETIMEDOUT, "another process holds the lock", str(path))
                time.sleep(_RETRY_PAUSE)
            yield
        finally:
            os.close(descriptor)


def _lock_path(checkpoint_path: Path) -> Path:
    return checkpoint_path.with_name(checkpoint_path.name + ".lock")


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


os.register_at_fork(
    before=_WRITER_LOCK.acquire, after_in_parent=_WRITER_LOCK.release, after_in_child=_WRITER_LOCK.release
)


_CONNECTION_LOST = (
    "the connection was lost, and nothing was written there. When the server answers, ask again, or give the command "
    "again."
)
_READ_ONLY = "the server only reads: it is a standby, or was told so. Give the URL of the one that writes."
_ERROR_TEXTS = {
    "55P03": "others have held the ledger for too long. Look in pg_stat_activity for a client that stands still.",
    "57014": "the server took too long, or somebody cancelled this. Look in pg_stat_activity for what it is busy with.",
    "25P03": "this process stood still in the middle of a transaction, so the server ended it. Nothing was written.",
    "25006": _READ_ONLY,
    "0A000": _READ_ONLY,
    "42501": (
        "the user may not do this. Whoever owns the ledger can allow it: GRANT USAGE ON SCHEMA {schema}, and GRANT "
        "SELECT, INSERT ON ALL TABLES IN SCHEMA {schema}. Making a ledger needs GRANT CREATE ON DATABASE."
    ),
    "42P01": "a table of schema {schema} is missing. Restore the ledger from a backup.",
    "42P06": "there is a ledger of this name already. Open it with open_postgres_ledger, or choose another name.",
    "23505": "somebody wrote without waiting for the others. Nothing was written. Find out who has rights on {schema}.",
    "53100": "the server's disk is full, and nothing was written. Make room there.",
    "P0001": "a trigger of schema {schema} stopped this, and nothing was written.",
}


def is_connection_lost(error: BaseException) -> bool:
    """Whether the connection itself is gone: the server stopped, or ended it, or the network did."""
    state = getattr(error, "sqlstate", None)
    return isinstance(error, driver().OperationalError) and (
        state is None or state.startswith(("08", "57P")) or state in ("25P03", "25P04")
    )


@contextmanager
def ledger_errors(location: PostgresLocation) -> Iterator[None]:
    """Turn what goes wrong into a LedgerError that names the place."""
    try:
        yield
    except LedgerError as error:
        raise LedgerError(f"{location}: {error}") from error.__cause__
    except ServerUnreachable as error:
        raise LedgerError(str(error)) from None
    except OSError as cause:
        raise LedgerError(
            f"{location}: the head file cannot be read or written ({cause}). What was charged stays charged. Check that "
            "its folder is there, can be written to and has space."
        ) from cause
    except driver().Error as error:
        raise LedgerError(f"{location}: {_error_text(error, location.schema)}") from None


def _error_text(error: BaseException, schema: str) -> str:
    state = getattr(error, "sqlstate", None)
    if state in _ERROR_TEXTS:
        return _ERROR_TEXTS[state].format(schema=schema)
    if is_connection_lost(error):
        return _CONNECTION_LOST
    return f"the server refused with SQLSTATE {state}, and nothing was written. Its log has the reason."
