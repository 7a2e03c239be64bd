"""Whether a policy's files have changed under the same `version`: for the owner only, and never part of an answer.

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

from discreet.places import head_beside
from discreet.policy import Policy

_LARGEST_FOOTER = 1 << 26


def stamp_beside(policy: Policy) -> Path | None:
    """Return where the stamps of a policy's data lie: beside its ledger, or the policy; None if nothing is kept."""
    if policy.data.ledger == ":memory:":
        return None
    ledger = policy.ledger
    return ledger.with_name(f"{ledger.name}.stamp") if isinstance(ledger, Path) else _beside(policy, ".stamp")


def log_beside(policy: Policy) -> Path:
    """Return where the owner's log lies unless another place is named: beside the ledger, or beside the policy."""
    ledger = policy.ledger
    if isinstance(ledger, Path) and policy.data.ledger != ":memory:":
        return ledger.with_name(f"{ledger.name}.log")
    return _beside(policy, ".log")


def _beside(policy: Policy, end: str) -> Path:
    return head_beside(policy).with_suffix(end)


def changed_tables(policy: Policy, frames: Collection[str] = ()) -> list[str]:
    """Return the tables whose files are not those that were seen under this version; `frames` are not from files."""
    place = stamp_beside(policy)
    known = _read(place) if place else None
    if known is None:
        return []
    seen, now = known["stamps"].get(policy.data.version, {}), _stamps(policy, known["key"], frames)
    return [table for table, stamp in now.items() if seen.get(table, stamp) != stamp]


def keep_stamps(policy: Policy, frames: Collection[str] = ()) -> None:
    """Keep the stamps of tables that were not seen before under this version; what is known stays as it is."""
    place = stamp_beside(policy)
    if place is None:
        return
    known = _read(place) or {"key": secrets.token_hex(32), "stamps": {}}
    seen = known["stamps"].get(policy.data.version, {})
    kept = {**_stamps(policy, known["key"], frames), **seen}
    if kept != seen:
        known["stamps"][policy.data.version] = kept
        _write(place, known)


def change_in_words(policy: Policy, tables: Collection[str]) -> str:
    """Say which tables changed, what follows from it, and what to do."""
    some = f"table{'' if len(tables) == 1 else 's'} {', '.join(tables)}"
    return (
        f"{policy.data.name}: the files of {some} have changed, but version is still "
        f"{json.dumps(policy.data.version)}: cached answers are about the earlier data. Change version in [data]; if "
        f"the rows are the same, delete {stamp_beside(policy)}."
    )


def _stamps(policy: Policy, key: str, frames: Collection[str]) -> dict[str, str]:
    if policy.data.engine != "duckdb":
        return {}
    found = {}
    for table, source in policy.sources().items():
        facts: list[Any] = []
        with suppress(OSError):  # gone meanwhile, or not to be read: the engine says so
            facts = [] if table in frames else list(_facts(source))
        if facts:
            found[table] = hmac.digest(bytes.fromhex(key), json.dumps(facts).encode(), "sha256").hex()
    return found


def _facts(source: str) -> Iterator[list[Any]]:
    """Yield what is known of each file of a source without reading a row."""
    path = Path(source)
    if path.parent.is_file():  # file.duckdb/table
        path = path.parent
    paths = [str(path)] if path.exists() else sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207 - a whole path
    for each in filter(os.path.isfile, paths):
        found = os.stat(each)  # noqa: PTH116 - paths are texts here
        yield [each, found.st_size, found.st_mtime_ns, _footer(each, found.st_size)]


def _footer(path: str, size: int) -> str:
    """Return a hash of a Parquet file's footer, which holds schema, sizes and statistics; of other files, nothing."""
    if size < 12 or not path.lower().endswith((".parquet", ".pq")):
        return ""
    with Path(path).open("rb") as file:
        file.seek(size - 8)
        length = int.from_bytes(file.read(4), "little")
        if not 0 < length <= min(size - 12, _LARGEST_FOOTER):
            return ""
        file.seek(size - 8 - length)
        return sha256(file.read(length)).hexdigest()


def _read(place: Path) -> dict[str, Any] | None:
    try:
        known = json.loads(place.read_text())
        bytes.fromhex(known["key"])
        fine = all(isinstance(stamps, dict) for stamps in (known["stamps"], *known["stamps"].values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return known if fine else None


def _write(place: Path, known: dict[str, Any]) -> None:
    """Replace the file in one step; it can be read by its owner only, from the start."""
    with NamedTemporaryFile("w", dir=place.parent, prefix=f"{place.name}.", delete=False) as file:  # 0600
        json.dump(known, file)
    Path(file.name).replace(place)
