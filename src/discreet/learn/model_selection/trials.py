"""How many settings to try: a random number, and what that makes of the privacy of one trial."""

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np

from discreet.kernel.event import canonical_json
from discreet.kernel.noise.bernoulli import uniform_integer
from discreet.kernel.noise.keystream import RandomSource, thread_keystream
from discreet.kernel.numbers import Number, as_integer, as_probability, log_down, log_up, round_down, round_up

_MAX_TRIALS_TIMES_GAMMA = 20  # times 1/gamma: so many trials hardly ever happen
_RENYI_ORDERS = 1 + np.geomspace(1e-3, 1e6, 4000)


class TrialDistribution(StrEnum):
    """The law of the number of trials, truncated negative binomial with eta = 0 or 1."""

    LOGARITHMIC = "logarithmic"
    GEOMETRIC = "geometric"


@dataclass(frozen=True)
class Trials:
    """A random number of trials: k with a weight of (1-gamma)^k, divided by k if logarithmic, up to `max_trials`.

    The smaller gamma, the more trials; it costs nothing in a pure budget, and a little in one with a delta. Numbers
    beyond `max_trials` are drawn again, which costs nothing either; to stop there instead would.

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
        """The parameter of the truncated negative binomial law."""
        return 0 if self.distribution is TrialDistribution.LOGARITHMIC else 1

    @property
    def expected(self) -> float:
        """The expected number of trials, without the limit."""
        gamma = float(self.gamma)
        return 1 / gamma if self.eta else (1 / gamma - 1) / -math.log(gamma)

    def draw(self) -> int:
        """Draw the number of trials, which stays secret."""
        return self._sample(thread_keystream())

    def _sample(self, source: RandomSource) -> int:
        """Toss exact coins: a geometric number k within the limit is kept, if logarithmic with probability 1/k."""
        while True:
            number = 1
            while number <= self.max_trials and uniform_integer(source, self.gamma.denominator) >= self.gamma.numerator:
                number += 1
            if number <= self.max_trials and (self.eta or uniform_integer(source, number) == 0):
                return number

    def __str__(self) -> str:
        gamma, distribution, max_trials = str(self.gamma), str(self.distribution), self.max_trials
        return canonical_json(
            {"name": "best of random trials", "gamma": gamma, "law": distribution, "most": max_trials}
        )


def tuned_epsilon(trial_epsilon: Fraction, trials: Trials) -> Fraction:
    """Return the epsilon of the best of a random number of trials, each of which costs `trial_epsilon`.

    Claim: (2+eta)·each, with and without a limit.
    Proof: let f be the generating function of the number K of trials and Q(y) the chance that a trial is at most y. The
        best is y with density q(y)·f'(Q(y)), averaged over ties. On neighbours q <= e^each·q', and f'(Q)/f'(Q') is
        to be bounded. Without a limit f'(x) is proportional to (1-(1-gamma)·x)^-(1+eta), and
        1-(1-gamma)·x = gamma + (1-gamma)·(1-x), where 1-Q' <= e^each·(1-Q): the ratio is at most e^((1+eta)·each)
        (Papernot and Steinke 2022, Corollary 3; for eta = 1 Liu and Talwar 2019). With a limit: the derivative of
        ln f' at x is E[K-1]/x with weights k·P[k]·x^(k-1), which is less if large k are left out. So ln f'(Q) -
        ln f'(Q') is less if Q > Q'; otherwise it is at most 0.
    Needs: trials are independent, drawn in the same way, and compared by what they release alone; their number has
        exactly this law and stays secret.
    Checked by: test_the_best_of_a_random_number_stays_within_the_claim, test_the_number_of_trials_has_its_law
    """
    return (2 + trials.eta) * trial_epsilon


def epsilon_per_trial(epsilon: Fraction, trials: Trials) -> Fraction:
    """Return what each trial may cost so that tuning costs epsilon."""
    return epsilon / (2 + trials.eta)


def zcdp_tuned_epsilon(rho: Fraction, delta: Fraction, trials: Trials) -> Fraction:
    """Return an epsilon, rounded up, such that the best of a random number of rho-zCDP trials is (epsilon, delta)-DP.

    Claim: for every order a > 1 and every b >= 1 the release has a Renyi divergence of order a of at most
        a·rho + (1+eta)·((b-1)·rho + ln(1/gamma)/b) + ln(E[K])/(a-1); epsilon is that, converted.
    Proof: Papernot and Steinke 2022, Theorem 2, where the divergence of a trial of order a is a·rho and of order b is
        b·rho: f'(Q)^a·f'(Q')^(1-a) = f'(Q)·(f'(Q)/f'(Q'))^(a-1). The first factor is at most f'(1) = E[K], which a
        limit lowers; the ratio is at most the (1+eta)-th power of gamma^(-1/b)·e^((1-1/b)·b·rho), by Jensen's
        inequality, and less with a limit, as in tuned_epsilon. Conversion: Canonne, Kamath and Steinke 2020,
        Proposition 12. Floats only choose a and b; the value is computed in fractions and rounded up.
    Needs: as tuned_epsilon.
    Checked by: test_the_best_of_zcdp_trials_stays_within_the_claim
    """
    b = _best_second_order(rho, trials)
    a = _best_first_order(float(rho), float(log_down(delta)), trials)
    return round_up(renyi_bound(a, b, rho, trials) + log_up(1 / (delta * a)) / (a - 1) - log_down(a / (a - 1)))


def renyi_bound(a: Fraction, b: Fraction, rho: Fraction, trials: Trials) -> Fraction:
    """Return the bound on the Renyi divergence of order a, rounded up, by the second order b."""
    second = (b - 1) * rho + log_up(1 / trials.gamma) / b
    return a * rho + (1 + trials.eta) * second + _log_expected_rounded_up(trials) / (a - 1)


def rho_per_trial(epsilon: Fraction, delta: Fraction, trials: Trials) -> Fraction:
    """Return a rho for each trial with which tuning is (epsilon, delta)-DP, as large as it can be."""
    low, high = Fraction(0), epsilon
    for _ in range(50):
        middle = (low + high) / 2
        rho = round_down(middle, 15)
        fits = rho > 0 and zcdp_tuned_epsilon(rho, delta, trials) <= epsilon
        low, high = (rho, high) if fits else (low, middle)
    if not low:
        raise ValueError("epsilon is too small to tune at this delta: choose a larger gamma, or a pure budget")
    return low


def _log_expected_rounded_up(trials: Trials) -> Fraction:
    gamma = trials.gamma
    return log_up(1 / gamma) if trials.eta else log_up((1 / gamma - 1) / log_down(1 / gamma))


def _best_second_order(rho: Fraction, trials: Trials) -> Fraction:
    """Return the b >= 1 that makes (b-1)·rho + ln(1/gamma)/b about least."""
    return max(Fraction(1), Fraction(round(math.sqrt(-math.log(trials.gamma) / float(rho)) * 1000), 1000))


def _best_first_order(rho: float, log_delta: float, trials: Trials) -> Fraction:
    """Return the a > 1 that makes the converted bound about least."""
    rest = (math.log(max(trials.expected, 1.0)) - log_delta - np.log(_RENYI_ORDERS)) / (_RENYI_ORDERS - 1)
    return Fraction(float(_RENYI_ORDERS[np.argmin(rho * _RENYI_ORDERS + rest + np.log1p(-1 / _RENYI_ORDERS))]))
