"""Expressions and relations as SQL.

All names are quoted and all constants are written here: no text of a query is passed through. The differences between
engines are in a Dialect.
"""

from collections.abc import Callable
from itertools import chain

from discreet.kernel.expr import (
    MAX_TEXT_LENGTH,
    TEXT_SCANS,
    AggregateFunction,
    Call,
    Column,
    Constant,
    Expr,
    Type,
    UnitAggregate,
)
from discreet.kernel.grid import Grid
from discreet.kernel.relation import (
    Derive,
    JoinKind,
    JoinOnUnit,
    JoinPublic,
    NamedExprs,
    ParentUnit,
    PerUnit,
    PublicTable,
    Relation,
    Scan,
    SemiJoinKind,
    SemiJoinOnUnit,
    Union,
    UnitKey,
    Where,
)
from discreet.kernel.sqlgen.dialect import Dialect, Operation, quote_name

_CONNECTIVES = {"and": " AND ", "or": " OR "}
_PAIRWISE = ("least", "greatest")  # DuckDB can fail to copy a plan in which they have the same column twice among many


def write_expr(expr: Expr, dialect: Dialect) -> str:  # noqa: PLR0911 - one return per kind
    """Return the SQL of an expression."""
    match expr:
        case Column(name):
            return quote_name(name)
        case Constant(value, kind):
            if value is None:
                return f"CAST(NULL AS {dialect.types[kind]})"
            return dialect.constant(value, kind)
    args = [write_expr(arg, dialect) for arg in expr.args]
    if expr.op == "case":
        pairs = zip(args[:-1:2], args[1:-1:2], strict=True)
        return f"(CASE {' '.join(f'WHEN {when} THEN {then}' for when, then in pairs)} ELSE {args[-1]} END)"
    if expr.op in _CONNECTIVES:
        return f"({_CONNECTIVES[expr.op].join(args)})"
    # Truncated, so that texts joined to themselves repeatedly do not exhaust memory.
    if expr.op == "join" and "join" not in dialect.operations:
        return f"SUBSTRING({' || '.join(args)}, 1, {MAX_TEXT_LENGTH})"
    if expr.op in TEXT_SCANS:  # a long text must not take a time that discloses it
        args[0] = f"SUBSTRING({args[0]}, 1, {MAX_TEXT_LENGTH})"
    typed_op = f"{expr.op} {expr.args[0].type.value}"
    operation = dialect.operations.get(typed_op) or dialect.operations[expr.op]
    while expr.op in _PAIRWISE and len(args) > 2:
        args = [
            f"({_fill_operation(operation, pair, expr)})" if len(pair) == 2 else pair[0] for pair in _in_pairs(args)
        ]
    if dialect.compute_once and (repeated := _repeated_arguments(operation, expr)):
        # No column of a table has a name that begins with a dot.
        columns = ", ".join(f'{args[index]} AS ".a{index}"' for index in repeated)
        args = [f'z.".a{place}"' if place in repeated else arg for place, arg in enumerate(args)]
        return f"({dialect.compute_once.format(value=_fill_operation(operation, args, expr), columns=columns)})"
    return f"({_fill_operation(operation, args, expr)})"


def _fill_operation(operation: str | Operation, args: list[str], expr: Call) -> str:
    if isinstance(operation, str):
        return operation.format(*args, all=", ".join(args), rest=", ".join(args[1:]))
    return operation(args, expr.args)


def _repeated_arguments(operation: str | Operation, expr: Call) -> list[int]:
    """Return the indices of computed arguments that the SQL of an operation repeats, which would make it grow."""
    placeholders = [f"\0{index}\0" for index in range(len(expr.args))]
    text = _fill_operation(operation, placeholders, expr)
    return [
        place for place, arg in enumerate(expr.args) if isinstance(arg, Call) and text.count(placeholders[place]) > 1
    ]


def _in_pairs(args: list[str]) -> list[list[str]]:
    return [args[start : start + 2] for start in range(0, len(args), 2)]


def select_rows(relation: Relation, dialect: Dialect) -> str:  # noqa: C901, PLR0911 - one case per node
    """Return the SELECT of a relation; its columns are the unit's key and those of the relation."""

    def sql(expr: Expr) -> str:
        return write_expr(expr, dialect)

    def subquery(source: Relation, name: str = "s") -> str:
        return f"({select_rows(source, dialect)}) AS {name}"

    match relation:
        case Scan():
            return _select_scan(relation, dialect)
        case Where(source, condition):
            return f"SELECT * FROM {subquery(source)} WHERE {sql(condition)}"
        case Derive(source, columns):
            fence = dialect.optimization_fence if any(isinstance(expr, Call) for _, expr in columns) else ""
            outputs = _select_list(unit_columns(source), _alias_columns(columns, sql))
            return f"SELECT {outputs} FROM {subquery(source)}{fence}"
        case JoinPublic(source, table, equal, extra_condition, kind, fanout):
            on = [f"s.{quote_name(ours)} = p.{quote_name(theirs)}" for ours, theirs in equal] + (
                [sql(extra_condition)] if extra_condition else []
            )
            names = _select_list(
                unit_columns(source, "s"), _own_columns(source, "s"), [f"p.{quote_name(name)}" for name in table.schema]
            )
            public = _select_public(table, [theirs for _, theirs in equal], fanout, dialect)
            return f"SELECT {names} FROM {subquery(source)} {_join_keyword(kind)} ({public}) AS p ON {conjunction(on)}"
        case JoinOnUnit(left, right, extra_condition, kind, max_rows):
            on = unit_equalities(left, "l", "r") + ([sql(extra_condition)] if extra_condition else [])
            names = comma_list(unit_columns(left, "l"), _own_columns(left, "l"), _own_columns(right, "r"))
            sides = [
                f"({_select_first_rows(side, max_rows, dialect)}) AS {name}"
                for side, name in ((left, "l"), (right, "r"))
            ]
            return f"SELECT {names} FROM {sides[0]} {_join_keyword(kind)} {sides[1]} ON {conjunction(on)}"
        case SemiJoinOnUnit(source, other, semi_kind):
            within = subquery(other, "o")
            if "s" in map(str.casefold, other.shape.schema):  # otherwise s would be that column, not the alias
                within = f"(SELECT {comma_list(unit_columns(other))} FROM {within}) AS o"
            exists = f"EXISTS (SELECT 1 FROM {within} WHERE {conjunction(unit_equalities(source, 's', 'o'))})"
            return f"SELECT * FROM {subquery(source)} WHERE {'NOT ' if semi_kind is SemiJoinKind.ANTI else ''}{exists}"
        case PerUnit(source, keys, values):
            key = [write_key(expr, dialect) for _, expr in keys]
            aliased = [f"{text} AS {quote_name(name)}" for text, (name, _) in zip(key, keys, strict=True)]
            aliased += [
                f"{_write_unit_aggregate(aggregate, dialect)} AS {quote_name(name)}" for name, aggregate in values
            ]
            group_columns = comma_list(unit_columns(source), key)
            return (
                f"SELECT {comma_list(unit_columns(source), aliased)} FROM {subquery(source)} GROUP BY {group_columns}"
            )
        case Union(left, right):
            names = comma_list(unit_columns(left), _own_columns(left))
            return f"SELECT {names} FROM {subquery(left)} UNION ALL SELECT {names} FROM {subquery(right)}"


def select_rows_by_unit(relation: Relation, columns: tuple[str, ...], dialect: Dialect) -> str:
    """Return a SELECT of the rows without NULLs in these columns, ordered by unit and with the number of the unit."""
    units, names = unit_columns(relation), [quote_name(name) for name in columns]
    number = f"DENSE_RANK() OVER (ORDER BY {_order_list(units)})" if units else "ROW_NUMBER() OVER ()"
    values = [
        f"{dialect.finite_or_null.format(value=name)} AS {name}" if relation.shape.schema[column] is Type.REAL else name
        for column, name in zip(columns, names, strict=True)
    ]
    source = f"SELECT * FROM (SELECT {comma_list(units, values)} FROM ({select_rows(relation, dialect)}) AS s) AS s"
    present = conjunction([f"{name} IS NOT NULL" for name in names])
    return dialect.finish_select(
        f'SELECT {number} AS ".n", {comma_list(names)} FROM ({source} WHERE {present}) AS s ORDER BY ".n"'
    )


def _select_scan(scan: Scan, dialect: Dialect) -> str:
    columns = [f"c.{quote_name(column.name)}" for column in scan.columns]
    source = f"{dialect.table_source(scan.table)} AS c"
    match scan.owner:
        case UnitKey(unit):
            own_unit, has_unit = _own_unit(unit, dialect)
            return f"SELECT {comma_list(own_unit, columns)} FROM {source} WHERE {has_unit}"
        case ParentUnit(on, parent, key):
            units = unit_columns(scan)
            first, last = (
                [dialect.min_or_max(end, *unit) for unit in _typed_unit_columns(scan)] for end in ("MIN", "MAX")
            )
            single_owner = [f"{lowest} = {highest}" for lowest, highest in zip(first, last, strict=True)]
            owner_columns = [f"{least} AS {unit}" for least, unit in zip(first, units, strict=True)]
            parents = _select_parent_units(parent, key, dialect)
            owners = f'SELECT ".key", {comma_list(owner_columns)} FROM ({parents}) AS w GROUP BY ".key"'
            names = comma_list([f"o.{unit}" for unit in units], columns)
            return (
                f"SELECT {names} FROM {source} JOIN ({owners} HAVING {conjunction(single_owner)}) AS o "
                f'ON c.{quote_name(on)} = o.".key"'
            )
    return f"SELECT {_select_list(columns)} FROM {source}"


def _own_unit(unit: tuple[Expr, ...], dialect: Dialect) -> tuple[list[str], str]:
    """Return the unit columns of a row, and the condition that none is NULL."""
    parts = [write_expr(part, dialect) for part in unit]
    aliased = [f'{part} AS ".u{index}"' for index, part in enumerate(parts)]
    return aliased, conjunction([f"{part} IS NOT NULL" for part in parts])


def _select_parent_units(scan: Scan, key: str, dialect: Dialect) -> str:
    """Return a SELECT of all owners of each key of a parent table."""
    source = f"{dialect.table_source(scan.table)} AS c"
    match scan.owner:
        case ParentUnit(on, parent, parent_key):
            units = [f"w.{unit}" for unit in unit_columns(scan)]
            return (
                f'SELECT c.{quote_name(key)} AS ".key", {comma_list(units)} FROM {source} '
                f'JOIN ({_select_parent_units(parent, parent_key, dialect)}) AS w ON c.{quote_name(on)} = w.".key"'
            )
        case UnitKey(unit):
            own_unit, has_unit = _own_unit(unit, dialect)
            return f'SELECT {quote_name(key)} AS ".key", {comma_list(own_unit)} FROM {source} WHERE {has_unit}'
    raise ValueError("a parent table must have a unit key")


def _select_public(table: PublicTable, equal: list[str], fanout: int, dialect: Dialect) -> str:
    """Return a SELECT of a public table with at most `fanout` rows for the same values of `equal`."""
    aliased = [f"{quote_name(column.name)} AS {quote_name(name)}" for name, column in table.columns]
    source = f"SELECT {_select_list(aliased)} FROM {dialect.table_source(table.table)} AS p"
    if table.condition is not None:
        source = f"SELECT * FROM ({source}) AS p WHERE {write_expr(table.condition, dialect)}"
    names = [quote_name(name) for name in table.schema]
    partition = f"PARTITION BY {comma_list([quote_name(name) for name in equal])} " if equal else ""
    number = f'ROW_NUMBER() OVER ({partition}ORDER BY {_order_list(names)}) AS ".n"'
    return f'SELECT {_select_list(names)} FROM (SELECT *, {number} FROM ({source}) AS p) AS p WHERE ".n" <= {fanout}'


def _select_first_rows(side: Relation, max_rows: int, dialect: Dialect) -> str:
    """Return a SELECT of at most `max_rows` rows per unit; only units with more rows are sorted."""
    if side.shape.max_rows_per_unit is not None and side.shape.max_rows_per_unit <= max_rows:
        return select_rows(side, dialect)
    units, names = unit_columns(side), _own_columns(side)
    outputs = comma_list(units, names)
    same = conjunction(unit_equalities(side, "a", "m"))
    number = f'ROW_NUMBER() OVER (PARTITION BY {comma_list(units)} ORDER BY {_order_list(names)}) AS ".n"'
    return (
        f'WITH ".a" AS {dialect.materialized}({select_rows(side, dialect)}), '
        f'".m" AS {dialect.materialized}(SELECT {comma_list(units)} FROM ".a"{group_by(units)} '
        f"HAVING COUNT(*) > {max_rows}) "
        f'SELECT {outputs} FROM ".a" AS a WHERE NOT EXISTS (SELECT 1 FROM ".m" AS m WHERE {same}) UNION ALL '
        f'SELECT {outputs} FROM (SELECT *, {number} FROM ".a" AS a '
        f'WHERE EXISTS (SELECT 1 FROM ".m" AS m WHERE {same})) AS n '
        f'WHERE ".n" <= {max_rows}'
    )


def _write_unit_aggregate(aggregate: UnitAggregate, dialect: Dialect) -> str:
    if aggregate.expr is None:
        return "COUNT(*)"
    value = write_key(aggregate.expr, dialect)  # aggregated values are finite, like those of a total
    match aggregate.function:
        case AggregateFunction.COUNT:
            return f"COUNT({value})"
        case AggregateFunction.DISTINCT:
            return f"COUNT(DISTINCT {value})"
        case AggregateFunction.SUM:
            return dialect.sum_or_null.format(value)
        case AggregateFunction.GRID_SUM:
            assert aggregate.grid is not None
            return dialect.bigint_sum.format(write_grid_step(value, aggregate.grid, dialect))
    return dialect.min_or_max("MIN" if aggregate.function is AggregateFunction.MIN else "MAX", value, aggregate.type)


def write_grid_step(value: str, grid: Grid, dialect: Dialect) -> str:
    """Return the SQL of the grid index of a value, relative to the offset."""
    low, high, step = (dialect.constant(end, Type.REAL) for end in grid.as_floats)
    if isinstance(dialect.grid_step, str):
        index = dialect.grid_step.format(value=value, low=low, high=high, step=step)
    else:
        index = dialect.grid_step(value, grid.as_floats)
    return f"({index} - {grid.offset})" if grid.offset else index


def write_key(expr: Expr, dialect: Dialect) -> str:
    """Return the SQL of a key: a real that is not finite is NULL, and there is no negative zero."""
    text = write_expr(expr, dialect)
    return dialect.finite_or_null.format(value=text) if expr.type is Type.REAL else text


def _alias_columns(columns: NamedExprs, sql: Callable[[Expr], str]) -> list[str]:
    return [f"{sql(expr)} AS {quote_name(name)}" for name, expr in columns]


def unit_columns(relation: Relation, alias: str = "") -> list[str]:
    """Return the unit columns of a relation."""
    parts = range(len(relation.shape.unit or ()))
    return [f'{alias and alias + "."}".u{index}"' for index in parts]


def _typed_unit_columns(relation: Relation) -> list[tuple[str, Type]]:
    """Return the unit columns of a relation with their types."""
    return list(zip(unit_columns(relation), relation.shape.unit or (), strict=True))


def _own_columns(relation: Relation, alias: str = "") -> list[str]:
    return [f"{alias and alias + '.'}{quote_name(name)}" for name in relation.shape.schema]


def unit_equalities(relation: Relation, left: str, right: str) -> list[str]:
    """Return the conditions that two rows belong to the same unit."""
    return [f"{left}.{unit} = {right}.{unit}" for unit in unit_columns(relation)]


def _order_list(names: list[str]) -> str:
    return ", ".join(f"{name} ASC NULLS LAST" for name in names) or "1"


def _join_keyword(kind: JoinKind) -> str:
    return "JOIN" if kind is JoinKind.INNER else "LEFT JOIN"


def conjunction(conditions: list[str]) -> str:
    """Return the conjunction of conditions."""
    return " AND ".join(conditions) or "TRUE"


def comma_list(*parts: list[str]) -> str:
    """Return the parts separated by commas."""
    return ", ".join(chain.from_iterable(parts))


def _select_list(*parts: list[str]) -> str:
    """Return the select list; if it is empty, a constant, so that rows can still be counted."""
    return comma_list(*parts) or '1 AS ".one"'


def group_by(names: list[str]) -> str:
    """Return the GROUP BY clause, or nothing."""
    return f" GROUP BY {comma_list(names)}" if names else ""
