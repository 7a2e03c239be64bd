"""The differencing game: a coin decides a diagnosis, and an attacker guesses it from two counts."""

import secrets
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import discreet as dc
from discreet.cli.tour.curator_copies import CuratorCopies
from discreet.cli.tour.town import SECRET_ILLNESS, Governor, Town

COUNT_SENSITIVITY = dc.Sensitivity(groups=1, size=1)


@dataclass(frozen=True)
class GuessingResult:
    """How often an attacker was right who paid this epsilon for two counts together, in so many plays."""

    epsilon: Fraction
    correct: int
    plays: int

    @property
    def share(self) -> float:
        """The share of right guesses."""
        return self.correct / self.plays

    @property
    def standard_error(self) -> float:
        """The standard error of the share."""
        return float(np.sqrt(max(self.share * (1 - self.share), 1 / self.plays) / self.plays))


@dataclass(frozen=True)
class TradeoffPoint:
    """What an epsilon buys: the margin of a count; the chances of differencing, and of the best attack there can be."""

    epsilon: float
    margin: int
    differencing: float
    upper_bound: float


def differencing_queries(governor: Governor, illness: str = SECRET_ILLNESS) -> tuple[str, str]:
    """Return the two questions: how many have it, with the Governor and without."""
    everybody = f"SELECT COUNT(*) FROM people WHERE ill = '{illness}'"  # noqa: S608 - our own words
    return everybody, f"{everybody} AND NOT ({governor.condition})"


def guess_is_ill(with_him: int, without_him: int) -> bool:
    """Guess from two counts, exact or noisy, whether the Governor is among those who were counted."""
    return with_him - without_him >= 1


def play(town: Town, epsilon: Fraction, plays: int) -> GuessingResult:
    """Play so many times: toss a coin, open a copy of the town in which it came true, ask, and guess."""
    queries = differencing_queries(town.governor())
    with (
        town.open_with_budget(str(epsilon), ill="none") as well,
        town.open_with_budget(str(epsilon), ill=SECRET_ILLNESS) as ill,
    ):
        towns = [CuratorCopies(curator).prepare_counts(queries, epsilon) for curator in (well, ill)]
        correct = 0
        for _ in range(plays):
            secret = secrets.randbelow(2)
            correct += guess_is_ill(*towns[secret].ask()) == bool(secret)
    return GuessingResult(epsilon, correct, plays)


def play_non_private(town: Town, plays: int) -> GuessingResult:
    """Play with exact counts, which cost no epsilon because they promise nothing."""
    queries = differencing_queries(town.governor())
    towns = [town.people_with_diagnosis(ill=illness) for illness in ("none", SECRET_ILLNESS)]
    answers = [[town.true_answer(sql, people=people)[0][0] for sql in queries] for people in towns]
    coin_tosses = [secrets.randbelow(2) for _ in range(plays)]
    return GuessingResult(
        Fraction(0), sum(guess_is_ill(*answers[secret]) == bool(secret) for secret in coin_tosses), plays
    )


def tradeoff_point(epsilon: float) -> TradeoffPoint:
    """Compute what an epsilon buys from the distribution of the noise.

    Differencing is right if the difference of two noises is not on the wrong side: (1 + Pr[they are equal]) / 2. The
    curator draws noise on a fine grid and rounds counts to integers, so noise of 0 is all that is below one half.
    """
    half_step, step = (
        np.exp(epsilon / 4),
        np.exp(-epsilon / 2),
    )  # half the epsilon for each count: half a step, and a step
    zero, one = 1 - 1 / half_step, (half_step - 1 / half_step) * step / 2
    equal = float(zero**2 + 2 * one**2 / (1 - step**2))
    margin = dc.laplace_for(COUNT_SENSITIVITY, epsilon).margin(0.95)
    return TradeoffPoint(epsilon, margin, (1 + equal) / 2, dc.privacy.posterior_bound(0.5, epsilon))


def tradeoff_curve() -> list[TradeoffPoint]:
    """Compute it for epsilons from small to large."""
    return [tradeoff_point(float(f"{epsilon:.3g}")) for epsilon in np.geomspace(0.02, 3.5, 40)]
