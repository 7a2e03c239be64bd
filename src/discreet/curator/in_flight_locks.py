"""Locks for requests that are being answered: a second one with the same key, or an equal query, waits for the first.

A lock is held while a query is being answered: a condition variable within this process, a file next to the ledger for
other processes, an advisory lock in the database for other servers. A process that dies releases its locks at once, so
the holder of a key's lock knows that no other request with this key is running, and that a charge without an answer has
an unknown outcome.
"""

import fcntl
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from discreet.kernel.errors import LedgerError, Refused
from discreet.kernel.event import canonical_json
from discreet.kernel.ledger import Ledger
from discreet.ledger_sqlite.location import FileLocation, MemoryLocation

_RETRY_PAUSES = 0.002, 0.1  # first and longest pause between two attempts, in seconds


class _Deadline(NamedTuple):
    """When waiting ends, and how."""

    time: float
    refusal: Refused


class InFlightLocks:
    """Locks on keys and queries in use, within this process and across processes; `seconds` is the longest wait."""

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
    def exclusive_key(self, by: str, key: str) -> Iterator[None]:
        """Hold the lock of one analyst's idempotency key; wait for it until the time limit, then refuse.

        >>> from discreet.ledger_sqlite import memory_ledger
        >>> from discreet.kernel.loss import Budget
        >>> in_flight = InFlightLocks(memory_ledger(name="demo", budget=Budget(1)), seconds=0)
        >>> with in_flight.exclusive_key("ana", "k"), in_flight.exclusive_key("ana", "k"):  # doctest: +ELLIPSIS
        ...     pass
        Traceback (most recent call last):
        discreet.kernel.errors.Refused: key: an earlier query with this key is still running...
        """
        waiting_for = "key: an earlier query with this key"
        with self._exclusive(canonical_json([by, self._dataset, key]), waiting_for, "Retry later with the same key."):
            yield

    @contextmanager
    def exclusive_query(self, fingerprints: Iterable[str]) -> Iterator[None]:
        """Hold the lock of all queries for the same totals; wait for it until the time limit, then refuse."""
        with self._exclusive(canonical_json([self._dataset, *sorted(fingerprints)]), "an equal query", "Retry later."):
            yield

    @contextmanager
    def _exclusive(self, identity: str, waiting_for: str, hint: str) -> Iterator[None]:
        refusal = Refused(
            f"{waiting_for} is still running after the time limit of {self._timeout:g} seconds. "
            f"This one was not charged. {hint}"
        )
        name, deadline = (
            sha256(identity.encode()).hexdigest()[:32],
            _Deadline(time.monotonic() + self._timeout, refusal),
        )
        with self._lock_in_process(name, deadline), self._lock_across_processes(name, deadline):
            yield

    def close(self) -> None:
        """Close the connection to the database, if there is one."""
        if self._database_locks:
            self._database_locks.close()

    @contextmanager
    def _lock_in_process(self, name: str, deadline: _Deadline) -> Iterator[None]:
        with self._unlocked:
            if not self._unlocked.wait_for(lambda: name not in self._locked_names, deadline.time - time.monotonic()):
                raise deadline.refusal
            self._locked_names.add(name)
        try:
            yield
        finally:
            with self._unlocked:
                self._locked_names.discard(name)
                self._unlocked.notify_all()

    def _lock_across_processes(self, name: str, deadline: _Deadline) -> Any:
        match self._ledger_location:
            case MemoryLocation():
                return nullcontext()
            case FileLocation():
                return self._lock_file(Path(f"{self._ledger_location}.key-{name}"), deadline)
        from discreet.ledger_postgres.key_locks import KeyLocks  # noqa: PLC0415 - an extra

        self._database_locks = self._database_locks or KeyLocks(self._ledger_location)
        return self._database_locks.exclusive_lock(name, lambda attempt: _wait_until(attempt, deadline))

    @contextmanager
    def _lock_file(self, path: Path, deadline: _Deadline) -> Iterator[None]:
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

    def _open_and_lock(self, path: Path, deadline: _Deadline) -> int | None:
        """Open and lock a file; None if it was removed meanwhile."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._descriptors.add(descriptor)
        try:
            _wait_until(lambda: _try_flock(descriptor), deadline)
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

    def _reset_after_fork(self) -> None:
        """Drop all locks in a forked child: threads that hold keys exist only in the parent, which keeps its locks."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._locked_names, self._unlocked, self._descriptors = set(), threading.Condition(), set()
        if self._database_locks:
            self._database_locks.abandon_connection()


def _wait_until(attempt: Callable[[], bool], deadline: _Deadline) -> None:
    pause, longest = _RETRY_PAUSES
    while not attempt():
        if time.monotonic() > deadline.time:
            raise deadline.refusal
        time.sleep(pause)
        pause = min(2 * pause, longest)


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


_INSTANCES: weakref.WeakSet[InFlightLocks] = weakref.WeakSet()


def _reset_all_after_fork() -> None:
    for instance in _INSTANCES:
        instance._reset_after_fork()  # noqa: SLF001 - of this module


os.register_at_fork(after_in_child=_reset_all_after_fork)
