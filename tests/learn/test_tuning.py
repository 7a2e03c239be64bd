"""The best of a random number of private trials: its exact law on two neighbours, against what is claimed."""

import math
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from discreet import privacy
from discreet.kernel.errors import Failed, Refused
from discreet.kernel.loss import Budget, Loss
from discreet.learn.model_selection.evaluation import Score
from discreet.learn.model_selection.hyperparameter_tuning import tune
from discreet.learn.model_selection.private_selection import (
    TrialDistribution,
    Trials,
    epsilon_per_trial,
    renyi_bound,
    rho_per_trial,
    tuned_epsilon,
    zcdp_tuned_epsilon,
)
from discreet.ledger_sqlite import memory_ledger
from discreet.privacy import hockey_stick, max_divergence, renyi

E0 = Fraction("0.693147180560")  # ln 2, rounded up: what the trials of these tests lose
LAWS = pytest.mark.parametrize("law", list(TrialDistribution))


def weights(trials):
    """The law of the number of trials, as exact fractions."""
    raw = {k: (1 - trials.gamma) ** k / (1 if trials.eta else k) for k in range(1, trials.max_trials + 1)}
    total = sum(raw.values())
    return {k: weight / total for k, weight in raw.items()}


def best_of(law, trial):
    """The exact law of the best outcome, of outcomes in ascending order, if a number of trials has this law."""
    below, out = 0, {}
    for outcome, chance in trial.items():
        reached = below + chance
        out[outcome] = sum(p * (reached**k - below**k) for k, p in law.items())
        below = reached
    return out


def neighbours():
    """Pairs of laws of one trial on neighbours, three outcomes each, which lose at most ln 2."""
    for a, b, x, y in product([1, 2, 8, 40, 100], [1, 4, 30, 90], [1, 2, -1], [1, 2, -1]):
        p = [Fraction(a, 240), Fraction(b, 240)]
        q = [chance * factor if factor > 0 else chance / 2 for chance, factor in zip(p, (x, y), strict=True)]
        p, q = [*p, 1 - sum(p)], [*q, 1 - sum(q)]
        if all(chance > 0 for chance in (*p, *q)) and max(max(s / t, t / s) for s, t in zip(p, q, strict=True)) <= 2:
            yield dict(enumerate(p)), dict(enumerate(q))


@pytest.mark.long(only=[f"{law}-{kind}" for law in ("1/5-60", "1/1000-30") for kind in ("geometric", "logarithmic")])
@LAWS
@pytest.mark.parametrize(("gamma", "most"), [("1/5", 60), ("1/1000", 30), ("1/2", 3), ("1/2", 1)])
def test_the_best_of_a_random_number_stays_within_the_claim(law, gamma, most):
    trials = Trials(gamma, law, most)
    claim, counts = tuned_epsilon(E0, trials), weights(trials)
    worst = max(max_divergence(best_of(counts, p), best_of(counts, q)) for p, q in neighbours())
    assert float(E0) * 0.999 < worst <= claim


@pytest.mark.long
@LAWS
def test_the_claim_is_nearly_attained(law):
    """Of an outcome that is twice as likely here, where better ones are half as likely."""
    trials = Trials("1/400", law, 8000)
    raw = {k: (1 - 1 / 400) ** k / (1 if trials.eta else k) for k in range(1, trials.max_trials + 1)}
    counts = {k: weight / math.fsum(raw.values()) for k, weight in raw.items()}
    p, q = {0: 0.9498, 1: 0.0002, 2: 0.05}, {0: 0.8999, 1: 0.0001, 2: 0.1}
    found = math.log(best_of(counts, p)[1] / best_of(counts, q)[1])
    claim = float(tuned_epsilon(E0, trials))
    assert 0.95 * claim < found <= claim


@pytest.mark.parametrize("k", [4, 10])
def test_a_fixed_number_of_trials_costs_more_than_any_such_claim(k):
    p = {0: Fraction(2, 5), 1: Fraction(3, 5)}
    q = {0: Fraction(1, 5), 1: Fraction(4, 5)}
    exact = max_divergence(best_of({k: Fraction(1)}, p), best_of({k: Fraction(1)}, q))
    assert exact == pytest.approx(k * math.log(2))  # of the outcome that all trials failed
    assert exact > tuned_epsilon(E0, Trials("1/10", TrialDistribution.GEOMETRIC))
    assert exact > E0  # what one would naively claim for releasing one of them


def test_a_limit_is_free_if_numbers_beyond_it_are_drawn_again_and_not_if_one_stops_there():
    trials = Trials("1/1000000", TrialDistribution.GEOMETRIC, 30)
    p, q = {0: Fraction(4, 5), 1: Fraction(1, 5)}, {0: Fraction(3, 5), 1: Fraction(2, 5)}
    again = weights(trials)
    assert max_divergence(best_of(again, p), best_of(again, q)) <= tuned_epsilon(E0, trials)
    stopped = {k: trials.gamma * (1 - trials.gamma) ** (k - 1) for k in range(1, 30)}
    stopped[30] = 1 - sum(stopped.values())
    assert max_divergence(best_of(stopped, p), best_of(stopped, q)) > 2 * tuned_epsilon(E0, trials)


@pytest.mark.long(but=["1/5-geometric"])
@LAWS
@pytest.mark.parametrize("gamma", ["1/5", "1/20"])
def test_the_best_of_zcdp_trials_stays_within_the_claim(law, gamma):
    trials, rho, delta = Trials(gamma, law, 60), E0 * E0 / 2, Fraction(1, 1000)
    epsilon, counts = zcdp_tuned_epsilon(rho, delta, trials), weights(trials)
    for p, q in list(neighbours())[::5]:
        first, second = best_of(counts, p), best_of(counts, q)
        assert hockey_stick(first, second, epsilon) <= delta
        for a, b in product((Fraction(3, 2), 4, 30), (1, 2, 5)):
            assert renyi(first, second, a) <= renyi_bound(Fraction(a), Fraction(b), rho, trials)


class Seeded:
    """Bytes that are the same in every run."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)

    def bytes(self, count):
        return bytearray(self.generator.bytes(count))


@pytest.mark.long
@LAWS
def test_the_number_of_trials_has_its_distribution(law):
    trials, source, runs = Trials("1/3", law, 6), Seeded(7), 20_000
    seen = np.bincount([trials._sample(source) for _ in range(runs)], minlength=7)[1:]
    expected = np.array([float(weight) for weight in weights(trials).values()]) * runs
    assert len(seen) == 6
    assert ((seen - expected) ** 2 / expected).sum() < 25  # 5 degrees of freedom, of a fixed seed


@LAWS
def test_shares_of_a_cost_add_up_to_nearly_all_of_it(law):
    trials, delta = Trials("1/50", law), Fraction(1, 10**6)
    each, rho = epsilon_per_trial(Fraction(1), trials), rho_per_trial(Fraction(1), delta, trials)
    assert tuned_epsilon(each, trials) == 1
    assert Fraction("0.999") < zcdp_tuned_epsilon(rho, delta, trials) <= 1


def fitted(loss):
    return SimpleNamespace(loss_=loss)


def priced(price):
    return (
        Loss(price.epsilon) if not price.delta else privacy.cost_of(Budget(price.epsilon, price.delta), price.epsilon)
    )


def fit(candidate, price):
    model = fitted(priced(price))
    model.candidate = candidate
    return model


def noted():
    """Return a list, and a fit that adds to it what it tries: how much that is, chance decides."""
    tried = []

    def noting(candidate, price):
        tried.append(candidate)
        return fit(candidate, price)

    return tried, noting


def score(model, price):
    return Score(float(model.candidate), 0.0, priced(price), "accuracy")


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_the_best_candidate_is_found_at_the_requested_cost(delta):
    tried, noting = noted()
    found = tune(range(3), noting, score, epsilon=1, delta=delta, trials=Trials("1/100", TrialDistribution.GEOMETRIC))
    assert found.candidate == max(tried) == found.model.candidate
    assert found.score.value == max(tried)
    assert found.loss == Loss(1, None, delta)
    assert set(vars(found)) == {"candidate", "model", "score", "loss"}  # not how many were tried


def test_less_is_better_for_errors():
    def error(model, price):
        return Score(float(model.candidate), 0.0, priced(price), "error")

    tried, noting = noted()
    assert tune(
        range(3), noting, error, epsilon=1, trials=Trials("1/100", TrialDistribution.GEOMETRIC)
    ).candidate == min(tried)


def test_settings_may_be_drawn_by_a_function():
    assert tune(lambda: 5, fit, score, epsilon=1, trials=Trials("1/3")).candidate == 5


def test_tuning_is_charged_once_and_before_anything_is_tried():
    ledger = memory_ledger(name="rows", budget=Budget(2))
    tune(range(3), fit, score, epsilon=2, trials=Trials("1/10"), ledger=ledger)
    (event,) = ledger.events()
    assert event.loss == Loss(2)
    assert event.state == "released"

    def never(candidate, price):
        raise AssertionError("it was not paid for")

    with pytest.raises(Refused):
        tune(range(3), never, score, epsilon=1, trials=Trials("1/10"), ledger=ledger)


def test_a_failing_trial_discloses_nothing():
    def failing(candidate, price):
        raise ValueError("Ana's salary is 10")

    with pytest.raises(Failed) as caught:
        tune(range(3), failing, score, epsilon=1, trials=Trials("1/10"))
    assert "Ana" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("loss", "error"), [(None, TypeError), (Loss("1/2"), ValueError), (Loss(None, "1/1000"), ValueError)]
)
def test_models_that_are_not_private_enough_are_refused(loss, error):
    with pytest.raises(error, match="fit"):
        tune(range(3), lambda *_: fitted(loss), lambda *_: Score(1, 0, Loss("1/10"), "accuracy"),
             epsilon=1, trials=Trials("1/10"))  # fmt: skip


def test_a_plain_number_is_not_a_score():
    with pytest.raises(TypeError, match="score"):
        tune(range(3), fit, lambda *_: 1.0, epsilon=1, trials=Trials("1/10"))


@pytest.mark.parametrize("gamma", [0, 1, 2, -1])
def test_gamma_is_a_share(gamma):
    with pytest.raises(ValueError, match="gamma"):
        Trials(gamma)


def test_nothing_to_try_is_refused():
    with pytest.raises(ValueError, match="candidates"):
        tune([], fit, score, epsilon=1, trials=Trials("1/2"))
