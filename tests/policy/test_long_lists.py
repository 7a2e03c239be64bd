"""Long lists of values are parsed much faster than the rest of a policy, with the same result."""

import re
import tomllib

import pytest

from discreet.kernel.errors import PolicyError
from discreet.policy import Policy
from discreet.policy import toml as reading

LENGTH = 2_000
POLICY = """
[data]
name = "visits"
[budget]
epsilon = 1
[tables.visits]
source = "visits.csv"
unit = "patient"
groups = 1
rows = 1
[tables.visits.columns]
patient = {{ type = "integer" }}
place = {{ type = "{type}", in = [{values}] }}
"""
NUMBERS = ", ".join(map(str, range(LENGTH)))


@pytest.fixture(autouse=True)
def shorter(monkeypatch):
    """Let a list of a tenth of the length be long: tomllib takes a while."""
    assert len(NUMBERS) * 10 > reading._LONG_LIST_LENGTH > 6_000
    monkeypatch.setattr(reading, "_LONG_LIST_LENGTH", 6_000)


def by_tomllib(text):
    return tomllib.loads(text, parse_float=reading._float_text)


@pytest.mark.parametrize(
    "last",
    [
        "1.50",
        "1e-9",
        "true",
        "-7",
        "+7",
        "1_000",
        "0x1f",
        "2026-01-31",
        "nan",
        "'literal \\ text'",
        '"é, ], [ and # \' in a text"',
        r'"a\tb \u00e9 \U0001F600"',
        '"a\ttab"',
        '"null and NaN"',
        '"""long\ntext"""',
        "[1, 2]",
        "{ a = 1 }",
        "1,",
        "1, # a comment ]",
        "\n\n  1\n",
    ],
)
def test_a_long_list_means_what_toml_says(last):
    text = f"before = [1]\nvalues = [{NUMBERS}, {last}\n]\n"
    text += f"after = '''[{NUMBERS}]''' # [{NUMBERS}]\nlast = [[1.5], [{NUMBERS}]]"
    assert reading.parse_toml(text, "policy") == by_tomllib(text)


@pytest.mark.parametrize(
    "last", ["null", "NaN", "Infinity", "01", r'"a\/b"', '"\\ud83d\\ude00"', '"\x7f"', "1 2", ",", "1,,"]
)
def test_invalid_toml_is_refused_in_a_long_list_too(last):
    text = f"values = [{NUMBERS}, {last}]"
    with pytest.raises(tomllib.TOMLDecodeError):
        by_tomllib(text)
    with pytest.raises(PolicyError, match="not valid TOML"):
        reading.parse_toml(text, "policy")


def test_long_lists_are_not_left_to_tomllib(monkeypatch):
    seen = []
    monkeypatch.setattr(reading.tomllib, "loads", lambda text, **_: seen.append(text) or {})
    reading.parse_toml(f"a = [{NUMBERS}]\nb = [{NUMBERS.replace(' ', chr(10))},\n]", "policy")
    assert len(seen[0]) - seen[0].count("\n") < 200
    assert seen[0].count("\n") == LENGTH + 1


def test_lines_behind_a_long_list_are_counted_as_before():
    text = "a = [\n" + NUMBERS.replace(" ", "\n") + "\n]\nb = 1\n"
    assert reading.key_lines(text)["b",] == LENGTH + 3
    wrong = POLICY.format(type="integer", values=NUMBERS.replace(" ", "\n")) + "number = 1\n"
    with pytest.raises(PolicyError, match=rf"line {wrong.count(chr(10))}\b"):
        Policy.parse(wrong)


def test_no_number_in_a_policy_is_mistaken_for_a_list():
    for zeros in (4, 5, 6):  # the numbers above have up to four in a row
        text = f"values = [{NUMBERS}]\nother = [0.{'0' * zeros}]"
        assert reading.parse_toml(text, "policy") == by_tomllib(text)


@pytest.mark.parametrize(
    ("kind", "last", "said"),
    [
        ("integer", '"a"', "64-bit integer"),
        ("integer", "7", "7 twice"),
        ("text", "7", "quoted string"),
        ("integer", '"FILL IN"', "to be filled in"),
    ],
)
def test_an_error_at_the_end_of_a_long_list_is_found(kind, last, said):
    values = NUMBERS if kind == "integer" else re.sub(r"(\d+)", r'"\1"', NUMBERS)
    with pytest.raises(PolicyError, match=said):
        Policy.parse(POLICY.format(type=kind, values=f"{values}, {last}"))
