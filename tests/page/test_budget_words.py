"""Budgets in words, the line of charges, and intervals of answers."""

import json
import shlex
from fractions import Fraction

import pytest

from discreet.answer.bias import Bias
from discreet.kernel.event import Event, canonical_json
from discreet.kernel.loss import ZERO_LOSS, Budget, Loss
from discreet.ledger_sqlite import memory_ledger
from discreet.pricing.remaining_budget import BudgetStatus, RemainingBudget
from discreet.publish.ledger_history import read_history
from discreet.server.pages.answer_view import interval_marks
from discreet.server.pages.attacks import attack_groups
from discreet.server.pages.budget_words import BudgetView, questions_left, share_spent
from discreet.server.pages.charges import timeline
from discreet.server.pages.snippets import snippets
from discreet.server.requests import QueryRequest

PURE, ZCDP = Budget(1), Budget(1, "1e-6", discover="1/2")


def status(budget, epsilon, rho, delta="0"):
    return BudgetStatus(budget, ZERO_LOSS, RemainingBudget(Fraction(epsilon), Fraction(rho), Fraction(delta)))


def charged(costs, budget=PURE):
    ledger = memory_ledger(name="demo", budget=budget)
    for cost in costs:
        ledger.charge(
            Loss(cost),
            Event(mechanism=canonical_json({"name": "laplace", "scale": "10"}), sensitivity="{}", question="q"),
        )
    return read_history(ledger)


def test_as_many_more_questions_fit_as_the_scarcest_part_allows():
    assert questions_left(status(PURE, 1, "1/2"), Loss("3/10")) == 3
    assert questions_left(status(ZCDP, 1, "1/10", "1e-7"), Loss(None, "1/100", "3e-8")) == 3
    assert questions_left(status(ZCDP, 1, "1/10", "1e-7"), Loss(None, "1/100")) == 10
    assert questions_left(status(PURE, 0, 0), Loss("1/10")) == 0


def test_the_spent_share_is_that_of_the_scarcest_part_and_at_most_everything():
    assert share_spent(PURE, Loss("1/4")) == Fraction(1, 4)
    assert share_spent(ZCDP, Loss(None, 0, "25e-8")) == Fraction(1, 2)
    assert share_spent(PURE, Loss(3)) == 1


def test_odds_of_a_budget_are_those_of_theory():
    view = BudgetView.of_status(status(PURE, 1, "1/2"))
    assert (view.odds_now, view.odds_at_most) == ("in at most 50 of 100 cases", "in at most 74 of 100 cases")


@pytest.mark.parametrize(("costs", "top"), [(["1/10"], 15.0), (["1/4", "1/4"], 100.0), (["1/20"] * 20, 100.0)])
def test_the_line_of_charges_ends_where_the_ledger_does(costs, top):
    found = timeline(charged(costs).events, PURE)
    x, y = map(float, found.points.split()[-1].split(","))
    spent = float(sum(map(Fraction, costs)))
    assert (x, found.top, found.charges) == (1000, top, len(costs))
    assert y == pytest.approx(200 * (1 - 100 * spent / top), abs=0.01)


def test_without_charges_there_is_no_line():
    assert timeline([], PURE) is None


def test_an_interval_has_its_margin_its_bias_and_zero():
    marks = interval_marks([100, -50, None, float("nan")], [10.0, None, None, 1.0], [Bias(20, 30.0), None, None, None])
    first, second = marks[:2]
    assert marks[2:] == [None, None]
    assert 0 <= second.point < first.zero < first.low < first.point < first.high < first.bias <= 1000
    assert first.zero == second.zero == second.bar[0] + second.bar[1]
    assert second.low == second.high == second.point


def test_a_snippet_quotes_what_it_is_given():
    sql = "SELECT \"a\\b\", 'it''s' FROM t\nSQL\n$(rm -rf /)"
    request = QueryRequest(sql, epsilon="1/10", purpose="ben's report")
    python, psql, r = snippets(request, "http://127.0.0.1:1", 5433, "o'neil $HOME", "my data")
    compiled = compile(python.text, "snippet", "exec")
    assert {sql, "1/10", "ben's report"} <= set(compiled.co_consts)
    assert "port=5433" in psql.text
    assert "SET discreet.purpose = 'ben''s report';" in psql.text
    assert psql.text.endswith("\nSQL_")
    assert "<<'SQL_'" in psql.text
    assert "'\"'\"'" in psql.text
    assert "1/10" in r.text
    curl = snippets(request, "http://127.0.0.1:1", None, "ana", "town")[1].text
    words = shlex.split(curl.replace("\\\n", ""))
    assert json.loads(words[words.index("-d") + 1]) == {"sql": sql, "epsilon": "1/10", "purpose": "ben's report"}


def test_the_recorded_attacks_are_those_of_the_course_and_within_theory():
    from discreet.attacks.registry import ATTACKS

    cards = [card for _, cards in attack_groups() for card in cards]
    assert [card.name for card in cards] == list(ATTACKS)
    for card in cards:
        assert [bar.kind for bar in card.bars] == ["nothing", "easy", "curator", "curator"]
        assert all(bar.ceiling is None or bar.interval[0] <= bar.ceiling for bar in card.bars)


@pytest.mark.long
def test_an_attack_does_as_well_as_recorded():
    from discreet import attacks

    card = next(card for _, cards in attack_groups() for card in cards if card.name == "differencing")
    for bar, result in zip(card.bars, attacks.compare("differencing", epsilons=["0.1", "1"]).results, strict=True):
        low, high = (100 * end for end in result.evidence.interval(1 - 1e-9))
        assert low <= bar.interval[1]
        assert bar.interval[0] <= high
