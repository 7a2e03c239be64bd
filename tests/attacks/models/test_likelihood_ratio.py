"""Membership by the odds of a model's confidence: it works where nothing is done, and not against a private model."""

import os
from pathlib import Path

import numpy as np
import pytest
from readable import flaws

pytest.importorskip("sklearn")

from discreet import attacks
from discreet.attacks.data.labelled_data import LabelledData, rarity_within_class, read_locations, simulate_purchases
from discreet.attacks.models.adapters import reduce_confidences
from discreet.attacks.models.difficulty import fit_levels, membership_log_odds, stabilise_variance, sum_confidences
from discreet.attacks.models.membership_inference import draw_members
from discreet.attacks.models.target_models import fit_non_private
from discreet.attacks.scores import roc_curve
from discreet.learn import LogisticRegression
from tools.pictures.attack_figures import roc_figure

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
SURE = 1 - 1e-9
PEOPLE = simulate_purchases(3, people=500)
FEW = {"shadows": 3, "targets": 2, "random_state": 5}


def holds(result):
    """Tell whether what was seen is possible for what was promised, but for one chance in a billion."""
    return result.evidence.implied(result.delta, SURE).low <= float(result.epsilon)


@pytest.mark.long
def test_members_of_an_overfitted_forest_are_found_with_three_shadows():
    result = attacks.likelihood_ratio(PEOPLE, **FEW)
    assert result.success > 0.97
    assert result.details["TPR at 1 % FPR"] > 0.7
    assert result.implied.low > 2


@pytest.mark.long
def test_everything_but_privacy_noise_follows_from_the_random_state():
    small = simulate_purchases(3, people=100)
    one, two, other = (attacks.likelihood_ratio(small, shadows=2, targets=1, random_state=seed) for seed in (7, 7, 8))
    assert (one.evidence.members == two.evidence.members).all()
    assert one.success != other.success


@pytest.mark.long
def test_shadows_of_other_people_do_as_well():
    assert attacks.likelihood_ratio(simulate_purchases(3, people=600), shadowing="offline", **FEW).success > 0.95


@pytest.mark.long
@pytest.mark.parametrize(("fix", "least"), [("rounded", 0.95), ("top", 0.95), ("label", 0.6)])
def test_easy_fixes_still_leak(fix, least):
    assert attacks.likelihood_ratio(PEOPLE, defence="easy", fix=fix, **FEW).success > least


@pytest.mark.long(but=["logistic"])
@pytest.mark.parametrize("target", ["network", "logistic"])
def test_other_models_leak_as_well(target):
    result = attacks.likelihood_ratio(PEOPLE, target=target, **FEW)
    assert result.success > 0.7
    assert result.implied.low > 0.5


@pytest.mark.long
def test_people_far_from_their_class_are_most_exposed():
    shares = [share.value for share in attacks.likelihood_ratio(PEOPLE, target="network", **FEW).exposure.deciles]
    assert shares[-1] > shares[0] + 0.3


@pytest.mark.long
@pytest.mark.parametrize("epsilon", ["1/10", 1, 10])
def test_a_private_model_stays_within_its_claim(epsilon):
    result = attacks.likelihood_ratio(PEOPLE, defence="curator", epsilon=epsilon, shadows=4, targets=4, random_state=5)
    assert holds(result)
    assert result.success < result.ceiling + 0.08  # six deviations of the rank of 1,000 members
    assert result.delta == 1e-5


@pytest.mark.long
def test_at_a_small_epsilon_there_is_nothing_to_infer():
    result = attacks.likelihood_ratio(
        PEOPLE, defence="curator", epsilon="1/10", delta=0, shadows=4, targets=4, random_state=5
    )
    assert abs(result.success - 0.5) < 0.025 + 0.08  # what epsilon allows, and six deviations
    assert result.delta == 0


@pytest.mark.long
def test_a_false_privacy_claim_is_refuted():
    def noise_that_is_too_small(members):
        return LogisticRegression(epsilon=1000, bounds=(0, 1), classes=range(10)).fit(members.X, members.y)

    result = attacks.likelihood_ratio(
        PEOPLE, defence=noise_that_is_too_small, epsilon="1/10", shadows=4, targets=4, random_state=5
    )
    assert result.implied.low > 0.1
    assert result.success > result.ceiling + 0.08  # six deviations of the rank of 1,000 members


@pytest.mark.long
def test_a_custom_model_can_be_attacked():
    result = attacks.likelihood_ratio(PEOPLE, defence=lambda members: fit_non_private("forest", members, 0, 2), **FEW)
    assert result.defence == "own"
    assert 0.5 < result.success < 0.9


def test_a_defence_that_returns_no_model_is_refused():
    with pytest.raises(TypeError, match=r"fitted classifier with predict_proba and classes_.* not list"):
        attacks.likelihood_ratio(PEOPLE, defence=lambda members: [], **FEW)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"target": "tree"}, "target must be one of 'forest', 'network', 'logistic', 'pairs', 'boosting', not 'tree'"),
        ({"fix": "none"}, "fix must be one of 'label', 'rounded', 'top', not 'none'"),
        ({"shadowing": "none"}, "shadowing must be one of 'online', 'offline'"),
        ({"shadows": 1}, "shadows"),
        ({"targets": 0}, "targets"),
        ({"delta": -1}, "delta"),
    ],
)
def test_wrong_settings_are_refused(wrong, says):
    with pytest.raises(ValueError, match=says):
        attacks.likelihood_ratio(PEOPLE, **FEW | wrong)


def test_wrong_people_are_refused():
    with pytest.raises(ValueError, match="at least 80 people, not 60"):
        attacks.likelihood_ratio(simulate_purchases(0, people=60))
    with pytest.raises(TypeError, match=r"LabelledData.* not ndarray"):
        attacks.likelihood_ratio(np.eye(100))


@pytest.mark.parametrize(
    ("X", "y", "says"),
    [
        (np.eye(3), [0, 1], "one row per person"),
        (np.full((2, 1), np.nan), [0, 1], "finite"),
        (np.eye(2), [-1, 0], "non-negative integers"),
        (np.eye(2), [0.5, 1], "non-negative integers"),
        (np.eye(2), ["a", None], "without gaps"),
        (np.eye(2), [0, [1]], "y must be class labels"),
        ([[1, "a"], [0, "b"]], [0, 1], "X, column 1, must be an array of numbers"),
        ({"job": ["a", "b"]}, [0, 1], "X, column 'job', must be an array of numbers: encode text as integers"),
        ([[1, 2], [3]], [0, 1], "X must be an array of numbers"),
        (None, [0, 1], "one row per person"),
        ({}, [0, 1], "one row per person"),
        ([[0.0], [7.0]], [0, 1], r"column 0 of X has values outside its bounds, 0 to 1: give bounds=\(low, high\)"),
        ({"age": [30, 40]}, [0, 1], "column 'age' of X has values outside its bounds"),
    ],
)
def test_wrong_records_are_refused(X, y, says):
    with pytest.raises(ValueError, match=says):
        LabelledData(X, y)


@pytest.mark.parametrize("bounds", [None, 1, (1, 0), ("low", "high"), ([0, 0, 0], [1, 1, 1])])
def test_invalid_bounds_are_refused(bounds):
    with pytest.raises(ValueError, match=r"bounds=\(low, high\)"):
        LabelledData(np.eye(2), [0, 1], bounds=bounds)


def test_classes_may_be_texts_and_columns_have_names():
    people = LabelledData({"age": [30, 40, 50], "smokes": [True, False, True]}, ["ill", "well", "ill"], bounds=(0, 120))
    assert people.X.tolist() == [[30, 1], [40, 0], [50, 1]]
    some = people.subset(np.array([0, 2]))
    assert (some.y.tolist(), some.classes) == ([0, 0], 2)
    assert (some.names, some.columns) == (("ill", "well"), ("age", "smokes"))


def test_a_data_frame_is_accepted():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [0.3, 0.4], "smokes": [0, 1]}, index=[7, 9])
    people = LabelledData(frame, pandas.Series(["b", "a"], dtype="category"))
    assert (people.columns, people.y.tolist()) == (("age", "smokes"), [1, 0])


class Told:
    """A classifier that says what it is told to."""

    def __init__(self, says, classes=range(10)):
        self.says, self.classes_ = says, np.array(classes)

    def predict_proba(self, X):
        return self.says(X)


def even(X):
    return np.full((len(X), 10), 0.1)


@pytest.mark.parametrize(
    ("model", "kind", "says"),
    [
        (
            Told(lambda X: even(X) * np.nan),
            ValueError,
            "predict_proba of the defence's model must return .* without NaN",
        ),
        (Told(lambda X: even(X) * np.inf), ValueError, "without NaN or infinity"),
        (Told(lambda X: even(X)[:3]), ValueError, r"not an array of shape \(3, 10\)"),
        (Told(lambda X: even(X)[:, 0]), ValueError, "not an array of shape"),
        (Told(lambda X: None), TypeError, "must return an array of numbers"),
        (Told(even, list("abcdefghij")), ValueError, "integers from 0 to 9: fit it to the members' classes"),
        (Told(even, [*range(9), 99]), ValueError, "integers from 0 to 9"),
        (Told(even, [0] * 10), ValueError, "integers from 0 to 9"),
        (Told, TypeError, "not the class Told"),
        (None, TypeError, "not NoneType"),
    ],
)
def test_invalid_output_of_a_model_is_refused(model, kind, says):
    with pytest.raises(kind, match=says):
        attacks.likelihood_ratio(PEOPLE, defence=lambda members: model, **FEW)


def test_people_of_one_class_are_refused():
    with pytest.raises(ValueError, match="at least two classes"):
        attacks.likelihood_ratio(LabelledData(PEOPLE.X, np.zeros(500, int)), **FEW)


@pytest.mark.long
@pytest.mark.parametrize("attack", [attacks.likelihood_ratio, attacks.shadow])
def test_a_delta_that_a_custom_defence_claims_counts(attack):
    def forest(members):
        return fit_non_private("forest", members, 0)

    settings = {"shadows": 2, "targets": 1, "random_state": 0, "defence": forest, "epsilon": 1}
    small = simulate_purchases(0, people=200)
    strict, loose = (attack(small, **settings, **delta) for delta in ({}, {"delta": "1/2"}))
    assert (strict.delta, loose.delta) == (0, 0.5)
    assert loose.implied.low < strict.implied.low
    assert loose.ceiling > strict.ceiling
    with pytest.raises(ValueError, match="delta must be at least 0 and below 1"):
        attack(small, **settings, delta=1)


def test_success_completes_what_share():
    assert attacks.likelihood_ratio(simulate_purchases(0, people=100), shadows=2, targets=1).metric.startswith(
        "of member/non-member pairs"
    )


def test_members_are_drawn_independently():
    # Halves of a fixed size would replace people, for whom twice the epsilon may show.
    sizes = draw_members(1000, 200, np.random.default_rng(0)).sum(axis=1)
    assert 10 < sizes.std() < 22


def test_difficulty_calibration_finds_members_only_among_hard_cases():
    rng = np.random.default_rng(0)
    easy = rng.random(2000) < 0.5
    inside = rng.random((6, 2000)) < 0.5
    usual = np.where(easy, 1.3, 0.4)
    scores = usual + np.where(inside, np.where(easy, 0.0, 0.8), 0.0) + rng.normal(0, 0.1, inside.shape)
    levels = fit_levels(scores[1:], inside[1:])
    given = membership_log_odds(
        levels, *(sum_confidences(scores[1:], which) for which in (inside[1:], ~inside[1:])), scores[0]
    )
    hard = roc_curve(given[inside[0] & ~easy], given[~inside[0] & ~easy])
    simple = roc_curve(given[inside[0] & easy], given[~inside[0] & easy])
    assert hard.auc > 0.999
    assert abs(simple.auc - 0.5) < 0.1


def test_confidence_outside_its_range_is_handled():
    assert np.isfinite(stabilise_variance(np.array([-1e-9, 0, 1, 1 + 1e-9]))).all()


def test_a_label_only_release_leaves_only_the_label():
    told = reduce_confidences(np.array([[0.2, 0.5, 0.3]]), "label")
    assert told.tolist() == [[0.0, 1.0, 0.0]]


@pytest.mark.long
def test_a_class_without_members_is_handled():
    rare = LabelledData(PEOPLE.X, np.where(np.arange(500) == 17, 10, PEOPLE.y))
    assert attacks.likelihood_ratio(rare, **FEW).success > 0.9


def test_rarity_does_not_depend_on_units_of_measurement():
    wide = LabelledData(PEOPLE.X * [1000.0] + 5, PEOPLE.y, bounds=(5, 1005))
    assert np.allclose(rarity_within_class(wide), rarity_within_class(PEOPLE))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"location30_mia\.parquet"):
        read_locations(tmp_path)


@pytest.mark.long
def test_people_who_checked_in_are_found():
    if not (DATA / "location30_mia.parquet").exists():
        pytest.skip("needs location30_mia in DISCREET_DATA")
    people = attacks.attack_named("likelihood_ratio").data.read(DATA)
    assert (people.X.shape, people.classes) == ((5010, 446), 30)
    some = people.subset(np.arange(800))
    assert attacks.likelihood_ratio(some, shadows=2, targets=1, random_state=0).success > 0.97


@pytest.mark.long
def test_curves_of_several_defences_are_drawn_together():
    pytest.importorskip("matplotlib")
    small = simulate_purchases(0, people=100)
    results = [
        attacks.likelihood_ratio(small, shadows=2, targets=1, random_state=0),
        attacks.likelihood_ratio(small, shadows=2, targets=1, defence="curator", epsilon=1, random_state=0),
    ]
    figure = roc_figure(results)
    _, right = figure.axes
    labels = [text.get_text().split(" (")[0] for text in figure.legends[0].get_texts()]
    assert labels == ["no defence", "the curator at epsilon 1", "guessing", "epsilon 1 allows"]
    assert flaws(figure) == []
    assert len(right.get_lines()) == 2
    with pytest.raises(ValueError, match="at least one result"):
        roc_figure([])
