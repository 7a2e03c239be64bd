"""The privacy cost of a fit: its neighbouring relation and its noise scales."""

from collections.abc import Sequence
from fractions import Fraction

from discreet import privacy
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.numbers import Number, as_nonnegative, as_positive
from discreet.kernel.reservation import Noise
from discreet.privacy.calibration import reserved_noises

REMOVAL, REPLACEMENT = "removal", "replacement"


class FitLoss(Loss):
    """The privacy loss of a fit, under a neighbouring relation: removal or replacement of one unit.

    >>> FitLoss(Loss("1/2"), neighbours="removal", unit="row")
    Loss(epsilon=1/2, rho=1/8, for the removal of one row)
    """

    neighbours: str
    unit: str
    at_delta: Fraction  # the delta at which the epsilon was requested

    def __init__(self, loss: Loss, *, neighbours: str, unit: str, at_delta: Number = 0) -> None:
        super().__init__(loss.epsilon, loss.rho, loss.delta)
        object.__setattr__(self, "neighbours", neighbours)
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "at_delta", as_nonnegative(at_delta, "at_delta"))

    def __repr__(self) -> str:
        amounts = super().__repr__()[5:-1]
        if self.epsilon is None and self.at_delta > self.delta:
            epsilon, delta = float(privacy.to_epsilon(self, self.at_delta)), float(self.at_delta)
            amounts = f"epsilon={epsilon:.4g} at delta={delta:g}, rho={float(self.rho):.4g}"
        return f"Loss({amounts}, for the {self.neighbours} of one {self.unit})"


def cost_of(epsilon: Number, delta: Number) -> Loss:
    """Return the loss for an epsilon: pure without a delta, else the largest rho that is (epsilon, delta)-DP.

    >>> cost_of("1/2", 0)
    Loss(epsilon=1/2, rho=1/8)
    """
    if epsilon is None:
        raise ValueError("epsilon: declare the privacy cost of the fit, such as epsilon=1")
    return privacy.cost_of(Budget(as_positive(epsilon, "epsilon"), as_nonnegative(delta, "delta")), epsilon)


def is_substitution(neighbours: str) -> bool:
    """Return whether neighbours differ by replacement (substitution) rather than removal."""
    if neighbours not in (REMOVAL, REPLACEMENT):
        raise ValueError(f"neighbours must be {REMOVAL!r} or {REPLACEMENT!r}, not {neighbours!r}")
    return neighbours == REPLACEMENT


def noises_for(cost: Loss, shares: Sequence[Number], neighbours: str = REMOVAL) -> list[Noise]:
    """Return the noise of each release, with the budget divided in proportion to the shares.

    >>> from discreet.kernel.reservation import CLIP_RADIUS
    >>> [float(noise.scale / CLIP_RADIUS) for noise in noises_for(Loss(1), [1, 3])]
    [4.0, 1.3333333333333333]
    """
    return reserved_noises(cost, shares, substitution=is_substitution(neighbours))
