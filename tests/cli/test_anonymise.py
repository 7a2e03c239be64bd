"""discreet anonymise, as a user runs it."""

import contextlib
import os
import re
import stat
import subprocess
import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from discreet.anonymity import measure, pseudonymise, read_key
from discreet.cli import app
from discreet.cli.table_files import infer_types, read_table

PEOPLE = """id,name,zip,age,ill
1,Ana,02139,28,heart
2,Bob,02138,29,heart
3,Cem,02138,21,viral
4,Dan,02139,23,viral
5,Eva,14853,50,cancer
6,Fay,14853,55,heart
7,Gil,14850,47,viral
8,Hal,14850,49,viral
9,Ida,02139,31,cancer
10,Jan,02139,37,cancer
11,Kim,02138,36,cancer
12,Leo,02138,35,flu
"""
ZIPS = "\n".join(f"{code};{code[:3]}**;*" for code in ("02139", "02138", "14853", "14850"))


CODED = ("--out", "coded.csv")
ENVIRONMENT = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}


def run(*words, cwd):
    """Run the command in this process, because a new one takes a second to start."""
    with contextlib.chdir(cwd):
        return CliRunner().invoke(app, ["anonymise", *map(str, words)], env=ENVIRONMENT)


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "data"
    place.mkdir()
    (tmp_path / "keys").mkdir()
    (place / "people.csv").write_text(PEOPLE)
    (place / "trees").mkdir()
    (place / "trees" / "adult_hierarchy_zip.csv").write_text(ZIPS)
    return place


def test_without_k_the_table_is_measured_and_the_last_line_says_what_is_not_protected(folder):
    words = ("--quasi", "zip,age", "--sensitive", "ill", "--html", "report.html", "--drop", "id,name")
    done = run("people.csv", *words, cwd=folder)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "12 rows" in done.stdout
    assert re.search(r"k +1 +size of the smallest class", done.stdout)
    last = done.stdout.splitlines()[-1]
    assert last.startswith("Not protected against: linkage attack (12 rows are unique")
    html = (folder / "report.html").read_text()
    assert html.startswith("<!DOCTYPE html>")
    assert "12 rows" in html


@pytest.mark.parametrize("name", ["released.csv", "released.tsv", "released.parquet"])
def test_a_k_anonymous_table_is_written(folder, name):
    words = ("--quasi", "zip", "--quasi", "age", "--sensitive", "ill", "--k", "4", "--l", "2", "--drop", "id,name")
    done = run("people.csv", *words, "--out", name, cwd=folder)
    assert (done.exit_code, done.stderr) == (0, "")
    assert f"{name}: 12 rows written" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Not protected against: ")
    found = read_table(folder / name)
    assert found.column_names == ["zip", "age", "ill"]
    assert found["ill"].to_pylist() == read_table(folder / "people.csv")["ill"].to_pylist()
    assert all(re.fullmatch(r"[0-9]{2}(-[0-9]{2})?", age) for age in found["age"].to_pylist())  # numbers, not a set
    risk = measure(found, ["zip", "age"], "ill")
    assert risk.k >= 4
    assert risk.l >= 2


def test_a_note_goes_with_a_parquet_file(folder):
    run("people.csv", "--quasi", "zip,age", "--k", "3", "--out", "r.parquet", cwd=folder)
    assert pq.read_schema(folder / "r.parquet").metadata[b"not_protected"].startswith(b"Not protected against: ")


def test_hierarchies_are_found_in_a_folder_and_by_column(folder):
    words = ("people.csv", "--quasi", "zip", "--k", "4", "--method", "full-domain", "--force", "--out", "released.csv")
    for place in ("trees", "zip=trees/adult_hierarchy_zip.csv"):
        done = run(*words, "--hierarchies", place, cwd=folder)
        assert done.exit_code == 0, done.stderr
        assert "zip 1" in done.stdout
        assert "zip (adult_hierarchy_zip.csv)" in done.stdout
        assert set(read_table(folder / "released.csv")["zip"].to_pylist()) == {"021**", "148**"}


def test_rows_may_be_suppressed(folder):
    (folder / "odd.csv").write_text("age,ill\n" + "30,flu\n" * 9 + "99,flu\n")
    words = ("odd.csv", "--quasi", "age", "--k", "3", "--method", "full-domain", "--out", "released.csv")
    done = run(*words, "--suppress", "0.1", cwd=folder)
    assert "released.csv: 9 rows written" in done.stdout, done.stderr
    assert (folder / "released.csv").read_text().count("30") == 9


def test_a_population_shows_how_many_people_each_row_matches(folder):
    (folder / "town.csv").write_text("zip,age\n02139,28\n02139,28\n14853,50\n")
    done = run("people.csv", "--quasi", "zip,age", "--population", "town.csv", cwd=folder)
    assert re.search(r"unique match +1 +rows", done.stdout), done.stderr
    assert re.search(r"no match +10 +rows", done.stdout)


def test_ids_get_keyed_pseudonyms_and_the_key_is_made_once(folder):
    words = ("people.csv", "--pseudonym", "name", "--key-file", "../keys/people.key", "--drop", "id")
    done = run(*words, "--out", "coded.csv", cwd=folder)
    key = folder.parent / "keys" / "people.key"
    assert done.exit_code == 0, done.stderr
    assert "new key. Keep it apart from the data" in done.stderr
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert "linkage attack (who is behind a pseudonym of 'name'" in done.stdout
    coded = read_table(folder / "coded.csv")
    expected = pseudonymise(read_table(folder / "people.csv"), "name", read_key(key))
    assert coded["name"].to_pylist() == expected["name"].to_pylist()
    again = run(*words, "--out", "again.csv", cwd=folder)
    assert again.stderr == ""
    assert (folder / "again.csv").read_text() == (folder / "coded.csv").read_text()


def test_pseudonyms_and_k_go_together(folder):
    words = ("people.csv", "--pseudonym", "name", "--key-file", "../keys/people.key", "--drop", "id")
    done = run(*words, "--quasi", "zip,age", "--k", "4", "--out", "both.csv", cwd=folder)
    assert done.exit_code == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith("Not protected against: linkage attack (who is behind a pseudonym")
    assert "; homogeneity attack" in last
    assert done.stdout.count("Not protected") == 1
    found = read_table(folder / "both.csv")
    assert measure(found, ["zip", "age"]).k >= 4
    assert all(len(code) == 26 for code in found["name"].to_pylist())


@pytest.mark.parametrize("goals", [(), ("--k", "4")])
@pytest.mark.parametrize("sensitive", [(), ("--sensitive", "ill"), ("--sensitive", "id")])
def test_columns_that_identify_everybody_are_named(folder, goals, sensitive):
    done = run("people.csv", "--quasi", "zip,age", *sensitive, *goals, cwd=folder)
    assert done.exit_code == 0
    assert re.findall(r"'(\w+)' has a different value in every row", done.stderr) == ["id", "name"]
    assert "Add it to --drop, --pseudonym or --quasi." in done.stderr


@pytest.mark.parametrize("named", [("--pseudonym", "id", "--pseudonym", "boss"), ("--pseudonym", "id,boss")])
def test_all_columns_of_ids_get_pseudonyms_of_one_key(folder, named):
    (folder / "staff.csv").write_text("id,boss,age\n1,3,20\n2,3,30\n3,,40\n")
    done = run("staff.csv", *named, "--key-file", "../keys/k", "--out", "coded.parquet", cwd=folder)
    assert done.exit_code == 0, done.stderr
    coded = read_table(folder / "coded.parquet")
    expected = pseudonymise(read_table(folder / "staff.csv"), "id", read_key(folder.parent / "keys" / "k"))
    assert coded["id"].to_pylist() == expected["id"].to_pylist()
    assert coded["boss"].to_pylist() == [coded["id"][2].as_py()] * 2 + [None]
    last = done.stdout.splitlines()[-1]
    assert "a pseudonym of 'id' or 'boss'" in last
    assert coded.schema.metadata[b"not_protected"].decode() == last


def test_a_release_without_out_is_reported_as_not_written(folder):
    words = ("people.csv", "--quasi", "zip", "--k", "2")
    assert "No table was written. Use --out FILE" in run(*words, cwd=folder).stdout
    assert "No table was written" not in run(*words, "--out", "x.csv", cwd=folder).stdout
    assert "No table was written" not in run("people.csv", "--quasi", "zip", cwd=folder).stdout


def test_uniqueness_after_a_release_is_that_of_the_original(folder):
    assert "Uniqueness: before" in run("people.csv", "--quasi", "zip,age", "--k", "4", cwd=folder).stdout
    assert "Uniqueness\n" in run("people.csv", "--quasi", "zip,age", cwd=folder).stdout


@pytest.mark.parametrize("name", ["codes.csv", "codes.parquet"])
def test_numbers_can_be_codes(folder, name):
    table = pa.table({"zip": [10001, 10005, 10009, 10009], "ill": list("abab")})
    if name.endswith(".csv"):
        pa.csv.write_csv(table, folder / name)
    else:
        pq.write_table(table, folder / name)
    words = (name, "--quasi", "zip", "--k", "2", "--force", "--out", "x.csv")
    run(*words, cwd=folder)
    assert read_table(folder / "x.csv")["zip"].to_pylist() == ["10001-10005"] * 2 + ["10009"] * 2
    done = run(*words, "--categories", "zip", cwd=folder)
    assert done.exit_code == 0, done.stderr
    assert read_table(folder / "x.csv")["zip"].to_pylist() == ["{10001, 10005}"] * 2 + ["10009"] * 2


def test_a_code_is_never_parsed_as_a_number(folder):
    text = "icd,ill\n1.50,flu\n1.5,no\n1.50,flu\n1.5,no\n"
    (folder / "codes.csv").write_text(text)
    run("codes.csv", "--quasi", "icd", "--k", "2", "--categories", "icd", "--out", "x.csv", cwd=folder)
    assert (folder / "x.csv").read_text() == text


def test_codes_are_codes_in_the_population_too(folder):
    (folder / "town.csv").write_text("zip,age\n14853,28\n")
    (folder / "coarse.csv").write_text('zip,ill\n"{14850, 14853}",flu\n')
    words = ("coarse.csv", "--quasi", "zip", "--sensitive", "ill", "--population", "town.csv")
    done = run(*words, "--categories", "zip,ill", cwd=folder)
    assert re.search(r"unique match +1 +rows", done.stdout), done.stderr


def test_unchanged_values_are_written_as_they_were_and_quoted_only_if_needed(folder):
    first, second = '20,1990,6000.0,"a, b",77516\n21,1990,1e3,"say ""x""",007\n', '30,1991,7,,\n31,1991,8.50,"",1\n'
    text = f"age,year,pay,note,big\n{first}{second}"
    (folder / "pay.csv").write_text(text)
    words = ("--quasi", "age,year", "--k", "2", "--sensitive", "pay", "--out", "x.csv")
    assert run("pay.csv", *words, cwd=folder).exit_code == 0
    expected = re.sub("^2[01],", "20-21,", re.sub("^3[01],", "30-31,", text, flags=re.MULTILINE), flags=re.MULTILINE)
    assert (folder / "x.csv").read_text() == expected


def test_unchanged_values_keep_their_row_if_others_are_suppressed(folder):
    (folder / "odd.csv").write_text("age,pay\n99,1.0\n" + "30,2.50\n" * 9)
    words = (
        "odd.csv",
        "--quasi",
        "age",
        "--k",
        "3",
        "--method",
        "full-domain",
        "--suppress",
        "0.1",
        "--sensitive",
        "pay",
    )
    assert run(*words, "--out", "x.csv", cwd=folder).exit_code == 0
    assert (folder / "x.csv").read_text() == "age,pay\n" + "30,2.50\n" * 9


def test_equal_numbers_in_different_texts_do_not_split_a_class(folder):
    (folder / "odd.csv").write_text("age,pay\n30.0,1\n30,1.0\n4e1,2\n40,2\n")
    assert run("odd.csv", "--quasi", "age", "--k", "2", "--out", "x.csv", cwd=folder).exit_code == 0
    assert (folder / "x.csv").read_text() == "age,pay\n30.0,1\n30.0,1.0\n40.0,2\n40.0,2\n"


@pytest.mark.parametrize("ids", [[f"1234567890123456789{end}" for end in range(4)], ["1e400", "2e400", "3e400", "1"]])
def test_numbers_with_more_digits_than_a_real_stay_distinct(folder, ids):
    lines = "".join(f"{each},{place % 2},{each}\n" for place, each in enumerate(ids))
    (folder / "long.csv").write_text(f"id,age,number\n{lines}")
    done = run("long.csv", "--quasi", "id", cwd=folder)
    assert done.exit_code == 0, done.output
    assert "4 rows are unique" in " ".join(done.output.split())
    words = ("--quasi", "age", "--sensitive", "number", "--k", "2", "--out", "out.parquet")
    assert run("long.csv", *words, cwd=folder).exit_code == 0
    assert pq.read_table(folder / "out.parquet")["number"].to_pylist() == ids


def test_reals_of_a_parquet_file_stay_reals_in_csv(folder):
    pq.write_table(pa.table({"age": [3, 3], "pay": [6000.0, None]}), folder / "t.parquet")
    assert run("t.parquet", "--quasi", "age", "--k", "2", "--out", "x.csv", cwd=folder).exit_code == 0
    assert (folder / "x.csv").read_text() == "age,pay\n3,6000.0\n3,\n"


def test_a_share_in_percent_gets_a_hint(folder):
    for given, said in (("2%", "Write 0.02"), ("2.5 %", "Write 0.025"), ("some", "Write 0.02")):
        done = run("people.csv", "--quasi", "zip", "--k", "2", "--suppress", given, cwd=folder)
        assert done.exit_code == 2
        assert said in done.stderr


def test_columns_separated_by_blanks_get_a_hint(folder):
    done = run("people.csv", "--quasi", "zip", "age", cwd=folder)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "TABLE: expected one file, not 2: people.csv, age. Separate columns by commas" in done.stderr


def test_a_hierarchy_of_another_encoding_is_refused_in_plain_words(folder):
    (folder / "zip.csv").write_bytes("Zo\xeb;*\n".encode("latin-1"))
    done = run("people.csv", "--quasi", "zip", "--hierarchies", "zip=zip.csv", cwd=folder)
    assert done.stderr.startswith("discreet: --hierarchies: ")
    assert "zip.csv" in done.stderr
    assert "UTF-8" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--quasi: name the quasi-identifiers"),
        (("--quasi", "zipp"), "--quasi: "),
        (("--quasi", "zip,zip"), "--quasi: 'zip' is named twice"),
        (("--quasi", "zip", "--sensitive", "zip"), "--sensitive: 'zip'"),
        (("--quasi", "zip", "--k", "0"), "--k: "),
        (("--quasi", "zip", "--k", "13"), "--k: "),
        (
            ("--quasi", "zip", "--k", "2", "--l", "2"),
            "--l: it needs a sensitive column",
        ),
        (("--quasi", "zip", "--k", "2", "--diversity", "entropy"), "--l: diversity and c have no effect"),
        (
            ("--quasi", "zip", "--k", "2", "--sensitive", "ill", "--l", "2", "--diversity", "recursive"),
            "--c: required for recursive diversity",
        ),
        (("--quasi", "zip", "--categories", "age"), "--categories: 'age' is neither in --quasi nor in --sensitive"),
        (("--quasi", "zip", "--k", "2", "--sensitive", "ill", "--l", "9"), "--l: "),
        (("--quasi", "zip", "--k", "2", "--sensitive", "ill", "--t", "7"), "--t: "),
        (("--quasi", "zip", "--k", "2", "--suppress", "1.5"), "--suppress: "),
        (("--quasi", "zip", "--k", "2", "--method", "magic"), "--method: "),
        (("--quasi", "zip", "--k", "2", "--sensitive", "ill", "--l", "2", "--diversity", "x"), "--diversity: "),
        (("--quasi", "zip", "--l", "2"), "--l: needs --k"),
        (("--quasi", "zip", "--suppress", "0.1"), "--suppress: needs --k"),
        (("--quasi", "zip", "--out", "x.csv"), "--out: the table would be unchanged"),
        (("--quasi", "zip", "--k", "2", "--out", "x.xls"), "--out: the file name must end in .csv, .tsv, .parquet"),
        (("--quasi", "zip", "--k", "2", "--out", "nowhere/x.csv"), "--out: the folder "),
        (("--quasi", "zip", "--k", "2", "--out", "people.csv"), "--out: people.csv already exists"),
        (("--quasi", "zip", "--k", "2", "--out", "people.csv", "--force"), "--out: would overwrite the table itself"),
        (
            ("--quasi", "zip", "--k", "2", "--out", "../data/people.csv", "--force"),
            "--out: would overwrite the table itself",
        ),
        (("--quasi", "zip", "--html", "x.txt"), "--html: the file name must end in .html"),
        (("--quasi", "zip", "--hierarchies", "nowhere"), "--hierarchies: nowhere is not a folder"),
        (("--quasi", "age", "--hierarchies", "trees"), "--hierarchies: trees contains none of age.csv"),
        (("--quasi", "age", "--hierarchies", "zip=trees/x.csv"), "--hierarchies: 'zip' is neither in --quasi"),
        (("--quasi", "zip", "--hierarchies", "zip=trees/x.csv"), "--hierarchies: the file trees/x.csv does not exist"),
        (("--quasi", "zip", "--k", "2", "--population", "people.csv"), "--population: cannot be combined with --k"),
        (("--quasi", "zip", "--population", "town.csv"), "--population: the file town.csv does not exist"),
        (("--quasi", "zip", "--drop", "nam"), "--drop: "),
        (("--quasi", "zip", "--drop", "zip"), "--quasi: "),
        (("--quasi", "zip", "--key-file", "../keys/k"), "--key-file: needs --pseudonym"),
        (("--pseudonym", "name", "--key-file", "../keys/k"), "--pseudonym: the table would not be written"),
        (
            ("--pseudonym", "name", "--key-file", "../keys/k", "--quasi", "zip"),
            "--pseudonym: the table would not be written",
        ),
        (("--pseudonym", "name", *CODED), "--key-file: "),
        (("--pseudonym", "nam", "--key-file", "../keys/k", *CODED), "--pseudonym: "),
        (("--pseudonym", "id,id", "--key-file", "../keys/k", *CODED), "--pseudonym: 'id' is named twice"),
        (
            ("--pseudonym", "id", "--key-file", "../keys/k", *CODED, "--quasi", "zipp", "--k", "2"),
            "--quasi: ",
        ),
        (
            ("--pseudonym", "id,zip", "--quasi", "zip", "--key-file", "../keys/k", *CODED),
            "--pseudonym: 'zip' is also in --quasi",
        ),
        (
            ("--pseudonym", "name", "--key-file", "people.key", *CODED),
            "--key-file: people.key is in the folder of people.csv",
        ),
        (
            ("--pseudonym", "name", "--key-file", "../keys/k", "--out", "../keys/out.csv"),
            "--key-file: ../keys/k is in the folder of ../keys/out.csv",
        ),
        (
            ("--pseudonym", "name", "--key-file", "../keys/no/k", *CODED),
            "mkdir -p -m 700 ../keys/no",
        ),
        (("--pseudonym", "name", "--key-file", "trees", *CODED), "--key-file: trees is in the folder of people.csv"),
        (
            ("--pseudonym", "name", "--key-file", "..", *CODED),
            "--key-file: .. cannot be read (Is a directory).",
        ),
    ],
)
def test_errors_are_reported_before_anything_is_written(folder, words, said):
    before = sorted(folder.parent.rglob("*"))
    done = run("people.csv", *words, cwd=folder)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert sorted(folder.parent.rglob("*")) == before
    assert (folder / "people.csv").read_text() == PEOPLE


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_the_table_is_never_overwritten_by_whatever_name(folder, link):
    for name, option in (("x.csv", "--out"), ("x.html", "--html")):
        link(folder / "people.csv", folder / name)
        done = run("people.csv", "--quasi", "zip", "--k", "2", option, name, "--force", cwd=folder)
        assert done.exit_code == 2
        assert f"{option}: would overwrite the table itself." in done.output
    link(folder / "people.csv", folder / "y.html")
    (folder / "other.csv").write_text(PEOPLE)
    words = ("--quasi", "zip", "--population", "people.csv", "--html", "y.html", "--force")
    assert "--html: would overwrite the population itself" in run("other.csv", *words, cwd=folder).output
    for place in ("trees", "zip=trees/adult_hierarchy_zip.csv"):
        words = ("--quasi", "zip", "--k", "2", "--hierarchies", place, "--out", "trees/adult_hierarchy_zip.csv")
        assert "--out: would overwrite the hierarchy itself" in run("people.csv", *words, "--force", cwd=folder).output
    assert (folder / "people.csv").read_text() == PEOPLE


def test_metadata_of_a_parquet_file_is_not_written_again(folder):
    ages = pa.field("age", pa.int64(), metadata={b"of": b"Ana"})
    table = pa.table({"age": [1, 2], "name": ["Ana", "Bob"]}, pa.schema([ages, ("name", pa.string())]))
    pq.write_table(table.replace_schema_metadata({b"names": b"Ana, Bob"}), folder / "in.parquet")
    done = run("in.parquet", "--quasi", "age", "--drop", "name", "--out", "out.parquet", cwd=folder)
    assert done.exit_code == 0, done.output
    written = pq.read_table(folder / "out.parquet").schema
    assert list(written.metadata) == [b"not_protected"]
    assert b"of" not in (written.field("age").metadata or {})


def test_no_key_is_left_behind_if_the_table_cannot_be_made(folder):
    words = ("--pseudonym", "name", "--key-file", "../keys/k", *CODED, "--quasi", "zip", "--sensitive", "ill")
    for goals in (("--k", "13"), ("--k", "2", "--l", "9")):
        assert run("people.csv", *words, *goals, cwd=folder).exit_code == 2
        assert not (folder.parent / "keys" / "k").exists()
    assert run("people.csv", *words, "--k", "2", cwd=folder).exit_code == 0
    released = read_table(folder / "coded.csv")["name"].to_pylist()
    people = read_table(folder / "people.csv")
    assert released == pseudonymise(people, "name", read_key(folder.parent / "keys" / "k"))["name"].to_pylist()


def test_a_missing_table_is_named(folder):
    done = run("nobody.csv", "--quasi", "age", "--k", "2", "--out", "people.csv", "--force", cwd=folder)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "TABLE: the file nobody.csv does not exist" in done.stderr


def test_a_key_that_others_may_read_is_refused(folder):
    key = folder.parent / "keys" / "people.key"
    key.write_text("ab" * 32)
    key.chmod(0o644)
    done = run("people.csv", "--pseudonym", "name", "--key-file", key, *CODED, cwd=folder)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--key-file: " in done.stderr


def test_plain_hashing_is_refused_with_the_number_of_candidates(folder):
    done = run("people.csv", "--pseudonym", "zip", *CODED, cwd=folder)
    assert "100,000 candidates" in done.stderr


def test_a_hostile_header_does_not_reach_the_terminal(folder):
    (folder / "odd.csv").write_text('"a\x1b[2Jb",c\n1,2\n1,3\n')
    done = run("odd.csv", "--quasi", "a\x1b[2Jb", "--k", "2", cwd=folder)
    assert done.exit_code == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    refused = run("odd.csv", "--quasi", "c\x1b[2J", cwd=folder)
    assert refused.exit_code == 2
    assert "\x1b" not in refused.stderr


@pytest.mark.long
def test_an_ascii_only_terminal_works(folder):
    words = [
        sys.executable,
        "-c",
        "from discreet.cli import app; app()",
        "anonymise",
        "people.csv",
        "--quasi",
        "zip,age",
    ]
    environment = {**os.environ, **ENVIRONMENT, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("Not protected against: ")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b\n#x,2\n1,\n", [{"a": "#x", "b": "2"}, {"a": "1", "b": None}]),
        ("a;b\n1,5;NA\n", [{"a": "1,5", "b": "NA"}]),
        ('a,b\n"x\ny ""q""",""\n', [{"a": 'x\ny "q"', "b": ""}]),
        ("\ufeffname\nAna\n", [{"name": "Ana"}]),
    ],
)
def test_csv_is_read_as_it_is_written(tmp_path, text, rows):
    file = tmp_path / "t.csv"
    file.write_text(text)
    assert read_table(file).to_pylist() == rows


@pytest.mark.parametrize(
    ("content", "coding"),
    [
        ("a\nZo\xeb\n".encode("latin-1"), "WINDOWS-1252"),
        ("Zo\xeb\na\n".encode("latin-1"), "WINDOWS-1252"),
        ("a\nZo\xeb\n".encode("utf-16"), "UTF-16"),
        (b"a\nb\nZo\xc3", "WINDOWS-1252"),
    ],
)
def test_a_csv_of_another_encoding_is_refused_in_plain_words(tmp_path, capsys, content, coding):
    file = tmp_path / "t.csv"
    file.write_bytes(content)
    with pytest.raises(typer.Exit):
        read_table(file)
    way = f"Save it as UTF-8, or convert it: iconv -f {coding} -t UTF-8 t.csv > utf8-t.csv"
    assert capsys.readouterr().err == f"discreet: TABLE: {file} is not UTF-8. {way}\n"


@pytest.mark.parametrize("content", [b"", b"a,b\n1\n", b"a,b\n1,2,3\n"])
def test_a_broken_csv_is_refused_and_no_row_is_dropped(tmp_path, capsys, content):
    file = tmp_path / "t.csv"
    file.write_bytes(content)
    with pytest.raises(typer.Exit):
        read_table(file)
    assert "cannot read" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["t.xls", "t", "t.csv"])
def test_a_missing_file_or_one_of_another_format_is_refused(tmp_path, capsys, name):
    if name != "t.csv":
        (tmp_path / name).write_text("a\n1\n")
    with pytest.raises(typer.Exit):
        read_table(tmp_path / name)
    assert re.search("does not exist|Use a file that ends in", capsys.readouterr().err)


def test_a_compressed_csv_is_read(tmp_path):
    with pa.output_stream(tmp_path / "t.csv.gz", compression="gzip") as stream:
        stream.write(b"a\n1\n")
    assert read_table(tmp_path / "t.csv.gz").to_pylist() == [{"a": "1"}]


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["41", None, "-3", "0"], "int64"),
        (["02139", "13053"], "string"),
        (["-0", "1"], "double"),
        (["1.5", "2", "1e3"], "double"),
        (["1.5", "x"], "string"),
        (["2000-02-29", "1999-12-31"], "date32[day]"),
        (["2001-02-29", "1999-12-31"], "string"),
        (["2000-01-01 10:00", "2000-01-01 10:00:01"], "timestamp[us]"),
        (["12345678901234567890", "12345678901234567891"], "string"),
        (["12345678901234567890123"], "string"),
        (["9007199254740993.0", "1.5"], "string"),
        (["0.30000000000000004", "9007199254740992.0"], "double"),
        (["0.12345678901234567890", "0.12345678901234567891"], "string"),
        (["1e400", "2e400"], "string"),
        (["1e-400", "1.5"], "string"),
        (["1e9999999999999999999", "1.5"], "string"),
        (["1e22", "1.5"], "double"),
        ([None, None], "string"),
        (["", "1"], "string"),
    ],
)
def test_text_becomes_a_number_or_a_date_only_if_every_value_is_one(texts, kind):
    table = pa.table({"a": pa.array(texts, pa.string()), "b": pa.array(texts, pa.string())})
    assert [str(each) for each in infer_types(table, ["a", "c"]).schema.types] == [kind, "string"]
