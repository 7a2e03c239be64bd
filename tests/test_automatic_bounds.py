"""Automatic contribution bounds: a private histogram is released first, and then the query with the chosen bounds."""

import json
import threading
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.cli.main import app
from discreet.engines.column_usage import usage_of_questions
from discreet.estimate.contribution_histogram import ChosenBounds
from discreet.kernel.ball import Norm
from discreet.kernel.loss import ZERO_LOSS
from discreet.kernel.totals import Count, CountUnits, Sum
from discreet.policy import Policy
from discreet.policy.model import write_policy
from discreet.pricing import plan_with_bounds

POLICY = """
[data]
name = "visits"
protects = "patient"
ledger = "{ledger}"
version = "1"
[budget]
epsilon = 20
{delta}
{budget}
[budget.analysts]
ann = {{ epsilon = 8 }}
bob = {{ epsilon = 8 }}
[tables.visits]
source = "visits"
unit = "patient"
{bounds}
rows_max = 100_000
[tables.visits.columns]
patient = {{ type = "integer" }}
ward = {{ type = "text", in = ["A", "B", "C"] }}
street = {{ type = "text" }}
cost = {{ type = "integer", between = [0, 100] }}
"""
AUTO = 'groups = "auto"\nrows = "auto"'
DELTA = "delta = 1e-6"
TOTAL = "SELECT COUNT(*) AS n FROM visits"
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def heavy_tailed(units=2_000):
    rng = np.random.default_rng(7)
    rows = np.minimum((rng.pareto(1.5, units) + 1).astype(int), 200)
    unit = np.repeat(np.arange(units), rows)
    return pa.table(
        {
            "patient": unit,
            "ward": np.array(["A", "B", "C"])[rng.integers(0, 3, len(unit))],
            "street": np.array([f"s{number}" for number in range(20)])[rng.integers(0, 20, len(unit))],
            "cost": rng.integers(0, 100, len(unit)),
        }
    )


DATA = heavy_tailed()


def opened(delta="", budget="", bounds=AUTO, ledger=":memory:", data=DATA):
    text = POLICY.format(delta=delta, budget=budget, bounds=bounds, ledger=ledger)
    return dc.open(Policy.parse(text), data={"visits": data})


@pytest.fixture(params=["", DELTA], ids=["pure", "delta"])
def curator(request):
    with opened(request.param) as found:
        yield found


def amount(loss):
    return loss.rho if loss.epsilon is None else loss.epsilon


def asked(curator, epsilon):
    return amount(dc.privacy.cost_of(curator.policy.budget, epsilon))


def bounds_of(curator, sql, **more):
    """Return the bounds that the newest answer to a query was released with."""
    curator.ask(sql, **more)
    (bounds,) = {tuple(each) for each in chosen_bounds(curator)[-1] if each}
    return bounds


def chosen_bounds(curator):
    records = [json.loads(event.question) for event in curator.ledger.events()]
    return [record["automatic"] for record in records if "automatic" in record]


def test_the_histogram_and_the_query_together_cost_what_was_asked(curator):
    answer = curator.ask(BY_WARD, epsilon=1)
    first, second = curator.ledger.events()
    assert amount(first.loss) == asked(curator, 1) / 20
    assert amount(first.loss) + amount(second.loss) == asked(curator, 1) == amount(answer.cost.loss)
    assert amount(answer.paid) == amount(answer.cost.loss)
    assert json.loads(first.question)["purpose"] == "contribution histogram"
    assert "reused" not in repr(answer)
    curator.ledger.verify()


@pytest.mark.parametrize(
    "sql",
    [
        TOTAL,
        BY_WARD,
        "SELECT ward, SUM(cost) AS s, AVG(cost) AS a FROM visits GROUP BY ward",
        "SELECT ward, COUNT(*) AS n, COUNT(DISTINCT patient) AS u FROM visits GROUP BY ward",
        "SELECT ward, COUNT(DISTINCT patient) AS u FROM visits GROUP BY ward",
        "SELECT COUNT(*) AS n FROM (SELECT * FROM visits UNION ALL SELECT * FROM visits) AS v",
    ],
)
def test_a_repeated_query_is_free_and_has_the_same_answer(curator, sql):
    first = curator.ask(sql, epsilon=1)
    again = curator.ask(sql, epsilon=1)
    assert again.paid == ZERO_LOSS
    assert again.table == first.table
    assert amount(first.cost.loss) == asked(curator, 1)


def test_groups_from_partition_selection_have_automatic_bounds_too():
    with opened(DELTA) as curator:
        sql = "SELECT street, COUNT(*) AS n FROM visits GROUP BY street"
        answer = curator.ask(sql, epsilon=4)
        assert len(answer) > 3
        assert curator.ask(sql, epsilon=4).paid == ZERO_LOSS
        ((groups, rows, _),) = chosen_bounds(curator)[0]
        assert groups > 1 <= rows


def test_a_join_has_automatic_bounds_unless_it_limits_the_rows_of_a_unit(curator):
    """A join with a private table limits them, so its bounds are public."""
    joined = "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.patient = b.patient"
    curator.ask(joined, epsilon=1, groups="auto", rows="auto")
    assert chosen_bounds(curator)


def test_more_units_with_many_rows_raise_the_bounds():
    small = pa.table({name: DATA.column(name) for name in DATA.column_names})
    one_each = small.take(pa.array(np.unique(DATA["patient"].to_numpy(), return_index=True)[1]))
    with opened(DELTA) as heavy, opened(DELTA, data=one_each) as light:
        _, many, _ = bounds_of(heavy, TOTAL, epsilon=4)
        _, few, _ = bounds_of(light, TOTAL, epsilon=4)
    assert many > few


def test_a_count_in_one_group_has_a_larger_radius_than_a_mean(curator):
    """Its margin must hold; a mean is biased less. Both are chosen from one histogram."""
    _, rows, _ = bounds_of(curator, TOTAL, epsilon=4)
    _, rows_of_mean, _ = bounds_of(curator, "SELECT AVG(cost) AS a FROM visits", epsilon=4)
    assert len(curator.ledger.events()) == 3
    assert rows >= 2 * rows_of_mean


def test_a_stored_histogram_serves_other_questions_and_other_analysts(curator):
    curator.ask(BY_WARD, epsilon=1, by="ann")
    before = len(curator.ledger.events())
    answer = curator.ask("SELECT ward, AVG(cost) AS a FROM visits GROUP BY ward", epsilon=1, by="bob")
    assert len(curator.ledger.events()) == before + 1
    assert amount(answer.paid) == asked(curator, 1) * 19 / 20
    assert amount(curator.ledger.spent("ann")) == asked(curator, 1)


def test_a_higher_epsilon_keeps_the_bounds_and_refines_the_answer(curator):
    bounds = bounds_of(curator, BY_WARD, epsilon=1)
    answer = curator.ask(BY_WARD, epsilon=2)
    assert amount(answer.paid) == asked(curator, 2) - asked(curator, 1)
    assert amount(answer.cost.loss) == asked(curator, 2)
    ((groups, rows, blind), _) = chosen_bounds(curator)[-1]
    assert (groups, rows, blind) == bounds
    assert curator.ask(BY_WARD, epsilon=1).paid == ZERO_LOSS


def test_the_choice_is_that_of_the_first_histogram_whatever_is_asked_later(curator):
    """Or the bounds of a question would change whenever its histogram is refined, and no repeat would be free."""
    curator.ask(BY_WARD, epsilon="1/2")
    mean = "SELECT ward, AVG(cost) AS a FROM visits GROUP BY ward"
    before = [curator.explain(sql, epsilon=epsilon).bounds for sql in (BY_WARD, mean) for epsilon in (1, 4)]
    curator.ask(BY_WARD, epsilon=4)
    assert len(curator.ledger.events()) == 3
    after = [curator.explain(sql, epsilon=epsilon).bounds for sql in (BY_WARD, mean) for epsilon in (1, 4)]
    assert before == after
    assert before[0] == before[1] != before[2] == before[3]


def test_an_answer_with_declared_bounds_does_not_decide_about_automatic_ones():
    with opened(DELTA) as curator:
        curator.ask(TOTAL, epsilon=1, rows=1)
        _, rows, _ = bounds_of(curator, TOTAL, epsilon=1)
        assert rows > 1


@pytest.mark.parametrize(
    ("sql", "declared"), [(BY_WARD, (2, 3)), (TOTAL, (1, 3)), ("SELECT AVG(cost) AS a FROM visits", (1, 3))]
)
def test_a_blind_choice_takes_the_bounds_that_the_policy_declares(sql, declared):
    with opened(DELTA, bounds="groups = 2\nrows = 3", data=heavy_tailed(100)) as curator:
        answer = curator.ask(sql, epsilon=1, groups="auto", rows="auto")
        assert chosen_bounds(curator)[-1][0] == [*declared, True]
        assert "those that the policy declares were used" in " ".join(repr(answer).split())
        assert any("too noisy to choose from" in note for note in answer.bounds)
        assert not any("chosen automatically" in note for note in answer.bounds)
        assert curator.ask(sql, epsilon=1, groups="auto", rows="auto").paid == ZERO_LOSS
        paid = curator.ask(sql, epsilon=2, groups="auto", rows="auto").paid
        assert amount(paid) == asked(curator, 2) - asked(curator, 1)


@pytest.mark.parametrize("bounds", ["", "groups = 2"])
def test_a_blind_choice_without_declared_bounds_is_a_guess_and_says_so(bounds):
    with opened(DELTA, bounds=bounds, data=heavy_tailed(100)) as curator:
        answer = curator.ask(BY_WARD, epsilon=1, groups="auto", rows="auto")
        assert chosen_bounds(curator)[-1][0][-1] is True
        assert "Too few patients to choose the bounds well" in " ".join(repr(answer).split())


def test_a_histogram_that_can_tell_overrides_declared_bounds():
    with opened(DELTA, bounds="groups = 1\nrows = 1") as curator:
        _, rows, blind = bounds_of(curator, TOTAL, epsilon=8, rows="auto")
        assert rows > 1
        assert not blind


def test_without_enough_budget_for_the_whole_query_nothing_is_charged(curator):
    with pytest.raises(dc.Refused, match="not enough budget"):
        curator.ask(BY_WARD, epsilon=9, by="ann")
    assert curator.ledger.events() == []


def test_a_crash_after_the_first_charge_leaves_a_histogram_for_the_next_attempt(curator, monkeypatch):
    charge = type(curator.releases).charge_and_release

    def fail_second(self, plan, *arguments):
        if plan.answering:
            raise KeyboardInterrupt
        return charge(self, plan, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(type(curator.releases), "charge_and_release", fail_second)
        with pytest.raises(KeyboardInterrupt):
            curator.ask(BY_WARD, epsilon=1, key="k")
    assert len(curator.ledger.events()) == 1
    answer = curator.ask(BY_WARD, epsilon=1, key="k")
    assert len(curator.ledger.events()) == 2
    assert amount(curator.ledger.spent()) == asked(curator, 1)
    assert curator.ask(BY_WARD, epsilon=1, key="k").table == answer.table
    assert len(curator.ledger.events()) == 2


def test_a_key_returns_its_answer_after_a_more_accurate_one(curator):
    first = curator.ask(BY_WARD, epsilon=1, key="k")
    curator.ask(BY_WARD, epsilon=2)
    assert curator.ask(BY_WARD, epsilon=1, key="k").table == first.table
    with pytest.raises(dc.Refused, match="different query"):
        curator.ask(BY_WARD, epsilon=1, key="k", rows=3)


def test_concurrent_requests_with_one_key_are_charged_once(curator):
    tables = []
    threads = [
        threading.Thread(target=lambda: tables.append(curator.ask(TOTAL, epsilon=1, key="k").table)) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tables) == 3
    assert all(table == tables[0] for table in tables)
    assert amount(curator.ledger.spent()) == asked(curator, 1)


def test_a_failure_to_read_the_histogram_is_charged_and_discloses_nothing(curator, monkeypatch):
    def fail(*_):
        raise OSError("secret")

    with monkeypatch.context() as patched:
        patched.setattr(type(curator._engine), "totals", fail, raising=False)
        with pytest.raises(dc.Failed) as failure:
            curator.ask(BY_WARD, epsilon=1)
    assert "secret" not in str(failure.value)
    assert amount(curator.ledger.spent()) == asked(curator, 1) / 20


def test_explain_reads_nothing_and_knows_margins_only_after_the_histogram(curator, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(type(curator._engine), "totals", lambda *_: pytest.fail("read"), raising=False)
        before = curator.explain(BY_WARD, epsilon=1)
    assert amount(before.paid) == amount(before.cost.loss) == asked(curator, 1)
    (column,) = before.columns
    assert column.margin is None
    assert "chosen privately" in column.margin_depends_on
    assert any("chosen privately" in sentence for sentence in before.bounds)
    assert curator.ledger.events() == []
    answer = curator.ask(BY_WARD, epsilon=1)
    after = curator.explain(BY_WARD, epsilon=1)
    assert after.paid == ZERO_LOSS
    assert after.columns[0].margin == answer.margins["n"][0]
    assert any("chosen automatically" in sentence for sentence in answer.bounds)


def test_a_margin_needs_a_stored_histogram(curator):
    for act in (curator.ask, curator.explain):
        with pytest.raises(dc.Refused, match="histogram that is not released yet"):
            act(BY_WARD, margin=500)
    assert curator.ledger.events() == []
    curator.ask("SELECT ward, AVG(cost) AS a FROM visits GROUP BY ward", epsilon=1)
    answer = curator.ask(BY_WARD, margin=500)
    assert max(answer.margins["n"]) <= 500
    assert curator.ask(BY_WARD, margin=500).paid == ZERO_LOSS


@pytest.mark.parametrize(
    "aggregate", ["MEDIAN(cost)", "MODE(ward)", "MAX(cost)", "COUNT(DISTINCT street)", "COUNT(*), MEDIAN(cost)"]
)
def test_other_aggregates_are_refused_with_a_hint_before_the_charge(curator, aggregate):
    with pytest.raises(dc.Refused, match=r"automatically.*declare groups and rows"):
        curator.ask(f"SELECT {aggregate} FROM visits", epsilon=1)
    assert curator.ledger.events() == []
    curator.ask(f"SELECT {aggregate} FROM visits", epsilon=1, groups=1, rows=2)


def test_the_owner_can_switch_automatic_bounds_off():
    with opened(budget="bounds_share = 0") as curator:
        with pytest.raises(dc.Refused, match="bounds_share"):
            curator.ask(TOTAL, epsilon=1)
        curator.ask(TOTAL, epsilon=1, rows=2)


def test_the_share_of_the_histogram_is_that_of_the_policy():
    with opened(budget="bounds_share = 0.25") as curator:
        curator.ask(TOTAL, epsilon=1)
        assert [event.loss.epsilon for event in curator.ledger.events()] == [Fraction(1, 4), Fraction(3, 4)]


@pytest.mark.parametrize("bounds", ["", AUTO, 'groups = 2\nrows = "auto"', 'groups = "auto"\nrows = 3'])
def test_bounds_of_a_table_that_are_missing_or_auto_are_chosen(bounds):
    with opened(DELTA, bounds=bounds) as curator:
        groups, rows, _ = bounds_of(curator, BY_WARD, epsilon=2)
        assert groups == 2 or "groups = 2" not in bounds
        assert rows == 3 or "rows = 3" not in bounds


@pytest.mark.parametrize("wrong", ["automatic", 0, 1.5, True, b"auto"])
def test_other_words_for_a_bound_are_refused(curator, wrong):
    with pytest.raises(dc.Refused, match=r'rows: .* or "auto"'):
        curator.ask(TOTAL, epsilon=1, rows=wrong)
    with pytest.raises(dc.PolicyError, match='"auto"'):
        Policy.from_dict(
            {
                "data": {"name": "visits"},
                "budget": {"epsilon": 1},
                "tables": {"v": {"source": "v", "unit": "p", "rows": "often", "columns": {"p": {"type": "integer"}}}},
            }
        )


@pytest.mark.parametrize("word", ["'auto'", "auto", "AUTO"])
def test_options_in_the_text_can_be_auto(word):
    with opened(bounds="groups = 2\nrows = 2") as curator:
        options = (
            f"WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, max_groups_contributed={word}, max_rows_contributed={word})"
        )
        curator.ask(f"SELECT {options} ward, COUNT(*) AS n FROM visits GROUP BY ward")
        assert chosen_bounds(curator)


def test_a_policy_writes_auto_back():
    policy = Policy.parse(POLICY.format(delta="", budget="bounds_share = 0.1", bounds=AUTO, ledger=":memory:"))
    text = write_policy(policy)
    assert Policy.parse(text) == policy
    assert 'rows = "auto"' in text
    assert "bounds_share = 0.1" in text


def test_an_l2_histogram_counts_units_by_the_norm_over_all_groups():
    with opened(DELTA, budget="bounds_report = 0.5", bounds="groups = 1\nrows = 2") as curator:
        plan = curator.releases.plan_query(BY_WARD, "owner", None, None)
        (histogram,) = [release for release in plan.releases if release.histogram]
        question, lows = histogram.question, histogram.histogram.lows
        with curator._engine.prepare(usage_of_questions([question])) as reader:
            totals = reader.totals(question)
    counts = dict(zip((key for (key,) in totals.keys), totals.values[:, 0].tolist(), strict=True))
    pairs = DATA.group_by(["patient", "ward"]).aggregate([([], "count_all")])
    norms = np.sqrt(np.bincount(pairs["patient"].to_numpy(), pairs["count_all"].to_numpy() ** 2.0))
    ends = [*lows[1:], np.inf]
    expected = {
        place: int(((norms >= low - 1e-9) & (norms < end - 1e-9)).sum())
        for place, (low, end) in enumerate(zip(lows, ends, strict=True))
    }
    assert {place: counts.get(place, 0) for place in expected} == expected
    assert lows[0] == pytest.approx(5**0.5)
    assert histogram.histogram.targets[0].radius == 2
    assert question.sensitivity().l1 == 1


def histograms(curator, sql, **more):
    plan = curator.releases.plan_query(sql, "owner", more.get("groups"), more.get("rows"))
    return [release.histogram for release in plan.releases if release.histogram]


def test_a_histogram_exists_only_where_contributions_can_be_clipped():
    with opened(DELTA, bounds="groups = 2\nrows = 2") as curator:
        assert not histograms(curator, "SELECT COUNT(DISTINCT patient) AS n FROM visits")
        assert not histograms(curator, "SELECT MEDIAN(cost) FROM visits")
        assert not histograms(curator, "SELECT COUNT(*) FROM (SELECT patient, COUNT(*) FROM visits GROUP BY 1) AS p")
        (of_groups,) = histograms(curator, "SELECT ward, COUNT(DISTINCT patient) AS n FROM visits GROUP BY ward")
        assert of_groups.measured == CountUnits()
        (of_rows,) = histograms(curator, BY_WARD)
        assert of_rows.measured == Count()
        assert not histograms(curator, TOTAL, rows=100_000)


def test_releases_with_equal_histograms_share_one():
    count, total = "(SELECT COUNT(*) AS n FROM visits) AS a", "(SELECT SUM(cost) AS s FROM visits) AS b"
    sql = f"SELECT a.n, b.s FROM {count} CROSS JOIN {total}"
    with opened(DELTA, bounds="groups = 2\nrows = 2") as curator:
        (shared,) = histograms(curator, sql)
        assert len(shared.targets) == 2
        answer = curator.ask(sql, epsilon=1)
        assert amount(answer.cost.loss) == asked(curator, 1)


def test_the_norm_follows_the_noise_and_only_means_limit_rows_per_group():
    for delta, norm in (("", Norm.L1), (DELTA, Norm.L2)):
        with opened(delta, bounds="groups = 2\nrows = 2") as curator:
            plan = curator.releases.plan_query(BY_WARD, "owner", None, None)
            assert plan.releases[0].question.bounds.norm is norm
            assert not plan.releases[0].question.bounds.cap_rows
            for mean in ("AVG(cost)", "VAR_POP(cost)", "STDDEV(cost)"):
                sql = f"SELECT ward, COUNT(*) AS n, {mean} AS m FROM visits GROUP BY ward"
                bounds = curator.releases.plan_query(sql, "owner", None, None).releases[0]
                assert bounds.question.bounds.cap_rows
                assert bounds.bounds_notes[0] == "Each patient contributes at most 2 rows per group."


@pytest.mark.parametrize(
    ("ratio", "is_mean"),
    [
        ("SUM(cost) / COUNT(*)", True),
        ("1.0 * SUM(cost) / NULLIF(COUNT(cost), 0)", True),
        ("ROUND(SUM(cost) FILTER (WHERE cost > 5) / CAST(COUNT(*) AS REAL))", True),
        ("COUNT(*) / SUM(cost)", False),
        ("SUM(cost) / COUNT(DISTINCT patient)", False),
        ("SUM(cost) / SUM(COUNT(*)) OVER ()", False),
        ("SUM(cost) / 2, COUNT(*)", False),
    ],
)
def test_a_sum_divided_by_a_count_of_rows_is_clipped_as_a_mean(ratio, is_mean):
    with opened(DELTA, bounds="groups = 1\nrows = 2") as curator:
        plan = curator.releases.plan_query(f"SELECT ward, {ratio} FROM visits GROUP BY ward", "owner", None, None)
        assert plan.releases[0].question.bounds.cap_rows is is_mean


def test_a_sum_divided_by_a_count_is_as_accurate_as_a_mean():
    """Costs are far below the largest one, so a sum in a ball of its own would keep what the count loses."""
    rows = np.bincount(DATA["patient"].to_numpy())
    cost = np.where(rows[DATA["patient"].to_numpy()] > 5, 10, 20)
    data = DATA.set_column(DATA.column_names.index("cost"), "cost", pa.array(cost))
    with opened(DELTA, budget="bounds_report = 0", bounds="groups = 1\nrows = 2", data=data) as curator:
        by_hand, mean = (
            np.array([row[1] for row in curator.ask(f"SELECT ward, {item} FROM visits GROUP BY ward", epsilon=8)])
            for item in ("1.0 * SUM(cost) / COUNT(*)", "AVG(cost)")
        )
    assert np.abs(by_hand - mean).max() < 2


def test_the_notes_say_that_a_ratio_of_separate_totals_is_biased():
    def notes(sql):
        return curator.ask(sql, epsilon=1).details()

    with opened(DELTA, bounds="groups = 1\nrows = 2") as curator:
        inner = "(SELECT ward, SUM(cost) AS s, COUNT(*) AS n FROM visits GROUP BY ward) AS t"
        assert "clipped separately" in notes(f"SELECT s / n AS mean FROM {inner}")
        assert "clipped separately" not in notes(f"SELECT s, n FROM {inner}")
        assert "clipped separately" not in notes("SELECT ward, SUM(cost) / COUNT(*) AS mean FROM visits GROUP BY ward")


def test_the_notes_state_the_norm_in_words():
    notes = {}
    for delta in ("", DELTA):
        with opened(delta, bounds="groups = 2\nrows = 4") as curator:
            notes[delta] = " ".join(curator.explain(BY_WARD, epsilon=1).bounds)
            assert "Each patient contributes at most 4 rows." in curator.explain(TOTAL, epsilon=1).bounds
    assert "at most 8 rows' worth over all groups (l1 norm)" in notes[""]
    assert "an l2 norm of at most 5.657 over all groups, such as 4 rows in each of 2 groups" in notes[DELTA]


def test_a_database_connection_takes_automatic_bounds_from_the_text_or_the_policy(curator):
    options = "WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_contributed='auto')"
    with dc.connect(curator, epsilon=1) as connection:
        cursor = connection.cursor()
        cursor.execute(f"SELECT {options} COUNT(*) AS n FROM visits")
        assert len(cursor.fetchall()) == 1
        cursor.execute(TOTAL)
        assert cursor.answer.paid == ZERO_LOSS


def test_the_command_line_takes_auto_and_names_the_histogram_in_the_ledger(tmp_path):
    pq.write_table(DATA, tmp_path / "visits.parquet")
    text = POLICY.format(delta="", budget="", bounds="groups = 1\nrows = 1", ledger="ledger.sqlite")
    policy = tmp_path / "policy.toml"
    policy.write_text(text.replace('source = "visits"', 'source = "visits.parquet"'))
    command = ["ask", str(policy), BY_WARD, "--epsilon", "1", "--groups", "auto", "--rows"]
    runner = CliRunner()
    answered = runner.invoke(app, [*command, "auto", "--details"])
    assert answered.exit_code == 0
    assert "chosen automatically" in " ".join(answered.output.split())
    assert runner.invoke(app, [*command, "many"]).exit_code == 2
    shown = runner.invoke(app, ["ledger", "show", str(policy)])
    assert shown.output.count("Contribution histogram for: ") == 1


def test_a_histogram_is_never_charged_alone(tmp_path):
    ledger = tmp_path / "ledger.sqlite"
    with opened(budget="bounds_report = 0", bounds="groups = 1\nrows = 2", ledger=ledger) as curator:
        first = curator.ask(TOTAL, epsilon=1)
        assert not histograms(curator, TOTAL)
    with opened(bounds="groups = 1\nrows = 2", ledger=ledger) as curator:
        again = curator.ask(TOTAL, epsilon="1/2")
        assert (again.paid, again.table) == (ZERO_LOSS, first.table)
        assert len(histograms(curator, TOTAL)) == len(curator.ledger.events()) == 1


def test_chosen_bounds_are_lowered_until_sums_fit_in_64_bits():
    def replan(chosen):
        if chosen["key"].rows > 8:
            raise dc.Refused("the sum could exceed 64 bits.")
        return chosen["key"]

    assert plan_with_bounds(replan, {"key": ChosenBounds(2, 1000)}) == ChosenBounds(2, 7)
    with pytest.raises(dc.Refused, match="never"):
        plan_with_bounds(lambda _: (_ for _ in ()).throw(dc.Refused("never")), {"key": ChosenBounds(2, 9)})


@pytest.mark.parametrize(
    ("domain", "measured"),
    [
        ('{ type = "integer", between = [0, 9_999] }', True),
        (f'{{ type = "text", in = {json.dumps([f"w{number}" for number in range(4_001)])} }}', False),
    ],
    ids=["range", "list"],
)
def test_keys_with_long_lists_of_values_have_no_histogram(domain, measured):
    text = POLICY.format(delta=DELTA, budget="", bounds="groups = 1\nrows = 2", ledger=":memory:")
    text = text.replace('ward = { type = "text", in = ["A", "B", "C"] }', f"cost_code = {domain}")
    with dc.open(Policy.parse(text), data={"visits": DATA.append_column("cost_code", DATA["cost"])}) as curator:
        sql = "SELECT cost_code, COUNT(*) AS n FROM visits GROUP BY cost_code"
        assert bool(histograms(curator, sql)) is measured
        if measured:
            assert histograms(curator, sql, groups="auto", rows="auto")
        else:
            with pytest.raises(dc.Refused, match="too many declared values"):
                curator.ask(sql, epsilon=1, groups="auto", rows="auto")


def test_a_report_that_the_engine_does_not_support_is_left_out(monkeypatch):
    monkeypatch.setattr("discreet.curator.query_releases.unsupported_reason", lambda *_: "too long")
    with opened(bounds="groups = 1\nrows = 2") as curator:
        assert not histograms(curator, TOTAL)
        assert amount(curator.ask(TOTAL, epsilon=1).paid) == 1


def test_a_question_keeps_its_bounds_whatever_the_range_of_its_sum():
    """The steps of a sum over a wide range depend on bounds; they must not depend on the chosen ones."""
    table = pa.table({"unit": np.repeat(np.arange(3000), np.arange(3000) % 40 + 1)})
    table = table.append_column("x", pa.array(np.arange(len(table)) % 1000))
    columns = {"x": (0, 1 << 34)}
    with dc.open(table, unit="unit", budget=(30, "1e-7"), columns=columns, ledger=":memory:") as curator:
        sql = "SELECT SUM(x) AS s FROM data"
        answers = [curator.ask(sql, epsilon=epsilon, key=f"k{epsilon}") for epsilon in (1, 8)]
        assert curator.ask(sql, epsilon=8).paid.rho == 0
        again = curator.ask(sql, epsilon=1, key="k1")
        assert again.table == answers[0].table


SUM_BY_WARD = "SELECT ward, SUM(cost) AS s FROM visits GROUP BY ward"


def skewed(units=4_000):
    """Many small costs, far below the declared maximum of 100, and half of them NULL."""
    data = heavy_tailed(units)
    cost = [None if row % 2 else row % 4 + 1 for row in range(len(data))]
    return data.set_column(data.column_names.index("cost"), "cost", pa.array(cost, pa.int64()))


@pytest.mark.parametrize("delta", ["", DELTA], ids=["pure", "delta"])
def test_a_histogram_of_sums_counts_units_by_the_norm_of_their_sums(delta):
    data = skewed(300)
    with opened(delta, data=data) as curator:
        (histogram,) = [
            each for each in curator.releases.plan_query(SUM_BY_WARD, "owner", None, None).releases if each.histogram
        ]
        with curator._engine.prepare(usage_of_questions([histogram.question])) as reader:
            totals = reader.totals(histogram.question)
    counts = dict(zip((key for (key,) in totals.keys), totals.values[:, 0].tolist(), strict=True))
    sums = data.group_by(["patient", "ward"]).aggregate([("cost", "sum")])
    terms = np.nan_to_num(sums["cost_sum"].to_numpy(zero_copy_only=False).astype(float))
    norms = np.bincount(sums["patient"].to_numpy(), terms**2) ** 0.5 if delta else None
    norms = np.bincount(sums["patient"].to_numpy(), terms) if norms is None else norms
    lows = histogram.histogram.lows
    expected = [
        int(((norms >= low - 1e-9) & (norms < end - 1e-9)).sum())
        for low, end in zip(lows, [*lows[1:], np.inf], strict=True)
    ]
    assert [counts.get(place, 0) for place in range(len(lows))] == expected
    assert sum(expected) < 300  # sums of zero count nowhere
    assert isinstance(histogram.histogram.measured, Sum)
    assert histogram.question.sensitivity().l1 == 1


@pytest.mark.parametrize(
    "sql", [SUM_BY_WARD, "SELECT SUM(cost) AS s, COUNT(*) AS n FROM visits"], ids=["groups", "one"]
)
def test_the_noise_of_a_sum_fits_the_sums_that_occur(sql):
    """The declared maximum of 100 is 25 times the largest cost, so a radius in rows would make noise too large."""
    data = skewed()
    truth = data.filter(data["cost"].is_valid())["cost"].to_numpy().sum()
    with opened(DELTA, data=data) as curator:
        answer = curator.ask(sql, epsilon=8)
        *_, (limit,) = chosen_bounds(curator)[-1][0]
        assert 10 < limit < 2_000
        assert abs(answer.to_arrow()["s"].to_numpy().sum() - truth) < 0.1 * truth
        assert any("contributes to SUM(cost)" in note for note in answer.bounds)
        assert not any("at most 1 row." in note for note in answer.bounds)


@pytest.mark.parametrize("sql", [SUM_BY_WARD, "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward"])
def test_a_sum_keeps_its_limit_when_it_is_refined_or_asked_with_a_margin(curator, sql):
    first = curator.ask(sql, epsilon=1)
    refined = curator.ask(sql, epsilon=2)
    assert amount(refined.paid) == asked(curator, 2) - asked(curator, 1)
    kept, again = chosen_bounds(curator)
    assert [bounds for bounds in again if bounds] == [bounds for bounds in kept if bounds][: len(again)]
    assert curator.ask(sql, epsilon=1).paid == ZERO_LOSS
    margin = max(first.margins["s"])
    assert curator.ask(sql, margin={"s": margin}).paid == ZERO_LOSS


def test_a_count_keeps_its_bounds_in_a_query_with_a_sum(curator):
    groups, rows, _ = bounds_of(curator, BY_WARD, epsilon=1)
    curator.ask("SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward", epsilon=2)
    latest = [bounds for bounds in chosen_bounds(curator)[-1] if bounds]
    assert all(bounds[:2] == [groups, rows] for bounds in latest)


def test_a_blind_limit_of_a_sum_is_that_of_the_declared_bounds():
    with opened(DELTA, bounds="groups = 2\nrows = 3", data=heavy_tailed(100)) as curator:
        answer = curator.ask(SUM_BY_WARD, epsilon=1, groups="auto", rows="auto")
        groups, _, blind, (limit,) = chosen_bounds(curator)[-1][0]
        assert blind
        assert limit * groups**0.5 == pytest.approx(300 * 2**0.5, rel=0.01)
        assert "those that the policy declares were used" in " ".join(repr(answer).split())


def test_a_sum_of_one_sign_reports_a_lower_bound_of_its_bias():
    data = heavy_tailed(4_000)
    with opened(DELTA, data=data) as curator:
        answer = curator.ask("SELECT SUM(cost) AS s FROM visits", epsilon=8)
        (bias,) = answer.bias["s"]
        assert bias.low >= 0
        assert "SUM(cost)" in " ".join(answer.clipping) or "exceed the bounds" in " ".join(answer.clipping)


@pytest.mark.long
def test_a_charged_histogram_is_part_of_what_was_paid():
    table = pa.table({"unit": np.repeat(np.arange(3000), 3)})
    with dc.open(table, unit="unit", budget=8, columns={}, ledger=":memory:") as curator:
        for rows in (1 << power for power in range(8)):
            curator.ask("SELECT COUNT(*) AS n FROM data", epsilon="1/2", rows=rows)
        before = curator.budget().spent.epsilon
        paid = curator.ask("SELECT COUNT(*) AS n FROM data", epsilon="1/2", rows="auto").paid.epsilon
        assert curator.budget().spent.epsilon - before == paid > 0


def test_the_buckets_of_automatic_bounds_are_octaves_and_those_of_declared_ones_half_octaves(curator):
    """Noise hides more in narrow buckets; a report on declared bounds needs units just above them."""
    lows = []
    for sql, more in ((TOTAL, {}), (BY_WARD, {"groups": 2, "rows": 3})):
        plan = curator.releases.plan_query(sql, "owner", more.get("groups"), more.get("rows"))
        (histogram,) = [release.histogram for release in plan.releases if release.histogram]
        lows.append(np.array(histogram.lows))
    automatic, declared = lows
    assert automatic[0] == 1
    assert automatic[1:] / automatic[:-1] == pytest.approx(2)
    assert declared[-1] / declared[-3] == pytest.approx(2, rel=0.01)
