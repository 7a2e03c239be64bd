"""discreet attack, as a user runs it."""

import contextlib
import dataclasses
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from discreet.attacks import laboratory
from discreet.cli import app
from discreet.cli import attack as command

ENVIRONMENT = {"COLUMNS": "160", "NO_COLOR": "1", "TERM": "dumb", "DISCREET_DATA": ""}


def run(*words, cwd, **more):
    with contextlib.chdir(cwd):
        return CliRunner().invoke(app, ["attack", *map(str, words)], env={**ENVIRONMENT, **more})


def test_the_list_names_every_attack_and_what_it_does(tmp_path):
    shown = run("list", cwd=tmp_path).output
    for name in laboratory.MODULES:
        assert name in shown
    assert "Run one with" in shown


def test_an_attack_is_shown_against_all_defences(tmp_path):
    result = run("threshold_game", "--epsilon", "1/3", "--epsilon", "3", "--seed", "1", cwd=tmp_path)
    assert result.exit_code == 0
    rows = re.findall(r"^ ?(nothing|easy|curator at \S+) +(\S+) ", result.output, re.MULTILINE)
    assert [row[0] for row in rows] == ["nothing", "easy", "curator at 1/3", "curator at 3"]
    assert rows[0][1] == "1"


def test_the_report_puts_the_defences_side_by_side_and_fetches_nothing(tmp_path):
    result = run("threshold_game", "--html", "game.html", cwd=tmp_path)
    assert result.exit_code == 0
    assert result.output.rstrip().endswith("Report: game.html")
    page = (tmp_path / "game.html").read_text()
    assert [page.count(f'class="card {word}"') for word in ("nothing", "easy", "curator")] == [1, 1, 1]
    assert "default-src 'none'" in page
    assert not re.search(r"(src|href)=\"(?!data:|#)", page)
    assert page.count("<img ") >= 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["magic"], "there is no attack 'magic'"),
        (["threshold_game", "--epsilon", "0"], "--epsilon must be above 0"),
        (["threshold_game", "--epsilon", "much"], "--epsilon"),
        (["threshold_game", "--html", "no/where.html"], "there is no folder"),
        (["linkage", "--data", "."], "--data: . has no "),
    ],
)
def test_what_cannot_be_done_is_said_before_any_work(words, message, tmp_path):
    result = run(*words, cwd=tmp_path)
    assert result.exit_code == 2
    assert message in result.output
    assert len(result.output.splitlines()) == 1


def test_a_folder_of_the_environment_without_the_data_means_made_up_data(tmp_path):
    found = laboratory.attack_named("linkage")
    assert command._data(found, None) == (None, found.built_in)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_DATA", str(tmp_path))
        assert command._data(found, None) == (None, found.built_in)


def test_real_data_are_loaded_where_they_are(tmp_path, monkeypatch):
    (tmp_path / "people.csv").write_text("")
    found = dataclasses.replace(
        laboratory.attack_named("linkage"), files=("people.csv",), load=lambda folder: folder.name
    )
    assert command._data(found, tmp_path) == (tmp_path.name, "real: people.csv")
    monkeypatch.setenv("DISCREET_DATA", str(tmp_path))
    assert command._data(found, None) == (tmp_path.name, "real: people.csv")


def test_without_the_extras_the_command_says_what_to_install(tmp_path):
    hidden = "import sys; sys.modules.update(scipy=None, sklearn=None); from discreet.cli import app; app()"
    words = [sys.executable, "-c", hidden, "attack", "threshold_game"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'discreet[attacks]'" in done.stderr
    assert "Traceback" not in done.stderr
