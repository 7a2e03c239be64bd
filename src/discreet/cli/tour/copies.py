"""Copies of a data set: each has a ledger of its own, so that the same question pays again and draws its noise anew."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, cast

from discreet.curator import Curator
from discreet.engines.interface import Engine
from discreet.engines.usage import Usage
from discreet.kernel.event import OWNER
from discreet.kernel.ledger import memory_ledger
from discreet.kernel.loss import Budget
from discreet.kernel.release import Catalog, Released, ask
from discreet.policy import Policy
from discreet.sql import Plan, price_of, read, scan_of, split


class _Remembering:
    """An engine that reads the exact totals of a question once; whoever asks again gets the same ones."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[Any, Any] = {}

    @contextmanager
    def prepare(self, usage: Usage) -> Iterator["_Remembering"]:
        with self._engine.prepare(usage):  # of DuckDB, which can be read within and without
            yield self

    def totals(self, question: Any) -> Any:
        if question not in self._known:
            self._known[question] = self._engine.totals(question)
        return self._known[question]

    def close(self) -> None:
        """Leave the engine open for the other copies."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


class _Copy(Curator):
    """A curator that does not read SQL again that another copy has read."""

    known: dict[tuple[Any, ...], Plan]

    def _plan(self, sql: str, by: str, groups: int | None, rows: int | None) -> Plan:
        asked = (sql, by, groups, rows)
        if asked not in self.known:
            self.known[asked] = super()._plan(*asked)
        return self.known[asked]


class Copies:
    """Copies of the data set that a curator serves."""

    def __init__(self, curator: Curator) -> None:
        self.policy: Policy = curator.policy
        self._known: dict[tuple[Any, ...], Plan] = {}
        # A copy is the same engine under another ledger; curators have no door for that.
        self._engine = cast("Engine", _Remembering(curator._engine))  # noqa: SLF001

    def fresh(self) -> Curator:
        """Return one more copy, with nothing spent."""
        ledger = memory_ledger(name=self.policy.data.name, budget=self.policy.budget)
        copy = _Copy(self.policy, self._engine, ledger)
        copy.known = self._known
        return copy

    def counts(self, questions: Sequence[str], epsilon: Fraction) -> "Counts":
        """Return the questions, of one number each, ready to be asked of many copies for this price together."""
        return Counts(self.policy, self._engine, questions, epsilon)


class Counts:
    """Questions that were read once. To ask them is what a curator does after reading: pay, draw, store, show."""

    def __init__(self, policy: Policy, engine: Engine, questions: Sequence[str], epsilon: Fraction) -> None:
        self._policy, self._engine, self._epsilon = policy, engine, epsilon
        self._plans = [read(sql, policy, engine, by=OWNER, groups=None, rows=None) for sql in questions]
        self._price = price_of(policy.budget, (), epsilon=epsilon / len(questions))
        self._asks = [split(plan.parts, self._price) for plan in self._plans]
        private = {name: scan_of(policy, name) for name, table in policy.tables.items() if not table.public}
        self._catalog = Catalog(private, {})

    def ask(self) -> list[int]:
        """Ask them of one more copy, whose whole budget is their price."""
        with memory_ledger(name=self._policy.data.name, budget=Budget(self._epsilon)) as ledger:
            return [
                self._number(
                    place,
                    ask(
                        asks,
                        price=self._price,
                        catalog=self._catalog,
                        engine=self._engine,
                        ledger=ledger,
                        question=self._plans[place].text,
                    ),
                )
                for place, asks in enumerate(self._asks)
            ]

    def _number(self, place: int, released: Released) -> int:
        (part,), (noisy,) = self._plans[place].parts, released.parts
        return round(int(noisy.values[0, 0]) / (1 << part.question.bits(part.question.totals[0])))
