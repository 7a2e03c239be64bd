"""Pairs of curators on neighbouring databases, and repeated releases of prepared queries.

A copy has the policy's tables, columns and contribution bounds, and a budget that no audit uses up. Its delta, if any,
is 0.5: an event of probability 1e-9 cannot be observed, so thresholds are computed for a delta that can be.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import pyarrow.parquet as pq

from discreet import pricing
from discreet.audit.policy.extreme_values import Placement
from discreet.audit.policy.neighbouring_databases import Tables, neighbouring_databases
from discreet.audit.policy.query_suite import AuditQuery
from discreet.curator.curator import Curator
from discreet.curator.open import open_curator
from discreet.engines.column_usage import ColumnUsage
from discreet.engines.interface import Engine
from discreet.estimate.planned_release import PlannedRelease
from discreet.kernel import release
from discreet.kernel.event import OWNER, Event
from discreet.kernel.ledger import Ledger
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.question import Question
from discreet.kernel.release import EngineTotals, NoisyTotals, ReleaseRequest, ReleaseResult, TotalsEngine
from discreet.ledger_sqlite import memory_ledger
from discreet.policy import Policy, write_policy
from discreet.pricing import CostRequest, ReleaseHistory
from discreet.query.passes import plan_query

_AMPLE_EPSILON = 10**6  # the largest epsilon that a budget can have
_HALF = Fraction(1, 2)
_RUNS_PER_CHARGE = 50  # runs charged together, because a charge takes longer than drawing the noise


@dataclass(frozen=True)
class CuratorPair:
    """Two curators whose databases differ in one planted unit."""

    placement: Placement
    present: Curator
    absent: Curator


@dataclass(frozen=True)
class PairQuery:
    """A planned query with its noise and its cost."""

    query: AuditQuery
    requests: tuple[ReleaseRequest, ...]
    cost: Loss


@contextmanager
def open_curator_pairs(policy: Policy, *, random_state: int = 0) -> Iterator[list[CuratorPair]]:
    """Open curators on neighbouring databases that fit a policy, in a temporary folder.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> with open_curator_pairs(policy) as pairs:
    ...     pairs[0].placement.name, pairs[0].present.policy.data.name
    ('one row, highest values', 'visits-audit')
    """
    with TemporaryDirectory(prefix="discreet-audit-") as folder, ExitStack() as stack:
        absent: dict[bool, Curator] = {}
        pairs = []
        for number, databases in enumerate(neighbouring_databases(policy, random_state=random_state)):
            subfolder = Path(folder) / str(number)
            if databases.placement.alone not in absent:
                copy = write_policy_copy(policy, databases.absent, subfolder / "absent")
                absent[databases.placement.alone] = stack.enter_context(open_curator(copy))
            present = stack.enter_context(
                open_curator(write_policy_copy(policy, databases.present, subfolder / "present"))
            )
            pairs.append(CuratorPair(databases.placement, present, absent[databases.placement.alone]))
        yield pairs


def write_policy_copy(policy: Policy, tables: Tables, folder: Path, *, ledger: str = ":memory:") -> Path:
    """Write tables into a folder, with a copy of the policy that refers only to them; return its path."""
    folder.mkdir(parents=True)
    sources = {name: f"table-{number}.parquet" for number, name in enumerate(policy.tables)}
    for name, source in sources.items():
        pq.write_table(tables[name], folder / source)
    copied_tables = {name: replace(table, source=sources[name]) for name, table in policy.tables.items()}
    location = {"ledger": ledger, "engine": "duckdb", "connection": None}
    data = policy.data.model_copy(update={"name": f"{policy.data.name[:190]}-audit", **location})
    budget = {"epsilon": Fraction(_AMPLE_EPSILON), "analysts": {}}
    budget |= {"delta": _HALF} if policy.budget_entry.delta else {}
    spending = policy.budget_entry.model_copy(update=budget)
    file = folder / "policy.toml"
    file.write_text(
        write_policy(replace(policy, data=data, budget_entry=spending, tables=MappingProxyType(copied_tables)))
    )
    return file


def cost_request(policy: Policy, epsilon: Fraction) -> CostRequest:
    """Return the cost of each query: an epsilon or, in a budget with a delta, the rho that this epsilon implies.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1, "delta": 0.001},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> cost_request(policy, Fraction(1)).rho
    Fraction(1, 2)
    """
    if policy.budget_entry.delta:
        return CostRequest(None, Loss(epsilon).rho, None)
    return CostRequest(epsilon, None, None)


def prepare_query(curator: Curator, query: AuditQuery, cost: CostRequest) -> PairQuery:
    """Plan a query and its noise by the same steps as `Curator.ask`; Refused if the policy does not allow it."""
    policy, engine = curator.policy, curator._engine  # noqa: SLF001 - the curator has no public interface for this

    def empty_history(parts: tuple[PlannedRelease, ...]) -> tuple[ReleaseHistory, ...]:
        with memory_ledger(name=policy.data.name, budget=policy.budget) as empty_ledger:
            return pricing.look_up_histories(
                parts, empty_ledger, pricing.data_version(policy), pricing.noise_type_for(policy)
            )

    plan = plan_query(query.sql, policy, engine, by=OWNER, groups=query.groups, rows=query.rows)
    target = pricing.accuracy_target(plan, pricing.read_cost_request(plan, cost, OWNER, policy), policy, empty_history)
    release_plan = pricing.plan_release(target.histories, target.allocation, target.delta)
    return PairQuery(query, release_plan.asks, release_plan.marginal_cost)


def exact_totals(curator: Curator, prepared: PairQuery) -> list[EngineTotals]:
    """Return the exact totals of a query, for internal comparison only."""
    return [curator._engine.totals(request.question) for request in prepared.requests]  # noqa: SLF001 - as above


class EngineWithTotals:
    """An engine that computes totals by another function."""

    def __init__(self, engine: Engine, totals: Callable[[Question], EngineTotals]) -> None:
        self._engine, self.totals = engine, totals

    @contextmanager
    def prepare(self, usage: ColumnUsage) -> Iterator["EngineWithTotals"]:
        """Prepare the engine, and read through this one."""
        with self._engine.prepare(usage):
            yield self

    def close(self) -> None:
        """Leave the engine open for others."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


def caching_engine(engine: Engine) -> Any:
    """Return the engine with totals that are computed once for each question, so that repeated releases read little."""
    return EngineWithTotals(engine, cache(engine.totals))


def repeat_release(curator: Curator, prepared: PairQuery, runs: int) -> Iterator[tuple[NoisyTotals, ...]]:
    """Release the answer to a query `runs` times, each charged and with fresh noise, as `Curator.ask` does."""
    release_size, engine = len(prepared.requests), caching_engine(curator._engine)  # noqa: SLF001 - as above
    for start in range(0, runs, _RUNS_PER_CHARGE):
        with memory_ledger(name="audit", budget=_audit_budget(prepared.cost)) as ledger:
            parts = _release_many(curator, prepared, min(_RUNS_PER_CHARGE, runs - start), engine, ledger).parts
        for index in range(0, len(parts), release_size):
            yield parts[index : index + release_size]


def release_event(curator: Curator, prepared: PairQuery) -> Event:
    """Release a query once and return its event from the ledger."""
    with memory_ledger(name="audit", budget=_audit_budget(prepared.cost)) as ledger:
        _release_many(curator, prepared, 1, curator._engine, ledger)  # noqa: SLF001 - as above
        return ledger.events()[-1]


@contextmanager
def with_fresh_ledger(curator: Curator) -> Iterator[Curator]:
    """Yield a curator on the same data with a new ledger."""
    with memory_ledger(name=curator.ledger.terms.name, budget=curator.policy.budget) as ledger:
        yield Curator(curator.policy, curator._engine, ledger)  # noqa: SLF001 - as above


def _release_many(
    curator: Curator, prepared: PairQuery, count: int, engine: TotalsEngine, ledger: Ledger
) -> ReleaseResult:
    loss = prepared.cost
    epsilon = None if loss.epsilon is None else count * loss.epsilon
    return release.release_totals(
        prepared.requests * count,
        cost=Loss.of_bounds(epsilon, count * loss.rho, count * loss.delta),
        catalog=curator.releases.catalog,
        engine=engine,
        ledger=ledger,
        question=prepared.query.sql,
    )


def _audit_budget(cost: Loss) -> Budget:
    return Budget(_AMPLE_EPSILON) if cost.epsilon is not None else Budget(_AMPLE_EPSILON, _HALF, discover=_HALF)
