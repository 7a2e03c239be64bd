"""The page on policies: its examples are valid, and it lists every key and hazard."""

import re
from pathlib import Path

import pytest
import typer

import discreet.policy
from discreet.cli import app
from discreet.policy import RULES, Policy, draft, hazards
from discreet.policy.column_domains import ColumnEntry
from discreet.policy.drafting.draft import _COLUMN_OPTIONS, _KNOWN_KEYS, _TABLE_OPTIONS
from discreet.policy.entries import (
    AnalystEntry,
    BudgetEntry,
    DataEntry,
    ReleaseEntry,
    ServerEntry,
    TableEntry,
    ThroughEntry,
)

PAGE = (Path(__file__).parents[2] / "docs" / "policy.md").read_text()
EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_there_are_examples():
    assert len(EXAMPLES) == 5


@pytest.mark.parametrize("text", EXAMPLES)
def test_each_example_is_a_valid_policy(text):
    assert {hazard.id for hazard in hazards(Policy.parse(text))} <= {"D011", "D012"}


@pytest.mark.parametrize(
    ("title", "model"),
    [
        ("`[data]`", DataEntry),
        ("`[budget]`", BudgetEntry),
        ("`[budget.analysts]`", AnalystEntry),
        ("`[server]`", ServerEntry),
        ("`[release]`", ReleaseEntry),
        ("`[tables.NAME]`", TableEntry),
        ("`[tables.NAME.columns]`", ColumnEntry),
    ],
)
def test_every_key_has_its_row_in_its_section_and_no_other(title, model):
    section = PAGE.split(f"### {title}\n")[1].split("\n#")[0]
    keys = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert keys == [field.alias or name for name, field in model.model_fields.items()]


def test_the_keys_of_through_are_explained():
    assert all(f"{key} = " in PAGE for key in ThroughEntry.model_fields)


def test_every_hazard_is_on_the_page_once_and_no_other():
    assert re.findall(r"^\| (D\d{3}) \|", PAGE, re.MULTILINE) == list(RULES)


def test_the_errors_on_the_page_are_the_real_ones():
    (errors,) = re.findall(r"```\n(clinic.toml.*?)```", PAGE, re.DOTALL)
    broken = (
        EXAMPLES[0].replace('unit   = "patient"', 'unit = "patinet"').replace("[0, 5000], step = 0.01", "[5000, 0]")
    )
    with pytest.raises(ValueError) as caught:
        Policy.parse(broken)
    assert str(caught.value).replace("policy, line", "clinic.toml, line").splitlines() == errors.splitlines()


@pytest.mark.parametrize("name", ["init", "check", "dummy"])
def test_every_option_of_the_commands_is_on_the_page(name):
    command = typer.main.get_command(app).commands[name]
    options = [word for param in command.params for word in param.opts if word.startswith("--")]
    assert [option for option in options if option not in PAGE] == []


def test_every_name_that_the_package_offers_is_documented():
    named = ("draft", "dummy", "write_dummy", "write_policy", "find_file_hazards", "DummyFiles", "hazards", "explain")
    assert [name for name in named if f"`{name}" not in PAGE] == []
    assert set(named) <= set(discreet.policy.__all__)


def test_the_messages_for_unfilled_values_are_those_on_the_page(tmp_path):
    (told,) = re.findall(r"```\n(policy.toml, line.*?)```", PAGE, re.DOTALL)
    (tmp_path / "visits.csv").write_text("patient,ward,cost\n")
    text = draft([tmp_path / "visits.csv"], unit="patient", types={"cost": "real"}, base=tmp_path)
    with pytest.raises(ValueError) as caught:
        Policy.parse(text)
    real = [line.replace("policy, ", "policy.toml, ") for line in str(caught.value).splitlines()]
    assert [line for line in told.splitlines() if line not in real] == []


def test_the_terms_of_metadata_on_the_page_are_those_that_are_read():
    rows = PAGE.split("| SmartNoise |")[1].split("\n\n")[0]
    ours = {term for row in rows.splitlines()[2:] for term in re.findall(r"`(\w+)`", row.strip("|").split("|")[0])}
    assert ours <= {*_TABLE_OPTIONS, *_COLUMN_OPTIONS, *_KNOWN_KEYS}
    assert len(ours) >= 13
