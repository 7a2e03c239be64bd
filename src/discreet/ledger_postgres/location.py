"""The location of a PostgreSQL ledger: a schema and a local checkpoint file; and its error messages."""

import contextlib
import errno
import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.kernel.errors import LedgerError, PolicyError
from discreet.kernel.ledger.checkpoint import EMPTY_CHECKPOINT, Checkpoint
from discreet.ledger_postgres.schema import postgres_dialect, schema_name
from discreet.ledger_sqlite.checkpoint_file import read_checkpoint, write_checkpoint
from discreet.postgres.server import ServerUnreachable, connect, driver, server_ambiguity, server_description

if TYPE_CHECKING:
    import psycopg


# The search path keeps functions and operators of other users from being called. Keepalives let the server notice
# within half a minute that this machine is gone or hangs. A commit that did not wait for its standby is reported as
# a warning.
_SESSION_SETTINGS = {
    "search_path": "pg_catalog",
    "client_min_messages": "warning",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "4",
    "tcp_user_timeout": "30000",
}
CHECKPOINT_LOCK_TIMEOUT, _RETRY_PAUSE = 30, 0.002  # seconds: for the checkpoint lock in total, and between two attempts


class PostgresLocation:
    """The schema of one data set in a database; str() names the server, but not the user.

    Each server that shares the ledger has its own checkpoint file, which all its processes share. Without a checkpoint
    file a rollback of the database is not detected.
    """

    def __init__(self, url: str, name: str, checkpoint: str | os.PathLike[str] | None) -> None:
        if ambiguity := server_ambiguity(url):
            raise PolicyError(f"ledger: {ambiguity}, and each could hold a separate ledger. Name exactly one server.")
        self._url = url
        self._description = server_description(url)
        self._checkpoint_path = None if checkpoint is None else Path(checkpoint).absolute()
        self.schema = schema_name(name)
        self.dialect = postgres_dialect(self.schema)
        self.lock_number = lock_number(self.schema)

    def __str__(self) -> str:
        return self._description

    def connect(self) -> "psycopg.Connection[tuple[Any, ...]]":
        """Connect to the database."""
        return connect(self._url, **_SESSION_SETTINGS)

    @property
    def has_checkpoint(self) -> bool:
        """Whether the checkpoint file exists, valid or not."""
        return self._checkpoint_path is not None and self._checkpoint_path.exists()

    @property
    def lost_checkpoint(self) -> bool:
        """Whether the checkpoint file is missing although its lock file exists; a new server has neither."""
        if self._checkpoint_path is None or not _lock_path(self._checkpoint_path).exists():
            return False
        with _file_lock(_lock_path(self._checkpoint_path)):  # held while the first checkpoint is written
            return not self._checkpoint_path.exists()

    def checkpoint(self) -> Checkpoint | None:
        """Return the checkpoint of this server; EMPTY_CHECKPOINT if it keeps none."""
        return EMPTY_CHECKPOINT if self._checkpoint_path is None else read_checkpoint(self._checkpoint_path)

    def store_checkpoint(self, checkpoint: Checkpoint, replaces: Checkpoint | None = None) -> None:
        """Store a checkpoint; it goes back only if it replaces the one that the owner acknowledged as lost."""
        if self._checkpoint_path is None:
            return
        with _file_lock(_lock_path(self._checkpoint_path)):
            stored = read_checkpoint(self._checkpoint_path)
            if stored is None or stored.seq < checkpoint.seq or stored == replaces:
                write_checkpoint(self._checkpoint_path, checkpoint)


def lock_number(name: str) -> int:
    """Return the number of the advisory lock with this name."""
    return int.from_bytes(sha256(name.encode()).digest()[:8], "big", signed=True)


class ServerConnection:
    """One connection, opened when it is needed and replaced if it was lost while idle."""

    def __init__(self, location: PostgresLocation, set_up: Callable[[Any], object]) -> None:
        self._location, self._set_up = location, set_up
        self.connection: psycopg.Connection[tuple[Any, ...]] | None = None

    def execute_first(self, statement: str, *values: Any) -> Any:
        """Run the first statement of a transaction, on a new connection if the open one was lost."""
        if self.connection:
            try:
                return self.connection.execute(statement, values or None)
            except driver().Error as error:
                if not is_connection_lost(error):
                    raise
                self.close()
        self.connection = self._location.connect()
        self._set_up(self.connection)
        return self.connection.execute(statement, values or None)

    def close(self) -> None:
        """Close the connection until it is needed again."""
        if self.connection:
            self.connection.close()
            self.connection = None

    def abandon(self) -> None:
        """Drop the inherited connection in a forked child without ending the parent's session."""
        if self.connection:
            with contextlib.suppress(driver().Error, OSError):
                os.close(self.connection.pgconn.socket)  # otherwise the server would not notice when the parent exits
            _ABANDONED_CONNECTIONS.append(self.connection)  # closing it would end the parent's session
            self.connection = None


_ABANDONED_CONNECTIONS: list[Any] = []
_WRITER_LOCK = threading.Lock()  # held during a fork: a child would inherit the locked lock file


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    """Hold the lock file; the wait is limited, because the process that holds it may hang."""
    with _WRITER_LOCK:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
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
    "the connection to the server was lost, and nothing was written. Try again when the server is available."
)
_READ_ONLY = "the server is read-only: a standby, or configured so. Use the URL of the primary server."
_ERROR_TEXTS = {
    "55P03": "timed out waiting for the lock of the ledger. Look in pg_stat_activity for clients idle in transaction.",
    "57014": "the statement timed out or was cancelled. Look in pg_stat_activity for what keeps the server busy.",
    "25P03": "this process was idle in a transaction for too long, so the server ended it. Nothing was written.",
    "25006": _READ_ONLY,
    "0A000": _READ_ONLY,
    "42501": (
        "permission denied. The owner of the ledger must run GRANT USAGE ON SCHEMA {schema} and GRANT SELECT, INSERT "
        "ON ALL TABLES IN SCHEMA {schema}. Creating a ledger needs GRANT CREATE ON DATABASE."
    ),
    "42P01": "a table of schema {schema} does not exist. Restore the ledger from a backup.",
    "42P06": "a ledger with this name already exists. Open it with open_postgres_ledger, or choose another name.",
    "23505": "another client wrote without the lock, and nothing was written. Check who has privileges on {schema}.",
    "53100": "the disk of the server is full, and nothing was written. Free some space there.",
    "P0001": "a trigger of schema {schema} rejected the write, and nothing was written.",
}


def is_connection_lost(error: BaseException) -> bool:
    """Return whether the connection itself is gone, because of the server or the network."""
    state = getattr(error, "sqlstate", None)
    return isinstance(error, driver().OperationalError) and (
        state is None or state.startswith(("08", "57P")) or state in ("25P03", "25P04")
    )


@contextmanager
def ledger_errors(location: PostgresLocation) -> Iterator[None]:
    """Convert errors to LedgerErrors that name the location."""
    try:
        yield
    except LedgerError as error:
        raise LedgerError(f"{location}: {error}") from error.__cause__
    except ServerUnreachable as error:
        raise LedgerError(str(error)) from None
    except OSError as cause:
        raise LedgerError(
            f"{location}: cannot read or write the checkpoint file ({cause}). Charges already made stay charged. Check "
            "that its folder exists, is writable and has free space."
        ) from cause
    except driver().Error as error:
        raise LedgerError(f"{location}: {_error_text(error, location.schema)}") from None


def _error_text(error: BaseException, schema: str) -> str:
    state = getattr(error, "sqlstate", None)
    if state in _ERROR_TEXTS:
        return _ERROR_TEXTS[state].format(schema=schema)
    if is_connection_lost(error):
        return _CONNECTION_LOST
    return f"the server reported SQLSTATE {state}, and nothing was written. See the server log for the reason."
