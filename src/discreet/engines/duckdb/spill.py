"""The folder to which queries spill: private, locked while its process runs, and removed once orphaned.

A spilled file contains raw values. Only the owner can enter its folder (mode 0700), and on file systems with access
control lists, files in it are created with mode 0600 regardless of the umask. The umask itself is not changed, because
it belongs to the whole process, in which other threads create files, too.
"""

import os
import struct
import sys
import tempfile
from contextlib import suppress

from discreet.engines.locked_folder import LockedFolder, create_locked_folder, remove_orphans
from discreet.kernel.errors import PolicyError

PREFIX = "discreet-spill-"
_OWNER, _GROUP, _OTHERS, _NOBODY = 0x01, 0x04, 0x20, 0xFFFFFFFF  # tags and id of Linux's posix_acl_xattr.h
_OWNER_ONLY = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, rights, _NOBODY) for tag, rights in ((_OWNER, 6), (_GROUP, 0), (_OTHERS, 0))
)


def make_spill_folder(location: str | None = None) -> LockedFolder:
    """Create a folder inside `location` (None: the system's temporary folder), and remove orphaned ones there.

    >>> folder = make_spill_folder()
    >>> oct(os.stat(folder.path).st_mode & 0o777)
    '0o700'
    >>> folder.remove()
    """
    parent = location or tempfile.gettempdir()
    try:
        remove_orphans(parent, PREFIX)
        folder = create_locked_folder(parent, PREFIX)
        _default_to_private_files(folder.path)
    except OSError as error:
        message = f"folder: cannot use {parent} ({error.strerror}). Choose a folder on a local disk."
        raise PolicyError(message) from None
    return folder


def _default_to_private_files(path: str) -> None:
    """Set a default access control list, by which files in a folder are created with mode 0600."""
    if sys.platform == "linux":
        with suppress(OSError):  # the file system has no such lists; the mode of the folder protects the files
            os.setxattr(path, "system.posix_acl_default", _OWNER_ONLY)
