"""Membership by an oracle that was trained on shadow models."""

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

from discreet import attacks
from discreet.attacks.data.labelled_data import simulate_purchases
from discreet.attacks.models.shadow import attack_features

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
SURE = 1 - 1e-9
PEOPLE = simulate_purchases(4, people=800)
FEW = {"shadows": 2, "targets": 2, "random_state": 6}


@pytest.mark.long(but=["logistic"])
@pytest.mark.parametrize("attacker", ["network", "forest", "logistic"])
def test_an_oracle_learns_who_was_in_a_forest(attacker):
    result = attacks.shadow(PEOPLE, attacker=attacker, **FEW)
    assert result.success > 0.85
    assert result.implied.low > 0.5


@pytest.mark.long
def test_a_network_learns_who_was_in_a_network():
    assert attacks.shadow(PEOPLE, attacker="network", target="network", **FEW).success > 0.7


@pytest.mark.long
def test_labels_alone_disclose_that_the_model_is_more_often_right_about_members():
    result = attacks.shadow(PEOPLE, defence="easy", **FEW)
    gap = result.details["accuracy on members"] - result.details["accuracy on non-members"]
    assert result.success >= 0.5 + gap / 2 - 0.04
    assert result.success < 0.75
    assert result.implied.low > 0.3


@pytest.mark.long
@pytest.mark.parametrize("epsilon", ["1/10", 1])
def test_a_private_model_stays_within_its_claim(epsilon):
    result = attacks.shadow(PEOPLE, defence="curator", epsilon=epsilon, shadows=3, targets=4, random_state=6)
    assert result.evidence.implied(result.delta, SURE).low <= float(result.epsilon)
    assert 0.4 < result.success < result.ceiling + 0.1  # six deviations of the rank of 800 members


@pytest.mark.long
def test_boosting_is_attacked_with_and_without_privacy():
    rng = np.random.default_rng(8)
    X = rng.random((400, 12))
    people = attacks.LabelledData(X, (X.sum(axis=1) + rng.normal(0, 1, 400) > 6).astype(int))
    exact = attacks.shadow(people, target="boosting", attacker="logistic", **FEW)
    private = attacks.shadow(people, target="boosting", attacker="logistic", defence="curator", epsilon=1, **FEW)
    assert exact.success > 0.6
    assert private.evidence.implied(private.delta, SURE).low <= 1
    names = exact.details["model"], private.details["model"]
    assert names == ("additive model by boosting", "private additive model by boosting")


def test_boosting_of_ten_classes_is_refused():
    with pytest.raises(ValueError, match="10 classes"):
        attacks.shadow(PEOPLE, target="boosting", **FEW)


def test_a_false_privacy_claim_is_refuted():
    from sklearn.ensemble import RandomForestClassifier

    result = attacks.shadow(
        PEOPLE,
        defence=lambda members: RandomForestClassifier(20, random_state=0).fit(members.X, members.y),
        epsilon="1/10",
        **FEW,
    )
    assert result.implied.low > 0.1


@pytest.mark.long
def test_the_calibrated_attack_finds_more_members_at_a_low_false_positive_rate():
    plain = attacks.shadow(PEOPLE, **FEW).details["TPR at 1 % FPR"]
    calibrated = attacks.likelihood_ratio(PEOPLE, **FEW).details["TPR at 1 % FPR"]
    assert calibrated > 3 * plain


@pytest.mark.long
def test_everybody_is_in_a_decile_of_rarity():
    result = attacks.shadow(PEOPLE, **FEW)
    assert sum(share.trials for share in result.exposure.deciles) == result.evidence.members.size


def test_attack_features_are_the_true_class_and_the_confidences():
    told = np.array([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2]])
    assert attack_features(told, np.array([0, 2])).tolist() == [
        [0.5, 0.5, 0.3, 0.2, 1, 0, 0],
        [0.2, 0.5, 0.3, 0.2, 0, 0, 1],
    ]


def test_an_unknown_attacker_is_refused():
    with pytest.raises(ValueError, match="attacker must be one of 'network', 'forest', 'logistic', not 'oracle'"):
        attacks.shadow(PEOPLE, attacker="oracle")


def test_too_few_people_are_refused():
    with pytest.raises(ValueError, match="at least 80"):
        attacks.shadow(simulate_purchases(0, people=50))


@pytest.mark.long
def test_people_who_checked_in_are_distinguished_from_non_members():
    if not (DATA / "location30_mia.parquet").exists():
        pytest.skip("needs location30_mia in DISCREET_DATA")
    people = attacks.attack_named("shadow").load(DATA).subset(np.arange(800))
    assert attacks.shadow(people, shadows=2, targets=1, random_state=0).success > 0.9
