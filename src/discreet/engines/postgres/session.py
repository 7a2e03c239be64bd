"""One connection to PostgreSQL for questions: each sees one state of the data, cannot write, and ends in time.

What a question relies on is set within its own transaction, and nothing outlasts it: so a connection may also be lent
by a pool. Tables are locked before the state is taken: one that is truncated or rewritten leaves nothing of itself to a
state that is older. A connection that is lost is made anew for the next question.
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
from discreet.engines.table_source import EngineError
from discreet.postgres.server import connect, driver

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LOCK = "LOCK TABLE {} IN ACCESS SHARE MODE"  # as every SELECT does; it takes no state yet
_GRACE = 5.0  # seconds that the server has to end a question by itself
_LOCK_TIMEOUT = 30.0  # seconds for a lock that somebody else has, such as one who changes a table
_PREPARE_TIMEOUT = 60.0  # seconds to connect, to wait for locks and to look at the catalog
_MIN_IDLE_TIMEOUT = (
    300.0  # seconds at least for which a state is kept while nobody reads: a ledger may make charges queue
)
_MAX_INT32 = (1 << 31) - 1
_TIMEOUT_SETTINGS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
_ROLE_TIMEOUTS = "SELECT name, setting::bigint FROM pg_catalog.pg_settings WHERE name = ANY(%s)"
_ROWS_PER_CHUNK = 1000

# Nothing here may depend on who connects: what an expression means, and which function a name stands for.
_SETTINGS = {
    "search_path": "pg_catalog, pg_temp",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "row_security": "on",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "client_min_messages": "error",
    "enable_nestloop": "off",  # guesses about a WITH are so wrong that one was chosen, for a hundred times the time
    "jit": "off",  # to compile many small expressions takes longer than to run them
}
_ARROW_TYPES = {
    **dict.fromkeys((20, 21, 23), pa.int64()),
    16: pa.bool_(),
    25: pa.string(),
    701: pa.float64(),
    1082: pa.date32(),
    1114: pa.timestamp("us"),
}


class PostgresQuerySession:
    """A way to a server that is used by one question at a time; `cancel` and `close` may come from other threads."""

    def __init__(self, url: str, settings: Mapping[str, str]) -> None:
        self._url = url
        self._settings = {**_SETTINGS, **settings}
        self._connection: Connection | None = None
        self._connection_lock = threading.Lock()  # held while the connection is replaced, cut or closed
        self._ended = False
        self._settings_verified = False  # whether the connection was seen to keep the settings
        self._pid = os.getpid()
        self._role_timeouts: dict[str, int] = {}  # in milliseconds, as the server has them for this role
        self.search_schemas: list[str] = []  # where the server looks for a table that is named without one

    @property
    def is_own_process(self) -> bool:
        """Whether this is the process that opened it: two must not speak on one connection."""
        return os.getpid() == self._pid

    def check_usable(self) -> None:
        """EngineError if no question may begin."""
        if not self.is_own_process:
            raise EngineError("the engine was opened in another process. Open one in each process.")
        if self._ended:
            raise EngineError("the engine is closed. Open another one.")

    @contextmanager
    def snapshot(self, seconds: float, tables: Sequence[str] = ()) -> Iterator["Snapshot"]:
        """Give one state of the data, with these tables locked, for so many seconds; EngineError if that fails."""
        with self.locked_snapshot(seconds, tables) as snapshot, snapshot.reading(seconds):
            yield snapshot

    @contextmanager
    def locked_snapshot(self, seconds: float, tables: Sequence[str] = ()) -> Iterator["Snapshot"]:
        """Lock these tables and take one state of the data, without reading any row; EngineError if that fails.

        It is kept until the end of the context, also while nobody reads: for as long as a charge may take, at least.
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
        """Cut the connection if what is done takes longer: a server that stands still keeps nobody."""
        timer = threading.Timer(seconds, self.disconnect)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def cancel(self) -> None:
        """Ask the server to stop what it does for this connection."""
        with self._connection_lock, suppress(driver().Error):
            if self._connection is not None and not self._connection.closed:
                self._connection.cancel_safe(timeout=1)

    def disconnect(self) -> None:
        """Let a connection end at once, also if the server does not answer any more."""
        with self._connection_lock, suppress(OSError, driver().Error):
            if self._connection is not None and not self._connection.closed:
                with socket.socket(fileno=os.dup(self._connection.fileno())) as connection_socket:
                    connection_socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of the connection for good; in a process that did not open it, it is left alone."""
        self._ended = True
        if self.is_own_process:
            self._drop_connection()

    def stop_accepting(self) -> None:
        """Let no more questions begin."""
        self._ended = True

    def timeout_ms(self, setting: str, seconds: float) -> str:
        """Return a limit of time in milliseconds: ours, or that of the role if it is shorter; 0 is none."""
        milliseconds = min(max(round(seconds * 1000), 1), _MAX_INT32)
        return str(min(milliseconds, self._role_timeouts.get(setting) or milliseconds))

    def _begin_transaction(self, deadline: float, idle_timeout: float) -> "Connection":
        """Begin a transaction, with a new connection if the old one does not work any more."""
        if self._connection is not None:
            with suppress(driver().Error):
                return self._begin_with_timeouts(self._connection, deadline, idle_timeout)
            self._drop_connection()
            _seconds_left(deadline)
        self.check_usable()
        connection = connect(self._url)
        connection.prepare_threshold = None  # a plan for all values would be one for none
        with self._connection_lock:
            self._connection, self._settings_verified = connection, False
        ((self.search_schemas,),) = connection.execute("SELECT pg_catalog.current_schemas(false)").fetchall()
        self._role_timeouts = dict(connection.execute(_ROLE_TIMEOUTS, [list(_TIMEOUT_SETTINGS)]).fetchall())
        return self._begin_with_timeouts(connection, deadline, idle_timeout)

    def _begin_with_timeouts(self, connection: "Connection", deadline: float, idle_timeout: float) -> "Connection":
        """Begin a transaction that ends in time, also if it waits for a lock first; it has no state of the data yet."""
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
        """Look once whether the server has taken the settings: some stand between the two, and change them."""
        if self._settings_verified:
            return
        current: dict[str, str] = dict(
            connection.execute(
                "SELECT name, current_setting(name) FROM pg_settings WHERE LOWER(name) = ANY(%s)", [[*self._settings]]
            ).fetchall()
        )
        for name, value in current.items():
            if value.lower() != self._settings[name.lower()].lower():
                raise EngineError(f"the server does not keep the setting {name}: it is {value!r}")
        if len(current) != len(self._settings):
            raise EngineError(f"the server does not know all settings: {self._settings.keys() - current.keys()}")
        self._settings_verified = True

    def _roll_back(self, connection: "Connection") -> None:
        """End the transaction; a connection that cannot do so is of no more use."""
        try:
            with self.disconnect_after(_GRACE):
                connection.execute("ROLLBACK")
        except driver().Error:
            self._drop_connection()

    def _drop_connection(self) -> None:
        with self._connection_lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(driver().Error):
                    connection.close()


class Snapshot:
    """One state of the data; what takes longer than allowed is stopped."""

    def __init__(self, session: PostgresQuerySession, connection: "Connection") -> None:
        self._session, self._connection, self._deadline = session, connection, time.monotonic() + _PREPARE_TIMEOUT

    @contextmanager
    def reading(self, seconds: float) -> Iterator[None]:
        """Let so many seconds pass from now on, in all; whatever fails is an EngineError."""
        self._deadline = time.monotonic() + seconds
        with translate_errors(), self._session.disconnect_after(seconds + _GRACE):
            yield

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Look at the catalog; whatever fails is an EngineError."""
        with translate_errors(), self._session.disconnect_after(_PREPARE_TIMEOUT + _GRACE):
            yield

    def catalog_rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return rows of the server's own tables."""
        return self._connection.execute(sql, values).fetchall()

    def can_lock(self, table: str) -> bool:
        """Whether the role may lock a table, or all that is behind a view; for who reads some columns, it may not."""
        try:
            with self._connection.transaction():
                self._connection.execute(_LOCK.format(table))
        except driver().errors.InsufficientPrivilege:
            return False
        return True

    def type_oids(self, sql: str) -> tuple[int, ...] | None:
        """Return the types of what a SELECT would give, as the server numbers them; None if it has no such columns."""
        errors = driver().errors
        gone = (errors.UndefinedColumn, errors.UndefinedTable, errors.InvalidSchemaName, errors.InsufficientPrivilege)
        try:
            with self._connection.transaction(), self._connection.cursor(binary=True) as cursor:
                described = cursor.execute(sql).description
        except gone:
            return None
        return tuple(column.type_code for column in described or ())

    def run_select(self, sql: str) -> pa.Table:
        """Run one SELECT that the kernel has written."""
        self._set_statement_timeout()
        with self._connection.cursor(binary=True) as cursor:  # the binary form takes one statement and no more
            cursor.execute(sql)
            described, rows = cursor.description or (), cursor.fetchall()
        columns = zip(*rows, strict=True) if rows else [()] * len(described)
        arrays = [
            pa.array(column, _ARROW_TYPES[each.type_code]) for each, column in zip(described, columns, strict=True)
        ]
        return pa.Table.from_arrays(arrays, names=[each.name for each in described])

    def batches(self, sql: str, size: int) -> Iterator[np.ndarray]:
        """Give the numbers of a SELECT, so many rows at once; no more of them are ever in memory."""
        self._set_statement_timeout()
        chunk_rows = _ROWS_PER_CHUNK if driver().capabilities.has_stream_chunked() else 1
        with self._connection.cursor() as cursor:
            rows: Any = cursor.stream(sql, binary=True, size=chunk_rows)
            with closing(rows):  # what is not taken is not sent
                while batch := list(islice(rows, size)):
                    yield np.array(batch, np.float64)

    def _set_statement_timeout(self) -> None:
        """Leave the next statement what is left of the time."""
        seconds_left = _seconds_left(self._deadline)
        _set_local(self._connection, {"statement_timeout": self._session.timeout_ms("statement_timeout", seconds_left)})


def _seconds_left(deadline: float) -> float:
    """Return how many seconds are left; EngineError if there are none."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise EngineError("the question took too long")
    return seconds


def _set_local(connection: "Connection", settings: Mapping[str, str]) -> None:
    """Change settings until the end of the transaction."""
    calls = ", ".join(["pg_catalog.set_config(%s, %s, true)"] * len(settings))
    connection.execute(f"SELECT {calls}", [word for pair in settings.items() for word in pair])
