"""Rows with noise added at home: private for a replacement, and a mixture of the rows without noise."""

import numpy as np
import pytest

from discreet import attacks
from discreet.learn import NoisyRows

RNG = np.random.default_rng(4)
ROWS = np.concatenate([RNG.normal([-3, 1], 0.6, (1000, 2)), RNG.normal([3, -1], 0.6, (1000, 2))])
BOX = ([-5, -5], [5, 5])
NOISES = pytest.mark.parametrize("delta", [0, "1e-6"], ids=["laplace", "gaussian"])


@NOISES
def test_the_noise_has_the_stated_deviation_and_hides_the_whole_box(delta):
    noise = NoisyRows.for_bounds(BOX, epsilon=4, delta=delta)
    error = noise.perturb(ROWS) - ROWS
    assert error.std(axis=0) == pytest.approx(noise.deviation, rel=0.06)
    assert (np.abs(error.mean(axis=0)) < 5 * noise.deviation / np.sqrt(len(ROWS))).all()
    # Two rows at opposite corners differ by 10 in each column; no Gaussian noise of epsilon 4 is below that of rho 8.
    least = 2**0.5 * 20 / 4 if delta == 0 else 200**0.5 / np.sqrt(2 * 8)
    assert noise.deviation.min() >= 0.99 * least
    assert (float(noise.loss.delta) > 0) == (delta != 0)
    assert noise.loss.neighbours == "replacement"


@pytest.mark.long
@NOISES
def test_em_that_knows_the_noise_finds_the_mixture_of_the_rows_without_it(delta):
    noise = NoisyRows.for_bounds(BOX, epsilon=60, delta=delta)
    mixture = noise.fit_mixture(noise.perturb(ROWS), 2)
    order = np.argsort(mixture.means_[:, 0])
    assert mixture.means_[order] == pytest.approx(np.array([[-3, 1], [3, -1]]), abs=0.4)
    assert mixture.weights_ == pytest.approx([0.5, 0.5], abs=0.1)
    assert np.trace(mixture.covariances_, axis1=1, axis2=2).max() < 2.5
    assert mixture.predict([[-3, 1], [3, -1]]).tolist() == order.tolist()
    assert mixture.loss_ == noise.loss


def test_values_outside_of_the_bounds_are_clamped_before_the_noise():
    noise = NoisyRows.for_bounds(BOX, epsilon=1000, delta=0)
    assert noise.perturb([[90, -90], [90, 1]]) == pytest.approx(np.array([[5, -5], [5, 1]]), abs=0.5)


@NOISES
def test_bounds_may_be_far_from_zero_and_of_different_width(delta):
    noise = NoisyRows.for_bounds(([0, 100], [10, 130]), epsilon=200, delta=delta)
    sent = noise.perturb(np.tile([2.0, 125.0], (400, 1)))
    assert sent.mean(axis=0) == pytest.approx([2, 125], abs=5 * noise.deviation.max() / 20)
    assert noise.perturb(np.tile([90.0, 90.0], (400, 1))).mean(axis=0) == pytest.approx([10, 100], abs=1)
    assert noise.fit_mixture(sent, 1).means_[0] == pytest.approx([2, 125], abs=1)


@pytest.mark.parametrize("rows", [[1.0, 2.0], [[1.0, 2.0, 3.0]], np.zeros((0, 2))])
def test_tables_of_another_shape_are_refused(rows):
    noise = NoisyRows.for_bounds(BOX, epsilon=1, delta=0)
    for read in (noise.perturb, lambda given: noise.fit_mixture(given, 1)):
        with pytest.raises(ValueError, match="table with 2 columns"):
            read(rows)


def test_the_study_shows_accuracy_beside_the_success_of_both_observers():
    rows = np.random.default_rng(1).normal([2, -1], 0.5, (600, 2))
    study = attacks.hidden_rows(rows, bounds=(-5, 5), components=1, epsilons=[1, 16], random_state=0, targets=200)
    assert len(study.points) == 10
    for where in ("Gaussian", "Laplace"):
        for aware, plain in zip(
            *(study.of(f"{where} noise at home", way) for way in ("EM that knows the noise", "plain EM")), strict=True
        ):
            assert plain.score < aware.score <= study.exact_score + 0.1
            assert aware.learner.success < min(1, aware.ceiling + 0.15)
    assert all(point.learner.success == 1 for point in study.of("a curator", "private EM"))
    assert "EM that knows the noise" in str(study)
    assert len(study.figure().axes) >= 2
