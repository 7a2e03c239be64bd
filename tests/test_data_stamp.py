"""Data that changes while the version stays the same is reported to the owner, and not to analysts."""

import json
import logging
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.curator.data_stamp import changed_tables, changed_tables_warning, owner_log_path, stamp_path
from discreet.policy import Policy

POLICY = """
[data]
name = "visits"
version = "{version}"
ledger = "{ledger}"
[budget]
epsilon = 100.0
[tables.visits]
source = "{source}"
unit = "patient"
groups = 1
rows = 1
columns = {{ patient = {{ type = "integer" }} }}
"""
COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def visits(tmp_path):
    (tmp_path / "visits.csv").write_text("patient\n1\n2\n")
    return tmp_path / "visits.csv"


def policy_in(folder, source="visits.csv", version="1", ledger="ledger.sqlite"):
    return Policy.parse(POLICY.format(source=source, version=version, ledger=ledger), folder)


def opened(policy, **more):
    dc.open(policy, **more).close()


def change(path):
    path.write_text(path.read_text() + "3\n")


def test_a_change_is_reported_at_every_open_until_the_version_changes(tmp_path, visits, caplog):
    opened(policy_in(tmp_path))
    opened(policy_in(tmp_path))
    assert caplog.records == []
    change(visits)
    for _ in range(2):
        caplog.clear()
        opened(policy_in(tmp_path))
        (record,) = caplog.records
        assert (record.name, record.levelno) == ("discreet.owner", logging.WARNING)
        assert "visits" in record.getMessage()
        assert "version" in record.getMessage()
    caplog.clear()
    opened(policy_in(tmp_path, version="2"))
    opened(policy_in(tmp_path, version="2"))
    assert caplog.records == []


def test_a_file_with_a_new_modification_time_is_accepted_by_deleting_the_stamp(tmp_path, visits, caplog):
    policy = policy_in(tmp_path)
    opened(policy)
    os.utime(visits, ns=(1, 1))
    assert changed_tables(policy) == ["visits"]
    stamp_path(policy).unlink()
    opened(policy)
    assert caplog.records == []


def test_a_changed_parquet_file_of_the_same_size_and_time_is_detected_by_its_footer(tmp_path):
    path = tmp_path / "visits.parquet"
    policy = policy_in(tmp_path, "visits.parquet")
    sizes = set()
    for values in ([1, 2], [1, 3]):
        pq.write_table(pa.table({"patient": values}), path, compression="none")
        os.utime(path, ns=(1, 1))
        sizes.add(path.stat().st_size)
        found = changed_tables(policy)
        opened(policy)
    assert len(sizes) == 1
    assert found == ["visits"]


def test_a_file_that_joins_a_pattern_is_a_change(tmp_path, visits):
    policy = policy_in(tmp_path, "*.csv")
    opened(policy)
    (tmp_path / "more.csv").write_text("patient\n3\n")
    assert changed_tables(policy) == ["visits"]


def test_the_stamp_of_a_file_does_not_depend_on_how_its_path_is_written(tmp_path, visits):
    (tmp_path / "deep" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "below")
    (tmp_path / "deep" / "visits.csv").write_text("patient\n1\n")
    opened(policy_in(tmp_path))
    assert changed_tables(policy_in(tmp_path / "deep" / "..")) == []
    opened(policy_in(tmp_path / "deep"))
    assert changed_tables(policy_in(tmp_path / "link" / "..")) == []  # not tmp_path


def test_a_policy_without_version_is_told_so(tmp_path, visits):
    text = POLICY.format(source="visits.csv", version="", ledger="ledger.sqlite").replace('version = ""', "")
    message = changed_tables_warning(Policy.parse(text, tmp_path), ["visits"])
    assert "have changed, but the policy declares no version, so cached answers" in message
    assert "Declare version in [data]" in message
    assert 'version is still "1"' in changed_tables_warning(policy_in(tmp_path), ["visits"])


def test_the_stamp_is_private_and_contains_no_data(tmp_path, visits):
    os.utime(visits, ns=(1234567890, 1234567890))
    before = os.umask(0)
    try:
        opened(policy_in(tmp_path))
    finally:
        os.umask(before)
    stamp = stamp_path(policy_in(tmp_path))
    assert stamp.stat().st_mode & 0o777 == 0o600
    kept = json.loads(stamp.read_text())
    assert set(kept) == {"key", "stamps"}
    assert "1234567890" not in json.dumps(kept["stamps"])
    other = tmp_path / "other"
    other.mkdir()
    opened(policy_in(tmp_path, ledger="other/ledger.sqlite"))
    assert json.loads((other / "ledger.sqlite.stamp").read_text())["stamps"] != kept["stamps"]  # another key


def test_nothing_that_an_analyst_sees_changes(tmp_path, visits, recwarn):
    with dc.open(policy_in(tmp_path)) as curator:
        first = curator.ask(COUNT, epsilon=1)
    change(visits)
    with dc.open(policy_in(tmp_path)) as curator:
        again = curator.ask(COUNT, epsilon=1)
        assert (repr(again.table), again.notes) == (repr(first.table), first.notes)
        assert len(curator.ledger.events()) == 1
    assert list(recwarn) == []


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"key": "no", "stamps": {}}', '{"key": "00", "stamps": []}'])
def test_a_damaged_stamp_is_recreated(tmp_path, visits, damage):
    policy = policy_in(tmp_path)
    stamp_path(policy).write_text(damage)
    opened(policy)
    assert changed_tables(policy) == []
    change(visits)
    assert changed_tables(policy) == ["visits"]


def test_frames_and_ledgers_in_memory_leave_no_stamp(tmp_path, visits):
    opened(policy_in(tmp_path, ledger=":memory:"))
    assert stamp_path(policy_in(tmp_path, ledger=":memory:")) is None
    opened(policy_in(tmp_path), data={"visits": pa.table({"patient": [1]})})
    assert not stamp_path(policy_in(tmp_path)).exists()


def test_a_ledger_in_a_database_has_stamp_and_log_beside_the_policy(tmp_path):
    policy = policy_in(tmp_path, ledger="postgresql://db.example/ledgers")
    assert stamp_path(policy) == tmp_path / "visits.stamp"
    assert owner_log_path(policy) == tmp_path / "visits.log"


def test_a_read_only_folder_does_not_prevent_queries(tmp_path, visits, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("discreet.curator.data_stamp._write_stamps", full)
    opened(policy_in(tmp_path))


@pytest.mark.parametrize("text", ["", "[]", '{"key": "00", "stamps": 5}', '{"key": "00", "stamps": {"1": 5}}'])
def test_an_invalid_stamp_file_is_rewritten(tmp_path, visits, text):
    policy = policy_in(tmp_path)
    stamp_path(policy).write_text(text)
    dc.open(policy).close()
    assert json.loads(stamp_path(policy).read_text())["stamps"]["1"].keys() == {"visits"}


def test_a_symlink_at_the_stamps_path_is_not_followed(tmp_path, visits):
    policy, victim = policy_in(tmp_path), tmp_path / "victim"
    victim.write_text("kept")
    stamp_path(policy).symlink_to(victim)
    dc.open(policy).close()
    assert victim.read_text() == "kept"
