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
from discreet.publish.eligible import AddingTable, public_domains
from discreet.publish.family import Family, row_measure
from discreet.publish.marginals.consistent_tables import ConsistentTables
from discreet.publish.marginals.noise_margins import Noise, margin_factor

_FINE_STEPS = 1 << 20  # per standard deviation, to write estimates as integers


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """A table of a release; `whole` has the counts of rows as non-negative whole numbers that add up."""

    name: str
    table: pa.Table
    margins: Mapping[str, list[float | None]]
    whole: Mapping[str, list[int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Cells:
    """Estimates and variances of the cells of a table, in the order of its groups."""

    values: np.ndarray
    variances: np.ndarray


def publish_family(family: Family, noisy: Sequence[np.ndarray]) -> list[PublishedTable]:
    """Return the published tables of a family."""
    solved, whole = family.solve(noisy), family.whole_counts(noisy)
    tables = []
    for table in family.tables:
        counts = whole.get(family.keys.table_of(table.release))
        whole_counts = None if counts is None else _in_key_order(family, table, counts)
        tables.append(_published(family, table, solved, whole_counts))
    return tables


def publish_table(family: Family, table: AddingTable, solved: Sequence[ConsistentTables]) -> PublishedTable:
    """Return one table of a solved family, without whole numbers."""
    return _published(family, table, solved, None)


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
    family: Family, table: AddingTable, solved: Sequence[ConsistentTables], whole: np.ndarray | None
) -> PublishedTable:
    release = table.release
    domains = public_domains(release)
    grid = np.indices([len(domain) for domain in domains]).reshape(len(domains), len(table.rows))[:, table.rows]
    kinds = {field.name: field.type for field in release_schema(release)}
    columns: dict[str, pa.Array] = {}
    margins: dict[str, list[float | None]] = {}
    whole_columns: dict[str, list[int]] = {}
    for column, source in table.columns.items():
        if source in release.keys:
            at = release.keys.index(source)
            columns[column] = pa.array(domains[at], kinds[source]).take(pa.array(grid[at]))
            continue
        estimator = table.measures[source].estimator
        values, margin = _estimate(family, table, solved, estimator)
        shown = np.where(np.isfinite(margin), values, np.nan)[table.rows]
        missing = np.isnan(shown)
        columns[column] = pa.array(shown, pa.float64(), mask=missing)
        margins[column] = pa.array(margin[table.rows], mask=missing).to_pylist()
        if whole is not None and isinstance(estimator, NoisyCount) and _counts_rows(table, estimator):
            whole_columns[column] = whole[table.rows].tolist()
    return PublishedTable(table.name, pa.table(columns), margins, whole_columns, family.left_out)


def _counts_rows(table: AddingTable, estimator: NoisyCount) -> bool:
    total = table.release.question.totals[estimator.total]
    return isinstance(total, Count) and total.expr is None


def _estimate(
    family: Family, table: AddingTable, solved: Sequence[ConsistentTables], estimator: TotalsEstimator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the estimates and the margins of a column, group by group."""
    factor = margin_factor(family.noise)
    parts = _parts_of(family, table, estimator)
    if parts is not None:
        cells = [(_cells(family, table, solved, index), weight) for index, weight in parts]
        values = sum(each.values * weight for each, weight in cells)
        variances = sum(each.variances * weight**2 for each, weight in cells)
        return np.asarray(values), factor * np.sqrt(np.asarray(variances))
    assert isinstance(estimator, Mean)
    totals = table.release.question.totals
    above, below = (_measure_index(family, totals[index]) for index in (estimator.total, estimator.count))
    sums, counts = (_cells(family, table, solved, index) for index in (above, below))
    within = ValueRange(estimator.low, estimator.high, family.measures[above].centre)
    widened = factor / margin_factor(Noise.GAUSSIAN)  # margins of other noise are those of wider Gaussian noise
    means, margins = np.empty(len(sums.values)), np.empty(len(sums.values))
    kinds = np.unique(np.stack([sums.variances, counts.variances]), axis=1, return_inverse=True)[1].ravel()
    for kind in range(int(kinds.max()) + 1):
        groups = kinds == kind
        noisy = [
            _as_total(cells.values[groups], cells.variances[groups][0] ** 0.5 * widened) for cells in (sums, counts)
        ]
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


def _cells(family: Family, table: AddingTable, solved: Sequence[ConsistentTables], measure: int) -> _Cells:
    values, variances = solved[measure].table(family.keys.table_of(table.release))
    return _Cells(*(_in_key_order(family, table, np.broadcast_to(each, values.shape)) for each in (values, variances)))


def _in_key_order(family: Family, table: AddingTable, values: np.ndarray) -> np.ndarray:
    """Return the cells of a table in the order of the query's groups."""
    order = [index for _, index in family.keys.key_order(table.release)]
    return np.asarray(values).transpose(np.argsort(order)).ravel() if order else np.asarray(values).reshape(1)
