"""Additive noise: what it loses, how wide its margins are, and what it takes."""

import importlib.util
import json
import math
from fractions import Fraction
from functools import partial
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import privacy
from discreet.kernel import mechanism as module
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity

_spec = importlib.util.spec_from_file_location("evidence", Path(__file__).parents[1] / "broken" / "evidence.py")
evidence = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(evidence)

ALARM = 1e-10
COUNT = Sensitivity(groups=1, size=1)
BOTH = [Laplace, Gaussian]
INT64 = np.iinfo(np.int64)


def real(x):
    return mpmath.mpf(x.numerator) / x.denominator


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1, 10), Fraction(1), Fraction(3)])
def test_a_count_loses_exactly_epsilon(epsilon):
    noise = Laplace(1 / epsilon)
    assert noise.loss(COUNT).epsilon == epsilon
    assert noise.loss(COUNT).rho == epsilon**2 / 2
    assert noise.loss(COUNT).delta == 0
    assert evidence.worst_of_additive(partial(privacy.pmf, noise), 1, 30) == pytest.approx(float(epsilon), rel=1e-9)
    assert evidence.hockey_stick(*pair(noise, 1), float(epsilon) * (1 + 1e-9)) < 1e-12


def pair(noise, shift, reach=60):
    return evidence.shifted(partial(privacy.pmf, noise), 0, -reach, reach), evidence.shifted(
        partial(privacy.pmf, noise), shift, -reach, reach
    )


@pytest.mark.long
@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=5).filter(any),
    st.fractions(Fraction(1, 5), 20, max_denominator=50),
)
@settings(max_examples=100, deadline=None)
def test_laplace_loss_is_the_worst_log_ratio(change, scale):
    noise = Laplace(scale)
    # Coordinates are independent: the worst log-ratio of the vector is the sum of theirs.
    worst = sum(evidence.worst_of_additive_by(partial(privacy.pmf, noise), c, 8) for c in change)
    l1, l2 = sum(map(abs, change)), sum(c * c for c in change)
    assert worst == pytest.approx(float(noise.loss(Sensitivity.of_norms(l1, l2)).epsilon), rel=1e-9)
    size, groups = max(map(abs, change)), sum(c != 0 for c in change)
    assert worst <= float(noise.loss(Sensitivity(groups, size)).epsilon) * (1 + 1e-9)


@given(st.integers(1, 8), st.integers(1, 9), st.data())
def test_no_change_within_a_sensitivity_is_larger_than_its_norms(groups, size, data):
    change = data.draw(st.lists(st.integers(-size, size), min_size=groups, max_size=groups))
    bound = Sensitivity(groups, size)
    assert sum(map(abs, change)) <= bound.l1 == groups * size
    assert sum(c * c for c in change) <= bound.l2_squared == groups * size * size


@pytest.mark.parametrize("sigma", ["1/2", "1", "3", "20/3"])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_gaussian_loss_bounds_every_renyi_divergence(sigma, shift):
    noise = Gaussian(sigma)
    rho = noise.loss(Sensitivity(groups=1, size=shift)).rho
    assert rho == Fraction(shift**2) / (2 * noise.scale**2)
    with mpmath.workdps(40):
        s = real(noise.scale)

        def log_weight(k):
            return -((k / s) ** 2) / 2

        total = mpmath.fsum(mpmath.exp(log_weight(k)) for k in range(-200, 201))
        for order in ("1.0001", "1.1", "1.5", "2", "2.7", "5", "20"):
            a = mpmath.mpf(order)
            reach = range(int(-30 * s - 2 * a * shift) - 30, int(30 * s + 2 * a * shift) + 31)
            terms = mpmath.fsum(mpmath.exp(a * log_weight(k) + (1 - a) * log_weight(k - shift)) for k in reach)
            divergence = mpmath.log(terms / total) / (a - 1)
            assert divergence <= a * real(rho) * (1 + mpmath.mpf(10) ** -30)
            if order in ("2", "5", "20"):  # attained where order·shift is a whole number
                assert divergence >= a * real(rho) * (1 - mpmath.mpf(10) ** -30)


def test_gaussian_loss_adds_over_coordinates():
    assert Gaussian(3).loss(Sensitivity(groups=4, size=5)).rho == Fraction(4 * 25, 18)
    assert Gaussian(3).loss(Sensitivity.of_norms(l1=9, l2_squared=7)).rho == Fraction(7, 18)
    assert Gaussian(3).loss(COUNT).epsilon is None
    assert Laplace(3).loss(Sensitivity.of_norms(l1=9, l2_squared=81)).epsilon == 3


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, ">i4", ">i8"])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 4), (2, 0), (0,), (2, 3, 4)])
def test_integers_of_every_width_and_shape_are_accepted(kind, dtype, shape):
    values = np.full(shape, 100, dtype)
    noisy = kind(1).perturb(values)
    assert isinstance(noisy, np.ndarray)
    assert (noisy.dtype, noisy.shape) == (np.int64, shape)
    assert (np.abs(noisy - 100) < 100).all()
    assert (values == 100).all()


@pytest.mark.parametrize("kind", BOTH)
def test_slices_of_arrays_and_numpy_integers_are_accepted(kind):
    values = np.arange(24).reshape(4, 6)
    for part in (values[::2, ::3], values.T, values[::-1], values[1]):
        assert kind("1/1000").perturb(part).tolist() == part.tolist()  # so little noise that there is none
    for number in (5, np.int8(5), np.int64(5), np.uint8(5)):
        noisy = kind("1/1000").perturb(number)
        assert type(noisy) is int
        assert noisy == 5


@pytest.mark.parametrize("kind", BOTH)
def test_noise_is_fresh_for_every_value(kind):
    noisy = kind(20).perturb(np.zeros((200, 200), np.int64))
    for one, other in ((noisy[0], noisy[1]), (noisy[:, 0], noisy[:, 1])):
        assert not np.array_equal(one, other)
    flat = noisy.ravel().astype(float)
    again = kind(20).perturb(np.zeros(40_000, np.int64)).astype(float)
    for other in (np.roll(flat, 1), np.roll(flat, 200), again):
        assert abs(np.corrcoef(flat, other)[0, 1]) < 7 / 200  # seven standard deviations
    single = {kind(10**6).perturb(0) for _ in range(50)}
    assert len(single) > 40


@pytest.mark.parametrize("noise", [Laplace(2), Gaussian(2)], ids=str)
def test_single_draws_and_arrays_have_the_same_distribution(noise):
    assert evidence.chi_square([noise.perturb(7) - 7 for _ in range(20_000)], partial(privacy.pmf, noise)) > ALARM
    assert evidence.chi_square(noise.perturb(np.full(100_000, 7)) - 7, partial(privacy.pmf, noise)) > ALARM
    for wrong in ("1.8", "2.2"):
        assert (
            evidence.chi_square(noise.perturb(np.full(100_000, 7)) - 7, partial(privacy.pmf, type(noise)(wrong)))
            < ALARM
        )


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    "bad",
    [1.0, math.nan, "5", None, True, np.True_, [1, 2], (1,), np.float64(1)]
    + [np.array([1], t) for t in (float, bool, np.uint8, np.uint64, object, "U1", complex, "m8[s]")],
    ids=repr,
)
def test_other_values_are_refused_by_name_and_type(kind, bad):
    with pytest.raises(TypeError, match="values"):
        kind(1).perturb(bad)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("value", [1 << 63, -(1 << 63) - 1, 123456789012345678901234567890])
def test_a_python_integer_beyond_int64_is_refused_without_being_shown(kind, value):
    with pytest.raises(ValueError, match="values") as caught:
        kind(1).perturb(value)
    assert str(value) not in str(caught.value)


@pytest.mark.parametrize("kind", BOTH)
def test_values_at_the_ends_are_clamped_after_the_noise(kind):
    for value in (INT64.max, INT64.min):
        assert type(kind(50).perturb(int(value))) is int
        noisy = kind(50).perturb(np.full(1000, value))
        moved = noisy.astype(object) - int(value)
        assert (moved == 0).sum() > 400  # what would have passed the end
        assert (moved != 0).sum() > 400  # and the rest as it fell
        assert (np.sign(moved[moved != 0]) == (-1 if value > 0 else 1)).all()
        assert kind(50).perturb(np.array(value)).shape == ()


def test_sums_are_formed_in_unbounded_integers():
    ends = [INT64.min, INT64.min + 1, -5, -1, 0, 1, 5, INT64.max - 1, INT64.max]
    values, drawn = (np.array(x, np.int64) for x in zip(*[(a, b) for a in ends for b in ends], strict=True))
    exact = [min(INT64.max, max(INT64.min, int(a) + int(b))) for a, b in zip(values, drawn, strict=True)]
    assert module.add_saturating(values, drawn).tolist() == exact
    assert module.add_saturating(values, drawn.astype(object)).tolist() == exact
    far = np.array([10**40, -(10**40)], object)
    assert module.add_saturating(np.zeros(2, np.int64), far).tolist() == [INT64.max, INT64.min]


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "x", None, "1e-101", "1e101", [1]])
def test_bad_scales_are_refused_by_name(kind, bad):
    with pytest.raises((ValueError, TypeError), match="scale"):
        kind(bad)


@pytest.mark.parametrize("bad", [0, -1, 1.0, True, "1", None])
def test_bad_sensitivities_are_refused_by_name(bad):
    for name, make in {
        "groups": lambda: Sensitivity(bad, 1),
        "size": lambda: Sensitivity(1, bad),
        "l1": lambda: Sensitivity.of_norms(bad, 1),
        "l2_squared": lambda: Sensitivity.of_norms(1, bad),
    }.items():
        with pytest.raises((ValueError, TypeError), match=name):
            make()


def test_norms_are_integers_however_they_are_given():
    for found in (Sensitivity.of_norms(np.int64(60), np.int64(1000)), Sensitivity(np.int64(5), np.int32(20))):
        assert {type(found.l1), type(found.l2_squared)} == {int}
    assert Sensitivity.of_norms(l1=100, l2_squared=2000) == Sensitivity(groups=5, size=20)
    assert Sensitivity.of_norms(l1=7, l2_squared=20) != Sensitivity.of_norms(l1=7, l2_squared=21)


@given(st.integers(1, 10**6), st.integers(1, 10**9))
def test_norms_are_kept_and_never_beyond_what_integers_allow(l1, l2_squared):
    found = Sensitivity.of_norms(l1, l2_squared)
    assert found.l1 <= l1
    assert found.l2_squared == min(l2_squared, l1 * l1)


def test_noise_and_sensitivity_are_written_as_canonical_json():
    for noise in (Laplace("10/3"), Laplace(0.1), Gaussian("1e-3"), Gaussian(7)):
        text = str(noise)
        data = json.loads(text)
        assert json.dumps(data, sort_keys=True, separators=(",", ":")) == text
        assert {"laplace": Laplace, "gaussian": Gaussian}[data["name"]](data["scale"]) == noise
    data = json.loads(str(Sensitivity(groups=5, size=20)))
    assert data == {"l1": "100", "l2_squared": "2000"}
    again = Sensitivity.of_norms(int(data["l1"]), int(data["l2_squared"]))
    assert (again.l1, again.l2_squared) == (100, 2000)


def test_a_value_that_is_not_a_sensitivity_is_refused_by_name():
    for call in (lambda: Laplace(1).loss(1), lambda: Gaussian(1).loss("1")):
        with pytest.raises(TypeError, match="sensitivity must be of type Sensitivity"):
            call()


LEAST, MOST = -(2**63), 2**63 - 1
ALIKE = (2**64 - 1) // 3  # twice this wraps to a number that differs from it in every bit


@pytest.mark.parametrize(
    ("value", "noise"),
    [(MOST, 1), (LEAST, -1), (MOST, MOST), (LEAST, LEAST), (ALIKE, ALIKE), (MOST, LEAST), (5, -7), (0, 0)],
)
def test_a_sum_beyond_int64_is_exact_for_one_value_and_clamped_in_an_array(value, noise):
    pair = np.array([value], np.int64), np.array([noise], np.int64)
    assert module._add_one(*pair) == value + noise
    assert module.add_saturating(*pair).tolist() == [min(max(value + noise, LEAST), MOST)]
