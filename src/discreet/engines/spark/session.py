"""A session on a Spark Connect server: reopened when lost, limited in time, and given back."""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from discreet.engines.spark.connection import apply_settings, error_reason, has_our_settings, new_session, server_name
from discreet.engines.table_source import EngineError, SourceChanged
from discreet.kernel.errors import DiscreetError, PolicyError

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_MAX_INTERRUPTS = 10  # of stopping a question, one each second, before the connection is cut
_FIRST_REPLY_TIMEOUT = 60.0  # seconds until a server must have said something
_CLEAN_UP_TIMEOUT = 10.0  # seconds for giving back a session, or what it keeps


class SparkConnectSession:
    """What stands between the engine and the server; used by one thread at a time, but for `interrupt` and `stop_accepting`."""

    def __init__(self, url: str, prepare: Callable[["SparkSession"], None]) -> None:
        self._url, self._prepare = url, prepare
        self._pid = os.getpid()
        self._spark: SparkSession | None = None
        self._prepared = self._ended = self._timed_out = False
        _OPEN_SESSIONS.add(self)

    @property
    def is_own_process(self) -> bool:
        """Whether it was opened in this process, and not in one that this is a child of."""
        return os.getpid() == self._pid

    def check_usable(self) -> None:
        """EngineError if no question can be answered any more."""
        if not self.is_own_process:
            raise EngineError("the engine was opened in another process. Open one in each process.")
        if self._ended:
            raise EngineError("the engine is closed. Open another one.")

    @contextmanager
    def use(self, seconds: float) -> Iterator["SparkSession"]:
        """Give the session, a new one if the last is gone; whatever fails, or takes longer than this, EngineError.

        After a failure the session is given up, so that nothing is left in it for the next question. The server is told
        to stop the work; work that does not listen goes on there, seen by nobody, until it ends.
        """
        self.check_usable()
        try:
            with self.time_limit(seconds):
                yield self._live_session()
        except DiscreetError:
            if self._timed_out:
                self._drop_session()
            raise
        except Exception as error:  # noqa: BLE001 - whatever Spark, the way to it and our own code say
            self._drop_session()
            cause = f"it took longer than {seconds:g} seconds" if self._timed_out else error_reason(error, self._url)
            raise EngineError(f"the engine stopped: {cause}") from None  # logs would print what it comes from
        except BaseException:
            self._drop_session()
            raise

    @contextmanager
    def time_limit(self, seconds: float) -> Iterator[None]:
        """Stop what takes longer than this."""
        done, self._timed_out = threading.Event(), False
        watchdog = threading.Thread(target=self._enforce_time_limit, args=(done, seconds), daemon=True)
        watchdog.start()
        try:
            yield
        finally:
            done.set()
            watchdog.join()
        if self._timed_out:  # it has just ended, but what was sent to stop it might stop the next question
            raise TimeoutError

    def interrupt(self) -> None:
        """Stop what is running, if anything is."""
        spark = self._spark
        if spark is not None:  # in a thread: a server that does not answer must not keep us
            threading.Thread(target=_run_quietly, args=(spark.interruptAll,), daemon=True).start()

    def disconnect(self) -> None:
        """Close the connection under what is running."""
        spark = self._spark
        if spark is not None:
            _run_quietly(spark.client.close)

    def stop_accepting(self) -> None:
        """Let no more questions begin."""
        self._ended = True

    def close(self) -> None:
        """Give the session back, for good; in a process that did not open it, it is left alone."""
        self._ended = True
        if self.is_own_process:
            self._drop_session()

    def abandon(self) -> None:
        """Leave the connection to the process that this is a child of: to close it here would wait forever."""
        if self._spark is not None:
            client: Any = self._spark.client
            client.close, client._closed = (lambda: None), True  # noqa: SLF001 - it has no other way to be left alone

    def _enforce_time_limit(self, done: threading.Event, seconds: float) -> None:
        if done.wait(seconds):
            return
        self._timed_out = True
        for _ in range(_MAX_INTERRUPTS):  # again and again: what comes before the question begins is lost
            self.interrupt()
            if done.wait(1):
                return
        self.disconnect()

    def _live_session(self) -> "SparkSession":
        if self._spark is not None:
            if has_our_settings(self._spark):
                return self._spark
            self._drop_session()  # the server has forgotten it, or was started again
        self._spark = spark = new_session(self._url)
        try:
            self._await_first_reply(spark)
            apply_settings(spark)
            self._prepare(spark)
        except DiscreetError as error:
            self._drop_session()
            if self._prepared and isinstance(error, PolicyError):
                # Not in its own words, which are for the eyes of whoever opens: a file's path may hold a value.
                raise SourceChanged("the tables are no longer what they were. Open the engine again.") from None
            raise
        self._prepared = True
        return spark

    def _await_first_reply(self, spark: "SparkSession") -> None:
        """Wait for a first word, and not for as long as a question may take: an address may be nobody's."""
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
                    f"{server_name(self._url)} does not answer. Check the address, and that it runs."
                ) from None
            raise
        finally:
            timer.cancel()

    def _drop_session(self) -> None:
        spark, self._spark = self._spark, None
        if spark is not None:
            run_briefly(_stop_session, spark)


_OPEN_SESSIONS: weakref.WeakSet[SparkConnectSession] = weakref.WeakSet()


def _abandon_sessions() -> None:
    for session in list(_OPEN_SESSIONS):
        session.abandon()


os.register_at_fork(after_in_child=_abandon_sessions)


def run_briefly(work: Callable[..., object], *args: object) -> None:
    """Tidy up, as far as it can be done within some seconds: a server that hangs keeps nobody."""
    worker = threading.Thread(target=_run_quietly, args=(work, *args), daemon=True)
    worker.start()
    worker.join(_CLEAN_UP_TIMEOUT)


def _stop_session(spark: "SparkSession") -> None:
    spark.client.set_retry_policies([])  # a server that is gone is not waited for
    spark.stop()


def _run_quietly(work: Callable[..., object], *args: object) -> None:
    with suppress(Exception):
        work(*args)
