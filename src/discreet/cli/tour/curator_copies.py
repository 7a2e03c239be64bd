"""Copies of a curator with separate ledgers, so that the same query draws fresh noise."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from types import MappingProxyType
from typing import Any, cast

from discreet.curator.curator import Curator
from discreet.curator.query_releases import QueryReleases
from discreet.engines.column_usage import ColumnUsage
from discreet.engines.interface import Engine
from discreet.estimate.contribution_histogram import ChosenBounds
from discreet.estimate.planned_release import QueryPlan
from discreet.kernel.event import OWNER
from discreet.kernel.loss import Budget
from discreet.kernel.release import ReleaseResult, release_totals
from discreet.ledger_sqlite import memory_ledger
from discreet.policy import Policy
from discreet.policy.catalog import catalog_of
from discreet.policy.declarations import Bound
from discreet.pricing.allocation import allocate_noise, requested_cost
from discreet.query.passes import plan_query


class _CachingEngine:
    """An engine that computes the exact totals of each question once and caches them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._totals: dict[Any, Any] = {}

    @contextmanager
    def prepare(self, usage: ColumnUsage) -> Iterator["_CachingEngine"]:
        with self._engine.prepare(usage):
            yield self

    def totals(self, question: Any) -> Any:
        if question not in self._totals:
            self._totals[question] = self._engine.totals(question)
        return self._totals[question]

    def close(self) -> None:
        """Leave the engine open for the other copies."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


class _SharedPlans(QueryReleases):
    """Releases of a copy that shares query plans with the other copies."""

    plans: dict[tuple[Any, ...], QueryPlan]

    def plan_query(
        self,
        sql: str,
        by: str,
        groups: Bound | None,
        rows: Bound | None,
        chosen_bounds: Mapping[str, ChosenBounds] = MappingProxyType({}),
    ) -> QueryPlan:
        """Plan a query that no copy has planned yet."""
        arguments = (sql, by, groups, rows, *chosen_bounds.items())
        if arguments not in self.plans:
            self.plans[arguments] = super().plan_query(sql, by, groups, rows, chosen_bounds)
        return self.plans[arguments]


class CuratorCopies:
    """Copies of the data set that a curator serves."""

    def __init__(self, curator: Curator) -> None:
        self.policy: Policy = curator.policy
        self._plans: dict[tuple[Any, ...], QueryPlan] = {}
        # A copy is the same engine with another ledger, which the curator's public interface does not offer.
        self._engine = cast("Engine", _CachingEngine(curator._engine))  # noqa: SLF001

    def open_copy(self) -> Curator:
        """Return a new copy, of whose budget nothing is spent."""
        parts = self.policy, self._engine, memory_ledger(name=self.policy.data.name, budget=self.policy.budget)
        copy, releases = Curator(*parts), _SharedPlans(*parts)
        releases.plans = self._plans
        copy.releases = releases
        return copy

    def prepare_counts(self, queries: Sequence[str], epsilon: Fraction) -> "PreparedCounts":
        """Plan queries with one count each, to be asked together on many copies at this total epsilon."""
        return PreparedCounts(self.policy, self._engine, queries, epsilon)


class PreparedCounts:
    """Queries that are planned once; each `ask` charges, draws noise and settles as a curator does."""

    def __init__(self, policy: Policy, engine: Engine, queries: Sequence[str], epsilon: Fraction) -> None:
        self._policy, self._engine, self._epsilon = policy, engine, epsilon
        self._plans = [plan_query(sql, policy, engine, by=OWNER, groups=None, rows=None) for sql in queries]
        self._cost = requested_cost(policy.budget, (), epsilon=epsilon / len(queries))
        self._requests = [allocate_noise(plan.releases, self._cost) for plan in self._plans]
        self._catalog = catalog_of(policy, engine.columns, engine.location)

    def ask(self) -> list[int]:
        """Ask the queries on a new copy, whose whole budget they spend."""
        with memory_ledger(name=self._policy.data.name, budget=Budget(self._epsilon)) as ledger:
            return [
                self._count_value(
                    index,
                    release_totals(
                        requests,
                        cost=self._cost,
                        catalog=self._catalog,
                        engine=self._engine,
                        ledger=ledger,
                        question=self._plans[index].sql,
                    ),
                )
                for index, requests in enumerate(self._requests)
            ]

    def _count_value(self, index: int, release: ReleaseResult) -> int:
        (part,), (noisy,) = self._plans[index].releases, release.parts
        return round(int(noisy.values[0, 0]) / (1 << part.question.fraction_bits(part.question.totals[0])))
