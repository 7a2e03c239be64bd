"""Synthetic rows: measures the tables that a model lacks most, fits it, and draws rows from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from discreet.kernel.errors import require
from discreet.kernel.numbers import as_integer
from discreet.publish.synthesis.graphical_model import GraphicalModel, independent_model
from discreet.publish.synthesis.junction_tree import Columns, junction_tree
from discreet.publish.synthesis.merged_columns import ColumnSet, MergedColumn, merge_values, merged_sources
from discreet.publish.synthesis.mirror_descent import fit
from discreet.publish.synthesis.noisy_tables import NoisyTable, estimated_total
from discreet.publish.synthesis.quality import QualityReport, quality_report
from discreet.publish.synthesis.row_sampling import sample_rows
from discreet.publish.synthesis.schedule import Measurer, SynthesisSettings, candidates_of
from discreet.publish.synthesis.table_choice import choose_tables, table_weights


@dataclass(frozen=True, eq=False)
class RowModel:
    """A private model of a table's rows; everything that is computed from it is post-processing."""

    fitted: GraphicalModel  # of the columns, and merged ones after them
    quality: QualityReport
    columns: int

    @property
    def total(self) -> float:
        """The noisy number of rows, at least one."""
        return self.fitted.total

    def table(self, columns: Sequence[int]) -> np.ndarray:
        """Return the expected counts of a table of these columns."""
        return self.fitted.table(columns)

    def sample(self, rows: int | None = None, generator: np.random.Generator | None = None) -> np.ndarray:
        """Return synthetic rows of codes; by default as many as the model's total."""
        count = round(self.total) if rows is None else as_integer(rows, "rows")
        rows = sample_rows(self.fitted, count, np.random.default_rng() if generator is None else generator)
        return rows[:, : self.columns]


@dataclass(eq=False)
class _Synthesis:
    """A synthesis under way: the model, what it was fitted to, and the releases that are left."""

    measurer: Measurer
    settings: SynthesisSettings
    candidates: Mapping[Columns, Sequence[Columns]]
    columns: ColumnSet
    model: GraphicalModel
    measured: dict[Columns, NoisyTable] = field(default_factory=dict)
    releases: int = 0

    @property
    def deviation(self) -> float:
        """The standard deviation of the next release."""
        deviation = float(self.measurer.deviations[self.releases])
        require(deviation > 0, "deviations must be above 0")
        return deviation

    def measure(self, tables: Sequence[Columns]) -> None:
        """Measure tables and fit the model to all measurements."""
        weights = table_weights(tables, self.columns.sizes, self.settings)
        variances = [(self.deviation / weight) ** 2 for weight in weights]
        self.releases += 1
        for table, variance, counts in zip(tables, variances, self.measurer.tables(tables, weights), strict=True):
            noisy = NoisyTable(np.asarray(counts, dtype=float), variance)
            self.measured[table] = self.measured[table].average(noisy) if table in self.measured else noisy
        self.model = replace(self.model, total=estimated_total(self.measured))
        self.model = self.model.with_factors({**self.columns.links_of(self.measured), **self.model.factors})
        self.model = fit(self.model, self.measured, self.settings.steps)

    def merge_columns(self, ordered: Sequence[bool]) -> None:
        """Merge the values of columns with many into groups, by the noisy counts of the single columns."""
        share = float(self.settings.group_share)
        merged = [
            MergedColumn(column, merge_values(self.measured[column,].counts, share, ordered=ordered[column]))
            for column in merged_sources(self.columns.data)
        ]
        self.measurer.merge(merged)
        self.columns = replace(self.columns, merged=tuple(merged))
        tree = junction_tree(self.columns.sizes, self.model.factors)
        self.model = replace(self.model, sizes=self.columns.sizes, tree=tree)

    def distances(self, candidates: Mapping[Columns, Sequence[Columns]]) -> dict[Columns, float]:
        """Measure how far tables are from the model's, rounded to whole rows."""
        self.releases += 1
        models = {}
        for pair, tables in candidates.items():
            expected = self.model.table(pair)
            for table in tables:
                models[table] = np.rint(self.columns.merge(expected, pair, table)).astype(np.int64)
        found = self.measurer.distances([*models], [*models.values()])
        return dict(zip(models, map(float, found), strict=True))

    def quality(self) -> QualityReport:
        """Measure the distances of all pairs that may be measured once more, if that is paid for, and report them."""
        pays = bool(self.candidates) and self.settings.quality_share > 0
        wanted = {pair: [pair] for pair in self.candidates}
        deviation, distances = (self.deviation, self.distances(wanted)) if pays else (0.0, {})
        pairs = {
            pair: any(table in self.measured for table in self.candidates.get(pair, ()))
            for pair in combinations(range(len(self.columns.data)), 2)
        }
        return quality_report(self.model.total, pairs, distances, deviation, self.settings.norm)


def synthesise(
    sizes: Sequence[int], measurer: Measurer, settings: SynthesisSettings, ordered: Sequence[bool] | None = None
) -> RowModel:
    """Return a model of rows with these numbers of codes per column, from the releases of `release_schedule`.

    Single columns come first. Then each round measures the distances of all candidate tables from the model and, of
    these, the tables whose distance is worth their noise. If none is, the single columns are measured again. The codes
    of columns that are `ordered` (by default all) are merged with their neighbours only.

    >>> class Noiseless:
    ...     deviations = [1.0] * 6
    ...     data = np.array([[300, 100], [100, 300]])
    ...     def tables(self, tables, weights):
    ...         return [self.data if len(table) == 2 else self.data.sum(axis=1 - table[0]) for table in tables]
    ...     def distances(self, tables, models):
    ...         return np.array([np.abs(self.data - model).sum() for model in models])
    ...     def merge(self, merged):
    ...         assert not merged  # columns of two values have none
    >>> model = synthesise([2, 2], Noiseless(), SynthesisSettings())
    >>> model.table([0, 1]).round()
    array([[300., 100.],
           [100., 300.]])
    >>> model.sample(8).shape
    (8, 2)
    """
    columns = [(column,) for column in range(len(sizes))]
    candidates, data = candidates_of(sizes, settings), ColumnSet(tuple(sizes))
    run = _Synthesis(measurer, settings, candidates, data, independent_model(sizes, total=1))
    run.measure(columns)
    run.merge_columns([True] * len(sizes) if ordered is None else ordered)
    for _ in range(settings.rounds if candidates else 0):
        distances = run.distances(candidates)
        chosen = choose_tables(candidates, distances, run.deviation, run.measured, run.columns, settings)
        run.measure(chosen or columns)
    return RowModel(run.model, run.quality(), len(sizes))
