"""Pictures of local privacy show what was measured, and what was measured is right."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from readable import flaws

import discreet as dc
from discreet.local.error_comparison import compare, curator_error, survey_error
from discreet.local.mean_estimation.noisy_mean import NoisyMean

pytest.importorskip("matplotlib")

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.pictures import local as tool

PLACES = np.arange(4000) % 16


@pytest.mark.long
def test_the_error_of_a_survey_is_what_theory_says():
    people, size, odds = 2000, 16, math.e
    truth, other = odds / (odds + size - 1), 1 / (odds + size - 1)
    variance = (truth * (1 - truth) + (size - 1) * other * (1 - other)) / size / people
    found = survey_error(dc.local.GRR(size, epsilon=1), PLACES[:people], times=1000)
    # 16,000 errors, all but independent: five percent are eight deviations.
    assert found == pytest.approx(math.sqrt(variance) / (truth - other), rel=0.05)


def test_the_error_of_a_curator_is_that_of_noise_on_two_counts():
    noise = dc.laplace_for(dc.Sensitivity(groups=2, size=1), "1/2").perturb(np.zeros(200_000, np.int64))
    assert curator_error(1000, "1/2") == pytest.approx(noise.std() / 1000, rel=0.03)
    assert curator_error(2000, "1/2") == curator_error(1000, "1/2") / 2


@pytest.mark.long
def test_one_call_draws_every_protocol_and_the_curator(tmp_path):
    axes = compare(PLACES, 16, epsilons=["1/2", 4], path=tmp_path / "compared.svg")
    lines = {line.get_label(): line.get_ydata() for line in axes.lines}
    assert list(lines) == ["GRR", "OUE", "SubsetSelection", "Hadamard", "a curator"]
    assert lines["a curator"].tolist() == [curator_error(4000, "1/2"), curator_error(4000, 4)]
    for name, errors in lines.items():
        assert errors[0] > errors[1] > 0
        assert name == "a curator" or min(errors / lines["a curator"]) > 3
    assert axes.get_title(loc="left") == "4,000 people, 16 values"
    assert flaws(axes.figure) == []
    assert "<svg" in (tmp_path / "compared.svg").read_text()


def test_one_can_choose_what_is_compared_and_where_it_is_drawn():
    values = ["red", "green", "green"] * 100
    first = compare(values, ["red", "green"], [1], protocols=[dc.local.GRR])
    assert [line.get_label() for line in first.lines] == ["GRR", "a curator"]
    assert compare(values, ["red", "green"], [2], protocols=[], axes=first) is first


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(TypeError, match="epsilons must be a list"):
        compare(PLACES, 16, epsilons=[])
    with pytest.raises(ValueError, match="values must not be empty"):
        compare([], 16, epsilons=[1])
    with pytest.raises(ValueError, match="outside the domain"):
        compare([16], 16, epsilons=[1])
    with pytest.raises(TypeError, match="oracle must be a frequency oracle"):
        survey_error(NoisyMean(0, 1, 1), [0.5])
    with pytest.raises(ValueError, match="times"):
        survey_error(dc.local.GRR(16, 1), PLACES, times=0)
    with pytest.raises(ValueError, match="people"):
        curator_error(0, 1)


@pytest.mark.long
def test_the_plot_of_coin_flips_shows_reports_and_estimates():
    said, found = tool.coins((100, 1000, 10_000))
    figure = tool.coins_figure(said, found)
    left, right = figure.axes
    assert left.lines[1].get_ydata().tolist() == said
    assert said == pytest.approx(0.25 + np.linspace(0, 1, 11) / 2, abs=0.1)  # six deviations and more
    assert right.containers[0].lines[0].get_ydata().tolist() == [share for share, _ in found.values()]
    assert "10,000 answers" in figure.get_suptitle()
    assert flaws(figure) == []


@pytest.mark.long
def test_the_picture_of_salaries_has_a_line_for_each_scheme_and_names_the_best():
    found = tool.margins_of_salaries((100, 1000, 10_000), (1, 4))
    figure = tool.salaries_figure(found)
    lines = {line.get_label(): line.get_ydata().tolist() for line in figure.axes[1].lines}
    assert lines == {name: list(by_epsilon.values()) for name, (_, by_epsilon) in found.items()}
    best = min(found, key=lambda name: found[name][1][4])
    assert f"margin of {best}, the best" in figure.get_suptitle().replace("\n", " ")
    assert flaws(figure) == []


@pytest.mark.long
def test_the_plot_of_trust_states_the_ratio_of_the_errors():
    home, central = tool.errors_by_people((100, 1000))
    figure = tool.trust_figure(home, central, people=1000, epsilons=(1, 4))
    _, right = figure.axes
    assert [line.get_ydata().tolist() for line in right.lines] == [list(home.values()), list(central.values())]
    assert f"{home[1000] / central[1000]:,.0f} times" in figure.get_suptitle()
    assert flaws(figure) == []


def test_simulated_salaries_keep_to_the_bounds():
    paid = tool.salaries(10_000)
    assert paid.min() >= 0
    assert paid.max() <= tool.HIGHEST
    assert 50_000 < paid.mean() < 70_000
