"""The price follows from a margin: the least that gives it, exactly, before any data is read."""

import re
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import discreet as dc
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.pricing.accuracy import round_up_digits
from discreet.pricing.allocation import allocate_cost, cost_shares

sys.path.insert(0, str(Path(__file__).parent))
from test_curator import DELTA, opened

COUNT = "SELECT COUNT(*) AS n FROM sales"
BY_CITY = "SELECT city, COUNT(*) AS n, SUM(pieces) AS s FROM sales GROUP BY city"
RICH = {"epsilon = 4.0": "epsilon = 4000"}


@pytest.fixture(params=["", DELTA], ids=["pure", "delta"])
def curator(request):
    with opened(request.param, **RICH) as found:
        yield found


def amount(loss):
    return loss.rho if loss.epsilon is None else loss.epsilon


def priced(curator, sql, loss, **more):
    """Return the margins that a price gives when it is shared as in an answer that cost `loss`."""
    name = "epsilon" if curator.policy.budget.rho is None else "rho"
    return {column.name: column.margin for column in curator.explain(sql, **{name: loss}, **more).columns}


SINGLE = [
    (COUNT, {}, [1, 7, 50, 333, "1234.5", "1/10"]),
    ("SELECT COUNT(DISTINCT customer) AS n FROM sales", {}, [2, 40]),
    ("SELECT city, COUNT(*) AS n FROM sales GROUP BY city", {"groups": 1}, [3, "7.5", 100]),  # weights of 2^-20
    ("SELECT SUM(amount) AS n FROM sales", {}, [30, "31.25", 10_000]),
    ("SELECT SUM(pieces) AS n FROM sales", {}, [9, 100]),
    ("SELECT city, SUM(pieces) AS n FROM sales GROUP BY city", {"groups": 1}, [10]),
    (
        "SELECT SUM(CLIP(amount, 50, 90)) AS n, COUNT(amount) AS m FROM sales",
        {},
        [400],
    ),  # around a centre, with a count
]
CASES = [(sql, limits, margin) for sql, limits, margins in SINGLE for margin in margins]


@pytest.mark.long(only=["delta-SELECT COUNT(*) AS n FROM sales-{}-1/10"])
@pytest.mark.parametrize(("sql", "limits", "margin"), CASES, ids=str)
def test_the_cost_is_the_smallest_that_gives_the_margin(curator, sql, limits, margin):
    said = curator.explain(sql, margin={"n": margin}, **limits)
    price = amount(said.cost.loss)
    assert said.columns[0].margin <= float(Fraction(margin))
    assert round_up_digits(price, 4) == price  # four digits
    if len(said.columns) == 1:  # the usual way of sharing, so that another price can be compared
        assert priced(curator, sql, price, **limits)["n"] <= float(Fraction(margin))
        assert priced(curator, sql, price * Fraction(999, 1000), **limits)["n"] > float(Fraction(margin))
    answer = curator.ask(sql, margin={"n": margin}, **limits)
    assert amount(answer.paid) == amount(curator.budget().spent) == price
    assert max(answer.margins["n"]) == said.columns[0].margin


def test_a_column_of_two_totals_just_reaches_its_margin(curator):
    sql, _, (margin,) = SINGLE[-1]
    said = curator.explain(sql, margin={"n": margin})
    assert margin * 0.998 < said.columns[0].margin <= margin


def test_several_columns_reach_their_own_margins(curator):
    wanted = {"n": 60, "s": "150.5"}
    said = curator.explain(BY_CITY, margin=wanted)
    found = {column.name: column.margin for column in said.columns}
    for name, margin in wanted.items():
        assert 0.99 * float(margin) - 1 < found[name] <= float(margin)
    one, two = (curator.explain(BY_CITY, margin={name: margin}) for name, margin in wanted.items())
    assert {column.name: column.margin for column in one.columns}["n"] <= 60
    assert {column.name: column.margin for column in two.columns}["s"] <= 150.5
    answer = curator.ask(BY_CITY, margin=wanted)
    assert {name: margins[0] for name, margins in answer.margins.items()} == found


def test_a_column_that_is_not_named_keeps_its_share(curator):
    named = curator.explain(BY_CITY, margin={"n": 60})
    usual = priced(curator, BY_CITY, amount(named.cost.loss))
    found = {column.name: column.margin for column in named.columns}
    assert found["n"] <= 60
    assert found["s"] == pytest.approx(usual["s"], rel=0.01)


def test_the_margin_may_be_part_of_the_query(curator):
    said = curator.explain(f"{COUNT} WITHIN 50")
    assert said == curator.explain(COUNT, margin=50)
    answer = curator.ask(f"{COUNT} WITHIN 50")
    assert answer.margin <= 50
    assert curator.ask(COUNT, margin=50).paid == ZERO_LOSS
    assert curator.ask(COUNT, margin=51).value == answer.value


@pytest.mark.parametrize(
    ("sql", "more"),
    [
        (COUNT, {"epsilon": 1, "margin": 5}),
        (f"{COUNT} WITHIN 50", {"margin": 5}),
        (f"{COUNT} WITHIN 50", {"epsilon": 1}),
        (COUNT.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1)"), {"margin": 5}),
        (COUNT.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1)") + " WITHIN 50", {}),
        (COUNT, {"epsilon": 1, "rho": 1}),
    ],
)
def test_the_cost_is_given_once(curator, sql, more):
    for act in (curator.ask, curator.explain):
        with pytest.raises(dc.Refused, match="already given"):
            act(sql, **more)


@pytest.mark.parametrize(
    "margin", [0, -1, "much", float("nan"), True, {}, {"x": 5}, {"n": 0}, {"n": None}, {3: 4}], ids=str
)
def test_wrong_margins_are_refused_by_name(curator, margin):
    with pytest.raises(dc.Refused, match=r"^margin"):
        curator.ask(COUNT, margin=margin)
    assert curator.ledger.events() == []


def test_which_column_is_meant_must_be_clear(curator):
    with pytest.raises(dc.Refused, match=r'several columns are noisy \(n, s\)\. Name the column: \{"n": …\}'):
        curator.ask(BY_CITY, margin=5)
    with pytest.raises(dc.Refused, match=r"'city' is not a noisy column\. .* n, s\."):
        curator.ask(BY_CITY, margin={"city": 5})
    if curator.policy.budget.rho is not None:  # streets are not declared, so that showing them is charged
        with pytest.raises(dc.Refused, match="no column of this answer is noisy"):
            curator.ask("SELECT street FROM sales GROUP BY street", margin=5)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT 100.0 * COUNT(*) FILTER (WHERE pieces > 3) / COUNT(*) AS n FROM sales", "computed from noisy values"),
        ("SELECT city, RANK() OVER (ORDER BY COUNT(*)) AS n FROM sales GROUP BY city", "computed from noisy values"),
        ("SELECT MEDIAN(amount) AS n FROM sales", "distribution of the values"),
        ("SELECT AVG(amount) AS n FROM sales", r"Query COUNT\(amount\) for the same groups first"),
        ("SELECT STDDEV(pieces) AS n FROM sales", r"Query COUNT\(pieces\) for the same groups first"),
    ],
)
def test_margins_that_cannot_be_forecast_are_refused_with_a_hint(curator, sql, words):
    for act in (curator.ask, curator.explain):
        with pytest.raises(dc.Refused, match=words):
            act(sql, margin={"n": 5})
    assert curator.ledger.events() == []


def test_a_margin_below_rounding_error_is_refused_at_any_cost(curator):
    with pytest.raises(dc.Refused, match="no epsilon gives 'n' a margin"):
        curator.ask("SELECT city, COUNT(*) AS n FROM sales GROUP BY city", margin="0.4", groups=1)


@pytest.mark.parametrize("delta", ["", DELTA], ids=["pure", "delta"])
def test_a_refusal_states_the_cost_and_the_smallest_affordable_margin(delta):
    with opened(delta) as curator:
        curator.ask("SELECT COUNT(city) FROM sales", epsilon=2)
        with pytest.raises(
            dc.Refused, match=r"costs (epsilon|rho) [0-9.]+\. The smallest affordable margin"
        ) as refused:
            curator.ask(BY_CITY, margin={"n": 1, "s": 5})
        fits = dict(re.findall(r"(\w+) ±([0-9.]+)[,.]", str(refused.value)))
        assert set(fits) == {"n", "s"}
        answer = curator.ask(BY_CITY, margin=fits)
        assert all(answer.margins[name][0] <= float(fits[name]) for name in fits)
        left, total = curator.budget().remaining, curator.budget().total
        rest, whole = (left.epsilon, total.epsilon) if total.rho is None else (left.rho, total.rho)
        assert rest < Fraction(2, 100) * whole


def test_a_refusal_accounts_for_the_analysts_own_budget():
    with opened() as curator:
        with pytest.raises(dc.Refused, match="The smallest affordable margin is n ±") as refused:
            curator.ask(COUNT, by="bob", margin=1)
        most = re.search(r"±([0-9.]+)\.$", str(refused.value))[1]
        assert curator.ask(COUNT, by="bob", margin=most).paid.epsilon <= Fraction(1, 2)


# Means and spreads, once their counts are public.


def quiet(monkeypatch):
    for kind in (Laplace, Gaussian):
        monkeypatch.setattr(kind, "perturb", lambda _, values: values)


MEANS = [
    ("SELECT AVG(amount) AS a FROM sales", "SELECT COUNT(amount) FROM sales", 3),
    ("SELECT VAR_POP(pieces) AS a FROM sales", "SELECT COUNT(pieces) FROM sales", 4),
    ("SELECT STDDEV(amount) AS a FROM sales", "SELECT COUNT(amount) FROM sales", 9),
    (
        "SELECT pieces > 3 AS many, AVG(amount) AS a FROM sales GROUP BY many",
        "SELECT pieces > 3, AVG(amount) FROM sales GROUP BY 1",
        5,
    ),
    (
        "SELECT AVG(y) AS a FROM (SELECT customer, 2 * pieces AS y FROM sales WHERE pieces IS NOT NULL) AS s",
        "SELECT COUNT(y) FROM (SELECT customer, 2 * pieces AS y FROM sales WHERE pieces IS NOT NULL) AS s",
        1,
    ),
]


@pytest.mark.long
@pytest.mark.parametrize(("sql", "count", "margin"), MEANS)
def test_a_released_count_makes_the_cost_of_a_mean_predictable(curator, monkeypatch, sql, count, margin):
    quiet(monkeypatch)
    curator.ask(count, epsilon=2)
    said = curator.explain(sql, margin=margin)
    answer = curator.ask(sql, margin=margin)
    assert max(answer.margins["a"]) <= margin
    assert answer.paid == said.paid
    assert curator.ask(sql, margin=margin).paid == ZERO_LOSS


def test_an_earlier_answer_predicts_more_than_a_count(curator, monkeypatch):
    """Of a mean that is known roughly the price is nearly exact; from a count alone it is what suffices anyway."""
    quiet(monkeypatch)
    sql = "SELECT STDDEV(amount) AS a FROM sales"
    rough = curator.ask(sql, epsilon=20)
    answer = curator.ask(sql, margin=rough.margin / 2)
    assert rough.margin / 3 < answer.margin <= rough.margin / 2


def test_a_margin_for_a_group_with_too_few_values_is_refused(curator, monkeypatch):
    quiet(monkeypatch)
    curator.ask("SELECT city, AVG(amount) AS a FROM sales GROUP BY city", epsilon=2)  # nobody in Trier
    with pytest.raises(dc.Refused, match="too few values"):
        curator.ask("SELECT city, AVG(amount) AS a FROM sales GROUP BY city", margin=3)


def test_explain_states_the_margin_as_a_function_of_the_size(curator, monkeypatch):
    quiet(monkeypatch)
    sql = "SELECT AVG(amount) AS a, VAR_POP(amount) AS v, STDDEV_POP(amount) AS s FROM sales"
    said, answer = curator.explain(sql, epsilon=40), curator.ask(sql, epsilon=40)
    (row,) = answer.table.to_pylist()
    for column in said.columns:
        least, most = map(
            float,
            re.match(r"± ([0-9.e+]+) to ([0-9.e+]+) divided by", column.margin_depends_on.replace(",", "")).groups(),
        )
        times = 600 * (2 * row["s"] if column.name == "s" else 1)
        assert 0.9 * least <= answer.margins[column.name][0] * times <= 1.2 * most


@pytest.mark.long
def test_counts_from_partition_selection_serve_too(monkeypatch):
    with opened(DELTA, **RICH) as curator:
        quiet(monkeypatch)
        curator.ask("SELECT street, AVG(amount) AS a FROM sales GROUP BY street", epsilon=5)
        answer = curator.ask("SELECT street, AVG(amount) AS a FROM sales GROUP BY street", margin=5)
        assert answer.table["street"].to_pylist() == ["Main"]
        assert answer.margins["a"][0] <= 5


def test_finding_a_cost_reads_no_data(curator, monkeypatch):
    monkeypatch.setattr(type(curator._engine), "totals", lambda *_: pytest.fail("read"))
    assert curator.explain(BY_CITY, margin={"n": 60, "s": 100}).columns[0].margin <= 60
    assert curator.ledger.events() == []


def test_an_ordinary_cost_is_split_as_before():
    with opened() as curator:
        plan = curator.releases.plan_query(BY_CITY, "owner", None, None)
        shares = cost_shares(plan.releases, Laplace)
        assert sum(map(sum, shares)) == 1
        assert list(map(list, allocate_cost(plan.releases, Loss(1)))) == list(map(list, shares))
