"""Charges of the ledger as a report shows them: mechanism, scale, sensitivity, cost, time and state."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.answer.text import short_number
from discreet.kernel.event import Event, EventState
from discreet.kernel.loss import ZERO_LOSS
from discreet.publish.report.number_text import loss_text, rounded_up

_NAMES = {
    "laplace": "discrete Laplace noise",
    "gaussian": "discrete Gaussian noise",
    "refined": "discrete Laplace noise, refined",
    "quantiles": "exponential mechanism (quantiles)",
    "exponential": "exponential mechanism",
    "permute-and-flip": "permute-and-flip",
    "lost": "charges lost in a rollback",
}
_MAX_TEXT = 2_000  # characters of a query that are shown


@dataclass(frozen=True)
class NoiseFact:
    """A mechanism by name with its scale, None if it has none, and the sensitivity of the total under it."""

    mechanism: str
    scale: str | None
    l1: str | None
    l2_squared: str | None

    def __str__(self) -> str:
        ratio = self._scale_by_sensitivity()
        if ratio is not None:
            norm = "l2" if "Gaussian" in self.mechanism else "l1"
            return f"{self.mechanism}, scale {short_number(ratio, 4)} times the {norm} sensitivity"
        return self.mechanism + (f", scale {rounded_up(Fraction(self.scale))}" if self.scale else "")

    def _scale_by_sensitivity(self) -> float | None:
        """Return the scale as a multiple of the sensitivity that determines the cost."""
        if "noise" not in self.mechanism or not self.scale:
            return None
        if "Gaussian" in self.mechanism:
            return float(Fraction(self.scale) ** 2 / Fraction(self.l2_squared)) ** 0.5 if self.l2_squared else None
        return float(Fraction(self.scale) / Fraction(self.l1)) if self.l1 else None


@dataclass(frozen=True)
class ReportedEvent:
    """One charge."""

    id: str
    time: str
    by: str
    dataset: str
    query: str
    purpose: str
    noises: tuple[NoiseFact, ...]
    cost: str
    loss: Mapping[str, str | None]
    state: str


def reported_event(event: Event) -> ReportedEvent:
    """Return a charge as a report shows it.

    >>> from discreet.kernel.mechanism import Laplace, Sensitivity
    >>> event = Event(mechanism=str(Laplace(10)), sensitivity=str(Sensitivity(1, 2)), question="how many visits?")
    >>> [str(noise) for noise in reported_event(event).noises]
    ['discrete Laplace noise, scale 5 times the l1 sensitivity']
    """
    query, purpose = _query(event)
    loss = event.loss or ZERO_LOSS
    return ReportedEvent(
        id=event.id,
        time=event.time,
        by=event.by,
        dataset=event.dataset,
        query=query,
        purpose=purpose,
        noises=tuple(_noises(event)),
        cost=loss_text(loss),
        loss={name: None if value is None else str(value) for name, value in vars(loss).items()},
        state="released" if event.state == EventState.RELEASED else "charged without an answer",
    )


def _query(event: Event) -> tuple[str, str]:
    """Return the text of the query, and the purpose of a charge that only prepares an answer."""
    try:
        record = json.loads(event.question)
        if "publication" in record:
            return _publication_text(record)[:_MAX_TEXT], ""
        return str(record["sql"])[:_MAX_TEXT], str(record.get("purpose", ""))
    except (ValueError, KeyError, TypeError):
        return event.question[:_MAX_TEXT], ""


def _publication_text(record: Mapping[str, Any]) -> str:
    """Return which part of a publication was charged."""
    if "tables" in record:
        what = f"tables that add up: {', '.join(name for name, _ in record['tables'])}"
    elif "columns" in record:
        what = f"synthetic rows {record['part']} of {record['table']}: {', '.join(record['columns'])}"
    else:
        what = f"table {record['part']}"
    return f"{record['publication']}: {what}"


def _noises(event: Event) -> Iterator[NoiseFact]:
    mechanism, sensitivity = json.loads(event.mechanism), json.loads(event.sensitivity)
    parts = mechanism["parts"] if mechanism.get("name") == "several" else [mechanism]
    norms = sensitivity if isinstance(sensitivity, list) else [sensitivity] * len(parts)
    for part, norm in zip(parts, norms, strict=False):
        yield from _part_noises(part, norm if isinstance(norm, dict) else {})


def _part_noises(part: Mapping[str, Any], norm: Mapping[str, Any]) -> Iterator[NoiseFact]:
    name = str(part.get("name", "unknown"))
    l1, l2_squared = (_text(norm.get(key)) for key in ("l1", "l2_squared"))
    if name == "partition selection":
        for number, text in enumerate(part["rounds"], 1):
            noise = json.loads(json.loads(text)["noise"])
            kind = _NAMES.get(noise["name"], noise["name"])
            yield NoiseFact(f"partition selection, round {number}: {kind}", noise["scale"], l1, l2_squared)
        return
    yield NoiseFact(_NAMES.get(name, name), _text(part.get("scale")), l1, l2_squared)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
