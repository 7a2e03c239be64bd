"""Publish a plan: everything is charged at once, before any data is read; then its parts are released one by one."""

import datetime as dt
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from os import PathLike
from pathlib import Path

from discreet.answer.text import short_number
from discreet.curator.curator import Curator
from discreet.kernel.errors import Failed, PolicyError, Refused, run_charged
from discreet.kernel.event import OWNER, Event, EventState, Receipt, bounded_text
from discreet.kernel.fingerprint import digest
from discreet.kernel.ledger.terms import OverBudget
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.pricing import data_version
from discreet.pricing.remaining_budget import remaining_text
from discreet.publish.file_tables import Describable
from discreet.publish.files import write_release
from discreet.publish.manifest import file_digests, read_manifest, text_digest
from discreet.publish.parts import Part, PartResult, plan_of
from discreet.publish.plan import PublicationPlan
from discreet.publish.planning import cost_text, plan_parts
from discreet.publish.record import ReleaseRecord
from discreet.publish.report.report import report_of

_MAX_KEY = 99  # characters; a part's name follows
_OTHER_MEANING = (
    "key: this plan was charged under a policy that gave it a different meaning, so its results cannot be read back. "
    "Restore the policy, or use another key, which is a new charge."
)


@dataclass(frozen=True, eq=False)
class Release:
    """A published release: its folder, its results by name, and the names of parts that were charged but are missing.

    `cost` is that of the whole plan, and `paid` what was charged now: nothing if the plan was published before.
    `notes` say which rows tables that add up leave out or clip.

            >>> record = ReleaseRecord("Wards", plan_text="", time="2026-11-18T12:00:00+00:00", parts=())
    >>> release = Release("Wards", Path("out"), {}, {}, (), Loss("1/2"), ZERO_LOSS, record)
    >>> release.missing, release.paid.epsilon
    ((), Fraction(0, 1))
    """

    name: str
    folder: Path
    tables: Mapping[str, Describable]
    synthetic: Mapping[str, Describable]
    missing: tuple[str, ...]
    cost: Loss
    paid: Loss
    record: ReleaseRecord = field(repr=False)
    notes: tuple[str, ...] = ()


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
            >>> people = pa.table({"person": range(100), "sex": ["f", "m"] * 50})
    >>> plan = dc.publish.PublicationPlan.parse('''
    ...     [release]
    ...     name = "People"
    ...     epsilon = 1
    ...     [tables.by_sex]
    ...     sql = "SELECT sex, COUNT(*) AS n FROM data GROUP BY sex"
    ...     [tables.everybody]
    ...     sql = "SELECT COUNT(*) AS n FROM data"
    ... ''')
    >>> with dc.open(
    ...     people, unit="person", budget=1, columns={"sex": ["f", "m"]}, groups=1, rows=1, ledger=":memory:"
    ... ) as curator:
    ...     release = publish(curator, plan, Path(mkdtemp()) / "out")
    ...     again = publish(curator, plan, release.folder)
    >>> release.paid.epsilon, again.paid.epsilon, list(release.tables)
    (Fraction(1, 1), Fraction(0, 1), ['by_sex', 'everybody'])
    >>> counts = release.tables["by_sex"].table.column("n").to_pylist()
    >>> abs(sum(counts) - release.tables["everybody"].table.column("n")[0].as_py()) < 1e-6
    True
    """
    loaded = plan if isinstance(plan, PublicationPlan) else PublicationPlan.load(plan)
    target = check_folder(Path(out), loaded)
    base = digest(("publication", loaded.text, data_version(curator.policy))) if key is None else _check_key(key)
    with curator.exclusive(f"{base}/"):
        paid, results = _release_parts(curator, loaded, base, progress)
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
    notes = tuple(note for result in results for note in result.notes)
    return Release(loaded.release.name, target, tables, synthetic, missing, cost, paid, record, notes)


def check_folder(folder: Path, plan: PublicationPlan) -> Path:
    """Return the folder to publish in, which must not exist, be empty, or hold an earlier publication of the plan."""
    try:
        with suppress(FileNotFoundError):
            folder.lstat()
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise PolicyError(f"--out: {folder} is not a folder. Choose another path.")
        if not folder.is_dir() or not any(folder.iterdir()) or _holds_only(folder, plan):
            return folder
    except (OSError, ValueError) as error:  # too long a name, or no permission
        if isinstance(error, PolicyError):
            raise
        raise PolicyError(f"--out: cannot use this folder ({error}). Choose another path.") from None
    raise PolicyError(
        f"--out: {folder} is not empty, and holds files that are no publication of this plan. Choose another folder."
    )


def _holds_only(folder: Path, plan: PublicationPlan) -> bool:
    """Return whether a folder, which will be replaced, has the files of an earlier publication and nothing else."""
    try:
        manifest = read_manifest(folder)
    except ValueError:
        return False
    return bool(manifest["plan"] == text_digest(plan.text) and file_digests(folder).keys() <= manifest["files"].keys())


def _check_key(key: str) -> str:
    """Return a key that can be followed by the name of a part."""
    try:
        return bounded_text(key, "key", max_length=_MAX_KEY)
    except (TypeError, ValueError) as error:
        raise Refused(f"{error}.") from None


def _release_parts(
    curator: Curator, plan: PublicationPlan, base: str, progress: Callable[[str], None]
) -> tuple[Loss, list[PartResult]]:
    """Charge all parts of a plan, or none if they were charged before, and return what was charged and the results."""
    parts = plan_parts(curator, plan, partial(_charged_cost, curator, base))
    keys = {part.name: f"{base}/{part.name}" for part in parts}
    recorded = _recorded(curator, parts, keys)
    paid, receipts = ZERO_LOSS, dict[str, Receipt]()
    if not recorded:
        progress("charging the ledger")
        paid, receipts = _charge(curator, plan, parts, keys)
    results = []
    for part in parts:
        progress(f"releasing {part.name}")
        results.append(_result_of(curator, part, recorded, receipts))
    return paid, results


def _charged_cost(curator: Curator, base: str, name: str) -> Loss | None:
    """Return the exact cost of a part whose noise was reserved under this key; None if there is none."""
    for event, _ in curator.ledger.answers(keys=[(OWNER, f"{base}/{name}")]):
        with suppress(ValueError, KeyError, TypeError, AttributeError):  # charged for something else
            amount = Fraction(json.loads(event.question)["cost"])
            return Loss(amount) if event.loss and event.loss.epsilon is not None else Loss(None, amount)
    return None


def _recorded(curator: Curator, parts: list[Part], keys: Mapping[str, str]) -> dict[str, tuple[Event, bytes | None]]:
    """Return the parts that were charged before under these keys, with their stored results: all of them, or none."""
    found = {}
    for part in parts:
        for event, answer in curator.ledger.answers(keys=[(OWNER, keys[part.name])]):
            if plan_of(event.question) != plan_of(part.record):
                raise Refused("key: this key was used for a different plan. Use another key.")
            if not part.is_result_of(event):
                raise Refused(_OTHER_MEANING)
            found[part.name] = event, answer
    if found and any(part.name not in found and part.charge(curator, keys[part.name]) for part in parts):
        raise Refused(_OTHER_MEANING)  # a part that was charged together with the others is not one of them
    return found


def _charge(
    curator: Curator, plan: PublicationPlan, parts: list[Part], keys: Mapping[str, str]
) -> tuple[Loss, dict[str, Receipt]]:
    """Charge all parts in one transaction; whatever cannot be read is refused before."""
    charges = {part.name: charge for part in parts if (charge := part.charge(curator, keys[part.name])) is not None}
    paid = sum((loss for loss, _, _ in charges.values()), ZERO_LOSS)
    try:
        receipts = curator.ledger.charge_together(list(charges.values()))
    except OverBudget as refusal:
        raise Refused(_over_budget(curator, plan, paid, refusal)) from None
    return paid, dict(zip(charges, receipts, strict=True))


def _over_budget(curator: Curator, plan: PublicationPlan, cost: Loss, refusal: OverBudget) -> str:
    """Return what a plan costs and what remains, in the unit of the plan."""
    if plan.release.rho is not None:
        return f"{refusal} {remaining_text(curator.releases.limits(OWNER))}"
    remaining = curator.budget().remaining.epsilon
    delta = f" and delta {short_number(cost.delta)}" if cost.delta else ""
    needed = f"{cost_text(plan, curator.policy.budget, cost)}{delta}"
    return f"epsilon: not enough budget left: the plan needs {needed}; epsilon {short_number(remaining)} remains."


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
        time=dt.datetime.combine(
            dt.datetime.now(dt.UTC), dt.time(), dt.UTC
        ).isoformat(),  # how long it took is not told
        parts=tuple(part for result in results for part in result.describe()),
        invariants=None if stated is None else () if stated == "none" else (stated,),
        post_processing=tuple(dict.fromkeys(text for result in results for text in result.post_processing)),
    )
