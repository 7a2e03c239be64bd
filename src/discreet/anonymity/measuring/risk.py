"""What was measured about a table: how its rows can be told apart, linked and seen through."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.anonymity.coding.classes import Classes
from discreet.anonymity.coding.columns import Column
from discreet.anonymity.measuring import plain
from discreet.anonymity.measuring.exposure import Exposure
from discreet.anonymity.measuring.linkage import Linkage
from discreet.anonymity.measuring.loss import InformationLoss
from discreet.anonymity.measuring.uniqueness import Alone, alone
from discreet.anonymity.measuring.unprotected import counted, not_protected

_FIFTH = 0.2


@dataclass(frozen=True, repr=False)
class Risk:
    """The risks of publishing a table; a class is all rows that are equal in the quasi-identifying columns.

    k             the smallest class
    unique        the rows that are alone in their class
    sizes         how many classes there are of each size
    sensitive     l-diversity, t-closeness and more of each sensitive column, or of one by `risk.of("ill")`; `risk.l`,
                  `risk.t` and so on are the worst
    prosecutor    linking by somebody who knows that the person is in the table: one of the class
    journalist    linking by a list of the population; without one it is the prosecutor's
    marketer      the share of rows that somebody who links them all can expect to get right
    loss          what the release lost, if the original was given

    >>> import pyarrow as pa
    >>> from discreet.anonymity import measure
    >>> risk = measure(pa.table({"age": [30, 30, 40], "ill": ["flu", "no", "flu"]}), "age", "ill")
    >>> risk.k >= 2, risk.l >= 2, risk.sizes, risk.prosecutor.highest
    (False, False, {1: 1, 2: 1}, 1.0)
    """

    rows: int
    classes: int
    k: int
    unique: int
    sizes: Mapping[int, int]
    quasi: tuple[str, ...]
    others: tuple[str, ...]
    sensitive: tuple[Exposure, ...]
    prosecutor: Linkage
    journalist: Linkage
    population: int | None
    loss: InformationLoss | None
    members: Classes = field(repr=False, compare=False)
    columns: tuple[Column, ...] = field(repr=False, compare=False)

    @property
    def marketer(self) -> float:
        """The share of rows that somebody who links them all to the population can expect to get right."""
        return self.journalist.mean

    @property
    def l(self) -> int:  # noqa: E743 - what everybody calls it
        """The fewest different sensitive values in a class."""
        return min(each.l for each in self._exposures())

    @property
    def entropy_l(self) -> float:
        """The exponential of the smallest entropy of a class."""
        return min(each.entropy_l for each in self._exposures())

    @property
    def recursive(self) -> tuple[float, int]:
        """The c and l of recursive (c, l)-diversity."""
        return min((each.recursive for each in self._exposures()), key=lambda found: (found[1], -found[0]))

    @property
    def alpha(self) -> float:
        """The largest share of one sensitive value in a class."""
        return max(each.alpha for each in self._exposures())

    @property
    def beta(self) -> float:
        """The largest relative gain of a sensitive value in a class."""
        return max(each.beta for each in self._exposures())

    @property
    def enhanced_beta(self) -> float:
        """The same, or infinite if some value gains more than -ln of its share."""
        return max(each.enhanced_beta for each in self._exposures())

    @property
    def delta(self) -> float:
        """The largest |ln(q/p)| of a sensitive value in a class."""
        return max(each.delta for each in self._exposures())

    @property
    def t(self) -> float:
        """The largest distance of a class from the table."""
        return max(each.t for each in self._exposures())

    @property
    def not_protected(self) -> str:
        """One line: the attacks that are left open."""
        known = None if self.population is None else self.journalist
        return not_protected(self.prosecutor, known, self.sensitive, self.others)

    def of(self, column: str) -> Exposure:
        """Return what was measured of a sensitive column.

        >>> import pyarrow as pa
        >>> from discreet.anonymity import measure
        >>> measure(pa.table({"age": [30, 30, 40], "ill": ["flu", "no", "flu"]}), "age", "ill").of("ill").l
        1
        """
        for each in self.sensitive:
            if each.column == column:
                return each
        known = ", ".join(each.column for each in self.sensitive)[:200] or "none"
        raise ValueError(f"column: {str(column)[:60]!r} is no sensitive column here. Those are: {known}.")

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain numbers and texts, as JSON has them: what is infinite is None.

        >>> import pyarrow as pa
        >>> from discreet.anonymity import measure
        >>> found = measure(pa.table({"age": [30, 30, 40], "ill": ["flu", "no", "flu"]}), "age", "ill").to_dict()
        >>> found["k"], found["sizes"], found["sensitive"]["ill"]["l"], found["prosecutor"]["highest"]
        (1, {'1': 1, '2': 1}, 1, 1.0)
        """
        return {
            "rows": self.rows,
            "classes": self.classes,
            "k": self.k,
            "unique": self.unique,
            "sizes": plain.histogram(self.sizes),
            "quasi": list(self.quasi),
            "others": list(self.others),
            "sensitive": plain.exposures(self.sensitive),
            "prosecutor": plain.linkage(self.prosecutor),
            "journalist": plain.linkage(self.journalist),
            "marketer": self.marketer,
            "population": self.population,
            "loss": plain.loss(self.loss),
            "not_protected": self.not_protected,
        }

    def uniqueness(self, largest: int | None = None) -> tuple[Alone, ...]:
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
        return alone(self.columns, largest)

    def _exposures(self) -> tuple[Exposure, ...]:
        if not self.sensitive:
            raise ValueError("sensitive: no column was named, so nothing is known about it. Give sensitive='...'.")
        return self.sensitive

    def _repr_html_(self) -> str:
        from discreet.anonymity.showing.page import fragment  # noqa: PLC0415 - which knows what a Risk is

        return fragment(self)

    def __str__(self) -> str:
        return "\n".join([*_classes(self), *map(_exposure, self.sensitive), *_links(self), self.not_protected])

    __repr__ = __str__  # what one wants to see at a prompt


def _classes(risk: Risk) -> list[str]:
    classes = f"{counted(risk.classes, 'class', 'classes')} of {risk.k:,} to {max(risk.sizes):,}"
    told = f"{counted(risk.rows, 'row', 'rows')} in {classes} by {', '.join(risk.quasi)}"
    lines = [f"{told}: {risk.k}-anonymous, {counted(risk.unique, 'row', 'rows')} alone"]
    if risk.loss is not None:
        gone = f", {counted(risk.loss.suppressed, 'row', 'rows')} suppressed" if risk.loss.suppressed else ""
        lines.append(f"information lost: {_percent(risk.loss.ncp)}{gone}")
    return lines


def _exposure(each: Exposure) -> str:
    where = f"{counted(len(each.exposed), 'row', 'rows')} in {counted(each.homogeneous, 'class', 'classes')}"
    told = f"l = {each.l}, entropy l = {each.entropy_l:.3g}, t = {each.t:.3g} ({each.distance} distance)"
    return f"{each.column}: {told}; of one value only: {where}"


def _links(risk: Risk) -> list[str]:
    known, other = risk.prosecutor, risk.journalist
    risky = f"above 20 % for {_percent(known.above(_FIFTH))} of the rows"
    prosecutor = f"prosecutor: at most {_percent(known.highest)}, mean {_percent(known.mean)}, {risky}"
    if risk.population is None:
        return [prosecutor, "journalist and marketer: as the prosecutor, for no population was given"]
    found = f"{counted(other.single, 'row', 'rows')} could be one person only, {other.unmatched:,} nobody"
    return [
        prosecutor,
        f"journalist: at most {_percent(other.highest)}; of a population of {risk.population:,}, {found}",
        f"marketer: {_percent(risk.marketer)} of the rows",
    ]


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"
