"""JSON files beside the ledger: readable by their owner only, replaced atomically, and locked while they change."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from discreet.kernel.errors import PolicyError


class OwnerFile:
    """A file of JSON, or a value in memory if there is no path, as for a ledger in memory.

    >>> file = OwnerFile(None, "people", dict)
    >>> file.change(lambda values: {**values, "seed": "00"})
    >>> file.read()
    {'seed': '00'}
    """

    def __init__(self, path: Path | None, content: str, empty: Callable[[], Any]) -> None:
        self.path, self._content, self._empty = path, content, empty
        self._values: Any = None
        self._stamp: tuple[int, int, int] | None = None

    def read(self) -> Any:
        """Return the values, which the caller must not change; the file is read again only if it was replaced."""
        if self.path is None:
            self._values = self._empty() if self._values is None else self._values
            return self._values
        try:
            status = self.path.stat()
        except FileNotFoundError:
            self.change(lambda values: values)
            return self.read()
        stamp = status.st_ino, status.st_mtime_ns, status.st_size
        if stamp != self._stamp:
            self._values, self._stamp = self._parse(), stamp
        return self._values

    def change(self, edit: Callable[[Any], Any]) -> None:
        """Replace the values by edited ones, alone among all processes; an exception changes nothing."""
        if self.path is None:
            self._values = edit(self.read())
            return
        with _locked(self.path):
            try:
                values = self._parse()
            except FileNotFoundError:
                values = self._empty()
            _replace_file(self.path, json.dumps(edit(values), ensure_ascii=False, indent=1))

    def _parse(self) -> Any:
        assert self.path is not None
        try:
            return json.loads(self.path.read_text(encoding="utf-8"))
        except ValueError:
            raise PolicyError(f"{self.path}: not a file of {self._content}. Restore it or remove it.") from None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace_file(path: Path, text: str) -> None:
    """Write a file beside the old one and rename it; a crash leaves one of the two, complete."""
    with NamedTemporaryFile("w", dir=path.parent, prefix=f"{path.name}.", delete=False, encoding="utf-8") as file:
        try:  # created with mode 0600
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
