"""The tables of a family as they are published: unbiased numbers that add up, their margins, and whole counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pyarrow as pa

from discreet.estimate import estimators
from discreet.estimate.estimators import NoisyTotal, ValueRange
from discreet.estimate.planned_release import Mean, NoisyCount, NoisySum, TotalsEstimator, release_schema
from discreet.kernel.mechanism import Gaussian
from discreet.kernel.totals import Count
from discreet.publish.eligible import AddingTable, key_codes, public_domains
from discreet.publish.family import Family, row_measure
from discreet.publish.marginals.axes import Table
from discreet.publish.marginals.consistent_tables import ConsistentTables
from discreet.publish.marginals.noise_margins import Noise, margin_factor

_FINE_STEPS = 1 << 20  # per standard deviation, to write estimates as integers


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """A table of a release; `whole` has the counts of rows as non-negative whole numbers that add up.

    Margins are NaN where a number is missing.
    """

    name: str
    table: pa.Table
    margins: Mapping[str, np.ndarray]
    whole: Mapping[str, np.ndarray] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Shown:
    """The groups of a table that are shown: the place and the cell of each, and the solved tables of each measure."""

    table: AddingTable
    place: Table
    cells: np.ndarray
    solved: Sequence[ConsistentTables]

    def estimates(self, measure: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the estimates of a measure and their variances, group by group."""
        values, variances = self.solved[measure].table(self.place)
        return values.ravel()[self.cells], np.broadcast_to(variances, values.shape).ravel()[self.cells]


def publish_family(family: Family, noisy: Sequence[np.ndarray]) -> list[PublishedTable]:
    """Return the published tables of a family."""
    solved, whole = family.solve(noisy), family.whole_counts(noisy)
    return [_published(family, table, solved, whole) for table in family.tables]


def publish_table(family: Family, table: AddingTable, solved: Sequence[ConsistentTables]) -> PublishedTable:
    """Return one table of a solved family, without whole numbers."""
    return _published(family, table, solved, {})


def expected_margins(family: Family, table: AddingTable) -> dict[str, float | None]:
    """Return the largest expected margin of each count and sum before the release; None for means."""
    shown = family.keys.table_of(table.release)
    found: dict[str, float | None] = {}
    for column, source in table.columns.items():
        if (measure := table.measures.get(source)) is not None:
            parts = _parts_of(family, table, measure.estimator)
            if parts is None:
                found[column] = None
                continue
            variance = sum(factor**2 * family.forecasts[index].variance(shown).max() for index, factor in parts)
            found[column] = float(margin_factor(family.noise) * variance**0.5)
    return found


def _published(
    family: Family, table: AddingTable, solved: Sequence[ConsistentTables], whole: Mapping[Table, np.ndarray]
) -> PublishedTable:
    release, place = table.release, family.keys.table_of(table.release)
    domains = public_domains(release)
    groups, cells = family.keys.cells_of(release, table.rows)
    codes = key_codes(release, groups)
    kinds = {field.name: field.type for field in release_schema(release)}
    columns: dict[str, pa.Array] = {}
    margins: dict[str, np.ndarray] = {}
    whole_columns: dict[str, np.ndarray] = {}
    for column, source in table.columns.items():
        if source in release.keys:
            at = release.keys.index(source)
            columns[column] = pa.array(domains[at], kinds[source]).take(pa.array(codes[at]))
            continue
        estimator = table.measures[source].estimator
        values, margin = _estimate(family, _Shown(table, place, cells, solved), estimator)
        missing = ~np.isfinite(margin) | np.isnan(values)
        columns[column] = pa.array(values, pa.float64(), mask=missing)
        margins[column] = np.where(missing, np.nan, margin)
        if place in whole and isinstance(estimator, NoisyCount) and _counts_rows(table, estimator):
            whole_columns[column] = whole[place].ravel()[cells]
    return PublishedTable(table.name, pa.table(columns), margins, whole_columns, family.left_out)


def _counts_rows(table: AddingTable, estimator: NoisyCount) -> bool:
    total = table.release.question.totals[estimator.total]
    return isinstance(total, Count) and total.expr is None


def _estimate(family: Family, shown: _Shown, estimator: TotalsEstimator) -> tuple[np.ndarray, np.ndarray]:
    """Return the estimates and the margins of a column, group by group."""
    factor = margin_factor(family.noise)
    parts = _parts_of(family, shown.table, estimator)
    if parts is not None:
        estimates = [(*shown.estimates(index), weight) for index, weight in parts]
        total = np.sum([values * weight for values, _, weight in estimates], axis=0)
        variance = np.sum([variances * weight**2 for _, variances, weight in estimates], axis=0)
        return total, factor * np.sqrt(variance)
    assert isinstance(estimator, Mean)
    totals = shown.table.release.question.totals
    measures = [_measure_index(family, totals[index]) for index in (estimator.total, estimator.count)]
    pairs = [shown.estimates(measure) for measure in measures]
    within = ValueRange(estimator.low, estimator.high, family.measures[measures[0]].centre)
    widened = factor / margin_factor(Noise.GAUSSIAN)  # margins of other noise are those of wider Gaussian noise
    means, margins = np.empty(len(shown.cells)), np.empty(len(shown.cells))
    kinds = np.unique(np.stack([variances for _, variances in pairs]), axis=1, return_inverse=True)[1].ravel()
    for kind in np.unique(kinds):
        groups = kinds == kind
        noisy = [_as_total(values[groups], variances[groups][0] ** 0.5 * widened) for values, variances in pairs]
        estimate = estimators.mean(*noisy, within=within)
        means[groups], margins[groups] = estimate.values, estimate.margins
    return means, margins


def _as_total(values: np.ndarray, deviation: float) -> NoisyTotal:
    step = Fraction(deviation) / _FINE_STEPS
    return NoisyTotal(np.rint(values / float(step)).astype(np.int64), Gaussian(_FINE_STEPS), step)


def _parts_of(family: Family, table: AddingTable, estimator: TotalsEstimator) -> list[tuple[int, float]] | None:
    """Return the measures whose weighted sum a count or a sum is; None for a mean."""
    totals = table.release.question.totals
    if isinstance(estimator, NoisyCount):
        return [(_measure_index(family, totals[estimator.total]), 1.0)]
    if not isinstance(estimator, NoisySum):
        return None
    index = _measure_index(family, totals[estimator.total])
    centre = float(family.measures[index].centre)
    if estimator.count is None or not centre:
        return [(index, 1.0)]
    return [(index, 1.0), (_measure_index(family, totals[estimator.count]), centre)]


def _measure_index(family: Family, total: object) -> int:
    return family.measures.index(row_measure(total))  # type: ignore[arg-type]
