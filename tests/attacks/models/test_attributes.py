"""A missing value by brute force over an oracle of membership."""

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

from discreet import attacks
from discreet.attacks.data.labelled_data import LabelledData, SensitiveAttributeData, read_adults, simulate_findings
from discreet.attacks.models import attributes, target_models
from discreet.attacks.models.adapters import pair_encoder
from discreet.attacks.models.attributes import best_oracle_weight, fit_imputer
from discreet.attacks.models.membership_inference import train_models
from discreet.attacks.models.target_models import fit_non_private

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
SURE = 1 - 1e-9
SOME = simulate_findings(1, people=800)
FEW = {"shadows": 3, "targets": 2, "random_state": 7}


@pytest.fixture(scope="module")
def exact():
    return attacks.attributes(SOME, **FEW)


def test_missing_values_of_members_are_inferred_and_those_of_non_members_are_not(exact):
    assert exact.success > exact.baseline + 0.2
    assert exact.evidence.baseline < exact.baseline
    assert exact.implied.low > 0.4


def test_members_with_unlikely_values_are_found(exact):
    assert exact.exposure.deciles[-1].value > 0.4


@pytest.mark.long
def test_rounded_confidences_leak_hardly_less():
    result = attacks.attributes(SOME, defence="easy", **FEW)
    assert result.success > result.baseline + 0.15


@pytest.mark.long
def test_a_non_private_regression_on_pairs_of_values_leaks_and_a_private_one_does_not():
    exact = attacks.attributes(SOME, target="pairs", **FEW)
    assert exact.success > exact.baseline + 0.1
    assert exact.implied.low > 0.2
    private = attacks.attributes(SOME, target="pairs", defence="curator", epsilon=1, **FEW)
    assert abs(private.success - private.baseline) < 0.2
    assert private.evidence.implied(private.delta, SURE).low <= 1


@pytest.mark.long
def test_the_private_model_uses_pairs_of_values_if_the_non_private_one_does(monkeypatch):
    seen = []
    monkeypatch.setattr(
        attributes,
        "train_models",
        lambda game, *rest: seen.append(target_models._private_kind(game)) or train_models(game, *rest),
    )
    few = simulate_findings(1, people=100)
    for target in ("forest", "pairs", "logistic"):
        attacks.attributes(few, target=target, defence="curator", epsilon=1, shadows=2, targets=1)
    assert seen == ["pairs"] * 4 + ["logistic"] * 2


def test_pairs_of_values_are_derived_from_bounds_alone():
    pairs = pair_encoder(([0, 0, 0], [1, 100, 0.5]), columns=3)
    assert pairs.bin_counts == (2, 5, 5)
    written = pairs.encode(np.array([[1, 100, 0.0], [0, 39, 0.26], [7, -5, 9]]))
    assert written.shape == (3, 12 + 10 + 10 + 25)
    assert (written.sum(axis=1) == 6).all()  # three values and three pairs; what is outside counts as the nearest
    assert written[:, :12].argmax(axis=1).tolist() == [1, 0, 1]
    assert np.flatnonzero(written[1]).tolist() == [0, 3, 9, 12 + 1, 22 + 2, 32 + 1 * 5 + 2]


def test_too_many_pairs_of_values_are_refused():
    with pytest.raises(
        ValueError, match='7,200 features, more than the maximum of 4,000: leave columns out, or use target="lo'
    ):
        pair_encoder((0, 1), columns=60)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", ["1/10", 1])
def test_a_private_model_discloses_no_more_than_imputation(epsilon):
    result = attacks.attributes(SOME, defence="curator", epsilon=epsilon, shadows=3, targets=4, random_state=7)
    assert result.evidence.implied(result.delta, SURE).low <= float(result.epsilon)
    assert abs(result.success - result.baseline) < 0.2


@pytest.mark.long
def test_a_false_privacy_claim_is_refuted():
    result = attacks.attributes(
        SOME, defence=lambda members: fit_non_private("forest", members, seed=0), epsilon="1/10", **FEW
    )
    assert result.implied.low > 0.1
    assert result.success > result.ceiling


def test_a_useless_oracle_is_ignored():
    rng = np.random.default_rng(0)
    before = np.log(np.full((400, 3), 1 / 3))
    assert best_oracle_weight(before, 5 * rng.normal(size=(400, 3)), rng.integers(3, size=400)) == 0
    truth = rng.integers(3, size=400)
    assert best_oracle_weight(before, 5.0 * np.eye(3)[truth], truth) == 1


@pytest.mark.long
def test_imputation_is_not_evaluated_on_its_training_data():
    noise = SensitiveAttributeData(
        LabelledData(np.random.default_rng(0).integers(0, 2, (600, 8)), np.arange(600) % 2), column=0
    )
    unseen = fit_imputer(noise, seed=0).out_of_fold.argmax(axis=1) == noise.sensitive_values
    assert unseen.mean() < 0.63  # six deviations above a coin


@pytest.mark.parametrize(
    ("column", "says"),
    [(9, "index of the 9 columns"), (-1, "column must be"), (0.5, "column"), (8, "at least two")],
)
def test_a_wrong_column_is_refused(column, says):
    people = LabelledData(np.zeros((100, 9)), np.arange(100) % 2)
    with pytest.raises((ValueError, TypeError), match=says):
        SensitiveAttributeData(people, column)


def test_a_column_of_a_table_is_named():
    people = LabelledData({"age": np.linspace(0, 1, 100), "smokes": np.arange(100) % 2}, np.arange(100) % 3)
    assert SensitiveAttributeData(people, "smokes").sensitive_values.tolist() == (np.arange(100) % 2).tolist()
    with pytest.raises(ValueError, match="column 'weight' does not exist in X; its columns are age, smokes"):
        SensitiveAttributeData(people, "weight")
    with pytest.raises(ValueError, match="columns have no names"):
        SensitiveAttributeData(SOME.people, "weight")


@pytest.mark.long
def test_a_value_missing_from_one_half_of_the_people_is_handled():
    X = SOME.people.X.copy()
    X[:, 8] = np.minimum(X[:, 8], 2)
    X[17, 8] = 4
    rare = SensitiveAttributeData(LabelledData(X, SOME.people.y, bounds=(0, 4)), 8)
    assert rare.subset(np.arange(20, 400)).values == 5
    assert attacks.attributes(rare, **FEW).details["candidate values"] == 5


def test_a_secret_that_nearly_everybody_shares_is_refused():
    X = SOME.people.X.copy()
    X[:, 8] = 0
    X[:2, 8] = 1
    with pytest.raises(ValueError, match="nearly everybody has the same value in column 8"):
        attacks.attributes(SensitiveAttributeData(LabelledData(X, SOME.people.y, bounds=(0, 4)), 8), **FEW)


def test_a_secret_with_fractional_values_is_refused():
    with pytest.raises(ValueError, match="non-negative integers"):
        SensitiveAttributeData(LabelledData(np.full((100, 1), 0.5), np.arange(100) % 2), 0)


def test_wrong_data_are_refused():
    with pytest.raises(TypeError, match=r"SensitiveAttributeData.* not LabelledData"):
        attacks.attributes(SOME.people)
    with pytest.raises(TypeError, match="Labelled"):
        SensitiveAttributeData(np.eye(3), 0)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"adult\.parquet"):
        read_adults(tmp_path)


@pytest.mark.long
def test_occupations_are_found_beyond_imputation():
    if not (DATA / "adult.parquet").exists():
        pytest.skip("needs adult in DISCREET_DATA")
    people = attacks.attack_named("attributes").data.read(DATA).subset(np.arange(2000))
    result = attacks.attributes(people, targets=2, shadows=3, random_state=0)
    assert result.details["candidate values"] == 14
    assert result.success > result.baseline + 0.05
