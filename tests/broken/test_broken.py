"""Every broken mechanism is caught, by evidence that our own mechanisms pass."""

import importlib.util
import math
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from discreet import privacy
from discreet.kernel.errors import Refused
from discreet.kernel.event import Event
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
from discreet.ledger_sqlite import memory_ledger
from discreet.privacy.calibration import laplace_for


def beside(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


evidence, broken = beside("evidence"), beside("mechanisms")
EPSILON = float(broken.EPSILON)
OURS = laplace_for(Sensitivity(groups=1, size=1), broken.EPSILON)
ALARM = 1e-10


def test_our_noise_loses_its_epsilon_and_not_more():
    assert evidence.worst_of_additive(partial(privacy.pmf, OURS), 1, 40) == pytest.approx(EPSILON, rel=1e-12)
    wider = laplace_for(Sensitivity(groups=1, size=3), broken.EPSILON)
    assert evidence.worst_of_additive(partial(privacy.pmf, wider), 3, 40) == pytest.approx(EPSILON, rel=1e-12)
    assert evidence.hockey_stick(*pair(partial(privacy.pmf, OURS)), EPSILON) < 1e-15


def pair(pmf):
    return evidence.shifted(pmf, 0, -40, 40), evidence.shifted(pmf, 1, -40, 40)


@pytest.mark.parametrize(
    ("name", "worst"),
    [
        ("no noise", math.inf),
        ("uniform noise", math.inf),
        ("half the noise", 2 * EPSILON),
        ("two zeros", EPSILON + math.log(2)),
        ("cut tail", math.inf),
        ("folded tail", math.inf),
    ],
)
def test_a_broken_distribution_loses_more_than_it_claims(name, worst):
    pmf = broken.LAWS[name]
    assert math.fsum(pmf(k) for k in range(-200, 201)) == pytest.approx(1)
    assert evidence.worst_of_additive(pmf, 1, 40) == pytest.approx(worst)
    assert evidence.hockey_stick(*pair(pmf), EPSILON) > 1e-4


@pytest.mark.parametrize("name", broken.LAWS)
def test_chi_square_distinguishes_broken_samples_from_ours(name):
    ours = OURS.perturb(np.zeros(100_000, np.int64))
    assert evidence.chi_square(ours, partial(privacy.pmf, OURS)) > ALARM
    samples = broken.sampled(broken.LAWS[name], 100_000, seed=1)
    assert evidence.chi_square(samples, partial(privacy.pmf, OURS)) < ALARM
    assert evidence.chi_square(samples, broken.LAWS[name]) > ALARM


def test_float_noise_returns_values_that_a_neighbour_cannot():
    textbook, rng = broken.FloatLaplace(float(broken.SCALE)), np.random.default_rng(3)
    outputs = [textbook.release(0.0, rng) for _ in range(400)]
    assert evidence.share_unreachable(outputs, 0.0, textbook.reachable) == 0
    share = evidence.share_unreachable(outputs, 1.0, textbook.reachable)
    print(f"outputs of 0 that 1 cannot give: {share:.2f}")
    assert share > 0.2


@pytest.mark.parametrize("mechanism", [OURS, Gaussian(2), Laplace(10**6), Gaussian(10**6)])
def test_integer_noise_reaches_the_same_numbers_from_both_neighbours(mechanism):
    outputs = mechanism.perturb(np.zeros(2000, np.int64)).tolist()
    # 64 bits below the least probability that floats can tell: the support is all integers.
    assert evidence.share_unreachable(outputs, 1, lambda y, value: privacy.pmf(mechanism, y - value) > 0) == 0


def test_seeded_noise_repeats_and_ours_does_not():
    values = np.zeros(200, np.int64)
    seeded = broken.SeededNoise(seed=7)
    assert evidence.repeats(seeded.perturb, values)
    assert np.array_equal(seeded.perturb(values + 1) - seeded.perturb(values), values + 1)  # differences are exact
    assert not evidence.repeats(OURS.perturb, values)
    assert not evidence.repeats(Gaussian(3).perturb, values)


ROWS = [("ana", 3), ("ana", 4), ("bo", 10), ("cy", 9), ("cy", 9), ("cy", 9), ("di", 120), ("ed", -50)]


def test_a_forgotten_clip_moves_the_total_by_more_than_its_sensitivity():
    sensitivity = Sensitivity(groups=1, size=10)
    assert evidence.moved_by_one_unit(broken.clipped_sum, ROWS) <= sensitivity.l1
    assert evidence.moved_by_one_unit(broken.sum_without_clip, ROWS) == 120
    assert evidence.moved_by_one_unit(broken.sum_of_clipped_rows, ROWS) == 27


class PaysFirst:
    """Our order: charge, then read. The ledger has no way to give back."""

    def __init__(self, rows, budget):
        self.rows, self._ledger = rows, memory_ledger(name="secret", budget=Budget(budget))

    @property
    def spent(self):
        return self._ledger.spent().epsilon

    def ask(self, question, price):
        try:
            self._ledger.charge(Loss(price), Event(mechanism="{}", sensitivity="{}", question="?"))
        except Refused:
            raise PermissionError from None
        question(self.rows)


SECRET = np.random.default_rng(5).integers(0, 2, 300).tolist()


@pytest.mark.parametrize("curator", [broken.RefundingCurator, broken.LateCurator])
def test_a_refund_on_error_discloses_bits(curator):
    price, ones = Fraction(1, 100), sum(SECRET)
    learned, paid = evidence.bits_for_the_price(curator(SECRET, budget=2), SECRET, price)
    assert learned == 300
    assert paid == (300 - ones) * price < 2


def test_charging_first_stops_the_attack_at_the_budget():
    learned, paid = evidence.bits_for_the_price(PaysFirst(SECRET, budget=Fraction(1, 5)), SECRET, Fraction(1, 100))
    assert (learned, paid) == (20, Fraction(1, 5))  # the crashes themselves are forbidden elsewhere; here they cost


def test_a_sparse_vector_without_noise_on_its_answers_is_caught():
    pmf = broken.laplace_pmf(2 / EPSILON)
    wrong = [broken.sparse_vector_without_query_noise(answers, 2, pmf) for answers in ((2, 3), (3, 2))]
    assert evidence.max_divergence(*wrong) == math.inf
    slow = broken.laplace_pmf(4 / EPSILON)
    right = [broken.above_threshold(answers, 2, pmf, slow) for answers in ((2, 3, 2), (3, 2, 1))]
    assert 0.1 < evidence.max_divergence(*right) <= EPSILON * (1 + 1e-6)


def test_the_evidence_is_right_on_distributions_computed_by_hand():
    p, q = {"a": 0.75, "b": 0.25}, {"a": 0.25, "b": 0.75}
    assert evidence.max_divergence(p, q) == pytest.approx(math.log(3))
    assert evidence.hockey_stick(p, q, 0) == pytest.approx(0.5)
    assert evidence.hockey_stick(p, q, math.log(2)) == pytest.approx(0.25)
    assert evidence.renyi(p, q, 2) == pytest.approx(math.log(0.75**2 / 0.25 + 0.25**2 / 0.75))
    assert evidence.max_divergence({"a": 1}, {"a": 0.5, "b": 0.5}) == math.inf
    assert evidence.chi_square_of_choices([0] * 500 + [1] * 500, [0.5, 0.5]) == pytest.approx(1)
    assert evidence.chi_square_of_choices([0] * 800 + [1] * 200, [0.5, 0.5]) < ALARM
