"""Models fit on Spark exactly as they do locally; rows stay on Spark, and only integers are returned."""

import logging
import subprocess
import sys
from contextlib import contextmanager
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.curator.fit import fit_on_query
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.row_sums import batch_rows, sum_rows, whole_units
from discreet.engines.spark import vector_sums
from discreet.engines.spark.engine import Spark
from discreet.engines.spark.vector_sums import SparkRows
from discreet.engines.table_source import TableSource
from discreet.kernel.errors import FAILED, Failed, Refused
from discreet.kernel.expr import Type
from discreet.kernel.loss import Budget
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.model_release import Combine, PartialSum
from discreet.kernel.reservation import CLIP_RADIUS, reserve
from discreet.learn import Recommender, StandardScaler
from discreet.learn.fit_session import _cell_entries
from discreet.learn.mixture.marginals import marginal_cells
from discreet.ledger_sqlite import memory_ledger
from discreet.policy import Policy
from tests.learn.spark_tables import ENDS, MODELS, TARGETS, Here, There, crowd, learned, seeded
from tests.servers.spark import session

CROWD = crowd()
each_model = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(scope="module")
def spark(sail):
    with session(sail.url) as opened:
        yield opened


@pytest.mark.long(only=["dp-em", "whitened", "whitened-laplace"])
@each_model
def test_a_model_learns_the_same_on_spark_to_the_last_bit(name, spark, monkeypatch):
    begin = seeded(monkeypatch)
    begin()
    here = MODELS[name]().fit_rows(Here(CROWD, name))
    begin()
    rows = There(CROWD, name, spark, spread=lambda frame: frame.repartition(3))
    there = MODELS[name]().fit_rows(rows)
    assert learned(there) == learned(here)
    assert rows.passes > 0


@pytest.mark.long(only=["whitened"])
@pytest.mark.parametrize("name", ["whitened", "kmeans", "logistic"])
def test_where_every_row_is_a_unit_it_is_the_same(name, spark, monkeypatch):
    begin = seeded(monkeypatch)
    begin()
    here = MODELS[name]().fit_rows(Here(CROWD, name, grouped=False))
    begin()
    there = MODELS[name]().fit_rows(There(CROWD, name, spark, grouped=False, spread=lambda frame: frame.repartition(3)))
    assert learned(there) == learned(here)


def test_other_rows_give_another_model(spark, monkeypatch):
    """So that the tests above could fail."""
    begin = seeded(monkeypatch)
    begin()
    here = MODELS["scaler"]().fit_rows(Here(CROWD, "scaler"))
    begin()
    assert learned(MODELS["scaler"]().fit_rows(There(CROWD.slice(1), "scaler", spark))) != learned(here)


LOW, HIGH = np.array([ENDS["x"], ENDS["y"]]).T
LAPLACE = Laplace(CLIP_RADIUS)


def spread_out(rows, public):
    x, y = rows[:, 0], rows[:, 1]
    return np.array([x, y, x * y, np.exp(x / 9), np.ones(len(rows))]).T


def equal_cells(side):
    """The edges of tables of single columns, and these columns."""
    return np.linspace(LOW, HIGH, side + 1, axis=1), ((0,), (1,))


def entries(rows, public):
    return np.clip(rows * 3 + 30, 0, 70).astype(np.int64), rows * 0.1


class Seen(dict):
    """The parts that the kernel makes of sums, instead of their results."""

    low, high = LOW, HIGH

    def __init__(self, *, grouped=True):
        self.grouped = grouped
        vector = {"size": 5, "radius": 20}
        self.note("mean", spread_out, **vector, noise=Gaussian(CLIP_RADIUS))
        self.note("sum", spread_out, **vector, noise=Laplace(CLIP_RADIUS), combine=Combine.SUM)
        self.note("histograms", _cell_entries, (marginal_cells, 2, *equal_cells(16)), size=2 * 16, radius=2)
        self.note("long", _cell_entries, (marginal_cells, 2, *equal_cells(1 << 14)), size=2 << 14, radius=2)
        self.note("sparse", entries, size=70, radius=2, noise=Gaussian(CLIP_RADIUS), combine=Combine.SUM)

    def note(self, name, rule, public=(), *, noise=LAPLACE, **settings):
        self.name = name
        sum_rows(self, rule, public, reservation=reserve([noise]), **settings)

    def sum_units(self, part):
        self[self.name] = part
        return np.zeros(part.size, np.int64)


@pytest.fixture(autouse=True)
def rules_of_tests_are_sent(spark):
    """Rules are Discreet's own, and go by value; those of this module must do so as well."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def sums_on(spark, part, table=CROWD, *, grouped=True, spread=lambda frame: frame):
    names = ["person", "x", "y"] if grouped else ["x", "y"]
    frame = spread(spark.createDataFrame(table)).select(*names)
    return SparkRows(frame, units=int(grouped), numbers=2).sums(part, [ENDS["x"], ENDS["y"]])


def sums_here(part, table=CROWD, *, grouped=True):
    return part(whole_units(Here(table, "pca", grouped=grouped).batches(batch_rows(part))))


@pytest.mark.parametrize("grouped", [True, False], ids=["people", "rows"])
@pytest.mark.parametrize("name", Seen())
def test_order_and_partitions_do_not_change_the_integers(name, grouped, spark):
    part = Seen(grouped=grouped)[name]
    here = sums_here(part, grouped=grouped)
    assert here.any()
    rng = np.random.default_rng(5)
    for count in (1, 2, 7):
        mixed = CROWD.take(rng.permutation(len(CROWD)))
        found = sums_on(spark, part, mixed, grouped=grouped, spread=lambda frame, count=count: frame.repartition(count))
        assert found.dtype == np.int64
        assert found.tolist() == here.tolist()
    assert (
        sums_on(spark, part, spread=lambda frame: frame.repartition(3, "y"), grouped=grouped).tolist() == here.tolist()
    )


@pytest.mark.parametrize("own", [(-2.0, 2.0), (-20.0, 20.0)], ids=["narrower", "wider"])
def test_numbers_are_clamped_to_the_ranges_of_the_policy_and_of_the_model(own, spark, monkeypatch):
    begin = seeded(monkeypatch)
    begin()
    here = StandardScaler(epsilon=4, bounds=own).fit_rows(Here(CROWD, "scaler"))
    begin()
    assert learned(StandardScaler(epsilon=4, bounds=own).fit_rows(There(CROWD, "scaler", spark))) == learned(here)


def test_no_rows_add_up_to_nothing(spark):
    for name, part in Seen().items():
        nobody = sums_on(spark, part, spread=lambda frame: frame.repartition(3).where("x > 1e9"))
        assert nobody.tolist() == [0] * part.size, name


def test_numbers_of_all_types_are_the_same_there(spark):
    whole = [0, 1, -1, 2**53 + 1, 2**62 + 1, -(2**63)]
    table = pa.table(
        {
            "person": pa.array(range(6), pa.int32()),
            "long": pa.array(whole, pa.int64()),
            "flag": pa.array([True, False, True, True, False, False]),
            "exact": pa.array([Decimal("0.1"), Decimal("-12.25"), *[Decimal(7)] * 4], pa.decimal128(9, 2)),
        }
    )
    low, high = np.full(3, -1e19), np.full(3, 1e19)
    part = PartialSum(bits, (), low, high, grouped=True, size=3 << 12, width=4, steps=1.0, l1=True, combine=Combine.SUM)
    rows = SparkRows(spark.createDataFrame(table), units=1, numbers=3)
    numbers = np.column_stack([np.array(table[name].to_pylist(), float) for name in ("long", "flag", "exact")])
    here = part([(numbers, np.arange(6))])
    assert rows.sums(part, [(-1e19, 1e19)] * 3).tolist() == here.tolist()


def bits(rows, public):
    """Cells that tell numbers apart whose last bits differ."""
    cells = (np.ascontiguousarray(rows).view(np.int64) * 0x9E3779B97F4A7C1 >> 50) & 4095
    return cells, np.ones((len(rows), 1))


@pytest.fixture
def torn(monkeypatch):
    """Rows that are divided once more, without regard to their units, on the way to the workers."""
    whole = vector_sums._numbered_by_unit
    monkeypatch.setattr(vector_sums, "_numbered_by_unit", lambda *args: whole(*args).repartition(4, "x0"))


@pytest.mark.usefixtures("torn")
def test_units_that_are_split_in_transit_are_detected(spark):
    with pytest.raises(Exception, match="not contiguous"):
        sums_on(spark, Seen()["mean"])


@pytest.mark.usefixtures("torn")
def test_units_that_are_split_would_contribute_too_much(spark, monkeypatch):
    """That is why it matters; without the check nobody would know."""
    monkeypatch.setattr(vector_sums._UnitOrder, "unit_numbers", unchecked)
    part, one = Seen()["sum"], pa.table({"person": ["p"] * 100, "x": np.linspace(-9, 9, 100), "y": np.ones(100)})
    assert np.abs(sums_here(part, one)).sum() <= CLIP_RADIUS
    assert np.abs(sums_on(spark, part, one)).sum() > 1.5 * CLIP_RADIUS


def unchecked(self, who, turn):
    return np.cumsum(np.diff(who, prepend=0) != 0)


@pytest.mark.parametrize(
    ("who", "turn"),
    [
        ([5, 5, 5], [2, 3, 4]),
        ([5, 5, 7], [1, 2, 3]),
        ([5, 5, 5], [1, 3, 2]),
        ([5, 7, 5], [1, 1, 2]),
        ([5, 5], [1, 3]),
    ],
    ids=["no beginning", "somebody else's", "not in turn", "interrupted", "a gap"],
)
def test_every_way_to_split_a_unit_is_detected(who, turn):
    for cut in range(len(who)):
        batches = [(who[:cut], turn[:cut]), (who[cut:], turn[cut:])]
        with pytest.raises(ValueError, match="not contiguous"):
            placed([batch for batch in batches if batch[0]])


def placed(batches):
    follows = vector_sums._UnitOrder()
    return [follows.unit_numbers(np.array(who, np.int32), np.array(turn, np.int32)).tolist() for who, turn in batches]


def test_complete_units_are_distinguished_across_batches():
    """Also two whose marks are equal: it is the turn that tells where one begins."""
    told = placed([([9, 9], [1, 2]), ([9, 9, -3], [3, 1, 1]), ([-3, 4], [2, 1])])
    assert told == [[1, 1], [1, 2, 3], [3, 4]]


def picky(rows, public):
    if (rows == 7.25).any():
        raise ZeroDivisionError("a secret: somebody has 7.25")
    return rows


def test_a_failing_worker_discloses_nothing(spark, caplog):
    caplog.set_level(logging.ERROR, "discreet")
    table = pa.table({"person": ["a", "b"], "x": [7.25, 1.0], "y": [0.0, 0.0]})

    class Failing(There):
        low, high, grouped = LOW, HIGH, True

    reservation = reserve([Laplace(CLIP_RADIUS)])
    with pytest.raises(Failed) as failed:
        sum_rows(Failing(table, "pca", spark), picky, (), size=2, radius=1, reservation=reservation)
    assert str(failed.value) == FAILED
    assert failed.value.__context__ is None
    with pytest.raises(ValueError, match="all reserved noise has been used"):
        reservation.take_noise()
    assert "a secret" in caplog.text  # for the owner


def test_workers_that_differ_from_the_checked_ones_are_not_used(spark, monkeypatch):
    rows = There(CROWD, "pca", spark)
    monkeypatch.setattr(vector_sums, "check_workers", lambda _: "of another machine")
    with pytest.raises(Exception, match="arithmetic of this worker differs"):
        rows.sum_units(Seen()["mean"])


POLICY = """
[data]
name = "places"
ledger = ":memory:"
[budget]
epsilon = 10
delta = 1e-5
[tables.visits]
source = "visits"
unit = "person"
[tables.visits.columns]
person = { type = "text" }
x = { type = "real", between = [-10, 10] }
y = { type = "real", between = [-10, 10] }
"""


@pytest.fixture
def visits(tmp_path):
    pq.write_table(CROWD, tmp_path / "visits.parquet", row_group_size=1000)
    return {
        "visits": TableSource(str(tmp_path / "visits.parquet"), {"person": Type.TEXT, "x": Type.REAL, "y": Type.REAL})
    }


class Stays(Spark):
    """The engine, which gives away no rows."""

    passes = 0

    @contextmanager
    def cached_rows(self, relation, columns):
        def counted(part, bounds):
            self.passes += 1
            return sums(part, bounds)

        with super().cached_rows(relation, columns) as sums:
            yield counted

    def batches(self, relation, columns, size):
        raise AssertionError("the rows left Spark")


@pytest.mark.long(but=["pca-row"])
@pytest.mark.parametrize("unit", ["person", "row"])
@pytest.mark.parametrize("name", ["whitened", "dp-em", "kmeans", "pca"])
def test_a_curator_learns_the_same_from_the_engine(name, unit, sail, visits, monkeypatch):
    begin, found = seeded(monkeypatch), []
    policy = Policy.parse(POLICY.replace('"person"', f'"{unit}"', 1))
    for engine in (DuckDB(visits), Stays(visits, url=sail.url)):
        with engine:
            ledger = memory_ledger(name="places", budget=Budget(10, "1e-5"))
            begin()
            model = MODELS[name]().set_params(delta="1e-6")
            sql = "SELECT x, y FROM visits WHERE y > -8"
            fit_on_query(model, sql, by="owner", policy=policy, engine=engine, ledger=ledger)
            found.append(learned(model) | {"receipt_": ""})
            assert ledger.spent().rho > 0
    assert found[0] == found[1]
    assert engine.passes > 1


@pytest.mark.long
def test_the_recommender_gets_rows_from_the_engine(sail, tmp_path, monkeypatch):
    """What a person rated is laid out anew here; only sums of what a query gives are formed on Spark."""
    place = np.arange(6000)
    ratings = pa.table({"person": [f"p{each}" for each in place // 10], "x": place % 10 - 5.0, "y": CROWD["y"]})
    pq.write_table(ratings, tmp_path / "ratings.parquet")
    visits = {
        "visits": TableSource(str(tmp_path / "ratings.parquet"), {"person": Type.TEXT, "x": Type.REAL, "y": Type.REAL})
    }
    begin, found = seeded(monkeypatch), []
    for engine in (DuckDB(visits), Spark(visits, url=sail.url)):
        with engine:
            begin()
            model = Recommender(epsilon=1, items=list(range(-5, 5)), bounds=(-5, 5), level="user")
            ledger = memory_ledger(name="places", budget=Budget(10, "1e-5"))
            fit_on_query(
                model,
                "SELECT x, y FROM visits",
                by="owner",
                policy=Policy.parse(POLICY),
                engine=engine,
                ledger=ledger,
            )
            found.append(model.predict(list(range(-5, 5))).tolist())
    assert found[0] == pytest.approx(found[1])


def test_rows_are_cached_on_spark_during_a_fit_and_then_released(spark, monkeypatch):
    from pyspark.sql import DataFrame

    kept = []
    for name in ("persist", "unpersist"):
        monkeypatch.setattr(type(spark.range(1)), name, lambda frame, name=name: kept.append((name, frame)))
    rows = There(CROWD, "scaler", spark).rows
    with pytest.raises(ZeroDivisionError), rows.persisted():
        kept.append(1 / 0)
    assert [name for name, _ in kept] == ["persist", "unpersist"]
    assert kept[0][1] is kept[1][1]
    assert isinstance(kept[0][1], DataFrame)


def test_losing_the_server_at_the_end_does_not_lose_the_model(spark, monkeypatch):
    rows = There(CROWD, "scaler", spark).rows

    def gone(*_):
        raise ConnectionError

    with rows.persisted():
        monkeypatch.setattr(type(spark.range(1)), "unpersist", gone)


@pytest.mark.parametrize(
    ("broken", "words"),
    [("no_numpy", "need Python 3"), ("unlike", "arithmetic differs")],
)
def test_workers_are_checked_before_anything_is_charged(broken, words, sail, visits, monkeypatch):
    monkeypatch.setattr(vector_sums, "_send_fingerprint", globals()[broken])
    ledger = memory_ledger(name="places", budget=Budget(10))
    policy, model = Policy.parse(POLICY), StandardScaler(epsilon=1)
    with Spark(visits, url=sail.url) as engine, pytest.raises(Refused, match=words):
        fit_on_query(model, "SELECT x FROM visits", by="owner", policy=policy, engine=engine, ledger=ledger)
    assert ledger.spent().epsilon == 0
    assert not ledger.events()


def no_numpy(batches):
    raise ModuleNotFoundError


def unlike(batches):
    yield pa.RecordBatch.from_pydict({"mark": ["one", "another"]})


WORKER = """
import pickle, sys
sys.modules["discreet"] = None
import pyarrow as pa
task = pickle.loads(bytes.fromhex(sys.stdin.read()))
batch = pa.record_batch({"who": pa.array([3, 3], pa.int32()), "turn": pa.array([1, 2], pa.int32()), "x0": [1.0, 2.0],
    "x1": [5.0, 99.0]})
print(next(task(iter([batch]))).column(0)[0].as_py().hex())
"""


@pytest.mark.long
@pytest.mark.parametrize("name", Seen())
def test_workers_need_nothing_of_ours(name):
    part = Seen()[name]
    task = vector_sums._PartitionSum(part, LOW, HIGH, vector_sums.arithmetic_fingerprint())
    done = subprocess.run(
        [sys.executable, "-c", WORKER],
        input=vector_sums._pickle_by_value(task).hex(),
        capture_output=True,
        text=True,
        check=True,
    )
    here = part([(np.array([[1.0, 5.0], [2.0, 10.0]]), np.zeros(2, np.int64))])
    assert np.frombuffer(bytes.fromhex(done.stdout), "<i8").tolist() == here.tolist()


def test_pickling_by_value_leaves_no_trace():
    """Whether something of ours is sent by value is a matter of the process, and others send things too."""
    from pyspark import cloudpickle

    before = set(cloudpickle.list_registry_pickle_by_value())
    vector_sums._pickle_by_value(vector_sums._send_fingerprint)
    assert set(cloudpickle.list_registry_pickle_by_value()) == before
    cloudpickle.register_pickle_by_value(dc)
    vector_sums._pickle_by_value(vector_sums._send_fingerprint)
    assert "discreet" in cloudpickle.list_registry_pickle_by_value()
    cloudpickle.unregister_pickle_by_value(dc)


def holes():
    """The same table with missing numbers and units, numbers that are none, and names that must be quoted."""
    x, person = CROWD["x"].to_numpy().copy(), CROWD["person"].to_pylist()
    x[::97], x[1::89], x[2::83] = np.nan, np.inf, -np.inf
    person[3::71] = [None] * len(person[3::71])
    y = pa.array(CROWD["y"].to_pylist(), mask=np.arange(len(CROWD)) % 61 == 0)
    return pa.table({"the `person`": person, "x.1": x, "y": y, "price": CROWD["price"], "day": CROWD["day"]})


@pytest.mark.long(only=["whitened-people", "whitened-rows"])
@pytest.mark.parametrize("unit", ["the `person`", None], ids=["people", "rows"])
@pytest.mark.parametrize("name", ["whitened", "kmeans", "linear", "logistic", "bayes", "pca"])
def test_a_frame_of_spark_is_learned_from_where_it_is(name, unit, spark, monkeypatch):
    target = TARGETS.get(name)
    table = holes().select(["x.1", "y", *([target] if target else []), *([unit] if unit else [])])
    frame, begin, found = spark.createDataFrame(table).repartition(3), seeded(monkeypatch), []
    monkeypatch.setattr(type(frame), "toArrow", _few(type(frame).toArrow))
    for given in (table, frame):
        begin()
        model = MODELS[name]().set_params(
            bounds=(-10, 10), **({"target_bounds": (-30, 30)} if name == "linear" else {})
        )
        found.append(learned(model.fit(given, target, unit=unit)))
    assert found[0] == found[1]
    assert found[1]["feature_names_in_"] == ["x.1", "y"]


def _few(to_arrow):
    """Stop if more comes from Spark than a vector for each partition."""

    def few(frame):
        table = to_arrow(frame)
        assert len(table) <= 8
        assert table.column_names in (["sums"], ["mark"])
        return table

    return few


def test_units_of_a_frame_may_be_reals(spark, monkeypatch):
    """Zero has one sign, and NaN is nobody."""
    table = pa.table({"who": [0.0, -0.0, 1.5, float("nan"), None, 1.5], "x": [1.0, 2.0, 3.0, 50.0, 60.0, 4.0]})
    begin, found = seeded(monkeypatch), []
    for given in (table, spark.createDataFrame(table)):
        begin()
        found.append(learned(StandardScaler(epsilon=100, bounds=(0, 100)).fit(given, unit="who")))
    assert found[0] == found[1]


@pytest.mark.long
def test_what_needs_more_than_sums_gets_the_rows_of_a_frame(spark, monkeypatch):
    """The number of units is public where neighbours replace one; it is counted here."""
    table, begin, found = CROWD.select(["person", "x", "y"]), seeded(monkeypatch), []
    for given in (table, spark.createDataFrame(table)):
        begin()
        model = MODELS["dp-em"]().set_params(bounds=(-10, 10), neighbours="replacement")
        found.append(learned(model.fit(given, unit="person")))
    assert found[0] == found[1]


def test_a_frame_is_released_when_the_fit_is_over(spark, monkeypatch):
    kept, frame = [], spark.createDataFrame(CROWD.select(["x", "y"]))
    for name in ("persist", "unpersist"):
        monkeypatch.setattr(type(frame), name, lambda _, name=name: kept.append(name))
    StandardScaler(epsilon=1, bounds=(-10, 10)).fit(frame)
    assert kept == ["persist", "unpersist"]


@pytest.mark.parametrize(
    ("kind", "unit", "words"),
    [
        ("text", None, "'word' has type string"),
        ("list", "many", "'many' has type array"),
        ("text", "nobody", "column 'nobody' does not exist"),
    ],
)
def test_a_frame_without_numbers_or_units_is_refused(kind, unit, words, spark):
    table = pa.table({"x": [1.0], **({"word": ["a"]} if kind == "text" else {"many": [[1]]})})
    with pytest.raises((TypeError, ValueError), match=words):
        StandardScaler(epsilon=1, bounds=(0, 1)).fit(spark.createDataFrame(table), unit=unit)
