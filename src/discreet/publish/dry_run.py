"""The forecast of a publication: costs, margins and cells of every table, before anything is charged or read."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from discreet.answer.text import short_number
from discreet.curator import prepared_queries
from discreet.curator.curator import Curator
from discreet.estimate.planned_release import PlannedRelease
from discreet.kernel.loss import ZERO_LOSS, Budget, Loss
from discreet.kernel.question import PublicGroups
from discreet.pricing.remaining_budget import cost_in_budget
from discreet.publish.family_tables import expected_margins
from discreet.publish.parts import FamilyPart, Part, QueryPart, SyntheticPart
from discreet.publish.plan import PublicationPlan
from discreet.publish.planning import plan_parts

_RELIABLE = 4  # times the margin: from there on, the margin is at most a quarter of a number


@dataclass(frozen=True)
class TableForecast:
    """What is known of a table before it is published; `cells` is None if its groups come from the data.

    `margins` has the expected margin of each noisy column, None where it depends on the result. `follows` says that the
    table needs no noise of its own, because others determine it.
    """

    name: str
    part: str
    cells: int | None
    margins: dict[str, float | None]
    follows: bool = False

    def describe(self) -> str:
        """Return a line about the table.

        >>> TableForecast("wards", "family-1", 3, {"n": 12.5}).describe()
        'wards: 3 cells; n ± 12.5; reliable from about 50 per cell, 150 in all if spread evenly'
        """
        size = "cells chosen privately" if self.cells is None else f"{self.cells:,} cell{'s' * (self.cells != 1)}"
        margins = [
            f"{name} ± {short_number(margin, 3)}" if margin is not None else f"{name}: its margin depends on the result"
            for name, margin in self.margins.items()
        ]
        known = [margin for name, margin in self.margins.items() if margin is not None]
        reliable = ""
        if known and self.cells is not None:
            least = _RELIABLE * known[0]
            reliable = f"; reliable from about {least:,.0f} per cell, {least * self.cells:,.0f} in all if spread evenly"
        follows = "; follows from the other tables, without noise of its own" if self.follows else ""
        return f"{self.name}: {size}{'; ' if margins else ''}{', '.join(margins)}{reliable}{follows}"


@dataclass(frozen=True)
class PublicationForecast:
    """The forecast of a plan in a budget: its parts with their costs, its tables, and what these leave out or clip.

    >>> from discreet.kernel.loss import Budget
    >>> wards = TableForecast("wards", "family-1", 3, {"n": 12.5})
    >>> found = PublicationForecast("Wards", Budget(2), (("family-1", Loss("1/2")),), (wards,))
    >>> print(found.lines()[0])
    Wards: would cost epsilon 0.5 (25 % of the budget). No data was read, and nothing was charged.
    """

    name: str
    budget: Budget
    parts: tuple[tuple[str, Loss], ...]
    tables: tuple[TableForecast, ...]
    notes: tuple[str, ...] = ()

    @property
    def cost(self) -> Loss:
        """The cost of the whole plan."""
        return sum((cost for _, cost in self.parts), ZERO_LOSS)

    def lines(self) -> list[str]:
        """Return the forecast as lines of text."""
        tables = [table.describe() for table in self.tables]
        tables += ["", *self.notes] if self.notes else []
        if self.cost == ZERO_LOSS:
            return [f"{self.name}: costs nothing, because all of it is published already.", "", *tables]
        total = cost_in_budget(self.cost, self.budget)
        shares = [
            f"  {name}: {100 * self._share_of(cost):.3g} % of it ({_cost_text(cost)})" for name, cost in self.parts
        ]
        head = f"{self.name}: would cost {total}. No data was read, and nothing was charged."
        return [head, *shares, "", *tables]

    def _share_of(self, cost: Loss) -> float:
        whole = self.cost
        return float(cost.rho / whole.rho if whole.epsilon is None else (cost.epsilon or 0) / whole.epsilon)


def forecast(curator: Curator, plan: PublicationPlan) -> PublicationForecast:
    """Return the cost and the margins of a plan. This is free and reads no private data.

    >>> import discreet as dc, pyarrow as pa
        >>> people = pa.table({"person": range(100), "sex": ["f", "m"] * 50})
    >>> plan = dc.publish.PublicationPlan.parse('''
    ...     [release]
    ...     name = "People"
    ...     epsilon = 1
    ...     [tables.by_sex]
    ...     sql = "SELECT sex, COUNT(*) AS n FROM data GROUP BY sex"
    ...     [tables.everybody]
    ...     sql = "SELECT COUNT(*) AS n FROM data"
    ... ''')
    >>> with dc.open(
    ...     people, unit="person", budget=1, columns={"sex": ["f", "m"]}, groups=1, rows=1, ledger=":memory:"
    ... ) as curator:
    ...     expected = forecast(curator, plan)
    >>> expected.cost.epsilon, [(table.name, table.cells) for table in expected.tables]
    (Fraction(1, 1), [('by_sex', 2), ('everybody', 1)])
    """
    parts = plan_parts(curator, plan)
    tables = [table for part in parts for table in _tables_of(curator, part)]
    notes = tuple(note for part in parts if isinstance(part, FamilyPart) for note in part.notes)
    costs = tuple((part.name, part.cost) for part in parts)
    return PublicationForecast(plan.release.name, curator.policy.budget, costs, tuple(tables), notes)


def _tables_of(curator: Curator, part: Part) -> Sequence[TableForecast]:
    if isinstance(part, FamilyPart):
        own = {block.table for block in part.family.blocks}
        return [
            TableForecast(
                table.name,
                part.name,
                len(part.family.keys.cells_of(table.release, table.rows)[0]),
                expected_margins(part.family, table),
                part.family.keys.table_of(table.release) not in own,
            )
            for table in part.family.tables
        ]
    if isinstance(part, SyntheticPart):
        return [TableForecast(part.name, part.name, math.prod(part.releases.sizes), {})]
    assert isinstance(part, QueryPart)
    explanation = prepared_queries.explain_prepared(curator.releases, part.query)
    margins = {column.name: column.margin for column in explanation.columns}
    cells = [_cells_of(release) for release in part.query.plan.answering]
    return [TableForecast(part.name, part.name, None if None in cells else max(filter(None, cells)), margins)]


def _cells_of(release: PlannedRelease) -> int | None:
    groups = release.question.groups
    return groups.key_count if isinstance(groups, PublicGroups) else None


def _cost_text(cost: Loss) -> str:
    amount = f"rho {short_number(cost.rho)}" if cost.epsilon is None else f"epsilon {short_number(cost.epsilon)}"
    return amount + (f" and delta {float(cost.delta):.2g}" if cost.delta else "")
