"""Subtotals of ROLLUP, CUBE and GROUPING SETS, from the released groups: nothing else is released for them.

A count or sum is the sum of those shown in the groups. Means and other ratios are computed from summed totals.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pyarrow as pa

from discreet.estimate.estimators import CONFIDENCE
from discreet.estimate.intervals import Noise, ReleaseNoise, additive
from discreet.estimate.planned_release import (
    NoisyCount,
    NoisySum,
    PlannedRelease,
    TotalsEstimator,
    arrow_column,
    estimate_measure,
    is_whole,
    noisy_total,
    release_schema,
    total_indices,
)
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.question import GroupKey
from discreet.postprocess import DRAW, ROW

_Z = NormalDist().inv_cdf(float(1 + CONFIDENCE) / 2)
# By the Cornish-Fisher expansion, the quantile of a sum of Laplace noise is larger than the normal one by this share
# times its excess kurtosis, relative to that of one Laplace variable.
_KURTOSIS_SHARE = 0.11


@dataclass(frozen=True, eq=False)
class ReleasedCells:
    """The groups of a release: their keys, noisy totals (groups × totals), and which of the noises each of them has."""

    keys: Sequence[GroupKey]
    values: np.ndarray
    noises: Sequence[tuple[ReleaseNoise, ...]]
    noise_of: np.ndarray


def assemble_subtotals(
    release: PlannedRelease, cells: ReleasedCells, draws: int = 1
) -> tuple[pa.Table, dict[str, np.ndarray]]:
    """Return the released table, with the rows of every grouping set, and the margins of its measures.

    With several draws the cells' values are those of all draws, one after another, and columns state draw and row.
    """
    tables: list[pa.Table] = []
    margins = []
    for names in release.grouping_sets:
        first_row = sum(table.num_rows for table in tables) // draws
        table, widths = _assemble_set(release, cells, names, draws)
        size = table.num_rows // draws
        table = table.append_column(DRAW, pa.array(np.repeat(np.arange(draws), size)))
        tables.append(table.append_column(ROW, pa.array(np.tile(first_row + np.arange(size), draws))))
        margins.append(widths)
    whole = pa.concat_tables(tables)
    joined = {measure.name: np.concatenate([each[measure.name] for each in margins]) for measure in release.measures}
    return whole if draws > 1 else whole.drop_columns([DRAW, ROW]), joined


def _assemble_set(
    release: PlannedRelease, cells: ReleasedCells, names: tuple[str, ...], draws: int
) -> tuple[pa.Table, dict[str, np.ndarray]]:
    """Return the rows of one grouping set, draw by draw."""
    kept = [place for place, name in enumerate(release.keys) if name in names]
    rows: dict[GroupKey, int] = {}
    members = np.array([rows.setdefault(tuple(key[at] for at in kept), len(rows)) for key in cells.keys], np.int64)
    cell_counts = np.zeros((len(rows), len(cells.noises)), np.int64)
    np.add.at(cell_counts, (members, cells.noise_of), 1)
    subtotals = (np.arange(draws)[:, None] * len(rows) + members).ravel()
    totals = _sums(cells.values, subtotals, draws * len(rows))
    batches, batch_of = np.unique(cell_counts, axis=0, return_inverse=True)
    schema, columns, margins = release_schema(release), [], {}
    for place, name in enumerate(release.keys):
        values = [key[kept.index(place)] if place in kept else None for key in rows]
        columns.append(pa.array(values * draws, schema.field(name).type))
    for measure in release.measures:
        estimates, widths = np.zeros(len(totals)), np.zeros(len(totals))
        for batch, counts in enumerate(batches):
            inside = np.flatnonzero(np.tile(batch_of.ravel() == batch, draws))
            noises = _summed_noises(cells.noises, counts)
            estimate = estimate_measure(release, measure.estimator, totals[inside], noises)
            estimates[inside] = estimate.values
            if draws == 1:
                widths[inside] = np.hypot(estimate.margins, _rounding_margin(release, measure.estimator, sum(counts)))
        if isinstance(measure.estimator, NoisyCount | NoisySum):
            shown = estimate_measure(release, measure.estimator, cells.values, cells.noises[0]).values
            estimates = _sums(shown[:, None], subtotals, len(totals))[:, 0]
        columns.append(arrow_column(estimates, schema.field(measure.name).type))
        margins[measure.name] = widths
    columns += [pa.array(np.full(len(totals), int(name not in names))) for name in release.keys]
    return pa.Table.from_arrays(columns, schema=schema), margins


def _sums(values: np.ndarray, subtotals: np.ndarray, count: int) -> np.ndarray:
    """Return the sums of the rows of each subtotal; of integers exactly, and clamped to 64 bits."""
    if values.dtype != np.int64:
        sums = np.zeros((count, values.shape[1]))
        np.add.at(sums, subtotals, values)
        return sums
    parts = np.zeros((2, count, values.shape[1]), np.int64)
    for part, half in zip(parts, (values >> 32, values & 0xFFFFFFFF), strict=True):
        np.add.at(part, subtotals, half)
    ends = np.iinfo(np.int64)
    exact: np.ndarray = np.clip(parts[0].astype(object) * (1 << 32) + parts[1], ends.min, ends.max).astype(np.int64)
    return exact


def _summed_noises(noises: Sequence[tuple[ReleaseNoise, ...]], counts: np.ndarray) -> tuple[Noise, ...]:
    """Return the noise of each total in a sum of this many groups with each of the noises."""
    used = [(each, int(count)) for each, count in zip(noises, counts, strict=True) if count]
    return tuple(
        _summed_noise([(additive(each[index]), count) for each, count in used]) for index in range(len(used[0][0]))
    )


def _summed_noise(terms: Sequence[tuple[Noise, int]]) -> Noise:
    """Return Gaussian noise whose tail of 5 % is at least that of a sum of independent noise."""
    if len(terms) == 1 and terms[0][1] == 1:
        return terms[0][0]
    variances = [(2 if isinstance(noise, Laplace) else 1) * float(noise.scale) ** 2 for noise, _ in terms]
    variance = sum(count * each for each, (_, count) in zip(variances, terms, strict=True))
    kurtosis = sum(
        count * each**2 for each, (noise, count) in zip(variances, terms, strict=True) if isinstance(noise, Laplace)
    )
    return Gaussian(Fraction(math.sqrt(variance) * (1 + _KURTOSIS_SHARE * kurtosis / variance**2)))


def _rounding_margin(release: PlannedRelease, estimator: TotalsEstimator, count: int) -> float:
    """Return the margin from the rounding of `count` numbers to integers, as if their errors were ±1/2 at random."""
    if count == 1 or not is_whole(estimator):
        return 0.0
    zeros = np.zeros((1, len(release.question.totals)), np.int64)
    noises = (Laplace(1),) * len(release.question.totals)
    steps = [noisy_total(release, index, zeros, noises).step for index in total_indices(estimator)]
    return _Z * math.sqrt(count) / 2 if any(step.denominator > 1 for step in steps) else 0.0
