"""The game of differencing: a coin decides whether the Governor is ill, and an attacker guesses from two counts."""

import secrets
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import discreet as dc
from discreet.cli.tour.copies import Copies
from discreet.cli.tour.town import SECRET, Governor, Town

ONE = dc.Sensitivity(groups=1, size=1)


@dataclass(frozen=True)
class Played:
    """How often an attacker was right who paid this epsilon for two counts together, in so many plays."""

    epsilon: Fraction
    right: int
    plays: int

    @property
    def share(self) -> float:
        """The share of right guesses."""
        return self.right / self.plays


@dataclass(frozen=True)
class Point:
    """What an epsilon buys: the margin of a count; the chances of differencing, and of the best attack there can be."""

    epsilon: float
    margin: int
    differencing: float
    ceiling: float


def counts(governor: Governor, illness: str = SECRET) -> tuple[str, str]:
    """Return the two questions: how many have it, with the Governor and without."""
    everybody = f"SELECT COUNT(*) FROM people WHERE ill = '{illness}'"  # noqa: S608 - our own words
    return everybody, f"{everybody} AND NOT ({governor.condition})"


def is_ill(with_him: int, without_him: int) -> bool:
    """Guess from two counts, exact or noisy, whether the Governor is among those who were counted."""
    return with_him - without_him >= 1


def play(town: Town, epsilon: Fraction, plays: int) -> Played:
    """Play so many times: toss a coin, open a copy of the town in which it came true, ask, and guess."""
    questions = counts(town.governor())
    with town.under(str(epsilon), ill="none") as well, town.under(str(epsilon), ill=SECRET) as ill:
        towns = [Copies(curator).counts(questions, epsilon) for curator in (well, ill)]
        right = 0
        for _ in range(plays):
            secret = secrets.randbelow(2)
            right += is_ill(*towns[secret].ask()) == bool(secret)
    return Played(epsilon, right, plays)


def play_exact(town: Town, plays: int) -> Played:
    """Play with exact counts, which cost no epsilon because they promise nothing."""
    questions = counts(town.governor())
    towns = [town.people(ill=illness) for illness in ("none", SECRET)]
    answers = [[town.truth(sql, people=people)[0][0] for sql in questions] for people in towns]
    tossed = [secrets.randbelow(2) for _ in range(plays)]
    return Played(Fraction(0), sum(is_ill(*answers[secret]) == bool(secret) for secret in tossed), plays)


def point(epsilon: float) -> Point:
    """Compute what an epsilon buys from the distribution of the noise.

    Differencing is right if the difference of two noises is not on the wrong side: (1 + Pr[they are equal]) / 2. The
    curator draws noise on a fine grid and rounds counts to integers, so noise of 0 is all that is below one half.
    """
    rise, step = np.exp(epsilon / 4), np.exp(-epsilon / 2)  # half the epsilon for each count: half a step, and a step
    zero, one = 1 - 1 / rise, (rise - 1 / rise) * step / 2
    equal = float(zero**2 + 2 * one**2 / (1 - step**2))
    margin = dc.laplace_for(ONE, epsilon).margin(0.95)
    return Point(epsilon, margin, (1 + equal) / 2, dc.privacy.posterior_bound(0.5, epsilon))


def curve() -> list[Point]:
    """Compute it for epsilons from small to large."""
    return [point(float(f"{epsilon:.3g}")) for epsilon in np.geomspace(0.02, 3.5, 40)]
