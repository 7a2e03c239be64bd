import numpy as np
import pytest

import discreet as dc
from discreet.attacks.aggregates import subset_oracles
from discreet.attacks.aggregates.reductions import (
    group_scores,
    means_by_secret,
    membership_from_reconstruction,
    private_means,
    reconstruction_from_membership,
)
from discreet.attacks.data.secret_bits import Secrets, Study, simulate_study
from discreet.attacks.evidence import BitEvidence, GuessEvidence
from discreet.audit.hypothesis_tests import Proportion

SURE = 1 - 1e-9  # intervals of the tests that meet real noise


@pytest.mark.parametrize("defence", ["nothing", "easy"])
def test_a_reconstruction_attack_yields_a_membership_attack(defence):
    result = membership_from_reconstruction(defence=defence, random_state=0)
    assert result.success > 0.9
    assert result.baseline < 0.08
    said = result.details
    assert said["membership inferred correctly"] == pytest.approx(said["bits reconstructed correctly"], abs=0.05)


def test_the_better_reconstruction_is_the_better_membership_attack():
    people = Secrets.simulate(128, random_state=1)
    weak, strong = (
        membership_from_reconstruction(people, method=method, random_state=0)
        for method in ("one at a time", "least squares")
    )
    assert strong.success == 1
    assert strong.baseline == 0
    assert weak.details["membership inferred correctly"] < 1


@pytest.mark.parametrize("defence", ["nothing", "easy"])
def test_a_membership_attack_yields_a_reconstruction_attack(defence):
    result = reconstruction_from_membership(defence=defence, random_state=0)
    said = result.details
    assert said["true positive rate"] > 0.98
    assert said["bit right"] == pytest.approx(said["true positive rate"], abs=0.02)
    assert said["bit wrong"] <= said["false positive rate"]
    assert result.success > 0.98


def test_fewer_attributes_make_both_attacks_weaker_together():
    study = simulate_study(200, 150, np.random.default_rng(0))
    said = reconstruction_from_membership(study, random_state=0).details
    assert 0.2 < said["true positive rate"] < 0.5
    assert said["bit right"] == pytest.approx(said["true positive rate"], abs=0.06)
    assert said["rejected by both tests"] > 0.4


@pytest.mark.long
def test_the_curator_stops_membership_from_reconstruction():
    result = membership_from_reconstruction(
        Secrets.simulate(64, random_state=0), defence="curator", epsilon="1/10", random_state=0
    )
    assert result.evidence.implied(confidence=SURE).low <= 0.1


@pytest.mark.parametrize("epsilon", ["1/10", 1])
def test_the_curator_stops_reconstruction_from_membership(epsilon):
    study = simulate_study(200, 300, np.random.default_rng(0))
    result = reconstruction_from_membership(study, defence="curator", epsilon=epsilon, random_state=0)
    assert result.evidence.implied(confidence=SURE).low <= float(result.epsilon)
    assert result.success < 0.8


def test_a_secret_that_moves_people_between_groups_is_two_neighbour_steps():
    assert reconstruction_from_membership(
        simulate_study(50, 20, np.random.default_rng(0)), defence="curator", epsilon=1, random_state=0
    ).ceiling > GuessEvidence(1, 2).ceiling(1.9)


def test_a_delta_for_two_neighbour_steps_is_refused():
    two_steps = BitEvidence(Proportion(9, 10), Proportion(9, 10), steps=2)
    with pytest.raises(ValueError, match="depends on epsilon"):
        two_steps.ceiling(1, 1e-6)
    with pytest.raises(ValueError, match="depends on epsilon"):
        two_steps.implied(1e-6)


def test_means_with_far_too_little_noise_are_caught():
    def blur(values, secrets):
        return means_by_secret(values, secrets) + np.random.default_rng(0).laplace(0, 0.01, (2, values.shape[1]))

    result = reconstruction_from_membership(defence=blur, epsilon="1/10", random_state=0)
    assert result.implied.low > 0.1


def test_counts_with_far_too_little_noise_are_caught():
    def oracle_for(bits):
        return lambda subsets: dc.Laplace(1).perturb(subset_oracles.exact_sums(bits)(subsets).astype(np.int64))

    result = membership_from_reconstruction(defence=oracle_for, epsilon="1/10", random_state=0)
    assert result.evidence.implied(confidence=SURE).low > 0.1


def test_private_means_are_close_to_the_means():
    study = simulate_study(100, 5, np.random.default_rng(0))
    near = private_means(study.values, study.secrets, dc.Loss(10_000).epsilon)
    assert near == pytest.approx(means_by_secret(study.values, study.secrets), abs=0.01)


def test_a_non_member_matches_no_group():
    study = simulate_study(100, 400, np.random.default_rng(0))
    scores = group_scores(study.non_members, means_by_secret(study.values, study.secrets), study.rates)
    assert scores.mean() == pytest.approx(0, abs=0.2)
    assert scores.std() == pytest.approx(1, abs=0.15)


def test_both_attacks_report_who_is_exposed():
    for attack in (membership_from_reconstruction, reconstruction_from_membership):
        assert len(attack(random_state=0).exposure.deciles) == 10


def test_other_data_are_refused():
    with pytest.raises(TypeError, match="data must be Secrets"):
        membership_from_reconstruction([1, 0])
    with pytest.raises(TypeError, match="data must be Study"):
        reconstruction_from_membership([1, 0])
    with pytest.raises(ValueError, match=r"without and with the secret. must return an array of numbers, 2 by 2,000"):
        reconstruction_from_membership(defence=lambda values, secrets: [1, 2])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"secrets": [0]}, "one entry, per participant"),
        ({"rates": [0.5]}, "the same attributes"),
        ({"values": [[0, 3], [1, 1]]}, "zeros and ones"),
        ({"secrets": [1, 1]}, "both 0 and 1"),
        ({"rates": [0.0, 0.5]}, "between 0 and 1"),
    ],
)
def test_invalid_studies_are_refused(change, words):
    good = {"values": [[0, 1], [1, 1]], "secrets": [0, 1], "non_members": [[0, 0]], "rates": [0.5, 0.5]}
    assert Study(**good).values.shape == (2, 2)
    with pytest.raises(ValueError, match=words):
        Study(**(good | change))
