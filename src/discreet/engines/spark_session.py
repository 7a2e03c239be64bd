"""A session of our own on a Spark Connect server: it is made anew when it is lost, limited in time, and given back."""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from discreet.engines.sources import EngineError, SourceChanged
from discreet.engines.spark_connecting import connected, is_ours, reason, set_all, shown
from discreet.kernel.errors import DiscreetError, PolicyError

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_TRIES = 10  # of stopping a question, one each second, before the connection is cut
_GREETING = 60.0  # seconds until a server must have said something
_FAREWELL = 10.0  # seconds for giving back a session, or what it keeps


class Session:
    """What stands between the engine and the server; used by one thread at a time, but for `stop` and `end`."""

    def __init__(self, url: str, prepare: Callable[["SparkSession"], None]) -> None:
        self._url, self._prepare = url, prepare
        self._process = os.getpid()
        self._spark: SparkSession | None = None
        self._prepared = self._ended = self._late = False
        _OPEN.add(self)

    @property
    def ours(self) -> bool:
        """Whether it was opened in this process, and not in one that this is a child of."""
        return os.getpid() == self._process

    def check(self) -> None:
        """EngineError if no question can be answered any more."""
        if not self.ours:
            raise EngineError("the engine was opened in another process. Open one in each process.")
        if self._ended:
            raise EngineError("the engine is closed. Open another one.")

    @contextmanager
    def asked(self, seconds: float) -> Iterator["SparkSession"]:
        """Give the session, a new one if the last is gone; whatever fails, or takes longer than this, EngineError.

        After a failure the session is given up, so that nothing is left in it for the next question. The server is told
        to stop the work; work that does not listen goes on there, seen by nobody, until it ends.
        """
        self.check()
        try:
            with self.watched(seconds):
                yield self._alive()
        except DiscreetError:
            if self._late:
                self._drop()
            raise
        except Exception as error:  # noqa: BLE001 - whatever Spark, the way to it and our own code say
            self._drop()
            said = f"it took longer than {seconds:g} seconds" if self._late else reason(error, self._url)
            raise EngineError(f"the engine stopped: {said}") from None  # logs would print what it comes from
        except BaseException:
            self._drop()
            raise

    @contextmanager
    def watched(self, seconds: float) -> Iterator[None]:
        """Stop what takes longer than this."""
        done, self._late = threading.Event(), False
        guard = threading.Thread(target=self._guard, args=(done, seconds), daemon=True)
        guard.start()
        try:
            yield
        finally:
            done.set()
            guard.join()
        if self._late:  # it has just ended, but what was sent to stop it might stop the next question
            raise TimeoutError

    def stop(self) -> None:
        """Stop what is running, if anything is."""
        spark = self._spark
        if spark is not None:  # in a thread: a server that does not answer must not keep us
            threading.Thread(target=_quietly, args=(spark.interruptAll,), daemon=True).start()

    def cut(self) -> None:
        """Close the connection under what is running."""
        spark = self._spark
        if spark is not None:
            _quietly(spark.client.close)

    def end(self) -> None:
        """Let no more questions begin."""
        self._ended = True

    def close(self) -> None:
        """Give the session back, for good; in a process that did not open it, it is left alone."""
        self._ended = True
        if self.ours:
            self._drop()

    def forget(self) -> None:
        """Leave the connection to the process that this is a child of: to close it here would wait forever."""
        if self._spark is not None:
            client: Any = self._spark.client
            client.close, client._closed = (lambda: None), True  # noqa: SLF001 - it has no other way to be left alone

    def _guard(self, done: threading.Event, seconds: float) -> None:
        if done.wait(seconds):
            return
        self._late = True
        for _ in range(_TRIES):  # again and again: what comes before the question begins is lost
            self.stop()
            if done.wait(1):
                return
        self.cut()

    def _alive(self) -> "SparkSession":
        if self._spark is not None:
            if is_ours(self._spark):
                return self._spark
            self._drop()  # the server has forgotten it, or was started again
        self._spark = spark = connected(self._url)
        try:
            self._greet(spark)
            set_all(spark)
            self._prepare(spark)
        except DiscreetError as error:
            self._drop()
            if self._prepared and isinstance(error, PolicyError):
                # Not in its own words, which are for the eyes of whoever opens: a file's path may hold a value.
                raise SourceChanged("the tables are no longer what they were. Open the engine again.") from None
            raise
        self._prepared = True
        return spark

    def _greet(self, spark: "SparkSession") -> None:
        """Wait for a first word, and not for as long as a question may take: an address may be nobody's."""
        silent = threading.Event()

        def leave() -> None:
            silent.set()
            self.cut()

        guard = threading.Timer(_GREETING, leave)
        guard.daemon = True
        guard.start()
        try:
            _ = spark.version
        except Exception:
            if silent.is_set():
                raise EngineError(f"{shown(self._url)} does not answer. Check the address, and that it runs.") from None
            raise
        finally:
            guard.cancel()

    def _drop(self) -> None:
        spark, self._spark = self._spark, None
        if spark is not None:
            briefly(_end, spark)


_OPEN: weakref.WeakSet[Session] = weakref.WeakSet()


def _in_child() -> None:
    for session in list(_OPEN):
        session.forget()


os.register_at_fork(after_in_child=_in_child)


def briefly(work: Callable[..., object], *args: object) -> None:
    """Tidy up, as far as it can be done within some seconds: a server that hangs keeps nobody."""
    ending = threading.Thread(target=_quietly, args=(work, *args), daemon=True)
    ending.start()
    ending.join(_FAREWELL)


def _end(spark: "SparkSession") -> None:
    spark.client.set_retry_policies([])  # a server that is gone is not waited for
    spark.stop()


def _quietly(work: Callable[..., object], *args: object) -> None:
    with suppress(Exception):
        work(*args)
