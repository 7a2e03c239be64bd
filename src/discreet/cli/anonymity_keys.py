"""The key of the pseudonyms: found before any work, and kept only when its table is about to be written."""

from collections.abc import Iterable
from pathlib import Path

import typer

from discreet.anonymity import new_key, read_key
from discreet.anonymity.pseudonyms.keys import check_key_place, store_key
from discreet.cli.stops import wrong


def find_key(file: Path | None, beside: Iterable[Path | None]) -> bytes | None:
    """Read a key, or make one; never in the folder of the data, with which it would be given away."""
    if file is None:
        return None
    for path in beside:
        if path is not None and path.resolve().parent == file.resolve().parent:
            wrong(
                f"--key-file: {file} is in the folder of {path}. Keep the key apart from the data: name another folder."
            )
    if file.exists():
        return read_key(file)
    check_key_place(file)
    return new_key()


def keep_key(key: bytes, file: Path) -> None:
    """Write a key that is new."""
    if file.exists() and read_key(file) == key:
        return
    store_key(key, file)  # which refuses a file that somebody else made meanwhile
    typer.echo(f"{file}: a new key. Keep it apart from the data; whoever has it can undo the pseudonyms.", err=True)
