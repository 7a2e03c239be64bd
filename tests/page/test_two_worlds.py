"""One question, two worlds: every probability on the page is that of the mechanism, and the record is the curator's."""

import json
import math
from fractions import Fraction

import pytest

import discreet as dc
from discreet.kernel.mechanism import Laplace
from discreet.page_assets import hashed_policy, source_hash
from discreet.worlds.two_worlds import page, record
from discreet.worlds.two_worlds.page import sql_markup
from discreet.worlds.two_worlds.record import EPSILONS, binned, halved
from discreet.worlds.two_worlds.rounded_counts import RoundedNoise

GRID = 8  # coarse, so that all outcomes can be added up one by one


def noise_of(epsilon, steps=GRID):
    return RoundedNoise(Laplace(steps / Fraction(epsilon)), steps)


def rounded_pmf(noise, reach):
    """Add up the grid's probabilities by the integer to which each outcome is rounded, ties upwards."""
    found = {}
    for outcome in range(-reach * noise.steps, reach * noise.steps):
        k = math.floor(Fraction(outcome, noise.steps) + Fraction(1, 2))
        found[k] = found.get(k, 0.0) + dc.privacy.pmf(noise.noise, outcome)
    return found


@pytest.mark.parametrize("epsilon", ["1/2", "1", "3"])
def test_probabilities_are_sums_over_the_grid(epsilon):
    noise = noise_of(epsilon)
    pmf = rounded_pmf(noise, 60)
    for k in range(-5, 6):
        assert float(noise.probability(k)) == pytest.approx(pmf[k], abs=1e-12)
    assert float(noise.at_least(0)) == pytest.approx(sum(p for k, p in pmf.items() if k >= 0), abs=1e-12)
    assert noise.both_equal() == pytest.approx(sum(p * p for p in pmf.values()), abs=1e-12)


def test_ties_are_rounded_upwards():
    fine = noise_of(1, steps=2)
    assert float(fine.probability(0)) == pytest.approx(sum(dc.privacy.pmf(fine.noise, k) for k in (-1, 0)), abs=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS[::5])
def test_no_outsider_and_no_attack_exceeds_the_ceiling(epsilon):
    noise = noise_of(epsilon, steps=1 << 20)
    ceiling = dc.privacy.posterior_bound(Fraction(1, 2), epsilon)
    right = (noise.at_least(0) + 1 - noise.at_least(1)) / 2
    attack = (1 + halved(noise).both_equal()) / 2
    assert 0.5 < attack < right < ceiling
    assert float(ceiling - right) < 0.1 * float(epsilon)


def test_guessing_in_from_the_true_count_on_is_the_best_guess():
    noise = noise_of("1/2", steps=1 << 20)
    best = max(noise.at_least(k) + 1 - noise.at_least(k + 1) for k in range(-10, 11))
    assert noise.at_least(0) + 1 - noise.at_least(1) >= best - Fraction(1, 10**6)  # a tie goes upwards


@pytest.mark.parametrize("epsilon", ["1/100", "1/10", "3"])
def test_the_bins_of_one_world_are_those_of_the_other_moved_by_a_person(epsilon):
    noise = noise_of(epsilon, steps=1 << 20)
    bins = binned(noise)
    assert all(
        here == pytest.approx(there, abs=1e-4) for here, there in zip(bins["with"], bins["without"][::-1], strict=True)
    )
    assert sum(bins["with"][16:]) == pytest.approx(float(noise.at_least(0)), abs=0.03)
    assert max(bins["with"]) == max(bins["with"][16:])
    if epsilon == "3":
        assert bins["with"][15:17] == bins["without"][14:16]


def test_drawn_pairs_are_integers_of_both_signs():
    pairs = [noise_of("1/10").draw_pair() for _ in range(40)]
    assert {type(value) for pair in pairs for value in pair} == {int}
    assert min(map(min, pairs)) < 0 < max(map(max, pairs))


def test_sql_is_escaped_whatever_it_contains():
    hostile = "SELECT '<script>alert(1)</script>' FROM \"<img onerror=x>\" -- <b>"
    assert "<script" not in sql_markup(hostile)
    assert "<img" not in sql_markup(hostile)
    assert "<b>" not in sql_markup(hostile)


def test_the_record_cannot_close_its_script():
    text = page.record_json({"sql": "</script><script>alert(1)</script><!--"})
    assert "<" not in text
    assert json.loads(text) == {"sql": "</script><script>alert(1)</script><!--"}


def test_a_changed_script_has_another_hash():
    assert source_hash("a") != source_hash("b")
    assert source_hash("a") in hashed_policy("x", ("a",))
    assert "unsafe-inline" not in hashed_policy("x", ("a",))


@pytest.fixture(scope="module")
def built():
    return record.build_record()


@pytest.mark.long
def test_the_record_is_what_the_curator_answered_and_charged(built):
    *protected, exact = built["steps"]
    assert [step["epsilon"] for step in protected] == [f"{float(epsilon):g}" for epsilon in EPSILONS]
    assert exact["counts"] == built["truth"]
    for step in protected:
        scale = 1 / float(step["epsilon"])
        assert all(abs(step["counts"][ward] - count) < 40 * scale + 1 for ward, count in built["truth"].items())
        assert step["margin"] == pytest.approx(3.0 * scale + 0.5, rel=0.1)
        assert step["words"]["mechanism"] == f"discrete Laplace, scale {scale:.4g}"
        assert "not enough budget left" in step["words"]["next"]
        assert step["words"].keys() == exact["words"].keys()
    assert len({step["words"]["ledger_hash"] for step in protected}) == len(protected)


@pytest.mark.long
def test_residents_can_be_recognised_and_have_the_illness(built):
    assert len({resident["ward"] for resident in built["residents"]}) == len(built["residents"]) >= 3
    first, second = built["true_pair"]
    assert int(first.replace(",", "")) - int(second.replace(",", "")) == 1


@pytest.mark.long
def test_the_page_has_every_word_and_is_small(built):
    text = page.static_page(built)
    assert len(text.encode()) < 150_000
    assert "$" not in page.worlds_html(built)
    assert "http" not in text.replace("http-equiv", "")
