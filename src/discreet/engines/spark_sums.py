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

from discreet.engines.spark_connecting import is_lost
from discreet.kernel.errors import Refused
from discreet.kernel.rowwise import check_row_wise
from discreet.kernel.summing import Batch, Part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Bounds = Sequence[tuple[float, float]]
Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_UNIT, _WHO, _TURN, _NUMBER, _SUMS, _MARK = "u", "who", "turn", "x", "sums", "mark"  # columns
_MANY = 1 << 12  # rows of the trial: some for every core
_FEWER = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"  # small partitions are put together, as elsewhere
_LONG, _FEW = 1 << 14, 8  # vectors that long are added up in few partitions before they are sent
_SENDING = threading.Lock()
_FUNCTIONS = (np.exp, np.expm1, np.log, np.log1p, np.sin, np.cos, np.sinh, np.tanh, np.arcsinh, np.arctan)
_UNABLE = (
    "Spark: its workers cannot run the sums of a model. They need Python {version}, as here, with numpy and pyarrow; "
    "set PYSPARK_PYTHON for them, and look at the server's log."
)
_UNLIKE = (
    "Spark: its workers compute differently, so that a sum would depend on which of them adds it up. Give all of them "
    "the same numpy and the same kind of processor."
)


class SparkRows:
    """The rows of a frame, of which the first columns are the unit's key and the others finite numbers, without NULL.

    Without a key, every row is a unit of its own.
    """

    def __init__(self, frame: "DataFrame", *, units: int, numbers: int) -> None:
        self._spark = frame.sparkSession
        self._rows = _in_turn(frame, units, numbers)
        self._workers: str | None = None

    def keep(self) -> None:
        """Try the workers, before anything is paid, and keep the rows on Spark until they are let go."""
        self._workers = tried(self._spark)
        with _setting(self._spark, _FEWER, "true"):
            self._rows.persist()

    def let_go(self) -> None:
        """Keep the rows no longer; that this fails is no loss, for what was learned is paid."""
        with suppress(Exception):
            self._rows.unpersist()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the rows on Spark meanwhile."""
        self.keep()
        try:
            yield
        finally:
            self.let_go()

    def sums(self, part: Part, bounds: Bounds) -> np.ndarray:
        """Return the sum of a part over all partitions; numbers are moved into the bounds, and into the part's own."""
        if self._workers is None:
            self._workers = tried(self._spark)
        low, high = np.array(bounds, np.float64).reshape(-1, 2).T
        added = self._rows.mapInArrow(_sent(_Share(part, low, high, self._workers)), f"{_SUMS} binary")
        if part.length > _LONG:
            added = added.repartition(_FEW).mapInArrow(_sent(_Together(part.length)), f"{_SUMS} binary")
        return _total(added.toArrow().to_batches(), part.length)


@contextmanager
def _setting(spark: "SparkSession", name: str, value: str) -> Iterator[None]:
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


def _in_turn(frame: "DataFrame", units: int, count: int) -> "DataFrame":
    """Return the numbers, with all rows of one unit in one partition, one after the other, numbered from 1.

    That they stay so on their way to Python is how Spark does it, and nothing that it promises: workers check it.
    """
    keys = [f"{_UNIT}{place}" for place in range(units)]
    names = [f"{_NUMBER}{place}" for place in range(count)]
    numbers = [f"CAST({name} AS DOUBLE) AS {name}" for name in names]
    who = ", ".join(keys)
    marks = [f"hash({who}) AS {_WHO}", f"row_number() OVER (PARTITION BY {who} ORDER BY {who}) AS {_TURN}"]
    return frame.toDF(*keys, *names).selectExpr(*(marks if keys else []), *numbers)


@dataclass(frozen=True)
class _Share:
    """What a worker does with a partition."""

    part: Part
    low: np.ndarray
    high: np.ndarray
    workers: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if arithmetic() != self.workers:
            raise ValueError("this worker computes differently from those that were tried")
        check_row_wise(self.part.rule, self.part.public, self.part.low, self.part.high)  # here, too
        yield _packed(self.part(self._within(batches)))

    def _within(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Batch]:
        """Give the numbers, in their ranges, and the place of each row's unit among those of the partition."""
        follows = _Follows()
        for batch in batches:
            if not batch.num_rows:
                continue
            columns = {name: batch.column(name).to_numpy() for name in batch.schema.names}
            places = follows.places(columns.pop(_WHO), columns.pop(_TURN)) if _TURN in columns else None
            rows = np.array(list(columns.values())).T
            rows = np.clip(np.clip(rows, self.low, self.high), self.part.low, self.part.high)
            for start in range(0, len(rows), self.part.at_once):
                cut = slice(start, start + self.part.at_once)
                yield rows[cut], None if places is None else places[cut]


class _Follows:
    """Where units begin in a partition. A row that is not its unit's first must follow the one before it.

    So all rows of a unit are in the partition of its first, in one piece, or the sum fails.
    """

    def __init__(self) -> None:
        self._who, self._turn, self._unit = 0, 0, 0

    def places(self, who: np.ndarray, turn: np.ndarray) -> np.ndarray:
        first = turn == 1
        goes_on = (np.diff(turn, prepend=self._turn) == 1) & (np.diff(who, prepend=self._who) == 0)
        if not (first | goes_on).all():
            raise ValueError("the rows of one unit were torn apart")
        places = self._unit + np.cumsum(first)
        self._who, self._turn, self._unit = who[-1], turn[-1], places[-1]
        return places


@dataclass(frozen=True)
class _Together:
    """What a worker does with vectors of several partitions."""

    length: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _packed(_total(batches, self.length))


def _packed(total: np.ndarray) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([total.astype("<i8").tobytes()], pa.binary())], [_SUMS])


def _total(batches: Iterable[pa.RecordBatch], length: int) -> np.ndarray:
    total = np.zeros(length, np.int64)
    for batch in batches:
        for packed in batch.column(0):
            total += np.frombuffer(packed.as_py(), "<i8").reshape(length)  # a shorter one must not be spread
    return total


def arithmetic() -> str:
    """Return a mark of how this machine computes: equal marks, equal bits of the functions that rules are made of.

    >>> arithmetic() == arithmetic()
    True
    """
    points = np.linspace(-30, 30, 4001)
    with np.errstate(all="ignore"):
        values = [function(points) for function in _FUNCTIONS] + [np.hypot(points, 7.3), np.abs(points) ** 1.7]
    known = f"{sys.version_info[:2]} {np.__version__} {platform.machine()}".encode()
    return hashlib.sha256(known + np.array(values).tobytes()).hexdigest()


def tried(spark: "SparkSession") -> str:
    """Return the mark of all workers; Refused if they cannot run our code, or compute differently.

    A server that cannot be reached is another matter, and its error is left as it is.
    """
    try:
        found = spark.range(_MANY).mapInArrow(_sent(_marked), f"{_MARK} string").toArrow()
    except Exception as error:  # whatever Spark and its workers say
        if is_lost(error):
            raise
        version = ".".join(map(str, sys.version_info[:2]))
        raise Refused(_UNABLE.format(version=version)) from None
    marks = set(found.column(0).to_pylist())
    if len(marks) != 1:
        raise Refused(_UNLIKE)
    return str(marks.pop())


def _marked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        pass
    yield pa.RecordBatch.from_arrays([pa.array([arithmetic()])], [_MARK])


def _sent(task: Task) -> Task:
    """Return a task that brings its code along."""
    packed = _by_value(task)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return pickle.loads(packed)(batches)  # type: ignore[no-any-return]  # noqa: S301 - made here, a line above

    return run


def _by_value(task: Task) -> bytes:
    sending: Any = import_module("pyspark.cloudpickle")  # an extra
    ours = sys.modules[__name__.partition(".")[0]]
    with _SENDING:  # what is sent by value is listed once for the whole process
        listed = ours.__name__ in sending.list_registry_pickle_by_value()
        if not listed:
            sending.register_pickle_by_value(ours)
        try:
            return bytes(sending.dumps(task))
        finally:
            if not listed:
                sending.unregister_pickle_by_value(ours)
