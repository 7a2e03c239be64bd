"""Private hyperparameter tuning: random candidates, a random number of trials, and only the best trial is released.

Releasing the best of k private trials costs up to k trials. If the number of trials is random and secret, the cost is
that of two or three trials, whatever their expected number. Neither the number of trials nor any trial but the best is
disclosed; the running time discloses the number too, so it must not be observable by an analyst.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.kernel.errors import FAILED, Failed
from discreet.kernel.event import Event, canonical_json
from discreet.kernel.ledger import Ledger
from discreet.kernel.loss import Loss, zcdp_rho
from discreet.kernel.noise.keystream import thread_keystream
from discreet.kernel.numbers import Number, as_positive, check_type, round_down
from discreet.kernel.selection import uniform_integer
from discreet.learn.model_selection.evaluation import Score
from discreet.learn.model_selection.private_selection import (
    Trials,
    epsilon_per_trial,
    rho_per_trial,
    tuned_epsilon,
    zcdp_tuned_epsilon,
)
from discreet.privacy.conversion import zcdp_epsilon

__all__ = ["StepBudget", "Trials", "TuningResult", "tune", "tuned_epsilon", "zcdp_tuned_epsilon"]

_LOG = logging.getLogger("discreet")
Trial = tuple[Any, Any, Score]  # a candidate, its model and its score


@dataclass(frozen=True)
class StepBudget:
    """The budget of one step of a trial; pass its epsilon and delta to an estimator or to evaluate.

    >>> StepBudget(Fraction(1, 2), Fraction(0)).epsilon
    Fraction(1, 2)
    """

    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True)
class TuningResult:
    """The best of a secret number of trials: candidate, model and private score; and the total loss.

    >>> TuningResult("shared", None, Score(0.9, 0.01, Loss(1), "accuracy"), Loss(2)).loss.epsilon
    Fraction(2, 1)
    """

    candidate: Any
    model: Any
    score: Score
    loss: Loss


def tune(  # noqa: PLR0913 - the candidates, the steps and the privacy parameters
    candidates: Sequence[Any] | Callable[[], Any],
    fit: Callable[[Any, StepBudget], Any],
    score: Callable[[Any, StepBudget], Score],
    *,
    epsilon: Number,
    delta: Number = 0,
    trials: Trials,
    shares: tuple[Number, Number] = (4, 1),
    ledger: Ledger | None = None,
) -> TuningResult:
    """Try random candidates and return the best by its private score.

    `candidates` is a list, sampled uniformly, or a function that returns a candidate without using data.
    `fit(candidate, cost)` must return a model whose `loss_` is within `cost`, and `score(model, cost)` a Score, as
    evaluate does. Neither may charge the ledger: it is charged here, once, because the number of trials is secret.
    `shares` divides a trial's budget between the two steps.

    Epsilon and delta are the total cost. If each trial is e-DP, the release is (2+eta)·e-DP (Liu and Talwar 2019;
    Papernot and Steinke 2022), with eta = 0 for a logarithmic and 1 for a geometric number of trials: see
    `tuned_epsilon`. With a delta, trials are rho-zCDP and the release is (epsilon, delta)-DP: see `zcdp_tuned_epsilon`.

    >>> import numpy as np, discreet as dc
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> best = tune(
    ...     ["shared", "own"],
    ...     lambda kind, cost: dc.learn.GaussianNB(
    ...         epsilon=cost.epsilon, bounds=(-5, 5), classes=[0, 1], variances=kind
    ...     ).fit(X[:1000], y[:1000]),
    ...     lambda model, cost: dc.learn.evaluate(
    ...         model, X[1000:], y[1000:], metric="accuracy", epsilon=cost.epsilon
    ...     ),
    ...     epsilon=10,
    ...     trials=Trials("1/2"),
    ... )
    >>> best.candidate in ("shared", "own"), best.loss.epsilon
    (True, Fraction(10, 1))
    """
    budgets = _TrialBudgets.from_total(epsilon, delta, check_type(Trials, trials, "trials"), shares)
    draw = candidates if callable(candidates) else _uniform_sampler(candidates)
    if ledger is not None:
        event = Event(mechanism=str(trials), sensitivity=canonical_json({}), question="tune")
        receipt = ledger.charge(budgets.total, event)
    best = _best_trial(lambda: _run_trial(draw(), fit, score, budgets), trials.draw())
    if ledger is not None:
        ledger.settle(receipt, canonical_json({"score": best[2].value, "candidate": str(best[0])}).encode())
    return TuningResult(*best, budgets.total)


@dataclass(frozen=True)
class _TrialBudgets:
    """The budgets of the tuning, of one trial, and of its two steps."""

    total: Loss
    trial: Loss
    fit: StepBudget
    score: StepBudget

    @classmethod
    def from_total(
        cls, epsilon: Number, delta: Number, trials: Trials, shares: tuple[Number, Number]
    ) -> "_TrialBudgets":
        total = Loss(as_positive(epsilon, "epsilon"), None, delta)
        assert total.epsilon is not None
        first, second = (as_positive(share, "shares") for share in shares)
        fit_share = first / (first + second)
        if not total.delta:
            trial_epsilon = epsilon_per_trial(total.epsilon, trials)
            return cls(
                total,
                Loss(trial_epsilon),
                StepBudget(trial_epsilon * fit_share, Fraction(0)),
                StepBudget(trial_epsilon * (1 - fit_share), Fraction(0)),
            )
        rho = rho_per_trial(total.epsilon, total.delta, trials)
        steps = (
            StepBudget(_epsilon_within(rho * share, total.delta), total.delta) for share in (fit_share, 1 - fit_share)
        )
        return cls(total, Loss(None, rho), *steps)


def _best_trial(trial: Callable[[], Trial], n_trials: int) -> Trial:
    """Return the best of `n_trials` trials; ties go to the first, which is uniform among exchangeable trials."""
    best = trial()
    for _ in range(n_trials - 1):
        candidate = trial()
        if candidate[2].utility > best[2].utility:
            best = candidate
    return best


def _run_trial(candidate: Any, fit: Callable[..., Any], score: Callable[..., Any], budgets: "_TrialBudgets") -> Trial:
    """Run one trial; any error may depend on the data, so there is one fixed failure message."""
    try:
        model = fit(candidate, budgets.fit)
        result = score(model, budgets.score)
    except Exception:  # noqa: BLE001 - see the docstring
        _LOG.exception("a trial failed after it was charged")
        model = None
    if model is None:  # raised outside of the handler, so that no other error is its context
        raise Failed(FAILED)
    _check_trial_cost(model, check_type(Score, result, "score"), budgets.trial)
    return candidate, model, result


def _epsilon_within(rho: Fraction, delta: Fraction) -> Fraction:
    """Return the largest epsilon, nearly, whose rho at this delta is at most `rho`."""
    epsilon = zcdp_epsilon(rho, delta)
    while zcdp_rho(epsilon, delta) > rho:
        epsilon = round_down(epsilon * (1 - Fraction(1, 10**6)))
    return epsilon


def _uniform_sampler(candidates: Sequence[Any]) -> Callable[[], Any]:
    options = list(candidates)
    if not options:
        raise ValueError("candidates must not be empty")
    return lambda: options[uniform_integer(thread_keystream(), len(options))]


def _check_trial_cost(model: Any, score: Score, cost: Loss) -> None:
    spent = getattr(model, "loss_", None)
    if not isinstance(spent, Loss):
        raise TypeError("fit must return a model with a loss_: non-private models must not be tuned on private data")
    if not cost.includes(spent + score.loss):
        raise ValueError("fit and score must cost at most their budgets")
