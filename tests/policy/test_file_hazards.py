"""Hazards of files: ledgers and sources that other accounts can reach, or that do not exist."""

from pathlib import Path

import pytest
from policy_examples import SMALL

from discreet.policy import Policy, file_hazards, find_file_hazards


@pytest.fixture
def home(tmp_path):
    """A folder that only the owner can enter, with the files of the small policy."""
    tmp_path.chmod(0o700)
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    for name in ("visits.parquet", "regions.csv"):
        (folder / name).write_text("x")
        (folder / name).chmod(0o644)
    return folder


def found(folder, text=SMALL):
    return [(hazard.id, hazard.location) for hazard in find_file_hazards(Policy.parse(text, base=folder), text)]


@pytest.fixture
def entered(monkeypatch):
    """Pretend that other accounts can reach the folder, whatever the machine's permissions are."""
    monkeypatch.setattr(file_hazards, "_is_reachable_by_others", lambda path: True)


def test_a_path_is_reachable_only_through_folders_that_others_may_enter(home):
    assert file_hazards._is_reachable_by_others(Path("/"))
    assert not file_hazards._is_reachable_by_others(home / "visits.parquet")


def test_a_closed_folder_has_no_hazards(home):
    assert found(home) == []


def test_files_that_other_accounts_can_read_are_reported(home, entered):
    assert found(home) == [("D020", "[data]"), ("D021", "table visits")]  # a public table may be read
    (home / "visits.parquet").chmod(0o600)
    assert found(home) == [("D020", "[data]")]
    home.chmod(0o711)
    assert found(home) == []


def test_a_folder_that_others_can_write_to_is_worse(home, entered):
    home.chmod(0o733)
    (home / "visits.parquet").chmod(0o600)
    (hazard,) = find_file_hazards(Policy.parse(SMALL, base=home))
    assert "can change and remove files in the ledger's folder" in hazard.message


def test_another_data_set_in_the_same_ledger_is_reported(home):
    (home / "own.toml").write_text(SMALL)
    (home / "broken.toml").write_text("[data")
    (home / "pyproject.toml").write_text('[data]\nname = "no policy"')
    assert found(home) == []
    (home / "other.toml").write_text(SMALL.replace('name = "visits"', 'name = "others"'))
    (hazard,) = find_file_hazards(Policy.parse(SMALL, base=home))
    assert (hazard.id, hazard.location) == ("D019", "[data]")
    assert "other.toml" in hazard.message
    assert '"others"' in hazard.message
    assert "`ledger`" in hazard.hint
    apart = SMALL.replace('name = "visits"', 'name = "visits"\nledger = "visits.sqlite"')
    assert found(home, apart) == []


def test_a_missing_source_is_reported(home):
    (home / "visits.parquet").unlink()
    assert found(home) == [("D022", "table visits")]
    (hazard,) = find_file_hazards(Policy.parse(SMALL, base=home))
    assert str(home / "visits.parquet") in hazard.message


@pytest.mark.parametrize("source", ["visits", "s3://bucket/visits.parquet"])
def test_a_remote_source_is_not_checked(home, source):
    assert found(home, SMALL.replace("visits.parquet", source)) == []


def test_patterns_and_databases_are_looked_up(home):
    (home / "clinic.duckdb").write_text("x")
    assert found(home, SMALL.replace("visits.parquet", "clinic.duckdb/visits")) == []
    assert found(home, SMALL.replace("visits.parquet", "v*.parquet")) == []
    assert found(home, SMALL.replace("visits.parquet", "none/*.parquet")) == [("D022", "table visits")]


@pytest.mark.parametrize("ledger", [":memory:", "postgresql://db/ledgers"])
def test_a_remote_ledger_is_not_checked(home, entered, ledger):
    (home / "visits.parquet").chmod(0o600)
    assert found(home, SMALL.replace('name = "visits"', f'name = "visits"\nledger = "{ledger}"')) == []


def test_unanswered_comments_are_reported_with_their_lines(home):
    text = SMALL.replace("rows = 10", "rows = 10  # FILL IN: how many?")
    (hazard,) = find_file_hazards(Policy.parse(text, base=home), text)
    assert (hazard.id, hazard.message) == ("D024", "a comment still asks for a decision (line 15).")
