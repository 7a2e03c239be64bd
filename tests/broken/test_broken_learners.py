"""Every broken learner is caught: by an audit that our own learners pass, by exact integers, or by a guard."""

import numpy as np
import pytest

from discreet.kernel import model_release
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.reservation import CLIP_RADIUS, clipped_sum_sensitivity, reserve
from discreet.learn import StandardScaler
from discreet.learn.fit_session import FitSource, open_session
from discreet.learn.naive_bayes import GaussianNB
from discreet.learn.row_sources import array_rows
from tests.broken import learners
from tests.learn.audits import (
    Data,
    audit,
    draws_of,
    exact,
    learned,
    one_chance,
    replayed,
    residuals,
    spent,
    watched,
    without,
)

EPSILON = learners.EPSILON
CROWD = np.random.default_rng(1).normal(-3, 0.3, (10, 2))
HERE = np.concatenate([CROWD, [[5.0, 5.0]]])
LABELLED = np.column_stack([HERE, [0] * 5 + [1] * 5 + [7]])
WIDE = np.random.default_rng(2).normal(0, 1, (2, 60))  # a cluster of two people, or of one
FEW = np.concatenate([np.full((1, 1), -5.0), np.full((1, 1), 5.0)])


def shown(learner, here, *, runs=250):
    return audit(learner.told, here, here[:-1], pilot=100, runs=runs).epsilon


class Sound:
    """The same audit finds nothing in a learner that keeps its claim."""

    def told(self, X):
        return learned(StandardScaler(epsilon=EPSILON, bounds=(learners.LOW, learners.HIGH)).fit(X))


class SoundSum:
    def told(self, X):
        return learners.opened(X).sum(learners.scaled, (), size=X.shape[1], radius=1)


@pytest.mark.long
@pytest.mark.parametrize("here", [HERE, WIDE, FEW], ids=["crowd", "wide", "few"])
@pytest.mark.parametrize("learner", [Sound(), SoundSum(), learners.ForgetsToClip()], ids=["scaler", "sum", "clipped"])
def test_learners_that_keep_their_claim_pass(learner, here):
    assert shown(learner, here) <= EPSILON


@pytest.mark.long(but=["ExactSizeScalesNoise-", "LabelsFromTheData-", "OneNoiseForTwoSums-"])
@pytest.mark.parametrize(
    ("learner", "here"),
    [
        (learners.ExactSizeScalesNoise(), WIDE),
        (learners.StopsWhenItFits(), HERE),
        (learners.BoundsFromTheData(), np.concatenate([CROWD, [[1e6, 1e6]]])),
        (learners.BestOfMany(), FEW),
        (learners.OneNoiseForTwoSums(), np.concatenate([CROWD, [[5.0, -5.0]]])),
        (learners.LabelsFromTheData(), LABELLED),
    ],
    ids=lambda each: type(each).__name__ if not isinstance(each, np.ndarray) else "",
)
def test_a_broken_learner_discloses_more_than_it_claims(learner, here):
    epsilon = shown(learner, here)
    print(f"{type(learner).__name__}: {epsilon:.2f} where {EPSILON} is claimed")
    assert epsilon > EPSILON


@pytest.mark.parametrize(
    ("learner", "here", "broken"),
    [
        (Sound(), HERE, False),
        (SoundSum(), HERE, False),
        (learners.ExactCountDivides(), HERE, True),
        (learners.StopsWhenItFits(), HERE, True),
        (learners.BoundsFromTheData(), HERE, True),
        (learners.BestOfMany(), FEW, True),
    ],
    ids=lambda each: "" if isinstance(each, np.ndarray | bool) else type(each).__name__,
)
def test_the_same_draws_with_other_rows_show_what_was_not_drawn(learner, here, broken):
    assert any(uses_rows_beside_the_draws(learner, here) for _ in range(10)) == broken


def uses_rows_beside_the_draws(learner, here):
    with one_chance():
        with watched() as found:
            before = learner.told(here)
        try:
            with replayed(found):
                return not np.array_equal(learner.told(here[:-1]), before)
        except (AssertionError, IndexError):  # it asks other questions, or more of them
            return True


def test_a_data_dependent_stop_is_refused_by_the_reservation():
    """It has bought three draws; with somebody in the data that no mean fits, it asks for a fourth."""
    with watched() as found, pytest.raises(ValueError, match="all reserved noise has been used"):
        learners.StopsWhenItFits(bought=3).told(HERE)
    assert len(found) == 3


def test_a_charge_for_one_draw_that_covers_two_is_caught():
    """By the cost along the path, in exact fractions; an audit would take many thousand fits to be as sure."""
    corner = Data(HERE)
    rows = [draws_of(StandardScaler(epsilon=1, bounds=(-5, 5)), data)[0].rows for data in neighbours(corner)]
    model = learners.PaysOnceForTwo()
    epsilon, _ = spent(draws_of(model, corner), *rows)
    assert epsilon > 1.99 * model.loss_.epsilon


def neighbours(data):
    return data, without(data, np.arange(len(data.X)) == len(data.X) - 1)


def test_a_sum_divided_by_the_exact_count_lies_on_a_grid_that_discloses_the_count():
    def told_by(n, number):
        return abs(number * n * CLIP_RADIUS - round(number * n * CLIP_RADIUS)) < 1e-4

    outputs = [float(learners.ExactCountDivides().told(HERE)[0]) for _ in range(50)]
    assert all(told_by(11, each) for each in outputs)
    assert sum(told_by(10, each) for each in outputs) < 25  # one in eleven by chance
    noisy = [StandardScaler(epsilon=EPSILON, bounds=(-5, 5)).fit(HERE[:, :1]).mean_[0] / 5 for _ in range(50)]
    assert not all(told_by(11, each) for each in noisy)


@pytest.mark.long
def test_a_count_that_is_shown_is_caught():
    assert shown_by(lambda X: [learners.ExactCountDivides().fit(X).n_]) > EPSILON
    assert shown_by(lambda X: [StandardScaler(epsilon=EPSILON, bounds=(-5, 5)).fit(X).n_samples_seen_]) <= EPSILON


def shown_by(told):
    return audit(told, HERE, HERE[:-1], pilot=100, runs=250).epsilon


@pytest.mark.long
def test_a_forgotten_clip_is_caught_by_an_audit_and_by_exact_integers(monkeypatch):
    learner = learners.ForgetsToClip()
    assert moved_by(learner) <= clipped_sum_sensitivity(Laplace(CLIP_RADIUS)).l1
    monkeypatch.setattr(model_release, "_clip_to_ball", learners.kept_by_rounding_alone)
    assert moved_by(learner) == 10 * CLIP_RADIUS
    assert shown(learner, HERE) > EPSILON


def moved_by(learner):
    """How far the last row moves the integers that noise is added to."""
    with watched() as found:
        learner.told(HERE)
        learner.told(HERE[:-1])
    here, there = (exact(found[0], draw.rows) for draw in found)
    return sum(abs(int(one) - int(other)) for one, other in zip(here, there, strict=True))


def test_a_forgotten_clip_is_caught_in_a_complete_fit(monkeypatch):
    """Naive Bayes relies on the clip: somebody at a corner is further away than the radius that it chooses."""
    data = Data(np.concatenate([CROWD * 0.1, [[5.0, 5.0]]]), np.array([0] * 5 + [1] * 6))
    model = GaussianNB(epsilon=100, bounds=(-5, 5), classes=[0, 1])

    def costs():
        rows = [draws_of(model, each)[0].rows for each in neighbours(data)]
        return [spent(draws_of(model, data), *rows)[0] for _ in range(5)]

    assert max(costs()) <= model.epsilon
    monkeypatch.setattr(model_release, "_clip_to_ball", learners.kept_by_rounding_alone)
    assert min(costs()) > 2 * model.epsilon


def test_a_rule_that_centres_by_the_batch_is_stopped_before_anything_is_read():
    with watched() as found, pytest.raises(ValueError, match="depends on other rows"):
        learners.CentresByTheBatch().told(HERE)
    assert not found


@pytest.mark.parametrize(
    "rule",
    [
        learners.centred_a_little,
        learners.knows_its_neighbours,
        learners.knows_large_batches,
        learners.knows_being_alone,
        learners.knows_the_far_corner,
    ],
)
def test_a_rule_that_mixes_rows_in_one_way_only_is_stopped(rule):
    with watched() as found, pytest.raises(ValueError, match="depends on other rows"):
        learners.opened(HERE).sum(rule, (), size=2, radius=1)
    assert not found


@pytest.mark.parametrize("way", ["histogram", "sparse"])
def test_every_way_to_draw_stops_rules_that_mix_rows(way):
    session = learners.opened(HERE)
    with pytest.raises(ValueError, match="depends on other rows"):
        draw_by(way, session, learners.cells_of_ranks, learners.entries_of_ranks)
    assert draw_by("sum", session).shape == (2,)  # nothing was used up


@pytest.mark.parametrize("way", ["sum", "histogram", "sparse"])
def test_every_way_to_draw_uses_up_the_reservation(way):
    session = learners.opened(HERE)
    draw_by(way, session)
    with watched() as found, pytest.raises(ValueError, match="all reserved noise has been used"):
        draw_by(way, session)
    assert not found


@pytest.mark.parametrize("way", ["sum", "histogram", "sparse"])
def test_every_way_to_draw_adds_noise(way):
    with watched() as found:
        for _ in range(30):
            draw_by(way, learners.opened(HERE))
    noises = np.array(residuals(found, found[0].rows))
    assert len(np.unique(noises, axis=0)) == 30
    assert 0.1 < np.abs(noises).mean() < 5  # in units of the scale that was paid for


@pytest.mark.parametrize("way", ["histogram", "sparse", "sum"])
@pytest.mark.parametrize("delta", [0, 0.01])
@pytest.mark.parametrize("rows", [1, 3, 7, 50])
def test_no_units_rows_together_exceed_the_ball(way, delta, rows):
    """Three thirds, each rounded up, would be more than one."""
    alone = rows_of(np.full((rows, 2), 5.0), [0] * rows)
    with watched() as found:
        draw_by(way, open_session(FitSource(alone), name="x", epsilon=1, delta=delta, shares=[1]))
    total = [int(each) for each in exact(found[0], alone)]
    assert 0 < sum(map(abs, total)) <= (CLIP_RADIUS if way != "sum" or not delta else 2 * CLIP_RADIUS)
    assert sum(each * each for each in total) <= CLIP_RADIUS * CLIP_RADIUS


def rows_of(X, unit):
    return array_rows(X, (np.full(2, -5.0), np.full(2, 5.0)), unit)


def test_the_ball_holds_even_if_the_shrinking_of_sparse_vectors_is_wrong(monkeypatch):
    monkeypatch.setattr(model_release, "_shrink_factors", lambda norms, sizes, *, l1: np.ones(len(norms)))
    crowd = rows_of(np.full((3, 2), 5.0), [0] * 3)
    with watched() as found:
        draw_by("sparse", open_session(FitSource(crowd), name="x", epsilon=1, shares=[1]))
    assert not exact(found[0], crowd).any()


def test_sums_outside_the_kernels_limits_are_refused():
    with pytest.raises(ValueError, match="size must be at most"):
        learners.opened(HERE).sum(learners.scaled, (), size=(1 << 18) + 1, radius=1)
    with pytest.raises(TypeError, match="noises must be one or more Laplace"):
        reserve([Laplace(CLIP_RADIUS), "none"])
    # An l2 ball reaches as far in l1 as it has numbers; for integers, at most its squared radius.
    assert (
        clipped_sum_sensitivity(Gaussian(CLIP_RADIUS)).l1
        == clipped_sum_sensitivity(Gaussian(CLIP_RADIUS)).l2_squared
        == CLIP_RADIUS * CLIP_RADIUS
    )


def test_data_captured_by_a_rule_is_refused():
    with pytest.raises(TypeError, match="without closure or defaults"):
        learners.opened(HERE).sum(learners.with_a_secret, (), size=2, radius=1)


def draw_by(way, session, cell_of=None, entries_of=None):
    if way == "sum":
        return session.sum(learners.scaled, (), size=2, radius=1)
    if way == "histogram":
        return session.histogram(cell_of or side, (), cells=4)
    return session.sparse_sum(entries_of or entry, (), size=4, radius=1)


def side(rows, _):
    return (rows[:, 0] > 0).astype(np.int64)


def entry(rows, _):
    return (rows[:, :1] > 0).astype(np.int64), rows[:, :1] / learners.HIGH


def test_bounds_taken_from_the_data_are_refused():
    with pytest.raises(ValueError, match="minimum and maximum of the data"):
        StandardScaler(epsilon=1, bounds=(HERE.min(axis=0), HERE.max(axis=0))).fit(HERE)


def test_noise_that_is_used_twice_is_seen_in_what_it_leaves():
    """Two sums that differ by the same in every run have one noise; those of a session have each their own."""
    assert len({float(learners.OneNoiseForTwoSums().told(HERE)[0]) for _ in range(20)}) == 1
    with watched() as found:
        session = learners.opened(HERE, (1, 1))
        for _ in range(2):
            session.sum(learners.scaled, (), size=2, radius=1)
    one, other = residuals(found, found[0].rows)
    assert not np.array_equal(one, other)


def test_labels_taken_from_the_data_disclose_a_unique_one_and_ours_do_not():
    X, y = LABELLED[:, :-1], LABELLED[:, -1].astype(int)
    assert 7 in learners.LabelsFromTheData().fit(X, y).classes_
    named = GaussianNB(epsilon=1, bounds=(-5, 5), classes=[0, 1]).fit(X, y)
    assert named.classes_.tolist() == [0, 1]
