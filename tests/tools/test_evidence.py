"""docs/evidence.md is what runs reported, and can be read."""

import importlib.util
import sys
from collections import Counter
from pathlib import Path

import pytest

# By its path: another module of this name lies beside the broken mechanisms.
_spec = importlib.util.spec_from_file_location("evidence_tool", Path(__file__).parents[2] / "tools" / "evidence.py")
evidence = sys.modules["evidence_tool"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(evidence)

HOME = "/home"  # apart from what follows: no tracked file names a folder of a machine
REPORT = """<testsuites><testsuite>
<testcase name="a"/><testcase name="b"/>
<testcase name="c"><failure message="no"/></testcase>
<testcase name="d"><error message="no"/></testcase>
<testcase name="e"><skipped type="pytest.skip" message="needs HOME/somebody/data/t.csv"/></testcase>
<testcase name="f"><skipped type="pytest.skip" message="needs HOME/somebody/data/t.csv"/></testcase>
</testsuite></testsuites>""".replace("HOME", HOME)


def page_of(tmp_path, *runs):
    page = tmp_path / "evidence.md"
    for suite, counts in runs:
        evidence.record(suite, counts, 12.4, page)
    return page.read_text()


def test_the_page_can_be_read_and_its_rows_have_all_fields():
    assert evidence.problems(evidence.PAGE.read_text(encoding="utf-8")) == []


def test_a_report_of_pytest_is_counted_and_shows_no_paths(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    assert evidence.counted(report) == evidence.Counts(2, 2, Counter({"needs t.csv": 2}))


def test_a_run_is_recorded_in_the_row_of_its_suite(tmp_path):
    slow = evidence.Counts(1500, 0, Counter({"no Spark": 3, "no Java": 1}))
    page = page_of(
        tmp_path, ("slow", evidence.Counts(1, 1, Counter())), ("test", evidence.Counts(9, 0, Counter())), ("slow", slow)
    )
    assert evidence.problems(page) == []
    first, second = evidence.rows(page)
    assert (first.suite, first.passed, first.seconds) == ("test", 9, 12)
    assert (second.suite, second.result, second.passed, second.skipped) == ("slow", "passed", 1500, 4)
    assert dict(second.reasons) == slow.skipped


def test_a_row_of_mutants_tells_how_many_were_tried_by_earlier_runs(tmp_path):
    counts = evidence.Counts(7000, 0, Counter({"listed survivors": 500}), earlier=7400)
    page = page_of(tmp_path, ("mutants", counts), ("test", evidence.Counts(9, 0, Counter())))
    assert evidence.problems(page) == []
    assert [row.earlier for row in evidence.rows(page)] == [0, 7400]
    assert evidence.problems(page.replace("7,400", "7,600")) == ["mutants: earlier"]


def test_a_failure_is_called_one(tmp_path):
    (row,) = evidence.rows(page_of(tmp_path, ("test", evidence.Counts(9, 1, Counter()))))
    assert row.result == "failed"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("| passed | 2", "| failed | 2", "test: result"),
        ("| 9 | 0 | 1 |", "| 0 | 0 | 1 |", "test: passed"),
        ("| 9 | 0 | 1 |", "| 9 | 0 | 2 |", "test: skipped"),
        ("| 9 | 0 | 1 |", "| 9 | 0 |", "a row lacks a column"),
        ("| `test`", "| `best`", "best: suite"),
        (": no Spark", f": no {HOME}/x", "test: reasons"),
    ],
)
def test_a_page_changed_by_hand_has_problems(tmp_path, old, new, problem):
    page = page_of(tmp_path, ("test", evidence.Counts(9, 0, Counter({"no Spark": 1}))))
    assert evidence.problems(page) == []
    assert old in page
    assert problem in evidence.problems(page.replace(old, new))


@pytest.mark.parametrize(
    ("code", "text"), [(2, REPORT), (0, None), (0, "<testsuites/>")], ids=["interrupted", "no report", "nothing ran"]
)
def test_a_run_that_did_not_happen_is_not_recorded(tmp_path, monkeypatch, code, text):
    page = tmp_path / "evidence.md"

    def run(command):
        if text is not None:
            Path(command[-1].removeprefix("--junitxml=")).write_text(text)
        return code, ""

    monkeypatch.setattr(evidence, "_run", run)
    monkeypatch.setattr(evidence, "record", lambda *_: page.write_text("recorded"))
    assert evidence.main(["test"]) == (code or 1)
    assert not page.exists()


def test_the_counts_of_the_mission_are_those_that_it_printed():
    _, read = evidence.of_mission(evidence.ROOT)
    printed = "A1   What\n     found 3   [0.1 CPU s]\nA2   Other\n     needs data: taxi.parquet   [0.0 CPU s]\n"
    assert read(printed) == evidence.Counts(1, 0, Counter({"needs data: taxi.parquet": 1}))


def test_every_part_of_the_benchmarks_can_be_counted():
    _, read = evidence.of_bench(evidence.ROOT)
    heads = [evidence._first_line(path) for path in (evidence.ROOT / "bench").glob("*.py")]
    assert read("\n" + "\n\n".join(f"{head}\n" for head in heads)).passed >= 10
    assert read("").passed == 0
