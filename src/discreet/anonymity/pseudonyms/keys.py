"""Pseudonym keys: random bytes of the operating system, stored in a file that only its owner can read."""

import os
import secrets
import stat
from itertools import pairwise
from pathlib import Path

from discreet.arguments import ArgumentError, ArgumentTypeError, require

_KEY_BYTES = 32
MIN_KEY_BYTES = 16  # 128 bits, beyond exhaustive search
_MIN_DISTINCT_BYTES = 8  # 16 random bytes have fewer distinct values with probability 10⁻¹²
_MAX_FILE_BYTES = 4096


def new_key() -> bytes:
    """Return a new secret key of 32 bytes.

    >>> len(new_key()), new_key() == new_key()
    (32, False)
    """
    return secrets.token_bytes(_KEY_BYTES)


def write_key(path: str | Path) -> bytes:
    """Create a key, write it to a new file that only its owner can read, and return it; never overwrite a file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_key(Path(folder) / "taxi.key") == read_key(Path(folder) / "taxi.key")
    True
    """
    key = new_key()
    store_key(key, path)
    return key


def check_key_folder(path: str | Path) -> None:
    """Raise ValueError if the folder of a key file does not exist."""
    folder = Path(path).parent
    require(folder.is_dir(), f"folder {folder} does not exist. Create it: mkdir -p -m 700 {folder}", "path")


def store_key(key: bytes, path: str | Path) -> None:
    """Write a key to a new file that only its owner can read."""
    check_key_folder(path)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise ArgumentError(
            "path",
            f"{path} already exists. Without the key in it, the same pseudonyms could not be computed again. "
            "Read it with read_key, or choose another file.",
        ) from None
    except OSError as error:
        raise ArgumentError("path", f"{path} cannot be written ({error.strerror}). Choose another file.") from None
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        os.fchmod(stream.fileno(), 0o600)  # independent of the umask
        stream.write(f"{key.hex()}\n")
        stream.flush()
        os.fsync(stream.fileno())


def read_key(path: str | Path) -> bytes:
    """Return the key in a file, which must belong to you and be readable by nobody else.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     key = write_key(Path(folder) / "taxi.key")
    ...     read_key(Path(folder) / "taxi.key") == key
    True
    """
    try:
        with Path(path).open("rb") as stream:
            state = os.fstat(stream.fileno())
            text = stream.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ArgumentError("path", f"{path} cannot be read ({error.strerror}). Name a file with a key.") from None
    require(
        not state.st_mode & (stat.S_IRWXG | stat.S_IRWXO),
        f"{path} is accessible to other users (mode {stat.S_IMODE(state.st_mode):04o}). "
        f"If nobody has read it, run chmod 600 {path}. Otherwise create a new key.",
        "path",
    )
    require(
        state.st_uid == os.geteuid(),
        f"{path} belongs to another user, who knows the key. Use a file of your own, or create a new key.",
        "path",
    )
    try:
        return check_key(bytes.fromhex(text.decode("ascii").strip()))
    except ArgumentError as error:
        reason = error.problem.partition(". ")[0]
    except ValueError:
        reason = "not hexadecimal"
    raise ArgumentError("path", f"{path} is not a valid key ({reason}). Use a file with a random key in hexadecimal.")


def check_key(key: object) -> bytes:
    """Return the key as bytes; TypeError or ValueError if it is not a strong key."""
    if isinstance(key, str):
        raise ArgumentTypeError(
            "key",
            "expected random bytes, not str. Pass new_key() or read_key(path), "
            "or bytes.fromhex(text) if the text is a key in hexadecimal.",
        )
    if not isinstance(key, bytes | bytearray):
        raise ArgumentTypeError(
            "key", f"expected bytes, such as new_key() or read_key(path), not {type(key).__name__}."
        )
    require(
        len(key) >= MIN_KEY_BYTES,
        f"{len(key)} bytes can be guessed. Use at least {MIN_KEY_BYTES} random bytes, such as new_key().",
        "key",
    )
    require(
        not all(32 <= byte < 127 for byte in key),
        "these bytes are printable characters, not random bytes, and can be guessed. Use new_key(), "
        "or bytes.fromhex(text) if the text is a key in hexadecimal.",
        "key",
    )
    steps = {(after - before) % 256 for before, after in pairwise(key)}
    require(
        len(set(key)) >= _MIN_DISTINCT_BYTES and len(steps) != 1,
        "these bytes follow a pattern and can be guessed. Use random bytes, such as new_key().",
        "key",
    )
    return bytes(key)
