"""Audits through `ask`: what many answers tell of one person stays below the claim, and comes near it."""

import math
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import beta

import discreet as dc
from discreet.estimate.contribution_buckets import ContributionBuckets, choose_radius
from discreet.kernel.mechanism import Laplace
from discreet.policy import Policy
from discreet.pricing import automatic_bounds

sys.path.insert(0, str(Path(__file__).parents[1]))
from fresh_answers import asking_anew

pytestmark = pytest.mark.slow

POLICY = """
[data]
name = "audit"
ledger = ":memory:"
[budget]
epsilon = 100000
{delta}
[tables.t]
source = "t"
unit = "person"
groups = 2
rows = 3
rows_max = 1000
[tables.t.columns]
person = {{ type = "integer" }}
ward = {{ type = "text", in = ["A", "B", "C"] }}
street = {{ type = "text" }}
x = {{ type = "real", between = [0, 10] }}
"""
AUTOMATIC = """
[data]
name = "audit"
ledger = ":memory:"
[budget]
epsilon = 100000
bounds_share = 0.5
[tables.t]
source = "t"
unit = "person"
rows_max = 1000
[tables.t.columns]
person = { type = "integer" }
"""
MANY, HALF, SOME = 20_000, 10_000, 3_000
COINS = 40_000
MISSED = 1e-9  # the chance that a sound curator looks unsound


def rows(people, *, heavy=None):
    found = [(person, "A", "Main", 5.0) for person in range(people)]
    if heavy is not None:  # somebody in every group, with more rows than anybody may weigh
        found += [(heavy, ward, f"{ward} Street {number}", 10.0) for ward in "ABC" for number in range(5)]
    return pa.table(dict(zip(("person", "ward", "street", "x"), map(list, zip(*found, strict=True)), strict=True)))


def hits_of(runs, table, sql, event, *, delta="", asks=None):
    """Count how often an event happens; a ledger that allows fewer queries is replaced after so many `asks`."""
    hits, policy = 0, Policy.parse(POLICY.format(delta=delta))
    for start in range(0, runs, asks or runs):
        with dc.open(policy, data={"t": table}) as curator:
            ask = asking_anew(curator)
            hits += sum(event(ask(sql, epsilon=1)) for _ in range(min(asks or runs, runs - start)))
    return hits


def epsilon_low(runs, hits, other):
    """Return the largest epsilon that two counts of an event show, at a confidence of 1 - MISSED."""
    low = beta.ppf(MISSED / 2, hits, runs - hits + 1) if hits else 0.0
    high = beta.ppf(1 - MISSED / 2, other + 1, runs - other)
    return math.log(low / high) if low > 0 else -math.inf


COUNT = "SELECT COUNT(DISTINCT person) AS n FROM t"


def test_a_count_leaks_no_more_than_epsilon_and_nearly_as_much():
    with_them, without = (hits_of(MANY, rows(n), COUNT, lambda answer: answer.value >= 50) for n in (50, 49))
    low = epsilon_low(MANY, with_them, without)
    print(f"audit of a count: {low:.3f} of 1")
    assert 0.85 < low <= 1


@pytest.mark.parametrize(
    ("sql", "event"),
    [
        ("SELECT ward, COUNT(*) AS n FROM t GROUP BY ward", lambda answer: sum(answer.table["n"].to_pylist()) >= 36),
        ("SELECT SUM(x) AS s FROM t", lambda answer: answer.value >= 165),
        ("SELECT AVG(x) AS a FROM t", lambda answer: answer.value is not None and answer.value >= 6.5),
        (
            "SELECT SUM(CLIP(n, 0, 3)) AS s FROM (SELECT person, COUNT(*) AS n FROM t GROUP BY person) AS u",
            lambda answer: answer.value >= 32,
        ),
        ("SELECT COUNT(DISTINCT street) AS n FROM t", lambda answer: answer.value >= 4),
    ],
    ids=["groups", "sum", "mean", "per person", "different values"],
)
def test_somebody_with_many_rows_in_every_group_leaks_no_more(sql, event):
    with_them, without = (hits_of(SOME, table, sql, event) for table in (rows(30, heavy=99), rows(30)))
    low = epsilon_low(SOME, with_them, without)
    print(f"audit of {sql[:40]}: {low:.3f} of 1")
    assert with_them > without  # the event tells something, or it would be no test
    assert low <= 1


class AutomaticBounds:
    """Counts under automatic bounds, as the kernel releases them: the histogram, then the count clipped to its radius.

    `ask` runs once for each radius; the noise that its mechanisms add is then drawn many times at once.
    """

    def __init__(self, people, monkeypatch):
        person = np.repeat(*np.array(people).T)
        self._monkeypatch = monkeypatch
        self._counts: dict = {}
        self.curator = dc.open(Policy.parse(AUTOMATIC), data={"t": pa.table({"person": person})})
        self._ask = asking_anew(self.curator)
        self.histogram, _, (buckets, *self._rest) = self.ask(choose_radius)
        self.lows = buckets.lows

    def ask(self, choose):
        """Ask once; return the mechanism and the exact integers of histogram and count, and what `choose` was given."""
        drawn, given = [], []

        def watched(noise, values):
            drawn.append((noise, np.array(values)))
            return perturb(noise, values)

        def chosen(*arguments):
            given.append(arguments)
            return choose(*arguments)

        perturb = Laplace.perturb
        with self._monkeypatch.context() as patched:
            patched.setattr(Laplace, "perturb", watched)
            patched.setattr(automatic_bounds, "choose_radius", chosen)
            self._ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
        (histogram, count), (arguments,) = drawn, given
        return histogram, count, arguments

    def draw_histograms(self, runs):
        """Return noisy histograms, and the choice that follows from each."""
        noise, exact = self.histogram
        noisy = noise.perturb(np.tile(exact, runs)).reshape(runs, -1)
        return noisy, [choose_radius(ContributionBuckets(self.lows, each, noise), *self._rest) for each in noisy]

    def count_for(self, choice):
        """Return the mechanism and the exact integer of a count with a chosen radius."""
        if choice not in self._counts:
            _, (noise, (exact,)), _ = self.ask(lambda *_: choice)
            self._counts[choice] = noise, int(exact)
        return self._counts[choice]


def test_automatic_bounds_leak_no_more_than_both_charges_and_nearly_as_much(monkeypatch):
    """The attacker sees the histogram too: it has half of the cost, and the count, clipped to its radius, the rest.

    They guess "somebody with 900 rows" if both numbers are at least what that person makes them, "nobody" if both are
    at most what they are without, and nothing otherwise. Data sets are drawn by a coin; after any output, the odds of
    one against the other are at most e^epsilon, so each guess is right with probability at most 1/(1 + e^-epsilon).
    """
    crowd = [(person, 1) for person in range(30)]
    here, there = (AutomaticBounds(people, monkeypatch) for people in ([*crowd, (99, 900)], crowd))
    place = int(np.flatnonzero(here.histogram[1] != there.histogram[1])[0])
    included = np.random.default_rng(7).random(COINS) < 0.5
    right = guesses = 0
    for is_here, side in ((True, here), (False, there)):
        noisy, choices = side.draw_histograms(int((included == is_here).sum()))
        for choice in set(choices):
            shown = noisy[[each == choice for each in choices], place]
            noise, exact = side.count_for(choice)
            counts = noise.perturb(np.full(len(shown), exact))
            says_here = (shown >= here.histogram[1][place]) & (counts >= here.count_for(choice)[1])
            says_there = (shown <= there.histogram[1][place]) & (counts <= there.count_for(choice)[1])
            guesses += int((says_here | says_there).sum())
            right += int((says_here if is_here else says_there).sum())
    for side in (here, there):  # what was drawn many times is what `ask` draws
        for _ in range(20):
            made = []
            histogram, (noise, (exact,)), _ = side.ask(
                lambda *given, made=made: made.append(choose_radius(*given)) or made[0]
            )
            assert (histogram[0], histogram[1].tolist()) == (side.histogram[0], side.histogram[1].tolist())
            assert (noise, int(exact)) == side.count_for(made[0])
        side.curator.close()
    share = beta.ppf(MISSED, right, guesses - right + 1)
    low, estimate = math.log(share / (1 - share)), math.log(right / (guesses - right))
    print(
        f"audit of automatic bounds: {low:.3f} of 1, by point estimate {estimate:.3f}; {right:,} of {guesses:,} right"
    )
    assert 0.8 < low <= 1


def test_a_street_with_one_person_is_hardly_ever_shown():
    def shown(answer):
        return "Lonely" in answer.table["street"].to_pylist()

    sql = "SELECT street, COUNT(*) AS n FROM t GROUP BY street"
    lone = [*rows(30).to_pylist(), {"person": 99, "ward": "A", "street": "Lonely", "x": 1.0}]
    # One question may take a hundredth of the half of delta that is set apart.
    hits = hits_of(HALF, pa.Table.from_pylist(lone), sql, shown, delta="delta = 0.5", asks=100)
    low = beta.ppf(MISSED / 2, hits, HALF - hits + 1) if hits else 0.0
    assert low <= 0.5 * 0.5 / 100
    assert hits > 0  # delta is large enough here for it to happen: the test could fail
