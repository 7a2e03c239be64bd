"""discreet report, as an owner runs it, and as a stranger who verifies a release."""

import json
import shutil

import pytest
from commands import run

from discreet.audit.policy.result import CheckResult, PolicyAudit
from discreet.curator.ledger_location import open_or_create_ledger
from discreet.kernel.event import Event
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Laplace, Sensitivity
from discreet.policy import Policy
from discreet.publish import ReleasePart, ReleaseRecord, report_of, write_manifest, write_report
from discreet.publish.manifest import file_digests

POLICY = """
[data]
name = "clinic"
protects = "patient"
[budget]
epsilon = 1
[tables.visits]
source = "visits.csv"
unit = "patient"
groups = 1
rows = 2
[tables.visits.columns]
patient = { type = "integer" }
ward = { type = "text", in = ["A", "B"] }
"""
EVENT = Event(mechanism=str(Laplace(20)), sensitivity=str(Sensitivity(1, 2)), question="how many visits?")
FILES = ("report.html", "report.json", "registry.yaml")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path


def charge(folder, epsilon="1/10"):
    with open_or_create_ledger(Policy.load(folder / "policy.toml")) as ledger:
        ledger.settle(ledger.charge(Loss(epsilon), EVENT), b"7")


@pytest.fixture
def release(folder):
    """Publish one table, as the orchestration does."""
    charge(folder)
    place = folder / "release"
    (place / "tables").mkdir(parents=True)
    (place / "tables" / "wards.csv").write_text("ward,n\nA,10\n")
    with open_or_create_ledger(Policy.load(folder / "policy.toml")) as ledger:
        (event,) = ledger.events()
        part = ReleasePart("wards", "table", "SELECT 1", Loss("1/10"), event.id, "released", 1)
        record = ReleaseRecord("Wards", "the plan", event.time, (part,), files=tuple(file_digests(place).items()))
        report = report_of(Policy.load(folder / "policy.toml"), ledger, record, policy_text=POLICY)
        write_report(report, place)
        write_manifest(place, policy_text=POLICY, plan_text="the plan", ledger=report.ledger_point)
    return place


def chapters(place):
    return {each["id"]: each for each in json.loads((place / "report.json").read_text())["chapters"]}


def test_without_a_folder_the_report_is_printed_and_nothing_is_created(folder):
    done = run("report", "policy.toml", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Privacy report: clinic\n\nIN SHORT\nIf you are among the patients in the data")
    assert "There is no ledger yet: nothing was ever charged." in done.stdout
    assert [path.name for path in folder.iterdir()] == ["policy.toml"]  # no ledger, and the data need not exist


def test_a_report_reads_neither_data_nor_their_files(folder, monkeypatch):
    charge(folder)
    (folder / "visits.csv").mkdir()  # whoever opens it fails
    assert run("report", "policy.toml", "out", cwd=folder).returncode == 0
    assert "visits.csv" not in "".join((folder / "out" / name).read_text() for name in FILES)


def test_a_report_changes_no_byte_of_the_ledger(folder):
    charge(folder)
    before = (folder / "ledger.sqlite").read_bytes(), (folder / "ledger.sqlite.checkpoint").read_bytes()
    assert run("report", "policy.toml", cwd=folder).returncode == 0
    assert before == ((folder / "ledger.sqlite").read_bytes(), (folder / "ledger.sqlite.checkpoint").read_bytes())


def test_a_folder_gets_three_files_that_agree(folder):
    charge(folder)
    done = run("report", "policy.toml", "out", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in (folder / "out").iterdir()) == sorted(FILES)
    assert "Spent: epsilon 0.1 per patient (10 % of the budget)" in (folder / "out" / "report.html").read_text()
    assert chapters(folder / "out")["budget"]["facts"]["spent"]["epsilon"] == "1/10"
    assert "Patient-level" in (folder / "out" / "registry.yaml").read_text()


def test_a_report_is_replaced_only_by_force(folder):
    run("report", "policy.toml", "out", cwd=folder)
    done = run("report", "policy.toml", "out", cwd=folder)
    assert done.returncode == 2
    assert "report.html already exists" in done.stderr
    assert run("report", "policy.toml", "out", "--force", cwd=folder).returncode == 0


def test_a_ledger_that_is_lost_is_not_reported_as_new(folder):
    charge(folder)
    (folder / "ledger.sqlite").unlink()
    done = run("report", "policy.toml", cwd=folder)
    assert done.returncode == 2
    assert "the ledger is missing, but its checkpoint" in done.stderr
    assert not (folder / "ledger.sqlite").exists()


def test_a_ledger_in_a_database_is_read_and_never_created(folder, postgres):
    import psycopg

    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE reports")
    text = POLICY.replace('protects = "patient"', f'protects = "patient"\nledger = "{postgres.url("reports")}"')
    (folder / "policy.toml").write_text(text)
    assert "There is no ledger yet" in run("report", "policy.toml", cwd=folder).stdout
    with psycopg.connect(postgres.url("reports")) as connection:
        tables = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname !~ '^(pg_|information_schema)'")
        assert tables.fetchone() == (0,)
    charge(folder)
    done = run("report", "policy.toml", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Spent: epsilon 0.1 per patient" in done.stdout
    assert "postgresql://" not in done.stdout


def test_a_release_is_verified(release, folder):
    done = run("report", "--verify", "release", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    verified, digest, advice = done.stdout.splitlines()
    assert "does not show who wrote it" in advice
    assert verified == "release: 4 files verified; nothing was changed, added or removed"
    assert digest.startswith("SHA-256 of manifest.json: ")
    assert run("report", "policy.toml", "--verify", "release", cwd=folder).returncode == 0


@pytest.mark.parametrize("name", ["tables/wards.csv", *FILES])
def test_one_changed_byte_fails_with_the_name_of_the_file(release, folder, name):
    content = bytearray((release / name).read_bytes())
    content[len(content) // 2] ^= 1
    (release / name).write_bytes(content)
    done = run("report", "--verify", "release", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"discreet: {name}: changed since the release\n"


def test_missing_and_added_files_fail_with_their_names(release, folder):
    (release / "report.html").unlink()
    (release / "more.csv").write_text("")
    done = run("report", "--verify", "release", cwd=folder)
    assert done.returncode == 2
    assert done.stderr == "discreet: more.csv: added after the release\ndiscreet: report.html: missing\n"


def test_names_of_added_files_cannot_write_to_the_terminal(release, folder):
    (release / "\x1b[31m.csv").write_text("")
    assert "\x1b" not in run("report", "--verify", "release", cwd=folder).stderr


def test_a_changed_policy_and_another_ledger_are_found(release, folder):
    (folder / "policy.toml").write_text(POLICY + "# later\n")
    done = run("report", "policy.toml", "--verify", "release", cwd=folder)
    assert (done.returncode, done.stderr) == (2, "discreet: policy.toml: changed since the release\n")
    (folder / "policy.toml").write_text(POLICY)
    for path in folder.glob("ledger.sqlite*"):
        path.unlink()
    charge(folder, "1/5")
    done = run("report", "policy.toml", "--verify", "release", cwd=folder)
    assert done.returncode == 2
    assert "ledger: it does not contain the row" in done.stderr


def test_a_later_charge_does_not_invalidate_a_release(release, folder):
    charge(folder)
    assert run("report", "policy.toml", "--verify", "release", cwd=folder).returncode == 0


def test_the_report_of_a_release_can_be_renewed_and_still_verifies(release, folder):
    charge(folder)
    assert run("report", "policy.toml", "release", "--force", cwd=folder).returncode == 0
    told = chapters(release)
    assert told["release"]["facts"]["name"] == "Wards"
    assert told["budget"]["facts"]["spent"]["epsilon"] == "1/5"
    assert run("report", "policy.toml", "--verify", "release", cwd=folder).returncode == 0


def test_the_report_of_a_changed_release_is_not_renewed(release, folder):
    (release / "tables" / "wards.csv").write_text("ward,n\nA,11\n")
    done = run("report", "policy.toml", "release", "--force", cwd=folder)
    assert done.returncode == 2
    assert "tables/wards.csv: changed since the release" in done.stderr


def test_the_report_of_a_release_is_not_renewed_from_another_policy(release, folder):
    (folder / "policy.toml").write_text(POLICY.replace("epsilon = 1", "epsilon = 2"))
    done = run("report", "policy.toml", "release", "--force", cwd=folder)
    assert done.returncode == 2
    assert "policy.toml: changed since the release" in done.stderr


def test_an_audit_is_run_on_request_and_becomes_evidence(folder, monkeypatch):
    from discreet.audit.policy import audit

    def audit_policy(policy, *, runs, track):
        check = CheckResult("The ledger verifies", runs == 100, "all rows")
        return PolicyAudit(policy.data.name, "patient", runs, 0.95, (), (check,), ())

    monkeypatch.setattr(audit, "audit_policy", audit_policy)
    done = run("report", "policy.toml", "out", "--audit", "--runs", "100", cwd=folder)
    assert done.returncode == 0
    evidence = chapters(folder / "out")["evidence"]
    assert evidence["facts"]["audit"]["verdict"] == "None of 1 claims was refuted (confidence 95 %)."
    assert ["The ledger verifies", "passed"] in evidence["tables"][0]["rows"]
    shutil.rmtree(folder / "out")
    done = run("report", "policy.toml", "out", "--audit", cwd=folder)
    assert done.returncode == 1  # refuted, and still reported
    assert "1 of 1 claims refuted" in (folder / "out" / "report.html").read_text()


@pytest.mark.long
def test_the_real_audit_becomes_evidence(folder):
    done = run("report", "policy.toml", "out", "--audit", "--runs", "100", cwd=folder)
    assert done.returncode == 0, done.stderr
    evidence = chapters(folder / "out")["evidence"]
    assert evidence["facts"]["audit"]["holds"]
    assert any("COUNT(*)" in row[0] for row in evidence["tables"][0]["rows"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "POLICY is missing"),
        ((".",), "write --verify ."),
        (("policy.toml", "out", "--verify", "release"), "--verify: give its DIR only"),
        (("--verify", "nowhere"), "there is no folder nowhere"),
        (("policy.toml", "policy.toml"), "policy.toml is no folder"),
        (("policy.toml", "no/where"), "cannot be created"),
        (("none.toml",), "cannot read the file"),
    ],
    ids=str,
)
def test_wrong_usage_exits_with_2(folder, words, message):
    done = run("report", *words, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_folder_without_a_manifest_is_no_release(folder):
    done = run("report", "--verify", ".", cwd=folder)
    assert (done.returncode, done.stderr) == (2, "discreet: manifest.json: missing, so this is not a release\n")
