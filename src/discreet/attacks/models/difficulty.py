"""What a model's confidence says about membership once one knows how difficult a person is for such models.

Models tell little about easy people, whom they know without having met them. So each person is taken to be of one of
some levels of difficulty. A level has a mean and a variance of confidences of models that met such people, and of
models that did not. Levels are fitted to all people at once, by expectation and maximisation; few models thus suffice.
"""

from dataclasses import dataclass

import numpy as np

_ROUNDS = 30
_NARROW = 0.01  # no standard deviation is taken to be smaller, on the scale of `scaled`
_BORROWED = 5.0  # observations' worth of the variance of all levels that each level starts with


@dataclass(frozen=True)
class Level:
    """The means and variances of one kind of models, for every level of difficulty."""

    mean: np.ndarray
    variance: np.ndarray

    def fit_of(self, seen: "Seen") -> np.ndarray:
        """Return the log-likelihood of what was seen of each person, for every level: people × levels."""
        count, total, squares = (part[:, None] for part in (seen.count, seen.total, seen.squares))
        away = squares - 2 * total * self.mean + count * self.mean**2
        return np.asarray(-0.5 * (away / self.variance + count * np.log(self.variance)))


@dataclass(frozen=True)
class Seen:
    """How many confidences were seen of each person, their sum, and the sum of their squares."""

    count: np.ndarray
    total: np.ndarray
    squares: np.ndarray


@dataclass(frozen=True)
class Levels:
    """Levels of difficulty: how frequent they are, and what models show that met people of each, or did not."""

    share: np.ndarray
    inside: Level
    outside: Level


def scaled(confidence: np.ndarray) -> np.ndarray:
    """Return confidences on a scale on which those near 0 and 1 are apart, and their variances are much alike.

    >>> scaled(np.array([0.0, 0.5, 1.0])).round(2).tolist()
    [0.0, 0.79, 1.57]
    """
    return np.asarray(np.arcsin(np.sqrt(np.clip(confidence, 0, 1))))


def seen_by(scores: np.ndarray, which: np.ndarray) -> Seen:
    """Sum up the scores of the models that `which` chooses for each person; both are models × people."""
    chosen = np.where(which, scores, 0.0)
    return Seen(which.sum(axis=0).astype(float), chosen.sum(axis=0), (chosen**2).sum(axis=0))


def fit_levels(scores: np.ndarray, inside: np.ndarray, count: int = 24) -> Levels:
    """Fit levels of difficulty to models' scores of people, some of whom are in the data of some models."""
    met, unmet = seen_by(scores, inside), seen_by(scores, ~inside)
    weights = _first_guess(met, unmet, min(count, scores.shape[1]))
    levels = _levels(weights, met, unmet)
    for _ in range(_ROUNDS):
        levels = _levels(_weights(levels, met, unmet), met, unmet)
    return levels


def odds(levels: Levels, met: Seen, unmet: Seen, shown: np.ndarray) -> np.ndarray:
    """Return the log-odds that a model which shows these scores has met each person.

    `met` and `unmet` are what the attacker's own models show that have met the same people, and that have not.
    """
    weights = _weights(levels, met, unmet)
    return np.asarray(_log_density(levels.inside, weights, shown) - _log_density(levels.outside, weights, shown))


def none_of(seen: Seen) -> Seen:
    """Return that nothing was seen of the same people."""
    nothing = np.zeros_like(seen.count)
    return Seen(nothing, nothing, nothing)


def _first_guess(met: Seen, unmet: Seen, count: int) -> np.ndarray:
    """Put people into levels of equal size by the mean of what was seen, less what having met people adds."""
    usual = met.total - _gain(met, unmet) * met.count + unmet.total
    mean = usual / np.maximum(met.count + unmet.count, 1)
    places = np.argsort(np.argsort(mean, kind="stable"), kind="stable") * count // mean.size
    return np.asarray(np.eye(count)[places])


def _levels(weights: np.ndarray, met: Seen, unmet: Seen) -> Levels:
    middle = np.full(weights.shape[1], unmet.total.sum() / max(unmet.count.sum(), 1.0))
    outside = _level(weights, unmet, middle)
    inside = _level(weights, met, outside.mean + _gain(met, unmet))
    return Levels(weights.mean(axis=0), inside, outside)


def _gain(met: Seen, unmet: Seen) -> float:
    """Return how much higher models score people whom they have met, on average."""
    return float(met.total.sum() / max(met.count.sum(), 1.0) - unmet.total.sum() / max(unmet.count.sum(), 1.0))


def _level(weights: np.ndarray, seen: Seen, expected: np.ndarray) -> Level:
    """Fit one kind of models; a level of which nothing was seen is as expected, with the variance of all levels."""
    number = weights.T @ seen.count
    mean = (weights.T @ seen.total + expected) / (number + 1)
    away = weights.T @ seen.squares - 2 * mean * (weights.T @ seen.total) + number * mean**2
    spread = np.maximum(away, 0.0)
    common = spread.sum() / max(number.sum(), 1.0)
    return Level(mean, (spread + _BORROWED * common) / (number + _BORROWED) + _NARROW**2)


def _weights(levels: Levels, met: Seen, unmet: Seen) -> np.ndarray:
    """Return how likely each person is of each level, given what was seen: people × levels."""
    likely = np.log(levels.share + 1e-12) + levels.inside.fit_of(met) + levels.outside.fit_of(unmet)
    likely = np.exp(likely - likely.max(axis=1, keepdims=True))
    return np.asarray(likely / likely.sum(axis=1, keepdims=True))


def _log_density(level: Level, weights: np.ndarray, shown: np.ndarray) -> np.ndarray:
    each = np.log(weights + 1e-300) - 0.5 * (
        (shown[:, None] - level.mean) ** 2 / level.variance + np.log(level.variance)
    )
    highest = each.max(axis=1, keepdims=True)
    return np.asarray(np.log(np.exp(each - highest).sum(axis=1)) + highest[:, 0])
