"""A few hundred queries made at random, as in tests/slow/test_fuzz.py, and faults that the checks must notice."""

import logging
import os
import selectors
from dataclasses import replace
from types import SimpleNamespace

import pytest
from fuzzing import checking, driving
from fuzzing.checking import Checker
from fuzzing.databases import NUMBERS, WORD
from fuzzing.queries import Query, made, neighbour

import discreet as dc
from discreet.curator.curator import Curator

QUERIES = 300
COUNT = Query("SHOP", "SELECT category, COUNT(*) AS n FROM orders GROUP BY category", {"epsilon": 1})
ASK = Curator.ask
WORKER = """
import json, os, sys, time
seed, start, stop, step, out = sys.argv[1], *map(int, sys.argv[2:])
for number in range(start, stop, step):
    if number == 4:
        open(os.path.join(os.path.dirname(__file__), str(os.fstat(out).st_ino)), "w").close()
        time.sleep(600)
    if number == 7:
        print("words", flush=True)
        os._exit(9)
    os.write(out, (json.dumps([number, "Refused", 0.5 if number == 2 else 0.01, []]) + chr(10)).encode())
"""


@pytest.fixture(scope="module")
def checker():
    found = Checker()
    yield found
    found.close()


@pytest.mark.long
def test_random_queries_are_answered_or_refused_and_disclose_nothing_else(checker, capfd, recwarn):
    told, endings = [], []
    for number in range(QUERIES):
        found = checker.check(query := made("quick", number), neighbour(number))
        told += [f"{problem}\n    made('quick', {number}): {query}" for problem in found.problems]
        endings.append(found.ending)
    assert told == [], "\n".join(told)
    assert endings.count("answered") > QUERIES // 6
    assert endings.count("Refused") > QUERIES // 6
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list


def test_a_random_query_depends_only_on_its_seed_and_number():
    assert [made("quick", number) for number in (7, 3)] == [made("quick", number) for number in (7, 3)]
    assert made("quick", 7) != made("other", 7)


def test_a_sound_answer_has_no_problem(checker):
    assert checker.check(COUNT, "other").problems == ()
    assert checker.check(replace(COUNT, sql="SELECT city FROM orders"), "empty").problems == ()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (f'line 1, WHERE: "{WORD.lower()}" is no number. Write one.', "tells a value"),
        (f"line 1, WHERE: {NUMBERS[0]} is too large. Write less.", "tells a value"),
        ("line 1: Binder Error: no column. Look there.", "words of the machinery"),
        ("line 1: <sqlglot.exp.Select object at 0x7f3a> is wrong. Look there.", "words of the machinery"),
        ("line 1: this is wrong", "shape"),
        ("this is wrong. Write another.", "shape"),
        ("line 1: this is wrong.\nWrite another.", "shape"),
        (f"line 1: this is wrong. {'Write another. ' * 60}Or this.", "shape"),
        ("line 1: the query is not supported. Nothing was read or charged. Write another.", "lost"),
    ],
)
def test_a_wrong_refusal_message_is_detected(checker, monkeypatch, words, problem):
    def explain(self, sql, **given):
        raise dc.Refused(words)

    monkeypatch.setattr(Curator, "explain", explain)
    assert problem in checker.check(COUNT, "other").problems[0]


def _raises(self, sql, **given):
    raise KeyError("x")


def _fails(self, sql, **given):
    raise dc.Failed("charged")


def _refuses_after_the_charge(self, sql, **given):
    ASK(self, sql, **given)
    raise dc.Refused("line 1: no. Write another.")


def _refuses_some_rows(self, sql, **given):
    found = ASK(self, sql, **given)
    if self._engine.query("SELECT COUNT(*) AS n FROM orders").column("n")[0].as_py() > 200:
        raise dc.Refused("line 1: no. Write another.")
    return found


def _leaves_out_a_group(self, sql, **given):
    found = ASK(self, sql, **given)
    rows = len(found) - self._engine.query("SELECT COUNT(*) AS n FROM orders").column("n")[0].as_py() // 200
    margins, bias = ({name: column[:rows] for name, column in part.items()} for part in (found.margins, found.bias))
    return replace(found, table=found.table.slice(0, rows), margins=margins, bias=bias)


def _shows_a_word(self, sql, **given):
    found = ASK(self, sql, **given)
    return replace(found, table=found.table.set_column(0, "category", [[WORD] * len(found)]))


def _logs(self, sql, **given):
    logging.getLogger("discreet").error("lost")
    return ASK(self, sql, **given)


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (_raises, "KeyError from ask"),
        (_fails, "Failed from ask"),
        (_refuses_after_the_charge, "charged otherwise than was said"),
        (_refuses_some_rows, "depends on the rows, ending"),
        (_leaves_out_a_group, "rows that depend on the data"),
        (_shows_a_word, "a value that one person owns"),
        (_logs, "accident: lost"),
    ],
)
def test_faults_after_the_explanation_are_detected(checker, monkeypatch, fault, problem):
    monkeypatch.setattr(Curator, "ask", fault)
    assert any(problem in told for told in checker.check(COUNT, "other").problems)


def test_a_slow_query_is_detected(checker, monkeypatch):
    monkeypatch.setattr(checking, "SLOWEST", 1e-6)
    assert any("slow" in told for told in checker.check(COUNT, "other").problems)


@pytest.mark.parametrize(
    ("sql", "begins"),
    [
        (f"SELECT SUM({'9' * 5_000}) FROM orders", "line 1, SUM: this number is out of range"),
        (f"SELECT COUNT(*) FROM orders GROUP BY {'9' * 5_000}", "line 1, GROUP BY: GROUP BY position 99999"),
        (
            f"SELECT category, COUNT(*) FROM orders GROUP BY 1 ORDER BY {'0' * 9}12",
            "line 1, ORDER BY: ORDER BY position",
        ),
        ("SELECT COUNT(*) FROM orders WHERE quantity IN ", "line 1, WHERE: the IN list is empty"),
        ("SELECT n FROM (SELECT COUNT(*) AS n FROM orders) t WHERE n IN ", "line 1, WHERE: the IN list is empty"),
        ("SELECT COUNT(*) FROM (SELECT FROM orders) AS t", "line 1, SELECT: the SELECT list is empty."),
        ("SELECT COUNT(*) FROM orders JOIN prices USING OFFSET (orders)", "line 1, USING: USING takes column names"),
        ("SELECT VARIANCE(EXP(amount)) FROM orders", "line 1, VARIANCE: the range of EXP(amount) is too wide"),
        ("SELECT AVG(CLIP(weight, 0, 1e-200)) FROM orders", "line 1, AVG: the range of CLIP(weight, 0, 1e-200) is too"),
        ("SELECT COUNT(*) AS (orders) FROM orders", 'line 1, SELECT: "COUNT(*) AS (orders)" is not supported'),
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_contributed="
            + "0" * 10
            + "1" * 5_000
            + ") 1 FROM orders",
            "line 1, column 63: max_rows_contributed must be a positive integer",
        ),
        (
            "SELECT COUNT(*) FROM orders o\u202e, visits v WHERE o.city = v.page",
            "line 1, column 29",
        ),
    ],
)
def test_earlier_findings_of_random_queries_stay_refused_with_a_reason(checker, sql, begins):
    query = Query("SHOP", sql, {"epsilon": 1})
    assert checker.check(query, "empty").problems == ()
    with pytest.raises(dc.Refused) as refusal:
        checker._curator("SHOP", "odd").explain(sql, epsilon=1)
    assert str(refusal.value).startswith(begins)


def test_integers_beside_reals_are_reals_in_the_groups_of_a_union(checker):
    hits = "SELECT user_id, at::date AS day, status AS x FROM hits"
    logins = "SELECT account, day, 2.5 AS x FROM logins"
    sql = f"SELECT x, COUNT(*) AS n FROM ({hits} UNION ALL {logins}) AS t GROUP BY x"
    query = Query("WEBLOG", sql, {"epsilon": 1, "rows": 3, "groups": 2})
    assert checker.check(query, "other") == checking.Outcome("answered", pytest.approx(0, abs=5), ())


def test_a_function_that_no_dialect_knows_prints_nothing(checker, capfd):
    assert checker.check(Query("SHOP", "SELECT COUNT(TRY(1)) FROM orders", {"epsilon": 1}), "other").problems == ()
    assert capfd.readouterr() == ("", "")


def test_a_query_that_hangs_or_crashes_does_not_stop_the_others(monkeypatch, tmp_path):
    worker = tmp_path / "worker.py"
    worker.write_text(WORKER)
    monkeypatch.setattr(driving, "_WORKER", worker)

    class Watch(selectors.DefaultSelector):
        """Nothing comes any more once the worker at the other end of the pipe says that it hangs."""

        def select(self, timeout):
            (pipe,) = self.get_map()
            hangs = tmp_path / str(os.fstat(pipe).st_ino)
            while not (ready := super().select(0.01)) and not hangs.exists():
                assert timeout >= 60
            if not ready:
                hangs.unlink()  # the pipe of the next worker may have the same number
            return ready

    watch = SimpleNamespace(DefaultSelector=Watch, EVENT_READ=selectors.EVENT_READ)
    monkeypatch.setattr(driving, "selectors", watch)
    report = driving.checked("seed", 12, workers=2)
    assert sorted(report.seconds) == list(range(12))
    assert sorted(report.problems) == [(4, driving.HUNG), (7, "the worker ended with 9")]
    assert report.printed == "words\n"
    assert report.outliers() == [4, 2]


def test_a_result_without_groups_has_no_quantiles_and_raises_nothing(checker):
    measures = "MEDIAN(amount) AS m, MODE(category) AS f, COUNT(*) AS n"
    sql = f"SELECT city, {measures} FROM orders WHERE amount < amount GROUP BY city"
    assert checker.check(Query("SHOP", sql, {"epsilon": 1}), "empty").problems == ()
