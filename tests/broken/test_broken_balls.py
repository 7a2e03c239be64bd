"""Broken balls: each variant moves a total farther than the question claims, and is caught."""

import random
from dataclasses import replace

import pytest

from discreet.kernel.ball import WEIGHT_BITS, Ball, Norm, ball_for
from discreet.kernel.expr import Column, Type
from discreet.kernel.grid import Grid
from discreet.kernel.mechanism import Sensitivity
from discreet.kernel.question import ContributionBounds, PublicGroups, Question
from discreet.kernel.relation import Scan, UnitKey
from discreet.kernel.totals import Count, Sum
from tests.reference import engine as reference
from tests.reference.engine import ReferenceEngine

USER, PLACE, X = Column("user", Type.INTEGER), Column("place", Type.INTEGER), Column("x", Type.INTEGER)
VISITS = Scan("visits", (USER, PLACE, X), UnitKey((USER,)), max_rows=1 << 40)
PLACES = PublicGroups((tuple(range(30)),))


def excess(norm, total=Count(), of=None):  # noqa: B008
    """Return the largest factor by which one of several units moves a total farther than its sensitivity.

    Vectors are clipped in one norm; the sensitivity is `of` the same norm, or of another one.
    """
    question = Question(VISITS, (("place", PLACE),), PLACES, ContributionBounds(3, 4, norm), (total,))
    sensitivity, most = question.sensitivity(), 0.0
    for seed in range(12):
        rng = random.Random(seed)
        visits = [(place, rng.choice([1, 1, 900])) for place in range(30) for _ in range(rng.choice([1, 3, 40]))]
        rows_of_unit = [{"user": 1, "place": place, "x": x} for place, x in visits]
        moved = ReferenceEngine({"visits": rows_of_unit}).totals(question).values[:, 0].tolist()
        l1, l2_squared = sum(map(abs, moved)), sum(number * number for number in moved)
        most = max(
            most, l1 / sensitivity.l1 if (of or norm) is Norm.L1 else (l2_squared / sensitivity.l2_squared) ** 0.5
        )
    return most


@pytest.mark.parametrize("norm", Norm)
@pytest.mark.parametrize(
    "total",
    [Count(), Sum(X, Grid(0, 900, 1)), Sum(X, Grid(0, 900, 1), max_term=50)],
    ids=["count", "sum", "sum with its own limit"],
)
def test_a_sound_ball_is_reached_and_never_left(norm, total):
    assert 0.98 < excess(norm, total) <= 1


def test_a_radius_of_the_wrong_norm_is_caught(monkeypatch):
    """Laplace noise for an l1 radius, with vectors clipped to the l2 ball of the same radius."""
    monkeypatch.setattr(
        Question,
        "ball_of",
        lambda question, total: ball_for(
            Norm.L2, question.bounds.groups * question.max_term(total), 1, max_sum=1 << 41, max_terms=30
        ),
    )
    assert excess(Norm.L1) > 2


def test_laplace_noise_for_the_radius_of_an_l2_ball_is_caught(monkeypatch):
    """A unit in 30 groups has an l1 norm of √30 times the radius."""
    assert excess(Norm.L2, of=Norm.L1) <= 1

    def of_radius(question):
        radius = question.sensitivity_of(Count()).l2_squared ** 0.5
        return Sensitivity.of_norms(l1=int(radius), l2_squared=int(radius) ** 2)

    monkeypatch.setattr(Question, "sensitivity", of_radius)
    assert excess(Norm.L2, of=Norm.L1) > 2


def test_noise_for_the_limit_of_a_sum_that_is_clipped_by_rows_is_caught(monkeypatch):
    """The ball of rows times the largest value is far larger than the limit that the noise is for."""
    sound, limited = Question.ball_of, Sum(X, Grid(0, 900, 1), max_term=50)
    monkeypatch.setattr(Question, "ball_of", lambda question, total: sound(question, replace(total, max_term=None)))
    assert excess(Norm.L2, limited) > 2


def test_a_cap_without_a_ball_is_caught(monkeypatch):
    monkeypatch.setattr(Question, "ball_of", lambda *_: None)
    monkeypatch.setattr(reference, "_limit_term", lambda *_: 4 << 20)
    assert excess(Norm.L2) > 2


def test_norms_in_rounded_down_steps_are_caught(monkeypatch):
    """A unit with many small terms would have a norm of zero, and keep its full weight."""
    sound = Question.ball_of
    monkeypatch.setattr(Question, "ball_of", lambda question, total: replace(sound(question, total), shift=8))

    def floored(ball: Ball, terms):
        steps = [abs(term) >> ball.shift for term in terms]
        norm = sum(step * step for step in steps)
        return 1 << WEIGHT_BITS if norm <= ball.limit else int(ball.weight_numerator / norm**0.5)

    monkeypatch.setattr(reference, "_ball_weight", floored)
    assert excess(Norm.L2) > 2
