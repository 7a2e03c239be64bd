"""The risks of publishing a table: class sizes, attribute disclosure, linkage, information loss."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.anonymity.encoding.encoded_table import EncodedColumn
from discreet.anonymity.encoding.equivalence_classes import EquivalenceClasses
from discreet.anonymity.metrics import risk_json
from discreet.anonymity.metrics.attribute_risk import AttributeRisk
from discreet.anonymity.metrics.information_loss import InformationLoss
from discreet.anonymity.metrics.linkage_risk import LinkageRisk
from discreet.anonymity.metrics.open_attacks import describe_open_attacks, format_count
from discreet.anonymity.metrics.uniqueness import UniqueCombination, count_unique_rows

_RISK_THRESHOLD = 0.2


@dataclass(frozen=True, repr=False)
class Risk:
    """The risks of publishing a table; a class is all rows that are equal in the quasi-identifying columns.

    k             the smallest class
    unique        the rows that are alone in their class
    sizes         how many classes there are of each size
    sensitive     l-diversity, t-closeness and more of each sensitive column, or of one by `risk.attribute_risk("ill")`; `risk.l`,
                  `risk.t` and so on are the worst
    prosecutor    linking by somebody who knows that the person is in the table: one of the class
    journalist    linking by a list of the population; without one it is the prosecutor's
    marketer      the share of rows that somebody who links them all can expect to get right
    loss          what the release lost, if the original was given

    >>> import pyarrow as pa
    >>> from discreet.anonymity import measure
    >>> risk = measure(pa.table({"age": [30, 30, 40], "ill": ["flu", "no", "flu"]}), "age", "ill")
    >>> risk.k >= 2, risk.l >= 2, risk.sizes, risk.prosecutor_line.highest_risk
    (False, False, {1: 1, 2: 1}, 1.0)
    """

    rows: int
    classes: int
    k: int
    unique: int
    sizes: Mapping[int, int]
    quasi: tuple[str, ...]
    other_columns: tuple[str, ...]
    sensitive: tuple[AttributeRisk, ...]
    prosecutor: LinkageRisk
    journalist: LinkageRisk
    population: int | None
    loss: InformationLoss | None
    equivalence_classes: EquivalenceClasses = field(repr=False, compare=False)
    quasi_columns: tuple[EncodedColumn, ...] = field(repr=False, compare=False)

    @property
    def marketer(self) -> float:
        """The share of rows that somebody who links them all to the population can expect to get right."""
        return self.journalist.mean_risk

    @property
    def l(self) -> int:  # noqa: E743 - what everybody calls it
        """The fewest different sensitive values in a class."""
        return min(column_risk.l for column_risk in self._attribute_risks())

    @property
    def entropy_l(self) -> float:
        """The exponential of the smallest entropy of a class."""
        return min(column_risk.entropy_l for column_risk in self._attribute_risks())

    @property
    def recursive(self) -> tuple[float, int]:
        """The c and l of recursive (c, l)-diversity."""
        return min(
            (column_risk.recursive for column_risk in self._attribute_risks()), key=lambda pair: (pair[1], -pair[0])
        )

    @property
    def alpha(self) -> float:
        """The largest share of one sensitive value in a class."""
        return max(column_risk.alpha for column_risk in self._attribute_risks())

    @property
    def beta(self) -> float:
        """The largest relative gain of a sensitive value in a class."""
        return max(column_risk.beta for column_risk in self._attribute_risks())

    @property
    def enhanced_beta(self) -> float:
        """The same, or infinite if some value gains more than -ln of its share."""
        return max(column_risk.enhanced_beta for column_risk in self._attribute_risks())

    @property
    def delta(self) -> float:
        """The largest |ln(q/p)| of a sensitive value in a class."""
        return max(column_risk.delta for column_risk in self._attribute_risks())

    @property
    def t(self) -> float:
        """The largest distance of a class from the table."""
        return max(column_risk.t for column_risk in self._attribute_risks())

    @property
    def not_protected(self) -> str:
        """One line: the attacks that are left open."""
        journalist = None if self.population is None else self.journalist
        return describe_open_attacks(self.prosecutor, journalist, self.sensitive, self.other_columns)

    def attribute_risk(self, column: str) -> AttributeRisk:
        """Return what was measured of a sensitive column.

        >>> import pyarrow as pa
        >>> from discreet.anonymity import measure
        >>> measure(pa.table({"age": [30, 30, 40], "ill": ["flu", "no", "flu"]}), "age", "ill").attribute_risk("ill").l
        1
        """
        for column_risk in self.sensitive:
            if column_risk.column == column:
                return column_risk
        sensitive_names = ", ".join(each.column for each in self.sensitive)[:200] or "none"
        raise ValueError(f"column: {str(column)[:60]!r} is no sensitive column here. Those are: {sensitive_names}.")

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain numbers and texts, as JSON has them: what is infinite is None.

        >>> import pyarrow as pa
        >>> from discreet.anonymity import measure
        >>> found = measure(pa.table({"age": [30, 30, 40], "ill": ["flu", "no", "flu"]}), "age", "ill").to_dict()
        >>> found["k"], found["sizes"], found["sensitive"]["ill"]["l"], found["prosecutor_line"]["highest_risk"]
        (1, {'1': 1, '2': 1}, 1, 1.0)
        """
        return {
            "rows": self.rows,
            "classes": self.classes,
            "k": self.k,
            "unique": self.unique,
            "sizes": risk_json.class_sizes_dict(self.sizes),
            "quasi": list(self.quasi),
            "others": list(self.other_columns),
            "sensitive": risk_json.attribute_risks_dict(self.sensitive),
            "prosecutor": risk_json.linkage_risk_dict(self.prosecutor),
            "journalist": risk_json.linkage_risk_dict(self.journalist),
            "marketer": self.marketer,
            "population": self.population,
            "loss": risk_json.information_loss_dict(self.loss),
            "not_protected": self.not_protected,
        }

    def uniqueness(self, largest: int | None = None) -> tuple[UniqueCombination, ...]:
        """Count the rows that are alone by each subset of the quasi-identifying columns, of at most `largest` of them.

        Without it there are at most a thousand subsets: all of nine columns, or those of up to three of eighteen.

        >>> import pyarrow as pa
        >>> from discreet.anonymity import measure
        >>> for found in measure(pa.table({"age": [30, 30, 40], "sex": ["F", "M", "M"]}), ["age", "sex"]).uniqueness():
        ...     print(found)
        33.3 % alone by age
        33.3 % alone by sex
        100.0 % alone by age, sex
        """
        return count_unique_rows(self.quasi_columns, largest)

    def _attribute_risks(self) -> tuple[AttributeRisk, ...]:
        if not self.sensitive:
            raise ValueError("sensitive: no column was named, so nothing is known about it. Give sensitive='...'.")
        return self.sensitive

    def _repr_html_(self) -> str:
        from discreet.anonymity.report.html import render_fragment  # noqa: PLC0415 - which knows what a Risk is

        return render_fragment(self)

    def __str__(self) -> str:
        return "\n".join(
            [*_class_lines(self), *map(_attribute_line, self.sensitive), *_linkage_lines(self), self.not_protected]
        )

    __repr__ = __str__  # what one wants to see at a prompt


def _class_lines(risk: Risk) -> list[str]:
    classes = f"{format_count(risk.classes, 'class', 'classes')} of {risk.k:,} to {max(risk.sizes):,}"
    summary = f"{format_count(risk.rows, 'row', 'rows')} in {classes} by {', '.join(risk.quasi)}"
    lines = [f"{summary}: {risk.k}-anonymous, {format_count(risk.unique, 'row', 'rows')} alone"]
    if risk.loss is not None:
        suppressed = f", {format_count(risk.loss.suppressed, 'row', 'rows')} suppressed" if risk.loss.suppressed else ""
        lines.append(f"information lost: {_format_percent(risk.loss.ncp)}{suppressed}")
    return lines


def _attribute_line(risk: AttributeRisk) -> str:
    homogeneous = (
        f"{format_count(len(risk.exposed_rows), 'row', 'rows')} in {format_count(risk.homogeneous, 'class', 'classes')}"
    )
    measures = f"l = {risk.l}, entropy l = {risk.entropy_l:.3g}, t = {risk.t:.3g} ({risk.distance} distance)"
    return f"{risk.column}: {measures}; of one value only: {homogeneous}"


def _linkage_lines(risk: Risk) -> list[str]:
    prosecutor_risk, journalist_risk = risk.prosecutor, risk.journalist
    risky = f"above 20 % for {_format_percent(prosecutor_risk.share_above(_RISK_THRESHOLD))} of the rows"
    prosecutor_line = f"prosecutor: at most {_format_percent(prosecutor_risk.highest_risk)}, mean {_format_percent(prosecutor_risk.mean_risk)}, {risky}"
    if risk.population is None:
        return [prosecutor_line, "journalist and marketer: as the prosecutor, for no population was given"]
    matches = f"{format_count(journalist_risk.uniquely_linked_rows, 'row', 'rows')} could be one person only, {journalist_risk.unmatched_rows:,} nobody"
    return [
        prosecutor_line,
        f"journalist: at most {_format_percent(journalist_risk.highest_risk)}; of a population of {risk.population:,}, {matches}",
        f"marketer: {_format_percent(risk.marketer)} of the rows",
    ]


def _format_percent(share: float) -> str:
    return f"{share * 100:.3g} %"
