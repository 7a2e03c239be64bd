"""The interface of every engine, and its performance settings, none of which affects privacy."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from discreet.engines.column_usage import ColumnUsage
from discreet.kernel.expr import Type
from discreet.kernel.question import Question
from discreet.kernel.relation import Relation
from discreet.kernel.release import EngineTotals
from discreet.kernel.sqlgen.dialect import Dialect


class PreparedReader(Protocol):
    """Reads tables that were found to be available; valid only within the context of `Engine.prepare`."""

    def totals(self, question: Question) -> EngineTotals:
        """Compute the exact totals of a question, from one snapshot for all questions if the engine has snapshots."""


class Engine(Protocol):
    """Stores the data and computes exact totals. Failures are EngineErrors, whose text is for the owner's log only."""

    @property
    def dialect(self) -> Dialect:
        """The SQL dialect of the engine."""

    @property
    def seconds(self) -> float:
        """The time limit of one question."""

    def prepare(self, usage: ColumnUsage) -> AbstractContextManager[PreparedReader]:
        """Check, before a charge, that these columns of these tables can be read, and return a reader of them.

        It raises Unavailable if they cannot be read, and PolicyError if the tables differ from the policy; neither is
        charged. Errors within the context are EngineErrors after a charge.

        Claim: whether it raises, and what it raises, does not depend on any private row.
        Proof: it is given names of tables and columns and no other part of a question. It connects, waits for locks
            (ACCESS SHARE, as any reader) and reads the catalog, or the names, sizes, times and schemas of files. The
            only SELECT that runs on a private table has LIMIT 0 and ends before it fetches a row.
        Needs: the owner's tables are not altered or locked depending on what one person's rows contain.
        Checked by: test_preparing_a_question_reads_no_row, test_changed_or_locked_tables_are_refused_and_not_charged
        """

    def totals(self, question: Question) -> EngineTotals:
        """Prepare and compute the exact totals of a question, all from one snapshot of the data."""

    def location(self, table: str) -> str:
        """Return where a table's rows are, without user and password; "frame" for a table object."""

    def columns(self, table: str) -> dict[str, Type]:
        """Return a table's columns with their kernel types."""

    def values(self, table: str, column: str) -> list[Any]:
        """Return the distinct values of a column of a PUBLIC table, sorted, without NULL."""

    def fanout(self, table: str, columns: tuple[str, ...]) -> int:
        """Return the largest number of rows of a PUBLIC table that are equal in these columns; NULL equals nothing."""

    def rows(self, table: str, columns: tuple[str, ...], limit: int) -> pa.Table:
        """Return these columns of a PUBLIC table, at most `limit` rows."""

    def batches(
        self, relation: Relation, columns: tuple[str, ...], size: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield batches of the rows without NULL in these columns: their values, and the index of each row's unit.

        Rows of one unit are contiguous.
        """

    def close(self) -> None:
        """Cancel a running question and release all resources; closing twice does nothing."""


@dataclass(frozen=True)
class Tuning:
    """Limits on the resources that the engine may use; none of them affects privacy.

    `memory` is a share or a size ("4GB"); what exceeds it is spilled, up to `disk`, to a private folder inside `folder`
    (None: the system's temporary folder), which is removed at the end (engines/duckdb/spill.py).

    >>> Tuning(memory="4GB", threads=2, seconds=60).disk
    '20GB'
    """

    memory: str = "50%"
    threads: int | None = None
    seconds: float = 600
    folder: str | None = None
    disk: str = "20GB"  # a full disk would stop the ledger as well
    totals_cache: int = 1 << 28  # bytes of exact totals that are cached for other questions on the same rows and groups

    def __post_init__(self) -> None:
        if not 0.001 <= self.seconds <= 10**7:
            raise ValueError(f"seconds must be between 0.001 and 10^7, not {self.seconds!r}")
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"threads must be at least 1, not {self.threads!r}")
        if self.totals_cache < 0:
            raise ValueError(f"totals_cache must be at least 0, not {self.totals_cache!r}")
