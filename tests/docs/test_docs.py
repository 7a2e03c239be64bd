"""The documents are true: their examples run, and what is public is in them."""

import csv
import doctest
import inspect
import json
import re
from collections import defaultdict
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import discreet as dc
from discreet.cli import app

ROOT = Path(__file__).parents[2]
PACKAGES = (dc.anonymity, dc.attacks, dc.audit, dc.learn, dc.local, dc.publish)
PAGES = sorted((ROOT / "docs").rglob("*.md"))
DOCTESTS = [page for page in PAGES if page.name != "publishing.md"]  # which is run in test_publishing_page.py


@pytest.mark.long(but=["anonymity.md", "python.md", "report.md", "start.md"])
@pytest.mark.parametrize("page", DOCTESTS, ids=lambda page: page.name)
def test_examples_in_the_documents_run(page):
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_the_start_page_has_examples():
    assert doctest.testfile(str(ROOT / "docs" / "start.md"), module_relative=False).attempted >= 20


NUMBER = r"[\d,.]+"
ROW = re.compile(rf"^(\w+) +({NUMBER}) ± ({NUMBER}) +({NUMBER}) ± ({NUMBER})$", re.MULTILINE)


def blocks(language):
    """Return the README's fenced blocks of a language, without their fences."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    return [text for name, text in fenced if name == language]


def numbers(output):
    return {ward: [float(text.replace(",", "")) for text in texts] for ward, *texts in ROW.findall(output)}


@pytest.fixture
def readme_session(tmp_path, monkeypatch, capsys):
    """Do in an empty folder what the README says, word for word, and return what its Python block prints."""
    monkeypatch.chdir(tmp_path)
    (policy,), (session,) = blocks("toml"), blocks("python")
    (file,) = re.findall(r"writes a policy, `(.*?)`", (ROOT / "README.md").read_text())
    Path(file).write_text(policy)
    commands = [line.split() for block in blocks("") for line in block.splitlines() if line.startswith("discreet ")]
    assert commands
    for _, *words in commands:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
    capsys.readouterr()
    exec(compile(session, "README.md", "exec"), {})
    return capsys.readouterr().out


@pytest.mark.long
def test_the_readme_s_session_prints_what_the_readme_shows(readme_session):
    (shown,) = (block for block in blocks("") if block.startswith("ward"))
    head, table, last = shown.splitlines()[0], numbers(shown), shown.splitlines()[-1]
    printed = numbers(readme_session)
    assert list(printed) == list(table) == ["A", "B", "C"]  # a row with ~ would not be one
    assert readme_session.splitlines()[0].split() == head.split()
    assert readme_session.splitlines()[-1] == last
    for ward, (count, count_margin, mean, mean_margin) in table.items():
        noisy = printed[ward]
        # Two draws of noise: farther apart than nine margins of 95 % less than once in a billion times.
        assert abs(noisy[0] - count) <= 9 * count_margin
        assert abs(noisy[2] - mean) <= 9 * mean_margin
        assert noisy[1] == pytest.approx(count_margin, rel=0.1)
        assert noisy[3] == pytest.approx(mean_margin, rel=0.5)


@pytest.mark.long
@pytest.mark.usefixtures("readme_session")
def test_the_readme_states_the_truth_and_how_many_of_its_numbers_are_within_their_margins():
    costs = defaultdict(list)
    with Path("trial/visits.csv").open() as file:
        for row in csv.DictReader(file):
            costs[row["ward"]].append(float(row["cost"]))
    text = re.sub(r"\s+", " ", (ROOT / "README.md").read_text())
    listed = f"({NUMBER}), ({NUMBER}) and ({NUMBER})"
    (stated,) = re.findall(rf"true counts are {listed}, and the true means {listed}:", text)
    truth = {ward: (len(costs[ward]), sum(costs[ward]) / len(costs[ward])) for ward in "ABC"}
    assert list(stated) == [f"{count:,}" for count, _ in truth.values()] + [f"{mean:.1f}" for _, mean in truth.values()]
    (shown,) = (block for block in blocks("") if block.startswith("ward"))
    within = [
        abs(value - true) <= margin
        for ward, (count, count_margin, mean, mean_margin) in numbers(shown).items()
        for value, margin, true in zip((count, mean), (count_margin, mean_margin), truth[ward], strict=True)
    ]
    assert (
        f": {('no', 'one', 'two', 'three', 'four', 'five', 'six')[sum(within)]} of the six numbers are within" in text
    )


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_the_readme_has_the_number_of_claims():
    (number,) = re.findall(r"([\d,]+) claims have a proof", (ROOT / "README.md").read_text())
    assert int(number.replace(",", "")) == len(json.loads((ROOT / "tools" / "seals.json").read_text())["claims"])


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_links_point_to_existing_files(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def _public():
    own = [getattr(dc, name) for name in dc.__all__ if not inspect.ismodule(getattr(dc, name))]
    return own + [getattr(module, name) for module in PACKAGES for name in module.__all__]


@pytest.mark.parametrize("thing", _public(), ids=lambda thing: thing.__name__)
def test_every_public_name_has_a_docstring_with_an_example(thing):
    assert thing.__doc__
    is_error = isinstance(thing, type) and issubclass(thing, Exception)
    assert is_error or ">>>" in thing.__doc__, thing


@pytest.mark.long
def test_every_public_name_is_in_the_documents():
    text = "\n".join(page.read_text() for page in [ROOT / "README.md", *PAGES])
    names = {*dc.__all__, *(name for module in PACKAGES for name in module.__all__)}
    assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []


SECTIONS = {
    "Learning": dc.learn,
    "Anonymity": dc.anonymity,
    "Local": dc.local,
    "Attacks": dc.attacks,
    "Audits": dc.audit,
    "The policy": dc.policy,
    "Definitions": dc.privacy,
    "Publishing": dc.publish,
    "Database API": dc.dbapi,
}


def _names_in_code(text):
    return {name for code in re.findall(r"`([^`]+)`", text) for name in re.findall(r"\w+", code)}


def test_every_public_name_of_the_package_is_in_the_reference():
    names = _names_in_code((ROOT / "docs" / "reference.md").read_text())
    assert [name for name in dc.__all__ if name not in names] == []


@pytest.mark.parametrize("title", SECTIONS)
def test_every_public_name_of_a_module_is_in_its_section_of_the_reference(title):
    text = (ROOT / "docs" / "reference.md").read_text()
    section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    names = _names_in_code(section)
    assert [name for name in SECTIONS[title].__all__ if name not in names] == []


def test_a_name_that_is_missing_from_the_reference_is_noticed():
    assert _names_in_code("| `dc.open(policy)` | opens a file |") == {"dc", "open", "policy"}


def _commands(group, path):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}"


def test_every_command_is_in_the_documents():
    text = "\n".join(page.read_text() for page in [ROOT / "README.md", ROOT / "CHANGELOG.md", *PAGES])
    assert [
        command
        for command in _commands(typer.main.get_command(app), "discreet")
        if not re.search(rf"\b{command}\b", text)
    ] == []


@pytest.mark.parametrize(
    "command", ["discreet", "discreet ledger", *_commands(typer.main.get_command(app), "discreet")]
)
def test_flags_have_no_type_in_the_help(command):
    shown = CliRunner().invoke(app, [*command.split()[1:], "--help"])
    assert shown.exit_code == 0
    assert "--help" in shown.output
    assert "bool" not in shown.output
