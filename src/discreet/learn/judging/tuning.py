"""Tuning settings privately: settings are tried at random, a random number of times, and the best trial is released.

To try k settings, each privately, and to keep the best costs more than one trial: what is best of many tells of the
data what each of them tells. If the number of trials is itself random and stays secret, the price is that of two or
three trials, however many were expected. Neither the number of trials nor any but the best is shown; who can measure
how long it took must not be shown that either.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.kernel.errors import FAILED, Failed
from discreet.kernel.event import Event, canonical
from discreet.kernel.exact import Number, positive, round_down, typed
from discreet.kernel.ledger import Ledger
from discreet.kernel.loss import Loss, zcdp_epsilon, zcdp_rho
from discreet.kernel.noise.coin import below
from discreet.kernel.noise.keystream import stream
from discreet.learn.judging.scoring import Score
from discreet.learn.judging.trials import Trials, epsilon_each, rho_each, tuned_epsilon, zcdp_tuned_epsilon

__all__ = ["Price", "Trials", "Tuned", "tune", "tuned_epsilon", "zcdp_tuned_epsilon"]

_LOG = logging.getLogger("discreet")
Trial = tuple[Any, Any, Score]  # a candidate, its model, and how good it is


@dataclass(frozen=True)
class Price:
    """What a step of a trial may cost: to be handed to an estimator or to evaluate, as epsilon and delta.

    >>> Price(Fraction(1, 2), Fraction(0)).epsilon
    Fraction(1, 2)
    """

    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True)
class Tuned:
    """The best of a secret number of trials: the setting, the model and its private score; and the price of it all.

    >>> Tuned("shared", None, Score(0.9, 0.01, Loss(1), "accuracy"), Loss(2)).loss.epsilon
    Fraction(2, 1)
    """

    candidate: Any
    model: Any
    score: Score
    loss: Loss


def tune(  # noqa: PLR0913 - what is tried, how, how often, at which price
    candidates: Sequence[Any] | Callable[[], Any],
    fit: Callable[[Any, Price], Any],
    score: Callable[[Any, Price], Score],
    *,
    epsilon: Number,
    delta: Number = 0,
    trials: Trials,
    shares: tuple[Number, Number] = (4, 1),
    ledger: Ledger | None = None,
) -> Tuned:
    """Try candidates drawn at random, or by a function of no data, and return the best by its private score.

    `fit(candidate, price)` must give a model that is as private as its price, with a `loss_` that says so; and
    `score(model, price)` a Score, as evaluate does. Both must leave the ledger alone, which is charged here, once, and
    not for every trial: their number is secret. `shares` divides a trial's price between the two.

    The price: trials of e-DP each make a release of (2+eta)·e-DP (Liu and Talwar 2019; Papernot and Steinke 2022), with
    eta = 0 for a logarithmic and 1 for a geometric number of trials: see `tuned_epsilon`. With a delta, trials are
    rho-zCDP, and the release is (epsilon, delta)-DP: see `zcdp_tuned_epsilon`. Epsilon and delta are for everything.

    >>> import numpy as np, discreet as dc
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> best = tune(
    ...     ["shared", "own"],
    ...     lambda kind, price: dc.learn.GaussianNB(
    ...         epsilon=price.epsilon, bounds=(-5, 5), classes=[0, 1], variances=kind
    ...     ).fit(X[:1000], y[:1000]),
    ...     lambda model, price: dc.learn.evaluate(
    ...         model, X[1000:], y[1000:], metric="accuracy", epsilon=price.epsilon
    ...     ),
    ...     epsilon=10,
    ...     trials=Trials("1/2"),
    ... )
    >>> best.candidate in ("shared", "own"), best.loss.epsilon
    (True, Fraction(10, 1))
    """
    part = _Parts.of(epsilon, delta, typed(Trials, trials, "trials"), shares)
    draw = candidates if callable(candidates) else _uniform(candidates)
    if ledger is not None:
        event = Event(mechanism=str(trials), sensitivity=canonical({}), question="tune")
        receipt = ledger.charge(part.whole, event)
    best = _best(lambda: _tried(draw(), fit, score, part), trials.draw())
    if ledger is not None:
        ledger.settle(receipt, canonical({"score": best[2].value, "candidate": str(best[0])}).encode())
    return Tuned(*best, part.whole)


@dataclass(frozen=True)
class _Parts:
    """What everything may cost: the whole, one trial, and its two steps."""

    whole: Loss
    trial: Loss
    fit: Price
    score: Price

    @classmethod
    def of(cls, epsilon: Number, delta: Number, trials: Trials, shares: tuple[Number, Number]) -> "_Parts":
        whole = Loss(positive(epsilon, "epsilon"), None, delta)
        assert whole.epsilon is not None
        first, second = (positive(share, "shares") for share in shares)
        part = first / (first + second)
        if not whole.delta:
            each = epsilon_each(whole.epsilon, trials)
            return cls(whole, Loss(each), Price(each * part, Fraction(0)), Price(each * (1 - part), Fraction(0)))
        rho = rho_each(whole.epsilon, whole.delta, trials)
        steps = (Price(_epsilon_within(rho * share, whole.delta), whole.delta) for share in (part, 1 - part))
        return cls(whole, Loss(None, rho), *steps)


def _best(trial: Callable[[], Trial], number: int) -> Trial:
    """Return the best of so many trials; of equal ones the first, which each is with the same probability."""
    best = trial()
    for _ in range(number - 1):
        found = trial()
        if found[2].merit > best[2].merit:
            best = found
    return best


def _tried(candidate: Any, fit: Callable[..., Any], score: Callable[..., Any], part: "_Parts") -> Trial:
    """Try a candidate; whatever goes wrong in it may depend on the data, and has one text."""
    try:
        model = fit(candidate, part.fit)
        found = score(model, part.score)
    except Exception:  # noqa: BLE001 - as the docstring says
        _LOG.exception("a trial failed after it was charged")
        model = None
    if model is None:  # raised out here, where no other error is on record beside it
        raise Failed(FAILED)
    _check_paid(model, typed(Score, found, "score"), part.trial)
    return candidate, model, found


def _epsilon_within(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon, as large as it can be, that buys at most this rho."""
    epsilon = zcdp_epsilon(rho, delta)
    while zcdp_rho(epsilon, delta) > rho:
        epsilon = round_down(epsilon * (1 - Fraction(1, 10**6)))
    return epsilon


def _uniform(candidates: Sequence[Any]) -> Callable[[], Any]:
    listed = list(candidates)
    if not listed:
        raise ValueError("candidates must not be empty")
    return lambda: listed[below(stream(), len(listed))]


def _check_paid(model: Any, score: Score, price: Loss) -> None:
    spent = getattr(model, "loss_", None)
    if not isinstance(spent, Loss):
        raise TypeError("fit must give a model with a loss_: one that is not private must not be tuned on private data")
    if not price.includes(spent + score.loss):
        raise ValueError("fit and score must cost at most the prices that they are given")
