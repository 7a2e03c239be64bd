"""The manifest of a release: SHA-256 of every file, of the policy, of the plan, and the checkpoint of the ledger.

It ends with the SHA-256 of its own text, and has one form only, so that a changed byte of the manifest is found too. It
has no hash, size or date of the data: these would disclose whether the data changed.
"""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from discreet.html_page import make_printable
from discreet.kernel.errors import PolicyError

MANIFEST = "manifest.json"
_FORMAT = 2
_MAX_BYTES = 64 * 1024 * 1024  # of a manifest
_MAX_FILES = 100_000
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CHUNK = 1 << 20
_OWN_DIGEST = "manifest"
NO_DIGESTS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class LedgerPoint:
    """A row of the ledger by its number and hash, which depends on all rows before it.

    >>> LedgerPoint(7, "ab" * 32).row
    7
    """

    row: int
    hash: str


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8.

    >>> text_digest("")[:8]
    'e3b0c442'
    """
    return sha256(text.encode()).hexdigest()


def file_digests(folder: Path, known: Mapping[str, str] = NO_DIGESTS) -> dict[str, str]:
    """Return the SHA-256 of every file of a folder but the manifest, by its path within the folder.

    Files with a known one are not read. PolicyError if the folder has anything but folders and regular files, such as a
    symbolic link.

    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp())
    >>> _ = (folder / "a.csv").write_text("")
    >>> [name for name in file_digests(folder)]
    ['a.csv']
    """
    found, problems = _walk(folder)
    if problems:
        raise PolicyError(f"{folder}: {problems[0]}. A release has regular files only.")
    return {name: known.get(name) or _digest(folder / name) for name in found if name != MANIFEST}


def write_manifest(
    folder: str | Path,
    *,
    policy_text: str,
    plan_text: str | None = None,
    ledger: LedgerPoint | None = None,
    digests: Mapping[str, str] = NO_DIGESTS,
) -> Path:
    r"""Write the manifest of a release as its last file, replacing an earlier one; return its path.

    `digests` has the SHA-256 of files that need not be read again.

    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp())
    >>> _ = (folder / "a.csv").write_text("ward,n\n")
    >>> write_manifest(folder, policy_text="[data]").name, verify(folder)
    ('manifest.json', [])
    >>> _ = (folder / "a.csv").write_text("ward,m\n")
    >>> verify(folder)
    ['a.csv: changed since the release']
    """
    root = Path(folder)
    content = {
        "format": _FORMAT,
        "files": file_digests(root, digests),
        "policy": text_digest(policy_text),
        "plan": None if plan_text is None else text_digest(plan_text),
        "ledger": None if ledger is None else {"row": ledger.row, "hash": ledger.hash},
    }
    fresh = root / f".{MANIFEST}.new"
    fresh.write_bytes(_manifest_bytes(content))
    return fresh.replace(root / MANIFEST)


def verify(folder: str | Path) -> list[str]:
    """Return what differs from the manifest of a release: files changed, missing or added, and entries not allowed.

    No link is followed, and nothing outside the folder is read.

    >>> verify("/nowhere")
    ['manifest.json: missing, so this is not a release']
    """
    root = Path(folder)
    try:
        recorded = read_manifest(root)["files"]
    except ValueError as error:
        return [str(error)]
    found, problems = _walk(root)
    present = {name for name in found if name != MANIFEST}
    for name, digest in recorded.items():
        if problem := _name_problem(name):
            problems.append(f"{_shown(name)}: {problem}")
        elif name not in present:
            problems += [] if any(text.startswith(f"{_shown(name)}: ") for text in problems) else [_missing(name)]
        elif _digest(root / name) != digest:
            problems.append(f"{_shown(name)}: changed since the release")
    problems += [f"{_shown(name)}: added after the release" for name in sorted(present - set(recorded))]
    return sorted(problems)


def read_manifest(root: Path) -> dict[str, Any]:
    """Return the content of a manifest; ValueError, which names the file, if it is missing or malformed."""
    path = root / MANIFEST
    try:
        content = _read_regular(path)
    except FileNotFoundError:
        raise ValueError(f"{MANIFEST}: missing, so this is not a release") from None
    except OSError as error:
        raise ValueError(f"{MANIFEST}: cannot be read ({error.strerror or 'not a regular file'})") from None
    try:
        data = json.loads(content.decode(), object_pairs_hook=_unique_keys)
        del data[_OWN_DIGEST]
        _check_manifest(data)
        written = _manifest_bytes(data)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{MANIFEST}: malformed, or of another version") from None
    if content != written:
        raise ValueError(f"{MANIFEST}: changed since the release")
    return dict(data)


def _manifest_bytes(content: Mapping[str, Any]) -> bytes:
    """Return the text of a manifest, with the digest of all that precedes it, in the only form that is accepted."""
    digest = text_digest(json.dumps(content))
    return f"{json.dumps({**content, _OWN_DIGEST: digest}, indent=1, ensure_ascii=False)}\n".encode()


def _check_manifest(data: Mapping[str, Any]) -> None:
    if data["format"] != _FORMAT or set(data) != {"format", "files", "policy", "plan", "ledger"}:
        raise ValueError
    digests = [*data["files"].values(), data["policy"], *filter(None, [data["plan"]])]
    if data["ledger"] is not None:
        digests.append(LedgerPoint(**data["ledger"]).hash)
    if not all(_DIGEST.fullmatch(digest) for digest in digests):
        raise ValueError


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key occurs twice")
    return result


def _name_problem(name: str) -> str:
    """Return why a name in the manifest is not a path within the folder; "" if it is one."""
    path = PurePosixPath(name)
    if not name or path.is_absolute() or "\\" in name or "\0" in name or ".." in path.parts:
        return "leaves the folder of the release"
    return "" if str(path) == name and name != "." else "not a plain path"


def _walk(root: Path) -> tuple[list[str], list[str]]:
    """Return the regular files below a folder, sorted, and one problem for everything else; links are not followed."""
    files: list[str] = []
    problems: list[str] = []
    for name, mode in _entries(root, ""):
        if stat.S_ISREG(mode):
            files.append(name)
        else:
            kind = "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file"
            problems.append(f"{_shown(name)}: {kind}, which a release must not contain")
        if len(files) > _MAX_FILES:
            raise PolicyError(f"{root}: more than {_MAX_FILES:,} files. Give the folder of a release.")
    return sorted(files), problems


def _entries(root: Path, prefix: str) -> Iterator[tuple[str, int]]:
    with os.scandir(root / prefix) as entries:
        for entry in entries:
            name, mode = prefix + entry.name, entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                yield from _entries(root, f"{name}/")
            else:
                yield name, mode


def _digest(path: Path) -> str:
    result = sha256()
    with os.fdopen(_open(path), "rb") as file:
        while chunk := file.read(_CHUNK):
            result.update(chunk)
    return result.hexdigest()


def _read_regular(path: Path) -> bytes:
    descriptor = _open(path)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "not a regular file")
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise OSError(0, "larger than 64 MB")
    return content


def _open(path: Path) -> int:
    """Open a file without following a link, and without waiting for the other end of a pipe."""
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)


def _missing(name: str) -> str:
    return f"{_shown(name)}: missing"


def _shown(name: str) -> str:
    return make_printable(name[:200])
