"""Longer statistics of the mechanisms' real path: enough to tell a scale wrong by a hundredth."""

import importlib.util
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from discreet import privacy
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.local.randomized_response import RandomizedResponse
from discreet.privacy.selection import Exponential, PermuteAndFlip

_spec = importlib.util.spec_from_file_location("evidence", Path(__file__).parents[1] / "broken" / "evidence.py")
evidence = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(evidence)

pytestmark = pytest.mark.slow
ALARM = 1e-10


@pytest.mark.parametrize("kind", [Laplace, Gaussian])
@pytest.mark.parametrize("scale", ["1/2", "3", "25"])
def test_noise_of_a_slightly_wrong_scale_would_be_detected(kind, scale):
    noise = kind(scale)
    drawn = np.concatenate([noise.perturb(np.zeros(100_000, np.int64)) for _ in range(10)])
    assert evidence.chi_square(drawn, partial(privacy.pmf, noise)) > ALARM
    for wrong in ("0.97", "1.03"):
        other = kind(noise.scale * kind(wrong).scale)
        assert evidence.chi_square(drawn, partial(privacy.pmf, other)) < ALARM


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_many_selections_follow_their_probabilities(kind):
    values = [0, 1, 2, 2.5, 4]
    chosen = [kind(1).choose(values) for _ in range(150_000)]
    assert evidence.chi_square_of_choices(chosen, privacy.probabilities(kind(1), values)) > ALARM
    for wrong in ("0.95", "1.05"):
        assert evidence.chi_square_of_choices(chosen, privacy.probabilities(kind(wrong), values)) < ALARM


def test_ten_thousand_names_stay_within_twelve_as_often_as_in_theory():
    q = np.exp(-1.0)
    exact = (1 - 2 * q**13 / (1 + q)) ** 10_000
    times = 20_000
    held = sum(int(np.abs(Laplace(1).perturb(np.zeros(10_000, np.int64))).max()) <= 12 for _ in range(times))
    assert stats.binomtest(held, times, exact).pvalue > ALARM
    assert stats.binomtest(held, times, 0.95, alternative="less").pvalue > ALARM


def test_margins_of_coin_flip_surveys_cover_the_truth():
    mechanism, times, n = RandomizedResponse("1/2"), 20_000, 100
    bits = np.arange(n) < 30
    held = 0
    for _ in range(times):
        share, margin = mechanism.estimate(mechanism.perturb(bits))
        held += abs(share - 0.3) <= margin
    assert stats.binomtest(held, times, 0.95, alternative="less").pvalue > ALARM
