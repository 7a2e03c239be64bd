"""Bits that are not fair: what leaks is measured beside the prior, and the attack knows it, too."""

import numpy as np
import pytest

import discreet as dc
from discreet.attacks.aggregates import subset_oracles
from discreet.attacks.aggregates.linear_reconstruction import bits_likelier_set, expected_accuracy, guess_bits
from discreet.attacks.aggregates.reconstruct import reconstruct
from discreet.attacks.aggregates.reductions import reconstruction_from_membership
from discreet.attacks.data.secret_bits import Secrets, Study
from discreet.attacks.evidence import BitEvidence, GuessEvidence

SURE = 1 - 1e-9  # intervals of the tests that meet real noise


def _people(share, count=500, random_state=0):
    return Secrets(np.random.default_rng(random_state).random(count) < share)


def test_a_leak_of_bits_that_are_mostly_set_implies_an_epsilon():
    result = reconstruct(_people(0.9), noise=1 / 2, random_state=0)
    assert result.success > result.baseline
    assert result.implied.low > 0.5


@pytest.mark.parametrize("share", [0.02, 0.1, 0.45, 0.6, 0.9, 0.98])
@pytest.mark.parametrize("method", ["least squares", "one at a time"])
@pytest.mark.parametrize("questions", ["random subsets", "one by one"])
def test_the_attack_is_never_worse_than_guessing_the_more_frequent_value(share, method, questions):
    for noise in (0, 1 / 4, 1, 8, 64):
        result = reconstruct(
            _people(share, 300), noise=noise, method=method, questions=questions, random_state=int(100 * share)
        )
        assert result.success >= result.baseline - 0.03  # nine people of 300, by chance


@pytest.mark.parametrize("share", [0.1, 0.7, 0.9])
@pytest.mark.parametrize("noise", [1 / 4, 2])
def test_the_linear_programme_is_never_worse_either(share, noise):
    result = reconstruct(_people(share, 100), noise=noise, method="linear programme", random_state=1)
    assert result.success >= result.baseline - 0.05


def test_a_linear_programme_of_as_many_queries_as_people_is_never_worse_either():
    result = reconstruct(_people(0.9, 100), noise=2, method="linear programme", questions="one by one", random_state=1)
    assert result.success == result.baseline


def test_outliers_do_not_make_the_linear_programme_fail():
    rng = np.random.default_rng(0)
    bits, subsets = rng.random(100) < 0.8, rng.random((400, 100)) < 1 / 2
    wild = rng.random(400) < 0.1
    answers = np.where(wild, rng.uniform(0, 2000, 400), subset_oracles.exact_sums(bits)(subsets))
    assert (guess_bits(subsets, answers, "linear programme", bit_rate=0.8) == bits).all()


def test_knowing_the_prior_gains_where_answers_are_noisy():
    rng = np.random.default_rng(0)
    bits = rng.random(2000) < 0.8
    estimates = bits + rng.normal(0, 0.5, 2000)
    assert (bits_likelier_set(estimates, 0.8) == bits).mean() > (
        bits_likelier_set(estimates, 0.5) == bits
    ).mean() + 0.02


@pytest.mark.long
def test_normal_errors_are_distinguished_from_laplace_errors():
    """Far out, an estimate with normal errors still says much, and one with Laplace's no more than the nearest does."""
    rng = np.random.default_rng(0)
    bits = rng.random(20_000) < 0.55
    normal, laplace = bits + rng.normal(0, 4, 20_000), bits + rng.laplace(0, 1, 20_000)
    assert (bits_likelier_set(normal, 0.55) == bits).mean() > 0.557
    assert (bits_likelier_set(laplace, 0.55) == bits).mean() > 0.69
    assert bits_likelier_set(laplace, 0.9).all()  # noise of epsilon 1 never outweighs odds of 9 to 1


def test_a_prior_that_is_wrong_does_not_spoil_exact_answers():
    bits = np.random.default_rng(0).random(200) < 1 / 2
    assert (bits_likelier_set(bits.astype(float), 0.99) == bits).all()


def test_the_threshold_of_a_uniform_prior_is_one_half():
    estimates = np.random.default_rng(0).normal(0.5, 3, 1000)
    assert np.array_equal(bits_likelier_set(estimates, 1 / 2), estimates > 1 / 2)


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_the_attack_reaches_what_theory_predicts_for_a_prior(share):
    result = reconstruct(_people(share, 1000), noise=0.3, random_state=0)
    assert result.details["accuracy of least squares, in theory"] == pytest.approx(result.success, abs=0.03)
    assert expected_accuracy(100, 400, 1e9, share) == pytest.approx(0.9)


@pytest.mark.parametrize("epsilon", ["1/10", 1])
def test_the_curator_leaves_the_attacker_at_the_prior(epsilon):
    result = reconstruct(_people(0.9, 128), defence="curator", epsilon=epsilon, random_state=0)
    assert result.evidence.implied(confidence=SURE).low <= float(result.epsilon)
    assert result.success < 0.97
    assert result.ceiling == max(result.baseline, GuessEvidence(1, 2).ceiling(float(result.epsilon)))


def test_noise_ten_times_too_small_is_caught_although_most_bits_are_set():
    def oracle_for(bits):
        return lambda subsets: dc.Laplace("1/10").perturb(subset_oracles.exact_sums(bits)(subsets).astype(np.int64))

    result = reconstruct(_people(0.9, 1000), defence=oracle_for, epsilon=1, questions="one by one", random_state=0)
    assert result.evidence.implied(confidence=SURE).low > 1
    assert not result.holds


def test_bits_that_are_all_equal_leave_nothing_to_infer():
    result = reconstruct(Secrets([1, 1, 1]), random_state=0)
    assert result.success == 1
    assert result.implied.low == 0


def test_a_drawn_probability_is_the_prior_whatever_was_drawn():
    people = Secrets([1] * 60 + [0] * 40, chance="1/2")
    assert (people.prior, people.bit_rate) == (0.5, 0.5)
    evidence = reconstruct(people, random_state=0).evidence
    assert isinstance(evidence, BitEvidence)
    assert evidence.prior == 0.5


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_groups_of_unequal_size_are_reconstructed_and_imply_an_epsilon(share):
    study = _study(share, 200, 300)
    result = reconstruction_from_membership(study, random_state=0)
    assert result.success > result.baseline + 0.03
    assert result.implied.low > 0.5


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_private_means_of_unequal_groups_leave_guessing_the_larger_one(share):
    result = reconstruction_from_membership(_study(share, 200, 300), defence="curator", epsilon="1/10", random_state=0)
    assert result.success > result.baseline - 0.1
    assert result.evidence.implied(confidence=SURE).low <= 0.1


def _study(share, people, attributes):
    rng = np.random.default_rng(0)
    rates = rng.uniform(0.1, 0.9, attributes)
    values, strangers = (rng.random((count, attributes)) < rates for count in (people, people))
    return Study(values, rng.random(people) < share, strangers, rates)
