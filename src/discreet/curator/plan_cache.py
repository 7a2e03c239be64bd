"""Plans of repeated queries: one is valid as long as public tables give the planner what they gave it then.

All else that a plan depends on is in its request, or in the policy, which stays the same while a curator is open.
"""

from collections.abc import Callable, Hashable, Mapping
from hashlib import sha256

from discreet.estimate.planned_release import QueryPlan
from discreet.kernel.expr import Type, Value
from discreet.kernel.question import PublicGroups
from discreet.query.passes import run_reader
from discreet.query.relations.bound_sources import PublicTables

_MAX_PLANS = 64
_MAX_KEYS = 1_000_000  # in the lists of all plans together, about 100 MB


class PlanCache:
    """Plans by request, with what each read of the rows of public tables. Several threads may use it."""

    def __init__(self, tables: PublicTables) -> None:
        self._tables = tables
        self._plans: dict[Hashable, tuple[QueryPlan, _PublicReads]] = {}
        self._keys_kept = 0

    def plan(self, request: Hashable, make_plan: Callable[[PublicTables], QueryPlan]) -> QueryPlan:
        """Return the plan of a request, which is made again if public rows that it depends on have changed."""
        if (kept := self._plans.get(request)) is not None and run_reader(kept[1].are_current):
            return kept[0]
        reads = _PublicReads(self._tables)
        plan = make_plan(reads)
        key_count = _listed_keys(plan)
        if len(self._plans) >= _MAX_PLANS or self._keys_kept + key_count > _MAX_KEYS:
            self._plans, self._keys_kept = {}, 0
        self._plans[request] = plan, reads
        self._keys_kept += key_count
        return plan


class _PublicReads:
    """Public tables, and what was read of their rows: the arguments, and a digest of the result."""

    def __init__(self, tables: PublicTables) -> None:
        self._tables = tables
        self._values: set[tuple[str, str, bytes]] = set()
        self._fanouts: set[tuple[str, tuple[str, ...], int]] = set()

    def columns(self, table: str) -> Mapping[str, Type]:
        """Return the columns of a public table, which stay the same."""
        return self._tables.columns(table)

    def values(self, table: str, column: str) -> list[Value]:
        """Return the distinct values of a column, sorted."""
        values = self._tables.values(table, column)
        self._values.add((table, column, _digest(values)))
        return values

    def fanout(self, table: str, columns: tuple[str, ...]) -> int:
        """Return the maximum number of rows with equal values in these columns; without columns, the number of rows."""
        fanout = self._tables.fanout(table, columns)
        self._fanouts.add((table, columns, fanout))
        return fanout

    def are_current(self) -> bool:
        """Return whether the tables give the same now; never if they changed while they were read."""
        return all(self._tables.fanout(table, columns) == fanout for table, columns, fanout in self._fanouts) and all(
            _digest(self._tables.values(table, column)) == digest for table, column, digest in self._values
        )


def _listed_keys(plan: QueryPlan) -> int:
    """Return how many keys of groups a plan lists; EXPLAIN is free, and makes a plan of any list that it names."""
    groups = [release.question.groups for release in plan.releases]
    domains = [domain for each in groups if isinstance(each, PublicGroups) for domain in each.domains]
    return sum(map(len, [*domains, *(plan.catalog or {}).values()]))


def _digest(values: list[Value]) -> bytes:
    return sha256(repr(values).encode()).digest()
