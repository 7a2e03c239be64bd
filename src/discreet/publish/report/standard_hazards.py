"""The chapter on known hazards: each with its answer, or marked as left to the owner."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from discreet.policy import Hazard, hazards
from discreet.publish.report.content import OWNER_MUST_STATE, Chapter, ContentTable
from discreet.publish.report.hazard_answers import HAZARDS, Situation


@dataclass(frozen=True)
class HazardAnswer:
    """A hazard, the risk, the fact that answers it, and the owner's statement: None if missing, "" if not needed."""

    id: str
    hazard: str
    risk: str
    fact: str
    statement: str | None

    @property
    def text(self) -> str:
        """Fact and statement as one text."""
        return " ".join(filter(None, [self.fact, OWNER_MUST_STATE if self.statement is None else self.statement]))


def answer_hazards(situation: Situation) -> list[HazardAnswer]:
    """Return the answer to every hazard, in the order of the list."""
    return [HazardAnswer(id_, name, risk, *find(situation)) for id_, (name, risk, find) in HAZARDS.items()]


def hazards_chapter(situation: Situation) -> Chapter:
    """Return all hazards with their answers, and the findings of the policy's own check."""
    answers = answer_hazards(situation)
    open_ones = [each.hazard for each in answers if each.statement is None]
    findings = hazards(situation.policy)
    count = f"{len(answers) - len(open_ones)} of {len(answers)} are answered"
    return Chapter(
        "hazards",
        "Known hazards",
        (
            (
                "Problems that can void a guarantee although the noise is correct. The subjects are those of NIST SP "
                "800-226, in our own words: nothing is quoted, and its final text was not at hand."
            ),
            f"{count}{'; the owner must still state: ' + ', '.join(open_ones).lower() if open_ones else ''}.",
        ),
        (
            ContentTable(("Hazard", "Risk", "Answer"), tuple((each.hazard, each.risk, each.text) for each in answers)),
            *([_findings_table(findings)] if findings else []),
        ),
        facts={
            "answers": [asdict(each) for each in answers],
            "owner must state": [each.id for each in answers if each.statement is None],
            "findings": [{"id": each.id, "location": each.location, "message": each.message} for each in findings],
        },
    )


def _findings_table(findings: Sequence[Hazard]) -> ContentTable:
    rows = tuple((each.id, each.location, f"{each.message} {each.hint}") for each in findings)
    return ContentTable(
        ("Id", "Place", "Finding"), rows, "Findings of `discreet check` in this policy; some are justified"
    )
