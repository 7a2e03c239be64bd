"""Margins of published tables hold: of all pairs of 15 columns, over 2,000 releases with simulated noise."""

from itertools import combinations

import numpy as np
import pytest

from discreet.publish.marginals import (
    Axis,
    Measurement,
    Noise,
    choose_scales,
    forecast,
    least_squares,
    table_shape,
)

pytestmark = pytest.mark.slow
SIZES = (16, 9, 20, 16, 16, 7, 15, 6, 5, 2, 20, 18, 20, 42, 2)  # the columns of Adult, five of them in bins
AXES = [Axis(f"column {index}", size) for index, size in enumerate(SIZES)]
TABLES = [tuple((i, 0) for i in some) for k in range(3) for some in combinations(range(len(AXES)), k)]
RELEASES = 2_000


def coverage(noise, draw, factors=(1.0,)):
    """Return for each cell how often its margin, multiplied by each factor, contains the truth, which is 0."""
    scales = choose_scales(AXES, dict.fromkeys(TABLES, 1.0), noise=noise)
    forecasted = forecast(AXES, scales, 2_000.0, noise)
    margins = np.concatenate([forecasted.margin(table).ravel() for table in TABLES])
    random, covered = np.random.default_rng(2026), np.zeros((len(factors), len(margins)))
    for _ in range(RELEASES):
        measurements = [
            Measurement(table, np.rint(draw(random, variance**0.5, table_shape(AXES, table))), variance)
            for table, variance in forecasted.measured.items()
        ]
        release = least_squares(AXES, measurements, noise)
        errors = np.abs(np.concatenate([release.table(table)[0].ravel() for table in TABLES]))
        covered += errors <= np.outer(factors, margins)
    return covered / RELEASES


def normal(random, deviation, shape):
    return random.normal(0, deviation, shape)


def laplace(random, deviation, shape):
    return random.laplace(0, deviation / 2**0.5, shape)


def test_margins_of_gaussian_noise_cover_as_often_as_they_say_and_narrower_ones_do_not():
    covered, narrower = coverage(Noise.GAUSSIAN, normal, factors=(1.0, 0.9))
    assert abs(covered.mean() - 0.95) <= 0.005
    assert covered.min() >= 0.92
    assert covered.max() <= 0.98
    assert narrower.mean() < 0.93
    assert narrower.min() < 0.92


def test_margins_of_laplace_noise_cover_at_least_as_often_as_they_say():
    (covered,) = coverage(Noise.LAPLACE, laplace)
    assert 0.95 <= covered.mean() <= 0.975
    assert covered.min() >= 0.93
