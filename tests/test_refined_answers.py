"""Asking more exactly pays the difference: what is charged, what comes out, and how exact it is."""

import json
import math
import subprocess
import sys
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet as dc
from discreet.curator.in_flight_locks import InFlightLocks
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.policy import Policy
from discreet.pricing.combined_release import combined_noise, weighted_mean

sys.path.insert(0, str(Path(__file__).parent))
from test_curator import DELTA, POLICY, opened, tables

COUNT = "SELECT COUNT(*) AS n FROM sales"
BY_CITY = "SELECT city, COUNT(*) AS n, SUM(pieces) AS s FROM sales GROUP BY city"
STREETS = "SELECT street, COUNT(*) AS n FROM sales GROUP BY street"
RICH = {"epsilon = 4.0": "epsilon = 400"}


@pytest.fixture(params=["", DELTA], ids=["pure", "delta"])
def curator(request):
    with opened(request.param, **RICH) as found:
        yield found


def amount(loss):
    return loss.rho if loss.epsilon is None else loss.epsilon


# What is charged.


@pytest.mark.parametrize(
    "sql", [COUNT, BY_CITY, "SELECT city, AVG(amount) AS a, STDDEV(pieces) AS s FROM sales GROUP BY city"]
)
def test_refining_charges_in_total_the_cost_of_asking_once(curator, sql):
    once = partial(dc.privacy.cost_of, curator.policy.budget)
    prices = ["1/3", "1/2", "0.7", 2, 5]
    before = Fraction(0)
    for price in prices:
        answer = curator.ask(sql, epsilon=price)
        assert amount(curator.budget().spent) == amount(once(price))
        assert amount(answer.paid) == amount(once(price)) - before
        assert amount(answer.loss) == amount(once(price))
        before = amount(once(price))
    curator.ledger.verify()
    assert len(curator.ledger.events()) == len(prices)


def test_a_total_drawn_separately_by_two_parts_of_a_query_is_redrawn(curator):
    """COUNT(*) beside different values is drawn with them, and once more for the other part: neither is refined."""
    mixed = "(SELECT COUNT(*) AS n, COUNT(DISTINCT pieces) AS d FROM sales) AS a"
    sql = f"SELECT * FROM {mixed} CROSS JOIN (SELECT COUNT(*) AS k FROM sales) AS b"
    before = curator.budget().spent
    for price in ("1/2", 1, 2):
        answer = curator.ask(sql, epsilon=price)
        assert amount(curator.budget().spent) == amount(before) + amount(answer.paid)
        assert curator.ask(sql, epsilon=price).paid == ZERO_LOSS
        before = curator.budget().spent
    refined = {fingerprint for event in curator.ledger.events() for fingerprint, _ in event.follows}
    assert len(refined) <= 1  # the contribution histogram
    curator.ledger.verify()


def test_a_refined_answer_has_the_margin_of_asking_once(curator):
    for price in ("1/2", 2):
        finer = curator.ask(BY_CITY, epsilon=price)
    with opened("" if curator.policy.budget.rho is None else DELTA, **RICH) as other:
        once = other.ask(BY_CITY, epsilon=2)
    for name in ("n", "s"):
        for one, two in zip(finer.margins[name], once.margins[name], strict=True):
            assert two <= one <= two * 1.02 + 1


def test_explain_states_the_marginal_cost_and_the_margin(curator):
    curator.ask(BY_CITY, epsilon="1/2")
    said = curator.explain(BY_CITY, epsilon=2)
    assert "partly reused from earlier answers" in " ".join(repr(said).split())
    answer = curator.ask(BY_CITY, epsilon=2)
    assert (said.paid, said.cost.loss) == (answer.paid, answer.loss)
    assert {column.name: [column.margin] * 3 for column in said.columns} == answer.margins


def test_the_ledger_records_what_was_done_as_data():
    with opened(**RICH) as curator:
        first = curator.ask(COUNT, epsilon="1/2")
        curator.ask(COUNT, epsilon=1)
        _, event = curator.ledger.events()
        parts = json.loads(event.mechanism)["parts"]
        assert [part["name"] for part in parts] == ["refined"] * len(parts)
        assert {part["of"] for part in parts} == {first.receipt.id}
        assert Fraction(parts[0]["before"]) == 2 * Fraction(parts[0]["scale"])
        assert [receipt for _, receipt in event.follows] == [first.receipt.id] * len(parts)
        assert dc.privacy.to_dp_event(event)
        assert dc.privacy.declared_epsilon(curator.ledger.events(), 0) == pytest.approx(1)


# What comes out.


def draws_of(curator, place=0):
    """Return the stored numbers and noises of each event, read without the code under test."""
    found = []
    for event in curator.ledger.events():
        (receipt,) = [event.id]
        with curator.ledger.session.read_transaction() as table:
            stored = json.loads(table.answer(receipt))
        data = json.loads(event.mechanism)
        listed = data["parts"] if data["name"] == "several" else [data]
        noise = json.loads(listed[place]["noise"]) if listed[place]["name"] == "threshold" else listed[place]
        rows = dict(zip(map(tuple, stored[0]["keys"]), (row[place] for row in stored[0]["values"]), strict=True))
        found.append((rows, Fraction(noise["scale"])))
    return found


def test_all_draws_are_weighted_by_inverse_variance():
    with opened(DELTA, **RICH) as curator:
        for price in (1, 2, 4, 5):
            answer = curator.ask(COUNT, epsilon=price)
        draws = draws_of(curator)
    assert len(draws) == 4
    weights = [1 / scale**2 for _, scale in draws]
    mean = sum(w * rows[()] for w, (rows, _) in zip(weights, draws, strict=True)) / sum(weights)
    assert abs(answer.value - mean) <= Fraction(1, 2) + Fraction(1, 1000)
    assert answer.margin <= dc.privacy.margin(Gaussian(float(sum(weights)) ** -0.5), "0.95") + 1


def test_a_refined_laplace_draw_replaces_the_coarser_one():
    with opened(**RICH) as curator:
        for price in ("1/2", 2):
            answer = curator.ask(COUNT, epsilon=price)
        (_, _), (rows, scale) = draws_of(curator)
    assert answer.value == rows[()]
    assert answer.margin == dc.privacy.margin(Laplace(scale), "0.95")


def test_only_the_missing_accuracy_of_one_column_is_drawn(curator):
    first = curator.ask(BY_CITY, epsilon=1)
    n = curator.explain(BY_CITY, epsilon=1).columns[0].margin
    finer = curator.ask(BY_CITY, margin={"s": first.margins["s"][0] / 3})
    assert finer.table["n"] == first.table["n"]
    assert finer.margins["n"] == [n] * 3
    assert finer.margins["s"][0] <= first.margins["s"][0] / 3
    assert finer.table["s"] != first.table["s"] or curator.policy.budget.rho is None


def test_a_mean_uses_the_refined_totals(curator):
    for price in ("1/2", 50):
        answer = curator.ask("SELECT AVG(amount) AS a FROM sales", epsilon=price)
    assert abs(answer.value - 24.5) <= 4 * answer.margin
    assert answer.margin < 6


def discovering(curator, monkeypatch, *noises):
    """Ask for streets, each time for more, with the same noise on every number of a draw."""
    for price, noise in enumerate(noises, 1):
        monkeypatch.setattr(Gaussian, "perturb", lambda _, values, noise=noise: values + noise)
        answer = curator.ask(STREETS, epsilon=4 * price)
    return answer


@pytest.mark.long
def test_partition_selection_is_repeated_and_its_delta_charged_again(monkeypatch):
    streets = {"Main": 100, "Oak": 60, "Elm": 60}
    rows = [(i, street) for street, people in streets.items() for i in range(people)]
    data = tables(len(rows)) | {
        "sales": tables(len(rows))["sales"]
        .set_column(2, "street", pa.array([street for _, street in rows]))
        .set_column(0, "customer", pa.array([1000 * len(street) + i for i, street in rows], pa.int64()))
    }
    with opened(DELTA, data=data, **RICH) as curator:
        cut = 1 << 20
        answer = discovering(curator, monkeypatch, 2 * cut, -2 * cut, 0)
        assert answer.table["street"].to_pylist() == ["Elm", "Main", "Oak"]  # in the order of their keys
        assert answer.loss.delta == 3 * curator.policy.budget.discover / 100
        assert answer.paid.delta == curator.policy.budget.discover / 100
        assert amount(curator.budget().spent) == amount(dc.privacy.cost_of(curator.policy.budget, 12))


def test_a_group_selected_by_one_draw_keeps_that_draws_number_and_margin(monkeypatch):
    """Streets that only the first draw let through stay, with the wider margin of that draw."""
    with opened(DELTA, **RICH) as curator:
        monkeypatch.setattr(Gaussian, "perturb", lambda _, values: values + (200 << 20))  # everything passes
        first = curator.ask(STREETS, epsilon=4)
        monkeypatch.setattr(Gaussian, "perturb", lambda _, values: values)  # only Main does
        both = curator.ask(STREETS, epsilon=8)
        rows = {row["street"]: row["n"] for row in both.table.to_pylist()}
        margins = dict(zip(both.table["street"].to_pylist(), both.margins["n"], strict=True))
        before = {row["street"]: row["n"] for row in first.table.to_pylist()}
        assert len(rows) == len(before) > 100
        assert list(rows) == sorted(rows)
        assert {street: n for street, n in rows.items() if street != "Main"} == {
            street: n for street, n in before.items() if street != "Main"
        }
        draws = draws_of(curator, place=1)
        weights = [1 / scale**2 for _, scale in draws]
        mean = sum(w * each[("Main",)] for w, (each, _) in zip(weights, draws, strict=True)) / sum(weights)
        assert abs(rows["Main"] - mean / (1 << 20)) <= 1
        assert margins["Main"] < min(margin for street, margin in margins.items() if street != "Main")
        assert any("one of several releases" in note for note in both.notes)
        assert sum("or in another release" in sentence for sentence in both.bounds) == 1
        half = curator.ask("SELECT street, COUNT(*) / 2.0 AS h FROM sales GROUP BY street", epsilon=1)
        assert (half.paid, len(half)) == (ZERO_LOSS, len(both))
        halves = dict(zip(half.table["street"].to_pylist(), half.margins["h"], strict=True))
        assert halves["Main"] < min(margin for street, margin in halves.items() if street != "Main")


def test_quantiles_are_redrawn_at_full_cost_and_a_note_states_it(curator):
    sql = "SELECT MEDIAN(amount) AS m FROM sales"
    first = curator.ask(sql, epsilon=1)
    said = curator.explain(sql, epsilon=2)
    second = curator.ask(sql, epsilon=2)
    assert second.paid == second.loss == dc.privacy.cost_of(curator.policy.budget, 2)
    assert any("full cost is charged" in note for note in second.notes)
    assert set(said.notes) <= set(second.notes)
    assert not any("full cost is charged" in note for note in first.notes)
    again = curator.ask(sql, epsilon=1)
    assert (again.table, again.paid) == (second.table, ZERO_LOSS)


# Accuracy: the exact distribution of combined draws.


def inside(noises, reach=9):
    """Return the probability that the weighted mean of draws with true value 0 is within the claimed margin."""
    margin = dc.privacy.margin(combined_noise(noises), "0.95")
    grids = [np.arange(-math.ceil(reach * n.scale) - 2, math.ceil(reach * n.scale) + 3) for n in noises]
    mesh = [axis.reshape(-1) for axis in np.meshgrid(*grids, indexing="ij")]
    chances = np.ones(len(mesh[0]))
    for axis, noise in zip(mesh, noises, strict=True):
        law = {k: dc.privacy.pmf(noise, k) for k in np.unique(axis).tolist()}
        chances *= np.array([law[k] for k in axis.tolist()])
    off = np.abs(weighted_mean(mesh, noises)) <= margin
    return float(chances[off].sum())


SCALES = ["0.15", "0.3", "0.45", "0.5", "0.6", "0.75", "1", "1.3", "1.8", "2.5", "4", "6", "8"]


@pytest.mark.long
def test_margins_of_combined_draws_hold_at_95_percent():
    worst = min(inside([Gaussian(a), Gaussian(b)]) for a in SCALES for b in SCALES if Fraction(b) <= Fraction(a))
    print(f"two draws together are inside their margin with at least {worst:.4f}")
    assert worst >= 0.95
    assert inside([Gaussian("1.7"), Gaussian("2.2"), Gaussian(1)]) >= 0.95
    assert inside([Gaussian(6), Gaussian(8)]) < 0.965  # and it is not far wider


def test_the_slack_for_rounding_is_necessary(monkeypatch):
    monkeypatch.setattr("discreet.pricing.combined_release._ROUNDING_VARIANCE", Fraction(0))
    assert inside([Gaussian("0.5"), Gaussian("0.5")]) < 0.95


def test_draws_are_combined_with_integer_weights():
    top = (1 << 63) - 1
    far = [np.array([top, -top, 5], np.int64), np.array([top, -top, 6], np.int64)]
    assert weighted_mean(far, [Gaussian(3), Gaussian(7)]).tolist() == [top, -top, 5]
    assert weighted_mean(far, [Gaussian("1e50"), Gaussian("1e-50")]).tolist() == [top, -top, 6]
    same = [np.array([10], np.int64), np.array([11], np.int64)]
    assert weighted_mean(same, [Gaussian(2), Gaussian(2)]).tolist() == [11]  # halves upwards


# When something goes wrong on the way.


KILLED = """
import os, sys
sys.path.insert(0, {tests!r})
import discreet as dc
with dc.open({policy!r}) as curator:
    type(curator._engine).totals = lambda *_: os._exit(9)
    curator.ask({sql!r}, epsilon=2)
"""


@pytest.mark.long
@pytest.mark.parametrize("delta", ["", DELTA], ids=["pure", "delta"])
def test_a_kill_between_charge_and_answer_leaves_the_old_answer_served(tmp_path, delta):
    for name, table in tables().items():
        pa.parquet.write_table(table, tmp_path / f"{name}.parquet")
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY.format(delta=delta).replace(":memory:", "ledger.sqlite").replace("= 4.0", "= 40"))
    with dc.open(policy) as curator:
        first = curator.ask(BY_CITY, epsilon=1)
    code = KILLED.format(tests=str(Path(__file__).parent), policy=str(policy), sql=BY_CITY)
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    with dc.open(policy) as curator:
        price = partial(dc.privacy.cost_of, curator.policy.budget)
        spent = curator.budget().spent
        assert amount(spent) == amount(price(2))  # the charge stands
        again = curator.ask(BY_CITY, epsilon=1)
        assert (again.table, again.margins, again.paid) == (first.table, first.margins, ZERO_LOSS)
        finer = curator.ask(BY_CITY, epsilon=2)
        if delta:
            assert amount(finer.paid) == amount(price(2)) - amount(price(1))
        else:  # what was lost may have been seen by somebody: the first draw is not made finer a second time
            assert finer.paid == Loss(2)
            assert any("cannot be refined further" in note for note in finer.notes)
        curator.ledger.verify()


def test_losing_a_race_to_another_process_costs_nothing(monkeypatch):
    with opened(**RICH) as curator:
        curator.ask(COUNT, epsilon=1)
        genuine = type(curator.releases).charge_and_release

        def late(self, *arguments):
            monkeypatch.setattr(type(curator.releases), "charge_and_release", genuine)
            monkeypatch.setattr(curator, "_in_flight_locks", InFlightLocks(curator.ledger, seconds=1))  # lost locks
            curator.ask(COUNT, epsilon=2)
            return genuine(self, *arguments)

        monkeypatch.setattr(type(curator.releases), "charge_and_release", late)
        with pytest.raises(dc.Refused, match=r"at the same time\. Try again\.$"):
            curator.ask(COUNT, epsilon=3)
        assert curator.budget().spent.epsilon == 2
        assert curator.ask(COUNT, epsilon=3).paid.epsilon == 1


def test_a_budget_that_gets_a_delta_later_starts_with_new_draws(tmp_path):
    text = POLICY.format(delta="{delta}").replace(":memory:", str(tmp_path / "ledger.sqlite")).replace("= 4.0", "= 40")
    with dc.open(Policy.parse(text.replace("{delta}", "")), data=tables()) as curator:
        curator.ask(COUNT, epsilon=1)
        curator.ask(COUNT, epsilon=2)
        spent = curator.budget().spent
        assert spent.rho == Loss(1).rho + Loss(2).rho  # a rho that pays for both, however they were chosen
    with dc.open(Policy.parse(text.replace("{delta}", DELTA)), data=tables()) as curator:
        answer = curator.ask(COUNT, epsilon=2)
        assert answer.paid == answer.loss == dc.privacy.cost_of(curator.policy.budget, 2)
        assert curator.budget().spent.rho == spent.rho + answer.loss.rho
        curator.ledger.verify()
