"""Keys of pseudonyms: made by the operating system, kept in a file that only its owner may read."""

import os
import secrets
import stat
from itertools import pairwise
from pathlib import Path

_KEY_BYTES = 32
MIN_KEY_BYTES = 16  # bytes: 128 bits, beyond anybody's search
_MIN_DISTINCT_BYTES = 8  # of 16 bytes of chance, fewer than that many are different once in 10¹²
_MAX_FILE_BYTES = 4096  # a file that is longer is no key


def new_key() -> bytes:
    """Return a new secret key of 32 bytes.

    >>> len(new_key()), new_key() == new_key()
    (32, False)
    """
    return secrets.token_bytes(_KEY_BYTES)


def write_key(path: str | Path) -> bytes:
    """Make a new key, write it to a new file that only its owner may read, and return it; nothing is overwritten.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_key(Path(folder) / "taxi.key") == read_key(Path(folder) / "taxi.key")
    True
    """
    key = new_key()
    store_key(key, path)
    return key


def check_key_folder(path: str | Path) -> None:
    """Refuse a place for a key in a folder that is not there."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise ValueError(f"path: there is no folder {folder}. Make it: mkdir -p -m 700 {folder}")


def store_key(key: bytes, path: str | Path) -> None:
    """Write a key to a new file that only its owner may read."""
    check_key_folder(path)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise ValueError(
            f"path: {path} is there already, and without its key nobody can make the same pseudonyms again. "
            "Read it with read_key, or name another file."
        ) from None
    except OSError as error:
        raise ValueError(f"path: {path} cannot be written ({error.strerror}). Name another file.") from None
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        os.fchmod(stream.fileno(), 0o600)  # whatever the umask left
        stream.write(f"{key.hex()}\n")
        stream.flush()
        os.fsync(stream.fileno())


def read_key(path: str | Path) -> bytes:
    """Return the key in a file, which must be yours, and readable by nobody else.

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
        raise ValueError(f"path: {path} cannot be read ({error.strerror}). Make a key with write_key(path).") from None
    if state.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ValueError(
            f"path: others than the owner may open {path} (mode {stat.S_IMODE(state.st_mode):04o}). "
            f"If nobody has, take their right away: chmod 600 {path}. Else make a new key."
        )
    if state.st_uid != os.geteuid():
        raise ValueError(
            f"path: {path} belongs to another user, who knows the key. Name a file of your own, or make a new key."
        )
    try:
        return check_key(bytes.fromhex(text.decode("ascii").strip()))
    except ValueError as error:
        is_weak = str(error).startswith("key: ")
        why = str(error).removeprefix("key: ").partition(". ")[0] if is_weak else "it holds no hexadecimal digits"
        raise ValueError(f"path: {path} is no key ({why}). Name a file that write_key wrote.") from None


def check_key(key: object) -> bytes:
    """Return a key that can be one, or say why it cannot."""
    if isinstance(key, str):
        raise TypeError(
            "key: a text is what somebody thought of, and somebody else can. Give bytes: new_key(), read_key(path), "
            "or bytes.fromhex(text) if these are the digits of a key."
        )
    if not isinstance(key, bytes | bytearray):
        raise TypeError(f"key: give bytes, such as new_key() or read_key(path), not {type(key).__name__}.")
    if len(key) < MIN_KEY_BYTES:
        raise ValueError(f"key: {len(key)} bytes can be guessed. Give at least {MIN_KEY_BYTES}, such as new_key().")
    if all(32 <= byte < 127 for byte in key):
        raise ValueError(
            "key: these bytes are characters that can be typed, of which fewer are likely than it seems. Give bytes of "
            "chance, such as new_key(); the digits of a key become its bytes by bytes.fromhex(text)."
        )
    steps = {(after - before) % 256 for before, after in pairwise(key)}
    if len(set(key)) < _MIN_DISTINCT_BYTES or len(steps) == 1:
        raise ValueError(
            "key: these bytes follow a pattern and can be guessed. Give bytes of chance, as new_key() does."
        )
    return bytes(key)
