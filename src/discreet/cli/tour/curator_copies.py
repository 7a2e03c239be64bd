"""Copies of a curator with separate ledgers, so that the same query draws fresh noise."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from discreet.audit.policy.curator_pairs import caching_engine
from discreet.curator.curator import Curator
from discreet.curator.query_releases import QueryReleases
from discreet.engines.interface import Engine
from discreet.estimate.contribution_histogram import ChosenBounds
from discreet.estimate.planned_release import QueryPlan
from discreet.ledger_sqlite import memory_ledger
from discreet.policy import Policy
from discreet.policy.declarations import Bound


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
        self._engine: Engine = caching_engine(curator._engine)  # noqa: SLF001

    def open_copy(self) -> Curator:
        """Return a new copy, of whose budget nothing is spent."""
        parts = self.policy, self._engine, memory_ledger(name=self.policy.data.name, budget=self.policy.budget)
        copy, releases = Curator(*parts), _SharedPlans(*parts)
        releases.plans = self._plans
        copy.releases = releases
        return copy
