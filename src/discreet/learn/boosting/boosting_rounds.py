"""Cyclic boosting on noisy histograms: a histogram of all columns, then residuals per bin, one feature at a time.

cells × classes ──► bins ──► [ residuals per bin of a feature ──► its shape function ] × features × rounds
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.model_release import Combine, RowRule
from discreet.learn.boosting.column_cells import ColumnCells, bins_of_categories, cells_of, merge_cells
from discreet.learn.boosting.shape_functions import ShapeFunction, ordered_prior, unordered_prior
from discreet.learn.fit_session import FitSession

_HISTOGRAM_SHARE = Fraction(3, 20)  # of the budget, for the first release
_TARGET_CELLS = 64  # intervals of a regression's target
_MIN_COUNT = 10.0
_USUAL_BINS = 16  # the noise in the effects is judged in a bin with this share of the units
_MIN_RESIDUAL_BOUND, _NOISE_WEIGHT = 0.6, 4.0  # a classifier's residuals are clipped to max(0.6, 1 - 4·noise)
_TARGET_BOUNDS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0)  # bounds of residuals to choose from, in deviations
# Curvature p·(1 - p) of the logistic loss: p is the bin's share of the second class, shrunk as if this many deviations
# of noise were further units; a bin's curvature is at least 0.6 times the overall one, and other effects reduce it.
_RATE_NOISE_UNITS, _MIN_CURVATURE, _CURVATURE_SHARE = 2.0, 0.6, 0.8


@dataclass(frozen=True)
class BoostingStart:
    """What the first release says: counts of units per cell, the intercept, and how residuals are computed.

    `unit` is the usual size of effects. `residual_bound` is the bound of a row's residual. `positives` are the counts
    of the second class per cell, or empty.
    """

    counts: list[np.ndarray]
    count_sd: float
    intercept: float
    unit: float
    residual_bound: float
    rule: RowRule
    rule_public: tuple[Any, ...]
    positives: list[np.ndarray]

    @property
    def total(self) -> float:
        """The noisy number of units."""
        return max(float(np.mean([counts.sum() for counts in self.counts])), _MIN_COUNT)


@dataclass(frozen=True)
class AdditiveModel:
    """The intercept, each feature's shape function, and the bin of each of its cells."""

    intercept: float
    shapes: list[ShapeFunction]
    bins: list[np.ndarray]


def budget_shares(n_features: int, rounds: int) -> tuple[Fraction, ...]:
    """Return the budget shares of the histogram and of each release of residuals, which add up to 1."""
    releases = n_features * rounds
    return (_HISTOGRAM_SHARE, *[(1 - _HISTOGRAM_SHARE) / releases] * releases)


def start_classes(session: FitSession, cells: ColumnCells, label_codes: np.ndarray, rounds: int) -> BoostingStart:
    """Release counts per cell and class, and start at the log-odds of the second class."""
    public = (*cells.for_rules, cells.sizes, label_codes)
    tables, sd = _release_histograms(session, _class_cells, public, [2 * size for size in cells.sizes])
    by_class = [table.reshape(2, -1) for table in tables]
    counts, positives = [each.sum(axis=0) for each in by_class], [each[1] for each in by_class]
    total = max(float(np.mean([each.sum() for each in counts])), _MIN_COUNT)
    share = float(np.clip(np.mean([each.sum() for each in positives]) / total, 0.01, 0.99))
    noise = session.sd() * _USUAL_BINS / (total * share * (1 - share) * math.sqrt(rounds))
    bound = max(_MIN_RESIDUAL_BOUND, 1 - _NOISE_WEIGHT * noise)
    intercept = math.log(share / (1 - share))
    return BoostingStart(counts, sd * math.sqrt(2), intercept, 1.0, bound, _class_residuals, (label_codes,), positives)


def start_target(session: FitSession, cells: ColumnCells, bounds: tuple[float, float], rounds: int) -> BoostingStart:
    """Release counts per cell and of the target, and start at the target's mean."""
    low, high = bounds
    width = (high - low) / _TARGET_CELLS
    public = (*cells.for_rules, low, 1 / width)
    tables, sd = _release_histograms(session, _target_cells, public, [*cells.sizes, _TARGET_CELLS])
    counts = np.where(tables[-1] > 2 * sd, tables[-1], 0)
    middles = low + width * (np.arange(_TARGET_CELLS) + 0.5)
    shares = counts / counts.sum() if counts.any() else np.full(_TARGET_CELLS, 1 / _TARGET_CELLS)
    mean = float(shares @ middles)
    deviation = math.sqrt(float(shares @ (middles - mean) ** 2) + width**2 / 12)
    total = max(float(np.mean([table.sum() for table in tables[:-1]])), _MIN_COUNT)
    noise = session.sd() * _USUAL_BINS / total / math.sqrt(rounds)
    largest = max(high - mean, mean - low)

    def expected_error(bound: float) -> float:
        bias = float(shares @ np.clip(middles - mean, -bound, bound))
        return bias**2 + (noise * bound) ** 2

    bound = min((min(factor * deviation, largest) for factor in _TARGET_BOUNDS), key=expected_error)
    return BoostingStart(tables[:-1], sd, mean, deviation, bound, _target_residuals, (), [])


def boost(
    session: FitSession, cells: ColumnCells, start: BoostingStart, *, rounds: int, max_bins: int
) -> AdditiveModel:
    """Return the additive model after so many rounds; in each, every feature's residuals are released once."""
    bins = [
        merge_cells(counts, start.count_sd, max_bins) if codes is None else bins_of_categories(codes)
        for counts, codes in zip(start.counts, cells.codes, strict=True)
    ]
    weights = [_bin_weights(*each, start.count_sd) for each in zip(bins, start.counts, strict=True)]
    shapes = [
        ShapeFunction(weight, ordered_prior(weight) if codes is None else unordered_prior(weight), start.unit)
        for weight, codes in zip(weights, cells.codes, strict=True)
    ]
    curvatures = _logistic_curvatures(start, bins, weights) if start.positives else weights
    order = _by_strength(start, bins, weights) if start.positives else range(len(bins))
    starts = np.cumsum(cells.sizes) - cells.sizes
    for number in range(rounds):
        for feature in order:
            effects = np.concatenate([shape.values[each] for shape, each in zip(shapes, bins, strict=True)])
            public = (*cells.for_rules, starts, effects, start.intercept, feature, bins[feature], *start.rule_public)
            sd = session.sd(start.residual_bound)
            size = len(weights[feature])
            sums = session.sparse_sum(start.rule, public, size=size, radius=start.residual_bound, combine=Combine.MEAN)
            shapes[feature].update(sums, sd, curvatures[feature], number)
    return AdditiveModel(start.intercept + sum(shape.mean for shape in shapes), shapes, bins)


def _release_histograms(
    session: FitSession, rule: RowRule, public: tuple[Any, ...], sizes: Sequence[int]
) -> tuple[list[np.ndarray], float]:
    """Return noisy counts in tables of these sizes, and the deviation of their noise."""
    radius = session.table_radius(len(sizes))
    sd = session.sd(radius)
    counts = session.sparse_sum(
        rule, public, size=int(sum(sizes)), radius=radius, combine=Combine.MEAN, blocks=tuple(map(int, sizes))
    )
    return np.split(counts, np.cumsum(sizes)[:-1]), sd


def _bin_weights(bins: np.ndarray, counts: np.ndarray, count_sd: float) -> np.ndarray:
    """Return the noisy count of each bin, at least the deviation of its noise."""
    noise = count_sd * np.sqrt(np.bincount(bins))
    return np.maximum(np.bincount(bins, counts), np.maximum(noise, 1.0))


def _logistic_curvatures(start: BoostingStart, bins: list[np.ndarray], weights: list[np.ndarray]) -> list[np.ndarray]:
    overall = 1 / (1 + math.exp(-start.intercept))
    pseudo_units = max(_RATE_NOISE_UNITS * start.count_sd, 1.0)
    curvatures = []
    for each, positives, weight in zip(bins, start.positives, weights, strict=True):
        rate = (np.maximum(np.bincount(each, positives), 0) + overall * pseudo_units) / (weight + pseudo_units)
        rate = np.clip(rate, 0, 1)
        floor = _MIN_CURVATURE * overall * (1 - overall)
        curvatures.append(_CURVATURE_SHARE * weight * np.maximum(rate * (1 - rate), floor))
    return curvatures


def _by_strength(start: BoostingStart, bins: list[np.ndarray], weights: list[np.ndarray]) -> list[int]:
    """Return the features, those first whose bins differ most in their noisy share of the second class."""
    overall = 1 / (1 + math.exp(-start.intercept))

    def strength(feature: int) -> float:
        positives, weight = np.bincount(bins[feature], start.positives[feature]), weights[feature]
        usable = weight > 2 * start.count_sd
        excess = (positives - overall * weight) ** 2 - start.count_sd**2
        return float((excess / weight)[usable].sum())

    return sorted(range(len(bins)), key=strength, reverse=True)


def _class_cells(rows: np.ndarray, public: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the cell of each column, counted apart for the two classes; rows of neither are not counted."""
    *for_rules, sizes, label_codes = public
    cells, label = cells_of(rows, tuple(for_rules)), rows[:, -1]
    cells += sizes[:, np.newaxis] * (label == label_codes[1])
    cells[:, (label != label_codes[0]) & (label != label_codes[1])] = -1
    return cells.T, np.ones((len(rows), 1))


def _target_cells(rows: np.ndarray, public: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the cell of each column and of the target."""
    *for_rules, low, per_unit = public
    target = np.clip((rows[:, -1] - low) * per_unit, 0, _TARGET_CELLS - 1).astype(np.int64)
    cells = cells_of(rows, tuple(for_rules))
    return np.concatenate([cells, target[np.newaxis]]).T, np.ones((len(rows), 1))


def _class_residuals(rows: np.ndarray, public: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the bin of one feature and the residual: whether a row has the second class, minus its probability."""
    *fitted, label_codes = public
    places, score = _bins_and_scores(rows, tuple(fitted))
    is_second = rows[:, -1] == label_codes[1]
    residual = is_second - 1 / (1 + np.exp(-np.clip(score, -30, 30)))
    return places, np.where(is_second | (rows[:, -1] == label_codes[0]), residual, 0)[:, np.newaxis]


def _target_residuals(rows: np.ndarray, public: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the bin of one feature and the residual of the target."""
    places, score = _bins_and_scores(rows, public)
    return places, (rows[:, -1] - score)[:, np.newaxis]


def _bins_and_scores(rows: np.ndarray, public: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the bin of one feature, rows × 1, and the score of each row."""
    *for_rules, starts, effects, intercept, feature, bins = public
    cells = cells_of(rows, tuple(for_rules))
    return bins[cells[feature]][:, np.newaxis], additive_scores(cells, starts, effects, intercept)


def additive_scores(cells: np.ndarray, starts: np.ndarray, effects: np.ndarray, intercept: float) -> np.ndarray:
    """Return the intercept plus the effects of each row's cells; a column's effects begin at its start."""
    score = np.full(cells.shape[1], float(intercept))
    for column, first in zip(cells, starts, strict=True):
        score += effects[first:][column]
    return score
