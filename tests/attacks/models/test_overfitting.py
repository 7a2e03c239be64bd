"""Overfitting is the enemy of both: tame models leak less than wild ones."""

import pytest
from readable import flaws

pytest.importorskip("sklearn")

from discreet.attacks.data.labelled_data import simulate_purchases
from discreet.attacks.models.overfitting import OverfittingPoint, OverfittingStudy, overfitting

PEOPLE = simulate_purchases(2, people=400)


@pytest.mark.long
def test_what_leaks_grows_with_the_gap():
    seen = overfitting(
        PEOPLE,
        strengths={"forest": (2, 5, 30), "network": (10, 0.0001)},
        epsilons=[1],
        random_state=3,
        shadows=2,
        targets=1,
    )
    assert seen.correlation > 0.6
    tame, middle, wild, *_, private = seen.points
    assert tame.auc < middle.auc < wild.auc
    assert private.kind == "private"
    assert private.auc < wild.auc


def test_points_are_plotted_and_reported():
    pytest.importorskip("matplotlib")
    seen = OverfittingStudy(
        (OverfittingPoint("forest", 2, 0.7, 0.6, 0.6), OverfittingPoint("private", 1, 0.5, 0.5, 0.5))
    )
    figure = seen.figure()
    assert [line.get_ydata().tolist() for line in figure.axes[0].lines[:2]] == [[0.6], [0.5]]
    assert f"{seen.correlation:.2f} over 2 models" in figure.get_suptitle().replace("\n", " ")
    assert flaws(figure) == []
    assert "forest             2     0.70         0.60   0.10   0.60" in str(seen)


def test_an_unknown_model_is_refused():
    with pytest.raises(ValueError, match="'tree' is not one of forest, network, logistic, pairs"):
        overfitting(PEOPLE, strengths={"tree": (1,)}, epsilons=[])


def test_a_non_numeric_strength_is_refused():
    with pytest.raises(ValueError, match="strengths of forest must be a number"):
        overfitting(PEOPLE, strengths={"forest": ("deep",)}, epsilons=[])
