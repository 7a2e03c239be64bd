"""A connection to PostgreSQL on which each question sees one snapshot, cannot write, and has a time limit.

All settings that a question relies on are local to its transaction, so the connection may come from a pool. Tables are
locked before the snapshot is taken, because a table that is truncated or rewritten appears empty to older snapshots. A
lost connection is replaced for the next question.
"""

import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from discreet.engines.postgres.errors import translate_errors
from discreet.engines.server_session import ServerSession
from discreet.engines.table_source import EngineError
from discreet.postgres.server import connect, driver

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LOCK = "LOCK TABLE {} IN ACCESS SHARE MODE"  # as every SELECT does; it takes no snapshot yet
_GRACE = 5.0  # seconds for the server to end a question before it is cancelled
_LOCK_TIMEOUT = 30.0  # seconds to wait for a lock that another session holds
_PREPARE_TIMEOUT = 60.0  # seconds to connect, to wait for locks and to read the catalog
_MIN_IDLE_TIMEOUT = 300.0  # seconds for which an idle snapshot is kept at least, because charges may queue
_MAX_INT32 = (1 << 31) - 1
_TIMEOUT_SETTINGS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
_ROLE_TIMEOUTS = "SELECT name, setting::bigint FROM pg_catalog.pg_settings WHERE name = ANY(%s)"
_ROWS_PER_CHUNK = 1000

# What an expression means, and which function a name refers to, must not depend on the role's own settings.
_SETTINGS = {
    "search_path": "pg_catalog, pg_temp",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "row_security": "on",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "client_min_messages": "error",
    "enable_nestloop": "off",  # the planner chose them by wrong row estimates for a WITH, and took 100 times longer
    "jit": "off",  # compiling many small expressions takes longer than running them
}
_ARROW_TYPES = {
    **dict.fromkeys((20, 21, 23), pa.int64()),
    16: pa.bool_(),
    25: pa.string(),
    701: pa.float64(),
    1082: pa.date32(),
    1114: pa.timestamp("us"),
}


class PostgresQuerySession(ServerSession):
    """A connection that one question uses at a time; other threads may call `cancel` and `close`."""

    def __init__(self, url: str, settings: Mapping[str, str]) -> None:
        super().__init__()
        self._url = url
        self._settings = {**_SETTINGS, **settings}
        self._connection: Connection | None = None
        self._connection_lock = threading.Lock()  # held while the connection is replaced, cut or closed
        self._settings_verified = False
        self._role_timeouts: dict[str, int] = {}  # the server's own limits for this role, in milliseconds
        self.search_schemas: list[str] = []  # the search path, for tables without a schema

    @contextmanager
    def snapshot(self, seconds: float, tables: Sequence[str] = ()) -> Iterator["Snapshot"]:
        """Lock these tables and open a snapshot for at most `seconds`; EngineError if that fails."""
        with self.locked_snapshot(seconds, tables) as snapshot, snapshot.reading(seconds):
            yield snapshot

    @contextmanager
    def locked_snapshot(self, seconds: float, tables: Sequence[str] = ()) -> Iterator["Snapshot"]:
        """Lock these tables and take a snapshot without reading a row; EngineError if that fails.

        The snapshot is kept until the end of the context; while idle, for at least as long as a charge may take.
        """
        with translate_errors(), self.disconnect_after(_PREPARE_TIMEOUT + _GRACE):
            connection = self._begin_transaction(time.monotonic() + _PREPARE_TIMEOUT, max(seconds, _MIN_IDLE_TIMEOUT))
            try:
                if tables:
                    connection.execute(_LOCK.format(", ".join(tables)))
                _set_local(connection, self._settings)
                self._verify_settings(connection)
            except BaseException:
                self._roll_back(connection)
                raise
        try:
            yield Snapshot(self, connection)
        finally:
            self._roll_back(connection)

    @contextmanager
    def disconnect_after(self, seconds: float) -> Iterator[None]:
        """Cut the connection after `seconds`, in case the server hangs."""
        timer = threading.Timer(seconds, self.disconnect)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def interrupt(self) -> None:
        """Ask the server to cancel the running statement."""
        with self._connection_lock, suppress(driver().Error):
            if self._connection is not None and not self._connection.closed:
                self._connection.cancel_safe(timeout=1)

    def disconnect(self) -> None:
        """Cut the connection at once, even if the server does not respond."""
        with self._connection_lock, suppress(OSError, driver().Error):
            if self._connection is not None and not self._connection.closed:
                with socket.socket(fileno=os.dup(self._connection.fileno())) as connection_socket:
                    connection_socket.shutdown(socket.SHUT_RDWR)

    def timeout_ms(self, setting: str, seconds: float) -> str:
        """Return a time limit in milliseconds: the given one, or that of the role if it is shorter (0 is none)."""
        milliseconds = min(max(round(seconds * 1000), 1), _MAX_INT32)
        return str(min(milliseconds, self._role_timeouts.get(setting) or milliseconds))

    def _begin_transaction(self, deadline: float, idle_timeout: float) -> "Connection":
        """Begin a transaction, on a new connection if the old one no longer works."""
        if self._connection is not None:
            with suppress(driver().Error):
                return self._begin_with_timeouts(self._connection, deadline, idle_timeout)
            self.drop()
            _seconds_left(deadline)
        self.check_usable()
        connection = connect(self._url)
        connection.prepare_threshold = None  # generic plans of prepared statements are poor
        with self._connection_lock:
            self._connection, self._settings_verified = connection, False
        ((self.search_schemas,),) = connection.execute("SELECT pg_catalog.current_schemas(false)").fetchall()
        self._role_timeouts = dict(connection.execute(_ROLE_TIMEOUTS, [list(_TIMEOUT_SETTINGS)]).fetchall())
        return self._begin_with_timeouts(connection, deadline, idle_timeout)

    def _begin_with_timeouts(self, connection: "Connection", deadline: float, idle_timeout: float) -> "Connection":
        """Begin a transaction with time limits, also for locks; it has no snapshot yet."""
        seconds_left = _seconds_left(deadline)
        timeouts = dict(
            zip(
                _TIMEOUT_SETTINGS,
                (seconds_left, min(seconds_left, _LOCK_TIMEOUT), idle_timeout + 2 * _GRACE),
                strict=True,
            )
        )
        settings = [f"SET LOCAL {name} = {self.timeout_ms(name, seconds)}" for name, seconds in timeouts.items()]
        connection.execute("; ".join([_BEGIN, *settings]))
        return connection

    def _verify_settings(self, connection: "Connection") -> None:
        """Check once that the server applied the settings, which a proxy may change."""
        if self._settings_verified:
            return
        current: dict[str, str] = dict(
            connection.execute(
                "SELECT name, current_setting(name) FROM pg_settings WHERE LOWER(name) = ANY(%s)", [[*self._settings]]
            ).fetchall()
        )
        for name, value in current.items():
            if value.lower() != self._settings[name.lower()].lower():
                raise EngineError(f"the server did not apply the setting {name}: its value is {value!r}")
        if len(current) != len(self._settings):
            raise EngineError(f"the server lacks the settings {self._settings.keys() - current.keys()}")
        self._settings_verified = True

    def _roll_back(self, connection: "Connection") -> None:
        """End the transaction; drop the connection if that fails."""
        try:
            with self.disconnect_after(_GRACE):
                connection.execute("ROLLBACK")
        except driver().Error:
            self.drop()

    def drop(self) -> None:
        """Close the connection, if there is one."""
        with self._connection_lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(driver().Error):
                    connection.close()


class Snapshot:
    """One snapshot of the data, with a time limit."""

    def __init__(self, session: PostgresQuerySession, connection: "Connection") -> None:
        self._session, self._connection, self._deadline = session, connection, time.monotonic() + _PREPARE_TIMEOUT

    @contextmanager
    def reading(self, seconds: float) -> Iterator[None]:
        """Limit everything that follows to `seconds` in all; failures are EngineErrors."""
        self._deadline = time.monotonic() + seconds
        with translate_errors(), self._session.disconnect_after(seconds + _GRACE):
            yield

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Read the catalog within the time limit; failures are EngineErrors."""
        with translate_errors(), self._session.disconnect_after(_PREPARE_TIMEOUT + _GRACE):
            yield

    def catalog_rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return rows of the server's catalog."""
        return self._connection.execute(sql, values).fetchall()

    def can_lock(self, table: str) -> bool:
        """Whether the role may lock a table, or all tables of a view; with privileges on columns only, it may not."""
        try:
            with self._connection.transaction():
                self._connection.execute(_LOCK.format(table))
        except driver().errors.InsufficientPrivilege:
            return False
        return True

    def type_oids(self, sql: str) -> tuple[int, ...] | None:
        """Return the type OIDs of the columns of a SELECT; None if they do not exist or may not be read."""
        errors = driver().errors
        missing = (
            errors.UndefinedColumn,
            errors.UndefinedTable,
            errors.InvalidSchemaName,
            errors.InsufficientPrivilege,
        )
        try:
            with self._connection.transaction(), self._connection.cursor(binary=True) as cursor:
                described = cursor.execute(sql).description
        except missing:
            return None
        return tuple(column.type_code for column in described or ())

    def run_select(self, sql: str) -> pa.Table:
        """Run one SELECT of the kernel."""
        self._set_statement_timeout()
        with self._connection.cursor(binary=True) as cursor:  # the binary protocol accepts only one statement
            cursor.execute(sql)
            described, rows = cursor.description or (), cursor.fetchall()
        columns = zip(*rows, strict=True) if rows else [()] * len(described)
        arrays = [
            pa.array(column, _ARROW_TYPES[field.type_code]) for field, column in zip(described, columns, strict=True)
        ]
        return pa.Table.from_arrays(arrays, names=[field.name for field in described])

    def batches(self, sql: str, size: int) -> Iterator[np.ndarray]:
        """Yield the values of a SELECT in batches of `size` rows, only one of which is in memory."""
        self._set_statement_timeout()
        chunk_rows = _ROWS_PER_CHUNK if driver().capabilities.has_stream_chunked() else 1
        with self._connection.cursor() as cursor:
            rows: Any = cursor.stream(sql, binary=True, size=chunk_rows)
            with closing(rows):  # ends the stream if the consumer stops early
                while batch := list(islice(rows, size)):
                    yield np.array(batch, np.float64)

    def _set_statement_timeout(self) -> None:
        """Limit the next statement to the time that is left."""
        seconds_left = _seconds_left(self._deadline)
        _set_local(self._connection, {"statement_timeout": self._session.timeout_ms("statement_timeout", seconds_left)})


def _seconds_left(deadline: float) -> float:
    """Return the seconds until the deadline; EngineError if it has passed."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise EngineError("the query exceeded the time limit")
    return seconds


def _set_local(connection: "Connection", settings: Mapping[str, str]) -> None:
    """Set parameters until the end of the transaction."""
    calls = ", ".join(["pg_catalog.set_config(%s, %s, true)"] * len(settings))
    connection.execute(f"SELECT {calls}", [word for pair in settings.items() for word in pair])
