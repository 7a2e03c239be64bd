"""Drafts take what schemas define, read no row, and mark every value that the owner must supply."""

import gzip
import json
import os
import re
import tomllib

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import PolicyError
from discreet.policy import Policy, draft
from discreet.policy.declarations import RowUnit
from discreet.policy.problems import find_placeholders, placeholder_comment_lines


def table(**types):
    return pa.table({name: pa.array([], kind) for name, kind in types.items()})


@pytest.fixture
def hospital(tmp_path):
    encounters = {"encounter_id": pa.int64(), "patient_id": pa.string(), "admitted": pa.timestamp("us"),
                  "ward": pa.string(), "cost": pa.decimal128(10, 2), "email": pa.string()}  # fmt: skip
    labs = {"lab_id": pa.int64(), "encounter_id": pa.int64(), "code": pa.string(), "value": pa.float64()}
    codes = {"code": pa.string(), "title": pa.string(), "weight": pa.float64()}
    for name, types in {"encounters": encounters, "labs": labs, "codes": codes}.items():
        pq.write_table(table(**types), tmp_path / f"{name}.parquet")
    return tmp_path


def drafted(folder, *names, **options):
    return draft([folder / name for name in names], base=folder, **options)


def lines(text, start):
    return [line for line in text.splitlines() if line.startswith(start)]


def test_types_are_those_of_the_schema(tmp_path):
    kinds = {"a": pa.int8(), "b": pa.uint64(), "c": pa.float32(), "d": pa.decimal128(5, 1), "e": pa.bool_(),
             "f": pa.large_string(), "g": pa.date32(), "h": pa.timestamp("ms", "UTC"), "i": pa.list_(pa.int64()),
             "j": pa.dictionary(pa.int8(), pa.string()), "k": pa.binary(), "l": pa.time64("us")}  # fmt: skip
    pq.write_table(table(**kinds), tmp_path / "t.parquet")
    values = tomllib.loads(drafted(tmp_path, "t.parquet"))["tables"]["t"]["columns"]
    assert {name: column["type"] for name, column in values.items()} == {
        "a": "integer", "b": "integer", "c": "real", "d": "decimal", "e": "boolean", "f": "text", "g": "date",
        "h": "timestamp", "j": "text",
    }  # fmt: skip
    assert "# i is omitted: type list<" in drafted(tmp_path, "t.parquet")


def test_every_mark_is_refused_with_its_line_and_nothing_else_is_wrong(hospital):
    text = drafted(hospital, "encounters.parquet", "labs.parquet", "codes.parquet")
    with pytest.raises(PolicyError) as caught:
        Policy.parse(text)
    told = str(caught.value).splitlines()
    marked = list(find_placeholders(tomllib.loads(text)))
    assert len(told) == len(marked) >= 11
    written = text.splitlines()
    for line in told:
        number = int(re.match(r"policy, line (\d+): .* is still to be filled in\. ", line)[1])
        assert '"FILL IN"' in written[number - 1]
    assert placeholder_comment_lines(text) == []  # a schema tells its types


def test_values_that_a_draft_cannot_know_are_marked(hospital):
    values = tomllib.loads(drafted(hospital, "encounters.parquet"))
    assert values["budget"] == {"epsilon": "FILL IN"}
    encounters = values["tables"]["encounters"]
    assert (encounters["unit"], encounters["groups"], encounters["rows"]) == ("FILL IN", "FILL IN", "FILL IN")
    columns = encounters["columns"]
    assert columns["admitted"] == {"type": "timestamp", "between": ["FILL IN", "FILL IN"]}
    assert columns["cost"]["between"] == ["FILL IN", "FILL IN"]
    assert columns["ward"] == {"type": "text"}
    assert columns["encounter_id"] == {"type": "integer"}  # an identifier has no range that means anything


def test_names_alone_suggest_units_parents_and_lookups(hospital):
    text = drafted(hospital, "encounters.parquet", "labs.parquet", "codes.parquet")
    assert lines(text, '# unit = "patient_id"  # suggestion')
    assert lines(text, '# unit = { through = "encounters", on = "encounter_id" }')
    assert lines(text, 'public = "FILL IN"  # true if all of codes could be published')
    assert lines(
        text,
        '# code = { type = "text", references = "codes.code" }  # suggestion: replaces the line above if codes',
    )
    assert lines(text, '# email = { type = "text" }  # omitted: it appears to identify people')
    assert "email" not in tomllib.loads(text)["tables"]["encounters"]["columns"]
    codes = tomllib.loads(text)["tables"]["codes"]
    assert "unit" not in codes
    assert codes["columns"]["weight"] == {"type": "real"}


def test_a_table_that_only_shares_a_column_is_not_a_lookup_table(tmp_path):
    pq.write_table(table(patient=pa.int64(), gender=pa.string(), place=pa.int64()), tmp_path / "visits.parquet")
    pq.write_table(table(weight=pa.float64(), gender=pa.string()), tmp_path / "survey.parquet")
    pq.write_table(table(place=pa.int64(), at=pa.timestamp("us")), tmp_path / "trips.parquet")
    assert "public = " not in drafted(tmp_path, "visits.parquet", "survey.parquet", "trips.parquet").replace(
        "or public = true instead", ""
    )
    pq.write_table(table(place=pa.int64(), title=pa.string()), tmp_path / "map.parquet")
    assert lines(drafted(tmp_path, "visits.parquet", "map.parquet"), 'public = "FILL IN"')


def test_a_table_with_people_of_its_own_needs_no_parent(tmp_path):
    pq.write_table(table(visit_id=pa.int64(), patient=pa.int64()), tmp_path / "visits.parquet")
    pq.write_table(table(visit_id=pa.int64(), patient=pa.int64()), tmp_path / "doses.parquet")
    assert "through" not in drafted(tmp_path, "visits.parquet", "doses.parquet")


def test_a_named_unit_is_filled_in_where_it_is(hospital):
    text = drafted(hospital, "encounters.parquet", "labs.parquet", unit="PATIENT_ID")
    values = tomllib.loads(text)
    assert values["tables"]["encounters"]["unit"] == "patient_id"
    assert values["tables"]["labs"]["unit"] == "FILL IN"
    assert values["data"]["protects"] == "patient"
    with pytest.raises(PolicyError, match='unit: no table has a column "nobody"'):
        drafted(hospital, "encounters.parquet", unit="nobody")
    with pytest.raises(PolicyError, match='a column "patient"; did you mean "patient_id"'):
        drafted(hospital, "encounters.parquet", unit="patient")


def test_each_row_can_be_the_unit(tmp_path):
    pq.write_table(table(age=pa.int64(), job=pa.string()), tmp_path / "adult.parquet")
    text = drafted(tmp_path, "adult.parquet", unit="row")
    assert tomllib.loads(text)["tables"]["adult"].keys() == {"source", "unit", "columns"}
    filled = text.replace('["FILL IN", "FILL IN"]', "[0, 100]").replace('"FILL IN"', "1")
    assert Policy.parse(filled).unit == RowUnit()
    pq.write_table(table(Row=pa.int64()), tmp_path / "seats.parquet")  # a column of that name is the unit
    assert 'unit = "Row"  # protected' in drafted(tmp_path, "seats.parquet", unit="row")


def test_a_device_is_suggested_only_where_there_is_no_person(tmp_path):
    pq.write_table(table(cookie_id=pa.string(), page=pa.string()), tmp_path / "hits.parquet")
    pq.write_table(table(cookie_id=pa.string(), user=pa.string()), tmp_path / "logins.parquet")
    assert '# unit = "cookie_id"' in drafted(tmp_path, "hits.parquet")
    assert '# unit = "cookie_id"' not in drafted(tmp_path, "logins.parquet")


def test_coordinates_get_a_suggestion(tmp_path):
    pq.write_table(table(user=pa.int64(), lat=pa.float64(), pickup_longitude=pa.float64()), tmp_path / "t.parquet")
    text = drafted(tmp_path, "t.parquet")
    assert lines(text, '# lat = { type = "real", between = [-90, 90], step = 0.0001, outside = "null" }')
    assert lines(text, '# pickup_longitude = { type = "real", between = [-180, 180]')
    assert lines(text, 'lat = { type = "real", between = ["FILL IN", "FILL IN"] }')


def test_a_key_leads_to_the_id_of_the_table_it_names(tmp_path):
    pq.write_table(table(id=pa.int64(), patient=pa.int64()), tmp_path / "visits.parquet")
    pq.write_table(table(visit_id=pa.int64(), dose=pa.float64()), tmp_path / "doses.parquet")
    text = drafted(tmp_path, "visits.parquet", "doses.parquet")
    assert lines(text, '# unit = { through = "visits", on = "visit_id", key = "id" }')


FILLED = {
    'epsilon = "FILL IN"': "epsilon = 1",
    'unit = "FILL IN"': 'unit = "patient_id"',
    'groups = "FILL IN"': "groups = 2",
    'rows = "FILL IN"': "rows = 5",
    'type = "timestamp", between = ["FILL IN", "FILL IN"]': 'type = "timestamp", between = [2024-01-01, 2024-12-31]',
    'between = ["FILL IN", "FILL IN"]': "between = [0, 1000]",
}


def test_a_filled_in_draft_is_a_policy(hospital):
    text = drafted(hospital, "encounters.parquet")
    for mark, value in FILLED.items():
        assert mark in text
        text = text.replace(mark, value)
    policy = Policy.parse(text, base=hospital)
    assert policy.tables["encounters"].columns["patient_id"].type == "text"
    assert policy.sources()["encounters"] == str(hospital / "encounters.parquet")


# No row is read.


def test_a_parquet_file_is_drafted_from_its_footer_alone(tmp_path):
    file = tmp_path / "visits.parquet"
    pq.write_table(pa.table({"patient": [f"p{i}" for i in range(5000)]}), file, use_dictionary=False)
    whole = drafted(tmp_path, "visits.parquet")
    content = file.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    file.write_bytes(content[:4] + b"\xff" * (len(content) - footer - 4) + content[-footer:])
    with pytest.raises((OSError, pa.ArrowException)):
        pq.read_table(file)
    assert drafted(tmp_path, "visits.parquet") == whole


def test_two_files_of_one_schema_give_one_draft_whatever_is_in_them(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    pq.write_table(pa.table({"patient": [1, 2], "cost": [0.5, None]}), tmp_path / "a" / "v.parquet")
    pq.write_table(pa.table({"patient": [9] * 9999, "cost": [1e9] * 9999}), tmp_path / "b" / "v.parquet")
    assert drafted(tmp_path / "a", "v.parquet") == drafted(tmp_path / "b", "v.parquet")


POISON = b'1,\xff\xfe"\x00not closed, \xf0'


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_the_second_line_of_a_csv_file_is_not_read(tmp_path, monkeypatch, end):
    header = b'patient,"ward, or\n""unit""",cost'
    (tmp_path / "visits.csv").write_bytes(header + end + POISON)
    seen = []
    real = os.read

    class Watched:
        """A file that records how far it was read."""

        def __init__(self, path, mode, buffering):
            assert (mode, buffering) == ("rb", 0)  # a buffer would be filled with what comes after the header
            self.number = os.open(path, os.O_RDONLY)

        def read(self, size):
            seen.append(size)
            return real(self.number, size)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            os.close(self.number)

    monkeypatch.setattr("pathlib.Path.open", lambda *words, **more: Watched(*words, **more))  # noqa: PLW0108 - bound as a method
    columns = tomllib.loads(drafted(tmp_path, "visits.csv"))["tables"]["visits"]["columns"]
    assert list(columns) == ["patient", 'ward, or\n"unit"', "cost"]
    assert sum(seen) == len(header) + 1  # the header, and the first byte of the line break


def test_a_csv_file_has_no_types_and_none_are_guessed(tmp_path):
    (tmp_path / "visits.csv").write_text("patient,cost,day\n1,2.5,2024-01-01\n")
    text = drafted(tmp_path, "visits.csv", unit="patient")
    columns = tomllib.loads(text)["tables"]["visits"]["columns"]
    assert {column["type"] for column in columns.values()} == {"text"}
    assert len(placeholder_comment_lines(text)) == 1  # once for the table
    assert "add in = [..]" in text
    given = drafted(tmp_path, "visits.csv", types={"patient": "integer", "visits.cost": "decimal", "DAY": "date"})
    columns = tomllib.loads(given)["tables"]["visits"]["columns"]
    assert [column["type"] for column in columns.values()] == ["integer", "decimal", "date"]
    assert columns["cost"]["between"] == ["FILL IN", "FILL IN"]
    assert placeholder_comment_lines(given) == []
    assert all("such as 12,5 or 31.12.2026" in draft for draft in (text, given))
    assert "12,5" not in drafted(tmp_path, "visits.csv", types=dict.fromkeys(columns, "integer"))


def test_types_must_be_types_of_columns(tmp_path):
    (tmp_path / "visits.csv").write_text("patient\n")
    with pytest.raises(PolicyError, match='types: no table has a column "nurse"'):
        drafted(tmp_path, "visits.csv", types={"nurse": "text"})
    with pytest.raises(PolicyError, match='types: type "int" does not exist'):
        drafted(tmp_path, "visits.csv", types={"patient": "int"})


@pytest.mark.parametrize("first", ["Ana,34,A", "1,x", "ana@example.org,x", "2024-01-31,x", "a,,b", ""])
def test_a_csv_file_without_a_header_is_refused_and_not_quoted(tmp_path, first):
    (tmp_path / "visits.csv").write_text(first + "\nx,y,z\n")
    with pytest.raises(PolicyError, match="does not look like a header") as caught:
        drafted(tmp_path, "visits.csv")
    assert "Ana" not in str(caught.value)
    assert "ana@" not in str(caught.value)


@pytest.mark.parametrize(
    ("file", "header", "words"),
    [
        ("visits.csv", "patient;ward;cost", ["the separator is a semicolon, not a comma", "sep=';', decimal=\",\")"]),
        ("visits.csv", "patient\tward", ["the separator is a tab, not a comma", "end in .tsv", r"sep='\t')"]),
        ("visits.csv", "patient|ward", ["the separator is a vertical bar", "sep='|'"]),
        ("visits.tsv", "patient,ward", ["the separator is a comma, not a tab", "end in .csv"]),
    ],
)
def test_another_separator_is_reported_with_a_hint_and_the_line_is_not_quoted(tmp_path, file, header, words):
    (tmp_path / file).write_text(header + "\n")
    with pytest.raises(PolicyError) as caught:
        drafted(tmp_path, file)
    assert [word for word in words if word not in str(caught.value)] == []
    assert "patient" not in str(caught.value)


def test_a_comma_file_may_have_other_separators_in_its_names(tmp_path):
    (tmp_path / "visits.csv").write_text("patient,a;b\n")
    assert list(tomllib.loads(drafted(tmp_path, "visits.csv"))["tables"]["visits"]["columns"]) == ["patient", "a;b"]


def test_the_index_of_pandas_is_recognised_by_its_missing_name(tmp_path):
    (tmp_path / "visits.csv").write_text(",patient,ward\n0,1,A\n")
    with pytest.raises(PolicyError, match=r"column 1 has no name.*index=False"):
        drafted(tmp_path, "visits.csv")


def test_other_forms_of_csv_are_read_by_their_endings(tmp_path):
    (tmp_path / "a.tsv").write_bytes("\ufeffpatient\tyear 2024\t2019\n".encode())
    with gzip.open(tmp_path / "b.csv.gz", "wb") as file:
        file.write(b"patient,ward\n1,2\n")
    tables = tomllib.loads(drafted(tmp_path, "a.tsv", "b.csv.gz"))["tables"]
    assert list(tables["a"]["columns"]) == ["patient", "year 2024", "2019"]
    assert list(tables["b"]["columns"]) == ["patient", "ward"]


def test_tables_of_a_duckdb_file_are_drafted_without_their_values(tmp_path):
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE visits (patient BIGINT, ward ENUM ('surgery', 'ana'), cost DECIMAL(9, 2), l ENUM ('ana')[])"
        )
        connection.execute("INSERT INTO visits VALUES (1, 'ana', 3.5, NULL)")
        connection.execute("CREATE SCHEMA lab; CREATE TABLE lab.results (visit INT, twice INT AS (2 * visit))")
        connection.execute("CREATE VIEW shown AS SELECT * FROM visits")
    text = drafted(tmp_path, "clinic.duckdb")
    values = tomllib.loads(text)["tables"]
    assert {name: entry["source"] for name, entry in values.items()} == {
        "visits": "clinic.duckdb/visits", "lab_results": "clinic.duckdb/lab.results",
    }  # fmt: skip
    assert [column["type"] for column in values["visits"]["columns"].values()] == ["integer", "text", "decimal"]
    assert "surgery" not in text
    assert "'ana'" not in text
    assert list(tomllib.loads(drafted(tmp_path, "clinic.duckdb/visits"))["tables"]) == ["visits"]
    with pytest.raises(PolicyError, match="the table does not exist"):
        drafted(tmp_path, "clinic.duckdb/shown")


def test_a_pattern_is_one_table_named_after_its_folder(tmp_path):
    (tmp_path / "hits").mkdir()
    for day in (1, 2):
        pq.write_table(table(user=pa.string()), tmp_path / "hits" / f"{day}.parquet")
    text = drafted(tmp_path, "hits/*.parquet")
    assert 'source = "hits/*.parquet"' in text
    assert "# columns of 1.parquet, the first of 2 files" in text
    assert list(tomllib.loads(text)["tables"]) == ["hits"]


def test_sources_outside_the_policys_folder_are_absolute(hospital, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("policies")
    text = draft([hospital / "labs.parquet"], base=elsewhere)
    assert tomllib.loads(text)["tables"]["labs"]["source"] == str(hospital / "labs.parquet")


def test_tables_of_the_same_name_are_distinguished(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        pq.write_table(table(user=pa.string()), tmp_path / folder / "hits.parquet")
    assert list(tomllib.loads(drafted(tmp_path, "a/hits.parquet", "b/hits.parquet"))["tables"]) == ["hits", "hits_2"]


def test_a_name_cannot_inject_lines(tmp_path):
    name = 'x"\npublic = true\n#'
    fields = [pa.field(name, pa.list_(pa.int64())), pa.field(f"{name}2", pa.string())]
    pq.write_table(pa.schema(fields).empty_table(), tmp_path / "t.parquet")
    values = tomllib.loads(drafted(tmp_path, "t.parquet"))
    assert "public" not in values["tables"]["t"]
    assert list(values["tables"]["t"]["columns"]) == [f"{name}2"]


def test_a_file_name_cannot_inject_lines_either(tmp_path):
    for name in ("a\npublic = true\n#", "b"):
        pq.write_table(table(user=pa.string()), tmp_path / f"{name}.parquet")
    assert "public" not in tomllib.loads(drafted(tmp_path, "*.parquet"))["tables"][tmp_path.name[:40]]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "the file does not exist"),
        (lambda path: path.write_bytes(b"PAR1 secret 12345 PAR1"), "cannot be read as parquet"),
        (lambda path: path.mkdir(), "not a supported file"),
    ],
    ids=["missing", "broken", "folder"],
)
def test_unreadable_files_are_named_and_not_quoted(tmp_path, make, words):
    path = tmp_path / "t.parquet"
    make(path)
    with pytest.raises(PolicyError, match=words) as caught:
        draft([path])
    assert "secret" not in str(caught.value)


def test_nothing_to_draft_from_is_refused():
    with pytest.raises(PolicyError, match="nothing to draft from"):
        draft([])


def test_a_unique_column_of_a_duckdb_file_is_declared_so_but_not_the_unit(tmp_path):
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        columns = "bill INT PRIMARY KEY, patient_id INT UNIQUE, mail TEXT UNIQUE, part INT, day INT, UNIQUE (part, day)"
        connection.execute(f"CREATE TABLE bills ({columns})")
    text = drafted(tmp_path, "shop.duckdb")
    assert [line.partition("  #")[0] for line in text.splitlines() if "unique" in line] == [
        'bill = { type = "integer", unique = true }',
        'mail = { type = "text", unique = true }',
    ]


def nullable(text):
    """The columns for which a comment offers null = true."""
    return [line.partition(" = ")[0] for line in text.splitlines() if "null = true makes NULL a group" in line]


def test_null_is_offered_for_every_nullable_column_of_a_file(tmp_path):
    fields = [pa.field("patient", pa.int64()), pa.field("ward", pa.string()), pa.field("cost", pa.float64())]
    fields += [pa.field("day", pa.date32(), nullable=False)]
    pq.write_table(pa.schema(fields).empty_table(), tmp_path / "visits.parquet")
    (tmp_path / "stays.csv").write_text("patient,ward\n")
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE bills (patient INT, mail TEXT UNIQUE, part INT NOT NULL, day DATE)")
    assert nullable(drafted(tmp_path, "visits.parquet", unit="patient")) == ["ward", "cost"]
    assert nullable(drafted(tmp_path, "stays.csv", unit="patient")) == ["ward"]
    assert nullable(drafted(tmp_path, "shop.duckdb", unit="patient")) == ["day"]  # a unique column has no NULL group


def test_null_is_offered_where_metadata_allows_it(tmp_path):
    columns = {"a": {"type": "string", "nullable": True}, "b": {"type": "string", "nullable": False}}
    metadata = {"": {"s": {"t": columns}}}
    (tmp_path / "meta.json").write_text(json.dumps(metadata))
    assert nullable(draft(metadata=tmp_path / "meta.json", base=tmp_path)) == ["a"]
