"""Publish a plan: everything is charged at once, before any data is read; then its parts are released one by one."""

import datetime as dt
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from discreet.answer.model import Answer
from discreet.curator.curator import Charge, Curator
from discreet.kernel.errors import Failed, PolicyError, Refused
from discreet.kernel.event import OWNER, Event, EventState, Receipt
from discreet.kernel.fingerprint import digest
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.pricing import data_version
from discreet.publish.family_tables import PublishedTable
from discreet.publish.files import write_release
from discreet.publish.parts import Part, PartResult
from discreet.publish.plan import PublicationPlan
from discreet.publish.planning import plan_parts
from discreet.publish.record import ReleaseRecord


@dataclass(frozen=True, eq=False)
class Release:
    """A published release: its folder, its results by name, and the names of parts that were charged but are missing.

    `cost` is that of the whole plan, and `paid` what was charged now: nothing if the plan was published before.
    """

    name: str
    folder: Path
    tables: Mapping[str, PublishedTable | Answer]
    synthetic: Mapping[str, PublishedTable]
    missing: tuple[str, ...]
    cost: Loss
    paid: Loss
    record: ReleaseRecord = field(repr=False)


def publish(
    curator: Curator,
    plan: PublicationPlan | str | PathLike[str],
    out: str | PathLike[str],
    *,
    key: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Release:
    """Publish the tables and synthetic rows of a plan in a folder; publishing the same plan again is free.

    The plan is charged as a whole before any data is read. Its `key` identifies the publication: by default it follows
    from the plan and the data version. Results that are in the ledger are read back; a part that was charged, but whose
    result was lost in a crash, stays charged and is missing.
    """
    loaded = plan if isinstance(plan, PublicationPlan) else PublicationPlan.load(plan)
    parts = plan_parts(curator, loaded)
    target = check_folder(Path(out), loaded)
    base = key or digest(("publication", loaded.text, data_version(curator.policy)))
    keys = {part.name: f"{base[:100]}/{part.name}" for part in parts}
    recorded = _recorded(curator, parts, keys)
    paid, receipts = ZERO_LOSS, {}
    if not recorded:
        progress("charging the ledger")
        paid, receipts = _charge(curator, parts, keys)
    results = []
    for part in parts:
        progress(f"releasing {part.name}")
        results.append(_result_of(curator, part, recorded.get(part.name), receipts.get(part.name)))
    progress("writing the files")
    record = _record(curator, loaded, results)
    write_release(target, curator.policy, curator.ledger, loaded, results, record)
    tables = {table.name: table for result in results if result.kind != "synthetic rows" for table in result.tables}
    synthetic = {table.name: table for result in results if result.kind == "synthetic rows" for table in result.tables}
    missing = tuple(name for result in results if result.missing for name in result.names)
    cost = sum((part.cost for part in parts), ZERO_LOSS)
    return Release(loaded.release.name, target, tables, synthetic, missing, cost, paid, record)


def check_folder(folder: Path, plan: PublicationPlan) -> Path:
    """Return the folder to publish in, which must not exist, be empty, or hold an earlier publication of the plan."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise PolicyError(f"--out: {folder} is not a folder. Choose another path.")
    stored = folder / "plan.toml"
    if folder.is_dir() and any(folder.iterdir()) and not (stored.is_file() and stored.read_text("utf-8") == plan.text):
        raise PolicyError(f"--out: {folder} is not empty, and holds no earlier publication of this plan. Choose another.")
    return folder


def _recorded(curator: Curator, parts: list[Part], keys: Mapping[str, str]) -> dict[str, tuple[Event, bytes | None]]:
    """Return the parts that were charged before under these keys, with their stored results."""
    found = {}
    for part in parts:
        for event, answer in curator.ledger.answers(keys=[(OWNER, keys[part.name])]):
            if part.charge(curator, "")[1].question != event.question:
                raise Refused("key: this key was used for a different plan. Use another key.")
            found[part.name] = event, answer
    return found


def _charge(curator: Curator, parts: list[Part], keys: Mapping[str, str]) -> tuple[Loss, dict[str, Receipt]]:
    """Charge all parts in one transaction; whatever cannot be read is refused before."""
    with ExitStack() as readable:
        for part in parts:
            part.check_readable(curator, readable)
    charges: list[Charge] = [part.charge(curator, keys[part.name]) for part in parts]
    receipts = curator.ledger.charge_together(charges)
    paid = sum((loss for loss, _, _ in charges), ZERO_LOSS)
    return paid, {part.name: receipt for part, receipt in zip(parts, receipts, strict=True)}


def _result_of(
    curator: Curator, part: Part, recorded: tuple[Event, bytes | None] | None, receipt: Receipt | None
) -> PartResult:
    """Release a part, or read its result back; a part whose result is lost is missing."""
    if recorded is not None:
        event, answer = recorded
        if event.state is not EventState.RELEASED or answer is None:
            return part.missing(event.id)
        return part.read_back(curator, event.id, answer)
    if receipt is None:
        return part.missing("")  # the plan was charged before, without this part
    try:
        return part.release(curator, receipt)
    except Failed:  # the reason is in the owner's log
        return part.missing(receipt.id)


def _record(curator: Curator, plan: PublicationPlan, results: list[PartResult]) -> ReleaseRecord:
    stated = plan.release.invariants
    return ReleaseRecord(
        name=plan.release.name,
        plan_text=plan.text,
        time=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        parts=tuple(part for result in results for part in result.describe()),
        invariants=None if stated is None else () if stated == "none" else (stated,),
        post_processing=tuple(dict.fromkeys(text for result in results for text in result.post_processing)),
    )


