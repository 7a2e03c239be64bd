"""Locks for idempotency keys: a second request with the same key waits for the first.

The lock of a key is held while its query is being answered: a condition variable within this process, a file next to
the ledger for other processes, an advisory lock in the database for other servers. A process that dies releases its
locks at once, so the holder of a lock knows that no other request with this key is running, and that a charge without
an answer has an unknown outcome.
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
from discreet.kernel.event import canonical_json
from discreet.kernel.ledger import Ledger
from discreet.ledger_sqlite.location import FileLocation, MemoryLocation

_RETRY_PAUSES = 0.002, 0.1  # first and longest pause between two attempts, in seconds


class InFlightKeys:
    """Locks on the keys that are in use, within this process and across processes; `seconds` is the longest wait."""

    def __init__(self, ledger: Ledger, seconds: float) -> None:
        self._timeout = seconds
        self._ledger_location: Any = ledger.session.location  # locks live where the ledger is
        self._dataset = ledger.dataset
        self._locked_names: set[str] = set()
        self._unlocked = threading.Condition()
        self._descriptors: set[int] = set()
        self._database_locks: Any = None
        _INSTANCES.add(self)

    @contextmanager
    def exclusive(self, by: str, key: str) -> Iterator[None]:
        """Hold the lock of one analyst's key; wait for it until the time limit, then refuse.

        >>> from discreet.ledger_sqlite import memory_ledger
        >>> from discreet.kernel.loss import Budget
        >>> in_flight = InFlightKeys(memory_ledger(name="demo", budget=Budget(1)), seconds=0)
        >>> with in_flight.exclusive("ana", "k"), in_flight.exclusive("ana", "k"):  # doctest: +ELLIPSIS
        ...     pass
        Traceback (most recent call last):
        discreet.kernel.errors.Refused: key: an earlier query with this key is still running...
        """
        name = sha256(canonical_json([by, self._dataset, key]).encode()).hexdigest()[:32]
        deadline = time.monotonic() + self._timeout
        with self._lock_in_process(name, deadline), self._lock_across_processes(name, deadline):
            yield

    def close(self) -> None:
        """Close the connection to the database, if there is one."""
        if self._database_locks:
            self._database_locks.close()

    @contextmanager
    def _lock_in_process(self, name: str, deadline: float) -> Iterator[None]:
        with self._unlocked:
            if not self._unlocked.wait_for(lambda: name not in self._locked_names, deadline - time.monotonic()):
                raise self._timeout_refusal()
            self._locked_names.add(name)
        try:
            yield
        finally:
            with self._unlocked:
                self._locked_names.discard(name)
                self._unlocked.notify_all()

    def _lock_across_processes(self, name: str, deadline: float) -> Any:
        match self._ledger_location:
            case MemoryLocation():
                return nullcontext()
            case FileLocation():
                return self._lock_file(Path(f"{self._ledger_location}.key-{name}"), deadline)
        from discreet.ledger_postgres.key_locks import KeyLocks  # noqa: PLC0415 - an extra

        self._database_locks = self._database_locks or KeyLocks(self._ledger_location)
        return self._database_locks.exclusive_lock(name, lambda attempt: self._wait_until(attempt, deadline))

    @contextmanager
    def _lock_file(self, path: Path, deadline: float) -> Iterator[None]:
        """Lock a file that exists only while in use; a killed process leaves it behind, empty and unlocked."""
        try:
            while (descriptor := self._open_and_lock(path, deadline)) is None:
                pass  # the previous holder has removed the file: lock a new one
        except OSError as cause:
            raise LedgerError(f"{path}: cannot lock the key ({cause}). Check the folder and the disk.") from cause
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            self._close_descriptor(descriptor)

    def _open_and_lock(self, path: Path, deadline: float) -> int | None:
        """Open and lock a file; None if it was removed meanwhile."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._descriptors.add(descriptor)
        try:
            self._wait_until(lambda: _try_flock(descriptor), deadline)
            if _is_same_file(descriptor, path):
                return descriptor
        except BaseException:
            self._close_descriptor(descriptor)
            raise
        self._close_descriptor(descriptor)
        return None

    def _close_descriptor(self, descriptor: int) -> None:
        self._descriptors.discard(descriptor)
        os.close(descriptor)

    def _wait_until(self, attempt: Callable[[], bool], deadline: float) -> None:
        pause, longest = _RETRY_PAUSES
        while not attempt():
            if time.monotonic() > deadline:
                raise self._timeout_refusal()
            time.sleep(pause)
            pause = min(2 * pause, longest)

    def _timeout_refusal(self) -> Refused:
        return Refused(
            "key: an earlier query with this key is still running after the time limit of "
            f"{self._timeout:g} seconds. This one was not charged. Retry later with the same key."
        )

    def _reset_after_fork(self) -> None:
        """Drop all locks in a forked child: threads that hold keys exist only in the parent, which keeps its locks."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._locked_names, self._unlocked, self._descriptors = set(), threading.Condition(), set()
        if self._database_locks:
            self._database_locks.abandon_connection()


def _try_flock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


_INSTANCES: weakref.WeakSet[InFlightKeys] = weakref.WeakSet()


def _reset_all_after_fork() -> None:
    for instance in _INSTANCES:
        instance._reset_after_fork()  # noqa: SLF001 - of this module


os.register_at_fork(after_in_child=_reset_all_after_fork)
