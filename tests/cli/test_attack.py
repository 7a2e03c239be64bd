"""discreet attack, as a user runs it."""

import contextlib
import dataclasses
import html
import re
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from discreet.attacks import registry
from discreet.cli import app
from discreet.cli import attack as command
from discreet.cli.terminal import parse_assignment

ENVIRONMENT = {"COLUMNS": "160", "NO_COLOR": "1", "TERM": "dumb", "DISCREET_DATA": ""}


def run(*words, cwd, **more):
    with contextlib.chdir(cwd):
        return CliRunner().invoke(app, ["attack", *map(str, words)], env={**ENVIRONMENT, **more})


def test_the_list_names_every_attack_and_what_it_does(tmp_path):
    shown = run("list", cwd=tmp_path).output
    for name in registry.ATTACKS:
        assert name in shown
    assert "Run one with" in shown


@pytest.mark.long
def test_an_attack_is_shown_against_all_defences(tmp_path):
    result = run("threshold_game", "--epsilon", "1/3", "--epsilon", "3", "--seed", "1", cwd=tmp_path)
    assert result.exit_code == 0
    rows = re.findall(r"^ ?(nothing|easy|curator at \S+) +(\S+) %", result.output, re.MULTILINE)
    assert [row[0] for row in rows] == ["nothing", "easy", "curator at 0.3333", "curator at 3"]
    assert rows[0][1] == "100"


@pytest.mark.long
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
        (["magic"], "attack 'magic' does not exist"),
        (["threshold-gane"], "Did you mean threshold_game?"),
        (["threshold_game", "--set", "plays=many"], "--set: expected a number such as 2000"),
        (["threshold_game", "--set", "speed=3"], "Its settings and defaults: plays=2000"),
        (["threshold_game", "--set", "plays=0"], "threshold_game: plays"),
        (["all", "--set", "plays=3"], "--set cannot be combined with `all`"),
        (["threshold_game", "--html", "."], "--html"),
        (["threshold_game", "--epsilon", "0"], "--epsilon must be above 0"),
        (["threshold_game", "--epsilon", "much"], "--epsilon"),
        (["threshold_game", "--html", "no/where.html"], "does not exist"),
        (["linkage", "--data", "."], "does not exist in ."),
    ],
)
def test_impossible_requests_are_refused_before_any_work(words, message, tmp_path):
    result = run(*words, cwd=tmp_path)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_settings_of_an_attack_can_be_chosen(tmp_path):
    result = run("threshold_game", "--set", "plays=50", "--details", cwd=tmp_path)
    assert result.exit_code == 0
    assert "With plays=50." in result.output
    assert result.output.count("Against ") == 4


@pytest.mark.parametrize(("text", "value"), [("20", 20), ("1e-6", 1e-6), ("tree", "tree"), ('"3"', "3")])
def test_a_setting_is_json_or_else_text(text, value):
    assert parse_assignment(f"size={text}", "--set") == ("size", value)


def test_a_setting_has_the_type_of_its_default():
    entry = command.ATTACKS["threshold_game"]
    assert command._apply_settings(entry, ["plays=50"]).comparison["plays"] == 50
    with pytest.raises(typer.Exit):
        command._apply_settings(entry, ["plays=many"])


@pytest.mark.long
def test_a_report_is_not_overwritten_without_force(tmp_path):
    (tmp_path / "game.html").write_text("mine")
    assert run("threshold_game", "--html", "game.html", cwd=tmp_path).exit_code == 2
    assert (tmp_path / "game.html").read_text() == "mine"
    assert run("threshold_game", "--html", "game.html", "--force", cwd=tmp_path).exit_code == 0


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "adult.parquet").write_text("no table")
    result = run("homogeneity", "--data", ".", cwd=tmp_path)
    assert result.exit_code == 2
    assert "--data: cannot read adult.parquet in ." in result.output


@pytest.mark.long
def test_page_and_terminal_explain_why_the_curator_leaks_more_than_the_easy_fix(capsys, monkeypatch):
    from discreet.attacks.comparison import Comparison
    from discreet.attacks.defences import parse_defence
    from discreet.attacks.evidence import GuessEvidence
    from discreet.attacks.html_report import ReportSection, report_html
    from discreet.attacks.result import AttackResult

    monkeypatch.setattr(
        "discreet.attacks.html_report._embedded_figure", lambda *_: ""
    )  # they take long, and are drawn elsewhere
    against = ("nothing",), ("easy",), ("curator", 1)
    for easy, is_said in ((520, True), (900, False)):
        results = [
            AttackResult("threshold_game", parse_defence(*each), "were right", GuessEvidence(right, 1000))
            for each, right in zip(against, (1000, easy, 700), strict=True)
        ]
        made = ReportSection(registry.attack_named("threshold_game"), "made up", Comparison(tuple(results)))
        note = made.comparison.note
        assert (note is not None) == is_said
        page = report_html([made])
        command._print_section(made, all_details=False)
        printed = " ".join(capsys.readouterr().out.split())
        assert note is None or (html.escape(note) in page and " ".join(note.split()) in printed)


@pytest.mark.long
def test_many_attacks_have_a_table_of_contents():
    from discreet.attacks import compare
    from discreet.attacks.html_report import ReportSection, report_html

    made = ReportSection(registry.attack_named("threshold_game"), "made up", compare("threshold_game", epsilons=[1]))
    assert 'href="#threshold_game"' in report_html([made] * 4)
    assert "href" not in report_html([made])


def test_a_data_folder_without_the_files_means_simulated_data(tmp_path, monkeypatch):
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    found = registry.attack_named("linkage")
    assert command._load_data(found, None) == (None, found.data.built_in)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_DATA", str(tmp_path))
        assert command._load_data(found, None) == (None, found.data.built_in)


def test_real_data_are_loaded_where_they_are(tmp_path, monkeypatch):
    (tmp_path / "people.csv").write_text("")
    linkage = registry.attack_named("linkage")
    source = dataclasses.replace(linkage.data, files=("people.csv",), read=lambda folder: folder.name)
    found = dataclasses.replace(linkage, data=source)
    assert command._load_data(found, tmp_path) == (tmp_path.name, "real: people.csv")
    monkeypatch.setenv("DISCREET_DATA", str(tmp_path))
    assert command._load_data(found, None) == (tmp_path.name, "real: people.csv")


@pytest.mark.long
def test_without_the_extras_the_command_names_what_to_install(tmp_path):
    hidden = "import sys; sys.modules.update(scipy=None, sklearn=None); from discreet.cli import app; app()"
    words = [sys.executable, "-c", hidden, "attack", "threshold_game"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'discreet[attacks]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_name_the_list_is_mentioned():
    result = CliRunner().invoke(app, ["attack"])
    assert result.exit_code == 2
    assert "discreet attack list" in result.stderr
