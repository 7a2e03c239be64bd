"""Private selection has exactly the probabilities of the exponential mechanism, and is charged first."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from discreet.kernel.errors import FAILED, Failed, Refused
from discreet.kernel.loss import Budget, Loss
from discreet.learn.model_selection.private_selection import count_correct, probabilities, select
from discreet.ledger_sqlite import memory_ledger

X = np.arange(40.0).reshape(-1, 1)
Y = X[:, 0] % 2


def always(answer):
    return SimpleNamespace(predict=lambda row: [answer] * len(row), answer=answer)


def parity():
    return SimpleNamespace(predict=lambda row: row[:, 0] % 2, answer="parity")


def test_probabilities_are_proportional_to_exp_of_epsilon_times_right_answers_over_two():
    n, accuracies, epsilon = 1000, [0.90, 0.91, 0.80], 0.3
    weights = [math.exp(epsilon * n * accuracy / 2) for accuracy in accuracies]
    expected = [weight / sum(weights) for weight in weights]
    assert probabilities([900, 910, 800], epsilon=epsilon) == pytest.approx(expected)
    assert probabilities(accuracies, epsilon=epsilon, sensitivity=Fraction(1, n)) == pytest.approx(expected)


def test_one_row_changes_no_probability_by_more_than_epsilon():
    here, there = (probabilities(counts, epsilon=0.5) for counts in ([50, 60, 55], [51, 59, 55]))
    assert max(abs(math.log(p / q)) for p, q in zip(here, there, strict=True)) <= 0.5


def test_selections_have_their_probabilities():
    hits = sum(select("ab", [0, 2], epsilon=1).candidate == "b" for _ in range(2000))
    chance = probabilities([0, 2], epsilon=1)[1]
    assert abs(hits - 2000 * chance) < 6.5 * math.sqrt(2000 * chance * (1 - chance))  # fails once in 10^10


@pytest.mark.parametrize(
    "given",
    [
        {"utilities": [20, 40, 20]},
        {"utilities": np.array([20, 40, 20])},
        {"utilities": lambda model: 40 if model.answer == "parity" else 20},
        {"X": X, "y": Y},
        {"X": X, "y": Y, "unit": np.arange(40)},
    ],
)
def test_the_better_model_is_chosen_if_epsilon_is_large(given):
    choice = select([always(0), parity(), always(1)], epsilon=20, **given)
    assert choice.index == 1  # the others have a probability of e^-200
    assert choice.candidate.answer == "parity"
    assert choice.loss == Loss(20, 50)


def test_right_answers_are_counted_by_rows_or_by_units():
    unit = ["a"] * 37 + ["b", "c", "d"]
    assert count_correct(parity(), X, Y) == 40
    assert count_correct(always(1), X, Y) == 20
    assert count_correct(always(0), X, np.array([0] * 37 + [1] * 3), unit) == 1


def test_one_unit_moves_the_sum_of_shares_by_one_at_most():
    generator = np.random.default_rng(3)
    unit, truth = generator.integers(0, 5, 40), generator.integers(0, 2, 40)
    whole = count_correct(always(1), X, truth, unit)
    for left_out in range(5):
        kept = unit != left_out
        assert 0 <= whole - count_correct(always(1), X[kept], truth[kept], unit[kept]) <= 1


def test_a_model_that_fails_is_not_right():
    def fail(row):
        raise ValueError("it is Ana's")

    assert count_correct(SimpleNamespace(predict=fail), X, Y) == 0


def test_a_selection_is_charged_before_anything_is_evaluated():
    ledger = memory_ledger(name="models", budget=Budget(1))
    assert select("ab", [0, 5000], epsilon=1, ledger=ledger).candidate == "b"
    (event,) = ledger.events()
    assert (event.loss, event.state, event.question) == (Loss(1, "1/8"), "released", "select")

    def never(candidate):
        raise AssertionError("it was not paid for")

    with pytest.raises(Refused):
        select("ab", never, epsilon=1, ledger=ledger)


def test_a_failure_while_evaluating_discloses_nothing():
    def fail(candidate):
        raise ValueError("Ana's salary is 10")

    with pytest.raises(Failed) as caught:
        select("ab", fail, epsilon=1)
    assert "Ana" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"utilities": [1]}, "utilities"),
        ({}, "utilities"),
        ({"utilities": [1, 2], "X": X}, "utilities"),
        ({"X": X}, "y"),
        ({"X": X, "y": Y[:3]}, "inconsistent"),
        ({"X": X, "y": Y, "sensitivity": "1/2"}, "sensitivity"),
        ({"utilities": [1, 2], "sensitivity": 0}, "sensitivity"),
        ({"utilities": [1, 2], "epsilon": 0}, "epsilon"),
    ],
)
def test_wrong_arguments_are_refused(given, match):
    with pytest.raises(ValueError, match=match):
        select("ab", **({"epsilon": 1} | given))


def test_an_empty_list_of_candidates_is_refused():
    with pytest.raises(ValueError, match="candidates"):
        select([], [], epsilon=1)


def test_a_non_numeric_utility_fails_like_every_failure_after_the_charge():
    ledger = memory_ledger(name="d", budget=Budget(2))
    for utility in (float("nan"), "many"):
        with pytest.raises(Failed) as failed:
            select(["a", "b"], lambda _, utility=utility: utility, epsilon="1/2", ledger=ledger)
        assert (str(failed.value), failed.value.__context__) == (FAILED, None)
    assert ledger.spent().epsilon == 1


def test_the_ledger_of_a_policy_requires_units():
    ledger = memory_ledger(name="d", budget=Budget(1), unit_declaration="each person")
    zero = SimpleNamespace(predict=lambda X: np.zeros(len(X)))
    with pytest.raises(ValueError, match="pass the unit"):
        select([zero], X=np.zeros((4, 1)), y=np.zeros(4), epsilon=1, ledger=ledger)
    assert not ledger.events()
