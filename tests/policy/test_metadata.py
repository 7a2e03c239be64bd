"""Drafts from the metadata of other programs: known values are filled in, the others are marked."""

import contextlib
import sys
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import PolicyError
from discreet.policy import draft
from discreet.policy.drafting.draft import _parse_yaml
from discreet.policy.toml import FloatText

SMARTNOISE = """\
Survey:            # the collection
  dbo:
    PUMS:
      rows: 1234
      max_ids: 4
      censor_dims: True
      sample_max_ids: true
      clamp_counts: False
      colour: blue
      pid: {type: int, private_id: True}
      age:
        type: int
        lower: 0
        upper: 100
        nullable: false
      income:
        type: float
        lower: 0.0
        upper: 5e5
      score: {type: float, upper: 1.5, sensitivity: 2}
      sex:
        type: string
        cardinality: 2
      married: {type: boolean}
      seen: {type: datetime}
      blob: {type: geometry}
    Wards:
      row_privacy: True
      name:
        type: string
"""


@pytest.fixture
def smartnoise(tmp_path):
    (tmp_path / "meta.yaml").write_text(SMARTNOISE)
    return draft(metadata=tmp_path / "meta.yaml", base=tmp_path)


def test_smartnoise_metadata_fills_in_known_values(smartnoise):
    values = tomllib.loads(smartnoise)
    assert values["data"]["name"] == "Survey"
    pums = values["tables"]["PUMS"]
    assert {key: value for key, value in pums.items() if key != "columns"} == {
        "source": "FILL IN", "unit": "pid", "groups": "FILL IN", "rows": 4,
    }  # fmt: skip
    assert pums["columns"] == {
        "pid": {"type": "integer"},
        "age": {"type": "integer", "between": [0, 100]},
        "income": {"type": "real", "between": [0, 500000]},
        "score": {"type": "real", "between": ["FILL IN", 1.5]},
        "sex": {"type": "text"},
        "married": {"type": "boolean"},
        "seen": {"type": "timestamp", "between": ["FILL IN", "FILL IN"]},
    }
    assert values["tables"]["Wards"]["unit"] == "row"
    assert "groups" not in values["tables"]["Wards"]


def test_differences_in_meaning_to_smartnoise_are_explained_in_comments(smartnoise):
    for words in (
        "# rows: an approximate number of rows",
        "# censor_dims: not needed",
        "# sample_max_ids: not supported",
        "# clamp_counts: not supported",
        "# max_ids = 4: maximum rows per unit",
        "# ignored, because unknown: colour",
        "# sex: cardinality: the number of values",
        "# score: sensitivity: not needed",
        "# blob is omitted: type geometry is not supported",
    ):
        assert words in smartnoise
    assert "1234" not in smartnoise  # a number of rows may have been counted, and analysts read policies


def test_one_row_for_each_person_is_one_group_too(tmp_path):
    (tmp_path / "meta.yaml").write_text(
        "c:\n  s:\n    t:\n      max_ids: 1\n      pid: {type: int, private_id: true}\n"
    )
    table = tomllib.loads(draft(metadata=tmp_path / "meta.yaml"))["tables"]["t"]
    assert (table["groups"], table["rows"]) == (1, 1)


def test_files_give_metadata_their_sources(tmp_path):
    (tmp_path / "meta.yaml").write_text(SMARTNOISE)
    (tmp_path / "pums.csv").write_text("pid,age\n")
    tables = tomllib.loads(draft([tmp_path / "pums.csv"], metadata=tmp_path / "meta.yaml", base=tmp_path))["tables"]
    assert tables["PUMS"]["source"] == "pums.csv"
    assert tables["Wards"]["source"] == "FILL IN"
    (tmp_path / "other.csv").write_text("pid\n")
    with pytest.raises(PolicyError, match=r'table "other" .*PUMS, Wards'):
        draft([tmp_path / "other.csv"], metadata=tmp_path / "meta.yaml")


def test_metadata_that_a_program_wrote_with_empty_names_are_read(tmp_path):
    text = (
        "? ''\n: ? ''\n  : df:\n      age:\n        lower: 0\n        type: int\n        upper: 9\n      max_ids: 2\n"
    )
    (tmp_path / "meta.yml").write_text(text)
    values = tomllib.loads(draft(metadata=tmp_path / "meta.yml"))
    assert values["data"]["name"] == "df"
    assert values["tables"]["df"]["columns"] == {"age": {"type": "integer", "between": [0, 9]}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 1: not YAML"),
        ("a: 1\nb: 2", "expected one collection of schemas"),
        ("a:\n  b: {}", "the collection has no tables"),
        ("a: 1\n  b: 2", "line 2: not YAML"),
        ("a: !!python/object:os.system {}", "line 1: not YAML"),
        ("a: \x07", "not YAML"),
        ("[" * 100_000, "nested too deeply"),
        ("", "expected one collection of schemas"),
    ],
)
def test_a_file_that_is_not_metadata_is_reported_as_such(tmp_path, text, words):
    (tmp_path / "m").write_text(text)
    with pytest.raises(PolicyError, match=words):
        draft(metadata=tmp_path / "m")


def test_a_missing_file_of_metadata_is_named(tmp_path):
    with pytest.raises(PolicyError, match="cannot read the file"):
        draft(metadata=tmp_path / "none.yaml")


def test_numbers_keep_their_digits_and_dates_stay_text():
    text = "a: -2.50\nb: 1e3\nc: 7\nd: 2024-01-02\ne: yes\nf: .5\ng: 1.2.3"
    assert _parse_yaml(text) == {
        "a": FloatText("-2.50"), "b": FloatText("1e3"), "c": 7, "d": "2024-01-02", "e": True, "f": FloatText(".5"),
        "g": "1.2.3",
    }  # fmt: skip


def test_without_the_extra_the_message_names_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    (tmp_path / "m.yaml").write_text("a: 1")
    with pytest.raises(PolicyError, match=r"discreet\[yaml\]"):
        draft(metadata=tmp_path / "m.yaml")


@given(st.text(alphabet="ab:-?[]{}'\"#,& \n\t1.|*!", max_size=40))
def test_no_text_stops_the_reader_with_anything_but_a_value_error(text):
    with contextlib.suppress(ValueError):
        _parse_yaml(text)
