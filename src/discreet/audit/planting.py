"""Neighbouring data: made-up tables that fit a policy, with one unit planted where it can move answers most."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import ROUND_DOWN, Decimal
from fractions import Fraction
from math import inf, nan
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from discreet.policy import Between, Column, ColumnInWindow, Declared, Keys, Open, Policy, References, Row, Table, Through
from discreet.policy import dummy as made_up

_PEOPLE = 400  # rows of each private table: enough for groups that pass a threshold
_MOST = 20_000  # rows of the planted unit; a policy may allow more than an audit has time for
_MONTHS = 36  # different times of a unit that is in many groups
_GROUPS, _ROWS = 2, 3  # what a question says where a table sets no limits

Tables = Mapping[str, pa.Table]
Values = Literal["highest", "lowest", "beyond", "missing", "nan"]
Spread = Literal["one group", "as many groups as allowed", "every group", "groups of its own"]


@dataclass(frozen=True)
class Place:
    """How a unit is planted: with how many rows, which values, in which groups, and beside whom."""

    name: str
    many: bool
    values: Values
    spread: Spread = "one group"
    alone: bool = False


PLACES = (
    Place("one row, highest values", many=False, values="highest"),
    Place("one row, lowest values", many=False, values="lowest"),
    Place("the same row too often, highest", many=True, values="highest"),
    Place("the same row too often, lowest", many=True, values="lowest"),
    Place("all groups allowed, highest", many=True, values="highest", spread="as many groups as allowed"),
    Place("all groups allowed, lowest", many=True, values="lowest", spread="as many groups as allowed"),
    Place("too many groups, highest", many=True, values="highest", spread="every group"),
    Place("too many groups, lowest", many=True, values="lowest", spread="every group"),
    Place("beyond every bound", many=True, values="beyond", spread="every group"),
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
    """Return in how many groups a unit of a table counts, and with how many rows; small numbers if it does not say.

    >>> policy = Policy.of({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v", "unit": "who", "rows": 5, "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> limits_of(policy.tables["visits"])
    (2, 5)
    """
    one = isinstance(table.unit, Row)
    return table.groups or (1 if one else _GROUPS), table.rows or (1 if one else _ROWS)


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
        count = min(2 * (groups + 1) * (rows + 1), _MOST) if place.many and not isinstance(table.unit, Row) else 1
        kept = self._kept(table)
        columns = []
        for name in table.columns:
            kind = before.schema.field(name).type
            if name in kept:
                known = before.column(name).to_pylist()
                known = known[:1] if kept[name] == "one" else known
                columns.append(pa.array([known[row % len(known)] for row in range(count)], kind))
            else:
                values = _values(table.columns[name], place, groups, self._pool(table, name), kind)
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


def _values(column: Declared, place: Place, groups: int, pool: Sequence[Any], kind: pa.DataType) -> list[Any]:
    """Return the values of a column that planted rows have in turn."""
    if place.values == "missing":
        return [None]
    if place.values == "nan" and pa.types.is_floating(kind):
        return [nan]
    if place.values == "beyond":
        return _beyond(kind)
    return [_stored(value, kind) for value in _groups(_inside(column, place, pool), place, groups)]


def _groups(values: list[Any], place: Place, groups: int) -> list[Any]:
    match place.spread:
        case "one group":
            return values[:1]
        case "as many groups as allowed":
            return values[:groups]
    return values


def _inside(column: Declared, place: Place, pool: Sequence[Any]) -> list[Any]:
    """Return values that the policy allows: listed ones, the end of a range, or any where there is no domain."""
    if pool and not (isinstance(column.domain, Open) and place.spread == "groups of its own"):
        numbers = column.type in ("integer", "decimal") and isinstance(column.domain, Keys)
        return sorted(pool, reverse=place.values != "lowest") if numbers else list(pool)
    if isinstance(column.domain, Between):
        end = column.domain.low if place.values == "lowest" else column.domain.high
        return _times(column.domain, end) if isinstance(end, date) else [end]
    return _anything(column.type, range(1 if place.spread == "one group" else _MOST))


def _anything(kind: str, numbers: range) -> list[Any]:
    """Return values of a type that nobody else has, as many as there are."""
    match kind:
        case "text":
            return [f"planted {number}" for number in numbers]
        case "date":
            return [date(2024, 2, 29) + timedelta(number % 1000) for number in numbers]
        case "timestamp":
            return [datetime(2024, 2, 29, 12) + timedelta(number % 1000) for number in numbers]  # noqa: DTZ001 - local
        case "boolean":
            return [True, False]
    return [10**9 + number for number in numbers]


def _times(domain: Between, end: Any) -> list[Any]:
    """Return times over a range, its end first, and each in another month."""
    low, high = domain.low, domain.high
    step: timedelta = max((high - low) / _MONTHS, timedelta(days=32))  # type: ignore[operator, assignment]
    way = -step if end == high else step
    return [end + number * way for number in range(_MONTHS) if low <= end + number * way <= high]


def _beyond(kind: pa.DataType) -> list[Any]:
    """Return values of a type that lie outside whatever a policy says, as far as they can be stored."""
    if pa.types.is_integer(kind):
        return [2**63 - 1, -(2**63), 2**62]
    if pa.types.is_floating(kind):
        return [inf, -inf, 1e308, -1e308, nan, 5e-324]
    if pa.types.is_decimal(kind):
        most = Decimal(10 ** (kind.precision - kind.scale) - 1)
        return [most, most.copy_negate()]
    if pa.types.is_date(kind):
        return [date.max, date.min]
    if pa.types.is_timestamp(kind):
        return [datetime.max, datetime.min]  # noqa: DTZ901 - local
    return ["", "not of the list", "\U0001f600 'quoted' \"twice\""] if pa.types.is_string(kind) else [None]


def _stored(value: Any, kind: pa.DataType) -> Any:
    """Return a value in the type that its column is stored in."""
    if pa.types.is_decimal(kind):
        exact = Fraction(value)
        number = Decimal(exact.numerator) / Decimal(exact.denominator)
        return number.quantize(Decimal(1).scaleb(-kind.scale), ROUND_DOWN)
    if pa.types.is_floating(kind):
        return float(value)
    return value
