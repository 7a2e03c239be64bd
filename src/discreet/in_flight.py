"""Questions under way with an idempotency key: whoever uses the same key meanwhile waits for the first to end.

The lock of a key is held while its question is being answered: by threads in this process, beside the ledger's file
for other processes, in the database for other servers. A process that dies loses its locks at once, so whoever gets
one knows that nobody is at work with this key: a charge without an answer then has an unknown outcome.

The wait ends when the first answer is stored or has failed, which whoever asked first sees at the same time.
"""

import fcntl
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any

from discreet.kernel.errors import LedgerError, Refused
from discreet.kernel.event import canonical
from discreet.kernel.ledger import Account, Ledger
from discreet.kernel.ledger.place import File, Memory

_PAUSES = 0.002, 0.1  # seconds between two attempts: at first, and at most


class InFlight:
    """The keys that are in use in this process, and the way to those of others; `seconds` is the longest wait."""

    def __init__(self, ledger: Ledger, seconds: float) -> None:
        self._seconds = seconds
        self._place: Any = ledger._session.place if isinstance(ledger, Account) else None  # noqa: SLF001 - its name
        self._held: set[str] = set()
        self._released = threading.Condition()
        self._descriptors: set[int] = set()
        self._database: Any = None
        _OPEN.add(self)

    @contextmanager
    def alone(self, by: str, key: str) -> Iterator[None]:
        """Wait until nobody is at work with this key of this analyst, and keep others waiting meanwhile.

        >>> from discreet.kernel.ledger import memory_ledger
        >>> from discreet.kernel.loss import Budget
        >>> in_flight = InFlight(memory_ledger(name="demo", budget=Budget(1)), seconds=0)
        >>> with in_flight.alone("ana", "k"), in_flight.alone("ana", "k"):  # doctest: +ELLIPSIS
        ...     pass
        Traceback (most recent call last):
        discreet.kernel.errors.Refused: key: the first question with this key is still being answered...
        """
        name = sha256(canonical([by, key]).encode()).hexdigest()[:32]
        end = time.monotonic() + self._seconds
        with self._alone_here(name, end), self._alone_elsewhere(name, end):
            yield

    def close(self) -> None:
        """Let go of the database, if there is one."""
        if self._database:
            self._database.close()

    @contextmanager
    def _alone_here(self, name: str, end: float) -> Iterator[None]:
        with self._released:
            if not self._released.wait_for(lambda: name not in self._held, end - time.monotonic()):
                raise self._refused()
            self._held.add(name)
        try:
            yield
        finally:
            with self._released:
                self._held.discard(name)
                self._released.notify_all()

    def _alone_elsewhere(self, name: str, end: float) -> Any:
        match self._place:
            case None | Memory():
                return nullcontext()
            case File():
                return self._file_lock(Path(f"{self._place}.key-{name}"), end)
        from discreet.postgres.key_locks import KeyLocks  # noqa: PLC0415 - an extra

        self._database = self._database or KeyLocks(self._place)
        return self._database.alone(name, lambda attempt: self._wait(attempt, end))

    @contextmanager
    def _file_lock(self, path: Path, end: float) -> Iterator[None]:
        """Lock a file that is there only while somebody uses it; a kill leaves it behind, empty and not locked."""
        try:
            while (descriptor := self._locked(path, end)) is None:
                pass  # whoever had the lock has removed the file: others lock a new one
        except OSError as cause:
            raise LedgerError(f"{path}: the key cannot be locked ({cause}). Check the folder and the disk.") from cause
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            self._drop(descriptor)

    def _locked(self, path: Path, end: float) -> int | None:
        """Open and lock a file; None if it is no longer there."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._descriptors.add(descriptor)
        try:
            self._wait(lambda: _try_flock(descriptor), end)
            if _is_at(descriptor, path):
                return descriptor
        except BaseException:
            self._drop(descriptor)
            raise
        self._drop(descriptor)
        return None

    def _drop(self, descriptor: int) -> None:
        self._descriptors.discard(descriptor)
        os.close(descriptor)

    def _wait(self, attempt: Callable[[], bool], end: float) -> None:
        pause, longest = _PAUSES
        while not attempt():
            if time.monotonic() > end:
                raise self._refused()
            time.sleep(pause)
            pause = min(2 * pause, longest)

    def _refused(self) -> Refused:
        return Refused(
            "key: the first question with this key is still being answered, and the time limit of "
            f"{self._seconds:g} seconds is over. Nothing was charged for this one: use the same key again later."
        )

    def _forget(self) -> None:
        """In a forked child: no thread that holds a key exists here, and the parent's locks end with the parent."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._held, self._released, self._descriptors = set(), threading.Condition(), set()
        if self._database:
            self._database.forget()


def _try_flock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


_OPEN: weakref.WeakSet[InFlight] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for each in _OPEN:
        each._forget()  # noqa: SLF001 - this module's own


os.register_at_fork(after_in_child=_after_fork_in_child)
