"""Publish a plan: everything is charged at once, before any data is read; then its parts are released one by one."""

import datetime as dt
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path

from discreet.curator.curator import Curator
from discreet.kernel.errors import Failed, PolicyError, Refused, run_charged
from discreet.kernel.event import OWNER, Event, EventState, Receipt
from discreet.kernel.fingerprint import digest
from discreet.kernel.ledger.terms import OverBudget
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.pricing import data_version
from discreet.pricing.remaining_budget import remaining_text
from discreet.publish.describe import Describable
from discreet.publish.files import write_release
from discreet.publish.parts import Part, PartResult
from discreet.publish.plan import PublicationPlan
from discreet.publish.planning import plan_parts
from discreet.publish.record import ReleaseRecord
from discreet.publish.report.report import report_of


@dataclass(frozen=True, eq=False)
class Release:
    """A published release: its folder, its results by name, and the names of parts that were charged but are missing.

    `cost` is that of the whole plan, and `paid` what was charged now: nothing if the plan was published before.

    >>> record = ReleaseRecord("Visits", plan_text="", time="2026-11-18T12:00:00+00:00", parts=())
    >>> Release("Visits", Path("out"), {}, {}, ("wards",), Loss(1), ZERO_LOSS, record).missing
    ('wards',)
    """

    name: str
    folder: Path
    tables: Mapping[str, Describable]
    synthetic: Mapping[str, Describable]
    missing: tuple[str, ...]
    cost: Loss
    paid: Loss
    record: ReleaseRecord = field(repr=False)


def publish(  # noqa: PLR0913 - keyword-only, with defaults
    curator: Curator,
    plan: PublicationPlan | str | PathLike[str],
    out: str | PathLike[str],
    *,
    key: str | None = None,
    policy_text: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Release:
    """Publish the tables and synthetic rows of a plan in a folder; publishing the same plan again is free.

    The plan is charged as a whole before any data is read. Its `key` identifies the publication: by default it follows
    from the plan and the data version. Results that are in the ledger are read back; a part that was charged, but whose
    result was lost in a crash, stays charged and is missing. The manifest has the hash of `policy_text`, the policy's
    file.

    >>> from tempfile import mkdtemp
    >>> import discreet as dc, pyarrow as pa
    >>> visits = pa.table({"patient": list(range(600)), "ward": ["A", "B", "A"] * 200})
    >>> plan = PublicationPlan.parse('''
    ...     [release]
    ...     name = "Visits 2026"
    ...     epsilon = 2
    ...     [tables.wards]
    ...     sql = "SELECT ward, COUNT(*) AS n FROM data GROUP BY ward"
    ...     [tables.all_visits]
    ...     sql = "SELECT COUNT(*) AS n FROM data"
    ... ''')
    >>> with dc.open(
    ...     visits, unit="patient", budget=3, columns={"ward": ["A", "B"]}, groups=1, rows=1, ledger=":memory:"
    ... ) as curator:
    ...     release = publish(curator, plan, mkdtemp())
    ...     again = publish(curator, plan, mkdtemp())
    >>> sorted(release.tables), release.paid.epsilon, again.paid.epsilon
    (['all_visits', 'wards'], Fraction(2, 1), Fraction(0, 1))
    """
    loaded = plan if isinstance(plan, PublicationPlan) else PublicationPlan.load(plan)
    parts = plan_parts(curator, loaded)
    target = check_folder(Path(out), loaded)
    base = key or digest(("publication", loaded.text, data_version(curator.policy)))
    keys = {part.name: f"{base[:100]}/{part.name}" for part in parts}
    recorded = _recorded(curator, parts, keys)
    paid, receipts = ZERO_LOSS, dict[str, Receipt]()
    if not recorded:
        progress("charging the ledger")
        paid, receipts = _charge(curator, parts, keys)
    results = []
    for part in parts:
        progress(f"releasing {part.name}")
        results.append(_result_of(curator, part, recorded, receipts))
    progress("writing the files")
    record = _record(loaded, results)
    report = partial(report_of, curator.policy, curator.ledger, policy_text=policy_text)
    record = write_release(target, loaded, results, record, report)
    tables, synthetic = (
        {
            name: table
            for result in results
            if (result.kind == "synthetic rows") is rows
            for name, table in zip(result.names, result.tables, strict=False)
        }
        for rows in (False, True)
    )
    missing = tuple(name for result in results if result.missing for name in result.names)
    cost = sum((result.cost for result in results), ZERO_LOSS)
    return Release(loaded.release.name, target, tables, synthetic, missing, cost, paid, record)


def check_folder(folder: Path, plan: PublicationPlan) -> Path:
    """Return the folder to publish in, which must not exist, be empty, or hold an earlier publication of the plan."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise PolicyError(f"--out: {folder} is not a folder. Choose another path.")
    stored = folder / "plan.toml"
    if folder.is_dir() and any(folder.iterdir()) and not (stored.is_file() and stored.read_text("utf-8") == plan.text):
        raise PolicyError(
            f"--out: {folder} is not empty, and holds no earlier publication of this plan. Choose another."
        )
    return folder


def _recorded(curator: Curator, parts: list[Part], keys: Mapping[str, str]) -> dict[str, tuple[Event, bytes | None]]:
    """Return the parts that were charged before under these keys, with their stored results."""
    found = {}
    for part in parts:
        for event, answer in curator.ledger.answers(keys=[(OWNER, keys[part.name])]):
            if _plan_of(event.question) != _plan_of(part.record):
                raise Refused("key: this key was used for a different plan. Use another key.")
            found[part.name] = event, answer
    return found


def _plan_of(record: str) -> object:
    """Return the digest of the plan that a record names; None if it names none."""
    try:
        return json.loads(record).get("plan")
    except (ValueError, AttributeError):
        return None


def _charge(curator: Curator, parts: list[Part], keys: Mapping[str, str]) -> tuple[Loss, dict[str, Receipt]]:
    """Charge all parts in one transaction; whatever cannot be read is refused before."""
    charges = {part.name: charge for part in parts if (charge := part.charge(curator, keys[part.name])) is not None}
    try:
        receipts = curator.ledger.charge_together(list(charges.values()))
    except OverBudget as refusal:
        raise Refused(f"{refusal} {remaining_text(curator.releases.limits(OWNER))}") from None
    paid = sum((loss for loss, _, _ in charges.values()), ZERO_LOSS)
    return paid, dict(zip(charges, receipts, strict=True))


def _result_of(
    curator: Curator, part: Part, recorded: Mapping[str, tuple[Event, bytes | None]], receipts: Mapping[str, Receipt]
) -> PartResult:
    """Release a part, or read its result back; a part whose result is lost is missing."""
    if part.name in recorded:
        event, answer = recorded[part.name]
        lost = event.state is not EventState.RELEASED or answer is None
        result = part.missing(event.id) if lost else part.read_back(curator, event.id, answer or b"")
        return replace(result, cost=event.loss or ZERO_LOSS)
    receipt = receipts.get(part.name)
    try:
        return run_charged(f"part {part.name} of a publication", lambda: part.release(curator, receipt))
    except Failed:
        return part.missing(receipt.id if receipt else "")


def _record(plan: PublicationPlan, results: list[PartResult]) -> ReleaseRecord:
    stated = plan.release.invariants
    return ReleaseRecord(
        name=plan.release.name,
        plan_text=plan.text,
        time=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        parts=tuple(part for result in results for part in result.describe()),
        invariants=None if stated is None else () if stated == "none" else (stated,),
        post_processing=tuple(dict.fromkeys(text for result in results for text in result.post_processing)),
    )
