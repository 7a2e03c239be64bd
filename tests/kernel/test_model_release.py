"""The models' door: each unit's vector is kept within a ball of integers, whatever its rows and its rule are."""

import logging
import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.engines.row_sums import sum_rows as noisy_sum  # what it adds is tested where batches are
from discreet.engines.row_sums import summable, whole_units
from discreet.kernel import model_release
from discreet.kernel.errors import FAILED, Failed, Refused
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.model_release import MAX_UNITS, Combine, check_row_wise
from discreet.kernel.reservation import CLIP_RADIUS, Reservation, clipped_sum_sensitivity, reserve
from discreet.ledger_sqlite import memory_ledger


class QuietLaplace(Laplace):
    """Laplace noise that is not added, to see what it would be added to."""

    def perturb(self, values):
        return values


class QuietGaussian(Gaussian):
    def perturb(self, values):
        return values


QUIET = {"l1": QuietLaplace(CLIP_RADIUS), "l2": QuietGaussian(CLIP_RADIUS)}


class Table:
    """Rows with units, in batches of a size that the reader does not choose."""

    def __init__(self, rows, units=None, most=10**9):
        self.rows, self.units, self.most = np.asarray(rows, float).reshape(len(rows), 2), units, most
        self.low, self.high = np.zeros(2), np.ones(2)
        self.grouped, self.reads = units is not None, 0

    def batches(self, size):
        self.reads += 1
        order = np.arange(len(self.rows)) if self.units is None else np.argsort(self.units, kind="stable")
        for start in range(0, len(order), min(size, self.most)):
            part = order[start : start + min(size, self.most)]
            yield self.rows[part], None if self.units is None else np.asarray(self.units)[part]


class Divided(Table):
    """The same, elsewhere: each unit's rows are in one of some shares, and a part is sent to each."""

    def __init__(self, rows, units, shares):
        super().__init__(rows, units)
        self.shares = np.asarray(shares)

    def sum_units(self, part):
        total = np.zeros(part.size, np.int64)
        for share in set(self.shares.tolist()):
            held = self.shares == share
            units = None if self.units is None else np.asarray(self.units)[held]
            total += pickle.loads(pickle.dumps(part))(whole_units(Table(self.rows[held], units).batches(5)))
        return total


def wild(rows, public):
    """Five numbers of a row, of very different sizes."""
    (scale,) = public
    x, y = rows[:, 0], rows[:, 1]
    return np.array([x * scale, y * scale, x * y, np.ones(len(rows)), x - y]).T


def cells(rows, public):
    (side,) = public
    return np.array([np.clip(rows[:, j], -1, 2) * side for j in (0, 1)]).T.astype(np.int64), np.ones((len(rows), 1))


def entries(rows, public):
    (scale,) = public
    places = np.clip(rows * 3, -5, 60).astype(np.int64)
    return places, rows * scale


def dense(table, noise, scale=1.0, combine=Combine.MEAN):
    return noisy_sum(table, wild, (scale,), size=5, radius=2, reservation=reserve([noise]), combine=combine) * (
        CLIP_RADIUS / 2
    )


def added(table, noise, scale=1.0):
    return noisy_sum(table, wild, (scale,), size=5, radius=2, reservation=reserve([noise]), combine=Combine.SUM) * (
        CLIP_RADIUS / 2
    )


def weight_of(noise):
    """As many steps as a unit may have in each of two tables."""
    return CLIP_RADIUS // 2 if isinstance(noise, Laplace) else math.isqrt(CLIP_RADIUS * CLIP_RADIUS // 2)


def histograms(table, noise):
    radius = Fraction(CLIP_RADIUS, weight_of(noise))
    return noisy_sum(table, cells, (4,), size=8, radius=radius, reservation=reserve([noise])).reshape(2, 4)


def counted(table, noise, scale=1.0):
    return histograms(table, noise).ravel() * weight_of(noise)


def scattered(table, noise, scale=1.0):
    return noisy_sum(table, entries, (scale,), size=40, radius=2, reservation=reserve([noise]), combine=Combine.SUM) * (
        CLIP_RADIUS / 2
    )


def uneven(table, noise, scale=1.0):
    """Blocks of different lengths, as those of tables with different numbers of cells."""
    return model_release.noisy_sum(
        summable(table),
        entries,
        (scale,),
        size=40,
        radius=2,
        reservation=reserve([noise]),
        combine=Combine.SUM,
        blocks=(2, 38),
    ) * (CLIP_RADIUS / 2)


def distance(table, noise, scale=1.0, target=None):
    """The l1 distance of the same sums from a target, in steps of the grid."""
    goal = np.arange(40) * 1000 if target is None else target
    reservation = reserve([noise])
    found = model_release.noisy_distance(summable(table), entries, (scale,), goal, radius=2, reservation=reservation)
    return np.array([found * (CLIP_RADIUS / 2)])


WAYS = {
    "mean": dense,
    "sum": added,
    "histograms": counted,
    "sparse": scattered,
    "uneven": uneven,
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
both_noises = pytest.mark.parametrize("noise", QUIET.values(), ids=QUIET)
numbers = st.one_of(st.floats(-2, 2), st.floats(), st.sampled_from([0.0, 1.0, 1e300, float("nan"), float("inf")]))
tables = st.lists(st.tuples(st.integers(0, 4), numbers, numbers), min_size=1, max_size=12)
scales = st.sampled_from([1e-6, 0.5, 1.0, 1.3, 1e3, 1e200])


def whole(numbers):
    assert np.abs(numbers - np.rint(numbers)).max() < 1e-3
    return [int(number) for number in np.rint(numbers)]


def size_of(moved, noise):
    """The l1 norm or the squared l2 norm, in exact integers."""
    return sum(map(abs, moved)) if isinstance(noise, Laplace) else sum(each * each for each in moved)


def most_of(noise, *, replacing=False):
    moved = clipped_sum_sensitivity(noise, substitution=replacing)
    return moved.l1 if isinstance(noise, Laplace) else moved.l2_squared


@pytest.mark.long(only=["l1-histograms", "l1-sparse"])
@every_way
@both_noises
@settings(max_examples=60, deadline=None)
@given(rows=tables, scale=scales, grouped=st.booleans())
def test_one_unit_moves_a_sum_by_the_ball_at_most(way, noise, rows, scale, grouped):
    """Also with values that are not finite, or so large that their squares are not."""
    units = np.array([unit for unit, _, _ in rows]) if grouped else np.arange(len(rows))
    points = np.array([point for _, *point in rows])
    with np.errstate(all="ignore"):
        here = whole(way(Table(points, units if grouped else None), noise, scale))
        gone = units == units[0]
        left = Table(points[~gone], units[~gone] if grouped else None)
        there = whole(way(left, noise, scale)) if not gone.all() else [0] * len(here)
    moved = [a - b for a, b in zip(here, there, strict=True)]
    assert size_of(moved, noise) <= most_of(noise)


@every_way
@both_noises
def test_the_bound_of_the_ball_is_attained(way, noise):
    """The bound is not only kept but used: noise for a larger ball than is needed would be wasted."""
    moved = whole(way(Table([[0.9, 0.1]]), noise, 1e3))
    assert size_of(moved, noise) >= 0.99 * most_of(noise)


@every_way
@both_noises
@settings(max_examples=30, deadline=None)
@given(rows=tables, other=st.tuples(numbers, numbers), scale=scales)
def test_replacing_a_unit_moves_a_sum_by_two_balls_at_most(way, noise, rows, other, scale):
    points = np.array([point for _, *point in rows])
    with np.errstate(all="ignore"):
        here = whole(way(Table(points), noise, scale))
        there = whole(way(Table([*points[:-1], other]), noise, scale))
    moved = [a - b for a, b in zip(here, there, strict=True)]
    assert size_of(moved, noise) <= most_of(noise, replacing=True)


@pytest.mark.long(only=["l2-sparse"])
@every_way
@both_noises
@settings(max_examples=40, deadline=None)
@given(rows=tables, scale=scales, cut=st.tuples(st.integers(1, 5), st.integers(0, 99)))
def test_batches_and_order_do_not_change_a_sum(way, noise, rows, scale, cut):
    """Else a unit could move what others add."""
    most, seed = cut
    units, points = np.array([unit for unit, _, _ in rows]), np.array([point for _, *point in rows])
    other = np.random.default_rng(seed).permutation(len(rows))
    with np.errstate(all="ignore"):
        once = way(Table(points, units), noise, scale)
        assert np.array_equal(once, way(Table(points[other], units[other], most), noise, scale))
        alone = way(Table(points), noise, scale)
        assert np.array_equal(alone, way(Table(points[other], None, most), noise, scale))


@pytest.mark.long(only=["l1-histograms", "l2-mean"])
@every_way
@both_noises
@settings(max_examples=40, deadline=None)
@given(rows=tables, scale=scales, seed=st.integers(0, 99))
def test_partial_sums_of_whole_units_add_up_to_the_same_integers(way, noise, rows, scale, seed):
    """However units are divided, and wherever a part is run: it is sent and comes back as integers."""
    units, points = np.array([unit for unit, _, _ in rows]), np.array([point for _, *point in rows])
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        divided = Divided(points, units, rng.integers(0, 3, 5)[units])
        assert np.array_equal(way(Table(points, units), noise, scale), way(divided, noise, scale))
        alone = Divided(points, None, rng.integers(0, 3, len(rows)))
        assert np.array_equal(way(Table(points), noise, scale), way(alone, noise, scale))


@every_way
def test_a_unit_split_over_two_partial_sums_would_leave_the_ball(way):
    """So that the test above could fail: what divides rows must not tear units."""
    points, units = np.array([[0.9, 0.1], [0.9, 0.1]]), [7, 7]
    torn = whole(way(Divided(points, units, [0, 1]), QUIET["l1"], 1e3))
    assert size_of(torn, QUIET["l1"]) > 1.9 * CLIP_RADIUS
    assert size_of(whole(way(Divided(points, units, [1, 1]), QUIET["l1"], 1e3)), QUIET["l1"]) <= CLIP_RADIUS


def test_sums_of_the_maximum_number_of_units_fit_into_64_bits():
    """With room for noise as large as a million million balls."""
    assert MAX_UNITS == 1 << 42  # as the documentation says
    assert np.iinfo(np.int64).max > (MAX_UNITS + 10**12) * CLIP_RADIUS

    class Vast(Table):
        def sum_units(self, part):
            return np.full(part.size, MAX_UNITS * CLIP_RADIUS)

    assert dense(Vast(np.zeros((1, 2))), Laplace(CLIP_RADIUS)) == pytest.approx(MAX_UNITS * CLIP_RADIUS, rel=1e-9)


@pytest.mark.parametrize("back", [np.zeros(1, np.int64), np.zeros(5), np.zeros((5, 1), np.int64), None])
def test_what_comes_back_is_as_many_integers_as_were_asked_for(back):
    """Numpy would spread one integer over all places, and then one unit would move every one of them."""

    class Strange(Table):
        def sum_units(self, part):
            return back

    with pytest.raises(Failed):
        dense(Strange(np.zeros((1, 2))), Laplace(CLIP_RADIUS))


@every_way
@both_noises
@settings(max_examples=30, deadline=None)
@given(rows=tables, scale=scales)
def test_what_a_unit_adds_does_not_depend_on_others(way, noise, rows, scale):
    """The sum over all units is the sum of what each gives alone."""
    units, points = np.array([unit for unit, _, _ in rows]), np.array([point for _, *point in rows])
    with np.errstate(all="ignore"):
        together = whole(way(Table(points, units), noise, scale))
        each = [whole(way(Table(points[units == unit], units[units == unit]), noise, scale)) for unit in set(units)]
    assert together == [sum(column) for column in zip(*each, strict=True)]


@every_way
def test_the_distribution_of_a_sum_on_neighbours_is_within_its_loss(way):
    """The worst log-ratio of Laplace noise is the l1 move over its scale; rho of Gaussian noise is l2²/(2·scale²)."""
    points, units = np.random.default_rng(1).normal(0.5, 2, (9, 2)), np.array([0, 0, 0, 1, 1, 2, 3, 3, 4])
    for noise in (QuietLaplace(CLIP_RADIUS * 3), QuietGaussian(CLIP_RADIUS * 3)):
        loss = reserve([noise]).loss
        here = whole(way(Table(points, units), noise, 50.0))
        for unit in set(units):
            there = whole(way(Table(points[units != unit], units[units != unit]), noise, 50.0))
            moved = size_of([a - b for a, b in zip(here, there, strict=True)], noise)
            if isinstance(noise, Laplace):
                assert moved / noise.scale <= loss.epsilon
            else:
                assert moved / (2 * noise.scale**2) <= loss.rho


@both_noises
def test_sums_are_right_where_nothing_is_clipped(noise):
    points = np.random.default_rng(2).random((1000, 2)) / 2
    units = np.random.default_rng(3).integers(0, 300, 1000)
    vectors = wild(points, (0.1,))
    assert dense(Table(points), noise, 0.1) / CLIP_RADIUS * 2 == pytest.approx(vectors.sum(axis=0), abs=1e-3)
    means = np.array([vectors[units == unit].mean(axis=0) for unit in set(units)])
    assert dense(Table(points, units), noise, 0.1) / CLIP_RADIUS * 2 == pytest.approx(means.sum(axis=0), abs=1e-3)
    table = np.histogram(points[:, 0], 4, (0, 1))[0]
    assert histograms(Table(points), noise)[0].tolist() == list(table)


small_tables = st.lists(st.tuples(st.integers(0, 4), numbers, numbers), min_size=2, max_size=8)


@both_noises
@settings(max_examples=40, deadline=None)
@given(rows=small_tables, scale=scales, grouped=st.booleans(), near=st.booleans())
def test_one_unit_moves_a_distance_by_the_radius_at_most(noise, rows, scale, grouped, near):
    """Whatever the target is, even if it is the exact sum of the others."""
    units = np.array([unit for unit, _, _ in rows]) if grouped else np.arange(len(rows))
    points = np.array([point for _, *point in rows])
    gone = units == units[0]
    if gone.all():
        units, gone = np.arange(len(rows)), np.arange(len(rows)) == 0
    table, left = (Table(points[kept], units[kept]) for kept in (units >= 0, ~gone))
    with np.errstate(all="ignore"):
        exact = np.array(whole(scattered(left, QUIET["l1"], scale)), np.int64)
        target = exact if near else np.arange(40) * 1000
        here, there = (whole(distance(each, noise, scale, target))[0] for each in (table, left))
    assert there == sum(abs(a - b) for a, b in zip(exact.tolist(), target.tolist(), strict=True))
    assert abs(here - there) <= CLIP_RADIUS


def test_the_distribution_of_a_distance_on_neighbours_is_within_its_loss():
    """And the loss is attained: a unit with the whole radius in one cell moves the distance by all of it."""
    table, nobody = Table([[0.9, 0.1], [0.9, 0.1]]), Table([[0.9, 0.1]])
    for noise in (QuietLaplace(CLIP_RADIUS * 3), QuietGaussian(CLIP_RADIUS * 3)):
        loss = reserve([noise]).loss
        here, there = (whole(distance(each, noise, 1e3, np.zeros(40, np.int64)))[0] for each in (table, nobody))
        assert CLIP_RADIUS - 2 <= here - there <= CLIP_RADIUS
        if isinstance(noise, Laplace):
            assert Fraction(here - there) / noise.scale <= loss.epsilon
        else:
            assert Fraction((here - there) ** 2) / (2 * noise.scale**2) <= loss.rho


def test_a_distance_is_exact_without_noise_and_gets_noise():
    rows = Table(np.random.default_rng(4).random((50, 2)), np.arange(50) // 3)
    exact = scattered(rows, QUIET["l1"])
    target = np.rint(exact).astype(np.int64) + np.arange(40) * (-1) ** np.arange(40)
    assert distance(rows, QUIET["l1"], target=target) == pytest.approx(np.arange(40).sum())
    seen = {float(distance(rows, kind(CLIP_RADIUS))[0]) for kind in (Laplace, Gaussian) for _ in range(5)}
    assert len(seen) == 10


def test_a_distance_from_too_large_a_target_is_refused_before_noise_is_taken():
    reservation = reserve([Laplace(CLIP_RADIUS)])
    for target in (np.full(40, 1 << 60), np.full(2, 1 << 60), np.zeros(40)):
        with pytest.raises(ValueError, match="target"):
            model_release.noisy_distance(
                summable(Table(np.zeros((5, 2)))), entries, (1.0,), target, radius=2, reservation=reservation
            )
    assert reservation.take_noise() == Laplace(CLIP_RADIUS)


@pytest.mark.parametrize("blocks", [(2, 37), (40, 0), (-2, 42)])
def test_blocks_that_do_not_make_up_a_vector_are_refused_before_noise_is_taken(blocks):
    reservation = reserve([Laplace(CLIP_RADIUS)])
    with pytest.raises(ValueError, match="blocks"):
        model_release.noisy_sum(
            summable(Table(np.zeros((5, 2)))),
            entries,
            (1.0,),
            size=40,
            radius=2,
            reservation=reservation,
            combine=Combine.SUM,
            blocks=blocks,
        )
    assert reservation.take_noise() == Laplace(CLIP_RADIUS)


def test_blocks_of_different_lengths_count_like_separate_tables():
    """Entries beyond the end of a short block are not counted in the next one."""
    rows = Table(np.array([[0.1, 0.1], [0.5, 0.9], [0.9, 0.9], [0.0, 0.5]]))
    sums = uneven(rows, QUIET["l1"]) / (CLIP_RADIUS / 2)
    assert sums == pytest.approx([0.1, 0.5, 0.1, 0.5, 1.8, *[0] * 35], abs=1e-5)


@every_way
def test_noise_is_added(way):
    """The quiet mechanisms are only for looking: the real ones differ from run to run."""
    table = Table(np.zeros((10, 2)))
    seen = {tuple(way(table, kind(CLIP_RADIUS))) for kind in (Laplace, Gaussian) for _ in range(5)}
    assert len(seen) == 10


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(rows=st.lists(st.lists(st.floats(width=64), min_size=3, max_size=3), min_size=1, max_size=5), l1=st.booleans())
def test_clipped_vectors_are_integers_within_the_ball(rows, l1):
    with np.errstate(all="ignore"):
        kept = model_release._clip_to_ball(np.array(rows), l1=l1)
    for vector in kept.tolist():
        exact = [int(number) for number in vector]
        assert exact == vector
        assert size_of(exact, QUIET["l1" if l1 else "l2"]) <= (CLIP_RADIUS if l1 else CLIP_RADIUS**2)


def test_the_ball_holds_even_if_the_shrinking_is_wrong(monkeypatch):
    """The comparison in whole numbers is the guard; the floats before it only keep it from being needed."""
    monkeypatch.setattr(model_release, "_shrink_factors", lambda norms, sizes, *, l1: np.ones(len(norms)))
    kept = model_release._clip_to_ball(np.array([[CLIP_RADIUS * 1.5, 0.0], [3.0, 4.0]]), l1=False)
    assert kept.tolist() == [[0, 0], [3, 4]]
    for noise in QUIET.values():
        with_another = Table([[0.5, 0.5]] * 4, [1, 2, 2, 2])  # whose three rows are outside together
        assert whole(scattered(with_another, noise, 1.1)) == whole(scattered(Table([[0.5, 0.5]], [1]), noise, 1.1))


@pytest.mark.parametrize("l1", [True, False])
def test_vectors_of_any_length_are_shrunk_no_more_than_rounding_needs(l1):
    """Equal numbers are all rounded in the same direction: the worst case of what rounding adds to the norm."""
    for size in range(1, 300):
        kept = model_release._clip_to_ball(np.full((2, size), [[1e9], [-1e12]]), l1=l1)
        norms = np.abs(kept).sum(axis=1) if l1 else np.sqrt((kept * kept).sum(axis=1))
        lost_by_rounding = size if l1 else math.sqrt(size)
        assert (norms <= CLIP_RADIUS).all()
        assert (norms >= CLIP_RADIUS - 2 - lost_by_rounding).all()
    inside = np.array([[3.0, -4.0, CLIP_RADIUS / 2]])
    assert model_release._clip_to_ball(inside.copy(), l1=l1).tolist() == inside.tolist()


@pytest.mark.parametrize("l1", [True, False])
def test_the_boundary_belongs_to_the_ball(l1):
    """And one step beyond it does not; what is not a number is nowhere."""
    most = CLIP_RADIUS if l1 else CLIP_RADIUS**2
    norms = np.array([0, most, most + 1, np.inf, np.nan])
    assert model_release._is_in_ball(norms, l1=l1).tolist() == [True, True, False, False, False]


def centred(rows, public):
    return rows - rows.mean(axis=0)


def ranked(rows, public):
    return np.argsort(rows[:, 0]).astype(float)[:, np.newaxis]


def counting(rows, public):
    return np.full((len(rows), 1), float(len(rows)))


def product(rows, public):
    return (rows[:, :1] * public[0]).sum(keepdims=True) + rows[:, :1]


@pytest.mark.parametrize("rule", [centred, ranked, counting, product])
def test_a_rule_that_mixes_rows_is_stopped_before_anything_is_charged(rule):
    table, reservation = Table(np.zeros((5, 2))), reserve([Laplace(CLIP_RADIUS)])
    with pytest.raises(ValueError, match="depends on other rows"):
        noisy_sum(table, rule, (1.0,), size=2, radius=1, reservation=reservation)
    assert reservation.next_noise
    assert table.reads == 0


def knows_descending_batches(rows, public):
    return rows + float(rows[0, 0] > rows[-1, 0])


def knows_large_batches(rows, public):
    return rows + float(len(rows) > 23)


def knows_the_low_end_alone(rows, public):
    return rows + float(len(rows) == 1 and rows[0, 0] == 0)


def knows_the_high_end_alone(rows, public):
    return rows + float(len(rows) == 1 and rows[0, 0] == 1)


def knows_a_middle_row_alone(rows, public):
    return rows + float(len(rows) == 1 and 0 < rows[0, 0] < 1)


ONE_WAY = [
    knows_descending_batches,
    knows_large_batches,
    knows_the_low_end_alone,
    knows_the_high_end_alone,
    knows_a_middle_row_alone,
]


@pytest.mark.parametrize("rule", ONE_WAY)
def test_a_rule_that_depends_on_other_rows_in_one_situation_only_is_stopped(rule):
    with pytest.raises(ValueError, match="depends on other rows"):
        check_row_wise(rule, (), np.zeros(2), np.ones(2))


def lone(rows, public):
    return np.zeros((1, 2))


def lone_numbers(rows, public):
    return np.zeros((len(rows), 2), np.int64), np.ones((1, 2))


@pytest.mark.parametrize("rule", [lone, lone_numbers])
def test_a_rule_gives_one_result_for_each_row_or_is_stopped_before_anything_is_charged(rule):
    table, reservation = Table(np.zeros((5, 2))), reserve([Laplace(CLIP_RADIUS)])
    with pytest.raises(ValueError, match="one result per row"):
        noisy_sum(table, rule, (), size=2, radius=1, reservation=reservation)
    assert reservation.next_noise
    assert table.reads == 0


def test_a_rule_cannot_capture_data():
    secret = np.ones(3)

    def closed(rows, public):
        return rows * secret[0]

    def with_default(rows, public, secret=secret):
        return rows

    for rule in (closed, with_default, np.sin, "text"):
        with pytest.raises(TypeError, match="rule must be a module-level function"):
            check_row_wise(rule, (), np.zeros(2), np.ones(2))
    for function in (closed, with_default, np.sin):
        with pytest.raises(TypeError, match="rule must be a module-level function"):
            check_row_wise(applied, (function,), np.zeros(2), np.ones(2))
    assert check_row_wise(applied, (lone_column,), np.zeros(2), np.ones(2)) == 1


def applied(rows, public):
    return public[0](rows, ())


def lone_column(rows, public):
    return rows[:, 0]


def test_a_reservation_allows_what_was_charged_and_no_more():
    reservation = reserve([Laplace(CLIP_RADIUS * 2), Laplace(CLIP_RADIUS * 4)])
    assert reservation.loss == Loss("3/4", "5/32")
    table = Table(np.zeros((5, 2)))
    for _ in range(2):
        noisy_sum(table, wild, (1.0,), size=5, radius=1, reservation=reservation)
    with pytest.raises(ValueError, match="all reserved noise has been used"):
        noisy_sum(table, wild, (1.0,), size=5, radius=1, reservation=reservation)
    assert table.reads == 2
    with pytest.raises(ValueError, match="cost must be at least"):
        reserve([Laplace(CLIP_RADIUS)], cost=Loss("1/2"))
    with pytest.raises(TypeError, match="one or more"):
        reserve([])
    assert reserve([Gaussian(CLIP_RADIUS)], substitution=True).loss.rho == 4 * reserve([Gaussian(CLIP_RADIUS)]).loss.rho


def test_nothing_is_read_when_the_ledger_refuses():
    ledger = memory_ledger(name="d", budget=Budget("1/2"))
    table = Table(np.zeros((5, 2)))
    with pytest.raises(Refused):
        noisy_sum(table, wild, (1.0,), size=5, radius=1, reservation=reserve([Laplace(CLIP_RADIUS)], ledger=ledger))
    assert table.reads == 0
    assert ledger.spent().epsilon == 0


def test_a_fit_is_recorded_with_its_cost_and_its_result():
    ledger = memory_ledger(name="d", budget=Budget(1))
    reservation = reserve([Laplace(CLIP_RADIUS * 4)] * 2, cost=Loss("1/2"), ledger=ledger, question="fit", by="ana")
    assert [(event.by, event.loss.epsilon, event.state) for event in ledger.events()] == [("ana", 0.5, "reserved")]
    reservation.settle(b"learned")
    (event,) = ledger.events()
    assert event.state == "released"
    assert event.mechanism.count("laplace") == 2
    assert ledger.spent() == Loss("1/2")


def picky(rows, public):
    if (rows > 1).any():
        raise ZeroDivisionError(f"a secret: {rows.max()}")
    return rows


def test_a_failure_while_summing_says_nothing(caplog):
    caplog.set_level(logging.CRITICAL)
    reservation = reserve([Laplace(CLIP_RADIUS)])
    with pytest.raises(Failed) as failed:
        noisy_sum(Table([[7.0, 7.0]]), picky, (), size=2, radius=1, reservation=reservation)
    assert str(failed.value) == FAILED
    assert failed.value.__context__ is None
    with pytest.raises(ValueError, match="all reserved noise has been used"):
        reservation.take_noise()


def overflowing(rows, public):
    return rows * 1e308 / (rows - 2)


def test_no_warning_discloses_a_row(recwarn):
    """Numpy would say that something overflowed or was divided by zero, and so that such a row is there."""
    noisy_sum(
        Table([[7.0, 2.0], [100.0, 0.5]]),
        overflowing,
        (),
        size=2,
        radius=1,
        reservation=reserve([Laplace(CLIP_RADIUS)]),
    )
    assert not recwarn.list


def reciprocal(rows, public):
    return 1 / rows


def test_a_rule_may_divide_by_zero_at_the_test_points(recwarn):
    assert check_row_wise(reciprocal, (), np.zeros(2), np.ones(2)) == 2
    assert not recwarn.list


def complaining(rows, public):
    if (rows > 1).any():
        warnings.warn("a row above 1", stacklevel=1)
    return rows


def test_no_warning_of_a_rule_discloses_a_row(recwarn):
    noisy_sum(Table([[7.0, 2.0]]), complaining, (), size=2, radius=1, reservation=reserve([Laplace(CLIP_RADIUS)]))
    assert not recwarn.list


def first_column(rows, public):
    return rows[:, :1]


@both_noises
def test_rows_without_units_are_counted_in_any_number_of_batches(noise):
    points = np.arange(7.0)[:, np.newaxis] / 8 * np.ones(2)
    for most in (1, 2, 3, 7):
        reservation = reserve([noise])
        found = noisy_sum(Table(points, None, most), first_column, (), size=1, radius=1, reservation=reservation)
        assert found.tolist() == pytest.approx([21 / 8], abs=1e-4)


def undefined(rows, public):
    numbers = np.where(rows > 1, np.array([np.nan, np.inf]), 0.0)
    return np.zeros((len(rows), 2), np.int64), numbers


@both_noises
def test_numbers_that_are_not_finite_count_nothing(noise):
    for points in ([[2.0, 2.0]], [[2.0, 0.0], [0.0, 2.0]]):
        found = noisy_sum(Table(points), undefined, (), size=2, radius=1, reservation=reserve([noise]))
        assert found.tolist() == [0, 0]


def test_an_empty_batch_is_skipped():
    class Gaps(Table):
        def batches(self, size):
            yield np.zeros((0, 2)), None if self.units is None else np.zeros(0, np.int64)
            yield from super().batches(size)
            yield np.zeros((0, 2)), None if self.units is None else np.zeros(0, np.int64)

    for units in (None, [4, 4, 5]):
        table = Gaps(np.full((3, 2), 0.25), units)
        assert histograms(table, QUIET["l1"])[0].tolist() == pytest.approx([0, 3 if units is None else 2, 0, 0])


@pytest.mark.parametrize("units", [[[1, 2, 1]], [[1, 2], [2, 3]], [[2], [], [1]], [[3], [4, 4], [4]], [[-1]]])
def test_units_that_are_split_across_batches_are_detected(units, caplog):
    """Whoever cuts the batches: a unit in two of them, or in two places, could add too much."""

    class Torn(Table):
        def sum_units(self, part):
            return part((np.zeros((len(each), 2)), np.array(each, np.int64)) for each in units)

    with pytest.raises(Failed):
        dense(Torn(np.zeros((1, 2)), [1]), Laplace(CLIP_RADIUS))
    assert "must be consecutive and in one batch" in caplog.text


@pytest.mark.parametrize("units", [None, np.array([1])])
def test_rows_of_several_per_unit_need_the_number_of_each_unit(units, caplog):
    """Rows without it would count as units of their own, and a person with two rows would add two vectors."""

    class Nameless(Table):
        def sum_units(self, part):
            return part([(np.zeros((2, 2)), units)])

    with pytest.raises(Failed):
        dense(Nameless(np.zeros((2, 2)), [1, 1]), Laplace(CLIP_RADIUS))
    assert "must have the number of its unit" in caplog.text


@both_noises
@pytest.mark.parametrize("rows", [1, 3, 7])
def test_the_weight_of_a_unit_is_divided_evenly_over_its_rows(noise, rows):
    """Rounded down, so that nothing has to be clipped."""
    weight = weight_of(noise) // rows * rows
    assert whole(counted(Table([[0.1, 0.1]] * rows, [1] * rows), noise)) == [weight, 0, 0, 0, weight, 0, 0, 0]


@both_noises
@pytest.mark.parametrize("scale", [1.1, 1.9])
def test_rows_that_fit_alone_are_clipped_together(noise, scale):
    """Three rows of a unit at the same two places, each inside the ball, and, for 1.1, their squares together."""
    one, three = Table([[0.5, 0.5]], [1]), Table([[0.5, 0.5]] * 3, [1] * 3)
    assert size_of(whole(scattered(one, noise, scale)), noise) < most_of(noise) * 0.96
    assert most_of(noise) * 0.99 < size_of(whole(scattered(three, noise, scale)), noise) <= most_of(noise)


@both_noises
def test_a_batch_with_a_clipped_unit_counts_the_others_alike(noise):
    """Where all rows are surely inside nothing is sorted; what a unit adds must not depend on which way is taken."""
    points = np.random.default_rng(4).uniform(0, 3, (30, 2))
    units = np.arange(30) // 3
    quiet = scattered(Table(points, units), noise, 0.01)
    loud = Table([*points, [9.0, 9.0]], [*units, 99])
    alone = Table([[9.0, 9.0]], [99])
    for scale in (0.01, 0.1, 1.0):
        rest = whole(scattered(Table(points, units), noise, scale))
        both = [a + b for a, b in zip(rest, whole(scattered(alone, noise, scale)), strict=True)]
        assert whole(scattered(loud, noise, scale)) == both
    assert quiet.any()


def strange_blocks(rows, public):
    return np.zeros((len(rows), 3), np.int64), np.ones((len(rows), 2))


def uneven_blocks(rows, public):
    return np.zeros((len(rows), 3), np.int64), rows[:, :1]


def test_numbers_after_the_last_whole_block_are_never_counted():
    for x in (0.1, 0.6):  # inside, and to be clipped
        table, noise = Table([[x, 0.0]]), QUIET["l1"]
        found = noisy_sum(table, uneven_blocks, (), size=5, radius=1, reservation=reserve([noise]))
        assert found.tolist() == pytest.approx([min(x, 1 / 3), min(x, 1 / 3), min(x, 1 / 3), 0, 0], abs=1e-5)


def float_indices(rows, public):
    return np.zeros((len(rows), 2)), np.ones((len(rows), 1))


@pytest.mark.parametrize("rule", [strange_blocks, float_indices, lone_column, first_column])
def test_a_rule_of_another_shape_fails(rule):
    """Numpy would spread one number over all places."""
    with pytest.raises(Failed):
        noisy_sum(Table(np.zeros((3, 2))), rule, (), size=4, radius=2, reservation=reserve([Laplace(CLIP_RADIUS)]))


@pytest.mark.parametrize(
    "bad", [{"size": 0}, {"size": 5.0}, {"size": True}, {"radius": 0}, {"radius": -1}, {"combine": "mean"}]
)
def test_an_invalid_argument_is_refused_by_name_before_the_noise_is_taken(bad):
    reservation, (name,) = reserve([Laplace(CLIP_RADIUS)]), bad
    with pytest.raises((TypeError, ValueError), match=name):
        noisy_sum(Table(np.zeros((1, 2))), wild, (1.0,), **{"size": 5, "radius": 1, "reservation": reservation, **bad})
    assert reservation.next_noise


def test_rules_are_tested_at_both_ends_in_the_middle_and_at_scattered_points():
    low, high = np.array([-3.0, 0.0, 7.0]), np.array([5.0, 1e6, 7.0])
    points = model_release._test_points(low, high)
    assert len(points) % 2 == 1  # so that no vector width divides it
    assert len(points) > 20
    assert np.array_equal(points[:3], [low, high, (low + high) / 2])
    assert ((low <= points) & (points <= high)).all()
    scattered_points = (points[3:, :2] - low[:2]) / (high - low)[:2]
    assert len(np.unique(scattered_points)) == scattered_points.size
    assert all(set((column * 8).astype(int)) == set(range(8)) for column in scattered_points.T)


def test_only_a_reservation_is_accepted():
    with pytest.raises(TypeError, match="reservation"):
        noisy_sum(Table(np.zeros((1, 2))), wild, (1.0,), size=5, radius=1, reservation="free")
    assert isinstance(reserve([Laplace(CLIP_RADIUS)]), Reservation)
