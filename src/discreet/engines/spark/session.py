"""A session on a Spark Connect server, with time limits, reopened when lost and released at the end."""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from discreet.engines.server_session import ServerSession
from discreet.engines.spark.connection import apply_settings, error_reason, has_our_settings, new_session, server_name
from discreet.engines.table_source import EngineError, SourceChanged
from discreet.kernel.errors import DiscreetError, PolicyError

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_MAX_INTERRUPTS = 10  # one per second, before the connection is cut
_FIRST_REPLY_TIMEOUT = 60.0  # seconds
_CLEAN_UP_TIMEOUT = 10.0  # seconds to release a session or its cache


class SparkConnectSession(ServerSession):
    """The engine's session; one thread uses it at a time, except for `interrupt`, `disconnect` and `stop_accepting`."""

    def __init__(self, url: str, prepare: Callable[["SparkSession"], None]) -> None:
        super().__init__()
        self._url, self._prepare = url, prepare
        self._spark: SparkSession | None = None
        self._prepared = self._timed_out = False
        _OPEN_SESSIONS.add(self)

    @contextmanager
    def use(self, seconds: float) -> Iterator["SparkSession"]:
        """Yield the session, reopened if it was lost; failures and timeouts are EngineErrors.

        After a failure the session is dropped, so that nothing in it affects the next question. The server is asked to
        stop the work; a task that does not respond runs to its end, unobserved.
        """
        self.check_usable()
        try:
            with self.time_limit(seconds):
                yield self._live_session()
        except DiscreetError:
            if self._timed_out:
                self.drop()
            raise
        except Exception as error:  # noqa: BLE001 - from Spark, the connection or our own code
            self.drop()
            cause = (
                f"it exceeded the time limit of {seconds:g} seconds"
                if self._timed_out
                else error_reason(error, self._url)
            )
            raise EngineError(f"the engine failed: {cause}") from None  # logs would print the original error
        except BaseException:
            self.drop()
            raise

    @contextmanager
    def time_limit(self, seconds: float) -> Iterator[None]:
        """Interrupt the work after `seconds`."""
        done, self._timed_out = threading.Event(), False
        watchdog = threading.Thread(target=self._enforce_time_limit, args=(done, seconds), daemon=True)
        watchdog.start()
        try:
            yield
        finally:
            done.set()
            watchdog.join()
        if self._timed_out:  # even if it has just ended, the interrupts might stop the next question
            raise TimeoutError

    def interrupt(self) -> None:
        """Interrupt everything that is running."""
        spark = self._spark
        if spark is not None:  # in a thread, because the server may hang
            threading.Thread(target=_run_quietly, args=(spark.interruptAll,), daemon=True).start()

    def disconnect(self) -> None:
        """Close the connection, even while something is running."""
        spark = self._spark
        if spark is not None:
            _run_quietly(spark.client.close)

    def abandon(self) -> None:
        """Leave the connection to the parent process; closing it in a forked child would block forever."""
        if self._spark is not None:
            client: Any = self._spark.client
            client.close, client._closed = (lambda: None), True  # noqa: SLF001 - the client has no public way

    def _enforce_time_limit(self, done: threading.Event, seconds: float) -> None:
        if done.wait(seconds):
            return
        self._timed_out = True
        for _ in range(_MAX_INTERRUPTS):  # repeated, because an interrupt before the work begins is lost
            self.interrupt()
            if done.wait(1):
                return
        self.disconnect()

    def _live_session(self) -> "SparkSession":
        if self._spark is not None:
            if has_our_settings(self._spark):
                return self._spark
            self.drop()  # the session expired, or the server was restarted
        self._spark = spark = new_session(self._url)
        try:
            self._await_first_reply(spark)
            apply_settings(spark)
            self._prepare(spark)
        except DiscreetError as error:
            self.drop()
            if self._prepared and isinstance(error, PolicyError):
                # Without the original message, which is for the owner only: the path of a file may contain a value.
                raise SourceChanged("the tables have changed. Reopen the engine.") from None
            raise
        self._prepared = True
        return spark

    def _await_first_reply(self, spark: "SparkSession") -> None:
        """Wait for a first reply, with a shorter time limit than a question's: the address may be wrong."""
        timed_out = threading.Event()

        def give_up() -> None:
            timed_out.set()
            self.disconnect()

        timer = threading.Timer(_FIRST_REPLY_TIMEOUT, give_up)
        timer.daemon = True
        timer.start()
        try:
            _ = spark.version
        except Exception:
            if timed_out.is_set():
                raise EngineError(
                    f"{server_name(self._url)} does not respond. Check the address, and that the server is running."
                ) from None
            raise
        finally:
            timer.cancel()

    def drop(self) -> None:
        """Stop the session, if there is one."""
        spark, self._spark = self._spark, None
        if spark is not None:
            run_briefly(_stop_session, spark)


_OPEN_SESSIONS: weakref.WeakSet[SparkConnectSession] = weakref.WeakSet()


def _abandon_sessions() -> None:
    for session in list(_OPEN_SESSIONS):
        session.abandon()


os.register_at_fork(after_in_child=_abandon_sessions)


def run_briefly(work: Callable[..., object], *args: object) -> None:
    """Run a clean-up for at most some seconds, because the server may hang; its errors are ignored."""
    worker = threading.Thread(target=_run_quietly, args=(work, *args), daemon=True)
    worker.start()
    worker.join(_CLEAN_UP_TIMEOUT)


def _stop_session(spark: "SparkSession") -> None:
    spark.client.set_retry_policies([])  # do not wait for a server that is down
    spark.stop()


def _run_quietly(work: Callable[..., object], *args: object) -> None:
    with suppress(Exception):
        work(*args)
