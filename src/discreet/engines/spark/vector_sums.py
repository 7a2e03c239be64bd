"""Sums of vectors on Spark: rows stay on the executors, each partition adds up its own units, and integers come back.

    rows ──► shuffled by their units, numbered within each ──► kept ──► a Part of each partition ──► added up ──► here
                         once for a fit                                   in each pass

The code of a part goes with it, by value, so that executors need Python, numpy and pyarrow, and nothing of ours. All of
them must compute alike, to the last bit: else what one unit adds would depend on where it happens to be added.
"""

import hashlib
import pickle
import platform
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from discreet.engines.spark.connection import is_connection_lost
from discreet.kernel.errors import Refused
from discreet.kernel.model_release import Batch, PartialSum
from discreet.kernel.row_rule import check_row_wise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ColumnBounds = Sequence[tuple[float, float]]
Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_UNIT, _UNIT_HASH, _ROW_NUMBER, _NUMBER, _SUMS, _FINGERPRINT = "u", "who", "turn", "x", "sums", "mark"  # columns
_TRIAL_ROWS = 1 << 12  # rows of the trial: some for every core
_COALESCE_SETTING = (
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"  # small partitions are put together, as elsewhere
)
_LONG_VECTOR, _FEW_PARTITIONS = 1 << 14, 8  # vectors that long are added up in few partitions before they are sent
_PICKLE_LOCK = threading.Lock()
_FUNCTIONS = (np.exp, np.expm1, np.log, np.log1p, np.sin, np.cos, np.sinh, np.tanh, np.arcsinh, np.arctan)
_WORKERS_UNABLE = (
    "Spark: its workers cannot run the sums of a model. They need Python {version}, as here, with numpy and pyarrow; "
    "set PYSPARK_PYTHON for them, and look at the server's log."
)
_WORKERS_DIFFER = (
    "Spark: its workers compute differently, so that a sum would depend on which of them adds it up. Give all of them "
    "the same numpy and the same kind of processor."
)


class SparkRows:
    """The rows of a frame, of which the first columns are the unit's key and the others finite numbers, without NULL.

    Without a key, every row is a unit of its own.
    """

    def __init__(self, frame: "DataFrame", *, units: int, numbers: int) -> None:
        self._spark = frame.sparkSession
        self._rows = _numbered_by_unit(frame, units, numbers)
        self._worker_fingerprint: str | None = None

    def persist(self) -> None:
        """Try the workers, before anything is paid, and keep the rows on Spark until they are let go."""
        self._worker_fingerprint = check_workers(self._spark)
        with _temporary_setting(self._spark, _COALESCE_SETTING, "true"):
            self._rows.persist()

    def unpersist(self) -> None:
        """Keep the rows no longer; that this fails is no loss, for what was learned is paid."""
        with suppress(Exception):
            self._rows.unpersist()

    @contextmanager
    def persisted(self) -> Iterator[None]:
        """Keep the rows on Spark meanwhile."""
        self.persist()
        try:
            yield
        finally:
            self.unpersist()

    def sums(self, part: PartialSum, bounds: ColumnBounds) -> np.ndarray:
        """Return the sum of a part over all partitions; numbers are moved into the bounds, and into the part's own."""
        if self._worker_fingerprint is None:
            self._worker_fingerprint = check_workers(self._spark)
        low, high = np.array(bounds, np.float64).reshape(-1, 2).T
        partial_sums = self._rows.mapInArrow(
            _with_code(_PartitionSum(part, low, high, self._worker_fingerprint)), f"{_SUMS} binary"
        )
        if part.length > _LONG_VECTOR:
            partial_sums = partial_sums.repartition(_FEW_PARTITIONS).mapInArrow(
                _with_code(_VectorSum(part.length)), f"{_SUMS} binary"
            )
        return _add_up(partial_sums.toArrow().to_batches(), part.length)


@contextmanager
def _temporary_setting(spark: "SparkSession", name: str, value: str) -> Iterator[None]:
    """Set something for a while, as the session may be the owner's."""
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


def _numbered_by_unit(frame: "DataFrame", units: int, count: int) -> "DataFrame":
    """Return the numbers, with all rows of one unit in one partition, one after the other, numbered from 1.

    That they stay so on their way to Python is how Spark does it, and nothing that it promises: workers check it.
    """
    keys = [f"{_UNIT}{place}" for place in range(units)]
    names = [f"{_NUMBER}{place}" for place in range(count)]
    numbers = [f"CAST({name} AS DOUBLE) AS {name}" for name in names]
    unit_key = ", ".join(keys)
    unit_columns = [
        f"hash({unit_key}) AS {_UNIT_HASH}",
        f"row_number() OVER (PARTITION BY {unit_key} ORDER BY {unit_key}) AS {_ROW_NUMBER}",
    ]
    return frame.toDF(*keys, *names).selectExpr(*(unit_columns if keys else []), *numbers)


@dataclass(frozen=True)
class _PartitionSum:
    """What a worker does with a partition."""

    part: PartialSum
    low: np.ndarray
    high: np.ndarray
    worker_fingerprint: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if arithmetic_fingerprint() != self.worker_fingerprint:
            raise ValueError("this worker computes differently from those that were tried")
        check_row_wise(self.part.rule, self.part.public, self.part.low, self.part.high)  # here, too
        yield _pack(self.part(self._clipped_batches(batches)))

    def _clipped_batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Batch]:
        """Give the numbers, in their ranges, and the place of each row's unit among those of the partition."""
        unit_order = _UnitOrder()
        for batch in batches:
            if not batch.num_rows:
                continue
            columns = {name: batch.column(name).to_numpy() for name in batch.schema.names}
            unit_numbers = (
                unit_order.unit_numbers(columns.pop(_UNIT_HASH), columns.pop(_ROW_NUMBER))
                if _ROW_NUMBER in columns
                else None
            )
            rows = np.array(list(columns.values())).T
            rows = np.clip(np.clip(rows, self.low, self.high), self.part.low, self.part.high)
            for start in range(0, len(rows), self.part.batch_rows):
                chunk = slice(start, start + self.part.batch_rows)
                yield rows[chunk], None if unit_numbers is None else unit_numbers[chunk]


class _UnitOrder:
    """Where units begin in a partition. A row that is not its unit's first must follow the one before it.

    So all rows of a unit are in the partition of its first, in one piece, or the sum fails.
    """

    def __init__(self) -> None:
        self._last_hash, self._last_row_number, self._last_unit = 0, 0, 0

    def unit_numbers(self, unit_hash: np.ndarray, row_number: np.ndarray) -> np.ndarray:
        first = row_number == 1
        continues = (np.diff(row_number, prepend=self._last_row_number) == 1) & (
            np.diff(unit_hash, prepend=self._last_hash) == 0
        )
        if not (first | continues).all():
            raise ValueError("the rows of one unit were torn apart")
        numbers = self._last_unit + np.cumsum(first)
        self._last_hash, self._last_row_number, self._last_unit = unit_hash[-1], row_number[-1], numbers[-1]
        return numbers


@dataclass(frozen=True)
class _VectorSum:
    """What a worker does with vectors of several partitions."""

    length: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _pack(_add_up(batches, self.length))


def _pack(total: np.ndarray) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([total.astype("<i8").tobytes()], pa.binary())], [_SUMS])


def _add_up(batches: Iterable[pa.RecordBatch], length: int) -> np.ndarray:
    total = np.zeros(length, np.int64)
    for batch in batches:
        for packed in batch.column(0):
            total += np.frombuffer(packed.as_py(), "<i8").reshape(length)  # a shorter one must not be spread
    return total


def arithmetic_fingerprint() -> str:
    """Return a mark of how this machine computes: equal marks, equal bits of the functions that rules are made of.

    >>> arithmetic_fingerprint() == arithmetic_fingerprint()
    True
    """
    points = np.linspace(-30, 30, 4001)
    with np.errstate(all="ignore"):
        values = [function(points) for function in _FUNCTIONS] + [np.hypot(points, 7.3), np.abs(points) ** 1.7]
    versions = f"{sys.version_info[:2]} {np.__version__} {platform.machine()}".encode()
    return hashlib.sha256(versions + np.array(values).tobytes()).hexdigest()


def check_workers(spark: "SparkSession") -> str:
    """Return the mark of all workers; Refused if they cannot run our code, or compute differently.

    A server that cannot be reached is another matter, and its error is left as it is.
    """
    try:
        replies = spark.range(_TRIAL_ROWS).mapInArrow(_with_code(_send_fingerprint), f"{_FINGERPRINT} string").toArrow()
    except Exception as error:  # whatever Spark and its workers say
        if is_connection_lost(error):
            raise
        version = ".".join(map(str, sys.version_info[:2]))
        raise Refused(_WORKERS_UNABLE.format(version=version)) from None
    fingerprints = set(replies.column(0).to_pylist())
    if len(fingerprints) != 1:
        raise Refused(_WORKERS_DIFFER)
    return str(fingerprints.pop())


def _send_fingerprint(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        pass
    yield pa.RecordBatch.from_arrays([pa.array([arithmetic_fingerprint()])], [_FINGERPRINT])


def _with_code(task: Task) -> Task:
    """Return a task that brings its code along."""
    packed = _pickle_by_value(task)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return pickle.loads(packed)(batches)  # type: ignore[no-any-return]  # noqa: S301 - made here, a line above

    return run


def _pickle_by_value(task: Task) -> bytes:
    cloudpickle: Any = import_module("pyspark.cloudpickle")  # an extra
    package = sys.modules[__name__.partition(".")[0]]
    with _PICKLE_LOCK:  # what is sent by value is listed once for the whole process
        registered = package.__name__ in cloudpickle.list_registry_pickle_by_value()
        if not registered:
            cloudpickle.register_pickle_by_value(package)
        try:
            return bytes(cloudpickle.dumps(task))
        finally:
            if not registered:
                cloudpickle.unregister_pickle_by_value(package)
