"""The power of the membership test on d means of n people, and where noise ends it."""

import pytest
from readable import flaws

from discreet.attacks.aggregates.membership import membership_power
from discreet.attacks.data.panel import simulate_answers
from tools.pictures.attack_figures import membership_power_figure


def test_power_rises_with_d_and_falls_with_n():
    assert membership_power(30, 100, random_state=0) < membership_power(300, 100, random_state=0) - 0.1
    assert membership_power(300, 100, random_state=0) < membership_power(300, 20, random_state=0) - 0.1


@pytest.mark.parametrize(("d", "n"), [(1000, 50), (2000, 100)])
def test_power_falls_where_noise_exceeds_the_square_root_of_d_over_n(d, n):
    little, equal, much = (membership_power(d, n, noise=each, plays=20, random_state=1) for each in (0.1, 1, 10))
    assert little > 0.95
    assert 0.55 < equal < 0.72
    assert much < 0.57


def test_answers_are_yes_or_no():
    assert set(simulate_answers(20, 5, random_state=0).values.ravel()) == {0, 1}


def test_the_picture_has_a_line_for_each_size():
    pytest.importorskip("matplotlib")
    figure = membership_power_figure(d=(10, 100), n=(20, 40), noise=(0.1, 10), random_state=0)
    left, right = figure.axes
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["n = 20", "n = 40", "guessing"]
    assert [len(axes.lines) for axes in (left, right)] == [5, 4]
    assert flaws(figure) == []
