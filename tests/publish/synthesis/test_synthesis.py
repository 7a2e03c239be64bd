"""Synthesis as a whole: it keeps to its schedule whatever the noise, and finds what the data says."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.publish.synthesis import SynthesisSettings, release_schedule, synthesise
from discreet.publish.synthesis.graphical_model import independent_model
from discreet.publish.synthesis.merged_columns import ColumnSet
from discreet.publish.synthesis.row_model import _Synthesis
from discreet.publish.synthesis.table_choice import table_weights
from tests.publish.synthesis.simulated_measurer import SimulatedMeasurer

SIZES = [4, 3, 2, 5]
each_norm = pytest.mark.parametrize("norm", [1, 2])


def chain_rows(count=5000, seed=0):
    """Return rows in which each column depends on the one before it."""
    generator = np.random.default_rng(seed)
    columns = [generator.integers(0, SIZES[0], count)]
    for size in SIZES[1:]:
        random = generator.integers(0, size, count)
        columns.append(np.where(generator.random(count) < 0.8, columns[-1] % size, random))
    return np.stack(columns, axis=1)


def measurer_of(rows, sizes, settings, budget, radius=1):
    schedule = release_schedule(sizes, settings)
    generator = np.random.default_rng(1)
    return SimulatedMeasurer(rows, sizes, schedule, budget, norm=settings.norm, radius=radius, generator=generator)


def mean_variation(exact, table):
    """Return the mean total variation of all pairs of columns; both arguments are functions of a pair."""
    pairs = list(combinations(range(len(SIZES)), 2))
    shares = [(exact(pair) / exact(pair).sum(), table(pair) / table(pair).sum()) for pair in pairs]
    return np.mean([np.abs(one - other).sum() / 2 for one, other in shares])


class AdversarialMeasurer(SimulatedMeasurer):
    """Adds noise of any size, or nothing but noise."""

    def __init__(self, schedule, sizes, draw, scale):
        super().__init__(np.zeros((3, len(sizes)), dtype=int), sizes, schedule, 1.0)
        self.draw, self.scale = draw, scale

    def noise(self, deviation, shape):
        kind = self.draw(st.sampled_from(["huge", "negative", "zero", "mixed"]))
        generator = np.random.default_rng(self.draw(st.integers(0, 99)))
        noise = {
            "huge": np.full(shape, self.scale),
            "negative": np.full(shape, -self.scale),
            "zero": np.zeros(shape),
            "mixed": np.rint(self.scale * generator.standard_normal(shape)),
        }
        return noise[kind]


@given(
    st.data(),
    st.lists(st.sampled_from([1, 2, 3, 4, 7, 9]), min_size=1, max_size=4),
    st.sampled_from([0.0, 10.0, 1e6, 1e15]),
    st.sampled_from([4, 12, 1000]),
)
def test_any_noise_keeps_the_schedule_and_gives_valid_rows(data, sizes, scale, model_cells):
    settings = SynthesisSettings(model_cells=model_cells, steps=4)
    schedule = release_schedule(sizes, settings)
    measurer = AdversarialMeasurer(schedule, sizes, data.draw, scale)
    model = synthesise(sizes, measurer, settings)
    assert len(measurer.calls) == len(schedule)
    assert model.total >= 1
    rows = model.sample(50)
    assert rows.shape == (50, len(sizes))
    assert ((rows >= 0) & (rows < sizes)).all()


@each_norm
def test_dependent_columns_are_found(norm):
    rows = chain_rows()
    settings = SynthesisSettings(norm=norm, steps=60)
    measurer = measurer_of(rows, SIZES, settings, budget=1.0)
    model = synthesise(SIZES, measurer, settings)
    assert {(0, 1), (1, 2), (2, 3)} <= {*model.fitted.factors}
    independent = mean_variation(measurer.exact, lambda pair: np.outer(*(measurer.exact((column,)) for column in pair)))
    synthetic = model.sample(generator=np.random.default_rng(2))
    drawn = SimulatedMeasurer(synthetic, SIZES, [], 1.0)
    assert mean_variation(measurer.exact, drawn.exact) < independent / 4
    assert len(synthetic) == pytest.approx(5000, abs=300)


def test_without_noise_the_model_is_the_data():
    rows = chain_rows()
    settings = SynthesisSettings(steps=400)
    measurer = measurer_of(rows, SIZES, settings, budget=1e12)
    model = synthesise(SIZES, measurer, settings)
    assert model.total == pytest.approx(5000)
    assert mean_variation(measurer.exact, model.table) < 0.002
    assert model.quality.mean < 0.005


def test_noise_for_several_rows_per_unit_is_taken_into_account():
    rows, settings = chain_rows(), SynthesisSettings(steps=20)
    few = synthesise(SIZES, measurer_of(rows, SIZES, settings, budget=0.01, radius=1), settings)
    many = synthesise(SIZES, measurer_of(rows, SIZES, settings, budget=0.01, radius=20), settings)
    assert len(many.fitted.factors) < len(few.fitted.factors)
    assert many.quality.margin == pytest.approx(20 * few.quality.margin, rel=0.5)


def test_if_no_pair_is_worth_its_noise_single_columns_are_measured_again():
    settings = SynthesisSettings(steps=10)
    measurer = measurer_of(chain_rows(40), SIZES, settings, budget=1e-6)
    measurer.distances = lambda pairs, _: measurer._next("distances", len(pairs)) * -np.ones(len(pairs))
    assert {*synthesise(SIZES, measurer, settings).fitted.factors} == {(column,) for column in range(len(SIZES))}


def test_the_quality_report_covers_the_truth():
    settings = SynthesisSettings(steps=60)
    measurer = measurer_of(chain_rows(), SIZES, settings, budget=0.05)
    model = synthesise(SIZES, measurer, settings)
    report = model.quality
    assert [pair.columns for pair in report.pairs] == list(combinations(range(len(SIZES)), 2))
    for pair in report.pairs:
        distance = np.abs(measurer.exact(pair.columns) - np.rint(model.table(pair.columns))).sum()
        assert pair.total_variation == pytest.approx(distance / (2 * model.total), abs=2 * report.margin)
        assert pair.measured == (pair.columns in model.fitted.factors)
    truth = [np.abs(measurer.exact(pair.columns) - model.table(pair.columns)).sum() for pair in report.pairs]
    assert report.mean == pytest.approx(np.mean(truth) / (2 * model.total), abs=2 * report.mean_margin + 0.001)
    assert report.mean_margin == pytest.approx(report.margin / math.sqrt(len(report.pairs)))


@each_norm
def test_variances_are_those_of_the_releases(norm):
    settings = SynthesisSettings(norm=norm, steps=1)
    measurer = measurer_of(chain_rows(), SIZES, settings, budget=1.0)
    measurer.schedule[1] = measurer.schedule[0]  # the same tables twice
    run = _Synthesis(measurer, settings, {}, ColumnSet(tuple(SIZES)), independent_model(SIZES, total=1))
    tables = [(0,), (3,)]
    weights = table_weights(tables, SIZES, settings)
    run.measure(tables)
    first = [(measurer.deviations[0] / weight) ** 2 for weight in weights]
    assert [run.measured[table].variance for table in tables] == pytest.approx(first)
    run.measure(tables)
    second = [(measurer.deviations[1] / weight) ** 2 for weight in weights]
    both = [1 / (1 / one + 1 / other) for one, other in zip(first, second, strict=True)]
    assert [run.measured[table].variance for table in tables] == pytest.approx(both)


def test_quality_that_is_not_paid_for_is_not_known():
    settings = SynthesisSettings(steps=10, quality_share=0)
    report = synthesise(SIZES, measurer_of(chain_rows(), SIZES, settings, budget=1.0), settings).quality
    assert {pair.total_variation for pair in report.pairs} == {None}
    assert report.mean is report.margin is report.mean_margin is None


def test_pairs_that_are_too_large_are_not_known_either():
    settings = SynthesisSettings(steps=10, model_cells=12)
    report = synthesise(SIZES, measurer_of(chain_rows(), SIZES, settings, budget=1.0), settings).quality
    unknown = {pair.columns for pair in report.pairs if pair.total_variation is None}
    assert unknown == {(0, 3), (1, 3)}


def test_a_generator_repeats_rows_and_fresh_randomness_does_not():
    settings = SynthesisSettings(steps=10)
    model = synthesise(SIZES, measurer_of(chain_rows(), SIZES, settings, budget=1.0), settings)
    one, same = (model.sample(500, np.random.default_rng(3)) for _ in range(2))
    assert (one == same).all()
    assert (model.sample(500) != model.sample(500)).any()


def test_a_deviation_of_zero_is_refused():
    settings = SynthesisSettings(steps=10)
    measurer = measurer_of(chain_rows(), SIZES, settings, budget=1.0)
    measurer.deviations[0] = 0.0
    with pytest.raises(ValueError, match="deviations"):
        synthesise(SIZES, measurer, settings)


def smooth_rows(count=20_000):
    """Return rows of four columns of 20 values that follow one hidden number."""
    generator = np.random.default_rng(4)
    numbers = generator.normal(0, 1, (count, 1)) + generator.normal(0, 1, (count, 4))
    return np.clip(np.rint(3 * numbers + 10), 0, 19).astype(int)


def test_columns_of_many_values_are_measured_merged_where_noise_would_hide_them():
    rows, sizes, settings = smooth_rows(), [20] * 4, SynthesisSettings(steps=100)
    model = synthesise(sizes, measurer_of(rows, sizes, settings, budget=0.003), settings)
    assert sum(min(table) >= 4 for table in model.fitted.factors) >= 4, "tables of merged columns"
    assert all(pair.measured for pair in model.quality.pairs if pair.total_variation > 0.2)
    synthetic = model.sample(len(rows), np.random.default_rng(5))
    assert synthetic.shape == rows.shape
    assert np.corrcoef(synthetic.T) == pytest.approx(np.corrcoef(rows.T), abs=0.2)
