"""The disclosure risk of a table: class sizes, attribute disclosure, linkage, and information loss."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from discreet.anonymity.encoding.encoded_table import EncodedColumn
from discreet.anonymity.encoding.equivalence_classes import EquivalenceClasses
from discreet.anonymity.metrics.attribute_risk import AttributeRisk
from discreet.anonymity.metrics.linkage_risk import LinkageRisk, UniqueCombination, count_unique_rows
from discreet.arguments import ArgumentError, require

_MAX_LISTED_NAMES = 6
_SKEWNESS_THRESHOLD = 0.5  # above it, guessing the most frequent value is right more often than not


def describe_open_attacks(
    prosecutor: LinkageRisk,
    journalist: LinkageRisk | None,
    sensitive: Sequence[AttributeRisk],
    other_columns: Sequence[str],
) -> str:
    """Return a sentence that names the remaining attacks; `journalist` is None if no population was given.

    >>> describe_open_attacks(LinkageRisk({1: 2, 5: 10}), None, [], ["income"])
    'Not protected against: linkage attack (2 rows are unique); homogeneity attack (not checked: no sensitive column \
was named); intersection attack (several releases about the same people); linkage by other columns (income).'
    """
    attacks = [
        *_linkage_attacks(prosecutor, journalist),
        *_inference_attacks(sensitive),
        "intersection attack (several releases about the same people)",
        f"linkage by other columns ({_list_names(other_columns)})"
        if other_columns
        else "linkage by anything else an attacker knows",
    ]
    return f"Not protected against: {'; '.join(attacks)}."


def format_count(count: int, singular: str, plural: str) -> str:
    """Return a number with its noun in the singular or plural.

    >>> format_count(1, "row", "rows"), format_count(2000, "row", "rows")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {singular if count == 1 else plural}"


def _linkage_attacks(prosecutor: LinkageRisk, journalist: LinkageRisk | None) -> list[str]:
    reasons = []
    if prosecutor.uniquely_linked_rows:
        reasons.append(f"{format_count(prosecutor.uniquely_linked_rows, 'row is', 'rows are')} unique")
    if journalist is not None and journalist.uniquely_linked_rows:
        matches = format_count(journalist.uniquely_linked_rows, "row matches", "rows match")
        reasons.append(f"{matches} exactly one person of the population")
    return [f"linkage attack ({', '.join(reasons)})"] if reasons else []


def _inference_attacks(sensitive: Sequence[AttributeRisk]) -> list[str]:
    if not sensitive:
        return ["homogeneity attack (not checked: no sensitive column was named)"]
    homogeneous = [
        f"{format_count(len(risk.exposed_rows), 'row', 'rows')} in {format_count(risk.homogeneous, 'class', 'classes')}"
        f" with a single value of {risk.column[:60]!r}"
        for risk in sensitive
        if risk.homogeneous
    ]
    if homogeneous:
        return [f"homogeneity attack ({', '.join(homogeneous)})"]
    worst = max(sensitive, key=lambda risk: risk.alpha)
    percent = math.floor(worst.alpha * 1000) / 10  # rounded down: 100 % would be a homogeneous class
    confidence = f"up to {percent:g} % of a class have the same value of {worst.column[:60]!r}"
    return [
        f"skewness attack ({confidence})"
        if worst.alpha > _SKEWNESS_THRESHOLD
        else f"background-knowledge attack ({confidence})"
    ]


def _list_names(names: Sequence[str]) -> str:
    omitted = len(names) - _MAX_LISTED_NAMES
    return ", ".join(name[:60] for name in names[:_MAX_LISTED_NAMES]) + (f" and {omitted} more" if omitted > 0 else "")


_RISK_THRESHOLD = 0.2


@dataclass(frozen=True)
class InformationLoss:
    """Information lost by generalisation and suppression.

    ncp               normalised certainty penalty: the share of the column's domain that a released value covers,
                      averaged over rows and columns; 0 for an original value, 1 for a suppressed row
    columns           the same for each column
    discernibility    the sum of the squared class sizes, plus the size of the table for each suppressed row
    average_class     the mean class size, as a multiple of the smallest
    suppressed        the number of suppressed rows

    The share covered is (max - min)/(range of the column) for numbers and dates, the share of the hierarchy's leaves
    if there is a hierarchy, and otherwise the share of the column's distinct values.

    >>> import pyarrow as pa
    >>> from discreet.anonymity import measure
    >>> original, release = pa.table({"age": [21, 29, 37]}), pa.table({"age": ["21-29", "21-29"]})
    >>> loss = measure(release, "age", original=original).loss
    >>> round(loss.ncp, 3), loss.suppressed, loss.discernibility
    (0.667, 1, 7)
    """

    ncp: float
    columns: Mapping[str, float]
    discernibility: int
    average_class: float
    suppressed: int


def _worst(measure: str, choose: Callable[[Iterable[Any]], Any], doc: str) -> Any:
    """Return the property that is a measure of the worst sensitive column."""

    def value(self: "Risk") -> Any:
        require(self.sensitive, "no sensitive column was measured. Name one when you measure.", "sensitive")
        return choose(getattr(column_risk, measure) for column_risk in self.sensitive)

    return property(value, doc=doc)


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

    l = _worst("l", min, "The smallest number of distinct sensitive values in a class.")  # noqa: E741
    entropy_l = _worst("entropy_l", min, "The exponential of the smallest entropy of a class.")
    recursive = _worst(
        "recursive",
        lambda pairs: min(pairs, key=lambda pair: (pair[1], -pair[0])),
        "The c and l of recursive (c, l)-diversity.",
    )
    alpha = _worst("alpha", max, "The largest share of one sensitive value in a class.")
    beta = _worst("beta", max, "The largest relative gain of a sensitive value in a class.")
    enhanced_beta = _worst(
        "enhanced_beta",
        max,
        "The largest relative gain, or infinite if a value gains more than -ln of its share in the table.",
    )
    delta = _worst("delta", max, "The largest |ln(q/p)| of a sensitive value in a class.")
    t = _worst("t", max, "The largest distance of a class from the table.")

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
            "sizes": {str(size): count for size, count in self.sizes.items()},
            "quasi": list(self.quasi),
            "others": list(self.other_columns),
            "sensitive": {risk.column: risk.to_dict() for risk in self.sensitive},
            "prosecutor": self.prosecutor.to_dict(),
            "journalist": self.journalist.to_dict(),
            "marketer": self.marketer,
            "population": self.population,
            "loss": None if self.loss is None else {**asdict(self.loss), "columns": dict(self.loss.columns)},
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

    def _repr_html_(self) -> str:
        from discreet.anonymity.report.contents import render_fragment  # noqa: PLC0415 - it imports Risk

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
