"""The public way to noise: sums are formed first and fitted afterwards, and no value decides an error."""

import inspect

import numpy as np
import pytest

import discreet
from discreet.kernel import mechanism, noise
from discreet.kernel.mechanism import Gaussian, Laplace

LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
BOTH = pytest.mark.parametrize("kind", [Laplace, Gaussian])


class Scripted:
    """A sampler that draws what it was told."""

    def __init__(self, drawn):
        self.drawn = drawn
        self.ahead = iter(drawn)

    def draw(self, count):
        wide = any(value.bit_length() > 62 for value in self.drawn)
        return np.array(self.drawn[:count], object if wide else np.int64)

    def draw_one(self):
        value = next(self.ahead)
        return np.array([value], object if value.bit_length() > 63 else np.int64)


def scripted(monkeypatch, *drawn):
    for name in ("laplace_sampler", "gaussian_sampler"):
        monkeypatch.setattr(mechanism.noise, name, lambda numerator, denominator: Scripted(list(drawn)))


def fitted(value):
    return max(LEAST, min(MOST, value))


ENDS = [LEAST, LEAST + 1, -1, 0, 1, 5, MOST - 1, MOST]
SMALL = [0, 1, -1, 2**61, -(2**61), 2**62 - 1, -(2**62), 3]
HUGE = [10**40, -(10**40), 2**63, -(2**63), 2**63 - 1, -(2**63) - 1, 0, 2**64]


@BOTH
def test_noise_is_never_truncated_and_sums_are_clamped_afterwards(kind, monkeypatch):
    for drawn in (SMALL, HUGE):
        for shift in range(len(drawn)):
            turned = drawn[shift:] + drawn[:shift]
            for times in (1, 100):  # a short vector takes the draws that were made ahead
                scripted(monkeypatch, *turned * times)
                found = kind(10).perturb(np.array(ENDS * times))
                assert found.dtype == np.int64
                added = zip(ENDS * times, turned * times, strict=True)
                assert found.tolist() == [fitted(value + noise) for value, noise in added]
            for value in ENDS:
                scripted(monkeypatch, *turned)
                assert kind(10).perturb(value) == value + turned[0]  # a Python integer need not be fitted


@BOTH
@pytest.mark.parametrize("scale", ["1/1000", 1, 40, 10**6, 10**18, 10**19, 10**25, "1e100"])
def test_no_value_and_no_scale_raises_an_error(kind, scale):
    values = np.array([LEAST, MOST, 0, -1] * 500)
    found = kind(scale).perturb(values)
    assert found.dtype == np.int64
    assert found.shape == values.shape
    if scale == 10**25:
        # Nearly all are beyond int64 and are moved to its ends, half of them to each.
        assert np.isin(found, [LEAST, MOST]).mean() > 0.99
        assert 0.3 < (found == MOST).mean() < 0.7
    for value in (LEAST, MOST, 0):
        assert type(kind(scale).perturb(value)) is int
    if scale == 10**25:
        assert max(abs(kind(scale).perturb(0)) for _ in range(50)) > MOST


@BOTH
def test_noise_at_the_ends_of_int64_is_clamped_on_the_outer_side_only(kind):
    for end, inward in ((MOST, -1), (LEAST, 1)):
        found = kind(1000).perturb(np.full(20_000, end))
        moved = np.array([int(value) - end for value in found]) * inward
        assert moved.min() == 0
        assert 0.4 < (moved == 0).mean() < 0.6
        assert moved.max() > 3000 if kind is Laplace else moved.max() > 2000


@BOTH
def test_shapes_and_types_are_kept(kind):
    for shape in ((), (1,), (0,), (3, 4), (2, 0, 5), (2, 3, 4)):
        for dtype in (np.int8, np.int16, np.int32, np.int64, ">i8", "<i4"):
            found = kind(3).perturb(np.zeros(shape, dtype))
            assert found.shape == shape
            assert found.dtype == np.int64
    values = np.arange(24, dtype=np.int64)
    values.flags.writeable = False
    found = kind("1/1000").perturb(values.reshape(4, 6)[::-1, ::2])
    assert found.tolist() == values.reshape(4, 6)[::-1, ::2].tolist()
    assert type(kind("1/1000").perturb(np.int32(7))) is int


@pytest.mark.long
@BOTH
def test_a_long_array_gets_noise_of_its_own_in_every_part(kind):
    values = np.arange(300_001) * 10
    noise_of = {scale: kind(scale).perturb(values) - values for scale in ("1/1000", 10**15)}
    assert not noise_of["1/1000"].any()  # every value is in its place
    assert len(np.unique(noise_of[10**15])) > 300_000 - 10


@BOTH
def test_an_array_is_left_as_it_was(kind):
    values = np.arange(1000)
    kind(100).perturb(values)
    assert values.tolist() == list(range(1000))


@BOTH
@pytest.mark.parametrize(
    "values",
    [
        np.array([123457.0]),
        np.array([123457], np.uint64),
        np.array([True]),
        np.array([123457], object),
        np.array(["123457"]),
        np.array([123457], "m8[s]"),
        np.array([123457], "M8[s]"),
        np.array([123457 + 1j]),
        123457.0,
        "123457",
        [123457],
        None,
        True,
        np.float64(123457),
    ],
    ids=lambda values: str(getattr(values, "dtype", type(values).__name__)),
)
def test_wrong_types_are_refused_by_type_and_show_no_value(kind, values):
    with pytest.raises(TypeError, match="values must be") as caught:
        kind(1).perturb(values)
    assert "12345" not in str(caught.value)


@BOTH
def test_an_integer_beyond_int64_is_refused_and_not_shown(kind):
    for value in (MOST + 1, LEAST - 1, 10**40):
        with pytest.raises(ValueError, match="values must lie within int64") as caught:
            kind(1).perturb(value)
        assert not any(digit in str(caught.value).replace("int64", "") for digit in "0123456789")


@BOTH
@pytest.mark.parametrize(
    "scale", [0, -1, "0", "-1/10", 0.0, float("nan"), float("inf"), True, None, "", "1/0", "ten", 1j]
)
def test_a_scale_that_is_not_positive_is_refused(kind, scale):
    with pytest.raises((TypeError, ValueError), match="scale"):
        kind(scale)


@BOTH
def test_a_scale_is_parsed_exactly(kind):
    from fractions import Fraction

    for scale in (0.1, "0.1", "1/10", Fraction(1, 10), np.float32(0.1)):
        assert kind(scale).scale == Fraction(1, 10)


SEEDS = {"seed", "random_state", "rng", "generator", "random", "state", "source", "prng", "bit_generator", "key"}


def test_no_public_signature_takes_a_seed():
    looked_at = 0
    for name in discreet.__all__:
        thing = getattr(discreet, name)
        members = [thing]
        if inspect.isclass(thing):
            members += [member for key, member in inspect.getmembers(thing, callable) if not key.startswith("_")]
        for member in members:
            try:
                parameters = set(inspect.signature(member).parameters)
            except (TypeError, ValueError):
                continue
            looked_at += 1
            # The ledger's `key` is that of a question asked twice, not a cipher's.
            allowed = {"key", "state"} if "edger" in name or name in {"Curator", "Event", "Receipt"} else set()
            assert not parameters & (SEEDS - allowed), (name, member)
    assert looked_at > 20
    for make in (noise.laplace_sampler, noise.gaussian_sampler):
        assert set(inspect.signature(make).parameters) == {"numerator", "denominator"}
    with pytest.raises(TypeError):
        Laplace(10, seed=1)
    with pytest.raises(TypeError):
        Laplace(10).perturb(1, seed=1)


def test_seeding_ordinary_generators_changes_nothing():
    import random

    found = set()
    for _ in range(20):
        random.seed(7)
        np.random.seed(7)  # noqa: NPY002 - the very thing that must have no effect
        found.add(tuple(Laplace(10**9).perturb(np.zeros(4, np.int64)).tolist()))
    assert len(found) == 20


class Adding(np.ndarray):
    """An array that adds in its own way."""

    def __add__(self, other):
        return self


@BOTH
@pytest.mark.parametrize(
    "values",
    [np.ma.array([7] * 40, mask=[0, 1] * 20), np.array([[1, 2]]).view(np.matrix), np.arange(40).view(Adding)],
    ids=["masked", "matrix", "own sum"],
)
def test_array_subclasses_are_refused(kind, values):
    with pytest.raises(TypeError, match="values must be a plain array"):
        kind(1000).perturb(values)
