"""Faults of Spark: their messages, how long they take, and their effect on other questions."""

import logging
import os
import signal
import socket
import threading
import traceback
from concurrent import futures
from contextlib import contextmanager

import grpc
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engines.spark import connection
from discreet.engines.spark import engine as module
from discreet.engines.spark import session as spark_session
from discreet.engines.spark.engine import Spark
from discreet.engines.spark.vector_sums import check_workers
from discreet.engines.table_source import EngineError, TableSource, Unavailable
from discreet.kernel.expr import Column, Type
from discreet.kernel.model_release import Combine, PartialSum
from discreet.kernel.relation import Scan, UnitKey
from tests.engines.spark_servers import sail_at, shared
from tests.servers.spark import session

N, R = Type.INTEGER, Type.REAL
SCAN = Scan("t", (Column("who", N), Column("x", R)), UnitKey((Column("who", N),)), 1000)
BOUNDS = ((0.0, 100.0),)
COUNT = "SELECT COUNT(*) AS n FROM t0"


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    place = tmp_path_factory.mktemp("rows") / "t.parquet"
    pq.write_table(pa.table({"who": [1, 1, 2], "x": [3.0, 4.0, 50.0]}), place)
    return {"t": TableSource(str(place), {"who": N, "x": R})}


def part():
    """Return what adds up numbers, and counts rows; its rule has no module, so that it is sent."""

    def rule(rows, public):
        return np.column_stack([rows, np.ones(len(rows))])

    low, high = np.array([0.0]), np.array([100.0])
    return PartialSum(rule, (), low, high, grouped=True, size=2, width=2, steps=1.0, l1=True, combine=Combine.SUM)


SUM = [57, 3]


@pytest.mark.long
def test_two_fits_keep_their_own_rows(sail, sources):
    with Spark(sources, url=sail.url) as engine, engine.cached_rows(SCAN, ("x",)) as first:
        with engine.cached_rows(SCAN, ("x",)) as second:
            assert second(part(), BOUNDS).tolist() == SUM
        assert first(part(), BOUNDS).tolist() == SUM


@pytest.mark.long
def test_a_failed_question_does_not_affect_the_rows_of_a_fit(sail, sources):
    with Spark(sources, url=sail.url) as engine, engine.cached_rows(SCAN, ("x",)) as sums:
        assert sums(part(), BOUNDS).tolist() == SUM
        before = engine._session._spark
        with pytest.raises(EngineError):
            engine.query("SELECT nothing")
        assert [sums(part(), BOUNDS).tolist() for _ in range(2)] == [SUM] * 2
        assert engine._session._spark is not before


@pytest.fixture
def stopped():
    """Give a server, and what makes it hang."""
    server = sail_at()

    def send(number):
        for each in server.processes():
            os.kill(each, number)

    try:
        yield server, lambda: send(signal.SIGSTOP)
    finally:
        send(signal.SIGCONT)
        server.stop()


@pytest.mark.long
def test_a_server_that_hangs_when_a_fit_ends_blocks_nobody(stopped, sources, monkeypatch):
    monkeypatch.setattr(spark_session, "_CLEAN_UP_TIMEOUT", 0.5)
    monkeypatch.setattr(spark_session, "_MAX_INTERRUPTS", 1)
    server, hang = stopped
    engine = Spark(sources, url=server.url)

    def fit():
        with engine.cached_rows(SCAN, ("x",)) as sums:
            sums(part(), BOUNDS)
            hang()

    fitting = threading.Thread(target=fit, daemon=True)
    fitting.start()
    fitting.join(240)  # which nothing but a real hang reaches
    assert not fitting.is_alive()
    monkeypatch.setattr(module, "_OPEN_TIMEOUT", 0.5)
    with pytest.raises(Unavailable) as away:
        engine.query(COUNT)
    assert "time limit of 0.5 seconds" in away.value.reason
    engine.close()


def test_an_unresponsive_address_is_reported_soon(sources, monkeypatch):
    monkeypatch.setattr(spark_session, "_FIRST_REPLY_TIMEOUT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(EngineError, match=f"Spark at 127.0.0.1:{port} does not respond. Check the address"):
            Spark(sources, url=f"sc://127.0.0.1:{port}")


@contextmanager
def echoing():
    """Serve somebody who admits nobody, and quotes what he was shown."""

    class Echo(grpc.GenericRpcHandler):
        def service(self, details):
            shown = " ".join(value for _, value in details.invocation_metadata if isinstance(value, str))

            def refuse(_, context):
                context.abort(grpc.StatusCode.UNAUTHENTICATED, f"who is {shown}?")

            streams = details.method.endswith("ExecutePlan")
            return (grpc.unary_stream_rpc_method_handler if streams else grpc.unary_unary_rpc_method_handler)(refuse)

    with futures.ThreadPoolExecutor(4) as threads:
        server = grpc.server(threads)
        server.add_generic_rpc_handlers((Echo(),))
        ports = [
            server.add_secure_port("127.0.0.1:0", grpc.local_server_credentials()),
            server.add_insecure_port("127.0.0.1:0"),
        ]
        server.start()
        try:
            yield ports
        finally:
            server.stop(0).wait()


@pytest.mark.parametrize("option", ["token=S3CRETa", "token=S3CRET%2Bb", "x-api-key=S3CRETk"])
def test_no_secret_of_the_address_is_in_an_error_or_what_it_comes_from(sources, option):
    with echoing() as (local, plain):
        host = f"localhost:{local}" if option.startswith("token") else f"127.0.0.1:{plain}"
        with pytest.raises(EngineError) as caught:
            Spark(sources, url=f"sc://{host}/;{option}")
    assert f"Spark at {host} denied access. Check the token in SPARK_REMOTE." in str(caught.value)
    assert "S3CRET" not in "".join(traceback.format_exception(caught.value))


def test_no_value_of_a_row_is_in_an_error_or_what_it_comes_from(sail, caplog):
    shared(sail.url, touchy="SELECT CASE WHEN id >= 0 THEN raise_error('ALICE-HIV') END AS x FROM range(3)")
    with Spark({"t": TableSource("global_temp.touchy", {"x": Type.TEXT})}, url=sail.url) as engine:
        try:
            engine.query("SELECT x FROM t0")
        except EngineError as error:
            logging.getLogger("discreet").exception("failed")
            said = "".join(traceback.format_exception(error))
    for text in (said, caplog.text):
        assert "the engine failed" in text
        assert "ALICE" not in text


def test_an_internal_error_is_reported_by_its_location_only(sail, sources):
    with Spark(sources, url=sail.url) as engine:
        with (
            pytest.raises(EngineError, match=r"KeyError at test_spark_faults\.py, line \d+") as caught,
            engine.question_session({}),
        ):
            raise KeyError("ALICE-HIV")
        assert "ALICE" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.long
def test_a_lost_server_is_not_mistaken_for_failing_workers(monkeypatch):
    monkeypatch.setattr(connection, "_RETRY_TIMEOUT", 0.2)
    server = sail_at()
    try:
        with session(server.url) as spark:
            spark.client.set_retry_policies([])
            assert check_workers(spark)
            server.kill()
            with pytest.raises(Exception, match="UNAVAILABLE"):
                check_workers(spark)
    finally:
        server.stop()


def test_the_clients_loggers_do_not_print_server_messages(sources, sail):
    from pyspark.logger import PySparkLogger

    with Spark(sources, url=sail.url):
        for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
            assert not PySparkLogger.getLogger(name).isEnabledFor(logging.CRITICAL)


def test_undocumented_client_attributes_that_are_used_exist(sail):
    """Streams of Arrow, ending calls, and trying again are not in its documentation: a new version may lose them."""
    from pyspark.sql.connect.client import retries

    with session(sail.url) as spark:
        client, frame = spark.client, spark.range(1)
        for owner, names in (
            (client, ("to_table_as_iterator", "set_retry_policies", "close", "_closed")),
            (frame, ("_plan",)),
            (frame._plan, ("to_proto", "observations")),
            (retries, ("DefaultPolicy", "RetryPolicyState")),
        ):
            assert [name for name in names if not hasattr(owner, name)] == [], "pyspark-client has changed"
