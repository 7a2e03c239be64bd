"""Where a private mixture begins: many first guesses from released tables, of which the best fit is kept. It is free.

Points are drawn whose pairs of columns follow the noisy tables; ordinary mixtures of these artificial points are the
first guesses; the composite likelihood of the tables improves them and decides.
"""

import math
import warnings
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from discreet.learn.mixture.composite import Mixtures, fitness_of, layout_of, refine
from discreet.learn.mixture.shrinkage import floored
from discreet.learn.mixture.tables import Tables

_GUESSES, _GOOD = 6, 2  # mixtures that take the first steps, and those that go on
_FIRST, _MORE, _LAST = 6, 12, 8  # steps: of all guesses, of the good ones, and of these with finer cells
_POINTS = 1000
_SWEEPS = 3
_EVIDENCE = 2.5  # all other columns together say as much of a column as this many: they are not independent
_LEAST = 0.3  # a component's least variance, in those of a cell
_BY_CHANCE = 0.3  # what a number wins where there is nothing to see; the prior keeps it below 1/2
_COARSE = 4096  # cells in all tables together, about, for the first guesses


class Start(NamedTuple):
    """A mixture in the windows' units, without the cells' blur, and how well it fits the tables with a fair penalty."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    evidence: float


def best_start(tables: Tables, candidates: Collection[int]) -> Start:
    """Return the best mixture found, of the number of components with the most evidence."""
    with threadpool_limits(1, "blas"):  # its matrices are small: threads would mostly wait for each other
        return max((_start(tables, components) for components in candidates), key=lambda start: start.evidence)


def _evidence(tables: Tables, mixture: Mixtures) -> float:
    """Return the likelihood of the tables less what so many numbers win by chance.

    A unit is in every table, so that the tables' sampling errors go together: where they outweigh the noise, chance
    wins up to as many times more as a column has tables.
    """
    per_cell = tables.total / tables.counts.shape[1]
    together = max(tables.columns - 1, 1)
    inflation = (tables.sd**2 + together * per_cell) / (tables.sd**2 + per_cell)
    components = mixture.sizes.shape[1]
    # The best of many places for a component, and numbers that follow the noise there.
    won = components * (math.log(tables.counts.shape[1]) / 2 + _BY_CHANCE * layout_of(tables, components).numbers)
    return float(fitness_of(tables, mixture)[0] - inflation * won)


def _start(tables: Tables, components: int) -> Start:
    rng = np.random.default_rng(list(tables.counts.tobytes()[:4096]))  # the same tables give the same start
    coarse = tables.coarser(_coarse_side(tables))
    mixtures = _guesses(coarse, components, rng)
    prior = np.diag(np.einsum("rkii,rk->i", mixtures.covariances, mixtures.sizes) / mixtures.sizes.sum())
    mixtures, heights = refine(coarse, mixtures, prior, _FIRST)
    mixtures, heights = refine(coarse, mixtures.taking(np.argsort(-heights)[:_GOOD]), prior, _MORE)
    if coarse is not tables:
        sharper = floored(
            mixtures.covariances - (coarse.blur - tables.blur) * np.eye(tables.columns), 1.5 * tables.blur
        )
        mixtures, heights = refine(tables, mixtures._replace(covariances=sharper), prior, _LAST)
    best = int(np.argmax(heights))
    sizes, means, blurred = mixtures.taking(np.array([best]))
    covariances = floored(blurred[0] - tables.blur * np.eye(tables.columns), _LEAST * tables.blur)
    return Start(sizes[0] / sizes.sum(), means[0], covariances, _evidence(tables, Mixtures(sizes, means, blurred)))


def _coarse_side(tables: Tables) -> int:
    """Return how many cells along a column are enough for guesses."""
    side = tables.side
    while side > 16 and side ** len(tables.views[0]) * len(tables.views) > _COARSE:
        side //= 2
    return side


def _guesses(tables: Tables, components: int, rng: np.random.Generator) -> Mixtures:
    """Return ordinary mixtures of artificial points, each from a beginning of its own."""
    diagonal = layout_of(tables, components).diagonal
    points = artificial_points(tables, max(_POINTS, 20 * components), rng)
    found = []
    for _ in range(_GUESSES):
        guess = GaussianMixture(
            components,
            covariance_type="diag" if diagonal else "full",
            init_params="k-means++",
            reg_covar=2 * tables.blur,
            max_iter=30,
            random_state=int(rng.integers(1 << 31)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a guess need not be good
            guess.fit(points)
        covariances = guess.covariances_
        found.append(
            (
                guess.weights_,
                guess.means_,
                covariances[..., np.newaxis] * np.eye(tables.columns) if diagonal else covariances,
            )
        )
    weights, means, covariances = (np.array(part) for part in zip(*found, strict=True))
    weights = np.maximum(weights, 0.1 / components)
    return Mixtures(weights / weights.sum(axis=1, keepdims=True) * tables.total, means, covariances)


def artificial_points(tables: Tables, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return points, (count, d), whose views follow the tables as far as these stand out of the noise."""
    side, d = tables.side, tables.columns
    masses = np.maximum(tables.counts - tables.sd, 0) + 1e-3 * tables.total / tables.counts.shape[1]
    masses /= masses.sum(axis=1, keepdims=True)
    cells = rng.choice(side, (count, 1), p=masses[0]) if d == 1 else _gibbs(_joint(tables, masses), d, count, rng)
    return np.asarray((cells + rng.random((count, d))) / side - 0.5)


def _joint(tables: Tables, masses: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
    """Return every pair's table, in both directions."""
    square = masses.reshape(-1, tables.side, tables.side)
    forward = dict(zip(tables.views, square, strict=True))
    return {(i, j): forward[i, j] if (i, j) in forward else forward[j, i].T for i, j in _both_ways(tables.views)}


def _both_ways(views: Sequence[tuple[int, ...]]) -> list[tuple[int, int]]:
    return [(i, j) for i, j in views] + [(j, i) for i, j in views]


def _gibbs(joint: dict[tuple[int, int], np.ndarray], d: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return cells, (count, d): each column in turn is drawn given what its tables say of it and the others."""
    partners = {j: [i for i, other in joint if other == j] for j in range(d)}
    alone = np.array([np.mean([joint[j, i].sum(axis=1) for i in partners[j]], axis=0) for j in range(d)])
    ties = {(i, j): np.log(joint[i, j] / np.outer(alone[i], alone[j]) + 1e-6) for i, j in joint}
    cells = np.zeros((count, d), np.int64)
    known: set[int] = set()
    for sweep in range(_SWEEPS):
        for j in rng.permutation(d):
            given = [i for i in partners[j] if i in known and i != j]
            logs = np.tile(np.log(alone[j]), (count, 1))
            for i in given:
                logs += min(1.0, _EVIDENCE / len(given)) * ties[i, j][cells[:, i]]
            heaps = np.exp(logs - logs.max(axis=1, keepdims=True)).cumsum(axis=1)
            drawn = (heaps < rng.random((count, 1)) * heaps[:, -1:]).sum(axis=1)
            cells[:, j] = np.minimum(drawn, alone.shape[1] - 1)
            known.add(int(j))
        if d == 2 and sweep == 0:
            break  # the pair was drawn from its own table
    return cells
