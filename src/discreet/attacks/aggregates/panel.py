"""People with many attributes each, of whom some are in a study: genomes, or answers to many questions."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.aggregates.fields import array
from discreet.kernel.exact import whole


@dataclass(frozen=True)
class Panel:
    """A row of whole numbers from 0 to `most` for each person, and the population that each comes from.

    A genome counts an allele at each place (`most` is 2); a survey has yes or no for each question (`most` is 1).

    >>> Panel([[0, 1], [1, 1], [0, 0]], most=1).people
    3
    """

    values: np.ndarray
    most: int = 1
    populations: np.ndarray | None = None

    def __post_init__(self) -> None:
        values = array(self.values)
        if values.ndim != 2 or not values.size or values.dtype.kind not in "biu":
            raise ValueError("values must be whole numbers, a row for each person and a column for each attribute")
        if values.min() < 0 or values.max() > whole(self.most, "most", 1):
            raise ValueError(f"values must lie from 0 to most = {self.most}: recode them, or state another most")
        origin = np.zeros(len(values), int) if self.populations is None else array(self.populations)
        if origin.shape != (len(values),):
            raise ValueError("populations must have one entry for each person")
        object.__setattr__(self, "values", values.astype(np.uint8) if self.most < 256 else values)
        object.__setattr__(self, "populations", origin)

    @property
    def people(self) -> int:
        """How many people there are, in the study or not."""
        return len(self.values)

    @property
    def attributes(self) -> int:
        """How many attributes everybody has."""
        return int(self.values.shape[1])


@dataclass(frozen=True)
class Play:
    """One study: the people who are in it, equal people who are not, and yet others whom the attacker knows."""

    members: np.ndarray
    strangers: np.ndarray
    reference: np.ndarray


def plays_of(panel: Panel, pool: int, plays: int, rng: np.random.Generator) -> list[Play]:
    """Draw so many studies: twice `pool` people, each in by a coin of their own, and all others as the reference.

    Everybody's own coin, and no fixed number of members: so being in or out adds or removes this person and nobody
    else, which is what the curator's epsilon is for. The candidates are spread evenly over the populations, as is the
    reference: else the score would tell where people come from, and not who is in.
    """
    candidates = 2 * whole(pool, "pool", 10)
    if panel.people < candidates + pool:
        raise ValueError(
            f"pool: {pool} members need {candidates} candidates and at least {pool} others as a reference, "
            f"and there are {panel.people} people. Choose a pool of at most {panel.people // 3}."
        )
    return [_play(panel, candidates, rng) for _ in range(whole(plays, "plays", 1))]


def _play(panel: Panel, candidates: int, rng: np.random.Generator) -> Play:
    shuffled = rng.permutation(panel.people)
    origin: Any = panel.populations
    order = shuffled[np.argsort(origin[shuffled], kind="stable")]
    steps = np.arange(panel.people + 1) * candidates // panel.people
    chosen = np.diff(steps) > 0
    coins = rng.random(candidates) < 1 / 2
    while coins.all() or not coins.any():  # one in 500,000 times with the smallest pool
        coins = rng.random(candidates) < 1 / 2
    drawn = order[chosen]
    return Play(panel.values[drawn[coins]], panel.values[drawn[~coins]], panel.values[order[~chosen]])


def thinned(panel: Panel, attributes: int | None, rng: np.random.Generator) -> Panel:
    """Return the panel with so many of its attributes, drawn at random; None keeps all."""
    if attributes is None:
        return panel
    if whole(attributes, "attributes", 1) > panel.attributes:
        raise ValueError(f"attributes: {attributes} are asked for, and everybody has {panel.attributes}")
    kept = np.sort(rng.choice(panel.attributes, attributes, replace=False))
    return Panel(panel.values[:, kept], panel.most, panel.populations)


def rareness(people: np.ndarray, reference: np.ndarray, most: int) -> np.ndarray:
    """Return how far everybody is from what is usual in the reference: the rarer an allele or answer, the more it adds.

    >>> reference = np.array([[0, 0], [0, 1], [0, 0], [0, 1]])
    >>> rareness(np.array([[0, 1], [1, 1]]), reference, most=1).round(1).tolist()
    [1.2, 6.0]
    """
    usual = (reference.sum(axis=0, dtype=float) + 1) / (most * len(reference) + 2)
    return np.asarray((people / most - usual) ** 2 @ (1 / (usual * (1 - usual))))
