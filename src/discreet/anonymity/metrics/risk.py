"""The disclosure risk of a table: class sizes, attribute disclosure, linkage, and information loss."""

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
from discreet.arguments import ArgumentError, check_argument

_RISK_THRESHOLD = 0.2


@dataclass(frozen=True, repr=False)
class Risk:
    """The disclosure risk of a table; a class is a set of rows that are equal in the quasi-identifying columns.

    k             the size of the smallest class
    unique        the number of rows that are alone in their class
    sizes         the number of classes of each size
    sensitive     l-diversity, t-closeness and more for each sensitive column; `risk.l`, `risk.t` and so on are the
                  worst over all of them, and `risk.attribute_risk("ill")` is that of one column
    prosecutor    linkage by an attacker who knows that the person is in the table
    journalist    linkage by an attacker with a list of the population; without one, the prosecutor risk
    marketer      the expected share of correct links if an attacker links all rows
    loss          the information loss, if the original was given

    >>> import pyarrow as pa
    >>> from discreet.anonymity import measure
    >>> risk = measure(pa.table({"age": [30, 30, 40], "ill": ["flu", "no", "flu"]}), "age", "ill")
    >>> risk.k >= 2, risk.l >= 2, risk.sizes, risk.prosecutor.highest_risk
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
        """The expected share of correct links if an attacker links all rows to the population."""
        return self.journalist.mean_risk

    @property
    def l(self) -> int:  # noqa: E743 - the name in the literature
        """The smallest number of distinct sensitive values in a class."""
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
        """The largest relative gain, or infinite if a value gains more than -ln of its share in the table."""
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
        """The attacks that remain possible, as one sentence."""
        journalist = None if self.population is None else self.journalist
        return describe_open_attacks(self.prosecutor, journalist, self.sensitive, self.other_columns)

    def attribute_risk(self, column: str) -> AttributeRisk:
        """Return the attribute-disclosure risk of a sensitive column.

        >>> import pyarrow as pa
        >>> from discreet.anonymity import measure
        >>> measure(pa.table({"age": [30, 30, 40], "ill": ["flu", "no", "flu"]}), "age", "ill").attribute_risk("ill").l
        1
        """
        for column_risk in self.sensitive:
            if column_risk.column == column:
                return column_risk
        sensitive_names = ", ".join(column_risk.column for column_risk in self.sensitive)[:200] or "none"
        raise ArgumentError("column", f"{str(column)[:60]!r} is not a sensitive column. Those are: {sensitive_names}.")

    def to_dict(self) -> dict[str, Any]:
        """Return all measures as numbers and strings for JSON; infinite values become None.

        >>> import pyarrow as pa
        >>> from discreet.anonymity import measure
        >>> record = measure(pa.table({"age": [30, 30, 40], "ill": ["flu", "no", "flu"]}), "age", "ill").to_dict()
        >>> record["k"], record["sizes"], record["sensitive"]["ill"]["l"], record["prosecutor"]["highest"]
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
        """Count the unique rows by each combination of at most `largest` quasi-identifying columns.

        By default, `largest` is chosen so that there are at most 1,000 combinations: all of 9 columns, or those of up
        to 3 of 18 columns.

        >>> import pyarrow as pa
        >>> from discreet.anonymity import measure
        >>> risk = measure(pa.table({"age": [30, 30, 40], "sex": ["F", "M", "M"]}), ["age", "sex"])
        >>> for combination in risk.uniqueness():
        ...     print(combination)
        33.3 % unique by age
        33.3 % unique by sex
        100.0 % unique by age, sex
        """
        return count_unique_rows(self.quasi_columns, largest)

    def _attribute_risks(self) -> tuple[AttributeRisk, ...]:
        check_argument(self.sensitive, "sensitive", "no sensitive column was measured. Name one when you measure.")
        return self.sensitive

    def _repr_html_(self) -> str:
        from discreet.anonymity.report.html import render_fragment  # noqa: PLC0415 - it imports Risk

        return render_fragment(self)

    def __str__(self) -> str:
        return "\n".join(
            [*_class_lines(self), *map(_attribute_line, self.sensitive), *_linkage_lines(self), self.not_protected]
        )

    __repr__ = __str__  # a readable summary at the prompt


def _class_lines(risk: Risk) -> list[str]:
    classes = f"{format_count(risk.classes, 'class', 'classes')} of {risk.k:,} to {max(risk.sizes):,} rows"
    summary = f"{format_count(risk.rows, 'row', 'rows')} in {classes} by {', '.join(risk.quasi)}"
    lines = [f"{summary}: {risk.k}-anonymous, {format_count(risk.unique, 'unique row', 'unique rows')}"]
    if risk.loss is not None:
        suppressed = f", {format_count(risk.loss.suppressed, 'row', 'rows')} suppressed" if risk.loss.suppressed else ""
        lines.append(f"information loss (NCP): {_format_percent(risk.loss.ncp)}{suppressed}")
    return lines


def _attribute_line(risk: AttributeRisk) -> str:
    homogeneous = (
        f"{format_count(len(risk.exposed_rows), 'row', 'rows')} in {format_count(risk.homogeneous, 'class', 'classes')}"
    )
    measures = f"l = {risk.l}, entropy l = {risk.entropy_l:.3g}, t = {risk.t:.3g} ({risk.distance} distance)"
    return f"{risk.column}: {measures}; homogeneous: {homogeneous}"


def _linkage_lines(risk: Risk) -> list[str]:
    prosecutor, journalist = risk.prosecutor, risk.journalist
    bounds = f"at most {_format_percent(prosecutor.highest_risk)}, mean {_format_percent(prosecutor.mean_risk)}"
    high_risk = f"above 20 % for {_format_percent(prosecutor.share_above(_RISK_THRESHOLD))} of rows"
    prosecutor_line = f"prosecutor risk: {bounds}, {high_risk}"
    if risk.population is None:
        return [prosecutor_line, "journalist and marketer risk: same as prosecutor risk (no population was given)"]
    unique_matches = format_count(journalist.uniquely_linked_rows, "row matches", "rows match")
    matches = f"{unique_matches} exactly one of {risk.population:,} people, {journalist.unmatched_rows:,} nobody"
    return [
        prosecutor_line,
        f"journalist risk: at most {_format_percent(journalist.highest_risk)}; {matches}",
        f"marketer risk: {_format_percent(risk.marketer)} of rows",
    ]


def _format_percent(share: float) -> str:
    return f"{share * 100:.3g} %"
