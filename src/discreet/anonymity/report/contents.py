"""The contents of the anonymity report, rendered in the terminal and as HTML."""

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
    """A release, how it was generalised, and the risk measured before and after."""

    @property
    def method(self) -> str:
        """The generalisation method."""

    @property
    def levels(self) -> Mapping[str, int] | None:
        """The generalisation level of each column, if all rows have the same."""

    @property
    def optimality(self) -> str:
        """Whether these levels are optimal."""

    @property
    def hierarchies(self) -> Mapping[str, str]:
        """The name of the hierarchy of each column that has one."""

    @property
    def suppressed(self) -> int:
        """The number of suppressed rows."""

    @property
    def before(self) -> Risk:
        """The risk of the original."""

    @property
    def after(self) -> Risk:
        """The risk of the release."""

    @property
    def not_protected(self) -> str:
        """The attacks that remain possible."""


def describe_recoding(result: MeasuredRelease) -> Iterator[str]:
    """Yield sentences on the released rows, the levels and the hierarchies."""
    yield f"{result.after.rows:,} of {result.before.rows:,} rows were released, {result.suppressed:,} suppressed."
    levels = ", ".join(f"{name} {level}" for name, level in (result.levels or {}).items())
    if levels:
        yield f"Generalisation levels: {levels} ({result.optimality})."
    yield from describe_hierarchies(result)


def describe_hierarchies(result: MeasuredRelease) -> Iterator[str]:
    """Yield sentences on which columns have a hierarchy, and what that means for the others."""
    has_levels = result.levels is not None
    listed = ", ".join(f"{name} ({tree})" for name, tree in result.hierarchies.items())
    if listed:
        restriction = "" if has_levels else "; only its labels are used, so ranges or sets might lose less information"
        yield f"Generalised by a hierarchy: {listed}{restriction}."
    columns_without = [name for name in result.before.quasi if name not in result.hierarchies]
    if has_levels and columns_without:
        yield f"No hierarchy for {', '.join(columns_without)}: the column is either kept or replaced by '*'."


@dataclass(frozen=True)
class AnonymityReport:
    """A title, the sections, and the attacks that remain possible."""

    title: str
    sections: tuple[RiskSection, ...]
    not_protected: str


def build_report(result: Risk | MeasuredRelease) -> AnonymityReport:
    """Return the report on a measured table, or on a table and its release.

    >>> import pyarrow as pa
    >>> from discreet.anonymity.metrics.measurement import measure
    >>> table = pa.table({"age": ["3*", "3*", "4*"], "ill": ["flu", "flu", "no"]})
    >>> report = build_report(measure(table, "age", "ill"))
    >>> report.title
    '3 rows, quasi-identifiers: age'
    >>> [section.title for section in report.sections]
    ['Equivalence classes', 'Attribute disclosure: ill', 'Identity disclosure', 'Uniqueness']
    >>> report.sections[1].sentences
    ('ill has a single value in 2 classes: rows 1-3.',)
    """
    if isinstance(result, Risk):
        first_risk, sections = (
            result,
            [*_risk_sections({"": result}), uniqueness_section(result), *loss_sections(result)],
        )
    else:
        first_risk, risks = result.before, {"before": result.before, "after": result.after}
        recoding_section = RiskSection(f"Generalisation ({result.method})", tuple(describe_recoding(result)))
        sections = [
            recoding_section,
            *_risk_sections(risks),
            uniqueness_before_section(result.before, result.after),
            *loss_sections(result.after),
        ]
    return AnonymityReport(
        f"{first_risk.rows:,} rows, quasi-identifiers: {', '.join(first_risk.quasi)}",
        tuple(sections),
        result.not_protected,
    )


def _risk_sections(risks: Mapping[str, Risk]) -> Iterator[RiskSection]:
    yield class_section(risks)
    yield from attribute_sections(risks)
    yield linkage_section(risks)
