"""The report of a policy and of a release, from policy, ledger and release record alone."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import discreet
from discreet.curator.ledger_terms import differences_from_terms
from discreet.kernel.ledger.ledger import Ledger
from discreet.kernel.loss import Budget, Loss
from discreet.policy import Policy, write_policy
from discreet.publish.manifest import LedgerPoint
from discreet.publish.record import ReleaseRecord
from discreet.publish.report.content import Chapter
from discreet.publish.report.csvw_metadata import csvw_metadata
from discreet.publish.report.guarantee_chapters import (
    bounds_chapter,
    conversion_chapter,
    parameters_chapter,
    protection_chapter,
    summary_chapter,
)
from discreet.publish.report.hazard_answers import Situation
from discreet.publish.report.html_report import report_page
from discreet.publish.report.ledger_chapters import budget_chapter, events_chapter, read_ledger
from discreet.publish.report.number_text import time_text
from discreet.publish.report.registry import registry_yaml
from discreet.publish.report.release_chapters import accuracy_chapter, dictionary_chapter, release_chapter, release_cost
from discreet.publish.report.standard_hazards import hazards_chapter
from discreet.publish.report.text_report import report_text
from discreet.publish.report.trust_chapters import AuditEvidence, evidence_chapter, hashes_chapter, threat_chapter

HTML, JSON, REGISTRY, CSVW = "report.html", "report.json", "registry.yaml", "csv-metadata.json"
_FORMAT = 1


@dataclass(frozen=True)
class Report:
    """A report: its chapters in order, the release that it is about, if any, and how to show it.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> report = report_of(policy, None)
    >>> [chapter.title for chapter in report.chapters][:2], report.to_text().splitlines()[0]
    (['In short', 'Who is protected'], 'Privacy report: visits')
    """

    policy: Policy
    budget: Budget
    chapters: tuple[Chapter, ...]
    record: ReleaseRecord | None = None
    ledger_point: LedgerPoint | None = None
    policy_text: str = ""
    cost: Loss | None = None  # of the release

    @property
    def title(self) -> str:
        """The title of the report."""
        if self.record is None:
            return f"Privacy report: {self.policy.data.name}"
        return f"Privacy report: {self.record.name}"

    @property
    def subtitle(self) -> str:
        """What the report is about, and with which software it was made."""
        about = f"data set {self.policy.data.name}"
        when = f", released {time_text(self.record.time)}" if self.record else ", no release"
        return f"{about[0].upper()}{about[1:]}{when}. Made with Discreet {discreet.__version__} from policy and ledger."

    def chapter(self, id_: str) -> Chapter:
        """Return a chapter by its id."""
        return self._by_id()[id_]

    def to_html(self) -> str:
        """Return the report as one HTML page."""
        return report_page(self.title, self.subtitle, self.chapters)

    def to_text(self, width: int = 100) -> str:
        """Return the report as plain text."""
        return report_text(self.title, self.chapters, width)

    def to_json(self) -> str:
        """Return the report as JSON: the chapters with exact facts, and the record of the release."""
        data: dict[str, Any] = {
            "format": _FORMAT,
            "title": self.title,
            "discreet": discreet.__version__,
            "chapters": [chapter.to_data() for chapter in self.chapters],
            "record": self.record.to_data() if self.record else None,
        }
        return json.dumps(data, indent=1, ensure_ascii=False) + "\n"

    def to_registry_yaml(self) -> str:
        """Return a record for OpenDP's registry of deployments."""
        return registry_yaml(self.policy, self.budget, self.record, self.cost, self._by_id(), discreet.__version__)

    def to_csvw(self) -> str | None:
        """Return the metadata of the released CSV files, as CSV on the Web; None if there are none."""
        return csvw_metadata(self.record) if self.record else None

    def _by_id(self) -> Mapping[str, Chapter]:
        return {chapter.id: chapter for chapter in self.chapters}


def report_of(
    policy: Policy,
    ledger: Ledger | None,
    record: ReleaseRecord | None = None,
    *,
    policy_text: str | None = None,
    audit: AuditEvidence | None = None,
) -> Report:
    """Return the report of a policy, its ledger (None if there is none yet) and, optionally, a release.

    Nothing but these is read: neither the data nor anything about its files. `policy_text` is the text whose hash is
    reported, by default that of `write_policy`.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits", "protects": "patient"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> report_of(policy, None).chapter("summary").facts["odds"]["everything that the budget allows"]["participation"]
    0.7310585786300049
    """
    summary = read_ledger(ledger) if ledger is not None else None
    differences = differences_from_terms(summary.terms, policy) if summary else []
    budget = summary.terms.budget if summary else policy.budget
    point = LedgerPoint(summary.history.last_row, summary.history.last_hash) if summary else None
    situation = Situation(policy, budget, summary, record)
    text = write_policy(policy) if policy_text is None else policy_text
    cost = None if record is None else release_cost(record, summary)
    chapters = (
        *_guarantee_chapters(policy, budget, cost),
        release_chapter(policy, budget, summary, record),
        accuracy_chapter(record),
        bounds_chapter(policy, record, summary),
        budget_chapter(policy, summary, differences),
        hazards_chapter(situation),
        threat_chapter(),
        evidence_chapter(discreet.__version__, audit),
        dictionary_chapter(record),
        events_chapter(summary),
        hashes_chapter(text, record, point),
    )
    return Report(policy, budget, tuple(filter(None, chapters)), record, point, text, cost)


def _guarantee_chapters(policy: Policy, budget: Budget, cost: Loss | None) -> tuple[Chapter, ...]:
    return (
        summary_chapter(policy, budget, cost),
        protection_chapter(policy),
        parameters_chapter(policy, budget, cost),
        conversion_chapter(policy, budget, cost),
    )


def write_report(report: Report, folder: str | Path) -> list[Path]:
    """Write the report into a folder, as `report.html`, `report.json` and `registry.yaml`; return their paths.

    If a release has CSV files, `csv-metadata.json` describes their columns.

    >>> from tempfile import mkdtemp
    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> [path.name for path in write_report(report_of(policy, None), mkdtemp())]
    ['report.html', 'report.json', 'registry.yaml']
    """
    contents = {HTML: report.to_html(), JSON: report.to_json(), REGISTRY: report.to_registry_yaml()}
    if (metadata := report.to_csvw()) is not None:
        contents[CSVW] = metadata
    for name, text in contents.items():
        (Path(folder) / name).write_text(text, encoding="utf-8")
    return [Path(folder) / name for name in contents]


def record_of(folder: Path) -> ReleaseRecord | None:
    """Return the record of a release from its `report.json`; None if that report is about no release.

    ValueError if the file is no report.
    """
    try:
        data = json.loads((folder / JSON).read_text(encoding="utf-8"))
        record = data["record"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError(f"{JSON}: malformed, or of another version") from None
    return None if record is None else ReleaseRecord.from_data(record)
