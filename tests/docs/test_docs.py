"""The documents are true: their examples run, and what is public is in them."""

import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import discreet as dc
from discreet.cli import app

ROOT = Path(__file__).parents[2]
PACKAGES = (dc.anonymity, dc.attacks, dc.audit, dc.learn, dc.local)
PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_in_the_documents_run(page):
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_the_start_page_has_examples():
    assert doctest.testfile(str(ROOT / "docs" / "start.md"), module_relative=False).attempted >= 20


def test_the_session_in_the_readme_runs(tmp_path):
    readme = (ROOT / "README.md").read_text()
    (policy,) = re.findall(r"```toml\n(.*?)```", readme, re.DOTALL)
    (session,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    (tmp_path / "visits.toml").write_text(policy)
    rows = [f"{i % 3000},{'A' if i % 6 == 0 else 'B' if i % 3 else 'C'},{i % 90}.5" for i in range(6000)]
    (tmp_path / "visits.csv").write_text("\n".join(["patient,ward,cost", *rows]))
    run = subprocess.run([sys.executable, "-c", session], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.search(r"^ward +n +mean$", run.stdout, re.MULTILINE), run.stdout
    assert re.search(r"^B +[34],\d\d\d ± \d+ +~?\d", run.stdout, re.MULTILINE), run.stdout
    assert run.stdout.endswith("0.5 left\n")


def test_the_session_in_the_readme_runs_on_made_up_data_as_it_says(tmp_path):
    readme = (ROOT / "README.md").read_text()
    (policy,) = re.findall(r"```toml\n(.*?)```", readme, re.DOTALL)
    (session,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    ((command, fake),) = re.findall(r"`discreet (dummy .*?)`.*? open `(.*?)`", readme)
    (tmp_path / "visits.toml").write_text(policy)
    words = [sys.executable, "-c", "from discreet.cli import app; app()", *command.split()]
    subprocess.run(words, cwd=tmp_path, capture_output=True, check=True)
    words = [sys.executable, "-c", session.replace("visits.toml", fake)]
    run = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.endswith("0.5 left\n")


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def _public():
    own = [getattr(dc, name) for name in dc.__all__ if not inspect.ismodule(getattr(dc, name))]
    return own + [getattr(module, name) for module in PACKAGES for name in module.__all__]


@pytest.mark.parametrize("thing", _public(), ids=lambda thing: thing.__name__)
def test_every_public_thing_is_documented_with_an_example(thing):
    assert thing.__doc__
    is_error = isinstance(thing, type) and issubclass(thing, Exception)
    assert is_error or ">>>" in thing.__doc__, thing


def test_every_public_name_is_in_the_documents():
    text = "\n".join(page.read_text() for page in [ROOT / "README.md", *PAGES])
    names = {*dc.__all__, *(name for module in PACKAGES for name in module.__all__)}
    assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []


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
