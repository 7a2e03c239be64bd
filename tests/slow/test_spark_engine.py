"""Spark itself as the engine, in one process and on a cluster: the totals of DuckDB, whatever is set or dies."""

import json
import logging
import subprocess
import sys
import threading
import time
import warnings
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.engines.interface import Tuning
from discreet.engines.spark.connection import SETTINGS
from discreet.engines.spark.engine import Spark
from discreet.engines.table_source import EngineError, TableSource, Unavailable
from discreet.kernel.errors import FAILED, PolicyError
from discreet.kernel.expr import Type
from discreet.policy import Policy
from tests.engines.spark_servers import FOREVER
from tests.engines.spark_shop import QUESTIONS, exact, here, tables, text, written
from tests.engines.spark_values import STORED, differences, write
from tests.servers.spark import no_spark, session, spark_cluster, spark_local

pytestmark = [pytest.mark.slow, pytest.mark.skipif(no_spark() is not None, reason=str(no_spark()))]
N, R, X, D, S = Type.INTEGER, Type.REAL, Type.TEXT, Type.DATE, Type.TIMESTAMP
ROWS = 100_000
OTHERWISE = {  # what an administrator might have set, and we must not depend on
    "spark__sql__ansi__enabled": "false",
    "spark__sql__ansi__doubleQuotedIdentifiers": "true",
    "spark__sql__caseSensitive": "true",
    "spark__sql__legacy__timeParserPolicy": "LEGACY",
    "spark__sql__parquet__datetimeRebaseModeInRead": "LEGACY",
    "spark__sql__parquet__inferTimestampNTZ__enabled": "false",
    "spark__sql__parquet__int96RebaseModeInRead": "LEGACY",
    "spark__sql__parquet__respectSummaryFiles": "true",
    "spark__sql__parser__escapedStringLiterals": "true",
    "spark__sql__parser__quotedRegexColumnNames": "true",
    "spark__sql__session__timeZone": "America/St_Johns",
}


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    return written(tmp_path_factory.mktemp("shop"), ROWS)


@pytest.fixture(scope="module")
def other():
    """Give the same data and policy in DuckDB."""
    with dc.open(here(), data=tables(ROWS)) as found:
        yield found


@pytest.fixture(scope="module")
def local():
    with spark_local(**OTHERWISE) as server:
        yield server


@pytest.fixture(scope="module")
def cluster():
    with spark_cluster(workers=2) as server:
        yield server


@pytest.fixture(params=["local", "cluster"])
def server(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize(("server", "count"), [("local", len(QUESTIONS)), ("cluster", 5)], indirect=["server"])
def test_the_same_policy_gives_the_same_exact_totals(server, count, places, other):
    with dc.open(Policy.parse(text(server.url, places))) as curator:
        for sql in QUESTIONS[:count]:
            found = exact(curator, sql)
            assert found == exact(other, sql), sql
            assert any(each or any(cells) for each, cells in found)


def test_answers_are_accurate_and_charged(server, places, other):
    with dc.open(Policy.parse(text(server.url, places))) as curator:
        answers = [each.ask(QUESTIONS[2], epsilon=20) for each in (curator, other)]
        for name in ("n", "s"):
            (margin,) = set(answers[0].margins[name])
            for mine, theirs in zip(*(answer.table.column(name).to_pylist() for answer in answers), strict=True):
                assert abs(mine - theirs) < 5 * margin
        assert curator.budget().spent.rho > 0


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_every_value_equals_that_of_duckdb(local, tmp_path, zone):
    assert differences(local.url, write(tmp_path / "t.parquet", STORED), list(STORED), zone) == []


def test_the_session_is_set_whatever_the_server_has(local, tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "t.parquet")
    with Spark({"t": TableSource(str(tmp_path), {"a": N})}, url=local.url) as engine:
        ours = engine._session._spark
        assert {name: ours.conf.get(name) for name in SETTINGS} == SETTINGS
    with session(local.url) as theirs:
        assert theirs.conf.get("spark.sql.ansi.enabled") == "false"


def refused(url, place, **types):
    """Return why queries that use a table are refused; opening it only warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = Spark({"t": TableSource(place, types)}, url=url)
    with engine, pytest.raises(PolicyError) as caught:
        engine.fanout("t", tuple(types))
    return str(caught.value)


def shown(url, place, **types):
    with Spark({"t": TableSource(place, types)}, url=url) as engine:
        return sorted(engine.query("SELECT * FROM t0").to_pylist(), key=str)


def test_texts_that_are_not_utf8_are_null(local, tmp_path):
    broken = pa.array([b"a", b"b\xffc", None, b"\xed\xa0\x80"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"i": range(4), "x": broken}), tmp_path / "t.parquet")
    found = [row["x"] for row in shown(local.url, str(tmp_path), i=N, x=X)]
    assert found == ["a", None, None, None]
    assert [row["x"] for row in shown(local.url, str(tmp_path), i=N, x=N)] == [None] * 4


def test_files_written_by_spark_are_read(local, tmp_path):
    """Old times too, which it once wrote by another calendar, as INT96 among others."""
    path = str(tmp_path / "own")
    with session(local.url) as spark:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        for kind in ("INT96", "TIMESTAMP_MICROS"):
            spark.conf.set("spark.sql.parquet.outputTimestampType", kind)
            frame = spark.sql(
                "SELECT DATE'0001-01-01' AS d, CAST('0001-01-01 00:00:00' AS TIMESTAMP_LTZ) AS z, "
                "CAST('1500-02-28 10:00:00' AS TIMESTAMP_NTZ) AS s, CAST('x' AS VARCHAR(9)) AS v"
            )
            frame.write.mode("append").parquet(path)
    row = {"d": date(1, 1, 1), "z": datetime(1, 1, 1), "s": datetime(1500, 2, 28, 10), "v": "x"}
    assert shown(local.url, path, d=D, z=S, s=S, v=X) == [row] * 2


CATALOG = """
CREATE SCHEMA IF NOT EXISTS clinic;
CREATE TABLE clinic.visits USING parquet AS SELECT id AS patient, id % 3 AS ward FROM range(10);
CREATE TABLE clinic.parts (patient BIGINT, year STRING) USING parquet PARTITIONED BY (year);
INSERT INTO clinic.parts VALUES (1, '2025'), (2, '2026'), (3, NULL);
CREATE VIEW clinic.seen AS SELECT patient, ward FROM clinic.visits WHERE patient < 5;
CREATE TABLE clinic.odd (`a ``b`` ${env:HOME}` BIGINT, c CHAR(4), v VARCHAR(4)) USING parquet;
INSERT INTO clinic.odd VALUES (1, 'x', 'x ');
CREATE TABLE clinic.rows_by_column USING orc AS SELECT 1 AS a;
CREATE TABLE clinic.folded (t STRING COLLATE UTF8_LCASE) USING parquet;
INSERT INTO clinic.folded VALUES ('A'), ('a'), ('B');
CREATE VIEW clinic.touchy AS SELECT patient, assert_true(patient < 0) AS ward FROM clinic.visits
"""


@pytest.fixture(scope="module")
def catalog(local):
    with session(local.url) as spark:
        spark.conf.set("spark.sql.variable.substitute", "false")
        for statement in CATALOG.split(";"):
            spark.sql(statement).toArrow()
    return local.url


def test_tables_and_views_of_the_catalog_are_sources(catalog):
    for place, count in (("clinic.visits", 10), ("clinic.seen", 5), ("spark_catalog.clinic.visits", 10)):
        assert len(shown(catalog, place, patient=N)) == count
    assert shown(catalog, "clinic.parts", patient=N, year=N) == [
        {"patient": 1, "year": 2025},
        {"patient": 2, "year": 2026},
        {"patient": 3, "year": None},
    ]
    odd = "a `b` ${env:HOME}"
    assert shown(catalog, "clinic.odd", **{odd: N, "c": X, "v": X}) == [{odd: 1, "c": "x   ", "v": "x "}]
    assert shown(catalog, "clinic.`rows_by_column`", a=N) == [{"a": 1}]
    assert "does not exist in Spark" in refused(catalog, "clinic.visit", patient=N)
    assert "is not a name" in refused(catalog, "clinic.visits; DROP", patient=N)
    assert 'The source has "patient"' in refused(catalog, "clinic.touchy", patients=N)


def test_texts_that_a_collation_treats_as_equal_are_distinct(catalog):
    with Spark({"t": TableSource("clinic.folded", {"t": X})}, url=catalog) as engine:
        assert engine.values("t", "t") == ["A", "B", "a"]
        assert engine.fanout("t", ("t",)) == 1


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ([{"A": [1], "b": [1]}, {"A": ["x"], "b": [1]}], "store a column with different types"),
        ([{"a": np.array([1.5], np.float16)}], "a type that Spark does not support"),
    ],
)
def test_files_that_spark_cannot_read_are_refused(local, tmp_path, columns, words):
    for place, each in enumerate(columns):
        pq.write_table(pa.table(each), tmp_path / f"{place}.parquet")
    with pytest.raises(PolicyError, match=words):
        shown(local.url, str(tmp_path), b=N)


def test_folders_that_spark_would_read_in_part_are_refused(local, tmp_path):
    def stored(*paths):
        for path in paths:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({"who": [1, 2], "x": [1, 2]}), tmp_path / path)
        return str((tmp_path / paths[0]).relative_to(tmp_path)).partition("/")[0]

    beside = stored("beside/a.parquet", "beside/year=2/a.parquet")
    below = stored("below/a.parquet", "below/more/a.parquet")
    for name, missed in ((beside, "beside/a.parquet"), (below, "below/more/a.parquet")):
        with pytest.raises(PolicyError, match=f'table t: Spark leaves out ".*/{missed}".* Move all files to one level'):
            shown(local.url, str(tmp_path / name), who=N)
    with pytest.raises(PolicyError, match="no Parquet file directly in"):
        shown(local.url, str(tmp_path / stored("deep/more/a.parquet")), who=N)
    with pytest.raises(PolicyError, match="named after different columns"):
        shown(local.url, str(tmp_path / stored("uneven/y=1/a.parquet", "uneven/y=1/m=1/a.parquet")), who=N)
    for path in ("places/who=7/a.parquet", "capitals/WHO=7/a.parquet"):
        place = tmp_path / stored(path)
        with pytest.raises(PolicyError, match=r"column who: folders have its name \(who=…\).* Rename the folders"):
            shown(local.url, str(place), x=N)
        assert len(shown(local.url, f"{place}/*/*.parquet", who=N)) == 2
    assert len(shown(local.url, str(tmp_path / stored("fine/length=1/a.parquet", "fine/length=2/a.parquet")), x=N)) == 4


def test_a_broken_file_among_others_is_named(local, tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    for broken in (b"", (tmp_path / "1.parquet").read_bytes()[:-9]):
        (tmp_path / "2.parquet").write_bytes(broken)
        with pytest.raises(
            PolicyError, match=r"table t: file:.*/2\.parquet cannot be read\. Check that it is complete"
        ):
            shown(local.url, str(tmp_path), a=N)


def test_times_of_day_are_refused_by_name(local, tmp_path):
    pq.write_table(pa.table({"a": [1], "t": pa.array([1]).cast(pa.time64("us"))}), tmp_path / "t.parquet")
    with pytest.raises(PolicyError, match="a column has times of day"):
        shown(local.url, str(tmp_path), a=N)


def test_no_value_of_a_row_is_in_the_log(local, caplog):
    with session(local.url) as spark:
        spark.conf.set("spark.sql.ansi.enabled", "true")
        rows = "SELECT id AS who, CAST(IF(id = 2, 'ALICE-HIV', '7') AS INT) AS age FROM range(3)"
        spark.sql(f"CREATE OR REPLACE GLOBAL TEMP VIEW people AS {rows}").toArrow()
    with Spark({"t": TableSource("global_temp.people", {"age": N})}, url=local.url) as engine:
        try:
            engine.query("SELECT SUM(age) AS n FROM t0")
        except EngineError:
            logging.getLogger("discreet").exception("failed")
    assert "the engine failed: CAST_INVALID_INPUT, SQLSTATE 22018" in caplog.text
    assert "ALICE" not in caplog.text


def test_files_need_not_have_all_columns_and_folders_names_are_texts(local, tmp_path):
    for year, columns in (("2025", {"a": [1]}), ("2026", {"b": [2], "a": [2]})):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(pa.table(columns), tmp_path / f"year={year}" / "t.parquet")
    assert shown(local.url, str(tmp_path), a=N, b=N, year=N) == [
        {"a": 1, "b": None, "year": 2025},
        {"a": 2, "b": 2, "year": 2026},
    ]
    with Spark({"t": TableSource(str(tmp_path))}, url=local.url) as engine:
        assert engine.columns("t") == {"a": N, "b": N, "year": X}


def test_two_columns_that_differ_by_case_are_refused(local, tmp_path):
    pq.write_table(pa.table([[1], [2]], names=["A", "a"]), tmp_path / "t.parquet")
    with pytest.raises(PolicyError, match="names differ only in case"):
        shown(local.url, str(tmp_path), a=N)


def test_times_in_nanoseconds_hide_no_other_column(local, tmp_path):
    pq.write_table(pa.table({"a": [1], "t": pa.array([1], pa.timestamp("ns"))}), tmp_path / "t.parquet")
    assert shown(local.url, str(tmp_path), a=N) == [{"a": 1}]
    assert "column t: cannot cast bigint to timestamp" in refused(local.url, str(tmp_path), t=S)


def test_a_file_that_changes_after_the_engine_was_opened_invalidates_answers(local, tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    with Spark({"t": TableSource(str(tmp_path), {"a": N})}, url=local.url) as engine:
        assert engine.query("SELECT COUNT(*) AS n FROM t0").to_pydict() == {"n": [1]}
        time.sleep(0.01)  # Spark tells milliseconds
        pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
        with pytest.raises(Unavailable, match="Nothing was charged") as changed:
            engine.query("SELECT COUNT(*) AS n FROM t0")
        assert "was changed, added or removed" in changed.value.reason


def test_a_question_that_takes_too_long_is_stopped_and_the_next_is_answered(server, places):
    with session(server.url) as spark:
        spark.sql(
            "CREATE OR REPLACE GLOBAL TEMP VIEW endless AS SELECT x AS customer, '' AS city, '' AS street, "
            f"1D AS amount, 1 AS pieces, true AS paid, CAST(NULL AS TIMESTAMP_LTZ) AS time FROM ({FOREVER})"
        ).toArrow()
    slow = Policy.parse(text(server.url, {**places, "sales": "global_temp.endless", "lines": places["lines"]}))
    with dc.open(slow, tuning=Tuning(seconds=5)) as curator:
        began = time.monotonic()
        with pytest.raises(dc.Failed):
            curator.ask("SELECT COUNT(*) AS n FROM sales", by="ana", epsilon=1)
        assert time.monotonic() - began < 30
    with dc.open(Policy.parse(text(server.url, places))) as curator:
        assert curator.ask("SELECT COUNT(*) AS n FROM sales", epsilon=1).value is not None


def test_an_executor_that_dies_changes_no_total(cluster, places, other):
    """Spark computes anew what was lost; the integers are the same."""
    with dc.open(Policy.parse(text(cluster.url, places)), tuning=Tuning(totals_cache=0)) as curator:
        killed = []

        def kill():
            ids = cluster.processes("CoarseGrainedExecutorBackend")
            killed.extend(cluster.kill(f"--executor-id {len(killed)}") or ids[:0])

        timer = threading.Timer(0.5, kill)
        timer.start()
        for sql in QUESTIONS[:4]:
            assert exact(curator, sql) == exact(other, sql)
        timer.join()
        assert killed
        assert exact(curator, QUESTIONS[4]) == exact(other, QUESTIONS[4])


def test_executors_without_memory_fail_a_question_and_the_next_is_answered(cluster, places):
    with session(cluster.url) as spark:
        spark.sql(
            "CREATE OR REPLACE GLOBAL TEMP VIEW hog AS SELECT id AS customer, CAST('' AS STRING) AS city, "
            "substring(repeat(concat('x', CAST(id AS STRING)), 1000000000), 1, 3) AS street, 1D AS amount, "
            "1 AS pieces, true AS paid, CAST(NULL AS TIMESTAMP_LTZ) AS time FROM range(100)"
        ).toArrow()
    with dc.open(Policy.parse(text(cluster.url, {**places, "sales": "global_temp.hog"}))) as curator:
        before = curator.budget().spent.rho
        with pytest.raises(dc.Failed) as caught:
            curator.ask("SELECT COUNT(*) AS n FROM sales WHERE street = 'x'", by="ana", epsilon=1)
        assert str(caught.value) == FAILED
        assert curator.budget().spent.rho > before
        assert curator.ask("SELECT COUNT(*) AS n FROM sales", by="ana", epsilon=1).value is not None


def test_a_server_that_is_started_again_fails_one_question_at_most(places, other):
    server = spark_local()
    port = server.url.rpartition(":")[2]
    try:
        with dc.open(Policy.parse(text(server.url, places)), tuning=Tuning(totals_cache=0)) as curator:
            wanted = exact(other, QUESTIONS[0])
            assert exact(curator, QUESTIONS[0]) == wanted
            server.stop()
            with pytest.raises(dc.Refused, match="Nothing was charged"):
                curator.ask("SELECT COUNT(*) AS n FROM sales", by="ana", epsilon=1)
            server = spark_local(spark__connect__grpc__binding__port=port)
            assert exact(curator, QUESTIONS[0]) == wanted
            timer = threading.Timer(1, server.kill)
            timer.start()
            with pytest.raises(EngineError, match=r"does not respond|not available at the moment"):
                curator._engine.query(FOREVER)
            timer.join()
            server.stop()
            server = spark_local(spark__connect__grpc__binding__port=port)
            assert exact(curator, QUESTIONS[0]) == wanted
    finally:
        server.stop()


MEASURE = """
import json, resource, sys
import numpy as np
from discreet.engines.interface import Tuning
from discreet.engines.spark.engine import Spark
from discreet.engines.table_source import TableSource
from discreet.kernel.expr import Column, Type
from discreet.kernel.question import ContributionBounds, Question, SelectedGroups
from discreet.kernel.totals import Count, CountUnits, SelectionWeight
from discreet.kernel.relation import Scan, UnitKey
N = Type.INTEGER
scan = Scan("t", (Column("unit", N), Column("key", N)), UnitKey((Column("unit", N),)), 10**9)
by = (("key", Column("key", N)),)
asked = Question(scan, by, SelectedGroups(3), ContributionBounds(3, 3), (SelectionWeight(), Count()))
source = TableSource(sys.argv[2], {"unit": N, "key": N})
with Spark({"t": source}, url=sys.argv[1], tuning=Tuning(totals_cache=0)) as engine:
    groups = len(engine.totals(asked).keys)
    first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rows = sum(len(places) for _, places in engine.batches(scan, ("key",), 10_000)) if sys.argv[3:] else 0
print(json.dumps([groups, first, rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


def measured(url, place, *more):
    command = [sys.executable, "-c", MEASURE, url, place, *more]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout)


def test_memory_here_does_not_grow_with_the_rows(local, tmp_path):
    with session(local.url) as spark:
        for name, rows in (("few", 20_000), ("many", 5_000_000)):
            made = spark.sql(f"SELECT id % 200000 AS unit, id % 1000 AS key FROM range({rows})")
            made.write.parquet(str(tmp_path / name))
    few, many = measured(local.url, str(tmp_path / "few")), measured(local.url, str(tmp_path / "many"), "rows")
    assert few[0] == many[0] == 1000
    assert many[1] < few[1] + 20_000  # kilobytes, of which the rows would take 80,000
    assert many[2] == 5_000_000
    assert many[3] < many[1] + 40_000
