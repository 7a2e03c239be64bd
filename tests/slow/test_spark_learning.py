"""Models on Spark itself, in one process and on a cluster: the same bits, with one shuffle, whatever dies meanwhile."""

import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

from discreet.engines.row_sums import sum_rows
from discreet.engines.spark.vector_sums import SparkRows
from discreet.kernel.errors import FAILED, Failed
from discreet.kernel.mechanism import Laplace
from discreet.kernel.reservation import CLIP_RADIUS, reserve
from tests.learn.spark_tables import ENDS, MODELS, Here, There, crowd, learned, seeded
from tests.servers.spark import no_spark, session, spark_cluster, spark_local

pytestmark = [pytest.mark.slow, pytest.mark.skipif(no_spark() is not None, reason=str(no_spark()))]
CROWD = crowd(rows=30_000, people=6000, seed=3)


@pytest.fixture(scope="module")
def spark():
    with spark_local(spark__sql__shuffle__partitions="16") as server, session(server.url) as opened:
        yield opened


@pytest.mark.parametrize("name", MODELS)
def test_a_model_learns_the_same_on_spark_to_the_last_bit(name, spark, monkeypatch):
    begin = seeded(monkeypatch)
    begin()
    here = MODELS[name]().fit_rows(Here(CROWD, name))
    begin()
    rows = There(CROWD, name, spark, spread=lambda frame: frame.repartition(5))
    with rows.rows.persisted():
        there = MODELS[name]().fit_rows(rows)
    assert learned(there) == learned(here)
    assert rows.passes > 0


@pytest.mark.parametrize("name", ["whitened", "linear"])
def test_where_every_row_is_a_unit_it_is_the_same(name, spark, monkeypatch):
    begin = seeded(monkeypatch)
    begin()
    here = MODELS[name]().fit_rows(Here(CROWD, name, grouped=False))
    begin()
    there = MODELS[name]().fit_rows(There(CROWD, name, spark, grouped=False, spread=lambda frame: frame.repartition(5)))
    assert learned(there) == learned(here)


def test_rows_are_shuffled_once_and_then_kept(spark, tmp_path):
    pq.write_table(CROWD, tmp_path / "visits.parquet", row_group_size=5000)
    frame = spark.read.parquet(str(tmp_path / "visits.parquet"))
    rows = SparkRows(frame.select("person", "x", "y"), units=1, numbers=2)
    assert rows._rows._explain_string().count("Exchange") == 1
    with rows.persisted():
        assert rows._rows.storageLevel.useMemory
        assert (
            "InMemoryTableScan" in rows._rows.mapInArrow(lambda batches: batches, rows._rows.schema)._explain_string()
        )
    assert not rows._rows.storageLevel.useMemory
    alone = SparkRows(frame.select("x", "y"), units=0, numbers=2)
    assert "Exchange" not in alone._rows._explain_string()


def picky(rows, public):
    if (rows == 7.25).any():
        raise ZeroDivisionError("a secret: somebody has 7.25")
    return rows


def test_a_failing_worker_discloses_nothing(spark):
    from pyspark import cloudpickle

    class Failing(There):
        (low, high), grouped = np.array([ENDS["x"], ENDS["y"]]).T, True

    column = CROWD["x"].to_numpy().copy()
    column[17] = 7.25
    table = CROWD.set_column(1, "x", [column])
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        with pytest.raises(Failed) as failed:
            sum_rows(
                Failing(table, "pca", spark), picky, (), size=2, radius=1, reservation=reserve([Laplace(CLIP_RADIUS)])
            )
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    assert str(failed.value) == FAILED
    assert failed.value.__context__ is None


VICTIMS = {1: "CoarseGrainedExecutorBackend", 2: "pyspark.daemon"}  # after which pass


def test_executors_that_die_between_passes_do_not_change_the_model(monkeypatch):
    """Executors, and the workers of the next ones: what is lost is computed anew, and adds up to the same integers."""
    begin = seeded(monkeypatch)
    begin()
    here = MODELS["linear"]().fit_rows(Here(CROWD, "linear"))

    class Dying(There):
        def sum_units(self, part):
            found = super().sum_units(part)
            if self.passes in VICTIMS:
                killed.append(server.kill(VICTIMS[self.passes]))
            return found

    killed = []
    with spark_cluster(spark__sql__shuffle__partitions="8") as server, session(server.url) as opened:
        rows = Dying(CROWD, "linear", opened, spread=lambda frame: frame.repartition(5))
        begin()
        with rows.rows.persisted():
            there = MODELS["linear"]().fit_rows(rows)
    assert [bool(each) for each in killed] == [True, True]
    assert rows.passes == 3
    assert learned(there) == learned(here)
