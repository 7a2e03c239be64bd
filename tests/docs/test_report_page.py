"""The page on reports states the odds as they are computed, and names every hazard and option."""

import re
from fractions import Fraction
from pathlib import Path

import pytest
import typer

from discreet.cli import app
from discreet.publish.report.hazard_answers import HAZARDS
from discreet.publish.report.odds import guess_fact, guess_participation, odds_text

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "report.md").read_text()
ODDS = re.findall(r"^\| epsilon ([\d.]+) \| ([\d,]+ of [\d,]+) \| ([\d,]+ of [\d,]+) \|$", PAGE, re.MULTILINE)


def test_the_page_has_odds():
    assert len(ODDS) == 4


@pytest.mark.parametrize(("epsilon", "fact", "part"), ODDS)
def test_the_odds_on_the_page_are_those_of_a_report(epsilon, fact, part):
    pairs = [(Fraction(epsilon), Fraction(0))]
    assert odds_text(guess_fact(pairs)) == f"{fact} cases"
    assert odds_text(guess_participation(pairs)) == f"{part} cases"


def test_every_hazard_is_named_in_its_order_and_counted():
    (listed,) = re.findall(r"\n(The privacy unit and its grain;.*?)\n\n", PAGE, re.DOTALL)
    names = [name.lower() for name, _, _ in HAZARDS.values()]
    assert " ".join(listed.lower().split()) == f"the {'; '.join(names)}."
    for page in ("docs/index.md", "CHANGELOG.md"):
        assert f"{len(names)} known hazards" in (ROOT / page).read_text()


def test_every_option_is_on_the_page():
    command = typer.main.get_command(app).commands["report"]
    options = {word for parameter in command.params for word in parameter.opts if word.startswith("--")} - {"--help"}
    section = PAGE.partition("## Options")[2]
    assert [option for option in options if f"`{option}" not in section] == []
