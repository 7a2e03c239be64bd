"""Every broken publication is caught, by evidence that ours passes: audits, exact integers, and counted draws."""

import numpy as np
import pytest
from publish.hospital import PEOPLE, curator_on, visits

from discreet import audit
from discreet.kernel.mechanism import Laplace
from discreet.kernel.reservation import Reservation, reserve
from discreet.publish import publication, synthetic
from discreet.publish.plan import PublicationPlan
from discreet.publish.synthetic import KernelMeasurer
from tests.broken import publishers

CROWD = [(person, person % 2, person % 3) for person in range(8)]
ONE_MORE = [*CROWD, (8, 0, 0), (8, 0, 0)]
FIFTY_MORE = [*CROWD, *[(8, 0, 0)] * 50]
SURE = 1 - 1e-9


def bound(told, here, runs):
    """Return whether the claim holds, and the lower bound on epsilon, for the removal of the last unit."""
    return audit.measure(told, here, CROWD, claim=publishers.EPSILON, runs=runs, confidence=SURE, random_state=1)


def tables_of(publisher):
    return lambda rows: tuple(publisher.tables(publishers.Rows(rows)))


def size_of(publisher):
    return lambda rows: int(publisher.synthetic(publishers.Rows(rows)).sum())


BROKEN_TABLES = [publishers.KeepsTheExactTotal(), publishers.SolvesWithAnExactTable()]


@pytest.mark.long
@pytest.mark.parametrize("here", [ONE_MORE, FIFTY_MORE], ids=["two rows", "fifty rows"])
def test_tables_that_keep_their_claim_pass(here):
    assert bound(tables_of(publishers.Sound()), here, 400).holds


@pytest.mark.long
@pytest.mark.parametrize("publisher", BROKEN_TABLES, ids=lambda each: type(each).__name__)
def test_tables_with_an_exact_number_are_caught(publisher):
    assert not bound(tables_of(publisher), ONE_MORE, 400).holds


@pytest.mark.long
def test_clipping_that_is_skipped_for_a_unit_with_many_rows_is_caught(monkeypatch):
    publishers.without_clipping(monkeypatch)
    assert bound(tables_of(publishers.Sound()), ONE_MORE, 400).holds, "who has few rows sees no difference"
    assert not bound(tables_of(publishers.Sound()), FIFTY_MORE, 400).holds


@pytest.mark.long
def test_the_exact_number_of_synthetic_rows_is_caught():
    assert not bound(size_of(publishers.ExactNumberOfRows()), ONE_MORE, 200).holds
    assert bound(size_of(publishers.Sound()), ONE_MORE, 200).holds


class Watched(Laplace):
    """Noise that is not added; keeps what it would be added to, in units of its scale."""

    def perturb(self, values):
        FOUND.append(values / float(self.scale))
        return values


FOUND: list[float] = []


def epsilon_of_distances(here):
    """Return how much the distances of a plan disclose of the last unit, by exact integers, and what is charged."""
    _, part = publishers.parts()
    noise, worst = Watched(part.releases.noises[1][0].scale), 0.0
    for table in ((0, 1), (0,), (1,)):
        model = np.full(int(np.prod([part.releases.sizes[column] for column in table])), 30)
        for rows in (here, CROWD):
            source = publishers.Rows(rows).of([0, 1], part.rows.bounds)
            KernelMeasurer(part.releases, source, reserve([noise])).distances([table], [model])
        worst = max(worst, abs(FOUND[-2] - FOUND[-1]))
    return worst, float(reserve([noise]).loss.epsilon)


def test_a_distance_that_is_charged_with_half_its_sensitivity_is_caught(monkeypatch):
    worst, charged = epsilon_of_distances(ONE_MORE)
    assert worst == pytest.approx(charged), "two rows in one cell attain the bound"
    assert epsilon_of_distances(FIFTY_MORE)[0] <= charged * (1 + 1e-9)
    monkeypatch.setattr(synthetic, "noisy_distance", publishers.half_as_sensitive(synthetic.noisy_distance))
    worst, charged = epsilon_of_distances(ONE_MORE)
    assert worst == pytest.approx(2 * charged)


@pytest.mark.parametrize("broken", [False, True], ids=["ours", "broken"])
def test_a_part_that_is_drawn_again_after_a_crash_is_caught(tmp_path, monkeypatch, broken):
    """By the number of draws for one charge: one, whatever was stored of it."""
    draws, take, settle = [], Reservation.take_noise, Reservation.settle
    monkeypatch.setattr(Reservation, "take_noise", lambda each: draws.append(each.receipt.id) or take(each))
    if broken:
        monkeypatch.setattr(publication, "_result_of", publishers.draws_what_is_missing)
    plan = PublicationPlan.parse(
        "[release]\nname = 'x'\nepsilon = 1\n"
        "[tables.a]\nsql = 'SELECT COUNT(*) AS n FROM visits'\n"
        "[tables.b]\nsql = 'SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward'\n" + PEOPLE
    )
    with curator_on(visits(60)) as curator:
        with monkeypatch.context() as patch:
            patch.setattr(Reservation, "settle", _crash)
            with pytest.raises(KeyboardInterrupt):
                curator.publish(plan, tmp_path / "out")
        assert Reservation.settle is settle
        release = curator.publish(plan, tmp_path / "out")
        assert len(curator.ledger.events()) == 2
    assert len(draws) == (2 if broken else 1)
    assert len(set(draws)) == 1
    assert release.missing == (() if broken else ("a", "b", "people"))


def _crash(*_):
    raise KeyboardInterrupt
