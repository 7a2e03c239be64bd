"""The Spark engine: the same totals as DuckDB, in its own session, whatever happens to the server or the files."""

import os
import subprocess
import sys
import threading
import warnings
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engines import server_session
from discreet.engines.duckdb.engine import DuckDB, Tuning
from discreet.engines.row_sums import whole_units
from discreet.engines.spark import connection
from discreet.engines.spark import engine as module
from discreet.engines.spark import session as spark_session
from discreet.engines.spark.connection import SETTINGS, apply_settings, server_name, server_url
from discreet.engines.spark.engine import Spark
from discreet.engines.table_source import EngineError, SourceChanged, TableSource, Unavailable
from discreet.kernel.errors import PolicyError
from discreet.kernel.expr import Column, Type
from discreet.kernel.grid import Grid
from discreet.kernel.model_release import Combine, PartialSum
from discreet.kernel.question import ContributionBounds, PublicGroups, Question, SelectedGroups
from discreet.kernel.relation import EachRow, Scan, UnitKey
from discreet.kernel.totals import Count, CountDistinct, CountUnits, HistogramTree, SelectionWeight, Sum
from tests.engines.spark_servers import FOREVER, again, sail_at, shared
from tests.servers.spark import session

N, R, B, X, D, S = Type.INTEGER, Type.REAL, Type.BOOLEAN, Type.TEXT, Type.DATE, Type.TIMESTAMP
TYPES = {"patient": N, "ward": X, "cost": R, "kept": B}
ROWS = 4000
WARDS = ["A", "B", "Ä", "b", " "]
VISITS = pa.table(
    {
        "patient": [place % 211 if place % 13 else None for place in range(ROWS)],
        "ward": [WARDS[place % 7] if place % 7 < 5 else None for place in range(ROWS)],
        "cost": [(place * 37 % 1000) / 8 if place % 11 else None for place in range(ROWS)],
        "kept": [place % 3 == 0 if place % 5 else None for place in range(ROWS)],
        "secret": ["…"] * ROWS,
    }
)
SCAN = Scan("visits", tuple(Column(name, kind) for name, kind in TYPES.items()), UnitKey((Column("patient", N),)), ROWS)
COST, WARD = Column("cost", R), Column("ward", X)
BY_WARD = (("ward", WARD),)
SIZES = Grid(0, 125, "1/8")
LIMIT = ContributionBounds(2, 5)
DECLARED = PublicGroups((("A", "B", "Ä", "b", " ", "other", None),))
QUESTIONS = {
    "whole": Question(SCAN, (), PublicGroups(()), LIMIT, (CountUnits(), Count(), Count(COST), Sum(COST, SIZES))),
    "declared": Question(SCAN, BY_WARD, DECLARED, LIMIT, (CountUnits(), Count(), Sum(COST, SIZES))),
    "discovered": Question(SCAN, BY_WARD, SelectedGroups(10), LIMIT, (SelectionWeight(), Count(), Sum(COST, SIZES))),
    "cells": Question(SCAN, BY_WARD, DECLARED, LIMIT, (CountUnits(), HistogramTree(COST, SIZES, 11, 3))),
    "values": Question(SCAN, BY_WARD, DECLARED, LIMIT, (CountDistinct(Column("kept", B)), Count())),
}
COUNT = Question(SCAN, (), PublicGroups(()), LIMIT, (CountUnits(),))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write the rows as two files in one folder."""
    place = tmp_path_factory.mktemp("visits")
    pq.write_table(VISITS.slice(0, 1500), place / "1.parquet")
    pq.write_table(VISITS.slice(1500), place / "2.parquet")
    return place


@pytest.fixture
def engine(sail, folder):
    with Spark({"visits": TableSource(str(folder), TYPES)}, url=sail.url) as found:
        yield found


def comparable(found):
    """Return totals in a form that does not depend on the order of keys."""
    rows = dict(zip(found.keys, map(tuple, found.values.tolist()), strict=True))
    cells = {}
    for place, tally in found.cell_counts.items():
        each = zip(tally.groups.tolist(), tally.cells.tolist(), tally.weights.tolist(), strict=True)
        cells[place] = sorted((str(found.keys[group]), cell, weight) for group, cell, weight in each)
    return rows, cells


@pytest.mark.long(but=["declared", "discovered"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_totals_are_those_of_duckdb(engine, name):
    with DuckDB({"visits": TableSource(VISITS, TYPES)}) as other:
        wanted = comparable(other.totals(QUESTIONS[name]))
    assert comparable(engine.totals(QUESTIONS[name])) == wanted
    assert sum(sum(row) for row in wanted[0].values()) > 100


@pytest.mark.long
@pytest.mark.parametrize("owner", [SCAN.owner, EachRow()], ids=["units", "rows"])
def test_batches_are_those_of_duckdb_unit_by_unit(engine, owner):
    scan, columns = Scan("visits", SCAN.columns, owner, ROWS), ("cost", "patient")
    with DuckDB({"visits": TableSource(VISITS, TYPES)}) as other:
        wanted = np.concatenate([numbers for numbers, _ in other.batches(scan, columns, 10_000)])
    given = list(engine.batches(scan, columns, 700))
    numbers, places = (np.concatenate(each) for each in zip(*given, strict=True))
    assert [len(each) for each, _ in given[:-1]] == [700] * (len(given) - 1)
    assert len(given) >= 5
    assert sorted(map(tuple, numbers)) == sorted(map(tuple, wanted))
    assert (np.diff(places) >= 0).all()
    if isinstance(owner, UnitKey):
        assert len(set(places)) == len(set(numbers[:, 1])) == len(set(zip(places, numbers[:, 1], strict=True))) == 211
    else:
        assert places.tolist() == list(range(len(numbers)))
    assert engine.totals(COUNT).values.sum() > 0


def test_rows_of_which_none_fits_give_no_batch(sail, tmp_path):
    pq.write_table(pa.table({"patient": [1, 2], "cost": [None, 1e999]}), tmp_path / "t.parquet")
    scan = Scan("t", (Column("patient", N), Column("cost", R)), UnitKey((Column("patient", N),)), 10)
    with Spark({"t": TableSource(str(tmp_path), {"patient": N, "cost": R})}, url=sail.url) as engine:
        ((rows, places),) = engine.batches(scan, ("patient",), 10)
        assert (rows.tolist(), places.tolist()) == ([[1.0], [2.0]], [0, 1])
        assert list(engine.batches(scan, ("cost",), 10)) == []


def part():
    """Return what adds up each unit's mean of doubled numbers, and ones; its rule has no module, so that it is sent."""

    def rule(rows, public):
        return np.column_stack([rows * public[0], np.ones(len(rows))])

    low, high = np.array([0.0]), np.array([100.0])
    return PartialSum(rule, (2.0,), low, high, grouped=True, size=2, width=2, steps=1.0, l1=True, combine=Combine.MEAN)


@pytest.mark.long
def test_sums_are_computed_where_the_rows_are(engine):
    bounds = ((0.0, 100.0),)
    batches = engine.batches(SCAN, ("cost",), 500)
    here = part()(whole_units((np.clip(rows, 0.0, 100.0), places) for rows, places in batches)).tolist()
    with engine.cached_rows(SCAN, ("cost",)) as sums:
        there = [sums(part(), bounds).tolist() for _ in range(2)]
        assert engine.totals(COUNT).values.sum() > 0  # in the meantime
        there.append(sums(part(), bounds).tolist())
    assert there == [here] * 3
    assert here[1] == 211


def visible(url, place, **types):
    """Return a table's columns as questions see them."""
    with Spark({"t": TableSource(place, types)}, url=url) as engine:
        return sorted(engine.query("SELECT * FROM t0").to_pylist(), key=str)


@pytest.mark.long
def test_files_patterns_folders_and_tables_are_sources(sail, folder):
    shared(sail.url, seen=f"SELECT * FROM parquet.`{folder}`")
    for place in (f"{folder}/1.parquet", f"{folder}/*.parquet", f"{folder}/[12].parquet", f"{folder}/", folder):
        assert len(visible(sail.url, place, patient=N)) == (1500 if str(place).endswith("1.parquet") else ROWS)
    for name in ("global_temp.seen", "`global_temp`.`seen`"):
        assert len(visible(sail.url, name, patient=N)) == ROWS


def test_folders_named_by_values_are_a_column_of_texts(sail, tmp_path):
    for year in ("2025", "2026"):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(pa.table({"a": [int(year)]}), tmp_path / f"year={year}" / "t.parquet")
    assert visible(sail.url, str(tmp_path), a=N, year=N) == [{"a": 2025, "year": 2025}, {"a": 2026, "year": 2026}]
    with Spark({"t": TableSource(str(tmp_path))}, url=sail.url) as engine:
        assert engine.columns("t") == {"a": N, "year": X}


def test_a_column_that_some_files_lack_is_null_there(sail, tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": [2], "a": [2]}), tmp_path / "2.parquet")
    assert visible(sail.url, str(tmp_path), a=N, b=N) == [{"a": 1, "b": None}, {"a": 2, "b": 2}]


def test_names_may_have_capitals_quotes_dots_and_dollars(sail, tmp_path):
    odd = 'a "quoted" `name`, a.b and ${env:HOME}'
    pq.write_table(pa.table({odd: [1, 1], "Mixed": [2, 3], "select": [3, 3]}), tmp_path / "it's 1.parquet")
    types = {odd: N, "mixed": N, "select": N}
    with Spark({odd: TableSource(str(tmp_path / "it's 1.parquet"), types)}, url=sail.url) as engine:
        assert engine.columns(odd) == types
        assert engine.values(odd, odd) == [1]
        assert engine.fanout(odd, (odd, "mixed")) == 1
        scan = Scan(odd, tuple(Column(name, kind) for name, kind in types.items()), UnitKey((Column(odd, N),)), 10)
        asked = Question(
            scan, (("k", Column("mixed", N)),), SelectedGroups(5), LIMIT, (SelectionWeight(), Count(Column(odd, N)))
        )
        assert sorted(engine.totals(asked).keys) == [(2,), (3,)]
        assert [rows.tolist() for rows, _ in engine.batches(scan, (odd, "mixed"), 9)] in (
            [[[1.0, 2.0], [1.0, 3.0]]],
            [[[1.0, 3.0], [1.0, 2.0]]],
        )


def test_columns_that_are_not_declared_do_not_exist(engine):
    assert engine.query("SELECT * FROM t0").column_names == list(TYPES)
    with pytest.raises(EngineError):
        engine.query("SELECT secret FROM t0")


def test_public_tables_show_all_columns_that_have_a_type(sail, tmp_path):
    columns = {"n": [3, 1, None, 1], "t": ["b", "B", "é", "a"], "x": [0.25, 1.0, 0.5, float("inf")], "q": [True] * 4}
    pq.write_table(pa.table({**columns, "d": [date(2026, 1, 1)] * 4, "b": [b"x"] * 4}), tmp_path / "p.parquet")
    with Spark({"p": TableSource(str(tmp_path / "p.parquet"))}, url=sail.url) as engine:
        assert engine.columns("p") == {"n": N, "t": X, "x": R, "q": B, "d": D}
        assert engine.values("p", "n") == [1, 3]
        assert engine.values("p", "t") == ["B", "a", "b", "é"]
        assert engine.values("p", "x") == [0.25, 0.5, 1.0]
        assert [engine.fanout("p", by) for by in (("n",), ("n", "t"), (), ("q",))] == [2, 1, 4, 4]
        for ask in (lambda: engine.values("p", "m"), lambda: engine.fanout("p", ("n", "m"))):
            with pytest.raises(KeyError, match="column m "):
                ask()


def refused(url, place, /, table="visits", **types):
    """Return why a table cannot be opened, or why questions about its columns are refused."""

    def use():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            engine = Spark({table: TableSource(place, types)}, url=url)
        with engine:
            engine.fanout(table, tuple(types))

    with pytest.raises(PolicyError) as caught:
        use()
    assert str(caught.value).startswith(f"table {table}")
    return str(caught.value)


@pytest.mark.long
def test_mismatched_columns_are_refused_from_the_schema_alone(sail, tmp_path):
    shared(sail.url, touchy="SELECT CASE WHEN id >= 0 THEN raise_error('read') END AS amount, 1.5D AS x FROM range(3)")
    assert 'column amont: it does not exist in the source. The source has "amount".' in refused(
        sail.url, "global_temp.touchy", amont=N
    )
    assert "Correct its name" in refused(sail.url, "global_temp.touchy", other=N)
    assert ' to text. Declare type = "real"' in refused(sail.url, "global_temp.touchy", x=X)
    with Spark({"t": TableSource("global_temp.touchy", {"amount": X})}, url=sail.url) as engine:
        assert engine.columns("t") == {"amount": X}
        with pytest.raises(EngineError, match="the engine failed"):
            engine.query("SELECT amount FROM t0")
    stored = {"b": pa.array([b"x"]), "l": pa.array([[1]]), "d": pa.array([date(2026, 1, 1)]), "n": pa.array([1])}
    pq.write_table(pa.table(stored), tmp_path / "t.parquet")
    path = str(tmp_path / "t.parquet")
    assert "stored as binary, which is not supported" in refused(sail.url, path, b=X)
    assert "which is not supported" in refused(sail.url, path, l=N)
    assert ' to integer. Declare type = "date"' in refused(sail.url, path, d=N)
    assert ' to timestamp. Declare type = "integer"' in refused(sail.url, path, n=S)


def test_two_columns_that_differ_by_case_are_refused(sail, tmp_path):
    pq.write_table(pa.table([[1], [2]], names=["A", "a"]), tmp_path / "t.parquet")
    assert "several columns of this name" in refused(sail.url, str(tmp_path / "t.parquet"), a=N)


def test_a_missing_source_is_refused_with_a_hint(sail, tmp_path):
    assert "no such file on the storage that Spark reads" in refused(sail.url, str(tmp_path / "no.parquet"))
    assert "does not exist in Spark" in refused(sail.url, "clinic.visits", a=N)
    (tmp_path / "t.parquet").write_text("secret, not what the name says")
    words = refused(sail.url, str(tmp_path / "t.parquet"), a=N)
    assert "cannot be read" in words
    assert "secret" not in words


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("/data/visits.csv", ".csv files are not supported on Spark"),
        ("s3://bucket/visits.tsv.gz", ".tsv.gz files"),
        ("/data/visits.json", "types would be inferred"),
        (pa.table({"a": [1]}), "frames are not supported on Spark"),
        ("parquet.`/data/visits`", 'write only the path, "/data/visits"'),
    ],
    ids=["csv", "packed", "json", "frame", "quoted"],
)
def test_other_sources_are_refused_before_the_server_is_contacted(place, words):
    assert words in refused("sc://127.0.0.1:1", place, a=N)


def test_names_that_the_engine_does_not_distinguish_are_refused():
    with pytest.raises(PolicyError, match="another table's only in case"):
        Spark({"T": TableSource("x", {"a": N}), "t": TableSource("y", {"a": N})}, url="sc://127.0.0.1:1")
    with pytest.raises(PolicyError, match=r"column A: .* only in case"):
        Spark({"t": TableSource("x", {"A": N, "a": N})}, url="sc://127.0.0.1:1")


@pytest.mark.parametrize("zone", ["Mars", "UTC'", "Europe/Berlin', 1) --"])
def test_a_zone_that_spark_does_not_know_is_refused(sail, folder, zone):
    with pytest.raises(PolicyError, match="is unknown to Spark"):
        Spark({"visits": TableSource(str(folder), TYPES)}, url=sail.url, timezone=zone)


@pytest.mark.parametrize(
    "statement",
    [
        *("DROP VIEW t0", "CREATE TEMP VIEW x AS SELECT 1", "SET spark.sql.ansi.enabled=false", "SHOW TABLES", ""),
        *("SELECT 1; SELECT 2", "INSERT INTO t0 SELECT 1", "SELECT 1) AS q; DROP VIEW t0 --", "CACHE TABLE t0"),
        "WITH a AS (SELECT 1 AS x) INSERT INTO t0 SELECT * FROM a",
    ],
)
def test_a_question_is_one_select(engine, statement):
    with pytest.raises(EngineError):
        engine.query(statement)
    assert engine.query("SELECT COUNT(*) AS n FROM t0").to_pydict() == {"n": [ROWS]}


def test_the_session_is_configured_and_not_shared(engine, sail):
    ours = engine._session._spark
    assert {name: ours.conf.get(name) for name in SETTINGS} == SETTINGS
    with session(sail.url) as theirs:
        assert theirs.conf.get("spark.sql.variable.substitute") == "true"
        assert theirs.session_id != ours.session_id
        with pytest.raises(Exception, match="not found"):
            theirs.table("t0").toArrow()
    from pyspark.sql.connect.session import SparkSession

    assert SparkSession.getActiveSession() is None
    assert SparkSession._get_default_session() is None


class Forgetful:
    """A session that keeps no setting."""

    version = "4.0.1"
    conf = type("Conf", (), {"set": lambda *_: None, "get": lambda *_: "other"})()


def test_a_server_that_ignores_a_setting_or_is_too_old_is_not_used():
    with pytest.raises(EngineError, match=r"setting spark\.sql\.ansi"):
        apply_settings(Forgetful())
    old = Forgetful()
    old.version = "3.5.7"
    with pytest.raises(PolicyError, match=r"3\.5\.7 is not supported"):
        apply_settings(old)


@pytest.mark.parametrize("change", ["removed", "rewritten", "grown", "added"])
def test_a_file_that_changes_after_the_engine_was_opened_invalidates_answers(sail, tmp_path, change):
    path = tmp_path / "1.parquet"
    pq.write_table(pa.table({"a": [1, 2]}), path)
    pq.write_table(pa.table({"a": [3]}), tmp_path / "2.parquet")
    with Spark({"t": TableSource(str(tmp_path), {"a": N})}, url=sail.url) as engine:
        assert engine.query("SELECT COUNT(*) AS n FROM t0").to_pydict() == {"n": [3]}
        if change == "removed":
            path.unlink()
        elif change == "rewritten":
            os.utime(path, ns=(10**18, 10**18))
        else:
            pq.write_table(pa.table({"a": [7] * 9}), path if change == "grown" else tmp_path / "3.parquet")
        for _ in range(2):
            with pytest.raises(Unavailable, match="Nothing was charged") as changed:
                engine.query("SELECT COUNT(*) AS n FROM t0")
            assert "was changed, added or removed" in changed.value.reason
        engine._session.drop()
        for _ in range(2):
            with pytest.raises(Unavailable, match="Nothing was charged") as changed:
                engine.query("SELECT COUNT(*) AS n FROM t0")
            assert "the tables have changed" in changed.value.reason


def test_a_file_that_changes_while_a_question_is_read_invalidates_its_answer(sail, tmp_path, monkeypatch):
    path = tmp_path / "1.parquet"
    pq.write_table(pa.table({"a": [1, 2]}), path)

    def changed(spark, sql, run=module._run_select):
        found = run(spark, sql)
        os.utime(path, ns=(10**18, 10**18))
        return found

    with Spark({"t": TableSource(str(tmp_path), {"a": N})}, url=sail.url) as engine:
        monkeypatch.setattr(module, "_run_select", changed)
        with pytest.raises(SourceChanged, match="was changed, added or removed"):
            engine.query("SELECT COUNT(*) AS n FROM t0")


def test_a_column_that_is_renamed_stops_the_questions_that_use_it_and_no_others(sail):
    types = {"a": N, "b": N}
    shared(sail.url, turns="SELECT 1L AS a, 2L AS b")
    with Spark({"t": TableSource("global_temp.turns", types)}, url=sail.url) as engine:
        assert engine.values("t", "b") == [2]
        shared(sail.url, turns="SELECT 1L AS a, 2L AS bb")
        assert engine.values("t", "a") == [1]
        with pytest.raises(PolicyError, match=r'column b: .* The source has "bb"'):
            engine.values("t", "b")
        with pytest.warns(UserWarning, match="column b"):
            opened = Spark({"t": TableSource("global_temp.turns", types)}, url=sail.url)
        with opened:
            assert opened.values("t", "a") == [1]
            with pytest.raises(PolicyError, match="column b"):
                opened.values("t", "b")
            shared(sail.url, turns="SELECT 3L AS a, '4' AS b")
            assert (opened.values("t", "a"), opened.values("t", "b")) == ([3], [4])


def test_a_table_that_is_dropped_stops_its_questions_until_it_is_there_again(sail):
    shared(sail.url, going="SELECT 1L AS a", staying="SELECT 2L AS a")
    places = {name: TableSource(f"global_temp.{name}", {"a": N}) for name in ("going", "staying")}
    with Spark(places, url=sail.url) as engine:
        with session(sail.url) as spark:
            spark.sql("DROP VIEW global_temp.going").toArrow()
        with pytest.raises(PolicyError, match="table going: "):
            engine.fanout("going", ())
        assert engine.values("staying", "a") == [2]
        shared(sail.url, going="SELECT 5L AS a")
        assert engine.values("going", "a") == [5]


def test_preparing_a_question_reads_no_row_on_spark(sail):
    shared(sail.url, touchy="SELECT CASE WHEN id >= 0 THEN raise_error('read') END AS x FROM range(3)")
    with Spark({"t": TableSource("global_temp.touchy", {"x": X})}, url=sail.url) as engine:
        with engine.prepare({"t": frozenset({"x"})}):
            pass
        with pytest.raises(EngineError, match="the engine failed"):
            engine.values("t", "x")


def test_a_column_that_is_lost_after_the_charge_is_not_read_as_null(sail):
    """A session that is lost is made anew, with views of what there is then: used columns must still be there."""
    shared(sail.url, losing="SELECT 1L AS a")
    scan = Scan("t", (Column("a", N),), UnitKey((Column("a", N),)), 10)
    sources, used = {"t": TableSource("global_temp.losing", {"a": N})}, {"t": frozenset({"a"})}
    with Spark(sources, url=sail.url) as engine, engine.prepare(used) as reader:
        shared(sail.url, losing="SELECT 1L AS z")
        engine._session.drop()
        with pytest.raises(EngineError, match="changed after the query was charged"):
            reader.totals(Question(scan, (), PublicGroups(()), LIMIT, (Count(),)))


def test_totals_of_files_are_cached_and_those_of_tables_are_not(sail, folder, monkeypatch):
    asked = []
    monkeypatch.setattr(
        module, "_run_select", lambda spark, sql, run=module._run_select: asked.append(sql) or run(spark, sql)
    )
    shared(sail.url, living=f"SELECT * FROM parquet.`{folder}`")
    for place, times in ((str(folder), 1), ("global_temp.living", 2)):
        asked.clear()
        with Spark({"visits": TableSource(place, TYPES)}, url=sail.url) as engine:
            assert comparable(engine.totals(COUNT)) == comparable(engine.totals(COUNT))
        assert len(asked) == times


def test_cached_totals_are_not_used_after_a_file_has_changed(sail, tmp_path):
    pq.write_table(VISITS, tmp_path / "1.parquet")
    with Spark({"visits": TableSource(str(tmp_path), TYPES)}, url=sail.url) as engine:
        engine.totals(COUNT)
        pq.write_table(VISITS.slice(10), tmp_path / "1.parquet")
        with pytest.raises(Unavailable, match="was changed"):
            engine.totals(COUNT)


def test_a_question_that_takes_too_long_is_stopped_and_the_next_is_answered(sail, folder):
    with Spark({"visits": TableSource(str(folder), TYPES)}, url=sail.url, tuning=Tuning(seconds=0.5)) as engine:
        with pytest.raises(EngineError, match=r"time limit of 0\.5 seconds"):
            engine.query(FOREVER)
        engine.tuning = Tuning()
        assert engine.query("SELECT COUNT(*) AS n FROM t0").to_pydict() == {"n": [ROWS]}


@pytest.mark.long
def test_a_server_that_ignores_cancellation_is_abandoned(folder, monkeypatch):
    monkeypatch.setattr(spark_session.SparkConnectSession, "interrupt", lambda _: None)
    monkeypatch.setattr(spark_session, "_MAX_INTERRUPTS", 1)
    sources = {"visits": TableSource(str(folder), TYPES)}
    with sail_at() as server, Spark(sources, url=server.url) as engine:
        engine.tuning = Tuning(seconds=0.5)  # not before: a busy machine may take longer to open it
        with pytest.raises(EngineError, match=r"time limit of 0\.5 seconds"):
            engine.query(FOREVER)
        engine.tuning = Tuning()
        assert engine.query("SELECT COUNT(*) AS n FROM t0").to_pydict() == {"n": [ROWS]}


def test_closing_stops_a_question_that_is_running(sail, folder, monkeypatch):
    monkeypatch.setattr(server_session, "_STOP_TIMEOUT", 30)
    engine, failed = Spark({"visits": TableSource(str(folder), TYPES)}, url=sail.url), []

    def ask():
        try:
            engine.query(FOREVER)
        except EngineError as error:
            failed.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    while not engine._question_lock.locked():
        thread.join(0.001)
    engine.close()
    thread.join(240)  # which nothing but a real hang reaches
    assert not thread.is_alive()
    assert len(failed) == 1


def test_closing_does_not_wait_for_batches_that_nobody_takes(sail, folder, monkeypatch):
    monkeypatch.setattr(server_session, "_STOP_TIMEOUT", 0.2)
    engine = Spark({"visits": TableSource(str(folder), TYPES)}, url=sail.url)
    given = engine.batches(SCAN, ("cost",), 100)
    next(given)
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        next(given)


def test_a_closed_engine_answers_nothing_and_closes_again(sail, folder):
    engine = Spark({"visits": TableSource(str(folder), TYPES)}, url=sail.url)
    engine.close()
    engine.close()
    for ask in (lambda: engine.totals(COUNT), lambda: next(engine.batches(SCAN, ("cost",), 9))):
        with pytest.raises(EngineError, match="closed"):
            ask()


def test_a_child_of_the_process_cannot_use_the_engine(engine, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(EngineError, match="another process"):
        engine.query("SELECT 1 AS a")
    engine.close()
    monkeypatch.undo()
    assert engine.query("SELECT 1 AS a").to_pydict() == {"a": [1]}


@pytest.mark.long
def test_threads_take_turns(engine):
    found = []

    def ask():
        found.extend(engine.query("SELECT COUNT(*) AS n FROM t0").column("n")[0].as_py() for _ in range(5))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [ROWS] * 20


@pytest.mark.long
def test_a_server_that_dies_fails_one_question_and_the_next_is_answered_when_it_is_back(folder, monkeypatch):
    monkeypatch.setattr(connection, "_RETRY_TIMEOUT", 0.5)
    server = sail_at()
    try:
        with Spark({"visits": TableSource(str(folder), TYPES)}, url=server.url) as engine:
            wanted = comparable(engine.totals(COUNT))
            run, killer = module._run_select, threading.Thread(target=server.kill)

            def dies(spark, sql):
                killer.start()
                return run(spark, sql)

            with monkeypatch.context() as patched:
                patched.setattr(module, "_run_select", dies)
                with pytest.raises(EngineError, match="Spark at 127"):
                    engine.query(FOREVER)
            killer.join()
            with pytest.raises(Unavailable) as away:
                engine.totals(QUESTIONS["declared"])  # it is still gone
            assert "Spark at 127" in away.value.reason
            server = again(server)
            assert comparable(engine.totals(COUNT)) == wanted
            server = again(server)  # between two questions
            assert engine.query("SELECT COUNT(*) AS n FROM t0").to_pydict() == {"n": [ROWS]}
    finally:
        server.stop()


def test_an_unreachable_server_is_reported_soon_and_without_the_token(folder, monkeypatch):
    monkeypatch.setattr(connection, "_RETRY_TIMEOUT", 0.2)
    for options in ("", "/;token=s3cr3t", "/;token=s3cr3t;use_ssl=true"):
        with pytest.raises(EngineError) as caught:
            Spark({"visits": TableSource(str(folder), TYPES)}, url=f"sc://127.0.0.1:1{options}")
        assert "Spark at 127.0.0.1:1 does not respond" in str(caught.value)
        assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["spark://h:1", "sc://", "sc://h:x", "sc://h;token=s3cr3t", "sc://u:s3cr3t@h", "h:15002"]
)
def test_a_url_that_cannot_be_read_is_refused_without_showing_it(url):
    for look in (server_url, server_name):
        with pytest.raises(PolicyError, match="Write sc://host:15002") as caught:
            look(url)
        assert "s3cr3t" not in str(caught.value)


def test_the_environment_can_name_the_server(monkeypatch):
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    with pytest.raises(PolicyError, match="no server is configured"):
        server_url(None)
    monkeypatch.setenv("SPARK_REMOTE", "sc://lake.example:443/;use_ssl=true;token=s3cr3t")
    assert server_url(None).endswith("token=s3cr3t")
    assert server_name(server_url(None)) == "Spark at lake.example:443"
    assert server_url("sc://localhost") == "sc://localhost"


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        *(("sc://lake.example", True), ("sc://10.0.0.7:15002", True), ("sc://lake.example/;use_ssl=false", True)),
        *(("sc://lake.example/;use_ssl=true", False), ("sc://lake.example/;token=x", False), ("sc://localhost", False)),
        *(("sc://127.0.0.1:1", False), ("sc://[::1]:1", False), ("sc://[2001:db8::1]:1", True)),
    ],
)
def test_a_connection_that_others_can_read_is_warned_about(url, warned):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        server_url(url)
    assert [("not encrypted" in str(each.message)) for each in caught] == [True] * warned


MANY = 200_000


@pytest.mark.long
def test_many_groups_come_as_they_are(sail, tmp_path):
    groups = pa.table({"unit": np.arange(2 * MANY), "key": np.arange(2 * MANY) % MANY})
    pq.write_table(groups, tmp_path / "t.parquet")
    scan = Scan("t", (Column("unit", N), Column("key", N)), UnitKey((Column("unit", N),)), 2 * MANY)
    asked = Question(
        scan, (("key", Column("key", N)),), SelectedGroups(1), ContributionBounds(1, 1), (SelectionWeight(), Count())
    )
    with Spark({"t": TableSource(str(tmp_path), {"unit": N, "key": N})}, url=sail.url) as engine:
        found = engine.totals(asked)
    assert len(found.keys) == MANY
    assert (found.values == found.values[0]).all()


LEFT_OPEN = """
import sys
from discreet.engines.spark.engine import Spark
from discreet.engines.table_source import TableSource
from discreet.kernel.expr import Type
engine = Spark({"t": TableSource(sys.argv[2], {"patient": Type.INTEGER})}, url=sys.argv[1])
print(engine.query("SELECT COUNT(*) AS n FROM t0").to_pydict())
if len(sys.argv) > 3:
    raise SystemExit(3)
"""


@pytest.mark.long
@pytest.mark.parametrize("more", [[], ["fails"]])
def test_a_process_that_does_not_close_the_engine_exits(sail, folder, more):
    words = [sys.executable, "-c", LEFT_OPEN, sail.url, str(folder), *more]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3 if more else 0, "{'n': [4000]}\n", "")


FORKED = """
import os, sys
from discreet.engines.spark.engine import Spark
from discreet.engines.table_source import TableSource
from discreet.kernel.expr import Type
engine = Spark({"t": TableSource(sys.argv[2], {"patient": Type.INTEGER})}, url=sys.argv[1])
engine.query("SELECT COUNT(*) AS n FROM t0")
child = os.fork()
if not child:
    engine.close()
    sys.exit(7)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(code, engine.query("SELECT COUNT(*) AS n FROM t0").to_pydict())
"""


@pytest.mark.long
def test_a_child_ends_and_leaves_the_session_to_its_parent(sail, folder):
    words = [sys.executable, "-c", FORKED, sail.url, str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout == "7 {'n': [4000]}\n"
