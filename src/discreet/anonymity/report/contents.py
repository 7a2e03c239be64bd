"""The contents of a report on a table, which the terminal and the HTML page both render."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from discreet.anonymity.metrics.risk import Risk
from discreet.anonymity.report.sections import (
    RiskSection,
    attribute_sections,
    class_section,
    linkage_section,
    loss_sections,
    uniqueness_before_section,
    uniqueness_section,
)


class MeasuredRelease(Protocol):
    """What an attempt to anonymise tells."""

    @property
    def method(self) -> str:
        """How values were made coarser."""

    @property
    def levels(self) -> Mapping[str, int] | None:
        """The level of each column's hierarchy, if all rows have the same."""

    @property
    def optimality(self) -> str:
        """Whether these levels are the best there are."""

    @property
    def hierarchies(self) -> Mapping[str, str]:
        """The name of the hierarchy of each column that has one."""

    @property
    def suppressed(self) -> int:
        """The rows that were left out."""

    @property
    def before(self) -> Risk:
        """What was measured of the original."""

    @property
    def after(self) -> Risk:
        """What was measured of the release."""

    @property
    def not_protected(self) -> str:
        """The attacks that are left open."""


def describe_recoding(result: MeasuredRelease) -> Iterator[str]:
    """Say how many rows are released, on which levels, and by which hierarchies."""
    yield f"{result.after.rows:,} of {result.before.rows:,} rows are released, {result.suppressed:,} are left out."
    levels = ", ".join(f"{name} {level}" for name, level in (result.levels or {}).items())
    if levels:
        yield f"Levels of the hierarchies: {levels} ({result.optimality})."
    yield from describe_hierarchies(result)


def describe_hierarchies(result: MeasuredRelease) -> Iterator[str]:
    """Say which columns have a hierarchy, and what that means for the others."""
    has_levels = result.levels is not None
    listed = ", ".join(f"{name} ({tree})" for name, tree in result.hierarchies.items())
    if listed:
        restriction = (
            "" if has_levels else "; other labels than these they cannot get, and ranges or sets might lose less"
        )
        yield f"Made coarser by a hierarchy: {listed}{restriction}."
    columns_without = [name for name in result.before.quasi if name not in result.hierarchies]
    if has_levels and columns_without:
        yield f"No hierarchy for {', '.join(columns_without)}: each is either kept or '*'."


@dataclass(frozen=True)
class AnonymityReport:
    """A title, the parts, and the line on what is not protected."""

    title: str
    sections: tuple[RiskSection, ...]
    not_protected: str


def build_report(result: Risk | MeasuredRelease) -> AnonymityReport:
    """Say what was measured of a table, or of a table and its release.

    >>> import pyarrow as pa
    >>> from discreet.anonymity.metrics.measurement import measure
    >>> recoding_section = build_report(measure(pa.table({"age": ["3*", "3*", "4*"], "ill": ["flu", "flu", "no"]}), "age", "ill"))
    >>> recoding_section.title
    '3 rows, told apart by age'
    >>> [part.title for part in recoding_section.sections]
    ['Classes', 'What the classes tell: ill', 'Linking rows to people', 'What singles people out']
    >>> recoding_section.sections[1].sentences
    ('ill has one value only in 2 classes: rows 1-3.',)
    """
    if isinstance(result, Risk):
        first_risk, sections = (
            result,
            [*_risk_sections({"": result}), uniqueness_section(result), *loss_sections(result)],
        )
    else:
        first_risk, risks = result.before, {"before": result.before, "after": result.after}
        recoding_section = RiskSection(f"Made coarser ({result.method})", tuple(describe_recoding(result)))
        sections = [
            recoding_section,
            *_risk_sections(risks),
            uniqueness_before_section(result.before, result.after),
            *loss_sections(result.after),
        ]
    return AnonymityReport(
        f"{first_risk.rows:,} rows, told apart by {', '.join(first_risk.quasi)}", tuple(sections), result.not_protected
    )


def make_printable(text: str) -> str:
    r"""Replace what a terminal or a browser would obey instead of showing: names and values are anybody's.

    >>> make_printable("age\x1b[31m")
    'age�[31m'
    """
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def _risk_sections(risks: Mapping[str, Risk]) -> Iterator[RiskSection]:
    yield class_section(risks)
    yield from attribute_sections(risks)
    yield linkage_section(risks)
