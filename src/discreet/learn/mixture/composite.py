"""A mixture fitted to noisy tables of its marginals: a composite likelihood that knows of the noise.

A cell with m expected units shows m + noise, of variance m + sd²: the squares of what is not explained, divided by
it, are minimised by Levenberg's and Marquardt's method, for several mixtures at once. All of it is free: it reads
released tables only. Changes are measured in each component's own whitened units; so every step keeps covariances
positive definite, and the damping has the same meaning for long and short, large and small components.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from discreet.learn.mixture.shrinkage import floored, grown, swapped
from discreet.learn.mixture.tables import Tables

_MOST_NUMBERS = 600  # parameters; with more, a start has diagonal covariances, and the iterations find the rest
_FREEDOM = 30.0  # how many units the prior of each covariance is worth
_FURTHEST = 0.7  # a mean may leave its window by this


class Mixtures(NamedTuple):
    """Several mixtures, the first axis: (R, K) sizes in units, (R, K, d) means, (R, K, d, d) covariances with blur."""

    sizes: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    def taking(self, which: np.ndarray) -> "Mixtures":
        """Return some of the mixtures."""
        return Mixtures(self.sizes[which], self.means[which], self.covariances[which])


@dataclass(frozen=True)
class Layout:
    """Which numbers of a component are free, and where those that a view shows stand among them."""

    tables: Tables
    components: int
    diagonal: bool

    @property
    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the covariance's free entries, in the lower triangle."""
        each = np.arange(self.tables.columns)
        return (each, each) if self.diagonal else np.tril_indices(self.tables.columns)

    @property
    def numbers(self) -> int:
        """How many numbers describe one component: size, mean, covariance."""
        return 1 + self.tables.columns + len(self.entries[0])

    @property
    def shown(self) -> list[tuple[int, int]]:
        """The entries of a view's own covariance that are free."""
        r = len(self.tables.views[0])
        return [(i, j) for i in range(r) for j in range(i + 1) if i == j or not self.diagonal]

    @cached_property
    def places(self) -> np.ndarray:
        """For each view, where the numbers that it shows stand: (views, K·few)."""
        d = self.tables.columns
        at = {(int(i), int(j)): 1 + d + place for place, (i, j) in enumerate(zip(*self.entries, strict=True))}
        within = [
            [
                0,
                *(1 + column for column in view),
                *(at[max(view[i], view[j]), min(view[i], view[j])] for i, j in self.shown),
            ]
            for view in self.tables.views
        ]
        first = np.arange(self.components) * self.numbers
        return np.asarray((first[:, np.newaxis] + np.array(within)[:, np.newaxis]).reshape(len(within), -1))


def layout_of(tables: Tables, components: int) -> Layout:
    """Return full covariances, or diagonal ones where full ones would take too long."""
    full = Layout(tables, components, diagonal=False)
    return full if components * full.numbers <= _MOST_NUMBERS else Layout(tables, components, diagonal=True)


class _Seen(NamedTuple):
    """Mixtures as their views show them: (R, V, K, cells) expected units, A·(x - mean), and A, the inverse."""

    expected: np.ndarray
    pulls: np.ndarray  # (R, V, K, r, cells)
    inverse: np.ndarray  # (R, V, K, r, r)


def _seen(tables: Tables, mixtures: Mixtures) -> _Seen:
    views = np.array(tables.views)
    means = mixtures.means[..., views].swapaxes(1, 2)  # (R, V, K, r)
    covariances = mixtures.covariances[..., views[:, :, np.newaxis], views[:, np.newaxis, :]].swapaxes(1, 2)
    inverse = np.linalg.inv(covariances)
    away = tables.places - means[..., np.newaxis]
    pulls = inverse @ away
    heights = np.log(mixtures.sizes)[:, np.newaxis] + np.linalg.slogdet(inverse / (2 * np.pi * tables.side**2))[1] / 2
    expected = np.exp(heights[..., np.newaxis] - (pulls * away).sum(axis=-2) / 2)
    return _Seen(expected, pulls, inverse)


def fitness(tables: Tables, expected: np.ndarray) -> np.ndarray:
    """Return the log-likelihood of the noisy counts given expected units (…, V, cells), up to a constant."""
    variance = tables.sd**2 + expected
    return np.asarray(-((tables.counts - expected) ** 2 / variance + np.log(variance)).sum(axis=(-1, -2)) / 2)


def fitness_of(tables: Tables, mixtures: Mixtures) -> np.ndarray:
    """Return the log-likelihood of each mixture, without any prior."""
    return fitness(tables, _seen(tables, mixtures).expected.sum(axis=-2))


def refine(tables: Tables, mixtures: Mixtures, prior: np.ndarray, steps: int) -> tuple[Mixtures, np.ndarray]:
    """Return the mixtures after so many steps uphill, and how well they fit; `prior` is what covariances lean to."""
    layout = layout_of(tables, mixtures.means.shape[1])
    damping = np.full(len(mixtures.sizes), 0.03)
    seen = _seen(tables, mixtures)
    height = fitness(tables, seen.expected.sum(axis=-2)) + _belief(mixtures.covariances, prior)
    for _ in range(steps):
        trial = _step(layout, mixtures, seen, prior, damping)
        seen_there = _seen(tables, trial)
        there = fitness(tables, seen_there.expected.sum(axis=-2)) + _belief(trial.covariances, prior)
        better = there > height
        mixtures = Mixtures(*(_either(better, new, old) for new, old in zip(trial, mixtures, strict=True)))
        seen = _Seen(*(_either(better, new, old) for new, old in zip(seen_there, seen, strict=True)))
        height = np.where(better, there, height)
        damping = np.clip(np.where(better, damping * 0.3, damping * 6), 1e-7, 1e4)
    return mixtures, height


def _either(better: np.ndarray, new: np.ndarray, old: np.ndarray) -> np.ndarray:
    return np.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old)


def _belief(covariances: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Return the log-density of covariances under the inverse Wishart law whose mode is the prior."""
    spread = np.trace(np.linalg.solve(covariances, np.broadcast_to(prior, covariances.shape)), axis1=-2, axis2=-1)
    return np.asarray(-_FREEDOM / 2 * (np.linalg.slogdet(covariances)[1] + spread).sum(axis=-1))


def _step(layout: Layout, now: Mixtures, seen: _Seen, prior: np.ndarray, damping: np.ndarray) -> Mixtures:
    """Return where one damped step leads."""
    curvature, slope = _normal_equations(layout, seen)
    runs, components, d = now.means.shape
    factors = np.linalg.cholesky(now.covariances)
    white = np.linalg.inv(factors)
    to_white = _whitening(layout, white)
    target = white @ prior @ swapped(white) - np.eye(d)
    i, j = layout.entries
    pull = _FREEDOM / 2 * np.where(i == j, 1.0, np.sqrt(2)) * target[..., i, j]
    measure = np.full((runs, layout.numbers), 0.0)
    measure[:, 1 + d :] = _FREEDOM / 2
    scale = curvature[:, :: layout.numbers, :: layout.numbers].diagonal(axis1=1, axis2=2).mean(axis=1)
    measure += (damping * scale + 1e-9)[:, np.newaxis]
    for k in range(components):
        block = slice(k * layout.numbers, (k + 1) * layout.numbers)
        turned = swapped(to_white[:, k])
        curvature[:, block, block] += (turned * measure[:, np.newaxis]) @ to_white[:, k]
        slope[:, block] += (turned[..., 1 + d :] @ pull[:, k, :, np.newaxis])[..., 0]
    moved = np.linalg.solve(curvature, slope[..., np.newaxis]).reshape(runs, components, -1, 1)
    return _moved(layout, now, factors, (to_white @ moved)[..., 0])


def _normal_equations(layout: Layout, seen: _Seen) -> tuple[np.ndarray, np.ndarray]:
    """Return JᵀWJ and JᵀW(counts - expected), with J the change of every cell by every number."""
    tables, (expected, pulls, inverse) = layout.tables, seen
    few = [np.ones_like(expected), *np.moveaxis(pulls, -2, 0)]
    for i, j in layout.shown:
        both = pulls[..., i, :] * pulls[..., j, :] - inverse[..., i, j, np.newaxis]
        few.append(both / 2 if i == j else both)
    change = np.stack(few, axis=-2) * expected[..., np.newaxis, :]
    change = change.reshape(*expected.shape[:2], -1, expected.shape[-1])
    whole = expected.sum(axis=-2)
    weights = 1 / (tables.sd**2 + whole)
    squares = (change * weights[:, :, np.newaxis]) @ swapped(change)
    slopes = (change @ (weights * (tables.counts - whole))[..., np.newaxis])[..., 0]
    size = layout.components * layout.numbers
    curvature, slope = np.zeros((len(expected), size, size)), np.zeros((len(expected), size))
    for view, places in enumerate(layout.places):
        curvature[:, places[:, np.newaxis], places] += squares[:, view]
        slope[:, places] += slopes[:, view]
    return curvature, slope


def _whitening(layout: Layout, white: np.ndarray) -> np.ndarray:
    """Return the matrix from changes of a component's numbers to the same changes in its whitened units."""
    d, (i, j) = layout.tables.columns, layout.entries
    a, b = i[:, np.newaxis], j[:, np.newaxis]
    out = np.zeros((*white.shape[:2], layout.numbers, layout.numbers))
    out[..., 0, 0] = 1
    out[..., 1 : 1 + d, 1 : 1 + d] = white
    twice = white[..., a, i] * white[..., b, j] + white[..., a, j] * white[..., b, i]
    out[..., 1 + d :, 1 + d :] = twice * np.where(i == j, 0.5, 1.0) * np.where(a == b, 1.0, np.sqrt(2))
    return out


def _moved(layout: Layout, now: Mixtures, factors: np.ndarray, change: np.ndarray) -> Mixtures:
    """Return the mixtures after a change in whitened units, which is cut where it would go too far."""
    d, (i, j) = layout.tables.columns, layout.entries
    sizes = np.maximum(now.sizes * np.exp(np.clip(change[..., 0], -1, 1)), 1e-3)
    shift = change[..., 1 : 1 + d]
    shift = shift / np.maximum(np.linalg.norm(shift, axis=-1, keepdims=True), 1)
    means = np.clip(now.means + (factors @ shift[..., np.newaxis])[..., 0], -_FURTHEST, _FURTHEST)
    growth = np.zeros(now.covariances.shape)
    growth[..., i, j] = growth[..., j, i] = np.where(i == j, 1.0, np.sqrt(0.5)) * np.clip(change[..., 1 + d :], -4, 4)
    covariances = floored(grown(factors, growth), 1.05 * layout.tables.blur)
    return Mixtures(sizes, means, covariances)
