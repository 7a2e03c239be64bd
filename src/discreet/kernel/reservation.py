"""Reserve budget for the noise of a model fit before any data is read."""

from collections.abc import Sequence

from discreet.kernel.errors import require, run_charged
from discreet.kernel.event import OWNER, Event, Receipt, combine_mechanisms
from discreet.kernel.ledger.ledger import Ledger
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
from discreet.kernel.numbers import check_type

CLIP_RADIUS = 1 << 20  # radius of the ball that every unit's vector is clipped to, in grid steps
Noise = Laplace | Gaussian


def clipped_sum_sensitivity(noise: Noise, *, substitution: bool = False) -> Sensitivity:
    """Return the sensitivity of a sum of vectors clipped to the ball: the l1 ball for Laplace noise, else the l2 ball.

    Claim: removing a unit moves the sum by a vector in the ball; replacing it, by the difference of two such vectors.
    Proof: the sum has one vector per unit. For integers l1 <= l2², so a bound on l2² is also one on l1.
    Needs: PartialSum.
    Checked by: test_one_unit_moves_a_sum_by_the_ball_at_most, test_replacing_a_unit_moves_a_sum_by_two_balls_at_most
    """
    radius = 2 * CLIP_RADIUS if substitution else CLIP_RADIUS
    return Sensitivity.of_norms(radius if isinstance(noise, Laplace) else radius * radius, radius * radius)


class Reservation:
    """Noise mechanisms that are already charged, to be used in order. Created by `reserve`.

    >>> reservation = reserve([Laplace(CLIP_RADIUS * 10), Laplace(CLIP_RADIUS * 10)])
    >>> reservation.loss, reservation.take_noise() == reservation.take_noise()
    (Loss(epsilon=1/5, rho=1/100), True)
    """

    def __init__(self, noises: Sequence[Noise], loss: Loss, ledger: Ledger | None, receipt: Receipt | None) -> None:
        self._remaining, self.loss, self.receipt, self._ledger = list(noises), loss, receipt, ledger

    @property
    def next_noise(self) -> Noise:
        """The mechanism of the next draw."""
        if not self._remaining:
            raise ValueError("reservation: all reserved noise has been used")
        return self._remaining[0]

    def take_noise(self) -> Noise:
        """Return the mechanism of the next draw and remove it from the reservation."""
        # Taken in one step, so that no other thread gets the same; if none is left, next_noise raises.
        return self._remaining.pop(0) if self._remaining else self.next_noise

    def settle(self, answer: bytes) -> None:
        """Store the result before it is shown.

        Claim: the charge stands, and the result is stored with it, or Failed is raised with its fixed message.
        Proof: Ledger.settle in run_charged; without a ledger nothing is stored.
        Needs: Ledger.settle, run_charged.
        Checked by: test_a_fit_is_recorded_with_its_cost_and_its_result,
            test_a_ledger_that_dies_before_the_answer_is_stored_fails_like_every_failure
        """
        ledger, receipt = self._ledger, self.receipt
        if ledger is not None and receipt is not None:
            run_charged("the result of a fit", lambda: ledger.settle(receipt, answer))


def reserve(  # noqa: PLR0913 - keyword-only, most with a default
    noises: Sequence[Noise],
    *,
    cost: Loss | None = None,
    ledger: Ledger | None = None,
    question: str = "fit",
    by: str = OWNER,
    substitution: bool = False,
    prepaid: Receipt | None = None,
    fingerprint: str = "",
) -> Reservation:
    """Charge the noise of a model fit at once, before any data is read.

    Without a ledger nothing is charged; the owner accounts for the reservation's loss. `substitution` selects
    neighbours that differ in the data of one unit instead of its presence. A `prepaid` receipt is that of a charge
    like reservation_charge's, made together with others.

    Claim: all draws of the reservation together cost at most `cost`, which is charged first.
    Proof: it is the charge of reservation_charge, made now or, if it was made before, redeemed; each mechanism is used
        once. A receipt that is redeemed again has no second answer, and nothing is shown before it is settled.
    Needs: reservation_charge, Reservation.take_noise, Reservation.settle, Ledger.charge, Ledger.redeem.
    Checked by: test_a_reservation_allows_what_was_charged_and_no_more,
        test_a_fit_is_recorded_with_its_cost_and_its_result, test_a_receipt_is_redeemed_for_its_own_event_only
    """
    charged, event = reservation_charge(
        noises, cost=cost, question=question, by=by, substitution=substitution, fingerprint=fingerprint
    )
    if ledger is None:
        return Reservation(noises, charged, None, None)
    receipt = ledger.redeem(prepaid, charged, event) if prepaid else ledger.charge(charged, event)
    return Reservation(noises, charged, ledger, receipt)


def reservation_charge(  # noqa: PLR0913 - keyword-only, most with a default
    noises: Sequence[Noise],
    *,
    cost: Loss | None,
    question: str,
    by: str,
    substitution: bool = False,
    fingerprint: str = "",
) -> tuple[Loss, Event]:
    """Return the charge of a reservation: its loss, and the event to record, which can be found by a `fingerprint`.

    Claim: the loss is at least that of all draws together, even if what is summed depends on earlier draws.
    Proof: their losses add up; each is that of a sum clipped to the ball, or of its distance from a target.
    Needs: clipped_sum_sensitivity, noisy_distance, Laplace.loss, Gaussian.loss, Loss.__add__, Loss.includes,
        combine_mechanisms.
    Checked by: test_a_reservation_allows_what_was_charged_and_no_more
    """
    if not noises or not all(isinstance(noise, Laplace | Gaussian) for noise in noises):
        raise TypeError("noises must be one or more Laplace or Gaussian mechanisms")
    bounds = [clipped_sum_sensitivity(noise, substitution=substitution) for noise in noises]
    loss = sum((noise.loss(bound) for noise, bound in zip(noises, bounds, strict=True)), ZERO_LOSS)
    charged = loss if cost is None else check_type(Loss, cost, "cost")
    require(charged.includes(loss), "cost must be at least the loss of the noise")
    mechanism, sensitivity = combine_mechanisms(
        [(str(noise), str(bound)) for noise, bound in zip(noises, bounds, strict=True)]
    )
    return charged, Event(
        mechanism=mechanism,
        sensitivity=sensitivity,
        question=question,
        by=by,
        fingerprints=((fingerprint,),) if fingerprint else (),
    )
