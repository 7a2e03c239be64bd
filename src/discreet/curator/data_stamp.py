"""Detect data files that changed under the same `version`; reported to the owner only.

Cheap facts about each table's files (names, sizes and times, and the footers of Parquet files) are kept as a keyed
hash, one for each version of the data, in a file beside the ledger that only the owner can read.
"""

import glob
import hmac
import json
import os
import secrets
from collections.abc import Collection, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from discreet.curator.ledger_location import checkpoint_path
from discreet.policy import Policy

_MAX_FOOTER_BYTES = 1 << 26


def stamp_path(policy: Policy) -> Path | None:
    """Return where the stamps of a policy's data lie: beside its ledger, or the policy; None if nothing is kept."""
    if policy.data.ledger == ":memory:":
        return None
    ledger = policy.ledger_location
    return (
        ledger.with_name(f"{ledger.name}.stamp") if isinstance(ledger, Path) else _path_beside_policy(policy, ".stamp")
    )


def owner_log_path(policy: Policy) -> Path:
    """Return where the owner's log lies unless another place is named: beside the ledger, or beside the policy."""
    ledger = policy.ledger_location
    if isinstance(ledger, Path) and policy.data.ledger != ":memory:":
        return ledger.with_name(f"{ledger.name}.log")
    return _path_beside_policy(policy, ".log")


def _path_beside_policy(policy: Policy, suffix: str) -> Path:
    return checkpoint_path(policy).with_suffix(suffix)


def changed_tables(policy: Policy, frames: Collection[str] = ()) -> list[str]:
    """Return the tables whose files are not those that were seen under this version; `frames` are not from files."""
    path = stamp_path(policy)
    stored = _read_stamps(path) if path else None
    if stored is None:
        return []
    earlier, current = stored["stamps"].get(policy.data.version, {}), _compute_stamps(policy, stored["key"], frames)
    return [table for table, stamp in current.items() if earlier.get(table, stamp) != stamp]


def record_stamps(policy: Policy, frames: Collection[str] = ()) -> None:
    """Keep the stamps of tables that were not seen before under this version; what is known stays as it is."""
    path = stamp_path(policy)
    if path is None:
        return
    stored = _read_stamps(path) or {"key": secrets.token_hex(32), "stamps": {}}
    earlier = stored["stamps"].get(policy.data.version, {})
    updated = {**_compute_stamps(policy, stored["key"], frames), **earlier}
    if updated != earlier:
        stored["stamps"][policy.data.version] = updated
        _write_stamps(path, stored)


def changed_tables_warning(policy: Policy, tables: Collection[str]) -> str:
    """Say which tables changed, what follows from it, and what to do."""
    table_list = f"table{'' if len(tables) == 1 else 's'} {', '.join(tables)}"
    return (
        f"{policy.data.name}: the files of {table_list} have changed, but version is still "
        f"{json.dumps(policy.data.version)}: cached answers are about the earlier data. Change version in [data]; if "
        f"the rows are the same, delete {stamp_path(policy)}."
    )


def _compute_stamps(policy: Policy, key: str, frames: Collection[str]) -> dict[str, str]:
    if policy.data.engine != "duckdb":
        return {}
    stamps = {}
    for table, source in policy.sources().items():
        facts: list[Any] = []
        with suppress(OSError):  # gone meanwhile, or not to be read: the engine says so
            facts = [] if table in frames else list(_file_facts(source))
        if facts:
            stamps[table] = hmac.digest(bytes.fromhex(key), json.dumps(facts).encode(), "sha256").hex()
    return stamps


def _file_facts(source: str) -> Iterator[list[Any]]:
    """Yield what is known of each file of a source without reading a row."""
    path = Path(source)
    if path.parent.is_file():  # file.duckdb/table
        path = path.parent
    paths = [str(path)] if path.exists() else sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207 - a whole path
    for file_path in filter(os.path.isfile, paths):
        status = os.stat(file_path)  # noqa: PTH116 - paths are texts here
        yield [file_path, status.st_size, status.st_mtime_ns, _parquet_footer_hash(file_path, status.st_size)]


def _parquet_footer_hash(path: str, size: int) -> str:
    """Return a hash of a Parquet file's footer, which holds schema, sizes and statistics; of other files, nothing."""
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
    """Replace the file in one step; it can be read by its owner only, from the start."""
    with NamedTemporaryFile("w", dir=path.parent, prefix=f"{path.name}.", delete=False) as file:  # 0600
        json.dump(stored, file)
    Path(file.name).replace(path)
