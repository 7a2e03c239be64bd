"""One unit moves the integers of a family by the ball at most, whatever its rows are, and the bound is used."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from publish.hospital import curator_on, visits

from discreet.engines.row_sums import summable
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.model_release import Combine, noisy_sum
from discreet.kernel.reservation import CLIP_RADIUS, reserve
from discreet.publish.family import block_entries
from discreet.publish.marginals.axes import table_shape
from discreet.publish.parts import FamilyPart
from discreet.publish.plan import PublicationPlan
from discreet.publish.planning import plan_parts

KEYS = ["ward", "sex", "age", "day", "DATE_TRUNC('month', day)", "age >= 18", "ward, sex", "sex, day", "ward, age", ""]
NUMBERS = ["COUNT(*)", "COUNT(cost)", "SUM(cost)", "SUM(age - 50)", "AVG(cost)", "SUM(cost), AVG(age)"]
BUDGETS = {Gaussian: "epsilon = 8\ndelta = 1e-6", Laplace: "epsilon = 8"}


class QuietGaussian(Gaussian):
    """Noise that is not added."""

    def perturb(self, values):
        return values


class QuietLaplace(Laplace):
    def perturb(self, values):
        return values


QUIET = {Gaussian: QuietGaussian(CLIP_RADIUS), Laplace: QuietLaplace(CLIP_RADIUS)}


class Rows:
    """Codes and values, in batches of whole units."""

    def __init__(self, family, rows, units):
        self.low, self.high = np.array(family.rows.bounds, float).reshape(-1, 2).T
        self.rows, self.units, self.grouped = rows, units, True

    def batches(self, size):
        yield self.rows, self.units


@pytest.fixture(scope="module")
def curators():
    opened = {noise: curator_on(visits(10), budget=budget) for noise, budget in BUDGETS.items()}
    yield opened
    for curator in opened.values():
        curator.close()


tables = st.lists(
    st.tuples(st.sampled_from(KEYS), st.sampled_from(NUMBERS), st.sampled_from(["1/100", "1", "7"])),
    min_size=2,
    max_size=5,
)
row_bounds = st.sampled_from([1, 2, 3, 7, 100])
noises = st.sampled_from(list(QUIET))


def family_of(curators, noise, tables, rows):
    """Return the family of a random plan; None if its tables do not add up."""
    text = f"[release]\nname = 'x'\nepsilon = 2\nrows = {rows}\n"
    for index, (keys, numbers, weight) in enumerate(tables):
        grouped = f" GROUP BY {keys}" if keys else ""
        sql = f"SELECT {keys + ', ' if keys else ''}{numbers} FROM visits{grouped}"
        text += f'[tables.t{index}]\nsql = "{sql}"\nweight = "{weight}"\n'
    parts = plan_parts(curators[noise], PublicationPlan.parse(text))
    return next((part.family for part in parts if isinstance(part, FamilyPart)), None)


def integers(family, noise, rows, units):
    """Return the integers that the noise of a family is added to."""
    sizes = tuple(int(np.prod(table_shape(family.axes, block.table))) for block in family.blocks)
    found = noisy_sum(
        summable(Rows(family, rows, units)),
        block_entries,
        family._public,
        size=sum(sizes),
        radius=CLIP_RADIUS,
        reservation=reserve([QUIET[noise]]),
        combine=Combine.SUM,
        blocks=sizes,
    )
    assert np.array_equal(found, np.rint(found))
    return [int(number) for number in found]


def norm(moved, noise):
    """The l1 norm or the squared l2 norm as a share of the ball, of exact integers."""
    if noise is Laplace:
        return sum(map(abs, moved)) / CLIP_RADIUS
    return sum(each * each for each in moved) / CLIP_RADIUS**2


def wild_rows(family, draw, count):
    """Rows with any codes; values are anything that a column can hold, also outside of its range."""
    codes = [draw.integers(0, axis.size, count) for axis in family.keys.coded]
    values = len(family.rows.bounds) - len(codes)
    odd = np.array([0.0, 0.5, 500, -1e300, 1e300, np.inf, -np.inf, np.nan, 5e-324, 123.456])
    return np.column_stack([*codes, *draw.choice(odd, (values, count)), np.zeros(count)])[:, : len(codes) + values]


@pytest.mark.long
@settings(max_examples=60)
@given(noise=noises, tables=tables, rows=row_bounds, seed=st.integers(0, 1 << 32))
def test_one_unit_moves_the_integers_of_a_family_by_the_ball_at_most(curators, noise, tables, rows, seed):
    family, draw = family_of(curators, noise, tables, rows), np.random.default_rng(seed)
    if family is None:
        return
    count = int(draw.integers(2, 40))
    units = np.sort(draw.integers(0, draw.integers(1, 6), count))
    units = np.unique(units, return_inverse=True)[1]
    data, gone = wild_rows(family, draw, count), units == draw.integers(0, units.max() + 1)
    here = integers(family, noise, data, units)
    kept = np.unique(units[~gone], return_inverse=True)[1]
    there = integers(family, noise, data[~gone], kept) if not gone.all() else [0] * len(here)
    assert norm([a - b for a, b in zip(here, there, strict=True)], noise) <= 1


@pytest.mark.long
@settings(max_examples=60)
@given(noise=noises, tables=tables, rows=row_bounds, extra=st.integers(0, 3))
def test_the_worst_unit_of_a_family_uses_the_ball(curators, noise, tables, rows, extra):
    """As many rows as the bound allows, or more, in one cell, with values at the ends: at most 10 % are wasted."""
    family = family_of(curators, noise, tables, rows)
    if family is None:
        return
    ends = [
        max(measure.ends, key=lambda end: abs(end - float(measure.centre)))
        for measure in family.measures
        if measure.expr
    ]
    row = [0.0] * len(family.keys.coded) + ends
    data = np.array([row] * (rows + extra))
    moved = integers(family, noise, data, np.zeros(len(data), np.int64))
    share = norm(moved, noise) ** (1 if noise is Laplace else 0.5)
    assert 0.9 < share <= 1


def test_a_unit_within_its_bound_is_not_clipped(curators):
    """Each of its rows counts in full in every table, so that nothing is biased."""
    for noise in QUIET:
        family = family_of(
            curators, noise, [("ward", "COUNT(*)", "1"), ("sex", "COUNT(*)", "7"), ("", "SUM(cost)", "1")], 3
        )
        one = integers(family, noise, np.array([[0.0, 1.0, 500.0]]), np.zeros(1, np.int64))
        three = integers(family, noise, np.array([[0.0, 1.0, 500.0]] * 3), np.zeros(3, np.int64))
        assert three == [3 * each for each in one]
