"""Neighbouring data: made-up tables that fit a policy, with one unit planted where it can move answers most."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from discreet.audit.policy_values import Place, values_of
from discreet.policy import Between, Column, ColumnInWindow, Keys, Policy, References, Row, Table, Through
from discreet.policy import dummy as made_up

_PEOPLE = 400  # rows of each private table: enough for groups that pass a threshold
_GROUPS, _ROWS = 2, 3  # what a question says where a table sets no limits
_MOST_GROUPS, _MOST_ROWS = 20, 400  # and where it allows more: a planted unit shall exceed every limit

Tables = Mapping[str, pa.Table]
PLACES = (
    Place("one row, highest values", many=False, values="highest"),
    Place("one row, lowest values", many=False, values="lowest"),
    Place("the same row too often, highest", many=True, values="highest"),
    Place("the same row too often, lowest", many=True, values="lowest"),
    Place("all groups allowed, highest", many=True, values="highest", spread="as many groups as allowed"),
    Place("all groups allowed, lowest", many=True, values="lowest", spread="as many groups as allowed"),
    Place("too many groups, highest", many=True, values="highest", spread="every group"),
    Place("too many groups, lowest", many=True, values="lowest", spread="every group"),
    Place("above every bound", many=True, values="above", spread="every group"),
    Place("below every bound", many=True, values="below", spread="every group"),
    Place("not a number", many=True, values="nan", spread="as many groups as allowed"),
    Place("missing values", many=True, values="missing"),
    Place("keys of its own", many=True, values="highest", spread="groups of its own"),
    Place("alone in the data", many=True, values="highest", spread="as many groups as allowed", alone=True),
)


@dataclass(frozen=True)
class Neighbours:
    """Two data sets that differ in one unit: the tables with it, and without."""

    place: Place
    present: Tables
    absent: Tables


def limits_of(table: Table) -> tuple[int, int]:
    """Return in how many groups a unit of a table counts, and with how many rows; not many, if it does not say or more.

    >>> policy = Policy.of({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v", "unit": "who", "rows": 5, "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> limits_of(policy.tables["visits"])
    (2, 5)
    """
    one = isinstance(table.unit, Row)
    groups, rows = table.groups or (1 if one else _GROUPS), table.rows or (1 if one else _ROWS)
    return min(groups, _MOST_GROUPS), min(rows, _MOST_ROWS)


def neighbours(policy: Policy, *, random_state: int = 0) -> Iterator[Neighbours]:
    """Give pairs of neighbouring data sets that fit a policy; nothing of the real data is read.

    >>> policy = Policy.of({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> first = next(neighbours(policy))
    >>> first.present["visits"].num_rows - first.absent["visits"].num_rows
    1
    """
    people = made_up(policy, _PEOPLE, random_state=random_state)
    victim = _Victim.of(policy, people)
    nobody = {name: rows if policy.tables[name].public else rows.slice(0, 0) for name, rows in people.items()}
    for place in PLACES:
        absent = nobody if place.alone else victim.others
        planted = {name: victim.rows(policy.tables[name], place) for name in victim.removed}
        present = {
            name: pa.concat_tables([rows, planted[name]]) if name in planted else rows for name, rows in absent.items()
        }
        yield Neighbours(place, present, absent)


@dataclass(frozen=True)
class _Victim:
    """One unit of made-up data: its rows there, which are replaced by planted ones, and everybody else's."""

    policy: Policy
    removed: Tables
    others: Tables

    @classmethod
    def of(cls, policy: Policy, people: Tables) -> "_Victim":
        removed: dict[str, pa.Table] = {}
        others = dict(people)
        who = _first_person(policy, people)
        waiting = [table for table in policy.tables.values() if not table.public]
        while waiting:
            table = next(each for each in waiting if not isinstance(each.unit, Through) or each.unit.table in removed)
            waiting.remove(table)
            rows = people[table.name]
            own = _owned(table, rows, who, removed)
            removed[table.name], others[table.name] = rows.filter(own), rows.filter(pc.invert(own))
        return cls(policy, removed, others)

    def rows(self, table: Table, place: Place) -> pa.Table:
        """Make the rows that are planted into a table."""
        before = self.removed[table.name]
        if not before.num_rows:
            return before
        groups, rows = limits_of(table)
        count = 2 * (groups + 1) * (rows + 1) if place.many and not isinstance(table.unit, Row) else 1
        kept = self._kept(table)
        columns = []
        for name in table.columns:
            kind = before.schema.field(name).type
            if name in kept:
                known = before.column(name).to_pylist()
                known = known[:1] if kept[name] == "one" else known
                columns.append(pa.array([known[row % len(known)] for row in range(count)], kind))
            else:
                values = values_of(table.columns[name], place, groups, self._pool(table, name), kind)
                columns.append(pa.array([values[row % len(values)] for row in range(count)], kind))
        return pa.Table.from_arrays(columns, schema=before.schema)

    def _kept(self, table: Table) -> dict[str, Literal["one", "all"]]:
        """Return the columns that say whose the rows are, which stay as they were: all values, or the first of them."""
        kept: dict[str, Literal["one", "all"]] = {}
        match table.unit:
            case Column(name):
                kept[name] = "one"
            case ColumnInWindow(name, time, _):
                kept |= {name: "one", time: "one"}
            case Through(_, on, _):
                kept[on] = "all"
        leads = (other.unit for other in self.policy.tables.values() if isinstance(other.unit, Through))
        return {unit.key: "all" for unit in leads if unit.table == table.name} | kept  # type: ignore[return-value]

    def _pool(self, table: Table, name: str) -> list[Any]:
        """Return values that a column may have: listed ones, or those that the others have, the commonest first."""
        domain = table.columns[name].domain
        if isinstance(domain, Keys):
            return list(domain.values)
        if isinstance(domain, Between):
            return []
        of = (domain.table, domain.column) if isinstance(domain, References) else (table.name, name)
        values = [value for value in self.others[of[0]].column(of[1]).to_pylist() if value is not None]
        return [value for value, _ in Counter(values).most_common()]


def _first_person(policy: Policy, people: Tables) -> Any:
    """Return who has most rows in made-up data; None where rows are units."""
    for table in policy.tables.values():
        if isinstance(table.unit, Column | ColumnInWindow):
            return people[table.name].column(table.unit.name)[0].as_py()
    return None


def _owned(table: Table, rows: pa.Table, who: Any, removed: Tables) -> pa.Array:
    """Return which rows of a table belong to a unit."""
    match table.unit:
        case Column(name) | ColumnInWindow(name, _, _):
            return pa.array([value == who for value in rows.column(name).to_pylist()], pa.bool_())
        case Through(parent, on, key):
            keys = set(removed[parent].column(key).to_pylist())
            return pa.array([value in keys for value in rows.column(on).to_pylist()], pa.bool_())
    return pa.array([place == 0 for place in range(rows.num_rows)], pa.bool_())
