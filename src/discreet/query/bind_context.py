"""What is publicly known while a query is bound, and the releases planned for it so far."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from discreet.estimate.planned_release import PlannedRelease
from discreet.policy import DeclaredTable, Policy
from discreet.query.catalog import PublicTables


@dataclass(frozen=True)
class RequestedBounds:
    """How much a unit may weigh, as far as the question says so."""

    groups: int | None = None
    rows: int | None = None


class PlannedReleases:
    """The releases of one query; equal ones are asked once."""

    def __init__(self, used_names: Iterable[str] = ()) -> None:
        self._used_names = {name.lower() for name in used_names}
        self._by_content: dict[PlannedRelease, PlannedRelease] = {}  # by what they are without their names

    def add(self, release: PlannedRelease) -> PlannedRelease:
        """Give a release its name: that of an equal one, or the next that the query does not use itself."""
        unnamed = replace(release, name="")
        if unnamed not in self._by_content:
            names = (f"r{number}" for number in range(len(self._used_names) + len(self._by_content) + 1))
            used = self._used_names | {earlier.name for earlier in self._by_content.values()}
            self._by_content[unnamed] = replace(release, name=next(name for name in names if name not in used))
        return self._by_content[unnamed]

    @property
    def planned(self) -> tuple[PlannedRelease, ...]:
        """All releases, in the order of their names."""
        return tuple(self._by_content.values())


@dataclass(frozen=True)
class BindContext:
    """The policy, the public tables, who asks, and what they said about limits."""

    policy: Policy
    public_tables: PublicTables
    by: str
    requested_bounds: RequestedBounds = RequestedBounds()
    releases: PlannedReleases = field(default_factory=PlannedReleases, compare=False)

    @property
    def max_join_fanout(self) -> int:
        """How many rows one private row may become through joins."""
        return self.policy.budget_entry.join_limit

    @property
    def visible_tables(self) -> tuple[DeclaredTable, ...]:
        """The tables that exist for who asks."""
        return self.policy.tables_for(self.by)
