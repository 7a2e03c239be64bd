"""Ranges from noisy counts: they lose few values, are not much too wide, and say when the histogram cannot tell."""

import math

import numpy as np
import pytest

from discreet.advise.value_cells import coarse_cells
from discreet.advise.value_range import ValueCounts, chosen_range, coarse_range, refined_cells


def counted(values, cells, deviation, rng, *, is_laplace=True, missing=0.0):
    """Return noisy counts of values, one of each unit."""
    places = np.searchsorted([float(edge) for edge in cells.edges], values, side="right")
    size = len(cells.edges) + 1
    noise = rng.laplace(0, deviation / math.sqrt(2), size) if is_laplace else rng.normal(0, deviation, size)
    return ValueCounts(cells, np.bincount(places, minlength=size) + np.round(noise), missing, deviation, is_laplace)


def range_of(values, kind="real", deviation=5.0, rng=None, **more):
    rng = np.random.default_rng(29) if rng is None else rng
    whole = kind == "integer"
    first = counted(values, coarse_cells(kind), deviation, rng, **more)
    coarse = coarse_range(first)
    if coarse is None:
        return None
    fine = counted(values, refined_cells(coarse, whole=whole), deviation, rng, **more)
    return chosen_range(coarse, first, fine, whole=whole)


def lost(values, chosen):
    return ((values < float(chosen.low)) | (values > float(chosen.high))).mean()


RNG = np.random.default_rng(7)  # of the populations; noise has a generator of its own in each test
POPULATIONS = {
    "lognormal": (RNG.lognormal(3, 1, 20_000), "real"),
    "pareto": ((RNG.pareto(2, 20_000) + 1) * 10, "real"),
    "normal": (RNG.normal(0, 1, 20_000), "real"),
    "small numbers": (RNG.exponential(0.003, 20_000), "real"),
    "ages": (np.clip(RNG.normal(45, 18, 20_000), 0, 100).astype(int), "integer"),
    "mostly zero": (np.where(RNG.random(20_000) < 0.9, 0, RNG.integers(3_000, 90_000, 20_000)), "integer"),
    "negative": (-RNG.lognormal(3, 1, 20_000), "real"),
}


@pytest.mark.parametrize("is_laplace", [True, False], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("name", POPULATIONS)
def test_a_range_loses_less_than_one_percent_and_is_at_most_four_times_too_wide(name, is_laplace):
    values, kind = POPULATIONS[name]
    widths, rng = [], np.random.default_rng(1)
    for _ in range(10):
        chosen = range_of(values, kind, is_laplace=is_laplace, rng=rng)
        assert lost(values, chosen) < 0.01
        assert chosen.outside <= chosen.outside_at_most < 0.02
        widths.append(float(chosen.high - chosen.low) / (np.quantile(values, 0.995) - np.quantile(values, 0.005)))
    assert np.median(widths) < 4


def test_the_stated_share_outside_covers_the_true_one():
    values, kind = POPULATIONS["pareto"]
    rng = np.random.default_rng(2)
    ranges = [range_of(values, kind, rng=rng) for _ in range(60)]
    covered = [lost(values, chosen) <= chosen.outside_at_most for chosen in ranges]
    assert np.mean(covered) > 0.8


def test_values_that_are_close_together_get_a_narrow_range():
    chosen = range_of(np.arange(20_000) % 13 + 2012, "integer")
    assert chosen.low >= 1990
    assert chosen.high <= 2060
    assert chosen.outside_at_most < 0.003  # the few cells inside, not the many outside, are subtracted from the total


@pytest.mark.parametrize("units", [0, 50, 150])
def test_few_values_beside_the_noise_give_no_range(units):
    assert range_of(np.exp(np.linspace(1, 5, units))) is None


def test_the_number_of_units_that_a_histogram_needs_is_what_it_takes():
    assert range_of(np.full(120, 7.0), deviation=5.0) is None
    assert range_of(np.full(300, 7.0), deviation=5.0) is not None


def test_noise_far_from_all_values_does_not_widen_the_range():
    rng = np.random.default_rng(8)
    highs = [float(range_of(np.linspace(20, 80, 3_000), rng=rng).high) for _ in range(200)]
    assert np.mean(np.array(highs) > 1_000) < 0.03


def test_a_rough_histogram_leaves_a_spare_cell():
    chosen = range_of(np.linspace(12, 48, 1_000), deviation=10.0)
    assert (chosen.low, chosen.high) == (0, 100)


def test_values_beyond_the_grid_are_reported():
    counts = counted(np.full(5_000, 1e17), coarse_cells("real"), 5.0, np.random.default_rng(3))
    assert coarse_range(counts).beyond_grid


def test_the_share_of_nulls_is_that_of_all_rows():
    chosen = range_of(np.exp(np.linspace(1, 5, 9_000)), missing=1_000.0)
    assert 0.08 < chosen.missing < 0.12


def test_bins_have_round_ends_and_cover_the_range():
    for values, kind in POPULATIONS.values():
        chosen = range_of(values, kind)
        assert (chosen.bins[0], chosen.bins[-1]) == (chosen.low, chosen.high)
        assert list(chosen.bins) == sorted(set(chosen.bins))
        assert len(chosen.bins) <= 21


def test_bins_grow_where_most_values_are_small():
    values = 3 * np.linspace(1e-4, 1, 50_000) ** (-1 / 1.2)
    widths = np.diff([float(end) for end in range_of(values).bins])
    assert widths[-1] > 10 * widths[1]
