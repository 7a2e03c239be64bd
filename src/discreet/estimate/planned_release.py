"""A planned release: its question, and the estimators that turn its noisy totals into columns with margins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.estimate import estimators
from discreet.estimate.contribution_histogram import (
    UNBOUNDED,
    AutomaticBounds,
    ContributionHistogram,
    PossibleContribution,
)
from discreet.estimate.estimators import (
    ColumnEstimate,
    Moments,
    NoisyTotal,
    NumberKind,
    ValueRange,
    VarianceStatistic,
)
from discreet.estimate.intervals import ReleaseNoise, additive
from discreet.estimate.pair_statistics import PairStatistic, PairTotals, pair_estimate
from discreet.estimate.quantile_walk import QuantileTarget
from discreet.kernel.expr import Type
from discreet.kernel.question import GroupKey, PublicGroups, Question
from discreet.kernel.totals import Count, CountUnits, HistogramTree, Sum
from discreet.policy.declarations import SimpleRandomSample
from discreet.postprocess import PostprocessPlan
from discreet.postprocess.sql_expression import Origin, columns_read
from discreet.query.syntax.parse import PrivacyOptions

ARROW_TYPES = {
    Type.INTEGER: pa.int64(),
    Type.REAL: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.TEXT: pa.string(),
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: pa.timestamp("us"),
}


@dataclass(frozen=True)
class NoisyCount:
    """A count of rows, values or units; `total` is its index in the question."""

    total: int


@dataclass(frozen=True)
class NoisySum:
    """SUM(x); with `count`, Σ(x - c) plus c·count."""

    total: int
    kind: NumberKind
    count: int | None = None


@dataclass(frozen=True)
class Mean:
    """AVG(x), as c + Σ(x - c) / count."""

    total: int
    count: int
    low: Fraction
    high: Fraction


@dataclass(frozen=True)
class Variance:
    """A variance or standard deviation, from the sum of squares, the sum and the count."""

    squares: int
    total: int
    count: int
    low: Fraction
    high: Fraction
    statistic: VarianceStatistic


@dataclass(frozen=True)
class PairMeasure:
    """A statistic of value pairs, from the sums of products, values and (where needed) squares, and the count."""

    products: int
    x: int
    y: int
    count: int
    x_squares: int | None
    y_squares: int | None
    x_ends: tuple[Fraction, Fraction]
    y_ends: tuple[Fraction, Fraction]
    statistic: PairStatistic


class QuantileMethod(Enum):
    """How a quantile is found: by a walk in a tree of noisy counts, or by the exponential mechanism."""

    TREE = "tree"
    SELECTION = "selection"


@dataclass(frozen=True)
class Quantile:
    """A quantile from the cells of a grid; dates are days since `origin`."""

    total: int
    target: QuantileTarget
    method: QuantileMethod
    kind: Type
    origin: date | None = None


class FrequencyOutput(Enum):
    """The result of a frequency aggregate."""

    MODE = "most frequent value"
    TOP = "most frequent values"
    COUNTS = "all values with counts"


@dataclass(frozen=True)
class FrequencyFunction:
    """MODE, TOP_K or HISTOGRAM; `length` is the number of values of TOP_K."""

    output: FrequencyOutput
    length: int = 1


@dataclass(frozen=True)
class Frequencies:
    """The frequencies of declared values, from a histogram."""

    total: int
    function: FrequencyFunction


TotalsEstimator = NoisyCount | NoisySum | Mean | Variance | PairMeasure | Quantile | Frequencies


@dataclass(frozen=True)
class Measure:
    """A column of a released table: its name, its SQL in the query, and its estimator."""

    name: str
    label: str = field(compare=False)
    estimator: TotalsEstimator


@dataclass(frozen=True)
class PlannedRelease:
    """One release: a question, and the table made from its noisy totals.

    `weights` are those of the squared margins that the allocation of the cost minimises. `keys` names the key columns
    of the table, and `key_order` has their indices in the analyst's order, by which rows are sorted. If a `sample`
    declares its size, counts and sums are expanded to the population. `possible` bounds a unit's contribution before
    clipping. With `grouping_sets`, each a tuple of keys, the table has the rows of these and a column for each key that
    is 1 in subtotals over it. A release with a `histogram` has no measures: it serves other releases. With `automatic`
    bounds, those of the question are placeholders until they are chosen. `left_out` says which rows are in no group.
    """

    name: str
    question: Question
    keys: tuple[str, ...]
    measures: tuple[Measure, ...]
    weights: tuple[Fraction, ...]
    bounds_notes: tuple[str, ...]
    key_order: tuple[int, ...] = ()
    sample: SimpleRandomSample | None = None
    possible: PossibleContribution = UNBOUNDED
    histogram: ContributionHistogram | None = None
    automatic: AutomaticBounds | None = None
    left_out: str = ""
    grouping_sets: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class QueryPlan:
    """The plan of a query: its releases, and their post-processing.

    A query that reads no private table has no release; its post-processing reads public tables and the tables of
    `catalog`, which describe the policy. So has one that shows nothing but declared keys.
    """

    sql: str
    explain: bool
    options: PrivacyOptions
    within: Fraction | None
    releases: tuple[PlannedRelease, ...]
    postprocess: PostprocessPlan
    catalog: Mapping[str, pa.Table] | None = None
    shows_declared_keys: bool = False

    @property
    def is_free(self) -> bool:
        """Whether no private table is read, so that nothing is charged."""
        return self.catalog is not None

    @property
    def answering(self) -> tuple[PlannedRelease, ...]:
        """The releases whose tables the answer is computed from; the others are contribution histograms."""
        return tuple(release for release in self.releases if release.histogram is None)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Which rows are in no group, by the policy alone."""
        return tuple(dict.fromkeys(release.left_out for release in self.answering if release.left_out))

    @property
    def pending(self) -> tuple[PlannedRelease, ...]:
        """The releases whose automatic contribution bounds are not chosen yet."""
        return tuple(release for release in self.releases if release.automatic and not release.automatic.chosen)


def declared_keys(releases: Sequence[PlannedRelease]) -> dict[str, pa.Table] | None:
    """Return the tables of releases without noisy numbers, all of whose keys are declared; None if there are others.

    Declared keys are all shown, whether they occur or not, so that such a table follows from the policy alone.
    """
    tables = {}
    for release in releases:
        groups = release.question.groups
        if release.histogram is not None:
            continue
        if release.measures or not release.keys or release.grouping_sets or not isinstance(groups, PublicGroups):
            return None
        rows = np.arange(groups.key_count).reshape([len(domain) for domain in groups.domains])
        codes = np.unravel_index(rows.transpose(release.key_order).ravel(), rows.shape)
        values = [[domain[code] for code in column] for domain, column in zip(groups.domains, codes, strict=True)]
        schema = release_schema(release)
        tables[release.name] = pa.table(
            [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)], schema=schema
        )
    return tables or None


def release_schema(release: PlannedRelease) -> pa.Schema:
    """Return the schema of a released table: the keys, then the measures, then the columns for GROUPING."""
    keys = [(name, ARROW_TYPES[expr.type]) for name, (_, expr) in zip(release.keys, release.question.by, strict=True)]
    measures = [(measure.name, _arrow_type(release, measure.estimator)) for measure in release.measures]
    summed = [(grouping_column(name), pa.int64()) for name in release.keys if release.grouping_sets]
    return pa.schema([*keys, *measures, *summed])


def grouping_column(key: str) -> str:
    """Return the name of the column that is 1 in subtotals over a key."""
    return f"g{key.removeprefix('k')}"


def assemble_table(
    release: PlannedRelease,
    keys: list[GroupKey],
    noisy: np.ndarray,
    noises: tuple[ReleaseNoise, ...],
    tree_estimates: Mapping[str, ColumnEstimate] | None = None,
) -> tuple[pa.Table, dict[str, ColumnEstimate]]:
    """Return the released table for noisy totals (groups × totals), and the estimate of every measure.

    Measures that come from histogram trees are given by name in `tree_estimates`.
    """
    columns = [
        pa.array([key[index] for key in keys], ARROW_TYPES[expr.type])
        for index, (_, expr) in enumerate(release.question.by)
    ]
    estimates_by_name = {
        measure.name: tree_estimates[measure.name]
        if tree_estimates and measure.name in tree_estimates
        else estimate_measure(release, measure.estimator, noisy, noises)
        for measure in release.measures
    }
    columns += [
        arrow_column(estimates_by_name[measure.name].values, _arrow_type(release, measure.estimator))
        for measure in release.measures
    ]
    return pa.Table.from_arrays(columns, schema=release_schema(release)), estimates_by_name


def noisy_total(release: PlannedRelease, index: int, noisy: np.ndarray, noises: tuple[ReleaseNoise, ...]) -> NoisyTotal:
    """Return one noisy total of a release, expanded to the population if its size is declared."""
    total = release.question.totals[index]
    step = total.grid.step**total.power if isinstance(total, Sum) else Fraction(1)
    shift = total.shift * step if isinstance(total, Sum) else Fraction(0)
    if release.sample and isinstance(total, Count | CountUnits | Sum):
        step *= release.sample.expansion
    step /= 1 << release.question.fraction_bits(total)
    return NoisyTotal(np.ascontiguousarray(noisy[:, index]), additive(noises[index]), step, shift)


def describes_population(release: PlannedRelease, estimator: TotalsEstimator) -> bool:
    """Return whether a count or sum is expanded to the population."""
    expands = release.sample is not None and release.sample.size is not None
    return (
        expands
        and isinstance(estimator, NoisyCount | NoisySum)
        and isinstance(release.question.totals[estimator.total], Count | CountUnits | Sum)
    )


_INDEX_NAMES = ("products", "squares", "total", "x", "y", "count", "x_squares", "y_squares")


def total_indices(estimator: TotalsEstimator) -> tuple[int, ...]:
    """Return the indices of the totals that an estimator uses."""
    return tuple(_indices_by_name(estimator).values())


def with_indices(estimator: TotalsEstimator, indices: Sequence[int]) -> TotalsEstimator:
    """Return an estimator with the indices of its totals replaced."""
    return replace(estimator, **{name: indices[index] for name, index in _indices_by_name(estimator).items()})


def _indices_by_name(estimator: TotalsEstimator) -> dict[str, Any]:
    return {name: index for name in _INDEX_NAMES if (index := getattr(estimator, name, None)) is not None}


def centre_of(total: Sum) -> Fraction:
    """Return the centre that is subtracted from every value before summing."""
    return total.grid.offset * total.grid.step


def _arrow_type(release: PlannedRelease, estimator: TotalsEstimator) -> pa.DataType:
    match estimator:
        case Quantile(kind=kind):
            return ARROW_TYPES[kind] if kind in (Type.DATE, Type.TIMESTAMP) else pa.float64()
        case Frequencies(index, FrequencyFunction(FrequencyOutput.MODE)):
            total = release.question.totals[index]
            assert isinstance(total, HistogramTree)
            return ARROW_TYPES[total.expr.type]
        case Frequencies():
            return pa.string()
    return pa.int64() if is_whole(estimator) else pa.float64()


def is_whole(estimator: TotalsEstimator) -> bool:
    """Return whether an estimator gives integers."""
    return isinstance(estimator, NoisyCount) or (isinstance(estimator, NoisySum) and estimator.kind is NumberKind.WHOLE)


def arrow_column(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Return estimates as a column, with NULL for NaN."""
    return pa.array(values, kind, mask=np.isnan(values) if values.dtype == np.float64 else None)


def _summed(release: PlannedRelease, index: int) -> Sum:
    total = release.question.totals[index]
    assert isinstance(total, Sum)
    return total


def estimate_measure(
    release: PlannedRelease, estimator: TotalsEstimator, noisy: np.ndarray, noises: tuple[ReleaseNoise, ...]
) -> ColumnEstimate:
    """Return the estimate of a measure that does not come from a histogram tree."""
    if isinstance(estimator, Variance | PairMeasure):
        release = replace(release, sample=None)  # its degrees of freedom are those of the sample

    def total(place: int) -> NoisyTotal:
        return noisy_total(release, place, noisy, noises)

    def within(place: int, low: Fraction, high: Fraction) -> ValueRange:
        return ValueRange(low, high, centre_of(_summed(release, place)))

    match estimator:
        case NoisyCount(index):
            return estimators.count(total(index))
        case NoisySum(index, kind, None):
            return estimators.sum_of(total(index), kind=kind)
        case NoisySum(index, kind, int(count)):
            return estimators.sum_from_centre(
                total(index), total(count), centre=centre_of(_summed(release, index)), kind=kind
            )
        case Mean(index, count, low, high):
            return estimators.mean(total(index), total(count), within=within(index, low, high))
        case Variance(squares, index, count, low, high, statistic):
            moments = Moments(total(squares), total(index), total(count))
            return estimators.variance_estimate(moments, within=within(index, low, high), statistic=statistic)
        case PairMeasure(products, x, y, count, x_squares, y_squares, x_ends, y_ends, pair_statistic):
            squared = [place for place in (x_squares, y_squares) if place is not None]
            pairs = PairTotals(*map(total, (products, x, y, count, *squared)))
            return pair_estimate(pairs, within(x, *x_ends), within(y, *y_ends), pair_statistic)
    raise TypeError(f"unknown estimator type {type(estimator).__name__}")


def column_origins(plan: QueryPlan) -> dict[str, Origin]:
    """Return the origin of each column of the answer."""
    return dict(zip(plan.postprocess.names, plan.postprocess.origins, strict=True))


def noisy_columns(plan: QueryPlan) -> list[str]:
    """Return the noisy columns of the answer."""
    return [name for name, origin in column_origins(plan).items() if noisy_sources(plan, origin)]


def noisy_sources(plan: QueryPlan, origin: Origin) -> list[tuple[PlannedRelease, Measure]]:
    """Return the noisy released columns that an origin reads."""
    columns = columns_read([origin])
    return [
        (release, measure)
        for release in plan.releases
        for measure in release.measures
        if (release.name, measure.name) in columns
    ]


def selects_by_noise(plan: QueryPlan) -> bool:
    """Return whether noisy values decide which rows the answer has."""
    return any(
        (release.name, measure.name) in plan.postprocess.selected_by
        for release in plan.releases
        for measure in release.measures
    )
