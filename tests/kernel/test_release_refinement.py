"""A stored draw made finer through the door: which one, for how much, and the law of the two together."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet import privacy
from discreet.kernel import release
from discreet.kernel.errors import Failed, Refused
from discreet.kernel.expr import Column, Type
from discreet.kernel.fingerprint import fingerprints_of
from discreet.kernel.grid import Grid
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
from discreet.kernel.partition_selection import PartitionSelection, partition_threshold
from discreet.kernel.question import ContributionBounds, PublicGroups, Question, SelectedGroups
from discreet.kernel.refinement import Refinement, recall_values
from discreet.kernel.relation import EachRow, Scan, UnitKey
from discreet.kernel.release import Catalog, ReleaseRequest, release_totals
from discreet.kernel.totals import Count, HistogramTree, SelectionWeight, Sum
from discreet.ledger_admin.verify import verify_ledger
from discreet.ledger_sqlite import memory_ledger
from discreet.pricing.stored_totals import stored_draws
from discreet.privacy import composed_dp_event, declared_epsilon, to_dp_event
from tests.reference.engine import ReferenceEngine

USER, PLACE, X = Column("user", Type.INTEGER), Column("place", Type.TEXT), Column("x", Type.REAL)
VISITS = Scan("visits", (USER, PLACE, X), UnitKey((USER,)), max_rows=1000)
EVENTS = Scan("events", (USER, PLACE, X), EachRow(), max_rows=10_000)
CATALOG = Catalog({"visits": VISITS, "events": EVENTS}, {}, "here")
BY = (("place", PLACE),)
COUNT = Question(VISITS, (), PublicGroups(()), ContributionBounds(1, 1), (Count(),))
TWO = Question(
    VISITS, BY, PublicGroups((("a", "b"),)), ContributionBounds(2, 1, cap_rows=True), (Count(), Sum(X, Grid(-2, 2, 1)))
)
TREE = Question(VISITS, (), PublicGroups(()), ContributionBounds(1, 1), (HistogramTree(X, Grid(0, 3, 1), 4, 1),))
ROWS = [{"user": user, "place": place, "x": 1.0} for user, place in ((1, "a"), (2, "a"), (3, "b"))]


def selecting(question, *rounds, others=()):
    """Ask for the groups of a question in rounds, each with a noise and a threshold."""
    thresholds = tuple(partition_threshold(question, noise, cut) for noise, cut in rounds)
    return ReleaseRequest(question, (PartitionSelection(thresholds), *others))


def opened(epsilon=10):
    return memory_ledger(name="demo", budget=Budget(epsilon))


def told(ledger, *asks, rows=ROWS, version="1", **more):
    price = sum((each.loss() for each in asks), Loss(0))
    given = {
        "catalog": CATALOG,
        "engine": ReferenceEngine({"visits": rows, "events": rows}),
        "question": "q",
        "ledger": ledger,
        **more,
    }
    return release_totals(asks, cost=price, version=version, **given)


def finer(question, receipt, before, after):
    pairs = zip(before, after, strict=True)
    return ReleaseRequest(question, tuple(Refinement(receipt.id, Laplace(b), Laplace(a)) for b, a in pairs))


# What it costs.


@pytest.mark.parametrize(("before", "after", "l1"), [(10, 4, 1), ("5/3", "1/7", 3), (1000, 999, 20)])
def test_refining_costs_the_difference_and_the_full_rho(before, after, l1):
    moved = Sensitivity(1, l1)
    loss = Refinement("r", Laplace(before), Laplace(after)).loss(moved)
    assert loss.epsilon == Laplace(after).loss(moved).epsilon - Laplace(before).loss(moved).epsilon
    assert loss.rho == Laplace(after).loss(moved).rho  # the difference would be too little for who adapts
    assert (loss + Laplace(before).loss(moved)).epsilon == Laplace(after).loss(moved).epsilon
    for same in (before, Fraction(before) + 1):
        with pytest.raises(ValueError, match="smaller scale"):
            Refinement("r", Laplace(before), Laplace(same))


def test_charges_in_steps_add_up_to_the_cost_of_asking_once():
    ledger = opened()
    scales = ["9", "7", "5/2", "1/3"]
    receipt = told(ledger, ReleaseRequest(COUNT, (Laplace(scales[0]),))).receipt
    for before, after in itertools.pairwise(scales):
        receipt = told(ledger, finer(COUNT, receipt, [before], [after])).receipt
    assert ledger.spent().epsilon == 3
    assert ledger.spent().rho == sum(Laplace(scale).loss(Sensitivity(1, 1)).rho for scale in scales)
    verify_ledger(ledger)


def test_the_ledger_keeps_a_rho_above_half_of_epsilon_squared():
    ledger = opened()
    receipt = told(ledger, ReleaseRequest(COUNT, (Laplace(2),))).receipt
    told(ledger, finer(COUNT, receipt, [2], [1]))
    loss = ledger.events()[-1].loss
    assert (loss.epsilon, loss.rho) == (Fraction(1, 2), Fraction(1, 2))
    assert ledger.spent() == Loss(1, Fraction(1, 8) + Fraction(1, 2)).of_bounds(Fraction(1), Fraction(5, 8))
    verify_ledger(ledger)


# The law.


def pair_law(exact, wide, narrow, reach):
    """Return the exact law of (shown, refined): the finer noise, and a rest that is independent of it."""
    q1, q2 = (math.exp(-1 / scale) for scale in (wide, narrow))
    nothing = q2 / q1 * ((1 - q1) / (1 - q2)) ** 2

    def noise(q, k):
        return (1 - q) / (1 + q) * q ** abs(k)

    return {
        (shown, refined): noise(q2, refined - exact)
        * ((nothing if shown == refined else 0) + (1 - nothing) * noise(q1, shown - refined))
        for shown in range(-reach, reach)
        for refined in range(-reach, reach)
    }


def test_the_distribution_of_a_refined_answer_on_neighbours_stays_within_the_refined_cost():
    wide, narrow = 3, 1
    one, other = pair_law(2, wide, narrow, 12), pair_law(3, wide, narrow, 12)
    ratios = [math.log(one[pair] / other[pair]) for pair in one]
    assert max(map(abs, ratios)) <= 1 / narrow + 1e-9
    assert max(map(abs, ratios)) == pytest.approx(1 / narrow)
    assert sum(pair_law(0, wide, narrow, 60).values()) == pytest.approx(1)


@pytest.mark.long
def test_the_release_draws_from_that_distribution():
    """Chi-square of the real path, where the ledger holds what was shown; a false alarm has a chance below 1e-9."""
    stats = pytest.importorskip("scipy.stats")
    wide, narrow, keys = 3, 1, tuple(f"k{i:04}" for i in range(3000))
    question = Question(EVENTS, BY, PublicGroups((keys,)), ContributionBounds(1, 1), (Count(),))
    rows = [{"user": i, "place": key, "x": 0.0} for i, key in enumerate(keys)]  # one person in every group
    seen = np.zeros((0, 2), np.int64)
    for _ in range(4):
        ledger = opened()
        first = told(ledger, ReleaseRequest(question, (Laplace(wide),)), rows=rows)
        second = told(ledger, finer(question, first.receipt, [wide], [narrow]), rows=rows)
        pair = np.stack([each.parts[0].values[:, 0] for each in (first, second)], axis=1)
        seen = np.concatenate([seen, pair])
    law = pair_law(1, wide, narrow, 60)
    cells = [pair for pair, chance in law.items() if chance * len(seen) >= 8]
    counts = dict.fromkeys(cells, 0)
    for pair in map(tuple, seen.tolist()):
        if pair in counts:
            counts[pair] += 1
    observed = [*counts.values(), len(seen) - sum(counts.values())]
    expected = [law[pair] * len(seen) for pair in cells]
    expected.append(len(seen) - sum(expected))
    assert stats.chisquare(observed, expected).pvalue > 1e-10
    # A second draw that ignored the first, with the same noise, would be told apart.
    alone = [privacy.pmf(Laplace(wide), a - 1) * privacy.pmf(Laplace(narrow), b - 1) * len(seen) for a, b in cells]
    alone.append(len(seen) - sum(alone))
    assert stats.chisquare(observed, alone).pvalue < 1e-10


def test_the_kernel_refines_the_stored_numbers_of_the_same_totals(monkeypatch):
    ledger, met = opened(), []

    def refine(noisy, exact, before, after):
        met.append((noisy.tolist(), exact.tolist(), before, after))
        return exact + 100

    first = told(ledger, ReleaseRequest(TWO, (Laplace(8), Laplace(9))))
    monkeypatch.setattr(release, "refine", refine)
    second = told(ledger, finer(TWO, first.receipt, [8, 9], [2, 3]))
    shown = first.parts[0].values
    assert met == [
        (shown[:, 0].tolist(), [2, 1], Laplace(8), Laplace(2)),
        (shown[:, 1].tolist(), [2, 1], Laplace(9), Laplace(3)),
    ]
    assert second.parts[0].values.tolist() == [[102, 102], [101, 101]]


# Which draw.


def test_only_the_newest_stored_draw_with_its_own_noise_is_refined():
    ledger = opened()
    first = told(ledger, ReleaseRequest(COUNT, (Laplace(9),))).receipt
    with pytest.raises(ValueError, match="different noise"):
        told(ledger, finer(COUNT, first, [8], [4]))
    with pytest.raises(Refused, match="Try again"):
        told(ledger, finer(COUNT, first, [9], [4]), version="2")  # other data
    other = Question(VISITS, (), PublicGroups(()), ContributionBounds(1, 2), (Count(),))
    with pytest.raises(Refused, match="Try again"):
        told(ledger, finer(other, first, [9], [4]))  # another limit
    second = told(ledger, finer(COUNT, first, [9], [4])).receipt
    with pytest.raises(Refused, match="Try again"):
        told(ledger, finer(COUNT, first, [9], [3]))  # refined already
    with pytest.raises(Refused, match="Try again"):
        recall_values(
            fingerprints_of(COUNT, "1")[0], Refinement(first.id, Laplace(9), Laplace(2)), ledger, "here"
        )  # the ledger would not take it either
    told(ledger, ReleaseRequest(COUNT, (Laplace(50),)))
    with pytest.raises(Refused, match="Try again"):
        told(ledger, finer(COUNT, second, [4], [2]))  # not the newest any more
    assert len(ledger.events()) == 3


@pytest.mark.parametrize(("before", "after"), [("", ""), ("", "here"), ("here", ""), ("here", "there")])
def test_only_a_draw_from_the_same_declared_source_is_refined(before, after):
    """Data that may have changed needs fresh noise: nothing is charged, and nothing is read."""
    ledger = opened()
    first = told(ledger, ReleaseRequest(COUNT, (Laplace(9),)), catalog=replace(CATALOG, source=before)).receipt
    with pytest.raises(ValueError, match="declared to be unchanged"):
        told(ledger, finer(COUNT, first, [9], [4]), catalog=replace(CATALOG, source=after))
    assert len(ledger.events()) == 1
    fresh = told(ledger, ReleaseRequest(COUNT, (Laplace(4),)), catalog=replace(CATALOG, source=after))
    assert ledger.spent().epsilon == Fraction(1, 9) + Fraction(1, 4)
    assert fresh.parts[0].source == after


def test_a_refinement_that_was_charged_and_lost_is_not_refined_from(monkeypatch):
    """A refinement that was charged may have been seen by somebody: nothing follows the same draw a second time."""
    ledger = opened()
    first = told(ledger, ReleaseRequest(COUNT, (Laplace(9),))).receipt
    with monkeypatch.context() as patch:
        patch.setattr(ReferenceEngine, "totals", lambda *_: 1 / 0)
        with pytest.raises(Failed):
            told(ledger, finer(COUNT, first, [9], [4]))
    with pytest.raises(Refused, match="Try again"):
        told(ledger, finer(COUNT, first, [9], [4]))
    lost = ledger.events()[-1]
    assert ledger.latest_receipt(fingerprints_of(COUNT, "1")[0]) == lost.id
    with pytest.raises(Refused, match="Try again"):  # nor from the lost one, whose values are not stored
        told(ledger, finer(COUNT, lost, [4], [2]))


def test_no_other_charge_comes_between_lookup_and_charge(monkeypatch):
    """The ledger looks again in the transaction that charges."""
    ledger = opened()
    first = told(ledger, ReleaseRequest(COUNT, (Laplace(9),))).receipt
    genuine = release.recall_values

    def slow(*arguments):
        found = genuine(*arguments)
        monkeypatch.setattr(release, "recall_values", genuine)
        told(ledger, finer(COUNT, first, [9], [8]))  # somebody else is quicker
        return found

    monkeypatch.setattr(release, "recall_values", slow)
    spent = Laplace(8).loss(Sensitivity(1, 1)).epsilon
    with pytest.raises(Refused, match="at the same time"):
        told(ledger, finer(COUNT, first, [9], [4]))
    assert ledger.spent().epsilon == spent


def test_one_question_does_not_refine_a_draw_twice():
    ledger = opened()
    first = told(ledger, ReleaseRequest(COUNT, (Laplace(9),))).receipt
    twice = finer(COUNT, first, [9], [4])
    with pytest.raises(ValueError, match="only once"):
        told(ledger, twice, twice)
    assert len(ledger.events()) == 1


@pytest.mark.parametrize("end", [(1 << 63) - 1, -(1 << 63)])
def test_a_clamped_value_is_not_refined(end, monkeypatch):
    """It may have been clamped, so that it no longer has the distribution: refused before the charge."""
    ledger, noises = opened(), (Laplace(8), Laplace(9))
    with monkeypatch.context() as patch:  # one value of one group
        patch.setattr(Laplace, "perturb", lambda self, values: np.where(np.arange(len(values)) == 1, end, values))
        first = told(ledger, ReleaseRequest(TWO, noises)).receipt
    spent = ledger.spent()
    with pytest.raises(ValueError, match="clamped"):
        told(ledger, finer(TWO, first, [8, 9], [2, 3]))
    assert ledger.spent() == spent


def test_a_draw_that_selected_groups_is_not_refined():
    """Its values are those that passed a threshold."""
    question = Question(EVENTS, BY, SelectedGroups(3), ContributionBounds(1, 1), (SelectionWeight(),))
    ledger = memory_ledger(name="demo", budget=Budget(100, delta="1/2", discover="1/2"))
    first = told(ledger, selecting(question, (Laplace(9), 300))).receipt
    with pytest.raises(ValueError, match="different noise"):
        recall_values(fingerprints_of(question, "1")[0], Refinement(first.id, Laplace(9), Laplace(2)), ledger, "here")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ReleaseRequest(COUNT, ("r",)),
        lambda: ReleaseRequest(TWO, (Refinement("r", Laplace(9), Laplace(4)),)),
        lambda: ReleaseRequest(
            Question(VISITS, BY, SelectedGroups(3), ContributionBounds(1, 1), (SelectionWeight(),)),
            (Refinement("r", Laplace(9), Laplace(4)),),
        ),
        lambda: selecting(
            Question(VISITS, BY, SelectedGroups(3), ContributionBounds(1, 1), (SelectionWeight(), Count())),
            (Laplace(4), 30),
            others=(Refinement("r", Laplace(9), Laplace(4)),),
        ),
        lambda: ReleaseRequest(TREE, (Refinement("r", Laplace(9), Laplace(4)),), walks=(lambda *_: None,)),
        lambda: Refinement("r", Gaussian(3), Laplace(1)),
        lambda: Refinement("r", Laplace(3), Gaussian(1)),
        lambda: Refinement(3, Laplace(3), Laplace(1)),
    ],
)
def test_an_impossible_refinement_is_refused(wrong):
    with pytest.raises((TypeError, ValueError)):
        wrong()


def test_a_refinement_has_a_difference_that_the_samplers_can_represent():
    least = Fraction(1, 10**200)  # of the two epsilons, per unit of sensitivity
    assert Refinement("r", Laplace(1), Laplace(1 / (1 + least))).after.scale < 1
    for less in (least * Fraction(999, 1000), least / 10):
        with pytest.raises(ValueError, match="smaller scale"):
            Refinement("r", Laplace(1), Laplace(1 / (1 + less)))


# Totals that are known already.


def test_a_total_from_history_is_neither_released_nor_charged():
    ledger = opened()
    asked = ReleaseRequest(TWO, (None, Laplace(2)))
    assert asked.loss() == Laplace(2).loss(TWO.sensitivity_of(TWO.totals[1]))
    released = told(ledger, asked)
    assert released.parts[0].values[:, 0].tolist() == [0, 0]
    (event,) = ledger.events()
    assert event.fingerprints == (("", fingerprints_of(TWO, "1")[1]),)
    assert json.loads(event.mechanism)["name"] == "laplace"
    assert [(draw.position, draw.noise) for draw in stored_draws(event)] == [(1, Laplace(2))]


def test_an_empty_request_is_refused():
    with pytest.raises(ValueError, match="not only None"):
        ReleaseRequest(TWO, (None, None))
    with pytest.raises(TypeError, match="type of the total"):
        ReleaseRequest(replace(TREE, totals=(Count(), *TREE.totals)), (Laplace(1), None), walks=(lambda *_: None,))


def test_the_total_used_for_partition_selection_is_always_drawn():
    question = Question(VISITS, BY, SelectedGroups(3), ContributionBounds(1, 1), (SelectionWeight(), Count()))
    with pytest.raises(TypeError, match="type of the total"):
        ReleaseRequest(question, (None, Laplace(1)))
    first = selecting(replace(question, totals=(SelectionWeight(),)), (Laplace(1), 20))
    assert selecting(question, (Laplace(1), 20), others=(None,)).loss() == first.loss()


# What the accountants say.


def test_a_refined_event_converts_and_replaces_the_one_that_it_refined():
    pytest.importorskip("dp_accounting")
    ledger = opened()
    first = told(ledger, ReleaseRequest(COUNT, (Laplace(10),))).receipt
    told(ledger, finer(COUNT, first, [10], [4]))
    one, two = ledger.events()
    assert to_dp_event(two) == to_dp_event(Laplace(4), 1)  # by itself it loses no less than the finer draw
    assert composed_dp_event([one, two]).events == composed_dp_event([(Laplace(4), 1)]).events
    assert declared_epsilon([one, two], 0) == pytest.approx(0.25)
    assert declared_epsilon([two], 0) == pytest.approx(0.25)


def test_several_refined_totals_convert_too():
    pytest.importorskip("dp_accounting")
    ledger = opened()
    first = told(ledger, ReleaseRequest(TWO, (Laplace(10), Laplace(20)))).receipt
    told(ledger, finer(TWO, first, [10, 20], [4, 10]))
    one, two = ledger.events()
    pairs = zip(TWO.totals, (Laplace(4), Laplace(10)), strict=True)
    once = sum(noise.loss(TWO.sensitivity_of(total)).epsilon for total, noise in pairs)
    assert ledger.spent().epsilon == once
    assert declared_epsilon([one, two], 0) == pytest.approx(float(once))
    assert to_dp_event(two)
