"""Combine several noisy draws of the same totals into one table, weighted by their inverse variances."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

import numpy as np

from discreet.estimate.intervals import ReleaseNoise
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.question import GroupKey
from discreet.kernel.release import NoisyTotals
from discreet.pricing.allocation import NoiseType
from discreet.pricing.release_history import PastRelease, ReleaseHistory
from discreet.pricing.stored_totals import Cuts
from discreet.privacy.calibration import sqrt_up

_WEIGHT_UNITS = 1 << 32  # weights are multiples of 1 / this
_ROUNDING_VARIANCE = Fraction(1, 4)  # the most that rounding to a step can add to a variance


@dataclass(frozen=True, eq=False)
class ReleasePiece:
    """Rows of a released table with the same noise."""

    noisy: NoisyTotals
    noises: tuple[ReleaseNoise, ...]


@dataclass(frozen=True, eq=False)
class CombinedRelease:
    """One release from all of its draws: its rows, thresholds, the cost of each total, and the newest draw."""

    pieces: tuple[ReleasePiece, ...]
    thresholds: tuple[Cuts, ...]
    costs: dict[str, Fraction]
    delta: Fraction
    latest: PastRelease


def combine_draws(history: ReleaseHistory) -> CombinedRelease:
    """Return the most accurate table from all draws; every total must have one."""
    indices = range(len(history.fingerprints))
    if not history.combinable:
        draw = max(history.draws, key=lambda each: (sum(each.costs.values()), each.order))
        used, pieces = [draw], [ReleasePiece(draw.noisy, tuple(draw.noises[index] for index in indices))]
    elif history.selects_partitions:
        used, pieces = list(history.draws), _pieces_by_key(history)
    else:
        used = [draw for place in indices for draw in history.draws_used(place)]
        columns = [total_columns(history, place)[0] for place in indices]
        values = np.stack([numbers for numbers, _ in columns], axis=1)
        pieces = [ReleasePiece(NoisyTotals(used[0].noisy.keys, values), tuple(noise for _, noise in columns))]
    costs = {
        fingerprint: used[0].costs[place] if not history.combinable else history.cost_of(place)
        for place, fingerprint in enumerate(history.fingerprints)
    }
    if not history.shareable:  # draws of another release with the same fingerprint are charged separately
        costs = {f"{fingerprint} {history.release.name}": amount for fingerprint, amount in costs.items()}
    thresholds = tuple(dict.fromkeys(draw.thresholds for draw in used if draw.thresholds))
    delta = sum((draw.delta for draw in used), Fraction(0))
    return CombinedRelease(tuple(pieces), thresholds, costs, delta, max(used, key=lambda draw: draw.order))


def total_columns(history: ReleaseHistory, index: int) -> list[tuple[np.ndarray, ReleaseNoise]]:
    """Return the values of one total and their noise, one entry per piece; the total must have a draw."""
    if history.selects_partitions:
        return [(piece.noisy.values[:, index], piece.noises[index]) for piece in _pieces_by_key(history)]
    draws = history.draws_used(index)
    noises = [draw.noises[index] for draw in draws]
    noise = noises[0] if len(noises) == 1 else combined_noise(noises)
    return [(weighted_mean([draw.noisy.values[:, index] for draw in draws], noises), noise)]


def total_cost(releases: Sequence[CombinedRelease], noise_type: NoiseType) -> Loss:
    """Return the cost of all draws of these releases together."""
    costs = {fingerprint: amount for release in releases for fingerprint, amount in release.costs.items()}
    total = sum(costs.values(), Fraction(0))
    delta = min(Fraction(1), sum((table.delta for table in releases), Fraction(0)))
    return Loss(total, None, delta) if noise_type is Laplace else Loss(None, total, delta)


def combined_noise(noises: Sequence[ReleaseNoise]) -> Gaussian:
    """Return noise that is at least as wide as that of the combined draws.

    >>> from discreet import privacy
    >>> privacy.margin(combined_noise([Gaussian(10), Gaussian(10)]), "0.95"), privacy.margin(Gaussian(10), "0.95")
    (14, 20)
    """
    if len(noises) == 1 and isinstance(noises[0], Gaussian):
        return noises[0]
    pairs = zip(_inverse_variance_weights(noises), noises, strict=True)
    variance = sum((Fraction(weight, _WEIGHT_UNITS) * noise.scale) ** 2 for weight, noise in pairs)
    return Gaussian(sqrt_up(variance + _ROUNDING_VARIANCE))


def weighted_mean(columns: Sequence[np.ndarray], noises: Sequence[ReleaseNoise]) -> np.ndarray:
    """Return the mean of draws, weighted by inverse variance and rounded to integers.

    >>> weighted_mean([np.array([100, 7]), np.array([130, 7])], [Gaussian(10), Gaussian(20)])
    array([106,   7])
    """
    if len(columns) == 1:
        return columns[0]
    pairs = zip(columns, _inverse_variance_weights(noises), strict=True)
    # Python integers, because the products exceed 64 bits; the mean lies between the draws and does not.
    total = sum((column.astype(object) * weight for column, weight in pairs), start=_WEIGHT_UNITS // 2)
    return np.array(total // _WEIGHT_UNITS, np.int64)


def _inverse_variance_weights(noises: Sequence[ReleaseNoise]) -> list[int]:
    exact = [1 / noise.scale**2 for noise in noises]
    weights = [int(each / sum(exact) * _WEIGHT_UNITS) for each in exact]
    weights[weights.index(max(weights))] += _WEIGHT_UNITS - sum(weights)
    return weights


def _pieces_by_key(history: ReleaseHistory) -> list[ReleasePiece]:
    """Return one piece per set of keys that appear in the same draws."""
    if len(history.draws) == 1:
        (draw,) = history.draws
        return [_combine_piece([draw], draw.noisy.keys)]
    rows = [{key: row for row, key in enumerate(draw.noisy.keys)} for draw in history.draws]
    draws_by_key = {
        key: tuple(draw_index for draw_index, keys in enumerate(rows) if key in keys) for keys in rows for key in keys
    }
    pieces = []
    for draw_indices, group in groupby(
        sorted(draws_by_key, key=draws_by_key.__getitem__), key=draws_by_key.__getitem__
    ):
        keys = list(group)
        draws = [_select_rows(history.draws[number], [rows[number][key] for key in keys]) for number in draw_indices]
        pieces.append(_combine_piece(draws, keys))
    return pieces or [_combine_piece(history.draws, [])]


def _combine_piece(draws: Sequence[PastRelease], keys: list[GroupKey]) -> ReleasePiece:
    """Combine draws that have the same keys in the same order into one piece."""
    combined_columns = []
    for index in range(draws[0].noisy.values.shape[1]):
        noises = [draw.noises[index] for draw in draws]
        columns = [draw.noisy.values[: len(keys), index] for draw in draws]
        combined_columns.append((weighted_mean(columns, noises), combined_noise(noises)))
    values = np.stack([column for column, _ in combined_columns], axis=1)
    return ReleasePiece(NoisyTotals(keys, values), tuple(noise for _, noise in combined_columns))


def _select_rows(draw: PastRelease, rows: list[int]) -> PastRelease:
    noisy = NoisyTotals([draw.noisy.keys[row] for row in rows], draw.noisy.values[rows])
    return PastRelease(draw.order, draw.receipt, noisy, draw.noises, draw.costs)
