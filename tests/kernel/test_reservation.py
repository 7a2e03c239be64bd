"""Reserved noise: charged before it is drawn, used once, in order, and recorded with what it is."""

import pytest

from discreet.kernel.errors import FAILED, Failed
from discreet.kernel.event import Receipt
from discreet.kernel.loss import ZERO_LOSS, Budget, Loss
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
from discreet.kernel.reservation import (
    CLIP_RADIUS,
    Reservation,
    clipped_sum_sensitivity,
    reservation_charge,
    reserve,
)
from discreet.ledger_sqlite import memory_ledger

CENT = Loss("1/100")
ONE, TWO, THREE = (Laplace(CLIP_RADIUS * factor) for factor in (4, 5, 6))


@pytest.fixture
def ledger():
    with memory_ledger(name="demo", budget=Budget(1)) as ledger:
        yield ledger


def test_a_clipped_sum_moves_by_one_ball_or_by_two_if_a_unit_is_replaced():
    assert CLIP_RADIUS == 2**20
    for substitution, radius in ((False, 2**20), (True, 2**21)):
        norms = {noise: clipped_sum_sensitivity(noise, substitution=substitution) for noise in (ONE, Gaussian(1))}
        assert norms[ONE] == Sensitivity.of_norms(radius, radius**2)
        assert norms[Gaussian(1)] == Sensitivity.of_norms(radius**2, radius**2)
    assert clipped_sum_sensitivity(ONE) == clipped_sum_sensitivity(ONE, substitution=False)
    assert reserve([ONE]).loss == Loss("1/4")
    assert reserve([ONE], substitution=True).loss == Loss("1/2")


def test_reserved_noise_is_used_once_and_in_order():
    reservation = reserve([ONE, TWO, THREE])
    for noise in (ONE, TWO, THREE):
        assert reservation.next_noise is reservation.next_noise is noise
        assert reservation.take_noise() is noise
    for _ in range(2):
        with pytest.raises(ValueError, match="all reserved noise has been used"):
            print(reservation.next_noise)
        with pytest.raises(ValueError, match="all reserved noise has been used"):
            reservation.take_noise()


@pytest.mark.parametrize("wrong", [[], [ONE, 3], ["noise"], [3, ONE]])
def test_only_noise_is_reserved(wrong, ledger):
    with pytest.raises(TypeError, match="one or more Laplace or Gaussian"):
        reserve(wrong, ledger=ledger)
    assert ledger.spent() == ZERO_LOSS


def test_the_cost_is_at_least_the_loss_of_the_noise_and_is_what_is_charged(ledger):
    loss = Loss("1/4") + Loss("1/5")
    assert reserve([ONE, TWO]).loss == reserve([ONE, TWO], cost=loss).loss == loss
    assert reserve([ONE, TWO], cost=Loss("1/2"), ledger=ledger).loss == Loss("1/2") == ledger.spent()
    assert reserve([ONE, TWO], cost=Loss(None, 1)).loss == Loss(None, 1)
    for wrong, error in ((Loss("9/20", "1/100"), ValueError), (Loss("11/25"), ValueError), (1, TypeError)):
        with pytest.raises(error, match=r"^cost must"):
            reserve([ONE, TWO], cost=wrong, ledger=ledger)
    assert ledger.spent() == Loss("1/2")


def test_a_reservation_is_recorded_with_its_mechanisms_and_settled_with_its_result(ledger):
    reservation = reserve([ONE, TWO], ledger=ledger, question="fit of clinics", by="ana")
    (event,) = ledger.events()
    assert (event.id, event.loss, event.by, event.question) == (
        reservation.receipt.id,
        Loss("1/4") + Loss("1/5"),
        "ana",
        "fit of clinics",
    )
    assert event.mechanism == f'{{"name":"several","parts":[{ONE},{TWO}]}}'
    assert event.sensitivity == f"[{clipped_sum_sensitivity(ONE)},{clipped_sum_sensitivity(TWO)}]"
    reservation.settle(b"model")
    assert ledger.events()[0].state == "released"
    with pytest.raises(Failed) as failed:
        reservation.settle(b"another")
    assert str(failed.value) == FAILED
    assert reserve([ONE], ledger=ledger).receipt.id == ledger.events()[1].id
    assert ledger.events()[1].question == "fit"
    assert ledger.events()[1].by == "owner"


def test_a_reservation_charged_beforehand_is_redeemed_and_found_by_its_fingerprint(ledger):
    asked = {"cost": None, "question": "fit of clinics", "by": "ana"}
    assert reservation_charge([ONE], **asked)[1].fingerprints == ()
    loss, event = reservation_charge([ONE], **asked, fingerprint="abc")
    assert loss == Loss("1/4")  # of a unit's presence
    assert event.fingerprints == (("abc",),)
    (receipt,) = ledger.charge_together([(loss, event, None)])
    assert reserve([ONE], **asked, fingerprint="abc", ledger=ledger, prepaid=receipt).receipt == receipt
    assert ledger.spent() == loss


def test_without_a_ledger_nothing_is_charged_or_stored(ledger):
    reservation = reserve([ONE])
    assert reservation.receipt is None
    reservation.settle(b"model")
    Reservation([ONE], CENT, None, Receipt("r")).settle(b"model")
    Reservation([ONE], CENT, ledger, None).settle(b"model")
    assert ledger.events() == []
