"""A more accurate repeat after the data changed: what it discloses, exactly, against what it is charged."""

import itertools
import json
import math
from fractions import Fraction

import pyarrow as pa
import pytest

import discreet as dc
from discreet.kernel.mechanism import Gaussian
from discreet.policy import Policy

COUNT = "SELECT COUNT(*) AS n FROM visits"
BEFORE, AFTER = 3, 9  # rows when the first and the second answer are drawn


def policy(version=None, *, ledger, delta=None):
    return Policy.from_dict(
        {
            "data": {"name": "visits", "ledger": str(ledger)} | ({"version": version} if version else {}),
            "budget": {"epsilon": 10} | ({"delta": delta} if delta else {}),
            "tables": {"visits": {"source": "visits.csv", "unit": "row", "columns": {"place": {"type": "text"}}}},
        }
    )


def asked(declared, rows, epsilon):
    """Ask for the number of rows; return the answer, the ledger's events and the spent budget."""
    with dc.open(declared, data={"visits": pa.table({"place": ["a"] * rows})}) as curator:
        said = curator.explain(COUNT, epsilon=epsilon)
        answer = curator.ask(COUNT, epsilon=epsilon)
        assert said.paid == answer.paid
        return answer, curator.ledger.events(), curator.budget().spent


def log_laplace(scale, value):
    ratio = math.exp(-1 / scale)
    return math.log((1 - ratio) / (1 + ratio)) - abs(value) / scale


def log_remainder(wide, narrow, value):
    """Return the log-probability of a draw of the wider noise minus the narrower draw inside it."""
    q1, q2 = math.exp(-1 / wide), math.exp(-1 / narrow)
    nothing = q2 / q1 * ((1 - q1) / (1 - q2)) ** 2
    return math.log((nothing if value == 0 else 0) + (1 - nothing) * math.exp(log_laplace(wide, value)))


def log_probability(records, shown, counts):
    """Return the log-probability of two answers under the recorded mechanisms; the second may refine the first."""
    (first, second), (one, two), (before, after) = records, shown, counts
    wide, narrow = float(Fraction(first["scale"])), float(Fraction(second["scale"]))
    independent = log_laplace(wide, one - before) + log_laplace(narrow, two - after)
    if second["name"] == "laplace":
        return independent
    assert (second["name"], second["before"]) == ("refined", first["scale"])
    # drawn given the first answer, as if that had been about the present count
    return independent + log_remainder(wide, narrow, one - two) - log_laplace(wide, one - after)


def loss_of(events):
    """Return the largest log-ratio of the two answers, over neighbours with one row more in either or both counts."""
    records = [json.loads(event.mechanism) for event in events]
    assert all(json.loads(event.sensitivity)["l1"] == "1" for event in events)
    return max(
        abs(
            log_probability(records, shown, (BEFORE, AFTER))
            - log_probability(records, shown, (BEFORE + joined[0], AFTER + joined[1]))
        )
        for shown in itertools.product(range(-10, 25), repeat=2)
        for joined in ((0, 1), (1, 0), (1, 1))
    )


def test_a_more_accurate_repeat_stays_within_its_charge_if_the_data_changed(tmp_path):
    """Without a declared version the owner states nothing about the data: the second draw is independent, in full."""
    undeclared = policy(ledger=tmp_path / "ledger.sqlite")
    asked(undeclared, BEFORE, "1/2")
    answer, events, spent = asked(undeclared, AFTER, 1)
    assert (answer.paid.epsilon, spent.epsilon) == (1, Fraction(3, 2))
    assert loss_of(events) == pytest.approx(1.5)
    assert any("declare `version`" in note for note in answer.notes)
    assert asked(undeclared, AFTER, 1)[0].paid.epsilon == 0  # repeated


def test_a_refinement_relies_on_the_declared_version(tmp_path):
    """If data changed under a declared version, more is lost than was charged: the version has to change."""
    declared = policy("2026", ledger=tmp_path / "ledger.sqlite")
    asked(declared, BEFORE, "1/2")
    answer, events, spent = asked(declared, AFTER, 1)
    assert (answer.paid.epsilon, spent.epsilon) == (Fraction(1, 2), 1)
    assert loss_of(events) == pytest.approx(2)
    renamed = policy("2027", ledger=tmp_path / "ledger.sqlite")
    assert asked(renamed, AFTER, 2)[0].paid.epsilon == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {"version": "1"}),  # the default label, declared later
        ({"version": "1"}, {}),
    ],
)
def test_a_version_that_was_not_declared_throughout_does_not_refine(first, second, tmp_path):
    ledger = tmp_path / "ledger.sqlite"
    coarse = asked(policy(**first, ledger=ledger), BEFORE, "1/2")[0]
    repeated = asked(policy(**second, ledger=ledger), AFTER, "1/2")[0]
    assert (repeated.paid.epsilon, repeated.value) == (0, coarse.value)
    answer, events, spent = asked(policy(**second, ledger=ledger), AFTER, 1)
    assert (answer.paid.epsilon, spent.epsilon) == (1, Fraction(3, 2))
    assert loss_of(events) == pytest.approx(1.5)


def test_the_same_version_at_another_location_does_not_refine(tmp_path):
    ledger = tmp_path / "ledger.sqlite"
    (tmp_path / "visits.csv").write_text("place\n" + "a\n" * BEFORE)
    (tmp_path / "others.csv").write_text("place\n" + "a\n" * AFTER)
    text = """
        [data]
        name = "visits"
        version = "2026"
        ledger = "ledger.sqlite"
        [budget]
        epsilon = 10
        [tables.visits]
        source = "{}.csv"
        unit = "row"
        columns = {{ place = {{ type = "text" }} }}
    """
    for source, epsilon, paid in (
        ("visits", "1/2", "1/2"),
        ("others", "1/2", 0),  # repeated
        ("others", 1, 1),
        ("others", 2, 1),  # refined
        ("visits", 3, 3),
    ):
        with dc.open(Policy.parse(text.format(source), tmp_path)) as curator:
            assert curator.explain(COUNT, epsilon=epsilon).paid.epsilon == Fraction(paid)
            assert curator.ask(COUNT, epsilon=epsilon).paid.epsilon == Fraction(paid)
    frame = policy("2026", ledger=ledger)  # whose table has the same name and no file
    assert asked(frame, BEFORE, 4)[0].paid.epsilon == 4


def test_gaussian_draws_are_independent_and_charged_whatever_happened_to_the_data(tmp_path):
    budget = policy(ledger=tmp_path / "ledger.sqlite", delta="1e-6")
    for rows, epsilon in ((BEFORE, "1/2"), (AFTER, 1), (BEFORE, 2)):
        _, events, spent = asked(budget, rows, epsilon)
    records = [json.loads(event.mechanism) for event in events]
    assert [(record["name"], event.follows) for record, event in zip(records, events, strict=True)] == [
        ("gaussian", ())
    ] * 3
    order = 4  # Rényi divergences of independent draws add up, wherever the counts are
    divergences = [renyi(Gaussian(record["scale"]), order) for record in records]
    assert sum(divergences) <= order * spent.rho
    assert sum(divergences) == pytest.approx(float(order * spent.rho), rel=1e-3)


def renyi(noise, order):
    """Return the Rényi divergence of a count with this noise from a count that is one larger."""
    reach = math.ceil(12 * noise.scale) + order
    total = sum(
        math.exp(order * log_gaussian(noise, k) - (order - 1) * log_gaussian(noise, k - 1))
        for k in range(-reach, reach)
    )
    weights = sum(math.exp(log_gaussian(noise, k)) for k in range(-reach, reach))
    return math.log(total / weights) / (order - 1)


def log_gaussian(noise, k):
    return -float(k**2 / (2 * noise.scale**2))
