"""Detect data files that changed while `version` stayed the same, and report them to the owner only.

Names, sizes and modification times of each table's files, and the footers of Parquet files, are stored as a keyed
hash, one per version of the data, in a file next to the ledger that only the owner can read.
"""

import glob
import hmac
import json
import os
import secrets
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from discreet.curator.ledger_location import checkpoint_path
from discreet.policy import Policy

_MAX_FOOTER_BYTES = 1 << 26


def stamp_path(policy: Policy) -> Path | None:
    """Return the path of the stamp file, next to the ledger or the policy; None for a ledger in memory."""
    if policy.data.ledger == ":memory:":
        return None
    return path_beside_ledger(policy, ".stamp")


def owner_log_path(policy: Policy) -> Path:
    """Return the default path of the owner's log, next to the ledger or the policy."""
    return path_beside_ledger(policy, ".log")


def path_beside_ledger(policy: Policy, suffix: str) -> Path:
    """Return a path next to the ledger's file, or next to the policy; each data set of a population has its own."""
    ledger = "" if policy.data.ledger == ":memory:" else policy.ledger_location
    suffix = f".{sha256(policy.dataset.encode()).hexdigest()[:12]}{suffix}" if policy.dataset else suffix
    if isinstance(ledger, Path):
        return ledger.with_name(f"{ledger.name}{suffix}")
    return checkpoint_path(policy).with_suffix(suffix)


def changed_tables(policy: Policy, frames: Collection[str] = ()) -> list[str]:
    """Return the tables whose files differ from those recorded for this version; `frames` are tables without files."""
    path = stamp_path(policy)
    stored = _read_stamps(path) if path else None
    if stored is None:
        return []
    earlier, current = (
        stored["stamps"].get(policy.data.version_label, {}),
        _compute_stamps(policy, stored["key"], frames),
    )
    return [table for table, stamp in current.items() if earlier.get(table, stamp) != stamp]


def record_stamps(policy: Policy, frames: Collection[str] = ()) -> None:
    """Store the stamps of tables that have none for this version yet; existing stamps are kept."""
    path = stamp_path(policy)
    if path is None:
        return
    stored = _read_stamps(path) or {"key": secrets.token_hex(32), "stamps": {}}
    earlier = stored["stamps"].get(policy.data.version_label, {})
    updated = {**_compute_stamps(policy, stored["key"], frames), **earlier}
    if updated != earlier:
        stored["stamps"][policy.data.version_label] = updated
        _write_stamps(path, stored)


def changed_tables_warning(policy: Policy, tables: Collection[str]) -> str:
    """Return a warning that names the changed tables, the consequence and the fix."""
    table_list = f"table{'' if len(tables) == 1 else 's'} {', '.join(tables)}"
    if policy.data.version is None:
        state, action = "the policy declares no version", "Declare"
    else:
        state, action = f"version is still {json.dumps(policy.data.version)}", "Change"
    return (
        f"{policy.data.name}: the files of {table_list} have changed, but {state}, "
        "so cached answers describe the earlier data. "
        f"{action} version in [data], or delete {stamp_path(policy)} if the rows are the same."
    )


def _compute_stamps(policy: Policy, key: str, frames: Collection[str]) -> dict[str, str]:
    if policy.data.engine != "duckdb":
        return {}
    stamps = {}
    policy = replace(policy, base=policy.base.resolve())  # a file has one stamp, however its path is written
    for table, source in policy.sources().items():
        facts: list[Any] = []
        with suppress(OSError):  # the engine reports files that are missing or unreadable
            facts = [] if table in frames else list(_file_facts(source))
        if facts:
            stamps[table] = hmac.digest(bytes.fromhex(key), json.dumps(facts).encode(), "sha256").hex()
    return stamps


def _file_facts(source: str) -> Iterator[list[Any]]:
    """Yield the path, size, modification time and footer hash of each file of a source; no row is read."""
    path = Path(source)
    if path.parent.is_file():  # file.duckdb/table
        path = path.parent
    paths = [str(path)] if path.exists() else sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207 - an absolute pattern
    for file_path in filter(os.path.isfile, paths):
        status = os.stat(file_path)  # noqa: PTH116 - paths are texts here
        yield [file_path, status.st_size, status.st_mtime_ns, _parquet_footer_hash(file_path, status.st_size)]


def _parquet_footer_hash(path: str, size: int) -> str:
    """Return a hash of a Parquet file's footer (schema, sizes and statistics), and "" for other files."""
    if size < 12 or not path.lower().endswith((".parquet", ".pq")):
        return ""
    with Path(path).open("rb") as file:
        file.seek(size - 8)
        length = int.from_bytes(file.read(4), "little")
        if not 0 < length <= min(size - 12, _MAX_FOOTER_BYTES):
            return ""
        file.seek(size - 8 - length)
        return sha256(file.read(length)).hexdigest()


def _read_stamps(path: Path) -> dict[str, Any] | None:
    try:
        stored = json.loads(path.read_text())
        bytes.fromhex(stored["key"])
        is_valid = all(isinstance(stamps, dict) for stamps in (stored["stamps"], *stored["stamps"].values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return stored if is_valid else None


def _write_stamps(path: Path, stored: dict[str, Any]) -> None:
    """Replace the file atomically; only its owner can ever read it."""
    with NamedTemporaryFile("w", dir=path.parent, prefix=f"{path.name}.", delete=False) as file:  # 0600
        json.dump(stored, file)
    Path(file.name).replace(path)
