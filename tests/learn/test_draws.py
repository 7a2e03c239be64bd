"""For every noisy sum of every model: one person changes it by at most the radius, and rows do not interact."""

import numpy as np
import pytest
from sklearn.base import clone

from discreet.engines.row_sums import sum_rows
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.reservation import CLIP_RADIUS, clipped_sum_sensitivity, reserve
from discreet.learn import fit_session
from discreet.learn.row_sources import array_rows
from tests.learn.every_model import MODELS, UNITS, X, Y, name_of


class QuietLaplace(Laplace):
    def perturb(self, values):
        TOTALS.append(values)
        return values


class QuietGaussian(Gaussian):
    def perturb(self, values):
        TOTALS.append(values)
        return values


TOTALS = []  # the integers that noise would have been added to


@pytest.fixture
def draws(monkeypatch):
    """Everything that a model draws while it is fitted."""
    found = []

    def watching(data, rule, public, **more):
        noise = more["reservation"].next_noise
        found.append((data, rule, public, {key: more[key] for key in more if key != "reservation"}, noise))
        return sum_rows(data, rule, public, **more)

    monkeypatch.setattr(fit_session, "sum_rows", watching)
    return found


def again(draw, rows):
    """Return the exact integers of a draw on other rows."""
    _, rule, public, more, noise = draw
    quiet = QuietLaplace(noise.scale) if isinstance(noise, Laplace) else QuietGaussian(noise.scale)
    TOTALS.clear()
    sum_rows(rows, rule, public, **more, reservation=reserve([quiet]))
    return [int(total) for total in TOTALS[0].ravel()]


def settings_of(model):
    """A model as it is used, with noise that matters, pure and with a delta."""
    pure = clone(model).set_params(epsilon=1, **({"classes": [0, 1]} if hasattr(model, "classes") else {}))
    return [pure.set_params(delta=0), clone(pure).set_params(delta=1e-6)]


@pytest.mark.long(only=["GaussianMixture-people", "GaussianMixture-rows"])
@pytest.mark.parametrize("unit", [None, UNITS], ids=["rows", "people"])
@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_one_person_moves_no_draw_by_more_than_the_ball(draws, model, unit):
    places = np.arange(len(X)) if unit is None else unit
    for setting in settings_of(model):
        draws.clear()
        setting.fit(X, Y, unit=unit)
        assert draws
        for draw in list(draws):
            data, *_, noise = draw
            numbers, ends = data.values, (data.low, data.high)
            here = again(draw, array_rows(numbers, ends, unit))
            for gone in np.random.default_rng(1).choice(np.unique(places), 6, replace=False):
                left = places != gone
                rest = array_rows(numbers[left], ends, None if unit is None else unit[left])
                moved = [a - b for a, b in zip(here, again(draw, rest), strict=True)]
                most = clipped_sum_sensitivity(noise)
                assert sum(map(abs, moved)) <= most.l1
                assert sum(each * each for each in moved) <= most.l2_squared <= CLIP_RADIUS**2


@pytest.mark.long(only=["GaussianMixture"])
@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_no_rows_numbers_depend_on_other_rows(draws, model):
    rng = np.random.default_rng(2)
    for setting in settings_of(model):
        setting.fit(X, Y)
    for data, rule, public, _, _ in draws:
        inside = rng.uniform(data.low, data.high, (350, len(data.low)))
        points = np.concatenate([np.clip(data.values, data.low, data.high), inside, data.values[:20] * 3])
        whole = told(rule, points, public)
        order = rng.permutation(len(points))
        assert np.array_equal(told(rule, points[order], public), whole[order], equal_nan=True)
        for start in range(0, len(points), 61):
            part = slice(start, start + 61)
            assert np.array_equal(told(rule, points[part], public), whole[part], equal_nan=True)
        for place in range(0, len(points), 97):
            assert np.array_equal(told(rule, points[[place]], public)[0], whole[place], equal_nan=True)


def told(rule, points, public):
    with np.errstate(all="ignore"):
        found = rule(np.asfortranarray(points), public)
    parts = found if isinstance(found, tuple) else (found,)
    return np.concatenate([np.reshape(part, (len(points), -1)) for part in parts], axis=1)
