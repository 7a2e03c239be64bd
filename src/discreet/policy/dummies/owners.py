"""Who owns the rows of a dummy table: most units stay within the contribution bounds, and a few exceed them."""

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

_USUAL_ROWS = 5  # mean rows per unit, where the bounds leave room for it
_ROOM = 4  # the bounds allow this many times the mean
_EXCEEDING = 200  # one unit in this many exceeds the bounds


def unit_pool(policy: Policy, rows: int, chance: Chance) -> list[Any]:
    """Draw the units that all tables share: as many as the table with the fewest rows per unit needs."""
    column = next((column for table in policy.tables.values() if (column := _unit_column(table))), None)
    if column is None:
        return []
    narrow = [each for table in policy.tables.values() if (each := _unit_column(table)) and _is_narrow(each)]
    fewest = min(_mean_rows(table) for table in policy.tables.values() if _unit_column(table))
    return distinct(narrow[0] if narrow else column, max(2, rows // fewest), chance)


def spread(table: Table, rows: int, owners: int, chance: Chance) -> Any:
    """Return the owner of each row, by number: most stay within the bounds, and a few have twice as many rows."""
    owners = min(owners, max(2, rows // _mean_rows(table)))
    many = min(2 * _most_rows(table) + 1, max(rows // 4, 1))
    exceeding = np.repeat(np.arange(min(max(2, owners // _EXCEEDING), owners)), many)[: rows // 2]
    one_each = np.arange(owners)[: max(rows - len(exceeding), 0)]
    weights = chance.gamma(2, size=owners) + 0.1
    others = chance.choice(owners, size=max(rows - len(exceeding) - len(one_each), 0), p=weights / weights.sum())
    return np.concatenate([exceeding, one_each, others])[:rows]


def _most_rows(table: Table) -> int:
    return (table.groups or 1) * (table.rows or _USUAL_ROWS)


def _mean_rows(table: Table) -> int:
    return min(_USUAL_ROWS, max(1, _most_rows(table) // _ROOM))


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
