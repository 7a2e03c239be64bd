"""The folder to which queries spill: private, locked while its process runs, and removed once orphaned.

A spilled file contains raw values. Only the owner can enter its folder (mode 0700), and on file systems with access
control lists, files in it are created with mode 0600 regardless of the umask. The umask itself is not changed, because
it belongs to the whole process, in which other threads create files, too.
"""

import fcntl
import os
import re
import shutil
import struct
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass

from discreet.kernel.errors import PolicyError

_PREFIX = "discreet-spill-"
_NAME = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")  # as mkdtemp completes it
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OWNER, _GROUP, _OTHERS, _NOBODY = 0x01, 0x04, 0x20, 0xFFFFFFFF  # tags and id of Linux's posix_acl_xattr.h
_OWNER_ONLY = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, rights, _NOBODY) for tag, rights in ((_OWNER, 6), (_GROUP, 0), (_OTHERS, 0))
)


@dataclass(frozen=True)
class SpillFolder:
    """A folder, and the descriptor that locks it; the lock ends with the process, even if it is killed."""

    path: str
    lock: int

    def remove(self) -> None:
        """Remove the folder with everything in it, then unlock it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


def make_spill_folder(location: str | None = None) -> SpillFolder:
    """Create a folder inside `location` (None: the system's temporary folder), and remove orphaned ones there.

    >>> folder = make_spill_folder()
    >>> oct(os.stat(folder.path).st_mode & 0o777)
    '0o700'
    >>> folder.remove()
    """
    parent = location or tempfile.gettempdir()
    try:
        remove_orphans(parent)
        while (folder := _create_locked_folder(parent)) is None:
            pass
    except OSError as error:
        message = f"folder: cannot use {parent} ({error.strerror}). Choose a folder on a local disk."
        raise PolicyError(message) from None
    return folder


def _create_locked_folder(parent: str) -> SpillFolder | None:
    """Create and lock a folder; None if another process removed it as an orphan before it was locked."""
    path = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
    try:
        lock = os.open(path, _OPEN_FOLDER)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_at(path, lock):
            _default_to_private_files(path)
            return SpillFolder(path, lock)
    except BaseException:
        os.close(lock)
        shutil.rmtree(path, ignore_errors=True)
        raise
    os.close(lock)
    return None


def remove_orphans(parent: str) -> None:
    """Remove this user's spill folders whose processes have ended; those in use are locked and stay."""
    with os.scandir(parent) as entries:
        paths = [entry.path for entry in entries if _NAME.fullmatch(entry.name)]
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


def _is_at(path: str, opened: int) -> bool:
    """Whether a path still refers to the folder that was opened there."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(opened))  # noqa: PTH116 - paths are strings, as in DuckDB
    except FileNotFoundError:
        return False


def _default_to_private_files(path: str) -> None:
    """Set a default access control list, by which files in a folder are created with mode 0600."""
    if sys.platform == "linux":
        with suppress(OSError):  # the file system has no such lists; the mode of the folder protects the files
            os.setxattr(path, "system.posix_acl_default", _OWNER_ONLY)
