"""The tables of a policy as sources of a query: what the front end knows of each column."""

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import cache

from discreet.kernel.errors import PolicyError
from discreet.kernel.expr import Call, Column, Expr, Type, Value
from discreet.kernel.relation import Derive, PublicTable
from discreet.policy import Between, DeclaredColumn, DeclaredTable, Keys, Policy, References
from discreet.policy import declarations as owners
from discreet.policy.catalog import kernel_type, scan_of
from discreet.policy.declarations import declared_name
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.relations.bound_sources import (
    ColumnInfo,
    PrivateSource,
    PublicSource,
    PublicTables,
    RangeLookup,
    ValuesLookup,
    View,
    clamp_to_range,
    no_values,
)

_NUMERIC = (Type.INTEGER, Type.REAL)


def column_types(public_tables: PublicTables, table: DeclaredTable) -> Mapping[str, Type]:
    """Return the columns of a table: those declared; all of a public table that declares none."""
    declared = {name: kernel_type(column.type) for name, column in table.columns.items()}
    return declared or public_tables.columns(table.name)


def table_source(policy: Policy, public_tables: PublicTables, table: DeclaredTable) -> PrivateSource | PublicSource:
    """Return a table of the policy as a source of a query."""
    return (_public_source if table.public else _private_source)(policy, public_tables, table)


def _private_source(policy: Policy, public_tables: PublicTables, table: DeclaredTable) -> PrivateSource:
    """Return a private table as a source of a query, with out-of-range values set to NULL if the policy says so."""
    scan = scan_of(policy, table.name)
    columns = tuple(_private_column(policy, public_tables, table, declared) for declared in table.columns.values())
    view = View(None, None, columns)
    inside = {
        declared.name: expr
        for declared in table.columns.values()
        if (expr := _null_outside_range(declared)) is not None
    }
    if not inside:
        return PrivateSource(scan, (view,))
    named = tuple((column.name, inside.get(column.name, column)) for column in scan.columns)
    return PrivateSource(Derive(scan, named), (view,))


def _public_source(policy: Policy, public_tables: PublicTables, table: DeclaredTable) -> PublicSource:
    """Return a public table as a source of a query."""
    types = column_types(public_tables, table)
    columns = tuple((name, Column(name, kind)) for name, kind in types.items())
    infos = tuple(_public_column(policy, public_tables, table, column) for _, column in columns)
    return PublicSource(PublicTable(table.name, columns), View(None, None, infos))


def _null_outside_range(declared: DeclaredColumn) -> Expr | None:
    if not isinstance(declared.domain, Between) or declared.domain.outside != "null":
        return None
    clamped = clamp_to_range(_declared_bound(declared)).expr
    assert isinstance(clamped, Call)
    return Call("inside", clamped.args)


def _private_column(
    policy: Policy, public_tables: PublicTables, table: DeclaredTable, declared: DeclaredColumn
) -> ColumnInfo:
    bound = _declared_bound(declared)
    links = frozenset(
        (each.unit.table, each.unit.key)
        for each in policy.tables.values()
        if isinstance(each.unit, owners.ParentTableUnit)
        and (
            declared.name == each.unit.on
            if each is table
            else (table.name, declared.name) == (each.unit.table, each.unit.key)
        )
    )
    values = _values_lookup(policy, public_tables, declared)
    match table.unit:
        case owners.ColumnUnit(name) | owners.WindowUnit(name) if name == declared.name:
            return ColumnInfo(
                name, replace(bound, unit_key_index=0), parent_keys=links, never_null=True, constant_per_unit=True
            )
        case owners.WindowUnit(_, time, window) if time == declared.name:
            in_range = _null_outside_range(declared) is not None
            return ColumnInfo(
                time, bound, values, parent_keys=links, window=window, never_null=not in_range, in_range=in_range
            )
    in_range = _null_outside_range(declared) is not None
    declared_values = dict.fromkeys(values() or ()) if isinstance(declared.domain, Keys) else None
    return ColumnInfo(
        declared.name,
        bound,
        values,
        _range_lookup(bound, values),
        declared.null,
        links,
        in_range=in_range,
        declared_values=declared_values,
        unique=declared.unique,
    )


def _public_column(policy: Policy, public_tables: PublicTables, table: DeclaredTable, column: Column) -> ColumnInfo:
    """Return a public column; its domain is its stored values, unless the policy declares one."""
    declared = table.columns.get(column.name)
    bound = _declared_bound(declared) if declared else BoundExpr(column)

    @cache
    def values() -> tuple[Value, ...] | None:
        return _finite_values(public_tables.values(table.name, column.name), column.type)

    lookup = (
        _values_lookup(policy, public_tables, declared) if declared and isinstance(declared.domain, Keys) else values
    )
    null_is_group = declared is not None and declared.null
    return ColumnInfo(
        column.name, bound, lookup, _range_lookup(bound, values), null_is_group, in_range=bound.low is None
    )


def _range_lookup(bound: BoundExpr, values: ValuesLookup) -> RangeLookup | None:
    """Return a function that computes the range from the public values, if none is declared."""
    if bound.low is not None or bound.type not in _NUMERIC or values is no_values:
        return None

    @cache
    def find_range() -> BoundExpr:
        numbers = [Fraction(value) for value in values() or ()]  # type: ignore[arg-type]
        return replace(bound, low=min(numbers), high=max(numbers)) if numbers else bound

    return find_range


def _declared_bound(declared: DeclaredColumn) -> BoundExpr:
    column = Column(declared.name, kernel_type(declared.type))
    domain = declared.domain
    if isinstance(domain, Keys) and column.type in _NUMERIC:
        numbers = [Fraction(value) for value in domain.values]  # type: ignore[arg-type]
        return BoundExpr(column, min(numbers), max(numbers))
    if not isinstance(domain, Between):
        return BoundExpr(column)
    low, high = (end if isinstance(end, date) else Fraction(end) for end in (domain.low, domain.high))
    return BoundExpr(column, low, high, domain.step)


def _values_lookup(policy: Policy, public_tables: PublicTables, declared: DeclaredColumn) -> ValuesLookup:
    kind = kernel_type(declared.type)
    match declared.domain:
        case Keys(values):
            converted = tuple(float(value) if kind is Type.REAL else value for value in values)  # type: ignore[arg-type]
            return lambda: converted  # type: ignore[return-value]
        case References(name, column):
            return cache(lambda: _referenced_values(policy, public_tables, name, column))
    return no_values


def _referenced_values(policy: Policy, public_tables: PublicTables, name: str, column: str) -> tuple[Value, ...]:
    """Return the values of the public column that a column references."""
    target = policy.table(name)
    assert target is not None
    types = column_types(public_tables, target)
    spelling = declared_name(types, column)
    if spelling is None:
        raise PolicyError(f'references: column "{column}" of table "{name}" does not exist.')
    return _finite_values(public_tables.values(target.name, spelling), types[spelling])


def _finite_values(values: list[Value], kind: Type) -> tuple[Value, ...]:
    """Drop NULL and non-finite values, which cannot be keys."""
    present = (value for value in values if value is not None)
    return tuple(value for value in present if kind is not Type.REAL or math.isfinite(value))  # type: ignore[arg-type]
