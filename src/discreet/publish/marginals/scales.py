"""How precisely to measure each table of a family, so that the tables after least squares are best."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.kernel.errors import require
from discreet.publish.marginals.axes import Axis, Table, check_table, coarsenings, table_shape
from discreet.publish.marginals.covariances import forecast
from discreet.publish.marginals.noise_margins import Noise

_MAX_STEPS = 3_000
_CONVERGED = 1e-10  # change of any scale in a step
_NEGLIGIBLE = 1e-5  # a scale that is smaller, relative to the largest, means no noise of its own
_LEAST = 1e-8
_GROWTH = (0.5, 2.0)  # of a multiplier in one step
_HALVINGS = 20


class UnreachableLimits(ValueError):  # noqa: N818 - as Refused
    """Variances that are too small for the noise; `factor` times as large ones can be reached."""

    def __init__(self, factor: float) -> None:
        self.factor = factor
        super().__init__(f"limits: they must be {factor:.4g} times as large")


def choose_scales(
    axes: Sequence[Axis],
    wanted: Mapping[Table, float],
    *,
    limits: Mapping[Table, float] | None = None,
    noise: Noise = Noise.GAUSSIAN,
) -> dict[Table, float]:
    """Return the scale w of each table: it gets noise of standard deviation σ/w, at the cost of σ on a single table.

    The scales have Σw² = 1 (Gaussian noise) or Σw = 1 (Laplace noise). They minimise the sum over wanted tables of the
    given weight times the variances of all cells, after least squares. `limits` has the largest variance per cell, in
    units of σ², that a table may have besides. A table with scale 0 follows from others. The solution is optimal for
    Gaussian noise on balanced axes. On other axes it is that of axes with blocks of average size; for Laplace noise it
    is a local optimum.

    >>> axes = [Axis("sex", 2), Axis("age", 9)]
    >>> scales = choose_scales(axes, {((0, 0),): 1, ((1, 0),): 1})
    >>> {table: round(scale, 2) for table, scale in scales.items()}
    {((0, 0),): 0.54, (): 0.0, ((1, 0),): 0.84}
    """
    require(bool(wanted), "wanted must not be empty")
    require(min(wanted.values()) > 0, "wanted: weights must be above 0")
    limits = limits or {}
    family = _Family.of(axes, [*wanted, *limits])
    weights = np.array([wanted.get(table, 0.0) * math.prod(table_shape(axes, table)) for table in family.shown])
    if not limits:
        return family.named(_minimise(family, weights, noise))
    fallback = least_scales(axes, limits, noise=noise)
    cost = sum(scale**noise.value for scale in fallback.values()) ** (2 / noise.value)
    if cost > 1:
        raise UnreachableLimits(cost)
    found = family.named(_minimise_within(family, weights, limits, noise))
    return _mix_until_within(axes, limits, noise, found, fallback)


def least_scales(
    axes: Sequence[Axis], limits: Mapping[Table, float], *, noise: Noise = Noise.GAUSSIAN
) -> dict[Table, float]:
    """Return the scales w of least cost, Σw² or Σw, at which no cell has more than its table's largest variance.

    Variances are in units of σ². What is said of `choose_scales` about optimality holds here too.

    >>> axes = [Axis("sex", 2), Axis("age", 9)]
    >>> scales = least_scales(axes, {((0, 0),): 4.0, ((1, 0),): 1.0})
    >>> {table: round(scale, 2) for table, scale in scales.items()}
    {((0, 0),): 0.43, (): 0.0, ((1, 0),): 0.97}
    """
    require(bool(limits), "limits must not be empty")
    require(min(limits.values()) > 0, "limits: variances must be above 0")
    family = _Family.of(axes, limits)
    scales = family.named(_minimise_within(family, np.zeros(len(limits)), limits, noise))
    factor = _excess(axes, limits, noise, scales) ** 0.5
    return {table: scale * factor for table, scale in scales.items()}


@dataclass(frozen=True, eq=False)
class _Matrix:
    """A sparse matrix that is a linear map from arrays over columns to arrays over rows."""

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]

    @classmethod
    def of(cls, entries: Iterable[tuple[int, int, float]], shape: tuple[int, int]) -> "_Matrix":
        rows, columns, values = map(np.array, zip(*entries, strict=True))
        return cls(rows, columns, values, shape)

    def times(self, vector: np.ndarray) -> np.ndarray:
        return np.bincount(self.rows, self.values * vector[self.columns], self.shape[0])

    def adjoint_times(self, vector: np.ndarray) -> np.ndarray:
        return np.bincount(self.columns, self.values * vector[self.rows], self.shape[1])


@dataclass(frozen=True, eq=False)
class _Family:
    """Tables to choose from, and the mean variances of the shown ones, on axes with blocks of average size.

    Table T has cells[T] cells. Component S has the precision Σ w_T² · precision[S, T], and adds variance[U, S] divided
    by that to table U.
    """

    tables: tuple[Table, ...]
    shown: tuple[Table, ...]
    cells: np.ndarray
    precision: _Matrix
    variance: _Matrix

    @classmethod
    def of(cls, axes: Sequence[Axis], shown: Iterable[Table]) -> "_Family":
        """Return the family of some tables and all their coarsenings."""
        shown = tuple(dict.fromkeys(check_table(axes, table) for table in shown))
        tables = tuple(dict.fromkeys(part for table in shown for part in coarsenings(axes, table)))
        at = {table: index for index, table in enumerate(tables)}

        def precisions() -> Iterator[tuple[int, int, float]]:
            for table in tables:
                for part in coarsenings(axes, table):
                    yield at[part], at[table], 1 / _block_size(axes, table, part)

        def variances() -> Iterator[tuple[int, int, float]]:
            for row, table in enumerate(shown):
                for part in coarsenings(axes, table):
                    yield row, at[part], _mean_variance(axes, part, table)

        cells = np.array([math.prod(table_shape(axes, table)) for table in tables], np.float64)
        square, rectangle = (len(tables), len(tables)), (len(shown), len(tables))
        return cls(tables, shown, cells, _Matrix.of(precisions(), square), _Matrix.of(variances(), rectangle))

    def variances(self, scales: np.ndarray) -> np.ndarray:
        return self.variance.times(1 / self.precision.times(scales**2))

    def gradient(self, scales: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return by how much a weighted sum of the shown variances falls with the square of each scale."""
        squared = self.precision.times(scales**2) ** 2
        return self.precision.adjoint_times(self.variance.adjoint_times(weights) / squared)

    def named(self, scales: np.ndarray) -> dict[Table, float]:
        return dict(zip(self.tables, scales.tolist(), strict=True))


def _block_size(axes: Sequence[Axis], fine: Table, coarse: Table) -> float:
    """Return how many cells of a table make up a cell of a coarser one, on average."""
    levels = dict(coarse)
    ratio = 1.0
    for index, level in fine:
        sizes = axes[index].sizes
        ratio *= sizes[level] / sizes[levels.get(index, axes[index].total)]
    return ratio


def _mean_variance(axes: Sequence[Axis], part: Table, table: Table) -> float:
    """Return the mean variance of what a component with residuals of variance 1 adds to the cells of a table."""
    levels, result = dict(part), 1.0
    for index, level in table:
        sizes = axes[index].sizes
        own = levels.get(index, axes[index].total)
        above = sizes[own + 1] if own < axes[index].total else 0
        result *= (sizes[own] / sizes[level]) ** 2 * (1 - above / sizes[own])
    return result


def _step(family: _Family, scales: np.ndarray, weights: np.ndarray, noise: Noise) -> np.ndarray:
    """Return normalised scales whose weighted sum of variances is not larger.

    By the inequality of Cauchy and Schwarz the sum is at most Σ scale⁴·gradient / w² at any scales w, with equality at
    the present ones; these are the scales that minimise the bound. None becomes 0, from where it could not grow again.
    """
    norm = noise.value
    raised = (scales**4 * family.gradient(scales, weights)) ** (norm / (norm + 2))
    return np.asarray(np.maximum(raised / raised.sum(), _LEAST**norm) ** (1 / norm))


def _start(family: _Family) -> np.ndarray:
    """Return scales to start from, no two of them equal: for Laplace noise, symmetry may be a saddle point."""
    return np.linspace(1, 0.9, len(family.tables))


def _minimise(family: _Family, weights: np.ndarray, noise: Noise) -> np.ndarray:
    """Return the scales that minimise the weighted sum of variances; for Laplace noise, the best of two descents."""
    starts = [_start(family)]
    if noise is Noise.LAPLACE:
        starts.append(_start(family) * family.cells)  # often one fine table alone is best
    ends = [_descend(family, weights, noise, start) for start in starts]
    return _without_negligible(min(ends, key=lambda scales: float(weights @ family.variances(scales))), noise)


def _descend(family: _Family, weights: np.ndarray, noise: Noise, scales: np.ndarray) -> np.ndarray:
    for _ in range(_MAX_STEPS):
        before, scales = scales, _step(family, scales, weights, noise)
        if np.abs(scales - before).max() < _CONVERGED:
            break
    return scales


def _minimise_within(family: _Family, weights: np.ndarray, limits: Mapping[Table, float], noise: Noise) -> np.ndarray:
    """Return scales that minimise the weighted sum of variances while each is (nearly) within its limit.

    Each limited table has a multiplier that grows while its variance is above the limit. If no other table has a
    weight, multipliers are relative: the scales are those whose largest ratio of variance and limit is least.
    """
    bounds = np.array([limits.get(table, np.inf) for table in family.shown])
    best = scales = _start(family)
    least = np.inf
    multipliers = start = (weights @ family.variances(scales) or 1) / bounds
    for _ in range(_MAX_STEPS):
        before, scales = scales, _step(family, scales, weights + multipliers, noise)
        ratios = family.variances(scales) / bounds
        largest = float(ratios.max())
        if weights.any() or largest < least:
            best, least = scales, largest
        growth = np.clip(ratios if weights.any() else ratios / largest, *_GROWTH)
        multipliers = np.maximum(multipliers * growth, start * _LEAST**2)
        if np.abs(scales - before).max() < _CONVERGED:
            break
    return _without_negligible(best, noise)


def _without_negligible(scales: np.ndarray, noise: Noise) -> np.ndarray:
    kept = np.where(scales < _NEGLIGIBLE * scales.max(), 0.0, scales)
    return np.asarray(kept / (kept**noise.value).sum() ** (1 / noise.value))


def _excess(axes: Sequence[Axis], limits: Mapping[Table, float], noise: Noise, scales: Mapping[Table, float]) -> float:
    """Return the largest ratio of a cell's exact variance and the limit of its table."""
    covariances = forecast(axes, scales, 1.0, noise)
    if not all(covariances.covers(table) for table in limits):
        return np.inf
    return max(float(covariances.variance(table).max()) / limit for table, limit in limits.items())


def _mix_until_within(
    axes: Sequence[Axis],
    limits: Mapping[Table, float],
    noise: Noise,
    best: Mapping[Table, float],
    fallback: Mapping[Table, float],
) -> dict[Table, float]:
    """Return the best scales, moved towards others that are within the limits as far as is necessary."""

    def mix(share: float) -> dict[Table, float]:
        norm = noise.value
        unit = sum(scale**norm for scale in fallback.values())
        powers = {t: (1 - share) * best[t] ** norm + share * fallback.get(t, 0.0) ** norm / unit for t in best}
        return {table: power ** (1 / norm) for table, power in powers.items()}

    low, high = 0.0, 1.0
    if _excess(axes, limits, noise, mix(low)) <= 1:
        return mix(low)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _excess(axes, limits, noise, mix(middle)) <= 1 else (middle, high)
    return mix(high)
