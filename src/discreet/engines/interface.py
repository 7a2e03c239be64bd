"""What every engine can do for a curator; all but `totals` serves public facts, or rows that estimators sum up."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from discreet.kernel.dialect import Dialect
from discreet.kernel.expr import Type
from discreet.kernel.question import Question
from discreet.kernel.relation import Relation
from discreet.kernel.release import Totals


class Engine(Protocol):
    """Where the data are. A failure is an EngineError, whose text is for the owner's log only."""

    @property
    def dialect(self) -> Dialect:
        """How the engine writes what it is asked."""

    @property
    def seconds(self) -> float:
        """How long one question may take."""

    def totals(self, question: Question) -> Totals:
        """Compute the exact totals of a question, all from one state of the data."""

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
