"""Synthetic rows: measures the tables that a model lacks most, fits it, and draws rows from it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from discreet.kernel.errors import require
from discreet.kernel.numbers import as_integer
from discreet.publish.synthesis.graphical_model import GraphicalModel, independent_model
from discreet.publish.synthesis.junction_tree import Columns
from discreet.publish.synthesis.mirror_descent import fit
from discreet.publish.synthesis.noisy_tables import NoisyTable, estimated_total
from discreet.publish.synthesis.quality import QualityReport, quality_report
from discreet.publish.synthesis.row_sampling import sample_rows
from discreet.publish.synthesis.schedule import Measurer, SynthesisSettings, candidate_pairs
from discreet.publish.synthesis.table_choice import choose_tables, table_weights


@dataclass(frozen=True, eq=False)
class RowModel:
    """A private model of a table's rows; everything that is computed from it is post-processing."""

    fitted: GraphicalModel
    quality: QualityReport

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
        return sample_rows(self.fitted, count, np.random.default_rng() if generator is None else generator)


@dataclass(eq=False)
class _Synthesis:
    """A synthesis under way: the model, what it was fitted to, and the releases that are left."""

    measurer: Measurer
    settings: SynthesisSettings
    pairs: Sequence[Columns]
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
        weights = table_weights(tables, self.model.sizes, self.settings)
        variances = [(self.deviation / weight) ** 2 for weight in weights]
        self.releases += 1
        for table, variance, counts in zip(tables, variances, self.measurer.tables(tables, weights), strict=True):
            noisy = NoisyTable(np.asarray(counts, dtype=float), variance)
            self.measured[table] = self.measured[table].average(noisy) if table in self.measured else noisy
        self.model = replace(self.model, total=estimated_total(self.measured))
        self.model = fit(self.model, self.measured, self.settings.steps)

    def distances(self) -> dict[Columns, float]:
        """Measure how far all pairs are from the model's tables, rounded to whole rows."""
        self.releases += 1
        models = [np.rint(self.model.table(pair)).astype(np.int64) for pair in self.pairs]
        return dict(zip(self.pairs, map(float, self.measurer.distances(self.pairs, models)), strict=True))

    def quality(self) -> QualityReport:
        """Measure the distances of all pairs once more, if that is paid for, and report them."""
        pays = bool(self.pairs) and self.settings.quality_share > 0
        deviation, distances = (self.deviation, self.distances()) if pays else (0.0, {})
        return quality_report(self.model, distances, deviation, self.settings.norm)


def synthesise(sizes: Sequence[int], measurer: Measurer, settings: SynthesisSettings) -> RowModel:
    """Return a model of rows with these numbers of codes per column, from the releases of `release_schedule`.

    Single columns come first. Then each round measures the distances of all pairs from the model and, of the pairs,
    those whose distance is worth their noise. If none is, the single columns are measured again.
    """
    columns = [(column,) for column in range(len(sizes))]
    run = _Synthesis(measurer, settings, candidate_pairs(sizes, settings), independent_model(sizes, total=1))
    run.measure(columns)
    for _ in range(settings.rounds if run.pairs else 0):
        distances = run.distances()
        run.measure(choose_tables(distances, run.deviation, run.measured, sizes, settings) or columns)
    return RowModel(run.model, run.quality())
