"""Reserve budget for the noise of a model fit before any data is read."""

from collections.abc import Sequence

from discreet.kernel.errors import FAILED, LOG, Failed
from discreet.kernel.event import OWNER, Event, Receipt, combine_mechanisms
from discreet.kernel.ledger.protocol import Ledger
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
from discreet.kernel.numbers import check_type

CLIP_RADIUS = 1 << 20  # radius of the ball that every unit's vector is clipped to, in grid steps
Noise = Laplace | Gaussian


def clipped_sum_sensitivity(noise: Noise, *, substitution: bool = False) -> Sensitivity:
    """Return the sensitivity of a sum of vectors clipped to the ball: the l1 ball for Laplace noise, else the l2 ball.

    Claim: removing a unit moves the sum by a vector in the ball; replacing it, by the difference of two such vectors.
    Proof: the sum has one vector per unit. For integers l1 <= l2², so a bound on l2² is also one on l1.
    Needs: every vector is in the ball, which noisy_sum, noisy_histograms and noisy_sparse_sum ensure.
    Checked by: test_one_unit_moves_a_sum_by_the_ball_at_most, test_replacing_a_unit_moves_a_sum_by_two_balls_at_most
    Seal: 0841a619977d
    """
    radius = 2 * CLIP_RADIUS if substitution else CLIP_RADIUS
    return Sensitivity.of_norms(radius if isinstance(noise, Laplace) else radius * radius, radius * radius)


class Reservation:
    """Noise mechanisms that are already charged, to be used in order. Created by `reserve`.

    >>> reservation = reserve([Laplace(CLIP_RADIUS * 10), Laplace(CLIP_RADIUS * 10)])
    >>> reservation.loss, reservation.take_noise() == reservation.take_noise(), len(reservation)
    (Loss(epsilon=1/5, rho=1/100), True, 0)
    """

    def __init__(self, noises: Sequence[Noise], loss: Loss, ledger: Ledger | None, receipt: Receipt | None) -> None:
        self._remaining, self.loss, self.receipt, self._ledger = list(noises), loss, receipt, ledger

    def __len__(self) -> int:
        return len(self._remaining)

    @property
    def next_noise(self) -> Noise:
        """The mechanism of the next draw."""
        if not self._remaining:
            raise ValueError("reservation: all reserved noise has been used")
        return self._remaining[0]

    def take_noise(self) -> Noise:
        """Return the mechanism of the next draw and remove it from the reservation."""
        noise = self.next_noise
        del self._remaining[0]
        return noise

    def settle(self, answer: bytes) -> None:
        """Store the result before it is shown.

        Claim: the charge stands, and the result is stored with it, or Failed is raised with its fixed message.
        Proof: Ledger.settle; without a ledger nothing is stored. Every exception is caught.
        Needs: Ledger.settle.
        Checked by: test_a_fit_is_on_record_with_its_price_and_its_result,
            test_a_ledger_that_dies_before_the_answer_is_stored_fails_like_every_failure
        Seal: 6e24ac90fbfc
        """
        try:
            if self._ledger is not None and self.receipt is not None:
                self._ledger.settle(self.receipt, answer)
        except Exception:  # noqa: BLE001 - one fixed message after a charge
            LOG.exception("the result of a fit could not be stored after it was charged")
        else:
            return
        raise Failed(FAILED)  # outside the handler, so that no other exception is attached


def reserve(  # noqa: PLR0913 - keyword-only, most with a default
    noises: Sequence[Noise],
    *,
    cost: Loss | None = None,
    ledger: Ledger | None = None,
    question: str = "fit",
    by: str = OWNER,
    substitution: bool = False,
) -> Reservation:
    """Charge the noise of a model fit at once, before any data is read.

    Without a ledger nothing is charged; the owner accounts for the reservation's loss. `substitution` selects
    neighbours that differ in the data of one unit instead of its presence.

    Claim: all draws of the reservation together cost at most `cost`, which is charged first.
    Proof: their losses add up, even if the summands depend on earlier draws; each mechanism is used once.
    Needs: clipped_sum_sensitivity, Laplace.loss, Gaussian.loss, Loss.__add__, Ledger.charge.
    Checked by: test_a_purse_holds_what_was_paid_for_and_no_more, test_a_fit_is_on_record_with_its_price_and_its_result
    Seal: 2d33dee28882
    """
    if not noises or not all(isinstance(noise, Laplace | Gaussian) for noise in noises):
        raise TypeError("noises must be one or more Laplace or Gaussian mechanisms")
    sensitivities = [clipped_sum_sensitivity(noise, substitution=substitution) for noise in noises]
    loss = sum(
        (noise.loss(bound) for noise, bound in zip(noises, sensitivities, strict=True)),
        ZERO_LOSS,
    )
    charged = loss if cost is None else check_type(Loss, cost, "cost")
    if not charged.includes(loss):
        raise ValueError("cost must be at least the loss of the noise")
    mechanism, sensitivity = combine_mechanisms(
        [(str(noise), str(bound)) for noise, bound in zip(noises, sensitivities, strict=True)]
    )
    event = Event(mechanism=mechanism, sensitivity=sensitivity, question=question, by=by)
    return Reservation(noises, charged, ledger, None if ledger is None else ledger.charge(charged, event))
