"""The public information that a query is bound against, and the releases planned so far."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from discreet.estimate.contribution_histogram import ChosenBounds
from discreet.estimate.planned_release import PlannedRelease
from discreet.policy import DeclaredTable, Policy
from discreet.policy.declarations import Bound
from discreet.query.table_sources import PublicTables


@dataclass(frozen=True)
class RequestedBounds:
    """Contribution bounds given with the query; None where the policy decides."""

    groups: Bound | None = None
    rows: Bound | None = None


class PlannedReleases:
    """The releases of one query, without duplicates."""

    def __init__(self, used_names: Iterable[str] = ()) -> None:
        self._used_names = {name.lower() for name in used_names}
        self._by_content: dict[PlannedRelease, PlannedRelease] = {}  # keys have no name

    def add(self, release: PlannedRelease) -> PlannedRelease:
        """Return an equal release, or this one with a name that the query does not use."""
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
    """The policy, the public tables, the analyst, and the requested contribution bounds."""

    policy: Policy
    public_tables: PublicTables
    by: str
    requested_bounds: RequestedBounds = RequestedBounds()
    releases: PlannedReleases = field(default_factory=PlannedReleases, compare=False)
    chosen_bounds: Mapping[str, ChosenBounds] = field(default_factory=dict, compare=False)  # by AutomaticBounds.key

    @property
    def max_join_fanout(self) -> int:
        """The maximum number of rows that one private row may become through joins."""
        return self.policy.budget_entry.join_limit

    @property
    def visible_tables(self) -> tuple[DeclaredTable, ...]:
        """The tables that the analyst has access to."""
        return self.policy.tables_for(self.by)
