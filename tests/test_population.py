"""Several data sets about the same people share one ledger: policies, curators and the command line."""

import re
from fractions import Fraction

import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.cli import app
from discreet.curator import ledger_terms
from discreet.curator.data_stamp import owner_log_path, stamp_path
from discreet.curator.ledger_location import checkpoint_path, open_or_create_ledger
from discreet.policy import Policy, hazards, write_policy
from discreet.policy.file_hazards import find_file_hazards
from discreet.pricing import data_version

TOML = """
[data]
name = "{name}"
population = "residents"
protects = "{protects}"
version = "1"
ledger = "{ledger}"
[budget]
epsilon = {epsilon}
{delta}
{limit}
[budget.analysts]
ana = {{ epsilon = {ana} }}
[tables.{name}]
source = "{name}.csv"
unit = "{unit}"
groups = 1
rows = 1
{window}
[tables.{name}.columns]
person = {{ type = "{kind}" }}
day = {{ type = "date" }}
"""
DEFAULTS = {"epsilon": 1.0, "ana": 0.5, "limit": "", "delta": "", "protects": "person", "kind": "integer"}
DEFAULTS |= {"window": "", "ledger": "residents.sqlite", "unit": "person"}
COUNT = "SELECT COUNT(*) AS n FROM {}"


def write(folder, name, **changes):
    (folder / f"{name}.csv").write_text("person,day\n1,2024-01-01\n2,2024-01-02\n3,2024-01-03\n")
    file = folder / f"{name}.toml"
    file.write_text(TOML.format(name=name, **{**DEFAULTS, **changes}))
    return file


def ask(folder, name, epsilon, by="owner"):
    with dc.open(folder / f"{name}.toml") as curator:
        return curator.ask(COUNT.format(name), epsilon=epsilon, by=by)


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, "visits")
    write(tmp_path, "labs", limit="[budget.dataset]\nepsilon = 0.3")
    return tmp_path


def test_the_same_people_have_one_budget_in_all_data_sets(folder):
    ask(folder, "visits", "1/5", by="ana")
    ask(folder, "labs", "1/5", by="ana")
    with pytest.raises(dc.Refused, match=r"0.6 in total; epsilon 0.1 in labs; epsilon 0.1 for ana"):
        ask(folder, "labs", "2/5", by="ana")
    with dc.open(folder / "labs.toml") as curator:
        assert curator.datasets == ("labs", "visits")
        assert [curator.budget().spent.epsilon, curator.budget("ana").spent.epsilon] == [Fraction(2, 5)] * 2
        assert curator.budget(dataset="labs").total == dc.Budget("3/10")
        assert curator.budget(dataset="labs").remaining.epsilon == Fraction(1, 10)
        assert curator.budget(dataset="visits").remaining.epsilon == Fraction(3, 5)
        assert curator.budget().remaining.epsilon == Fraction(1, 10), "for a query about labs"
        with pytest.raises(dc.PolicyError, match="'drugs' is not a data set of 'residents'"):
            curator.budget(dataset="drugs")


def test_the_same_question_about_another_data_set_is_another_question(folder):
    """Even if tables, columns and versions have the same names."""
    text = (folder / "visits.toml").read_text()
    (folder / "labs.toml").write_text(text.replace('name = "visits"', 'name = "labs"'))
    first, second = Policy.load(folder / "visits.toml"), Policy.load(folder / "labs.toml")
    assert data_version(first) != data_version(second)
    with dc.open(first) as visits, dc.open(second) as labs:
        visits.ask(COUNT.format("visits"), epsilon="1/4", key="k")
        assert visits.ask(COUNT.format("visits"), epsilon="1/4").paid.epsilon == 0
        answer = labs.ask(COUNT.format("visits"), epsilon="1/4", key="k")
        assert answer.paid.epsilon == Fraction(1, 4)
        refined = labs.ask(COUNT.format("visits"), epsilon="1/3")
        assert refined.paid.epsilon == Fraction(1, 12), "from its own answer"
        fingerprints = [event.fingerprints for event in labs.ledger.events()]
        assert fingerprints[0] != fingerprints[1] == fingerprints[2]


WRONG = {
    "another noun": ({"protects": "home"}, r"protects is person in the ledger and home in the policy"),
    "another key type": ({"kind": "text"}, r"the unit is person, integer .* and person, text"),
    "single rows": ({"unit": "row"}, r"the unit is person, integer .* and row"),
    "a window": ({"window": 'window = "1 day"\ntime = "day"'}, r"the unit is .* and window, .*integer, day"),
    "a wider total": ({"epsilon": 2.0}, r"total: epsilon 1 in the ledger, epsilon 2 in the policy"),
    "a smaller total": ({"epsilon": 0.9}, r"total: epsilon 1 in the ledger, epsilon 0.9 in the policy"),
    "a delta": ({"delta": "delta = 1e-6"}, r"total: epsilon 1 in the ledger, epsilon 1, delta 1e-6"),
    "a wider limit of an analyst": ({"ana": 0.9}, r"analyst ana: epsilon 0.5 in the ledger, epsilon 0.9"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_data_set_with_other_terms_cannot_join(folder, what):
    changes, message = WRONG[what]
    ask(folder, "visits", "1/4")
    write(folder, "drugs", **changes)
    with pytest.raises(dc.PolicyError, match=message):
        dc.open(folder / "drugs.toml")
    with dc.open(folder / "visits.toml") as curator:
        assert curator.datasets == ("visits",)
        assert curator.budget().total == dc.Budget(1)


def test_another_neighbouring_relation_cannot_join(folder):
    policy = Policy.load(folder / "visits.toml")
    declaration = policy.population_declaration().replace("add or remove", "substitution")
    dc.create_ledger(
        policy.ledger_location,
        name="residents",
        budget=policy.budget,
        analysts=policy.analyst_budgets(),
        unit_declaration=declaration,
        datasets={},
    ).close()
    with pytest.raises(dc.PolicyError, match="neighbours are substitution in the ledger and add or remove"):
        dc.open(policy)


def test_a_population_and_a_data_set_are_never_mistaken_for_each_other(folder):
    ask(folder, "visits", "1/4")
    alone = (folder / "visits.toml").read_text().replace('population = "residents"\n', "")
    (folder / "alone.toml").write_text(alone.replace('name = "visits"', 'name = "residents"'))
    with pytest.raises(dc.PolicyError, match="belongs to a population, 'residents'"):
        dc.open(folder / "alone.toml")
    (folder / "alone.toml").write_text(alone.replace("residents.sqlite", "alone.sqlite"))
    dc.open(folder / "alone.toml").close()
    write(folder, "labs", ledger="alone.sqlite")
    (folder / "labs.toml").write_text((folder / "labs.toml").read_text().replace('"residents"', '"visits"'))
    with pytest.raises(dc.PolicyError, match="belongs to one data set, 'visits'"):
        dc.open(folder / "labs.toml")


def test_a_failure_suspends_one_data_set_only(folder, monkeypatch):
    with dc.open(folder / "visits.toml") as visits, dc.open(folder / "labs.toml") as labs:
        for number in range(3):
            visits.ledger.charge(dc.Loss("1/100"), dc.Event(mechanism="{}", sensitivity="{}", question=str(number)))
        visits.releases.circuit_breaker._failed_ids |= {event.id for event in visits.ledger.unsettled_events()}
        labs.releases.circuit_breaker._failed_ids |= visits.releases.circuit_breaker._failed_ids
        with pytest.raises(dc.Refused, match="'visits' is suspended after 3 failed queries"):
            visits.ask(COUNT.format("visits"), epsilon="1/10")
        labs.ask(COUNT.format("labs"), epsilon="1/10")


def test_files_beside_the_ledger_belong_to_one_data_set_each(folder):
    policies = [Policy.load(folder / f"{name}.toml") for name in ("visits", "labs")]
    assert len({*map(stamp_path, policies), *map(owner_log_path, policies)}) == 4
    assert len(set(map(checkpoint_path, policies))) == 1
    for policy in policies:
        assert Policy.parse(write_policy(policy), policy.base) == policy
        assert "D019" not in {hazard.id for hazard in [*hazards(policy), *find_file_hazards(policy)]}


def test_a_limit_of_a_data_set_needs_a_population_and_stays_below_the_total():
    text = TOML.format(name="visits", **{**DEFAULTS, "limit": "[budget.dataset]\nepsilon = 3"})
    with pytest.raises(dc.PolicyError, match="epsilon must not exceed the total budget of 1"):
        Policy.parse(text)
    with pytest.raises(dc.PolicyError, match="dataset is a limit under the budget of a population"):
        Policy.parse(text.replace("epsilon = 3", "epsilon = 0.1").replace('population = "residents"\n', ""))


def run(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done.output


def test_the_owner_runs_a_population_from_the_command_line(folder, tmp_path):
    visits, labs = folder / "visits.toml", folder / "labs.toml"
    run("ask", visits, COUNT.format("visits"), "--epsilon", "0.2", "--by", "ana")
    run("ask", labs, COUNT.format("labs"), "--epsilon", "0.1")
    shown = run("budget", labs)
    assert re.search(r"Population residents", shown)
    for words in (
        "everyone .*epsilon 1 .*epsilon 0.3 .*epsilon 0.7",
        "in visits .*no limit .*0.2",
        "in labs .*0.3 .*0.1",
    ):
        assert re.search(words.replace(" .*", r"[^\n]*"), shown), (words, shown)
    assert "labs" in run("ledger", "show", visits)
    assert "2 charges" in run("ledger", "verify", labs)
    # One policy's budget is edited: it is told what differs, and makes it the terms of the population.
    write(folder, "labs", epsilon=2.0, limit="[budget.dataset]\nepsilon = 0.4")
    refused = " ".join(run("budget", labs, code=2).split())
    assert "total: epsilon 1 in the ledger, epsilon 2 in the policy" in refused
    assert "this data set: epsilon 0.3 in the ledger, epsilon 0.4 in the policy" in refused
    assert "discreet ledger set-budget POLICY" in refused
    assert "total: epsilon 1 in the ledger, epsilon 2 in the policy" in run("ledger", "set-budget", labs)
    assert "nothing differs" in run("ledger", "set-budget", labs)
    run("budget", labs)
    assert "epsilon 2 in the ledger, epsilon 1 in the policy" in " ".join(run("budget", visits, code=2).split())
    write(folder, "visits", epsilon=2.0)
    run("ledger", "acknowledge", visits)
    # The ledger moves with all data sets.
    run("ledger", "move", visits, "--to", tmp_path / "elsewhere.sqlite")
    write(folder, "visits", epsilon=2.0, ledger="elsewhere.sqlite")
    write(folder, "labs", epsilon=2.0, limit="[budget.dataset]\nepsilon = 0.4", ledger="elsewhere.sqlite")
    assert "in labs" in run("budget", visits)
    assert "2 charges" in run("ledger", "verify", labs)
    # A policy that is no member cannot change the terms.
    write(folder, "drugs", epsilon=3.0, ledger="elsewhere.sqlite")
    assert "is not a data set of 'residents' yet" in " ".join(
        run("ledger", "set-budget", folder / "drugs.toml", code=2).split()
    )
    run("check", labs)


@pytest.mark.parametrize("population", ['population = "residents"', ""])
def test_a_table_that_was_removed_cannot_return_with_another_unit(folder, population):
    policy = folder / "visits.toml"
    columns = 'person = { type = "integer" }\nother = { type = "integer" }\n'
    small = policy.read_text().replace('population = "residents"', population)
    by_person, by_other = (
        f'{small}[tables.extra]\nsource = "extra.csv"\nunit = "{unit}"\n[tables.extra.columns]\n{columns}'
        for unit in ("person", "other")
    )
    (folder / "extra.csv").write_text("person,other\n1,1\n")
    for text in (by_person, small):
        policy.write_text(text)
        dc.open(policy).close()
    policy.write_text(by_other)
    with pytest.raises(dc.PolicyError, match="table extra: unit or window differs"):
        dc.open(policy)


def test_limits_are_compared_exactly(tmp_path):
    for epsilon in ("1.000004", "1.0"):
        file = write(tmp_path, "alone", epsilon=epsilon, ledger="alone.sqlite")
        file.write_text(file.read_text().replace('population = "residents"', ""))
        with dc.open(file) as curator:
            assert curator.ledger.terms.budget.epsilon == Fraction(epsilon)
    write(tmp_path, "visits", epsilon="1.000004")
    dc.open(tmp_path / "visits.toml").close()
    write(tmp_path, "visits", epsilon="1.0")
    with pytest.raises(dc.PolicyError, match=r"Budget\(epsilon=250001/250000\) in the ledger, Budget\(epsilon=1\)"):
        dc.open(tmp_path / "visits.toml")


def test_a_new_table_does_not_undo_a_change_made_at_the_same_time(folder, monkeypatch):
    for name in ("visits", "labs"):
        dc.open(folder / f"{name}.toml").close()
    lower = Policy.load(write(folder, "labs", epsilon=0.6))
    differences = ledger_terms._differences

    def lowered_meanwhile(terms, policy):
        monkeypatch.setattr(ledger_terms, "_differences", differences)
        with open_or_create_ledger(lower) as ledger:
            ledger_terms.set_budget_of_policy(ledger, lower)
        return differences(terms, policy)

    monkeypatch.setattr(ledger_terms, "_differences", lowered_meanwhile)
    policy = folder / "visits.toml"
    policy.write_text(
        f'{policy.read_text()}[tables.w]\nsource = "visits.csv"\nunit = "person"\n'
        '[tables.w.columns]\nperson = { type = "integer" }\n'
    )
    with pytest.raises(dc.PolicyError, match="changed at the same time"):
        dc.open(policy)
    with open_or_create_ledger(lower) as ledger:
        assert ledger.terms.budget.epsilon == Fraction("0.6")
