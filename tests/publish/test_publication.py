"""Publications from the outside: what is charged, what adds up, what a crash leaves, and what is refused."""

import datetime as dt
import json
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from publish.hospital import PEOPLE, PLAN, ROWS, curator_on, policy_text, truth, visits

import discreet as dc
from discreet.answer.reading import read_answer
from discreet.answer.text import cost_sentence
from discreet.kernel.errors import Failed, PolicyError, Refused
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.publish import planning
from discreet.publish.dry_run import forecast
from discreet.publish.family import Family
from discreet.publish.files import _READ_PY
from discreet.publish.manifest import verify
from discreet.publish.plan import PublicationPlan
from discreet.publish.publication import publish


class QuietGaussian(Gaussian):
    """Noise that is not added."""

    def perturb(self, values):
        return values


class QuietLaplace(Laplace):
    def perturb(self, values):
        return values


def quiet(monkeypatch):
    """Let families be released without noise, although they are charged for it."""
    real = planning.reserved_noises

    def noises(cost, shares):
        kinds = {Gaussian: QuietGaussian, Laplace: QuietLaplace}
        return [kinds[type(noise)](noise.scale) for noise in real(cost, shares)]

    monkeypatch.setattr(planning, "reserved_noises", noises)


def plan_of(*parts, epsilon=4):
    return PublicationPlan.parse("".join(parts).replace("{epsilon}", str(epsilon)))


def cells(table, *names):
    columns = [table.column(name).to_pylist() for name in names]
    return list(zip(*columns, strict=True))


BUDGETS = {"rho": "epsilon = 8\ndelta = 1e-6", "pure": "epsilon = 8"}
both_budgets = pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)


@both_budgets
@pytest.mark.parametrize("people", [3_000, 1_500], ids=["one row each", "two rows each"])
def test_without_noise_published_tables_are_the_exact_ones(tmp_path, monkeypatch, budget, people):
    """Every unit is within its bounds, so nothing is clipped; rows without a ward are left out of all tables."""
    quiet(monkeypatch)
    table = visits(people=people)
    with curator_on(table, budget=budget) as curator:
        release = curator.publish(plan_of(PLAN), tmp_path / "out")
    by_ward = release.tables["by_ward"].table
    assert cells(by_ward, "ward") == [("A",), ("B",), ("C",)]
    wards = truth(table, "ward")
    assert by_ward.column("n").to_pylist() == pytest.approx([wards[key,] for key in "ABC"], abs=0.01)
    both = truth(table, "sex", "ward", column="cost")
    found = release.tables["by_sex_and_ward"].table
    assert cells(found, "sex", "ward") == [(sex, ward) for ward in "CBA" for sex in "fm"]
    assert found.column("total").to_pylist() == pytest.approx(
        [both[key] for key in cells(found, "sex", "ward")], rel=1e-3
    )
    months = release.tables["by_month"].table
    days = truth(table, "day")
    january = sum(count for (day,), count in days.items() if day.month == 1)
    assert months.column("month").to_pylist()[0] == dt.datetime(2025, 1, 1)
    assert months.column("n").to_pylist()[0] == pytest.approx(january, abs=0.01)
    means = release.tables["by_ward_and_sex"].table
    counted = [row for row in table.to_pylist() if row["ward"] == "A" and row["sex"] == "f" and row["cost"] is not None]
    assert means.column("mean")[0].as_py() == pytest.approx(np.mean([row["cost"] for row in counted]), rel=1e-3)


@both_budgets
def test_every_total_adds_up_and_margins_hold(tmp_path, budget):
    table = visits()
    with curator_on(table, budget=budget) as curator:
        release = curator.publish(plan_of(PLAN), tmp_path / "out")
    counts = {name: each.table.column("n").to_numpy() for name, each in release.tables.items()}
    total = counts["all_visits"][0]
    assert all(column.sum() == pytest.approx(total, abs=1e-6) for column in counts.values())
    assert counts["by_ward_and_sex"].reshape(3, 2).sum(axis=1) == pytest.approx(counts["by_ward"], abs=1e-6)
    assert counts["by_day"].reshape(5)[:2].sum() == pytest.approx(counts["by_month"][0], abs=1e-6)
    whole = {name: each.whole["n"] for name, each in release.tables.items()}
    assert all((column >= 0).all() and column.sum() == whole["all_visits"][0] for column in whole.values())
    assert whole["by_ward_and_sex"].reshape(3, 2).sum(axis=1).tolist() == whole["by_ward"].tolist()
    exact = [truth(table, "ward")[key,] for key in "ABC"]
    margins = release.tables["by_ward"].margins["n"]
    assert (np.abs(counts["by_ward"] - exact) <= 3 * margins).all()
    assert max(margins) < 250


@pytest.mark.long
def test_the_plan_is_charged_as_a_whole_and_once(tmp_path):
    plan = plan_of(PLAN, PEOPLE, ROWS)
    with curator_on(visits()) as curator:
        before = curator.budget().remaining.rho
        expected = forecast(curator, plan)
        assert not curator.ledger.events()
        release = curator.publish(plan, tmp_path / "out")
        assert release.cost == release.paid == expected.cost == curator.ledger.spent()
        assert before - curator.budget().remaining.rho == release.cost.rho
        again = curator.publish(plan, tmp_path / "elsewhere")
        assert not again.paid.rho
        assert curator.ledger.spent() == release.cost
        for name, shown in {**release.tables, **release.synthetic}.items():
            assert {**again.tables, **again.synthetic}[name].table.equals(shown.table)
        same = [path.name for path in (tmp_path / "out" / "tables").iterdir() if path.suffix == ".csv"]
        assert len(same) == 7
        for name in same:
            assert (tmp_path / "out/tables" / name).read_bytes() == (tmp_path / "elsewhere/tables" / name).read_bytes()
        other = publish(curator, plan, tmp_path / "third", key="another draw")
        assert curator.ledger.spent() == release.cost + other.paid
        assert other.tables["people"].table.equals(release.tables["people"].table), "it is in the ledger already"
        assert not other.tables["by_ward"].table.equals(release.tables["by_ward"].table)


def test_a_dry_run_tells_the_margins_that_are_published(tmp_path):
    plan = plan_of(PLAN, PEOPLE)
    with curator_on(visits()) as curator:
        expected = {table.name: table for table in forecast(curator, plan).tables}
        release = curator.publish(plan, tmp_path / "out")
    for name, shown in release.tables.items():
        for column, margins in shown.margins.items():
            if expected[name].margins[column] is not None:
                assert max(margins) == pytest.approx(expected[name].margins[column], rel=1e-3)
    assert expected["by_sex_and_ward"].cells == 6


def test_nothing_is_charged_if_the_budget_does_not_cover_the_whole_plan(tmp_path):
    with curator_on(visits(), budget="epsilon = 3\ndelta = 1e-6") as curator:
        with pytest.raises(Refused, match="not enough budget"):
            curator.publish(plan_of(PLAN, PEOPLE, ROWS), tmp_path / "out")
        assert not curator.ledger.events()
    assert not (tmp_path / "out").exists()


def test_all_parts_are_charged_before_any_row_is_read(tmp_path, monkeypatch):
    with curator_on(visits()) as curator:
        seen = []
        engine = curator._engine
        for name in ("batches", "totals"):
            real = getattr(engine, name)
            monkeypatch.setattr(
                engine,
                name,
                lambda *args, real=real, **named: seen.append(len(curator.ledger.events())) or real(*args, **named),
            )
        curator.publish(plan_of(PLAN, PEOPLE, ROWS), tmp_path / "out")
    assert seen
    assert set(seen) == {3}


def test_a_part_that_fails_stays_charged_and_is_never_drawn_again(tmp_path, monkeypatch):
    """The other parts are published, and the report says what is missing."""
    plan = plan_of(PLAN, PEOPLE, ROWS)
    with curator_on(visits()) as curator:
        with monkeypatch.context() as patch:
            patch.setattr("discreet.publish.parts.synthesise", lambda *_: 1 / 0)
            release = curator.publish(plan, tmp_path / "out")
        assert release.missing == ("rows",)
        spent = curator.ledger.spent()
        assert spent == release.cost
        again = curator.publish(plan, tmp_path / "out")
        assert again.missing == ("rows",)
        assert curator.ledger.spent() == spent
    record = json.loads((tmp_path / "out" / "report.json").read_text())["record"]
    states = {part["name"]: part["state"] for part in record["parts"]}
    assert states["rows"] == "charged, missing"
    assert set(states.values()) == {"released", "charged, missing"}
    assert not (tmp_path / "out" / "synthetic").exists()


def test_synthetic_rows_have_declared_values_and_a_noisy_number(tmp_path):
    table = visits()
    with curator_on(table) as curator:
        release = curator.publish(plan_of("[release]\nname = 'x'\nepsilon = 6\n", ROWS), tmp_path / "out")
    rows = pq.read_table(tmp_path / "out" / "synthetic" / "rows.parquet")
    assert rows.column_names == ["ward", "sex", "age", "cost"]
    assert set(rows.column("ward").to_pylist()) <= {"A", "B", "C"}
    assert set(rows.column("age").to_pylist()) <= set(range(100))
    costs = rows.column("cost").to_numpy()
    assert costs.min() >= 0
    assert costs.max() <= 500
    complete = sum(row["ward"] is not None and row["cost"] is not None for row in table.to_pylist())
    assert rows.num_rows != complete
    assert abs(rows.num_rows - complete) < 300
    assert "total variation" in release.synthetic["rows"].notes[0]
    assert json.loads(rows.schema.metadata[b"discreet"]) == {"kind": "synthetic"}


def test_a_number_of_synthetic_rows_can_be_given(tmp_path):
    with curator_on(visits()) as curator:
        plan = plan_of("[release]\nname = 'x'\nepsilon = 6\n", ROWS.replace("bins", "rows = 77\nbins"))
        assert curator.publish(plan, tmp_path / "out").synthetic["rows"].table.num_rows == 77


REFUSALS = {
    "unknown table": ('sql = "SELECT COUNT(*) AS n FROM people"', "people"),
    "syntax": ('sql = "SELEC 1"', "SELEC"),
    "public only": ('sql = "SELECT 1 AS one"', "no private table"),
    "unreachable margin": (
        """sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
        margin = 0.01
        [tables.z]
        sql = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex\"""",
        "margin",
    ),
    "keys from the data": ('sql = "SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient"', ""),
}


@pytest.mark.parametrize(("sql", "named"), REFUSALS.values(), ids=REFUSALS)
def test_a_plan_that_cannot_be_published_is_refused_with_its_line_before_the_charge(tmp_path, sql, named):
    text = f"[release]\nname = 'x'\nepsilon = 1\n\n[tables.bad]\n{sql}\n"
    with curator_on(visits(), budget="epsilon = 3") as curator:
        with pytest.raises(PolicyError, match=r"line [5-9]") as caught:
            curator.publish(PublicationPlan.parse(text), tmp_path / "out")
        assert named in str(caught.value)
        assert not curator.ledger.events()


def with_margin(margin, more=""):
    return PublicationPlan.parse(
        "[release]\nname = 'x'\nepsilon = 1\n[tables.a]\nsql = 'SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward'\n"
        f"margin = {margin}\n[tables.b]\nsql = 'SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex'\n{more}"
    )


@both_budgets
@pytest.mark.parametrize("more", ["", "margin = 0.02"])
def test_the_least_margin_that_is_named_can_be_reached_and_little_less_cannot(budget, more):
    with curator_on(visits(), budget=budget) as curator:
        with pytest.raises(PolicyError, match="least") as refusal:
            forecast(curator, with_margin(0.01, more))
        least = float(re.search(r"least is about (\d+(?:\.\d+)?)", str(refusal.value))[1])
        other = f"margin = {2.02 * least}" if more else ""
        assert forecast(curator, with_margin(1.01 * least, other)).tables
        with pytest.raises(PolicyError, match="least"):
            forecast(curator, with_margin(0.97 * least, f"margin = {1.94 * least}" if more else ""))


PLAN_UNITS = {
    "epsilon = 1": ("epsilon", "rho"),
    "rho = 0.02": ("rho", "epsilon"),
}


@pytest.mark.parametrize(("cost", "units"), PLAN_UNITS.items(), ids=PLAN_UNITS)
def test_refusals_are_in_the_unit_of_the_plan(tmp_path, cost, units):
    unit, other = units
    text = f"[release]\nname = 'x'\n{cost}\n[tables.people]\nsql = 'SELECT COUNT(DISTINCT patient) AS n FROM visits'\n"
    with curator_on(visits()) as curator:
        with pytest.raises(PolicyError, match=f"cost {unit} .*has {unit} ") as refusal:
            forecast(curator, PublicationPlan.parse(f"{text}margin = 0.5\n"))
        assert other not in str(refusal.value).partition(": ")[2]
    with curator_on(visits(), budget="epsilon = 0.2\ndelta = 1e-6") as curator:
        with pytest.raises(Refused, match=f"{unit} .*remain|Remaining: {unit}") as refusal:
            curator.publish(PublicationPlan.parse(text), tmp_path / "out")
        assert ("rho" in str(refusal.value)) is (unit == "rho")


SYNTHETIC_REFUSALS = {
    "unknown table": ('table = "people"\ncolumns = ["a", "b"]', "people"),
    "unknown column": ('table = "visits"\ncolumns = ["ward", "height"]', "height"),
    "no domain": ('table = "visits"\ncolumns = ["ward", "patient"]', "patient"),
    "bins of text": ('table = "visits"\ncolumns = ["ward", "sex"]\nbins = { ward = 2 }', "bins"),
    "bins of nothing": ('table = "visits"\ncolumns = ["ward", "sex"]\nbins = { age = 2 }', "age"),
}


@pytest.mark.parametrize(("body", "named"), SYNTHETIC_REFUSALS.values(), ids=SYNTHETIC_REFUSALS)
def test_synthetic_rows_of_undeclared_columns_are_refused_with_their_line(tmp_path, body, named):
    text = f"[release]\nname = 'x'\nepsilon = 1\n\n[synthetic.bad]\n{body}\n"
    with curator_on(visits()) as curator:
        with pytest.raises(PolicyError, match=r"line [5-9]") as caught:
            curator.publish(PublicationPlan.parse(text), tmp_path / "out")
        assert named in str(caught.value)
        assert not curator.ledger.events()


def test_automatic_bounds_are_refused_with_a_hint(tmp_path):
    with curator_on(visits(people=1_500), groups='"auto"', rows='"auto"') as curator:
        with pytest.raises(PolicyError, match="auto"):
            curator.publish(
                plan_of("[release]\nname='x'\nepsilon=1\n[tables.t]\nsql='SELECT COUNT(*) AS n FROM visits'"),
                tmp_path / "out",
            )
        assert not curator.ledger.events()


def test_a_folder_with_anything_else_in_it_is_not_touched(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with curator_on(visits()) as curator:
        with pytest.raises(PolicyError, match="not empty"):
            curator.publish(plan_of(PLAN), tmp_path / "out")
        assert not curator.ledger.events()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    plan = plan_of(PLAN)
    with curator_on(visits()) as curator:
        with monkeypatch.context() as patch:
            patch.setattr("discreet.publish.files.write_report", _disk_full)
            with pytest.raises(PolicyError, match="at no charge"):
                curator.publish(plan, tmp_path / "out")
        assert list(tmp_path.iterdir()) == []
        spent = curator.ledger.spent()
        release = curator.publish(plan, tmp_path / "out")
        assert (curator.ledger.spent(), release.missing) == (spent, ())
    assert verify(tmp_path / "out") == []


def _disk_full(*_):
    raise OSError(28, "No space left on device")


def test_one_changed_byte_of_any_file_is_found(tmp_path):
    with curator_on(visits()) as curator:
        curator.publish(plan_of(PLAN, PEOPLE, ROWS), tmp_path / "out")
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(files) > 15
    for path in files:
        _flip_bytes(tmp_path / "out", path, [path.stat().st_size - 1])


@pytest.mark.long
def test_every_changed_byte_of_the_small_files_of_a_release_is_found(tmp_path):
    with curator_on(visits()) as curator:
        curator.publish(plan_of(PLAN, PEOPLE, ROWS), tmp_path / "out")
    small = [path for path in (tmp_path / "out").rglob("*") if path.is_file() and path.stat().st_size < 1_000]
    assert len(small) > 5
    for path in [*small, tmp_path / "out" / "manifest.json"]:
        _flip_bytes(tmp_path / "out", path, range(path.stat().st_size))


def _flip_bytes(folder, path, places):
    """Flip a bit of each of some bytes of a file; verification must name the file each time."""
    original = path.read_bytes()
    for place in places:
        path.write_bytes(original[:place] + bytes([original[place] ^ 1 << place % 8]) + original[place + 1 :])
        (problem,) = verify(folder)
        assert problem.startswith(f"{path.relative_to(folder)}: ")
    path.write_bytes(original)
    assert verify(folder) == []


@pytest.mark.long
def test_the_script_of_a_release_ends_quietly_if_its_output_is_no_longer_read(tmp_path):
    (tmp_path / "tables").mkdir()
    for number in range(30):
        pq.write_table(
            pa.table({f"column_{each}": [0.5] * 9 for each in range(40)}), tmp_path / f"tables/t{number}.parquet"
        )
    script = tmp_path / "read.py"
    script.write_text(_READ_PY)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"t0\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_clipped_units_count_alike_in_all_tables(tmp_path, monkeypatch):
    """One unit with 900 of 1,000 rows: it has one weight for the whole family, so that its tables add up."""
    quiet(monkeypatch)
    table = visits(1_000, people=1_000)
    heavy = table.set_column(0, "patient", pa.array([0 if row < 900 else row for row in range(1_000)]))
    with curator_on(heavy) as curator:
        release = curator.publish(plan_of(PLAN), tmp_path / "out")
    counts = {name: each.table.column("n").to_numpy() for name, each in release.tables.items()}
    assert counts["by_ward_and_sex"].reshape(3, 2).sum(axis=1) == pytest.approx(counts["by_ward"], abs=1e-3)
    assert 99 < counts["all_visits"][0] < 120


def test_an_unexpected_interruption_leaves_parts_that_are_read_back(tmp_path, monkeypatch):
    plan = plan_of(PLAN, PEOPLE, ROWS)
    with curator_on(visits()) as curator:
        with monkeypatch.context() as patch:
            patch.setattr("discreet.publish.parts.synthesise", _interrupt)
            with pytest.raises(KeyboardInterrupt):
                curator.publish(plan, tmp_path / "out")
        spent = curator.ledger.spent()
        release = curator.publish(plan, tmp_path / "out")
        assert release.missing == ("rows",)
        assert set(release.tables) == {*plan.tables}
        assert curator.ledger.spent() == spent == release.cost


def _interrupt(*_):
    raise KeyboardInterrupt


def test_keys_of_one_plan_cannot_be_used_for_another(tmp_path):
    with curator_on(visits()) as curator:
        publish(curator, plan_of(PLAN), tmp_path / "out", key="march")
        with pytest.raises(Refused, match="key"):
            publish(curator, plan_of(PLAN, epsilon=2), tmp_path / "other", key="march")


def test_a_published_table_of_its_own_is_free_to_ask_for(tmp_path):
    with curator_on(visits()) as curator:
        release = curator.publish(plan_of("[release]\nname='x'\nepsilon=2\n", PEOPLE), tmp_path / "out")
        spent = curator.ledger.spent()
        answer = curator.ask(
            "SELECT ward, COUNT(DISTINCT patient) AS patients FROM visits GROUP BY ward", rho=release.cost.rho
        )
        assert curator.ledger.spent() == spent
        assert (
            answer.table.column("patients").to_pylist() == release.tables["people"].table.column("patients").to_pylist()
        )


def test_failures_of_a_family_have_the_fixed_message(tmp_path, monkeypatch):
    """Nothing of what failed is shown; the part is missing."""
    with curator_on(visits()) as curator:
        monkeypatch.setattr(curator._engine, "batches", lambda *_: 1 / 0)
        release = curator.publish(plan_of(PLAN), tmp_path / "out")
    assert release.missing == tuple(plan_of(PLAN).tables)


def test_roll_ups_of_published_tables_are_free(tmp_path):
    """Any key order, coarser keys, fewer keys and means; with the margin of the published tables."""
    with curator_on(visits()) as curator:
        release = curator.publish(plan_of(PLAN), tmp_path / "out")
        events = len(curator.ledger.events())
        wards = curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward")
        assert wards.table.column("n").to_pylist() == np.rint(release.tables["by_ward"].table.column("n")).tolist()
        assert wards.margins["n"] == release.tables["by_ward"].margins["n"].tolist()
        assert not wards.paid.rho
        means = curator.ask("SELECT sex, AVG(cost) AS mean, COUNT(*) AS n FROM visits GROUP BY sex ORDER BY sex DESC")
        published = curator.ask("SELECT COUNT(*) AS n FROM visits").value
        assert sum(means.table.column("n").to_pylist()) == pytest.approx(published, abs=1)
        assert means.margins["mean"][0] < 20
        assert "Hospital tables" in means.details()
        assert len(curator.ledger.events()) == events
        anew = curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=0.5)
        assert anew.paid.rho > 0
        assert anew.table.column("n").to_pylist() != wards.table.column("n").to_pylist()


def test_published_tables_are_solved_once_for_all_derived_answers(tmp_path, monkeypatch):
    solved, solve = [], Family.solve
    monkeypatch.setattr(Family, "solve", lambda family, noisy: solved.append(1) or solve(family, noisy))
    with curator_on(visits()) as curator:
        release = curator.publish(plan_of(PLAN), tmp_path / "out")
        solved.clear()
        for _ in range(3):
            sexes = curator.ask("SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex")
        wards = curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward")
        assert solved == [1]
        other = publish(curator, plan_of(PLAN), tmp_path / "other", key="again")
        after = curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward")
    assert sexes.table.column("n").to_pylist() != wards.table.column("n").to_pylist()
    for answer, published in ((wards, release), (after, other)):
        expected = np.rint(published.tables["by_ward"].table.column("n").to_numpy()).tolist()
        assert answer.table.column("n").to_pylist() == expected


def test_what_exceeds_the_limits_of_computation_is_tried_on_the_latest_publication_only(tmp_path, monkeypatch):
    tried = []

    def fails(*_):
        tried.append(1)
        raise Failed

    with curator_on(visits()) as curator:
        curator.publish(plan_of(PLAN), tmp_path / "out")
        publish(curator, plan_of(PLAN), tmp_path / "other", key="again")
        monkeypatch.setattr("discreet.publish.derived._answer", fails)
        with pytest.raises(Refused, match="epsilon"):
            curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward")
    assert tried == [1]


def test_a_missing_cost_names_the_published_tables_of_these_rows(tmp_path):
    with curator_on(visits()) as curator:
        curator.publish(plan_of(PLAN), tmp_path / "out")
        for sql in ("SELECT age, COUNT(*) AS n FROM visits GROUP BY age", NOT_DERIVED[1]):
            with pytest.raises(Refused, match=r"epsilon.* Roll-ups of .* are free: .*by_ward, .* of 'Hospital tables'"):
                curator.ask(sql)
    with curator_on(visits()) as curator, pytest.raises(Refused, match=r"epsilon") as refusal:
        curator.ask("SELECT COUNT(*) AS n FROM visits")
    assert "published" not in str(refusal.value)


@pytest.mark.long
def test_files_have_months_as_dates_and_the_dictionary_describes_every_column(tmp_path):
    """By the name, the type and the values of the columns that are in the files."""
    alone = """
[tables.unclear]
sql = "SELECT DATE_TRUNC('month', day) AS month, age, COUNT(*) AS n FROM visits WHERE age < 20 GROUP BY 1, 2"
"""
    with curator_on(visits()) as curator:
        release = curator.publish(plan_of(PLAN, alone, ROWS, epsilon=7), tmp_path / "out")
    by_name = {part.name: part for part in release.record.parts}
    for name, part in by_name.items():
        (file,) = (tmp_path / "out").glob(f"*/{name}.parquet")
        assert [column.name for column in part.columns] == pq.read_schema(file).names
        assert all(column.domain for column in part.columns if column.meaning in ("group", "synthetic value"))
        assert {column.name for column in part.columns if column.meaning == "noisy number"} <= {
            "n",
            "known",
            "mean",
            "total",
        }
    months = pq.read_table(tmp_path / "out/tables/by_month.parquet").column("month")
    assert months.to_pylist() == [dt.date(2025, 1, 1), dt.date(2025, 2, 1)]
    assert b"2025-01-01," in (tmp_path / "out/tables/by_month.csv").read_bytes()
    month = by_name["by_month"].columns[0]
    assert (month.type, month.domain) == ("date", "2025-01-01, 2025-02-01")
    unclear = {column.name: column for column in by_name["unclear"].columns}
    assert "bias" in unclear["n_bias"].meaning
    assert "bias" in unclear["n_bias_low"].meaning
    assert unclear["age"].domain == "0 to 19"
    assert {column.name: column.domain for column in by_name["rows"].columns}["cost"].startswith("0 to 500, ")


NOT_DERIVED = [
    "SELECT age, COUNT(*) AS n FROM visits GROUP BY age",
    "SELECT ward, COUNT(*) AS n FROM visits WHERE sex = 'f' GROUP BY ward",
    "SELECT ward, COUNT(DISTINCT patient) AS n FROM visits GROUP BY ward",
    "SELECT ward, day, COUNT(*) AS n FROM visits GROUP BY ward, day",
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(DISTINCT patient) > 5",
    "SELECT day, COUNT(*) AS n FROM visits GROUP BY day HAVING SUM(cost) > 5",
    "SELECT day, SUM(cost) AS s FROM visits GROUP BY day",
    "SELECT ward, 2 * COUNT(*) AS n FROM visits GROUP BY ward",
]
COUNTS_BY_SEX = "WITH t AS (SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex)"


@pytest.mark.parametrize("sql", NOT_DERIVED)
def test_what_does_not_follow_from_published_tables_needs_a_cost(tmp_path, sql):
    with curator_on(visits()) as curator:
        curator.publish(plan_of(PLAN), tmp_path / "out")
        with pytest.raises(Refused, match="epsilon"):
            curator.ask(sql)


def test_having_order_and_limit_on_published_tables_select_from_their_cells_for_free(tmp_path):
    """With the margins of the rows that are left, and a note if noisy numbers chose them."""
    with curator_on(visits()) as curator:
        curator.publish(plan_of(PLAN), tmp_path / "out")
        events = len(curator.ledger.events())
        everything = curator.ask("SELECT ward, sex, COUNT(*) AS n FROM visits GROUP BY ward, sex")
        cells = list(zip(everything.table.to_pylist(), everything.margins["n"], strict=True))
        above = sorted(row["n"] for row, _ in cells)[2]
        for having, expected in (
            (f"HAVING COUNT(*) > {above}", [cell for cell in cells if cell[0]["n"] > above]),
            ("HAVING sex = 'f'", [cell for cell in cells if cell[0]["sex"] == "f"]),
            ("ORDER BY n DESC LIMIT 2", sorted(cells, key=lambda cell: -cell[0]["n"])[:2]),
        ):
            answer = curator.ask(f"SELECT ward, sex, COUNT(*) AS n FROM visits GROUP BY ward, sex {having}")
            assert list(zip(answer.table.to_pylist(), answer.margins["n"], strict=True)) == expected
            assert ("selected by noisy values" in answer.details()) == ("sex" not in having)
            assert not answer.paid.rho
        counts = {row["sex"]: row["n"] for row in curator.ask(f"{COUNTS_BY_SEX} SELECT * FROM t").table.to_pylist()}
        pairs = curator.ask(f"{COUNTS_BY_SEX} SELECT a.sex, b.n AS other FROM t AS a JOIN t AS b ON a.sex <> b.sex")
        assert {row["sex"]: row["other"] for row in pairs.table.to_pylist()} == {"f": counts["m"], "m": counts["f"]}
        mean = "SELECT sex, AVG(cost) AS mean FROM visits GROUP BY sex"
        assert curator.ask(f"{mean} HAVING COUNT(*) > 0").table.equals(curator.ask(mean).table)
        assert len(curator.ledger.events()) == events


def test_a_key_needs_a_cost_also_where_published_tables_would_do(tmp_path):
    with curator_on(visits()) as curator:
        curator.publish(plan_of(PLAN), tmp_path / "out")
        with pytest.raises(Refused, match="epsilon"):
            curator.ask("SELECT COUNT(*) AS n FROM visits", key="k")


def test_a_release_does_not_show_how_long_it_took(tmp_path):
    with curator_on(visits()) as curator:
        release = curator.publish(plan_of(PLAN, ROWS), tmp_path / "out")
    midnight = dt.datetime.fromisoformat(release.record.time)
    assert (midnight.hour, midnight.minute, midnight.second, midnight.microsecond) == (0, 0, 0, 0)
    assert {path.stat().st_mtime for path in (tmp_path / "out").rglob("*")} == {midnight.timestamp()}


TOO_LARGE = {
    "rows per unit": ("epsilon = 4\nrows = 100000", "rows"),
    "number of rows": ("epsilon = 4", "stored"),
}


@pytest.mark.parametrize(("release", "named"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_synthetic_rows_that_could_not_be_stored_are_refused_before_the_charge(tmp_path, release, named):
    rows = ROWS.replace("bins", "rows = 5000000\nbins") if named == "stored" else ROWS
    with curator_on(visits()) as curator:
        with pytest.raises(PolicyError, match=named):
            curator.publish(plan_of(f"[release]\nname = 'x'\n{release}\n", rows), tmp_path / "out")
        assert not curator.ledger.events()


def test_derived_answers_do_not_outlive_their_version_or_declarations(tmp_path):
    """Another version of the data, or other declared values, have other tables."""
    ledger, table = tmp_path / "ledger.sqlite", visits()
    with curator_on(table, ledger=ledger) as curator:
        curator.publish(plan_of(PLAN), tmp_path / "out")
        curator.ask("SELECT COUNT(*) AS n FROM visits")
    sql, text = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", policy_text(ledger=ledger)
    for changed in (text.replace('version = "1"', 'version = "2"'), text.replace('"C"]', '"C", "D"]')):
        with (
            dc.open(dc.policy.Policy.parse(changed), data={"visits": table}) as curator,
            pytest.raises(Refused, match="epsilon"),
        ):
            curator.ask(sql)


SEX_AND_WARD = PLAN[: PLAN.index("[tables.by_ward_and")] + (
    '[tables.by_sex]\nsql = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"\n'
    '[tables.by_ward]\nsql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"\n'
)
NULL_IS_A_KEY = [('"f", "m"]', '"f", "m"], null = true'), ('"B", "C"]', '"B", "C"], null = true')]


def family_notes(plan, *changes, groups=2, rows=2):
    """The notes of a dry run under a changed policy."""
    text = policy_text(groups=groups, rows=rows)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    with dc.open(dc.policy.Policy.parse(text), data={"visits": visits()}) as curator:
        return forecast(curator, plan_of(plan)).notes


def test_a_dry_run_says_which_rows_tables_leave_out_because_of_each_other():
    left_out, _ = family_notes(SEX_AND_WARD)
    assert left_out == (
        "by_sex and by_ward add up, so each of them leaves out rows where sex is NULL or not declared (because of "
        "by_sex), or ward is NULL or not declared (because of by_ward). Declare null = true for a column to keep NULL "
        "as a group of its own."
    )
    kept, _ = family_notes(SEX_AND_WARD, *NULL_IS_A_KEY)
    assert "sex is not declared (because of by_sex)" in kept
    assert "null = true" not in kept


def test_rows_that_every_table_leaves_out_for_its_own_keys_are_no_surprise():
    same = SEX_AND_WARD.replace("SELECT ward", "SELECT sex").replace("BY ward", "BY sex")
    assert not any("leaves out" in note for note in family_notes(same))


def test_a_dry_run_says_that_clipping_bias_is_not_measured_and_what_the_bounds_are():
    *_, clipping = family_notes(SEX_AND_WARD, groups=3, rows=4)
    assert "7 rows of each patient count in full (from groups = 3 and rows = 4)" in clipping
    assert "not measured" in clipping
    *_, declared = family_notes(SEX_AND_WARD.replace("epsilon =", "rows = 5\nepsilon ="))
    assert "5 rows of each patient count in full (rows in the plan)" in declared
    unclipped = family_notes(SEX_AND_WARD, ('unit = "patient"\ngroups = 2\nrows = 2', 'unit = "row"'))
    assert not any("clipped" in note for note in unclipped)


def test_an_answer_from_a_published_table_names_it_and_what_the_table_leaves_out(tmp_path):
    with curator_on(visits()) as curator:
        release = curator.publish(plan_of(SEX_AND_WARD), tmp_path / "out")
        answer = curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward")
    origin = "nswered from the release 'Hospital tables', table by_ward, "
    assert f"No charge: a{origin}" in " ".join(repr(answer).split())
    assert cost_sentence(answer).startswith(f"No charge: a{origin}")  # a notice of the PostgreSQL protocol
    assert any(note.startswith(f"A{origin}") for note in answer.notes)
    assert release.notes[0] in answer.notes
    assert "because of by_sex" in release.notes[0]
    again = read_answer(answer.with_margins())
    assert (again.origin, repr(again)) == (answer.origin, repr(answer))


@pytest.mark.parametrize(
    ("sql", "table"),
    [
        ("SELECT sex, AVG(cost) AS mean FROM visits GROUP BY sex", ", table by_ward_and_sex"),
        ("SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM visits GROUP BY 1", ", table by_month"),
        ("SELECT COUNT(*) AS n FROM visits", ", table all_visits"),
        ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", ", table by_ward"),
    ],
)
def test_the_table_that_an_answer_names_is_the_smallest_with_all_that_is_asked(tmp_path, sql, table):
    with curator_on(visits()) as curator:
        curator.publish(plan_of(PLAN), tmp_path / "out")
        assert curator.ask(sql).origin == f"the release 'Hospital tables'{table}"
