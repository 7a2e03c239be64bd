"""Private selection of the best candidate: by the exponential mechanism, or from a random number of trials."""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from discreet import privacy
from discreet.kernel.errors import FAILED, Failed
from discreet.kernel.event import Event, canonical_json
from discreet.kernel.ledger import Ledger
from discreet.kernel.loss import Loss
from discreet.kernel.noise.keystream import RandomSource, thread_keystream
from discreet.kernel.numbers import Number, as_integer, as_positive, log_down, log_up, round_down, round_up
from discreet.kernel.selection import uniform_integer
from discreet.learn.fit_inputs import check_ledger
from discreet.learn.model_selection.evaluation import is_correct, row_scores
from discreet.learn.row_sources import array_rows
from discreet.number_arguments import as_probability
from discreet.privacy.selection import Exponential, Utilities

_MAX_TRIALS_TIMES_GAMMA = 20  # default limit, in 1/gamma: larger numbers are very rare
_RENYI_ORDERS = 1 + np.geomspace(1e-3, 1e6, 4000)


class TrialDistribution(StrEnum):
    """The distribution of the number of trials: truncated negative binomial with eta = 0 or 1."""

    LOGARITHMIC = "logarithmic"
    GEOMETRIC = "geometric"


@dataclass(frozen=True)
class Trials:
    """A random number of trials: k up to `max_trials` with weight (1-gamma)^k, divided by k if logarithmic.

    A smaller gamma means more trials, at no extra cost in a pure budget and a little in one with a delta. Numbers above
    `max_trials` are sampled again, which costs nothing; stopping at `max_trials` instead would.

    >>> trials = Trials("1/50")
    >>> round(trials.expected, 1), trials.max_trials, 1 <= trials.draw() <= trials.max_trials
    (12.5, 1000, True)
    """

    gamma: Fraction
    distribution: TrialDistribution
    max_trials: int

    def __init__(
        self, gamma: Number, distribution: str = TrialDistribution.LOGARITHMIC, max_trials: int | None = None
    ) -> None:
        object.__setattr__(self, "gamma", as_probability(gamma, "gamma"))
        object.__setattr__(self, "distribution", TrialDistribution(distribution))
        default_max = math.ceil(_MAX_TRIALS_TIMES_GAMMA / self.gamma)
        object.__setattr__(
            self, "max_trials", default_max if max_trials is None else as_integer(max_trials, "max_trials", minimum=1)
        )

    @property
    def eta(self) -> int:
        """The parameter of the truncated negative binomial distribution."""
        return 0 if self.distribution is TrialDistribution.LOGARITHMIC else 1

    @property
    def expected(self) -> float:
        """The expected number of trials without `max_trials`."""
        gamma = float(self.gamma)
        return 1 / gamma if self.eta else (1 / gamma - 1) / -math.log(gamma)

    def draw(self) -> int:
        """Sample the number of trials, which must stay secret."""
        return self._sample(thread_keystream())

    def _sample(self, source: RandomSource) -> int:
        """Sample exactly: accept a geometric k within the limit, if logarithmic with probability 1/k."""
        while True:
            number = 1
            while number <= self.max_trials and uniform_integer(source, self.gamma.denominator) >= self.gamma.numerator:
                number += 1
            if number <= self.max_trials and (self.eta or uniform_integer(source, number) == 0):
                return number

    def __str__(self) -> str:
        gamma, distribution, max_trials = str(self.gamma), str(self.distribution), self.max_trials
        return canonical_json(
            {"name": "best of random trials", "gamma": gamma, "distribution": distribution, "max_trials": max_trials}
        )


def tuned_epsilon(trial_epsilon: Fraction, trials: Trials) -> Fraction:
    """Return the epsilon of the best of a random number of trials, each of which costs `trial_epsilon` (e below).

    Claim: the release is (2+eta)·e-DP, with and without a limit on the number of trials.
    Proof: let f be the generating function of the number K of trials, and Q(y) the probability that a trial's outcome
        is at most y. The best outcome is y with density q(y)·f'(Q(y)), averaged over ties. On neighbours
        q <= exp(e)·q', so it remains to bound f'(Q)/f'(Q'). Without a limit f'(x) is proportional to
        (1-(1-gamma)·x)^-(1+eta), and 1-(1-gamma)·x = gamma + (1-gamma)·(1-x), where 1-Q' <= exp(e)·(1-Q): the ratio is
        at most exp((1+eta)·e) (Papernot and Steinke 2022, Corollary 3; for eta = 1 Liu and Talwar 2019). With a limit:
        the derivative of ln f' at x is E[K-1]/x with weights k·P[k]·x^(k-1), which decreases if large k are left out.
        So ln f'(Q) - ln f'(Q') decreases if Q > Q'; otherwise it is at most 0.
    Needs: trials are independent and identically distributed, and compared by their released outputs only; their number
        has exactly this distribution and stays secret.
    Checked by: test_the_best_of_a_random_number_stays_within_the_claim, test_the_number_of_trials_has_its_distribution
    """
    return (2 + trials.eta) * trial_epsilon


def epsilon_per_trial(epsilon: Fraction, trials: Trials) -> Fraction:
    """Return the epsilon of each trial such that tuning costs `epsilon`."""
    return epsilon / (2 + trials.eta)


def zcdp_tuned_epsilon(rho: Fraction, delta: Fraction, trials: Trials) -> Fraction:
    """Return an epsilon, rounded up, such that the best of a random number of rho-zCDP trials is (epsilon, delta)-DP.

    Claim: for every order a > 1 and every b >= 1 the release has a Rényi divergence of order a of at most
        a·rho + (1+eta)·((b-1)·rho + ln(1/gamma)/b) + ln(E[K])/(a-1); epsilon is this bound, converted.
    Proof: Papernot and Steinke 2022, Theorem 2, where a trial's divergence is a·rho at order a and b·rho at order b:
        f'(Q)^a·f'(Q')^(1-a) = f'(Q)·(f'(Q)/f'(Q'))^(a-1). The first factor is at most f'(1) = E[K], which a limit
        lowers; the ratio is at most the (1+eta)-th power of gamma^(-1/b)·e^((1-1/b)·b·rho), by Jensen's inequality, and
        smaller with a limit, as in tuned_epsilon. Conversion: Canonne, Kamath and Steinke 2020, Proposition 12. Floats
        only choose a and b; the value is computed in fractions and rounded up.
    Needs: as in tuned_epsilon.
    Checked by: test_the_best_of_zcdp_trials_stays_within_the_claim
    """
    b = _best_second_order(rho, trials)
    a = _best_first_order(float(rho), float(log_down(delta)), trials)
    return round_up(renyi_bound(a, b, rho, trials) + log_up(1 / (delta * a)) / (a - 1) - log_down(a / (a - 1)))


def renyi_bound(a: Fraction, b: Fraction, rho: Fraction, trials: Trials) -> Fraction:
    """Return the bound on the Rényi divergence of order a, rounded up, with second order b."""
    second = (b - 1) * rho + log_up(1 / trials.gamma) / b
    return a * rho + (1 + trials.eta) * second + _log_expected_rounded_up(trials) / (a - 1)


def rho_per_trial(epsilon: Fraction, delta: Fraction, trials: Trials) -> Fraction:
    """Return the largest rho per trial, nearly, for which tuning is (epsilon, delta)-DP."""
    low, high = Fraction(0), epsilon
    for _ in range(50):
        middle = (low + high) / 2
        rho = round_down(middle, 15)
        fits = rho > 0 and zcdp_tuned_epsilon(rho, delta, trials) <= epsilon
        low, high = (rho, high) if fits else (low, middle)
    if not low:
        raise ValueError(
            "epsilon is too small for tuning at this delta; choose a larger gamma, or a pure budget (delta=0)"
        )
    return low


def _log_expected_rounded_up(trials: Trials) -> Fraction:
    gamma = trials.gamma
    return log_up(1 / gamma) if trials.eta else log_up((1 / gamma - 1) / log_down(1 / gamma))


def _best_second_order(rho: Fraction, trials: Trials) -> Fraction:
    """Return the b >= 1 that approximately minimises (b-1)·rho + ln(1/gamma)/b."""
    return max(Fraction(1), Fraction(round(math.sqrt(-math.log(trials.gamma) / float(rho)) * 1000), 1000))


def _best_first_order(rho: float, log_delta: float, trials: Trials) -> Fraction:
    """Return the a > 1 that approximately minimises the converted bound."""
    rest = (math.log(max(trials.expected, 1.0)) - log_delta - np.log(_RENYI_ORDERS)) / (_RENYI_ORDERS - 1)
    return Fraction(float(_RENYI_ORDERS[np.argmin(rho * _RENYI_ORDERS + rest + np.log1p(-1 / _RENYI_ORDERS))]))


_LOG = logging.getLogger("discreet")
_SHARE_STEPS = 1 << 20  # resolution of a unit's share of correct predictions


@dataclass(frozen=True)
class SelectionResult:
    """The privately selected candidate, its index, and the loss.

    >>> SelectionResult("forest", 1, Loss(1)).candidate
    'forest'
    """

    candidate: Any
    index: int
    loss: Loss


def select(  # noqa: PLR0913 - the candidates, their utilities and the privacy parameters
    candidates: Sequence[Any],
    utilities: Utilities | Callable[[Any], Number] | None = None,
    *,
    epsilon: Number,
    sensitivity: Number = 1,
    X: Any = None,
    y: Any = None,
    unit: Any = None,
    ledger: Ledger | None = None,
) -> SelectionResult:
    """Select candidate i with probability proportional to exp(epsilon·utility_i/(2·sensitivity)).

    `utilities` is a list or a function of a candidate. Without it, the candidates must be public models, and the
    utility of each is its number of correct predictions on X and y (with `unit`, the sum of the units' shares of
    correct predictions), which one row (one unit) changes by at most 1. `sensitivity` is the maximum change of any
    utility by one unit. For accuracies on a public number n of rows, use sensitivity=Fraction(1, n) and neighbours that
    differ in one row's values; then Pr(i) is proportional to exp(epsilon·n·accuracy_i/2).

    >>> choice = select(["tree", "forest", "line"], [812, 1005, 640], epsilon=1)
    >>> choice.candidate, choice.loss
    ('forest', Loss(epsilon=1, rho=1/8))
    """
    mechanism = _exponential_mechanism(epsilon, sensitivity)
    if not len(candidates):
        raise ValueError("candidates must not be empty")
    utility = _resolve_utilities(candidates, utilities, X, y, unit)
    exact_sensitivity = as_positive(sensitivity, "sensitivity")
    if callable(utility) and utilities is None and exact_sensitivity != 1:
        raise ValueError("sensitivity must be 1 for the number of correct predictions")
    loss = mechanism.loss(exact_sensitivity)
    if X is not None:
        check_ledger(ledger, unit)
    if ledger is not None:
        norms = canonical_json({"l1": str(exact_sensitivity), "l2_squared": str(exact_sensitivity * exact_sensitivity)})
        receipt = ledger.charge(loss, Event(mechanism=str(mechanism), sensitivity=norms, question="select"))
    index = _select_index(mechanism, candidates, utility) if callable(utility) else mechanism.choose(utility)
    if ledger is not None:
        ledger.settle(receipt, canonical_json({"index": index}).encode())
    return SelectionResult(candidates[index], index, loss)


def probabilities(utilities: Utilities, *, epsilon: Number, sensitivity: Number = 1) -> list[float]:
    """Return the selection probability of each candidate; they disclose the utilities: for teaching and tests only.

    >>> [round(p, 3) for p in probabilities([100, 98, 90], epsilon=1)]
    [0.727, 0.268, 0.005]
    """
    return privacy.probabilities(_exponential_mechanism(epsilon, sensitivity), utilities)


def count_correct(model: Any, X: Any, y: Any, unit: Any = None) -> Fraction:
    """Return the number of correct predictions or, with `unit`, the sum of the units' shares of correct predictions.

    >>> from types import SimpleNamespace
    >>> zero = SimpleNamespace(predict=lambda X: [0] * len(X))
    >>> X, y = [[1], [2], [3]], [0, 0, 1]
    >>> count_correct(zero, X, y), count_correct(zero, X, y, unit=["a", "b", "b"])
    (Fraction(2, 1), Fraction(3, 2))
    """
    correct = np.nan_to_num(row_scores(model, X, y, is_correct))  # a failed prediction is not correct
    if unit is None:
        return Fraction(int(correct.sum()))
    rows_by_unit = array_rows(correct[:, np.newaxis], (np.zeros(1), np.ones(1)), unit)
    assert rows_by_unit.order is not None
    assert rows_by_unit.unit_numbers is not None
    correct_by_unit, rows_per_unit = (
        np.bincount(rows_by_unit.unit_numbers, correct[rows_by_unit.order]),
        np.bincount(rows_by_unit.unit_numbers),
    )
    return Fraction(
        sum(int(hit) * _SHARE_STEPS // int(total) for hit, total in zip(correct_by_unit, rows_per_unit, strict=True)),
        _SHARE_STEPS,
    )


def _exponential_mechanism(epsilon: Number, sensitivity: Number) -> Exponential:
    return Exponential(2 * as_positive(sensitivity, "sensitivity") / as_positive(epsilon, "epsilon"))


def _select_index(mechanism: Exponential, candidates: Sequence[Any], utility: Callable[[Any], Number]) -> int:
    """Compute the utilities and select; any error may depend on the data, so there is one fixed failure message."""
    try:
        return mechanism.choose([utility(candidate) for candidate in candidates])
    except Exception:  # noqa: BLE001 - see the docstring
        _LOG.exception("a selection failed after it was charged")
    raise Failed(FAILED)


def _resolve_utilities(
    candidates: Sequence[Any], utilities: Any, X: Any, y: Any, unit: Any
) -> Sequence[Number] | Callable[[Any], Number]:
    """Return the utilities, or the function that computes them after the charge."""
    if (utilities is None) is (X is None):
        raise ValueError("utilities: pass one per candidate, or a function, or X and y to count correct predictions")
    if X is None:
        if not callable(utilities) and len(utilities) != len(candidates):
            raise ValueError(f"utilities must have one entry for each of the {len(candidates)} candidates")
        return utilities  # type: ignore[no-any-return]
    if y is None:
        raise ValueError("y: pass the true values to count correct predictions")
    check_consistent_length(X, y, unit)
    return lambda model: count_correct(model, X, y, unit)
