"""Drafts from the metadata of other programs: known values are filled in, the others are marked."""

import contextlib
import json
import tomllib
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import PolicyError
from discreet.policy import Policy, draft
from discreet.policy.drafting.yaml_subset import read_yaml
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


CSVW = {
    "@context": ["http://www.w3.org/ns/csvw", "context.jsonld"],
    "@type": "TableGroup",
    "tables": [
        {
            "@type": "Table",
            "url": "birds.csv",
            "csvw-eo:privacyUnit": "bird_id",
            "csvw-eo:bounds.maxContributions": 3,
            "maxLength": 400,
            "publicLength": 344,
            "flavour": "sweet",
            "tableSchema": {
                "columns": [
                    {"name": "bird_id", "datatype": "positiveInteger", "privacyId": True, "minimum": 1, "maximum": 341},
                    {"name": "species", "datatype": "string", "required": True, "keyValues": ["Adelie", "Gentoo"]},
                    {"name": "zone", "datatype": "string", "csvw-eo:public.partitions": [
                        {"@type": "Partition", "predicate": {"partitionValue": "x"}},
                        {"@type": "Partition", "csvw-eo:predicate": {"csvw-eo:partitionValue": "y"}},
                    ]},
                    {"name": "bill", "datatype": "double", "minimum": 32.1, "maximum": 60, "nullableProportion": 0.294},
                    {"name": "mass", "datatype": {"base": "integer", "minimum": "2700", "maximum": 6300.0}},
                    {"name": "seen", "datatype": "dateTime", "minimum": "2025-01-02T06:47:46", "maximum": "2025-12-30"},
                    {"name": "hatched", "datatype": "date", "minimum": "2020-01-01", "maximum": "2024-12-31T00:00:00"},
                    {"name": "male", "datatype": "boolean", "keyValues": [False, True], "minimum": False},
                    {"name": "lucky", "datatype": "integer", "keyValues": [1, 7], "exhaustiveKeys": False, "odd": 1},
                    {"name": "trip", "datatype": "duration"},
                    {"name": "island", "datatype": "string"},
                ],
                "foreignKeys": [{"columnReference": "island",
                                 "reference": {"resource": "islands.csv", "columnReference": "name"}}],
            },
        },
        {"url": "islands.csv",
         "tableSchema": {"columns": [{"name": "name"}, {"titles": ["area"], "datatype": "float"}]}},
    ],
}  # fmt: skip


@pytest.fixture
def csvw(tmp_path):
    (tmp_path / "birds.csv-metadata.json").write_text(json.dumps(CSVW))
    return draft(metadata=tmp_path / "birds.csv-metadata.json", base=tmp_path)


def test_csv_on_the_web_metadata_fills_in_known_values(csvw):
    birds = tomllib.loads(csvw)["tables"]["birds"]
    assert {key: value for key, value in birds.items() if key != "columns"} == {
        "source": "birds.csv", "unit": "bird_id", "groups": "FILL IN", "rows": 3, "rows_max": 400,
    }  # fmt: skip
    assert birds["columns"] == {
        "bird_id": {"type": "integer"},
        "species": {"type": "text", "in": ["Adelie", "Gentoo"]},
        "zone": {"type": "text", "in": ["x", "y"]},
        "bill": {"type": "real", "between": [32.1, 60]},
        "mass": {"type": "integer", "between": [2700, 6300]},
        "seen": {"type": "timestamp", "between": [datetime(2025, 1, 2, 6, 47, 46), date(2025, 12, 30)]},
        "hatched": {"type": "date", "between": [date(2020, 1, 1), date(2024, 12, 31)]},
        "male": {"type": "boolean"},
        "lucky": {"type": "integer", "in": [1, 7]},
        "island": {"type": "text"},
    }
    assert tomllib.loads(csvw)["tables"]["islands"]["public"] == "FILL IN"


def test_other_csv_on_the_web_metadata_is_kept_in_comments(csvw):
    for words in (
        "# publicLength: an exact count of the data",
        "# ignored, because unknown: flavour",
        "# bill: nullableProportion: a statistic of the data",
        "# lucky: the listed keys are not exhaustive",
        "# lucky: ignored, because unknown: odd",
        "# trip is omitted: type duration is not supported",
        '# island = { type = "text", references = "islands.name" }  # suggestion: replaces the line above',
        "# Bounds and lists come from the metadata.",
    ):
        assert words in csvw
    assert "344" not in csvw
    assert "0.294" not in csvw


def test_a_bound_that_was_computed_from_data_is_not_filled_in(tmp_path):
    (tmp_path / "m.json").write_text(json.dumps({**CSVW["tables"][0], "maxLength": 344}))
    text = draft(metadata=tmp_path / "m.json")
    assert "# maxLength: the exact count" in text
    assert "344" not in text


def test_a_draft_from_metadata_becomes_a_policy_when_it_is_filled_in(csvw):
    text = csvw.replace('epsilon = "FILL IN"', "epsilon = 1").replace('groups = "FILL IN"', "groups = 1")
    policy = Policy.parse(text.replace('public = "FILL IN"', "public = true"))
    assert policy.tables["birds"].rows_max == 400


def test_a_single_table_of_csv_on_the_web_is_read_too(tmp_path):
    (tmp_path / "m.json").write_text(json.dumps({**CSVW["tables"][1], "name": "isles"}))
    assert list(tomllib.loads(draft(metadata=tmp_path / "m.json"))["tables"]) == ["isles"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 1: not JSON"),
        ('{"tableSchema": 5}', "a table has no tableSchema"),
        ('{"tables": []}', "a table has no tableSchema"),
        ('{"a": NaN}', "NaN is not a number"),
        ("a: 1\nb: 2", "expected one collection of schemas"),
        ("a:\n  b: {}", "the collection has no tables"),
        ("a:\n  b: &x {}", "line 2: unsupported YAML"),
        ("[" * 100_000, "unsupported YAML"),
        ('{"a":' * 100_000, "nested too deeply"),
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


# Plain YAML.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\nb: -2.50\nc: 1e3", {"a": 1, "b": FloatText("-2.50"), "c": FloatText("1e3")}),
        ("---\na: yes\nb: Off\nc: ~\nd:\n...\n", {"a": True, "b": False, "c": None, "d": None}),
        ("a:\n- 1\n- b: 2\n  c: 3\n-\n  - x", {"a": [1, {"b": 2, "c": 3}, ["x"]]}),
        ("a: [1, 'x, y', \"it's\"]  # c\nb: {c: d, e: []}", {"a": [1, "x, y", "it's"], "b": {"c": "d", "e": []}}),
        ("a: \"x # y\"\nb: it's # z\nc: a#b\n'd e': 'f''g'", {"a": "x # y", "b": "it's", "c": "a#b", "d e": "f'g"}),
        ("? ''\n: 5\n-x: 6", {"": 5, "-x": 6}),
        ('a: "t\\tn\\n\\""', {"a": 't\tn\n"'}),
    ],
)
def test_plain_yaml_is_read(text, value):
    assert read_yaml(text) == value


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\na: 2", 2),
        ("a: 1\n  b: 2", 2),
        ("a:\n\tb: 2", 2),
        ("a: |\n  text", 1),
        ("a: *b", 1),
        ("a: !x 1", 1),
        ("a: [1,\n 2]", 1),
        ("a: b: c", 1),
        ("a: 1\n---\nb: 2", 2),
        ("a: {b}", 1),
        ('a: "\\x41"', 1),
    ],
)
def test_other_yaml_is_refused_with_its_line(text, line):
    with pytest.raises(ValueError, match=f"^line {line}: "):
        read_yaml(text)


@given(st.text(alphabet="ab:-?[]{}'\"#,& \n\t1.|", max_size=40))
def test_no_text_stops_the_reader_with_anything_but_a_value_error(text):
    with contextlib.suppress(ValueError):
        read_yaml(text)
