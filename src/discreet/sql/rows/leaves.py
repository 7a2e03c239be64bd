"""The tables of a policy as the kernel and the reader see them."""

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import cache
from typing import Protocol

from discreet.kernel.errors import PolicyError
from discreet.kernel.expr import Call, Column, Expr, Type, Value
from discreet.kernel.relation import Derive, EachRow, Own, PublicTable, Scan, Through
from discreet.policy import Between, Declared, Keys, Policy, References, Table
from discreet.policy import units as owners
from discreet.policy.tables import spelled
from discreet.sql.rows.scope import Ends, Known, PublicRows, Rows, Values, View, clipped, nothing
from discreet.sql.values.bound import Bound

_NUMBERS = (Type.INTEGER, Type.REAL)
TYPES = {
    "integer": Type.INTEGER,
    "real": Type.REAL,
    "decimal": Type.REAL,
    "boolean": Type.BOOLEAN,
    "text": Type.TEXT,
    "date": Type.DATE,
    "timestamp": Type.TIMESTAMP,
}


def kernel_type(name: str) -> Type:
    """Return the kernel's type for one of the policy: decimals are reals there.

    >>> kernel_type("decimal")
    <Type.REAL: 'r'>
    """
    return TYPES[name]


class Publics(Protocol):
    """What may be known of public tables, asked only when a query needs it."""

    def columns(self, table: str) -> Mapping[str, Type]:
        """Return the columns of a public table."""

    def values(self, table: str, column: str) -> list[Value]:
        """Return the different values of a column, in order."""

    def fanout(self, table: str, columns: tuple[str, ...]) -> int:
        """Return how many rows share the same values of these columns, at most; without columns, how many there are."""


def scan_of(policy: Policy, name: str) -> Scan:
    """Return a private table with all of its columns and its owner: the only place that says so.

    >>> policy = Policy.of({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> scan_of(policy, "visits").owner
    Own(unit=(Column(name='who', type=<Type.INTEGER: 'i'>),))
    """
    table = policy.tables[name]
    columns = {declared.name: Column(declared.name, TYPES[declared.type]) for declared in table.columns.values()}
    try:
        return Scan(table.name, tuple(columns.values()), _owner(policy, table, columns), table.rows_max)
    except ValueError as error:
        raise PolicyError(f"table {table.name}: {error}") from None


def _owner(policy: Policy, table: Table, columns: Mapping[str, Column]) -> Own | EachRow | Through:
    match table.unit:
        case owners.Column(name):
            return Own((columns[name],))
        case owners.ColumnInWindow(name, time, window):
            clock: Expr = columns[time]
            moment = Call("to_timestamp", (clock,)) if clock.type is Type.DATE else clock
            return Own((columns[name], Call(f"trunc_{window.value}", (moment,))))
        case owners.Through(parent, on, key):
            return Through(on, scan_of(policy, parent), key)
    return EachRow()


def private_rows(policy: Policy, publics: Publics, table: Table, alias: str) -> Rows:
    """Return a private table as a source of a query; numbers outside a range that says so are NULL from here on."""
    scan = scan_of(policy, table.name)
    columns = tuple(_private(policy, publics, table, declared) for declared in table.columns.values())
    view = View(alias, columns)
    inside = {declared.name: expr for declared in table.columns.values() if (expr := _inside(declared)) is not None}
    if not inside:
        return Rows(scan, (view,))
    named = tuple((column.name, inside.get(column.name, column)) for column in scan.columns)
    return Rows(Derive(scan, named), (view,))


def public_rows(policy: Policy, publics: Publics, table: Table, alias: str) -> PublicRows:
    """Return a public table as a source of a query."""
    types = {name: TYPES[declared.type] for name, declared in table.columns.items()} or publics.columns(table.name)
    columns = tuple((name, Column(name, kind)) for name, kind in types.items())
    known = tuple(_public(policy, publics, table, column) for _, column in columns)
    return PublicRows(PublicTable(table.name, columns), View(alias, known))


def _inside(declared: Declared) -> Expr | None:
    if not isinstance(declared.domain, Between) or declared.domain.outside != "null":
        return None
    held = clipped(_bound(declared)).expr
    assert isinstance(held, Call)
    return Call("inside", held.args)


def _private(policy: Policy, publics: Publics, table: Table, declared: Declared) -> Known:
    bound = _bound(declared)
    links = frozenset(
        (each.unit.table, each.unit.key)
        for each in policy.tables.values()
        if isinstance(each.unit, owners.Through)
        and (
            declared.name == each.unit.on
            if each is table
            else (table.name, declared.name) == (each.unit.table, each.unit.key)
        )
    )
    values = _values(policy, publics, declared)
    match table.unit:
        case owners.Column(name) | owners.ColumnInWindow(name) if name == declared.name:
            return Known(name, replace(bound, unit=0), links=links, sure=True, settled=True)
        case owners.ColumnInWindow(_, time, window) if time == declared.name:
            inside = _inside(declared) is not None
            return Known(time, bound, values, links=links, clock=window, sure=not inside, inside=inside)
    inside = _inside(declared) is not None
    listed = dict.fromkeys(values() or ()) if isinstance(declared.domain, Keys) else None
    return Known(
        declared.name,
        bound,
        values,
        _ends(bound, values),
        declared.null,
        links,
        inside=inside,
        listed=listed,
        unique=declared.unique,
    )


def _public(policy: Policy, publics: Publics, table: Table, column: Column) -> Known:
    """Return a public column: its values are all that it holds, unless the owner declared others."""
    declared = table.columns.get(column.name)
    bound = _bound(declared) if declared else Bound(column)

    @cache
    def values() -> tuple[Value, ...] | None:
        return _listed(publics.values(table.name, column.name), column.type)

    listed = _values(policy, publics, declared) if declared and isinstance(declared.domain, Keys) else values
    null = declared is not None and declared.null
    return Known(column.name, bound, listed, _ends(bound, values), null, inside=bound.low is None)


def _ends(bound: Bound, values: Values) -> Ends | None:
    """Return how to find the range of a number from its public values, if none is declared."""
    if bound.low is not None or bound.type not in _NUMBERS or values is nothing:
        return None

    @cache
    def ends() -> Bound:
        numbers = [Fraction(value) for value in values() or ()]  # type: ignore[arg-type]
        return replace(bound, low=min(numbers), high=max(numbers)) if numbers else bound

    return ends


def _bound(declared: Declared) -> Bound:
    column = Column(declared.name, TYPES[declared.type])
    domain = declared.domain
    if isinstance(domain, Keys) and column.type in _NUMBERS:
        numbers = [Fraction(value) for value in domain.values]  # type: ignore[arg-type]
        return Bound(column, min(numbers), max(numbers))
    if not isinstance(domain, Between):
        return Bound(column)
    low, high = (end if isinstance(end, date) else Fraction(end) for end in (domain.low, domain.high))
    return Bound(column, low, high, domain.step)


def _values(policy: Policy, publics: Publics, declared: Declared) -> Values:
    kind = TYPES[declared.type]
    match declared.domain:
        case Keys(values):
            plain = tuple(float(value) if kind is Type.REAL else value for value in values)  # type: ignore[arg-type]
            return lambda: plain  # type: ignore[return-value]
        case References(name, column):
            return cache(lambda: _referenced(policy, publics, name, column))
    return nothing


def _referenced(policy: Policy, publics: Publics, name: str, column: str) -> tuple[Value, ...]:
    """Return the values of the public column that another refers to."""
    target = policy.table(name)
    assert target is not None
    known = {each: TYPES[there.type] for each, there in target.columns.items()} or publics.columns(target.name)
    found = spelled(known, column)
    if found is None:
        raise PolicyError(f'references names column "{column}", which table "{name}" does not have.')
    return _listed(publics.values(target.name, found), known[found])


def _listed(values: list[Value], kind: Type) -> tuple[Value, ...]:
    """Keep what can be a key: no NULL, nothing that is not finite."""
    fits = (value for value in values if value is not None)
    return tuple(value for value in fits if kind is not Type.REAL or math.isfinite(value))  # type: ignore[arg-type]
