import numpy as np
import pytest
from readable import flaws

from discreet import attacks
from discreet.attacks.queries.averaging import average_answers
from discreet.attacks.queries.target_queries import TargetQuery

SURE = 1 - 1e-9


@pytest.mark.long
def test_fresh_noise_is_averaged_away():
    result = attacks.averaging(defence="easy", random_state=0)
    assert result.details["inferred after one answer"] < 0.6
    assert result.details["distinct answers"] == 10_000
    assert result.success == 1
    assert 0.9 < result.details["inferred among all targets"] < 1


def test_non_private_answers_need_no_second_query():
    result = attacks.averaging(random_state=0)
    assert result.details["inferred after one answer"] == result.success == 1
    assert (result.details["answers"], result.details["distinct answers"]) == (20, 1)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", ["1/10", 1])
def test_the_curator_returns_one_answer_to_repeated_queries(epsilon):
    result = attacks.averaging(defence="curator", epsilon=epsilon, random_state=0)
    assert result.details["distinct answers"] == 1
    assert result.success <= result.ceiling + 0.16
    assert result.evidence.implied(confidence=SURE).low <= result.epsilon


def test_too_little_noise_is_caught_in_a_custom_defence(little_noise):
    result = attacks.averaging(
        defence=little_noise(1),
        epsilon="1/10",
        random_state=0,
        targets=40,
        repeats=100,
    )
    assert result.implied.low > 0.1


@pytest.mark.long
def test_more_answers_find_more():
    few, many = (attacks.averaging(defence="easy", random_state=0, repeats=n).success for n in (4, 4000))
    assert few < 0.7
    assert many > 0.97


def test_the_means_are_those_of_the_answers():
    answers = iter([np.array([1.0, 0.0]), np.array([2.0, 0.0]), np.array([6.0, 3.0])])
    steps, different = average_answers(lambda question: next(answers), TargetQuery("COUNT(*)", "{target}"), 3)
    assert {number: mean.tolist() for number, mean in steps.items()} == {1: [1, 0], 2: [1.5, 0], 3: [3, 1]}
    assert different == 3


def test_no_repeats_and_no_noise_are_refused():
    with pytest.raises(ValueError, match="repeats"):
        attacks.averaging(repeats=0)
    with pytest.raises(ValueError, match="width"):
        attacks.averaging(width=0)


@pytest.mark.long
def test_the_plot_shows_success_by_number_of_answers():
    pytest.importorskip("matplotlib")
    figure = attacks.averaging(defence="easy", random_state=0, repeats=64).figure()
    assert figure.axes[0].get_xlabel() == "answers averaged"
    assert list(figure.axes[0].get_lines()[0].get_xdata()) == [1, 2, 4, 8, 16, 32, 64]
    assert flaws(figure) == []
