"""The page on publishing is run from top to bottom: its files are written, its commands and its Python examples run."""

import doctest
import re
from pathlib import Path

import pytest
import typer
from commands import check_commands

from discreet.cli import app
from discreet.publish.plan import PlanHeading, PlannedTable, SyntheticEntry

PAGE = (Path(__file__).parents[2] / "docs" / "publishing.md").read_text()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def _write(text, before, folder):
    (folder / re.findall(r"`(\w+\.toml)`", before)[-1]).write_text(text)


def _check_examples(text, names):
    test = doctest.DocTestParser().get_doctest(text, names, "publishing.md", "publishing.md", 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test, clear_globs=False).failed == 0
    names.update(test.globs)


@pytest.mark.long
def test_the_page_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, kinds = {}, []
    for block in BLOCK.finditer(PAGE):
        language, text = block.groups()
        kinds.append(language)
        match language:
            case "toml":
                _write(text, PAGE[: block.start()], tmp_path)
            case "python":
                _check_examples(text, names)
            case _:
                check_commands(text, tmp_path)
    assert (kinds.count("toml"), kinds.count("python"), kinds.count("")) == (2, 5, 4)
    found = {path.name for path in (tmp_path / "release").iterdir()} - {"tables", "synthetic"}
    assert [name for name in found if f"`{name}`" not in PAGE] == []


def test_every_key_of_a_plan_and_every_option_is_on_the_page():
    section = PAGE.partition("## Keys of a plan")[2]
    keys = {key for entry in (PlanHeading, PlannedTable, SyntheticEntry) for key in entry.model_fields}
    options = {word for parameter in typer.main.get_command(app).commands["publish"].params for word in parameter.opts}
    wanted = keys | {word for word in options if word.startswith("--")} - {"--help"}
    assert [word for word in wanted if f"`{word}" not in section] == []
