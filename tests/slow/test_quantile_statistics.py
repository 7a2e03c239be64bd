"""Accuracy of selected quantiles: errors of ranks, coverage of margins, and widths beside those of the tree."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

_spec = importlib.util.spec_from_file_location("bench_quantiles", Path(__file__).parents[2] / "bench" / "quantiles.py")
bench = importlib.util.module_from_spec(_spec)
sys.modules["bench_quantiles"] = bench
_spec.loader.exec_module(bench)

pytestmark = pytest.mark.slow
ALARM = 1e-10
SHAPES = ("lognormal", "uniform", "two lumps", "twenty values")


@pytest.mark.parametrize(
    ("size", "epsilon", "kind", "levels", "most"),
    [
        (1_000, "0.1", "pure", bench.MEDIAN, 1.2 * 18),
        (10_000, "0.1", "zCDP", bench.MEDIAN, 1.2 * 51),
        (100_000, "0.1", "zCDP", bench.MEDIAN, 1.2 * 33),
        (10_000, "0.1", "zCDP", bench.THREE, 1.2 * 129),
    ],
)
def test_ranks_of_values_without_margins_are_as_accurate_as_the_exponential_mechanism(
    size, epsilon, kind, levels, most
):
    cells = bench.simulated_cells("lognormal", size)
    found = bench.selected(bench.cell_counts(cells), levels, epsilon, kind, 1000, selections=1)
    assert bench.measured(cells, levels, found).rmse <= most


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("size", "epsilon", "kind", "levels"),
    [
        (1_000, "0.1", "pure", bench.MEDIAN),
        (10_000, "1", "pure", bench.MEDIAN),
        (10_000, "0.1", "zCDP", bench.THREE),
        (100_000, "1", "zCDP", bench.THREE),
    ],
)
def test_margins_cover_the_quantile_at_95_percent(shape, size, epsilon, kind, levels):
    """Fewer would be covered less than once in 10^10 times, if the coverage were 95 %; a third of the width fails."""
    cells = bench.simulated_cells(shape, size)
    found = bench.selected(bench.cell_counts(cells), levels, epsilon, kind, 1000)
    truth = cells[[int(np.ceil(float(level) * size)) - 1 for level in levels]]
    covered = (np.abs(found[:, :, 0] - truth) <= found[:, :, 1]).sum(axis=0)
    assert covered.min() >= stats.binom.ppf(ALARM, 1000, 0.95)


@pytest.mark.parametrize("shape", ["lognormal", "uniform"])
@pytest.mark.parametrize("kind", ["pure", "zCDP"])
@pytest.mark.parametrize("size", [10_000, 100_000])
def test_margins_of_a_median_are_narrower_than_those_of_the_tree(shape, kind, size):
    cells = bench.simulated_cells(shape, size)
    counts = bench.cell_counts(cells)
    found = [draw(counts, bench.MEDIAN, "1", kind, 100) for draw in (bench.selected, bench.walked)]
    selected, walked = (bench.measured(cells, bench.MEDIAN, each) for each in found)
    assert selected.width <= walked.width
    assert selected.rmse <= walked.rmse / 2
