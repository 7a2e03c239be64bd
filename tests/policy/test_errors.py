"""Every mistake is reported with its line, cause and fix; no text raises anything but a PolicyError."""

import contextlib
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_examples import REALISTIC, SMALL

from discreet import PolicyError
from discreet.policy import Policy, read_policy

CASES = [
    [line for line in block.splitlines() if not line.startswith("#")]
    for block in (Path(__file__).parent / "errors.txt").read_text().split("\n\n")
]
CASES = [case for case in CASES if case]


def changed(case):
    """Apply a case: remove its "-" lines, and insert its "+" lines there or at the end."""
    lines, at = SMALL.splitlines(), None
    for change in case:
        if change.startswith("- "):
            at = lines.index(change[2:])
            del lines[at]
        elif change.startswith("+ "):
            place = len(lines) if at is None else at
            lines.insert(place, change[2:])
            at = None if at is None else at + 1
    return "\n".join(lines)


def error_of(text):
    with pytest.raises(PolicyError) as caught:
        Policy.parse(text)
    return str(caught.value)


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(case[:-1])[:60])
def test_each_mistake_has_its_message(case):
    assert error_of(changed(case)).splitlines() == [line[2:] for line in case if line.startswith("> ")]


def test_there_are_many_cases_and_no_secret_is_repeated():
    assert len(CASES) >= 100
    told = [line for case in CASES for line in case if line.startswith("> ")]
    assert len(told) > len(CASES)
    assert not [line for line in told if "hunter2" in line]


@pytest.mark.parametrize(
    ("source", "fine"),
    [
        ("postgresql://reader@db/clinic", True),
        ("s3://bucket/part=1/*.parquet", True),
        ("data/token=5/visits.parquet", True),
        ("postgresql://reader:@db/clinic", False),
        ("postgresql://db/clinic?user=a&password=b", False),
        ("postgresql://db/clinic?%70assword=b", False),
        ("s3://bucket/a.parquet?s3_secret_access_key=b", False),
        ("https://store/a.parquet?X-Amz-Signature=b", False),
        ("https://store/a.parquet?sas_token=b", False),
    ],
)
def test_a_source_never_holds_credentials(source, fine):
    text = SMALL.replace("visits.parquet", source)
    if fine:
        assert Policy.parse(text).tables["visits"].source == source
    else:
        assert "source must not contain a password" in error_of(text)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[data]\nname = "visits', 2),
        ("[data]\nname = 1\nname = 2", 3),
        ("[data]\n\nname", 3),
        ("[data\n", 1),
        ("[data]\nx = 2024-13-01", 2),
    ],
)
def test_a_syntax_error_names_its_line(text, line):
    assert error_of(text).startswith(f"policy, line {line}: not valid TOML: ")


@pytest.mark.parametrize("text", ["x = " + "[" * 100_000, f"x = {'9' * 10_000}", "x = " + "{a=" * 100_000])
def test_texts_that_exhaust_the_parser_are_policy_errors(text):
    assert "not valid TOML" in error_of(text)


def test_deep_but_valid_nesting_is_reported_with_or_without_a_line():
    depth = 80
    assert "unknown key" in error_of(SMALL + "\n[extra]\nx = " + "[" * depth + "]" * depth)


def test_a_file_is_named_by_its_path(tmp_path):
    file = tmp_path / "p.toml"
    file.write_text(SMALL.replace("epsilon = 2.0", "epsilon = 0"))
    with pytest.raises(PolicyError) as caught:
        read_policy(file)
    assert str(caught.value).splitlines()[0].startswith(f"{file}, line 5: [budget]: epsilon must be greater than 0")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: None, "cannot read the file (No such file or directory)"),
        (lambda path: path.mkdir(), "cannot read the file (Is a directory)"),
        (lambda path: path.write_bytes(b"[data]\nname = '\xff'"), "line 2: not UTF-8"),
        (lambda path: path.write_bytes(b"#" * 10_000_001), "larger than 10 MB"),
        (lambda path: path.write_bytes(b""), "data is missing"),
    ],
    ids=["missing", "directory", "latin-1", "huge", "empty"],
)
def test_a_file_that_is_not_a_policy_is_reported_as_such(tmp_path, make, why):
    path = tmp_path / "p.toml"
    make(path)
    with pytest.raises(PolicyError) as caught:
        Policy.load(path)
    assert str(path) in str(caught.value)
    assert why in str(caught.value)


@pytest.mark.parametrize("name", ["adult.parquet", "adult.csv", "adult.csv.gz", "adult.DuckDB"])
def test_data_in_place_of_a_policy_is_named_as_data(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"PAR1\n\xff")
    with pytest.raises(PolicyError) as caught:
        Policy.load(path)
    hint = f"Draft a policy with `discreet init {path}`, or pass a table object to discreet.open, with unit=."
    assert str(caught.value) == f"{path}: this is data, not a policy. {hint}"


def test_a_path_that_cannot_exist_is_a_policy_error():
    with pytest.raises(PolicyError, match="cannot read the file"):
        Policy.load("a\0b")


def test_a_byte_order_mark_is_accepted(tmp_path):
    path = tmp_path / "p.toml"
    path.write_bytes(b"\xef\xbb\xbf" + SMALL.encode())
    assert Policy.load(path).data.name == "visits"


def test_at_most_a_hundred_problems_are_listed():
    text = SMALL + "\n[tables.visits.columns.more]\n" + "\n".join(f"k{i} = 1" for i in range(300))
    told = error_of(text).splitlines()
    assert len(told) == 101
    assert told[-1] == "policy: and 201 more."


def test_a_long_value_is_shortened_and_stays_on_one_line():
    told = error_of(SMALL.replace('name = "visits"', f'name = """{"a" * 300}\n\n\n"""'))
    assert len(told.splitlines()) == 1
    assert len(told) < 200


FRAGMENTS = [
    "",
    "x",
    "=",
    "[",
    "]",
    "{",
    "}",
    '"',
    "'''",
    ",",
    ".",
    "\n",
    "#",
    "0",
    "-1",
    "nan",
    "1e400",
    "true",
    '"row"',
    "é\0",
]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([SMALL, *REALISTIC.values()]),
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 12), st.sampled_from(FRAGMENTS)), min_size=1, max_size=4),
)
def test_a_garbled_text_raises_nothing_but_policy_error(text, edits):
    for place, gone, put in edits:
        at = place % (len(text) + 1)
        text = text[:at] + put + text[at + gone :]
    with contextlib.suppress(PolicyError):
        Policy.parse(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.dates() | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
PLACES = [
    ("data",), ("data", "name"), ("data", "timezone"), ("data", "ledger"), ("budget",), ("budget", "epsilon"),
    ("budget", "delta"), ("budget", "discover"), ("budget", "analysts"), ("budget", "analysts", "ana"),
    ("budget", "analysts", "ana", "tables"), ("tables",), ("tables", "visits"), ("tables", "visits", "unit"),
    ("tables", "visits", "window"), ("tables", "visits", "rows"), ("tables", "visits", "columns"),
    ("tables", "visits", "columns", "cost"), ("tables", "visits", "columns", "cost", "type"),
    ("tables", "visits", "columns", "cost", "between"), ("tables", "visits", "columns", "cost", "step"),
    ("tables", "visits", "columns", "ward", "in"), ("tables", "visits", "columns", "region", "references"),
]  # fmt: skip


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PLACES), VALUES)
def test_a_wrong_value_anywhere_raises_nothing_but_policy_error(place, value):
    values = tomllib.loads(SMALL)
    part = values
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    with contextlib.suppress(PolicyError):
        Policy.from_dict(values)
