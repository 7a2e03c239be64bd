"""What a release contains: its tables and synthetic rows, what they cost, and how accurate they are."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any, Literal, Self

from discreet.kernel.loss import ZERO_LOSS, Loss

PartKind = Literal["table", "family table", "synthetic rows"]
BoundOrigin = Literal["declared", "declared after paid histograms", "automatic, paid"]
DECLARED_AFTER: BoundOrigin = "declared after paid histograms"
PartState = Literal["released", "charged, missing"]


@dataclass(frozen=True)
class ColumnDescription:
    """A column of a released table; `domain` lists or bounds its values, and is "" if they are open.

    >>> ColumnDescription("n_margin", "real", "95 % margin of error of n from privacy noise").domain
    ''
    """

    name: str
    type: str
    meaning: str
    domain: str = ""


@dataclass(frozen=True)
class SizeClass:
    """The accuracy of the cells whose released value is in one range, such as "below 10".

    >>> SizeClass("below 10", cells=12, median_margin=4.2, reliable_share=0.25).label
    'below 10'
    """

    label: str
    cells: int
    median_margin: float
    reliable_share: float


@dataclass(frozen=True)
class MarginSummary:
    """The 95 % margins of error of a table's cells, the share of reliable cells, and both by size, the smallest first.

    A cell is reliable if its margin is at most a quarter of its value.

    >>> MarginSummary(median=4.2, largest=5.0, reliable_share=0.75).by_size
    ()
    """

    median: float
    largest: float
    reliable_share: float
    by_size: tuple[SizeClass, ...] = ()


@dataclass(frozen=True)
class ContributionBound:
    """A bound on what one unit contributes, and its origin: "automatic, paid" if it was chosen privately.

    One that is declared may follow from histograms that were paid for, as by `advise`.

    >>> ContributionBound("visits", "rows per unit", "10", "declared").origin
    'declared'
    """

    table: str
    name: str
    value: str
    origin: BoundOrigin


@dataclass(frozen=True)
class ReleasePart:
    """One released table, or one set of synthetic rows; `description` is its SQL, or what it is in words.

    `cost` is that of the whole charge with this `receipt`, which several tables of a family share. `rows` is the number
    of released rows, which is no secret; `margins` is None if the rows have none.

    >>> part = ReleasePart("wards", "table", "SELECT ward, COUNT(*) FROM visits GROUP BY ward", Loss("1/2"), "5e1f",
    ...                    "released", 3, (ColumnDescription("ward", "text", "the ward"),))
    >>> part.cost.epsilon, part.margins is None
    (Fraction(1, 2), True)
    """

    name: str
    kind: PartKind
    description: str
    cost: Loss
    receipt: str
    state: PartState
    rows: int | None
    columns: tuple[ColumnDescription, ...] = ()
    margins: MarginSummary | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReleaseRecord:
    """A release: its plan, its parts, and what is known of how it was made. Plain data, stored in `report.json`.

    `clipping` is the released estimate of the clipping bias in words; None if none was released. `files` has the
    SHA-256 of each released file by its path in the release. `invariants` are those that the plan states: an empty
    tuple for none; None if it states nothing, and then those of the policy apply.

    >>> record = ReleaseRecord("wards 2026", plan_text="", time="2026-11-18T12:00:00+00:00", parts=())
    >>> ReleaseRecord.from_json(record.to_json()) == record
    True
    """

    name: str
    plan_text: str
    time: str
    parts: tuple[ReleasePart, ...]
    bounds: tuple[ContributionBound, ...] = ()
    clipping: str | None = None
    post_processing: tuple[str, ...] = ()
    invariants: tuple[str, ...] | None = None
    files: tuple[tuple[str, str], ...] = ()

    @property
    def cost(self) -> Loss:
        """The cost of all parts together; parts with one receipt were charged together, and count once."""
        apart = [part.cost for part in self.parts if not part.receipt]
        return sum([*apart, *{part.receipt: part.cost for part in self.parts if part.receipt}.values()], ZERO_LOSS)

    def to_data(self) -> dict[str, Any]:
        """Return the record as plain data, with exact fractions as texts."""
        data = asdict(self)
        for part in data["parts"]:
            part["cost"] = {name: None if value is None else str(value) for name, value in part["cost"].items()}
        return data

    def to_json(self) -> str:
        """Return the record as JSON."""
        return json.dumps(self.to_data(), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a record from JSON."""
        return cls.from_data(json.loads(text))

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Read a record from the output of `to_data`; ValueError if it is no record."""
        try:
            invariants = data["invariants"]
            values = {
                **data,
                "parts": tuple(map(_read_part, data["parts"])),
                "bounds": tuple(ContributionBound(**bound) for bound in data["bounds"]),
                "post_processing": tuple(data["post_processing"]),
                "invariants": None if invariants is None else tuple(invariants),
                "files": tuple((str(name), str(digest)) for name, digest in data["files"]),
            }
            return cls(**values)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"record: not the record of a release ({error})") from None


def _read_part(data: Mapping[str, Any]) -> ReleasePart:
    cost, margins = data["cost"], data["margins"]
    return ReleasePart(
        **{field.name: data[field.name] for field in fields(ReleasePart)}
        | {
            "cost": Loss.of_bounds(
                None if cost["epsilon"] is None else Fraction(cost["epsilon"]),
                Fraction(cost["rho"]),
                Fraction(cost["delta"]),
            ),
            "columns": tuple(ColumnDescription(**column) for column in data["columns"]),
            "margins": margins
            and MarginSummary(**margins | {"by_size": tuple(SizeClass(**each) for each in margins["by_size"])}),
            "notes": tuple(data["notes"]),
        }
    )
