"""The page about policies is true: its policies are valid, and every key and hazard is on it."""

import re
from pathlib import Path

import pytest

from discreet.policy import RULES, Policy, hazards
from discreet.policy.columns import ColumnEntry
from discreet.policy.entries import Analyst, Data, Spending, TableEntry, ThroughEntry

PAGE = (Path(__file__).parents[2] / "docs" / "policy.md").read_text()
EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_there_are_examples():
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize("text", EXAMPLES)
def test_each_example_is_a_valid_policy(text):
    assert {hazard.id for hazard in hazards(Policy.parse(text))} <= {"D011", "D012"}


@pytest.mark.parametrize(
    ("title", "model"),
    [
        ("`[data]`", Data),
        ("`[budget]`", Spending),
        ("`[budget.analysts]`", Analyst),
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
