"""The report says what policy, ledger and record say: each fact of it changes with them, and nothing else is read."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from release_examples import PURE, RECORD, ROWS, WARDS, changed_record, ledger_with, policy_with

from discreet import LedgerError, PolicyError
from discreet.kernel.loss import Budget, Loss
from discreet.policy import Policy, write_policy
from discreet.pricing.allocation import largest_epsilon
from discreet.privacy.conversion import cost_of
from discreet.publish import report_of
from discreet.publish.manifest import text_digest
from discreet.publish.report.content import OWNER_MUST_STATE
from discreet.publish.report.hazard_answers import Situation
from discreet.publish.report.number_text import rounded_down, rounded_up
from discreet.publish.report.standard_hazards import answer_hazards
from discreet.publish.report.trust_chapters import AuditEvidence


def page_text(page):
    """Return the words of a page, as a reader sees them."""
    words = []

    class Reader(HTMLParser):
        def handle_data(self, data):
            words.append(data)

    Reader().feed(page.partition("<body>")[2])
    return " ".join(" ".join(words).split())


def facts(report, id_):
    return json.loads(report.to_json())["chapters"][[chapter.id for chapter in report.chapters].index(id_)]["facts"]


def test_the_first_sentence_states_the_odds_of_the_release(report):
    first, second = report.chapter("summary").sentences
    assert first.startswith("If you are among the patients in the data, an outsider who knows everything else and sees")
    odds = facts(report, "summary")["odds"]
    assert 0.5 < odds["this release"]["fact"] < odds["everything that the budget allows"]["fact"] < 1
    assert re.search(r"in at most (\d+) of 100 cases; if you are not, in 50 of 100\.$", first)[1] == "61"
    assert "in at most 56 of 100 cases" in second


@pytest.mark.parametrize(("epsilon", "fact", "part"), [("1", "89", "74"), ("1/2", "74", "63"), ("1/10", "55", "53")])
def test_the_odds_follow_from_a_pure_epsilon(epsilon, fact, part):
    report = report_of(policy_with(budget={"epsilon": epsilon}), None)
    first, second = report.chapter("summary").sentences
    assert f"in at most {fact} of 100 cases" in first
    assert f"in at most {part} of 100 cases" in second


def test_a_budget_without_any_protection_is_called_so():
    first, second = report_of(policy_with(budget={"epsilon": "100"}), None).chapter("summary").sentences
    assert "fact in your rows possibly in all cases; if you are not, in 50 of 100." in first
    assert "guesses correctly possibly in all cases" in second


def test_a_page_has_every_sentence_and_cell_of_the_json(report):
    shown = page_text(report.to_html())
    for chapter in json.loads(report.to_json())["chapters"]:
        tables = chapter["tables"]
        cells = [cell for table in tables for row in table["rows"] for cell in row]
        for text in [chapter["title"], *chapter["sentences"], *chapter["notes"], *cells]:
            plain = re.sub(r"\s+", "", text)
            assert plain in re.sub(r"\s+", "", shown), text


def test_the_page_asks_nothing_of_the_network_and_runs_nothing(report):
    page = report.to_html()
    assert "default-src 'none'" in page
    assert not re.search(r"<(script|img|link|iframe|object|form)|https?:|url\(|@import", page)


def test_names_from_policy_and_ledger_are_escaped():
    report = report_of(policy_with(data={"name": "<b>clinic\u202e", "protects": "<i>patient"}), None)
    assert "<b>" not in report.to_html()
    assert "<i>" not in report.to_html()
    assert "\u202e" not in report.to_html()


def test_the_page_reads_well_on_paper_on_small_screens_and_in_the_dark(report):
    page = report.to_html()
    assert all(f"@media {what}" in page for what in ("print", "(max-width: 40rem)", "(prefers-color-scheme: dark)"))
    assert page.count("<h1>") == 1
    assert page.count("<h2>") == len(report.chapters)


def test_neither_sources_nor_locations_are_in_the_report(report):
    for text in (report.to_html(), report.to_json(), report.to_registry_yaml(), report.to_text()):
        assert "secret-source" not in text
        assert "secret-ledger" not in text


CHANGES = [
    ({"data": {"protects": "visitor"}}, "protection", "each visitor, with all of their rows"),
    ({"visits": {"unit": "row", "groups": 1, "rows": 1}}, "protection", "each single row of visits"),
    ({"visits": {"window": "1 day", "time": "at"}}, "protection", "one calendar day, time zone UTC"),
    ({"data": {"population": "residents"}}, "protection", "residents"),
    ({"budget": {"epsilon": "3/4"}}, "parameters", "Budget: epsilon: Value: 0.75"),
    ({"budget": {"epsilon": "1", "delta": "1e-7"}}, "parameters", "Budget: delta: Value: 1e-7"),
    (
        {"budget": {"epsilon": "1", "analysts": {"bob": {"epsilon": "1/4"}}}},
        "parameters",
        "analyst bob: epsilon: Value: 0.25",
    ),
    ({"visits": {"groups": 5}}, "bounds", "groups per unit; Value: 5; Origin: declared"),
    (
        {"visits": {"rows": "auto"}},
        "bounds",
        "rows per unit and group; Value: chosen for each query; Origin: automatic, paid",
    ),
    ({"release": {"bounds_reason": "From the tariff."}}, "bounds", "From the tariff."),
    ({"release": {"epsilon_reason": "The board's."}}, "parameters", "Why this epsilon and delta: The board's."),
    ({"release": {"unit_reason": "One card each."}}, "protection", "One card each."),
    (
        {"release": {"invariants": ["The number of wards"]}},
        "release",
        "Invariants and other exact numbers: The number of wards",
    ),
    ({"release": {"other_releases": "none"}}, "release", "Releases outside this ledger: None."),
    ({"release": {"access": "Two clerks."}}, "hazards", "Two clerks."),
    ({"release": {"related_people": "Families."}}, "hazards", "Families."),
    ({"release": {"missing_values": "Refusals."}}, "hazards", "Refusals."),
]


@pytest.mark.parametrize(("change", "chapter", "text"), CHANGES, ids=lambda value: str(value)[:50])
def test_a_changed_policy_changes_the_report(change, chapter, text):
    before = report_of(policy_with(), None)
    after = report_of(policy_with(**change), None)

    def words(report):
        whole = " ".join(report.to_text(10**6).split())
        title = report.chapter(chapter).title.upper()
        return whole.partition(f" {title} ")[2]

    assert text in words(after)
    assert text not in words(before)


def test_what_only_the_owner_knows_is_marked_until_it_is_stated():
    silent = report_of(policy_with(), None)
    assert "<mark>The owner must state this.</mark>" in silent.to_html()
    everything = {
        "invariants": "none",
        "other_releases": "none",
        **dict.fromkeys(
            ("publisher", "intended_use", "region", "sector", "epsilon_reason", "bounds_reason"), "It is so."
        ),
        **dict.fromkeys(("unit_reason", "access", "related_people", "missing_values"), "It is so."),
    }
    report = report_of(policy_with(release=everything), None)
    assert OWNER_MUST_STATE not in report.to_text()
    assert facts(report, "hazards")["owner must state"] == []
    assert len(facts(silent, "hazards")["owner must state"]) >= 7


def test_the_invariants_of_the_plan_come_before_those_of_the_policy():
    policy = policy_with(release={"invariants": ["of the policy"]})
    report = report_of(policy, None, changed_record(invariants=("of the plan",)))
    assert "Invariants and other exact numbers: of the plan" in report.to_text(10**6)
    report = report_of(policy, None, changed_record(invariants=None))
    assert "Invariants and other exact numbers: of the policy" in report.to_text(10**6)


def test_every_charge_is_listed_with_mechanism_scale_sensitivity_cost_and_state(report):
    first, second = facts(report, "events")["events"]
    assert first["noises"] == [{"mechanism": "discrete Gaussian noise", "scale": "20", "l1": "10", "l2_squared": "100"}]
    assert (first["by"], first["state"], first["loss"]["rho"]) == ("owner", "released", "1/100")
    assert (second["by"], second["state"]) == ("ana", "charged without an answer")
    text = report.to_text(10**6)
    assert "SELECT COUNT(*) FROM visits -- 1" in text
    assert "discrete Gaussian noise, scale 2 times the l2 sensitivity" in text
    assert "2 charges, each recorded before data was read; 1 without an answer" in text


def test_spent_and_remaining_are_those_of_the_ledger(report, policy):
    told = facts(report, "budget")
    assert told["spent"]["rho"] == "3/200"
    assert told["remaining"]["rho"] == str(policy.budget.rho - Loss(None, "3/200").rho)
    assert "analyst ana: Charges: 1; Spent: epsilon 0.5768 at delta 5e-10 (rho 0.005)" in report.to_text(10**6)
    rest = largest_epsilon(policy.budget, Loss(None, told["remaining"]["rho"]))
    assert f"Remaining: epsilon {rounded_down(rest)} at delta 5e-10 (rho " in report.to_text(10**6)


def test_a_changed_budget_is_in_the_history_and_in_the_hazards(policy):
    with ledger_with(policy, (Loss(None, "1/100"), True, "owner")) as ledger:
        ledger.set_budget(Budget(3, "1e-9", discover="1/2"), analysts=policy.analyst_budgets())
        report = report_of(
            policy_with(budget={"epsilon": "3", "delta": "1e-9", "analysts": {"ana": {"epsilon": "1"}}}), ledger
        )
    assert [act["act"] for act in facts(report, "budget")["history"]] == ["created", "terms changed by the owner"]
    assert "1 change of its terms" in report.to_text(10**6)
    assert "epsilon 3, delta 1e-9" in report.to_text(10**6)


def test_the_terms_of_the_ledger_are_reported_if_the_policy_differs(policy):
    with ledger_with(policy) as ledger:
        report = report_of(policy_with(budget={"epsilon": "5", "delta": "1e-9"}), ledger)
    assert facts(report, "parameters")["budget"]["epsilon"] == "2"
    assert "total: epsilon 2, delta 1e-9, discover 5e-10 in the ledger, epsilon 5" in report.to_text(10**6)


def test_a_policy_with_another_unit_than_the_ledger_has_no_report(policy):
    with ledger_with(policy) as ledger, pytest.raises(PolicyError, match="unit or window differs"):
        report_of(policy_with(visits={"window": "1 day", "time": "at"}), ledger)


def test_a_population_has_one_budget_and_its_data_sets_are_named():
    policy = policy_with(data={"population": "residents"})
    with ledger_with(policy, (Loss(None, "1/100"), True, "owner")) as ledger:
        report = report_of(policy, ledger)
    assert "One account for the population residents: clinic." in report.to_text(10**6)
    assert "data set clinic: Charges: 1" in report.to_text(10**6)


def test_reading_changes_nothing_in_the_ledger(policy):
    with ledger_with(policy, (Loss(None, "1/100"), True, "owner")) as ledger:
        before = report_of(policy, ledger)
        assert report_of(policy, ledger).to_json() == before.to_json()


def test_the_release_shows_its_parts_small_groups_first_and_the_data_dictionary(report):
    text = report.to_text(10**6)
    assert (
        "wards: Kind: family table; Rows: 3; Cost: epsilon 0.5768 at delta 5e-10 (rho 0.005); State: released" in text
    )
    assert text.index("Size of the number: below 10") < text.index("Size of the number: 10 and more")
    assert text.index("small groups first") < text.index("the least reliable first")
    assert "n_margin: Type: real; Values: open; Meaning: 95 % margin of error of n from privacy noise" in text
    assert "Least squares makes the tables add up." in text
    assert "people: generated from noisy tables only." in text
    assert "rows per unit; Value: 7; Origin: automatic, paid" in text
    assert "(clipping bias): about 1.2 % of rows." in text


def test_a_part_that_was_charged_and_is_missing_is_named(policy):
    lost = replace(ROWS, state="charged, missing", rows=None)
    report = report_of(policy, None, changed_record(parts=(WARDS, lost)))
    assert "Charged, but missing because something failed: people." in report.to_text(10**6)
    assert facts(report, "release")["missing"] == ["people"]


def test_a_release_without_an_estimate_of_clipping_says_so(policy):
    report = report_of(policy, None, changed_record(clipping=None))
    assert "(clipping bias): not released." in report.to_text(10**6)


def test_hashes_are_those_of_policy_plan_ledger_and_files(policy):
    with ledger_with(policy) as ledger:
        report = report_of(policy, ledger, RECORD, policy_text="# mine")
    told = facts(report, "hashes")
    assert told["policy"] == text_digest("# mine")
    assert told["plan"] == text_digest(RECORD.plan_text)
    assert told["files"] == {"tables/wards.csv": "ab" * 32}
    assert told["ledger"]["row"] == 1
    assert facts(report_of(policy, None), "hashes")["policy"] == text_digest(write_policy(policy))


def test_an_audit_is_evidence(policy):
    audit = AuditEvidence(
        verdict="None of 2 claims was refuted (confidence 95 %).",
        holds=True,
        runs=1000,
        confidence="95 %",
        rows=(("visits: COUNT(*)", "ε 1", "ε ≥ 0.7", "100 %", "not refuted"),),
        checks=(("The ledger verifies", "passed"),),
        coverage=("An audit can refute a guarantee, but never prove it.",),
    )
    text = report_of(policy, None, audit=audit).to_text(10**6)
    assert "1,000 runs of each query: None of 2 claims was refuted" in text
    assert "visits: COUNT(*): Claim: ε 1; Lower bound: ε ≥ 0.7" in text
    assert "was not audited" in report_of(policy, None).to_text(10**6)


def test_every_epsilon_has_its_unit(report):
    for table in report.chapter("conversion").tables:
        assert table.headers == ("delta", "epsilon per patient")
    for name, _, unit, _ in report.chapter("parameters").tables[0].rows:
        assert unit.endswith("per patient"), name


def test_conversions_of_the_release_are_those_of_its_rho(report):
    rows = facts(report, "conversion")["this release"]
    assert [row["delta"] for row in rows] == ["1/100000", "1/1000000", "1/10000000", "1/1000000000", "1/1000000000000"]
    assert all(row["epsilon"].count("/") == 1 for row in rows)


def test_each_hazard_has_an_answer_without_gaps():
    for budget in (PURE, {"epsilon": "2", "delta": "1e-9"}):
        policy = policy_with(budget=budget)
        with ledger_with(policy) as ledger:
            report = report_of(policy, ledger)
        answers = answer_hazards(Situation(policy, policy.budget, None, None))
        assert 24 <= len(answers) <= 32
        assert len({each.id for each in answers}) == len(answers)
        for each in answers:
            assert each.fact.endswith("."), each
            assert each.risk.endswith("."), each
        assert "None" not in " ".join(each.fact for each in answers)
        assert len(report.chapter("hazards").tables[0].rows) == len(answers)


def test_findings_of_the_check_are_in_the_report():
    report = report_of(policy_with(budget={"epsilon": "20"}), None)
    assert [finding["id"] for finding in facts(report, "hazards")["findings"]] == ["D005"]


def test_a_pure_budget_is_reported_without_rho_and_delta():
    policy = policy_with(budget=PURE)
    with ledger_with(policy, (Loss("1/10"), True, "owner")) as ledger:
        report = report_of(policy, ledger)
    text = report.to_text(10**6)
    assert "discrete Laplace noise, scale 1 times the l1 sensitivity" in text
    assert "Spent: epsilon 0.1 per patient (10 % of the budget). Remaining: epsilon 0.9 per patient." in text
    assert "Budget: rho" not in text
    assert "With delta 0, epsilon of the whole budget is 1." in text


def test_policies_with_statements_are_written_and_read_back():
    policy = policy_with(release={"invariants": "none", "other_releases": ["a", "b"], "access": "Two\nclerks."})
    assert Policy.parse(write_policy(policy), policy.base).release == policy.release
    assert policy.release.invariants == ()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"invariants": "nothing"}, r'invariants must be "none", or a list of texts'),
        ({"invariants": []}, r'invariants must be "none", or a list of texts'),
        ({"access": ""}, "access must be a text of 1 to 2,000 characters"),
        ({"acess": "x"}, 'unknown key "acess"; did you mean "access"'),
    ],
)
def test_a_mistaken_statement_is_refused(entry, message):
    with pytest.raises(PolicyError, match=message):
        policy_with(release=entry)


def test_a_release_is_compared_with_its_charge_in_the_ledger(policy):
    with ledger_with(policy, (RECORD.cost, True, "owner"), (Loss(None, "1/1000"), True, "owner")) as ledger:
        enough, less = (event.id for event in ledger.events())

        def problems(receipt):
            parts = tuple(replace(part, receipt=receipt) for part in RECORD.parts)
            report = report_of(policy, ledger, changed_record(parts=parts))
            return " ".join(report.chapter("release").sentences[1:])

        assert problems(enough) == ""
        assert "The ledger charged only rho 0.001 for it" in problems(less)
        assert "The ledger has no charge for: wards, people" in problems("another")


def test_tables_that_were_charged_together_show_their_cost_as_shared(policy):
    report = report_of(policy, None, changed_record(parts=(WARDS, replace(WARDS, name="months"), ROWS)))
    text = report.to_text(10**6)
    assert text.count("(rho 0.005) for 2 parts together;") == 2
    assert "(rho 0.01); State: released" in text
    assert "(rho 0.015) in total" in text
    assert "The costs of its parts add up in rho, not in epsilon." in text


def test_the_cost_of_a_release_is_told_as_the_plan_states_it(policy):
    cost = cost_of(policy.budget, "1/2")
    report = report_of(policy, None, changed_record(parts=(replace(WARDS, cost=cost),)))
    stated = f"epsilon 0.5 at delta 5e-10 (rho {rounded_up(cost.rho)})"
    assert f"{stated} in total, charged before any data was read" in report.to_text(10**6)
    assert facts(report, "release")["cost"] == stated
    assert [row[:2] for row in report.chapter("parameters").tables[0].rows if row[0].startswith("Release")] == [
        ("Release: epsilon", "0.5"),
        ("Release: rho", rounded_up(cost.rho)),
    ]
    assert "epsilon: 0.5\n" in report.to_registry_yaml()


def test_an_answer_that_was_paid_earlier_counts_with_its_charge(policy):
    with ledger_with(policy, (Loss(None, "1/50"), True, "owner")) as ledger:
        (event,) = ledger.events()
        parts = tuple(replace(part, receipt=event.id, cost=Loss(0)) for part in RECORD.parts)
        report = report_of(policy, ledger, changed_record(parts=parts))
    assert facts(report, "parameters")["release"]["rho"] == "1/50"
    assert "rho: 0.02\n" in report.to_registry_yaml()
    assert facts(report, "summary")["odds"]["this release"]["participation"] > 0.5


def test_the_ledger_of_another_account_is_refused(policy):
    other = policy_with(data={"name": "other"})
    with ledger_with(other) as ledger, pytest.raises(PolicyError, match="belongs to 'other'"):
        report_of(policy, ledger)


def test_of_many_charges_a_page_shows_the_last_and_the_json_has_all(policy):
    with ledger_with(policy, *[(Loss(None, "1/100000"), False, "owner")] * 203) as ledger:
        report = report_of(policy, ledger)
    queries = [event["query"] for event in facts(report, "events")["events"]]
    assert len(queries) == 203
    shown = [row[2] for row in report.chapter("events").tables[0].rows]
    assert shown == queries[3:]
    assert "The last 200 are shown; report.json has all." in report.to_text(10**6)


def test_an_acknowledged_failure_is_in_the_history(policy):
    with ledger_with(policy, (Loss(None, "1/100"), False, "owner")) as ledger:
        ledger.acknowledge()
        report = report_of(policy, ledger)
    acts = [act["act"] for act in facts(report, "budget")["history"]]
    assert acts == ["created", "failures or a rollback acknowledged by the owner"]
    assert "1 acknowledgement of failures or rollbacks" in report.to_text(10**6)


def test_a_ledger_with_a_changed_row_has_no_report(policy):
    with ledger_with(policy, (Loss(None, "1/100"), True, "owner")) as ledger:
        with ledger.session.read_transaction() as table:
            for (name,) in table.connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                table.connection.execute(f"DROP TRIGGER {name}")
            (rows,) = table.connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%spent_by%'"
            ).fetchone()
            table.connection.execute(f"UPDATE {rows} SET spent = '- 0 0' WHERE seq = 2")
            table.connection.execute("COMMIT")
        with pytest.raises(LedgerError, match="was modified"):
            report_of(policy, ledger)
