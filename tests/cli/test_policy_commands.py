"""discreet init, check and dummy, as an owner runs them."""

import re
import tomllib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run


@pytest.fixture
def clinic(tmp_path):
    visits = {"patient": pa.int64(), "ward": pa.string(), "cost": pa.float64()}
    pq.write_table(pa.table({name: pa.array([], kind) for name, kind in visits.items()}), tmp_path / "visits.parquet")
    (tmp_path / "staff.csv").write_text("patient,role\n")
    return tmp_path


def test_a_policy_is_drafted_and_never_overwritten_unasked(clinic):
    made = run("init", "visits.parquet", "staff.csv", "--unit", "patient", "--types", "patient=integer", cwd=clinic)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith("policy.toml: 2 tables, 6 values to fill in, column types of 1 table to check")
    assert made.stdout.endswith("discreet check policy.toml\n")
    before = (clinic / "policy.toml").read_text()
    assert tomllib.loads(before)["tables"]["staff"]["columns"]["patient"]["type"] == "integer"
    again = run("init", "visits.parquet", cwd=clinic)
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr.startswith("discreet: --out: policy.toml already exists.")
    assert (clinic / "policy.toml").read_text() == before
    assert run("init", "visits.parquet", "--force", cwd=clinic).returncode == 0
    assert "staff" not in (clinic / "policy.toml").read_text()
    assert run("init", "visits.parquet", "--out", "other.toml", cwd=clinic).returncode == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["none.parquet"], "the file does not exist"),
        (["visits.parquet", "--unit", "nurse"], 'no table has a column "nurse"'),
        (["visits.parquet", "--types", "patient"], "--types: expected column=type"),
        (["visits.parquet", "--types", "patient=int"], 'type "int" does not exist'),
        (["visits.parquet", "--out", "none/policy.toml"], "--out: the folder"),
        (["--from", "none.yaml"], "none.yaml: cannot read the file"),
        ([], "nothing to draft from"),
    ],
)
def test_a_failed_draft_exits_with_2(clinic, words, told):
    made = run("init", *words, cwd=clinic)
    assert (made.returncode, made.stdout) == (2, "")
    assert told in made.stderr
    assert not (clinic / "policy.toml").exists()


def test_a_policy_is_drafted_from_metadata(clinic):
    (clinic / "meta.yaml").write_text("c:\n  s:\n    visits:\n      patient: {type: int, private_id: true}\n")
    made = run("init", "visits.parquet", "--from", "meta.yaml", cwd=clinic)
    assert made.returncode == 0, made.stderr
    values = tomllib.loads((clinic / "policy.toml").read_text())["tables"]["visits"]
    assert (values["source"], values["unit"]) == ("visits.parquet", "patient")


POLICY = """
[data]
name = "visits"
[budget]
epsilon = 1.0
[tables.visits]
source = "visits.parquet"
unit = "patient"
groups = 1
rows = 2
[tables.visits.columns]
patient = { type = "integer" }
ward = { type = "text", in = ["A", "B"] }
cost = { type = "real", between = [0, 500], step = 0.01 }
"""


def checked(folder, text, *words):
    (folder / "policy.toml").write_text(text)
    return run("check", "policy.toml", *words, cwd=folder)


def test_a_draft_is_refused_until_it_is_filled_in(clinic):
    run("init", "visits.parquet", cwd=clinic)
    told = run("check", "policy.toml", cwd=clinic)
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.count("is still to be filled in") == 5
    assert told.stderr.startswith("policy.toml, line 12: [budget]: epsilon is still to be filled in.")


def test_the_guarantee_states_posterior_bounds_and_what_is_not_protected(clinic):
    shown = checked(clinic, POLICY)
    assert shown.returncode == 0, shown.stderr
    text = " ".join(shown.stdout.split())
    assert "can raise their belief that a given person is in the data from 1 % to at most 2.68 %" in text
    assert "belief that a given person has a trait that one in a thousand people have from 0.1 % to at most" in text
    assert "Less protected: groups. For 4 people together" in text
    assert "copies of the data kept or published elsewhere" in text
    assert "No hazards found." in text
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_a_policy_that_does_not_fit_its_source_is_an_error(clinic):
    wrong = POLICY.replace("cost = ", "price = ").replace("patient = { type", "# p\npatient = { type")
    shown = checked(clinic, wrong.replace('ward = { type = "text", in = ["A", "B"] }', 'ward = { type = "boolean" }'))
    assert shown.returncode == 2
    assert shown.stderr == (
        "policy.toml: table visits, column price: it does not exist in the source. Correct its name, or remove it from "
        "the policy.\n"
    )  # a text may be a boolean
    shown = checked(clinic, POLICY.replace("cost = {", "cost = { type = 'date' } # "))
    assert shown.returncode == 2
    assert "column cost: cannot cast DOUBLE to date." in shown.stderr
    assert "Protected: each person" in shown.stdout


@pytest.mark.parametrize(
    ("stored", "declared", "words"),
    [
        (pa.string(), "integer", "it is stored as text but read as an integer, so any value that cannot be converted"),
        (pa.string(), "timestamp", "it is stored as text but read as a timestamp"),
        (pa.int64(), "boolean", "it is stored as integer but read as a boolean, so any number other than 0 and 1"),
        (pa.float64(), "integer", "it is stored as real but read as an integer, so any number with a fractional part"),
    ],
)
def test_a_type_that_may_lose_values_is_a_hazard(clinic, stored, declared, words):
    columns = {"patient": pa.int64(), "ward": pa.string(), "cost": stored}
    pq.write_table(pa.table({name: pa.array([], kind) for name, kind in columns.items()}), clinic / "visits.parquet")
    text = POLICY.replace("cost = {", f"cost = {{ type = '{declared}' }} # ")
    shown = checked(clinic, text)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"D025 visits, cost (line 14): {words}" in " ".join(shown.stdout.split())
    assert checked(clinic, text, "--strict").returncode == 2


@pytest.mark.parametrize(
    ("stored", "declared"),
    [(pa.bool_(), "real"), (pa.bool_(), "date"), (pa.int64(), "date"), (pa.date32(), "integer")],
)
def test_a_type_that_never_fits_is_an_error(clinic, stored, declared):
    columns = {"patient": pa.int64(), "ward": pa.string(), "cost": stored}
    pq.write_table(pa.table({name: pa.array([], kind) for name, kind in columns.items()}), clinic / "visits.parquet")
    shown = checked(clinic, POLICY.replace("cost = {", f"cost = {{ type = '{declared}' }} # "))
    assert shown.returncode == 2
    assert re.search(rf"column cost: cannot cast \w+ to {declared}\.", shown.stderr)
    assert "D025" not in shown.stdout


def test_texts_of_a_csv_file_are_no_hazard(clinic):
    (clinic / "visits.csv").write_text("patient,ward,cost\n")
    shown = checked(clinic, POLICY.replace("visits.parquet", "visits.csv"))
    assert (shown.returncode, "D025" in shown.stdout) == (0, False)


def test_values_of_a_csv_file_that_do_not_convert_are_a_hazard_that_names_the_line(clinic):
    def hazards(*rows):
        (clinic / "visits.csv").write_text("\n".join(["patient,ward,day,cost", *rows, ""]))
        text = POLICY.replace("visits.parquet", "visits.csv") + "day = { type = 'date' }\n"
        shown = checked(clinic, text)
        assert (shown.returncode, shown.stderr) == (0, "")
        return re.findall(r"(D02[89] .*?)(?= D0|$)", " ".join(shown.stdout.split()))

    fine = [f"{number},A,2026-01-31,1.5" for number in range(99)]
    assert hazards(*fine, "7,B,,") == hazards(*fine, '7,B,31.12.2026,"2,5"') == hazards() == []
    cost, day = hazards(*fine, *['7,B,31.12.2026,"2,5"'] * 2)
    assert day.startswith(
        "D028 visits, day (line 15): more than 1 % of the values become NULL: each must be a date such as"
    )
    assert cost.startswith(
        "D028 visits, cost (line 14): more than 1 % of the values become NULL: each must be a number"
    )
    (day,) = hazards(*fine[:50], *["7,A,12/31/2026,1"] * 51)
    assert "more than half of the values become NULL" in day
    (unit,) = hazards(*fine, ",A,2026-01-31,1.5", "P7,A,2026-01-31,1.5")
    assert unit.startswith("D029 visits, patient (line 12): more than 1 % of the rows are left out of every answer")
    assert "P7" not in unit


def test_every_file_of_a_pattern_must_fit(clinic):
    (clinic / "more").mkdir()
    for name, column in (("a", "patient"), ("b", "nurse")):
        (clinic / "more" / f"{name}.csv").write_text(f"{column},ward,cost\n")
    shown = checked(clinic, POLICY.replace("visits.parquet", "more/*.csv"))
    assert shown.returncode == 2
    assert shown.stderr.count("column patient: it does not exist in the source") == 1


def test_a_missing_source_is_a_hazard_and_strict_makes_hazards_errors(clinic):
    away = POLICY.replace("visits.parquet", "away.parquet")
    shown = checked(clinic, away)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "D022 visits (line 6): there is no file at the source, " in " ".join(shown.stdout.split())
    assert str(clinic / "away.parquet") in "".join(shown.stdout.splitlines()).replace(" ", "")  # long paths are folded
    assert checked(clinic, away, "--strict").returncode == 2
    assert checked(clinic, POLICY, "--strict").returncode == 0


def test_no_row_of_a_parquet_file_is_read_to_check_a_policy(clinic):
    file = clinic / "visits.parquet"
    pq.write_table(pa.table({"patient": [1] * 999, "ward": ["A"] * 999, "cost": [0.5] * 999}), file)
    content = file.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    file.write_bytes(content[:4] + b"\xff" * (len(content) - footer - 4) + content[-footer:])
    assert checked(clinic, POLICY).returncode == 0


def test_dummy_data_is_written_and_queried(clinic):
    (clinic / "policy.toml").write_text(POLICY)
    made = run("dummy", "policy.toml", "--out", "fake", "--rows", "200", "--seed", "5", cwd=clinic)
    assert (made.returncode, made.stderr) == (0, "")
    assert "fake/visits.parquet: dummy data for visits" in made.stdout
    assert pq.read_metadata(clinic / "fake" / "visits.parquet").num_rows == 200
    assert pq.read_metadata(clinic / "visits.parquet").num_rows == 0
    sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    asked = run("ask", "fake/policy.toml", sql, "--epsilon", "1/2", "--format", "csv", cwd=clinic)
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.startswith('"ward","n","n_margin","n_bias","n_bias_low"\n"A",')
    again = run("dummy", "policy.toml", "--out", "fake", cwd=clinic)
    assert (again.returncode, again.stdout) == (2, "")
    assert "fake/policy.toml already exists" in again.stderr
    assert run("dummy", "policy.toml", "--out", "fake", "--force", cwd=clinic).returncode == 0


def test_dummy_data_never_replaces_real_data(clinic):
    (clinic / "policy.toml").write_text(POLICY)
    before = (clinic / "visits.parquet").read_bytes()
    made = run("dummy", "policy.toml", "--out", ".", "--force", cwd=clinic)
    assert made.returncode == 2
    assert "the folder is not empty" in made.stderr
    assert (clinic / "visits.parquet").read_bytes() == before
    few = run("dummy", "policy.toml", "--out", "fake", "--rows", "3", cwd=clinic)
    assert (few.returncode, few.stdout) == (2, "")
    assert not (clinic / "fake").exists()
