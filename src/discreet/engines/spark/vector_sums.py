"""Sums of vectors on Spark: rows stay on the executors, each partition sums its own units, and only integers return.

    rows ──► shuffled by unit, numbered within each ──► cached ──► PartialSum of each partition ──► added up ──► here
                        once per fit                                       in each pass

The code of a partial sum is sent along by value, so executors need only Python, numpy and pyarrow. All of them must
compute identically, to the last bit: otherwise the contribution of a unit would depend on which executor computes it.
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

from discreet.engines.row_sums import batch_rows, whole_units
from discreet.engines.spark.connection import is_connection_lost
from discreet.kernel.errors import Refused
from discreet.kernel.model_release import Batch, PartialSum, check_row_wise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ColumnBounds = Sequence[tuple[float, float]]
Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_UNIT, _UNIT_HASH, _ROW_NUMBER, _NUMBER, _SUMS, _FINGERPRINT = "u", "who", "turn", "x", "sums", "mark"  # columns
_TRIAL_ROWS = 1 << 12  # enough for every core to get some
_COALESCE_SETTING = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"  # also merges small cached partitions
_LONG_VECTOR, _FEW_PARTITIONS = 1 << 14, 8  # longer vectors are added up in a few partitions before they are sent
_PICKLE_LOCK = threading.Lock()
_FUNCTIONS = (np.exp, np.expm1, np.log, np.log1p, np.sin, np.cos, np.sinh, np.tanh, np.arcsinh, np.arctan)
_WORKERS_UNABLE = (
    "Spark: the workers cannot compute the sums of a model. They need Python {version}, as here, with numpy and "
    "pyarrow. Set PYSPARK_PYTHON for them, and check the server's log."
)
_WORKERS_DIFFER = (
    "Spark: the workers' arithmetic differs, so sums would depend on which worker computes them. Use the same numpy "
    "and the same processor type on all workers."
)


class SparkRows:
    """The rows of a frame whose first columns are the unit's key and whose others are finite numbers, without NULL.

    Without a key, each row is a unit.
    """

    def __init__(self, frame: "DataFrame", *, units: int, numbers: int) -> None:
        self._spark = frame.sparkSession
        self._rows = _numbered_by_unit(frame, units, numbers)
        self._worker_fingerprint: str | None = None

    def persist(self) -> None:
        """Check the workers, before anything is charged, and cache the rows on Spark until `unpersist`."""
        self._worker_fingerprint = check_workers(self._spark)
        with _temporary_setting(self._spark, _COALESCE_SETTING, "true"):
            self._rows.persist()

    def unpersist(self) -> None:
        """Release the cached rows; errors are ignored, because the model is already fitted."""
        with suppress(Exception):
            self._rows.unpersist()

    @contextmanager
    def persisted(self) -> Iterator[None]:
        """Cache the rows on Spark within the context."""
        self.persist()
        try:
            yield
        finally:
            self.unpersist()

    def sums(self, part: PartialSum, bounds: ColumnBounds) -> np.ndarray:
        """Return the sum of a part over all partitions, with values clamped to the bounds and to those of the part."""
        if self._worker_fingerprint is None:
            self._worker_fingerprint = check_workers(self._spark)
        low, high = np.array(bounds, np.float64).reshape(-1, 2).T
        partial_sums = self._rows.mapInArrow(
            _with_code(_PartitionSum(part, low, high, self._worker_fingerprint)), f"{_SUMS} binary"
        )
        if part.size > _LONG_VECTOR:
            partial_sums = partial_sums.repartition(_FEW_PARTITIONS).mapInArrow(
                _with_code(_VectorSum(part.size)), f"{_SUMS} binary"
            )
        return _add_up(partial_sums.toArrow().to_batches(), part.size)


@contextmanager
def _temporary_setting(spark: "SparkSession", name: str, value: str) -> Iterator[None]:
    """Change a setting within the context; the session may be the owner's."""
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
    """Return the values, with all rows of a unit contiguous in one partition and numbered from 1.

    Spark does not guarantee that this order survives on the way to Python, so the workers check it.
    """
    keys = [f"{_UNIT}{index}" for index in range(units)]
    names = [f"{_NUMBER}{index}" for index in range(count)]
    numbers = [f"CAST({name} AS DOUBLE) AS {name}" for name in names]
    unit_key = ", ".join(keys)
    unit_columns = [
        f"hash({unit_key}) AS {_UNIT_HASH}",
        f"row_number() OVER (PARTITION BY {unit_key} ORDER BY {unit_key}) AS {_ROW_NUMBER}",
    ]
    return frame.toDF(*keys, *names).selectExpr(*(unit_columns if keys else []), *numbers)


@dataclass(frozen=True)
class _PartitionSum:
    """The task that sums one partition on a worker."""

    part: PartialSum
    low: np.ndarray
    high: np.ndarray
    worker_fingerprint: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if arithmetic_fingerprint() != self.worker_fingerprint:
            raise ValueError("the arithmetic of this worker differs from that of the workers that were checked")
        check_row_wise(self.part.rule, self.part.public, self.part.low, self.part.high)  # on the worker, too
        yield _pack(self.part(whole_units(self._clipped_batches(batches))))

    def _clipped_batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Batch]:
        """Yield the clamped values, and the number of each row's unit within the partition."""
        unit_order = _UnitOrder()
        for batch in batches:
            if not batch.num_rows:
                continue
            columns = {name: batch.column(name).to_numpy() for name in batch.schema.names}
            each_row = np.ones(batch.num_rows, np.int64)  # without columns of the unit, every row is one
            unit_numbers = unit_order.unit_numbers(
                columns.pop(_UNIT_HASH, each_row), columns.pop(_ROW_NUMBER, each_row)
            )
            rows = np.array(list(columns.values())).T
            rows = np.clip(np.clip(rows, self.low, self.high), self.part.low, self.part.high)
            for start in range(0, len(rows), batch_rows(self.part)):
                chunk = slice(start, start + batch_rows(self.part))
                yield rows[chunk], unit_numbers[chunk]


class _UnitOrder:
    """Numbers the units of a partition and checks that each row continues the previous one or is its unit's first.

    So either all rows of a unit are contiguous in the partition of its first row, or the sum fails.
    """

    def __init__(self) -> None:
        self._last_hash, self._last_row_number, self._last_unit = 0, 0, 0

    def unit_numbers(self, unit_hash: np.ndarray, row_number: np.ndarray) -> np.ndarray:
        first = row_number == 1
        continues = (np.diff(row_number, prepend=self._last_row_number) == 1) & (
            np.diff(unit_hash, prepend=self._last_hash) == 0
        )
        if not (first | continues).all():
            raise ValueError("the rows of a unit are not contiguous")
        numbers = self._last_unit + np.cumsum(first)
        self._last_hash, self._last_row_number, self._last_unit = unit_hash[-1], row_number[-1], numbers[-1]
        return numbers


@dataclass(frozen=True)
class _VectorSum:
    """The task that adds up the vectors of several partitions on a worker."""

    length: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _pack(_add_up(batches, self.length))


def _pack(total: np.ndarray) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([total.astype("<i8").tobytes()], pa.binary())], [_SUMS])


def _add_up(batches: Iterable[pa.RecordBatch], length: int) -> np.ndarray:
    total = np.zeros(length, np.int64)
    for batch in batches:
        for packed in batch.column(0):
            total += np.frombuffer(packed.as_py(), "<i8").reshape(
                length
            )  # refuses a shorter vector, which would be broadcast
    return total


def arithmetic_fingerprint() -> str:
    """Return a hash of this machine's results for the functions used by rules, exact to the last bit.

    >>> arithmetic_fingerprint() == arithmetic_fingerprint()
    True
    """
    points = np.linspace(-30, 30, 4001)
    with np.errstate(all="ignore"):
        values = [function(points) for function in _FUNCTIONS] + [np.hypot(points, 7.3), np.abs(points) ** 1.7]
    versions = f"{sys.version_info[:2]} {np.__version__} {platform.machine()}".encode()
    return hashlib.sha256(versions + np.array(values).tobytes()).hexdigest()


def check_workers(spark: "SparkSession") -> str:
    """Return the arithmetic fingerprint of all workers; Refused if they cannot run our code, or if theirs differ.

    Errors of the connection to the server are raised unchanged.
    """
    try:
        replies = spark.range(_TRIAL_ROWS).mapInArrow(_with_code(_send_fingerprint), f"{_FINGERPRINT} string").toArrow()
    except Exception as error:  # from Spark or its workers
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
    """Return a task that carries its code with it."""
    packed = _pickle_by_value(task)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return pickle.loads(packed)(batches)  # type: ignore[no-any-return]  # noqa: S301 - made here, a line above

    return run


def _pickle_by_value(task: Task) -> bytes:
    cloudpickle: Any = import_module("pyspark.cloudpickle")  # an extra
    package = sys.modules[__name__.partition(".")[0]]
    with _PICKLE_LOCK:  # the registry of modules pickled by value is global to the process
        registered = package.__name__ in cloudpickle.list_registry_pickle_by_value()
        if not registered:
            cloudpickle.register_pickle_by_value(package)
        try:
            return bytes(cloudpickle.dumps(task))
        finally:
            if not registered:
                cloudpickle.unregister_pickle_by_value(package)
