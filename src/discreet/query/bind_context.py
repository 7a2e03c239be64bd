"""The public information that a query is bound against."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from discreet.estimate.contribution_histogram import ChosenBounds
from discreet.policy import DeclaredTable, Policy
from discreet.policy.declarations import Bound
from discreet.query.table_sources import PublicTables


@dataclass(frozen=True)
class RequestedBounds:
    """Contribution bounds given with the query; None where the policy decides."""

    groups: Bound | None = None
    rows: Bound | None = None


@dataclass(frozen=True)
class BindContext:
    """The policy, the public tables, the analyst, and the requested contribution bounds."""

    policy: Policy
    public_tables: PublicTables
    by: str
    requested_bounds: RequestedBounds = RequestedBounds()
    chosen_bounds: Mapping[str, ChosenBounds] = field(default_factory=dict, compare=False)  # by AutomaticBounds.key

    @property
    def max_join_fanout(self) -> int:
        """The maximum number of rows that one private row may become through joins."""
        return self.policy.budget_entry.join_limit

    @property
    def visible_tables(self) -> tuple[DeclaredTable, ...]:
        """The tables that the analyst has access to."""
        return self.policy.tables_for(self.by)
