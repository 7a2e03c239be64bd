"""Audits of mechanisms that are exactly as private as they say: how often they are refuted all the same."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from discreet import audit

pytestmark = pytest.mark.slow

AUDITS = 1000
CHANCE = 1e-9  # that a sound audit fails here


def two_sided(rng, scale, size):
    q = math.exp(-1 / scale)
    return rng.geometric(1 - q, size) - rng.geometric(1 - q, size)


def response(rng, bit, runs):
    return np.where(rng.random(runs) < 1 / (1 + math.exp(-1)), bit, 1 - bit)


LAWS = {
    "laplace": (1.0, lambda rng, data, runs: data + two_sided(rng, 1, runs)),
    "response": (1.0, response),
    "vector": (1.0, lambda rng, data, runs: data + two_sided(rng, 3, (runs, 3))),
    "nothing": (0.0, lambda rng, data, runs: rng.integers(0, 100, runs)),
    "texts": (0.0, lambda rng, data, runs: rng.choice(list("abcdefgh"), runs).tolist()),
}


@pytest.mark.parametrize("name", LAWS)
def test_at_most_a_twentieth_of_sound_audits_refute(name):
    claim, law = LAWS[name]
    alarms, lows = 0, []
    for seed in range(AUDITS):
        rng = np.random.default_rng(seed)
        batch = audit.Batch(lambda data, runs, rng=rng: law(rng, data, runs))
        result = audit.measure(batch, 0, 1, claim, 1000)
        alarms += not result.holds
        lows.append(result.epsilon_low)
    print(f"{name}: {alarms} of {AUDITS} refuted, median {np.median(lows):.3f} of {claim}")
    assert alarms <= binom.ppf(1 - CHANCE, AUDITS, 0.05)


def test_the_search_for_the_worst_neighbours_costs_no_confidence():
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        pairs = [(0, 1)] * 20
        result = audit.search(
            lambda data, rng=rng: int(data + two_sided(rng, 1, None)), pairs, 1, 200, random_state=seed
        )
        alarms += not result.holds
    assert alarms <= binom.ppf(1 - CHANCE, 200, 0.05)


def test_at_most_a_twentieth_of_one_run_audits_of_randomized_response_refute():
    alarms = 0
    for seed in range(2000):
        rng = np.random.default_rng(seed)
        coins = rng.integers(0, 2, 500).astype(bool)
        told = np.where(rng.random(500) < 1 / (1 + math.exp(-1)), coins, ~coins) + 0.1 * rng.random(500)
        alarms += not audit.one_run(told, coins, 0, claim=1, guesses=200).holds
    print(f"one run: {alarms} of 2000 refuted")
    assert alarms <= binom.ppf(1 - CHANCE, 2000, 0.05)
