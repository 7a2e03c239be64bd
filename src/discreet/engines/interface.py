"""The interface of every engine, and its performance settings, none of which affects privacy."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from discreet.engines.column_usage import ColumnUsage
from discreet.kernel.expr import Type
from discreet.kernel.question import Question
from discreet.kernel.relation import Relation
from discreet.kernel.release import EngineTotals
from discreet.kernel.sqlgen.dialect import Dialect


class PreparedReader(Protocol):
    """Tables that were found ready to be read; used within the context of `Engine.prepare` alone."""

    def totals(self, question: Question) -> EngineTotals:
        """Compute the exact totals of a question, all questions of one state of the data where the engine has such."""


class Engine(Protocol):
    """Where the data are. A failure is an EngineError, whose text is for the owner's log only."""

    @property
    def dialect(self) -> Dialect:
        """How the engine writes what it is asked."""

    @property
    def seconds(self) -> float:
        """How long one question may take."""

    def prepare(self, usage: ColumnUsage) -> AbstractContextManager[PreparedReader]:
        """Find out, before a charge, whether these columns of these tables can be read, and give what reads them.

        What cannot is Unavailable, or a PolicyError if the tables are not as the policy says: both cost nothing. What
        goes wrong afterwards, within the context, is an EngineError after a charge.

        Claim: what it raises, and whether it raises, does not depend on any private row.
        Proof: it is given names of tables and columns and no other part of a question. It connects, waits for locks
            (ACCESS SHARE, as any reader) and reads the catalog, or the names, sizes, times and schemas of files. No
            SELECT on a private table runs but one of no rows (LIMIT 0), which ends before it fetches any.
        Needs: that the owner's tables are not altered or locked because of what one person's rows hold.
        Checked by: test_to_prepare_a_question_reads_no_row, test_what_is_not_ready_is_refused_and_not_charged
        """

    def totals(self, question: Question) -> EngineTotals:
        """Compute the exact totals of a question, all from one state of the data: prepare and read at once."""

    def columns(self, table: str) -> dict[str, Type]:
        """Return a table's columns, as questions see them."""

    def values(self, table: str, column: str) -> list[Any]:
        """Return the values of a column of a PUBLIC table, in order, without NULL."""

    def fanout(self, table: str, columns: tuple[str, ...]) -> int:
        """Return how many rows of a PUBLIC table share their values of these columns at most; NULL equals nothing."""

    def batches(
        self, relation: Relation, columns: tuple[str, ...], size: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Give the rows of a relation that lack none of these numbers: the numbers, and the place of each row's unit.

        Rows of one unit follow each other.
        """

    def close(self) -> None:
        """Stop a question that is running, and give everything back; closing twice does nothing."""


@dataclass(frozen=True)
class Tuning:
    """How much of the machine the engine may use; nothing here affects privacy.

    `memory` is a share or a size ("4GB"); what does not fit, and not more than `disk`, is spilled to a private folder
    inside `folder` (None: the system's place for temporary files), which is removed at the end (engines/duckdb/spill.py).

    >>> Tuning(memory="4GB", threads=2, seconds=60).disk
    '20GB'
    """

    memory: str = "50%"
    threads: int | None = None
    seconds: float = 600
    folder: str | None = None
    disk: str = "20GB"  # a question that fills the disk would stop the ledger too
    remember: int = 1 << 28  # bytes of exact totals that are kept for other questions about the same rows and groups

    def __post_init__(self) -> None:
        if not 0.001 <= self.seconds <= 10**7:
            raise ValueError(f"seconds must lie between 0.001 and 10^7, not {self.seconds!r}")
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"threads must be at least 1, not {self.threads!r}")
        if self.remember < 0:
            raise ValueError(f"remember must not be below 0, not {self.remember!r}")
