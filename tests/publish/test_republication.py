"""The same plan again: after the policy changed, after other queries, with other keys, and at the same moment."""

import threading

import numpy as np
import pytest
from publish.hospital import PEOPLE, ROWS, policy_text, visits

import discreet as dc
from discreet.kernel.errors import PolicyError, Refused
from discreet.publish import publication
from discreet.publish.plan import PublicationPlan
from discreet.publish.publication import publish

HEAD = "[release]\nname = 'x'\nepsilon = 2\n"
COUNTS = """
[tables.everybody]
sql = "SELECT COUNT(*) AS n FROM visits"
[tables.by_ward]
sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
"""
BY_SEX = """
[tables.by_sex]
sql = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"
"""
TOTAL = """
[tables.everybody]
sql = "SELECT COUNT(*) AS n FROM visits"
"""
COST = """
[tables.cost]
sql = "SELECT ward, SUM(cost) AS total FROM visits GROUP BY ward"
[tables.sexes]
sql = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"
"""
WITH_MARGIN = """
[tables.people]
sql = "SELECT COUNT(DISTINCT patient) AS n FROM visits"
margin = 8
"""
DECLARED_SEX = 'sex = { type = "text", in = ["f", "m"] }'


def plan_of(*parts):
    return PublicationPlan.parse("".join((HEAD, *parts)))


@pytest.fixture
def opened(tmp_path):
    """Open the same ledger again, under a policy that may have been changed."""

    def open_with(old="", new="", **settings):
        text = policy_text(ledger=str(tmp_path / "visits.ledger"), **settings)
        assert old in text
        return dc.open(dc.policy.Policy.parse(text.replace(old, new)), data={"visits": visits(600, people=600)})

    return open_with


CHANGES = {
    "another value": (COUNTS, {"old": '"B", "C"]', "new": '"B", "D"]'}),
    "one more value": (COUNTS, {"old": '"B", "C"]', "new": '"B", "C", "D"]'}),
    "other contribution bounds": (COUNTS, {"groups": 4}),
    "another range": (COST, {"old": "[0, 500]", "new": "[0, 1000]"}),
    "rows that were binned otherwise": (ROWS, {"old": "between = [0, 99]", "new": "between = [0, 120]"}),
    "a query with other bounds": (PEOPLE, {"groups": 4}),
}


@pytest.mark.long(only=["rows that were binned otherwise"])
@pytest.mark.parametrize(("tables", "change"), CHANGES.values(), ids=CHANGES)
def test_results_are_not_read_back_as_something_else_after_the_policy_changed(opened, tmp_path, tables, change):
    """Counts of ward C are not published as those of D, and no margin is that of other bounds."""
    plan = plan_of(tables)
    with opened() as curator:
        curator.publish(plan, tmp_path / "first")
        spent = curator.ledger.spent()
    with opened(**change) as curator:
        with pytest.raises(Refused, match="different meaning"):
            curator.publish(plan, tmp_path / "second")
        assert curator.ledger.spent() == spent
    assert not (tmp_path / "second").exists()


@pytest.mark.parametrize("first_declared", [True, False])
def test_parts_that_were_not_charged_are_not_charged_apart(opened, tmp_path, first_declared):
    """With sex declared, two tables add up; without it, each is a query of its own: other parts of the same plan."""
    plan = plan_of(PEOPLE, BY_SEX, TOTAL)
    changes = [{}, {"old": DECLARED_SEX, "new": 'sex = { type = "text" }'}]
    with opened(**changes[not first_declared]) as curator:
        curator.publish(plan, tmp_path / "first")
        spent = curator.ledger.spent()
    with opened(**changes[first_declared]) as curator:
        for _ in range(2):
            with pytest.raises(Refused, match="different meaning"):
                curator.publish(plan, tmp_path / "second")
        assert curator.ledger.spent() == spent


def test_tables_with_a_requested_margin_do_not_change_the_margins_of_others_when_they_are_read_back(opened, tmp_path):
    """The second time the margin costs nothing; the others were charged for what it left the first time."""
    plan = plan_of(COUNTS, WITH_MARGIN)
    with opened() as curator:
        first = curator.publish(plan, tmp_path / "first")
        again = curator.publish(plan, tmp_path / "second")
        curator.ask("SELECT COUNT(DISTINCT patient) AS n FROM visits", margin=4)
        later = curator.publish(plan, tmp_path / "third")
    assert not again.paid.rho
    assert first.cost == again.cost == later.cost
    for name in ("everybody", "by_ward"):
        for other in (again, later):
            np.testing.assert_equal(dict(other.tables[name].margins), dict(first.tables[name].margins))
        assert again.tables[name].table.equals(first.tables[name].table)


@pytest.mark.parametrize("key", ["", "k" * 100, "a\ud800", "a\0"])
def test_keys_that_the_ledger_cannot_store_are_refused(opened, tmp_path, key):
    with opened() as curator, pytest.raises(Refused, match="key"):
        publish(curator, plan_of(COUNTS), tmp_path / "out", key=key)


def test_long_keys_that_begin_alike_are_different_and_leave_space_for_long_names(opened, tmp_path):
    plan, name = plan_of(COUNTS, WITH_MARGIN.replace("people", "p" * 100)), "../" * 32
    with opened() as curator:
        first, second = (publish(curator, plan, tmp_path / end, key=name + end) for end in ("one", "two"))
        assert second.paid.rho
    assert not first.tables["by_ward"].table.equals(second.tables["by_ward"].table)


def test_a_table_may_have_any_name_beside_a_family(opened, tmp_path):
    plan = plan_of(COUNTS, PEOPLE.replace("people", "family1"))
    with opened() as curator:
        assert not curator.publish(plan, tmp_path / "out").missing


def test_threads_that_publish_the_same_plan_at_once_charge_it_once(opened, tmp_path, monkeypatch):
    """The second waits for the first, and reads its results: no part is drawn twice, nor reported as missing."""
    plan, found, inside = plan_of(COUNTS, PEOPLE), {}, threading.Barrier(2, timeout=20)
    real = publication.check_folder
    monkeypatch.setattr(publication, "check_folder", lambda *args: (inside.wait(), real(*args))[1])
    with opened() as curator:

        def run(name):
            found[name] = curator.publish(plan, tmp_path / name)

        threads = [threading.Thread(target=run, args=(name,)) for name in ("one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(curator.ledger.events()) == 2
        one, two = found["one"], found["two"]
        assert curator.ledger.spent() == one.cost == two.cost == one.paid + two.paid
    assert one.missing == two.missing == ()
    assert all(table.table.equals(two.tables[name].table) for name, table in one.tables.items())


def test_a_publication_that_takes_too_long_refuses_the_second_one(opened, tmp_path, monkeypatch):
    plan, refused = plan_of(COUNTS), []
    real = publication.write_release
    with opened() as curator, opened() as other:
        other._in_flight_locks._timeout = 0.05

        def write(*args):
            with pytest.raises(Refused, match="still running") as caught:
                other.publish(plan, tmp_path / "second")
            refused.append(caught)
            return real(*args)

        monkeypatch.setattr(publication, "write_release", write)
        curator.publish(plan, tmp_path / "first")
        monkeypatch.setattr(publication, "write_release", real)
        assert not other.publish(plan, tmp_path / "second").missing
        assert len(refused) == len(curator.ledger.events()) == 1


def test_a_plan_that_is_changed_after_the_dry_run_is_another_plan(opened, tmp_path):
    """The key follows from the text that is published: the charge is that of the file as it is now."""
    with opened() as curator:
        curator.publish(plan_of(COUNTS), tmp_path / "first")
        changed = plan_of(COUNTS, "# a comment\n")
        with pytest.raises(PolicyError, match="not empty"):
            curator.publish(changed, tmp_path / "first")
        assert curator.publish(changed, tmp_path / "second").paid.rho
        assert len(curator.ledger.events()) == 2


def test_another_version_of_the_data_is_another_publication(opened, tmp_path):
    with opened() as curator:
        first = curator.publish(plan_of(COUNTS), tmp_path / "first")
    with opened('version = "1"', 'version = "2"') as curator:
        second = curator.publish(plan_of(COUNTS), tmp_path / "second")
        assert curator.ledger.spent() == first.cost + second.paid
    assert not first.tables["by_ward"].table.equals(second.tables["by_ward"].table)


def test_the_parts_of_a_plan_are_all_read_back_or_all_charged(opened, tmp_path):
    """A part that was in the ledger before the publication stays free when the publication is read back."""
    plan = plan_of(PEOPLE, COUNTS)
    with opened() as curator:
        curator.ask("SELECT ward, COUNT(DISTINCT patient) AS patients FROM visits GROUP BY ward", epsilon=3)
        first = curator.publish(plan, tmp_path / "first")
        events = len(curator.ledger.events())
        again = curator.publish(plan, tmp_path / "second")
        assert (again.paid.rho, len(curator.ledger.events())) == (0, events)
    assert first.tables["people"].table.equals(again.tables["people"].table)


def test_data_sets_of_the_same_people_are_published_apart_and_charged_together(tmp_path):
    """The same plan and key in two data sets of a population are two publications, within one budget."""
    text, table = policy_text(ledger=str(tmp_path / "ledger"), budget="epsilon = 5"), visits(60, people=60)
    curators = [
        dc.open(
            dc.policy.Policy.parse(text.replace('"visits"', f'"{name}"\npopulation = "people"', 1)),
            data={"visits": table},
        )
        for name in ("spring", "autumn")
    ]
    plan, spent = plan_of(COUNTS), []
    for name in ("first", "second"):
        for curator in curators:
            release = publish(curator, plan, tmp_path / f"{name}-{curator.ledger.dataset}", key="march")
            assert not release.missing
            spent.append((release.paid.epsilon, curator.ledger.spent().epsilon))
    assert spent == [(2, 2), (2, 4), (0, 4), (0, 4)]
    with pytest.raises(Refused, match="not enough budget"):
        publish(curators[0], plan, tmp_path / "third", key="april")
    for curator in curators:
        curator.close()


def test_later_answers_from_a_publication_do_not_change_it(opened, tmp_path):
    with opened() as curator:
        first = curator.publish(plan_of(COUNTS), tmp_path / "first")
        curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
        again = curator.publish(plan_of(COUNTS), tmp_path / "second")
    assert again.tables["by_ward"].table.equals(first.tables["by_ward"].table)


def test_every_table_of_a_family_says_which_rows_are_left_out(opened, tmp_path):
    """Also the total, whose own query would count rows without a ward."""
    with opened() as curator:
        release = curator.publish(plan_of(COUNTS), tmp_path / "out")
        derived = curator.ask("SELECT COUNT(*) AS n FROM visits")
        assert derived.paid.rho == 0
    assert {part.name: part.notes for part in release.record.parts} == dict.fromkeys(release.tables, derived.left_out)
    assert "ward is NULL" in derived.left_out[0]
    report = (tmp_path / "out" / "report.html").read_text()
    assert all(f"{name}: Rows are left out where ward is NULL" in report for name in release.tables)
