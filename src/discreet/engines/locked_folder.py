"""Folders that are locked while their process runs, so that others can remove those whose process has ended."""

import fcntl
import os
import re
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class LockedFolder:
    """A folder, and the descriptor that locks it; the lock ends with the process, even if it is killed."""

    path: str
    lock: int

    def remove(self) -> None:
        """Remove the folder with everything in it, then unlock it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


def create_locked_folder(parent: str, prefix: str) -> LockedFolder:
    """Create a private folder (mode 0700) with a new name and lock it.

    >>> folder = create_locked_folder(tempfile.gettempdir(), "discreet-example-")
    >>> oct(os.stat(folder.path).st_mode & 0o777)
    '0o700'
    >>> folder.remove()
    """
    while (folder := _try_to_create(parent, prefix)) is None:
        pass
    return folder


def remove_orphans(parent: str, prefix: str) -> None:
    """Remove this user's folders with a prefix whose processes have ended; those in use are locked and stay."""
    name = re.compile(rf"{re.escape(prefix)}[a-z0-9_]{{8}}")  # as mkdtemp completes it
    with os.scandir(parent) as entries:
        paths = [entry.path for entry in entries if name.fullmatch(entry.name)]
    for path in paths:
        with suppress(OSError):  # removed meanwhile, a symbolic link, or another user's
            lock = os.open(path, _OPEN_FOLDER)
            try:
                if os.fstat(lock).st_uid == os.geteuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError while it is in use
                    if _is_at(path, lock):
                        shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)


def _try_to_create(parent: str, prefix: str) -> LockedFolder | None:
    """Create and lock a folder; None if another process removed it as an orphan before it was locked."""
    path = tempfile.mkdtemp(prefix=prefix, dir=parent)
    try:
        lock = os.open(path, _OPEN_FOLDER)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_at(path, lock):
            return LockedFolder(path, lock)
    except BaseException:
        os.close(lock)
        shutil.rmtree(path, ignore_errors=True)
        raise
    os.close(lock)
    return None


def _is_at(path: str, opened: int) -> bool:
    """Whether a path still refers to the folder that was opened there."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(opened))  # noqa: PTH116 - paths are strings, as in DuckDB
    except FileNotFoundError:
        return False
