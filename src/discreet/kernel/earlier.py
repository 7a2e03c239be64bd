"""Stored draws, read back from what the ledger keeps: which noise each total had, and the one that is made finer."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from discreet.kernel.errors import Refused
from discreet.kernel.event import Event, canonical
from discreet.kernel.ledger.interface import Ledger
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity

_ENDS = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_NOT_NEWEST = "the same was asked by somebody else at this moment. Ask again."


class Drawn(NamedTuple):
    """One total that an event released: its topic, where it is in the stored answer, its noise and its threshold."""

    topic: str
    part: int
    place: int
    noise: Laplace | Gaussian
    cut: int | None = None


@dataclass(frozen=True)
class Earlier:
    """A stored draw that a new one makes finer: the receipt of its charge, and its noise."""

    receipt: str
    noise: Laplace

    def __post_init__(self) -> None:
        if type(self.receipt) is not str or not isinstance(self.noise, Laplace):
            raise TypeError("an earlier draw is a receipt and its Laplace mechanism")

    def mechanism(self, after: Laplace) -> str:
        """Write what was done as data, the way the ledger keeps it."""
        return canonical(
            {"name": "refined", "scale": str(after.scale), "before": str(self.noise.scale), "of": self.receipt}
        )

    def loss(self, after: Laplace, sensitivity: Sensitivity) -> Loss:
        """Return what the finer draw adds to the price of this one.

        Claim: added to the loss of the earlier draw it bounds both, also if the earlier answer, or others since,
            decided whether and how far to refine.
        Proof: epsilon: whatever else a transcript holds, the density of the two values is P[finer - exact] times a
            factor without the exact value (refine), so their log-ratio is at most epsilon(after). Rho: given the
            earlier value, the log-ratio of the finer one ranges over 2·epsilon(after), and a range r has rho r²/8 (by
            Hoeffding's lemma: Cesar and Rogers 2021); the difference of the two rhos would be too little.
        Needs: Laplace.loss, refine, recall.
        Checked by: test_refining_costs_the_difference_and_a_whole_rho,
            test_the_law_of_a_refined_answer_on_neighbours_stays_within_the_finer_price
        Seal: d47a67c872c7
        """
        before, finer = self.noise.loss(sensitivity), after.loss(sensitivity)
        if before.epsilon is None or finer.epsilon is None or not finer.epsilon > before.epsilon:
            raise ValueError("a draw is made finer by less noise")
        return Loss.exactly(finer.epsilon - before.epsilon, finer.rho)


def recall(topic: str, earlier: Earlier, ledger: Ledger) -> np.ndarray:
    """Return the noisy values of the draw that is to be made finer.

    Claim: they were released under this topic with this noise, and nothing with this topic was charged since.
    Proof: the charge is found by its topic and its receipt, its noise is read from what it recorded, and the ledger
        says that it is the newest. A value at an end of int64 may have been cut there, and has lost its law.
    Needs: Ledger.answers, Ledger.newest; Ledger.charge, which looks at the last again in the transaction that pays.
    Checked by: test_only_the_newest_stored_draw_with_its_own_noise_is_refined
    Seal: fd4a76811172
    """
    found = {event.id: (event, answer) for event, answer in ledger.answers([topic]) if answer is not None}
    if earlier.receipt not in found or ledger.newest(topic) != earlier.receipt:
        raise Refused(_NOT_NEWEST)
    event, answer = found[earlier.receipt]
    draws = [draw for draw in drawn_in(event) if draw.topic == topic]
    if len(draws) != 1 or draws[0].noise != earlier.noise or draws[0].cut is not None:
        raise ValueError("earlier: this draw had another noise")
    values = column_of(answer, draws[0])
    if np.isin(values, _ENDS).any():
        raise ValueError("earlier: a value at an end of int64 cannot be refined")
    return values


def drawn_in(event: Event) -> list[Drawn]:
    """Return what an event released, total by total."""
    data = json.loads(event.mechanism)
    listed = data["parts"] if data.get("name") == "several" else [data]
    places = [
        (topic, part, place) for part, topics in enumerate(event.topics) for place, topic in enumerate(topics) if topic
    ]
    return [Drawn(*where, *_noise(each)) for where, each in zip(places, listed, strict=True)] if places else []


def column_of(answer: bytes | None, draw: Drawn) -> np.ndarray:
    """Return the stored numbers of one total."""
    rows = json.loads(answer or b"")[draw.part]["values"]
    return np.array([row[draw.place] for row in rows], np.int64)


def _noise(data: Any) -> tuple[Laplace | Gaussian, int | None]:
    match data["name"]:
        case "threshold":
            return _noise(json.loads(data["noise"]))[0], int(data["cut"])
        case "laplace" | "refined":
            return Laplace(data["scale"]), None
        case "gaussian":
            return Gaussian(data["scale"]), None
    raise ValueError(f"{data['name']!r} is no noise that is added to totals")
