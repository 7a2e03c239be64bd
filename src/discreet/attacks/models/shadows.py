"""Games of membership: coins decide who is in a model's data, and outsiders make models of their own beside it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.attacks.models.people import Labelled
from discreet.attacks.models.targets import Making, Service, serve
from discreet.attacks.progress import track
from discreet.kernel.exact import whole

LEAST = 80  # people; of fewer there are no models worth attacking


@dataclass(frozen=True)
class Models:
    """Models that were made of people: `inside` says who is in each of them, and `services` what outsiders ask."""

    inside: np.ndarray  # models × people
    services: Sequence[Service]

    def tell(self, rows: np.ndarray) -> np.ndarray:
        """Return every model's confidence in every class for rows: models × rows × classes."""
        return np.array([service(rows) for service in self.services])

    def last(self) -> "Models":
        """Return the last of the models."""
        return Models(self.inside[-1:], self.services[-1:])

    def but_last(self) -> "Models":
        """Return all models but the last."""
        return Models(self.inside[:-1], self.services[:-1])


def flip(people: int, models: int, rng: np.random.Generator) -> np.ndarray:
    """Return who is in each model: a fair coin for each person and model, models × people.

    Coins that are flipped one by one make a person's being in or out the removal of one row, which is what epsilon is
    promised for. Halves of a fixed size would replace a row, which may show twice the epsilon.
    """
    return rng.random((models, people)) < 0.5


def make(making: Making, people: Labelled, inside: np.ndarray, rng: np.random.Generator) -> Models:
    """Make a model of the people of each row of `inside`."""
    seeds = rng.integers(2**31, size=len(inside))
    jobs = list(zip(inside, seeds.tolist(), strict=True))
    return Models(inside, [serve(making, people.some(chosen), seed) for chosen, seed in track(jobs, "models")])


def check_game(people: Labelled, targets: int, shadows: int, least: int = LEAST) -> None:
    """Stop if there are too few people, models to attack, or models to learn from."""
    whole(targets, "targets", 1)
    whole(shadows, "shadows", 2)
    if not isinstance(people, Labelled):
        raise TypeError(f"data must be a Labelled record of X and y, not {type(people).__name__}")
    if len(people) < least:
        raise ValueError(f"data: {len(people)} people are too few for models worth attacking; give at least {least}")
    if (people.y == people.y[0]).all():
        raise ValueError("data: everybody is of one class; a model needs two or more to tell apart")


def split(people: Labelled, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of people who may be in the attacked models, and of as many others whom the attacker knows."""
    order = rng.permutation(len(people))
    half = len(people) // 2
    return np.sort(order[:half]), np.sort(order[half : 2 * half])


def own_confidence(told: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the confidence in each row's own class; the last two axes of what was told are rows × classes.

    >>> own_confidence(np.array([[0.2, 0.8], [0.5, 0.5]]), np.array([1, 0])).tolist()
    [0.8, 0.5]
    """
    return np.asarray(told[..., np.arange(len(y)), y])
