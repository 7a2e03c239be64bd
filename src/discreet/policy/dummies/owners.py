"""Who owns the rows of a fake table: most have a few, and some more than the limits allow."""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.policy.columns import Between, Declared, Keys, Open
from discreet.policy.dummies.values import Chance, distinct
from discreet.policy.policy import Policy
from discreet.policy.tables import Table
from discreet.policy.units import Column, ColumnInWindow

_USUAL_ROWS = 5  # of one unit, where a table sets no limit


def unit_pool(policy: Policy, rows: int, chance: Chance) -> list[Any]:
    """Make up the people that all tables share."""
    column = next((column for table in policy.tables.values() if (column := _unit_column(table))), None)
    if column is None:
        return []
    narrow = [each for table in policy.tables.values() if (each := _unit_column(table)) and _is_narrow(each)]
    return distinct(narrow[0] if narrow else column, max(2, rows // _USUAL_ROWS), chance)


def spread(table: Table, rows: int, owners: int, chance: Chance) -> Any:
    """Return the owner of each row, by number: everybody has one if there are enough, and a few have far too many."""
    many = min(2 * (table.groups or 1) * (table.rows or _USUAL_ROWS) + 1, max(rows // 4, 1))
    busy = np.repeat(np.arange(min(2, owners)), many)[: rows // 2]
    everybody = np.arange(owners)[: max(rows - len(busy), 0)]
    weights = chance.pareto(1.5, size=owners) + 0.1
    others = chance.choice(owners, size=max(rows - len(busy) - len(everybody), 0), p=weights / weights.sum())
    return np.concatenate([busy, everybody, others])[:rows]


def usable(pool: list[Any], column: Declared) -> list[Any]:
    """Return those people whom a table's own domain for them allows."""
    match column.domain:
        case Keys(values):
            return [person for person in pool if person in values] or list(values)
        case Between(low, high):
            return [person for person in pool if low <= _exact(person) <= high] or [low]
    return pool


def _exact(value: Any) -> Any:
    return Fraction(value) if isinstance(value, Decimal) else value


def _unit_column(table: Table) -> Declared | None:
    match table.unit:
        case Column(name) | ColumnInWindow(name, _, _):
            columns: Mapping[str, Declared] = table.columns
            return columns[name]
    return None


def _is_narrow(column: Declared) -> bool:
    return not isinstance(column.domain, Open)
