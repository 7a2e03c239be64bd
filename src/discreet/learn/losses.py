"""What a model's privacy is for: a loss that names its neighbours, and the noise that a price buys."""

from collections.abc import Sequence
from fractions import Fraction

from discreet.kernel.calibration import gaussian_for
from discreet.kernel.exact import Number, not_negative, positive
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.mechanism import Gaussian, Laplace, laplace_for
from discreet.kernel.purse import STEPS, Noise, ball

REMOVAL, REPLACEMENT = "removal", "replacement"


class FitLoss(Loss):
    """What a fit costs, and for which neighbours: `neighbours` says what differs between two data sets.

    >>> FitLoss(Loss("1/2"), neighbours="removal", unit="row")
    Loss(epsilon=1/2, rho=1/8, for the removal of one row)
    """

    neighbours: str
    unit: str
    at: Fraction  # the delta that was asked for

    def __init__(self, loss: Loss, *, neighbours: str, unit: str, at: Number = 0) -> None:
        super().__init__(loss.epsilon, loss.rho, loss.delta)
        object.__setattr__(self, "neighbours", neighbours)
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "at", not_negative(at, "at"))

    def __repr__(self) -> str:
        bounds = super().__repr__()[5:-1]
        if self.epsilon is None and self.at > self.delta:
            bounds = (
                f"epsilon={float(self.to_epsilon(self.at)):.4g} at delta={float(self.at):g}, rho={float(self.rho):.4g}"
            )
        return f"Loss({bounds}, for the {self.neighbours} of one {self.unit})"


def price_of(epsilon: Number, delta: Number) -> Loss:
    """Return what an epsilon buys: pure without a delta, else the largest rho that is (epsilon, delta)-DP.

    >>> price_of("1/2", 0)
    Loss(epsilon=1/2, rho=1/8)
    """
    if epsilon is None:
        raise ValueError("epsilon: say how much may be lost, such as epsilon=1")
    return Budget(positive(epsilon, "epsilon"), not_negative(delta, "delta")).price(epsilon)


def replaces(neighbours: str) -> bool:
    """Read the kind of neighbours."""
    if neighbours not in (REMOVAL, REPLACEMENT):
        raise ValueError(f"neighbours must be {REMOVAL!r} or {REPLACEMENT!r}, not {neighbours!r}")
    return neighbours == REPLACEMENT


def noises_for(price: Loss, shares: Sequence[Number], neighbours: str = REMOVAL) -> list[Noise]:
    """Return the noise of each draw, if the price is divided in proportion to the shares.

    >>> [float(noise.scale / STEPS) for noise in noises_for(Loss(1), [1, 3])]
    [4.0, 1.3333333333333333]
    """
    parts = [positive(share, "shares") for share in shares]
    total = sum(parts, Fraction(0))
    replacing = replaces(neighbours)
    if price.epsilon is not None:
        moved = ball(Laplace(STEPS), replacing=replacing)
        return [laplace_for(moved, price.epsilon * part / total) for part in parts]
    moved = ball(Gaussian(STEPS), replacing=replacing)
    return [gaussian_for(moved, rho=price.rho * part / total) for part in parts]
