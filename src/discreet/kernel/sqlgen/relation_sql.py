"""Relations as SQL: one SELECT per node, whose columns are the unit's key and those of the relation."""

from discreet.kernel.expr import AggregateFunction, Call, Expr, Type, UnitAggregate
from discreet.kernel.relation import (
    Derive,
    JoinKind,
    JoinOnUnit,
    JoinPublic,
    NumberRows,
    ParentUnit,
    PerUnit,
    Relation,
    Scan,
    SemiJoinKind,
    SemiJoinOnUnit,
    Union,
    UnitKey,
    Where,
)
from discreet.kernel.sqlgen.dialect import Dialect, quote_name
from discreet.kernel.sqlgen.expr_sql import write_expr, write_grid_step, write_key


def select_rows(relation: Relation, dialect: Dialect) -> str:  # noqa: C901, PLR0911 - one case per node
    """Return the SELECT of a relation; its columns are the unit's key and those of the relation.

    Claim: it gives the rows that the node describes, each with its owner's key in `.u0`, `.u1`, …, which no expression
        of a question can read or change.
    Proof: node by node. Where, Derive and PerUnit take the key from their source unchanged; an expression names a
        column that check_name accepts, which never begins with a dot. PerUnit groups by the whole key first, or its
        rows are in a stored table. Union takes the key from each side, the joins below from the side whose rows are
        kept. NumberRows keeps it, and its numbers begin anew for each unit. In SemiJoinOnUnit the other side has no
        column that hides the alias s, so that the key of the outer row is compared.
    Needs: Where, Derive, PerUnit, NumberRows, Union, SemiJoinOnUnit, Dialect.stored_groups, check_name, write_expr,
        write_key, unit_columns, unit_equalities, _row_number, _write_unit_aggregate, _select_scan,
        _select_public_join, _select_unit_join.
    Checked by: test_the_sql_of_a_relation_gives_its_rows_and_their_owners, test_the_engine_equals_the_reference,
        test_postgresql_equals_the_reference, test_spark_sql_equals_the_reference,
        test_columns_may_have_the_names_that_the_kernel_gives_tables
    """

    def subquery(source: Relation, name: str = "s") -> str:
        return f"({select_rows(source, dialect)}) AS {name}"

    match relation:
        case Scan():
            return _select_scan(relation, dialect)
        case Where(source, condition):
            return f"SELECT * FROM {subquery(source)} WHERE {write_expr(condition, dialect)}"
        case Derive(source, columns):
            fence = dialect.optimization_fence if any(isinstance(expr, Call) for _, expr in columns) else ""
            outputs = [f"{write_expr(expr, dialect)} AS {quote_name(name)}" for name, expr in columns]
            return f"SELECT {_select_list(unit_columns(source), outputs)} FROM {subquery(source)}{fence}"
        case JoinPublic():
            return _select_public_join(relation, dialect)
        case JoinOnUnit():
            return _select_unit_join(relation, dialect)
        case SemiJoinOnUnit(source, other, kind):
            within = subquery(other, "o")
            if "s" in map(str.casefold, other.shape.schema):  # otherwise s would be that column, not the alias
                within = f"(SELECT {comma_list(unit_columns(other))} FROM {within}) AS o"
            exists = f"EXISTS (SELECT 1 FROM {within} WHERE {conjunction(unit_equalities(source, 's', 'o'))})"
            return f"SELECT * FROM {subquery(source)} WHERE {'NOT ' if kind is SemiJoinKind.ANTI else ''}{exists}"
        case PerUnit(source, keys, values):
            if stored := dialect.stored_groups(relation):
                return stored
            key = [write_key(expr, dialect) for _, expr in keys]
            texts = [*key, *(_write_unit_aggregate(aggregate, dialect) for _, aggregate in values)]
            aliased = [f"{sql} AS {quote_name(name)}" for sql, (name, _) in zip(texts, (*keys, *values), strict=True)]
            units = unit_columns(source)
            return f"SELECT {comma_list(units, aliased)} FROM {subquery(source)} GROUP BY {comma_list(units, key)}"
        case NumberRows(source, name, keys, order, last):
            partition = [*unit_columns(source), *(write_key(key, dialect) for key in keys)]
            terms = [
                # A negative zero, which no result shows, equals zero; some engines would sort it before zero.
                f"{write_expr(expr, dialect)}{' + 0.0' * (expr.type is Type.REAL)} {'DESC' if falls else 'ASC'}"
                for expr, falls in order
            ]
            number = _row_number(partition, ", ".join(f"{term} NULLS LAST" for term in terms) or "1")
            rows = f"SELECT *, CAST({number} AS BIGINT) AS {quote_name(name)} FROM {subquery(source)}"
            return f"SELECT * FROM ({rows}) AS s WHERE {quote_name(name)} <= {last}" if last else rows
        case Union(left, right):
            names = comma_list(unit_columns(left), _own_columns(left))
            return f"SELECT {names} FROM {subquery(left)} UNION ALL SELECT {names} FROM {subquery(right)}"


def _select_scan(scan: Scan, dialect: Dialect) -> str:
    """Return the rows of a table that have an owner.

    Claim: each row has one owner: the values of its unit key, the only owner of its parent rows, or itself; rows
        without an owner, or whose parent rows have several, are left out.
    Proof: a UnitKey is written as it is and none of its parts is NULL. For a ParentUnit the parent rows are grouped by
        their key, and a group is kept only if the least and the greatest owner agree in every part, which makes it one
        owner; so a row is joined with at most one group. EachRow has no key.
    Needs: UnitKey, ParentUnit, EachRow, _own_unit, _select_parent_units, write_expr, Dialect.min_or_max.
    Checked by: test_the_sql_of_a_relation_gives_its_rows_and_their_owners, test_the_engine_equals_the_reference,
        test_situations
    """
    columns = [f"c.{quote_name(column.name)}" for column in scan.columns]
    source = f"{dialect.table_source(scan.table)} AS c"
    match scan.owner:
        case UnitKey(unit):
            own_unit, has_unit = _own_unit(unit, dialect)
            return f"SELECT {comma_list(own_unit, columns)} FROM {source} WHERE {has_unit}"
        case ParentUnit(on, parent, key):
            typed_units = list(zip(unit_columns(scan), scan.shape.unit or (), strict=True))
            first, last = ([dialect.min_or_max(end, *unit) for unit in typed_units] for end in ("MIN", "MAX"))
            single_owner = [f"{lowest} = {highest}" for lowest, highest in zip(first, last, strict=True)]
            owner_columns = [f"{least} AS {unit}" for least, (unit, _) in zip(first, typed_units, strict=True)]
            parents = _select_parent_units(parent, key, dialect)
            owners = f'SELECT ".key", {comma_list(owner_columns)} FROM ({parents}) AS w GROUP BY ".key"'
            return (
                f"SELECT {comma_list(unit_columns(scan, 'o'), columns)} FROM {source} "
                f'JOIN ({owners} HAVING {conjunction(single_owner)}) AS o ON c.{quote_name(on)} = o.".key"'
            )
    return f"SELECT {_select_list(columns)} FROM {source}"


def _own_unit(unit: tuple[Expr, ...], dialect: Dialect) -> tuple[list[str], str]:
    """Return the unit columns of a row, and the condition that none is NULL."""
    parts = [write_expr(part, dialect) for part in unit]
    aliased = [f'{part} AS ".u{index}"' for index, part in enumerate(parts)]
    return aliased, conjunction([f"{part} IS NOT NULL" for part in parts])


def _select_parent_units(scan: Scan, key: str, dialect: Dialect) -> str:
    """Return a SELECT of all owners of each key of a parent table, not only of keys with one owner."""
    source = f"{dialect.table_source(scan.table)} AS c"
    match scan.owner:
        case ParentUnit(on, parent, parent_key):
            return (
                f'SELECT c.{quote_name(key)} AS ".key", {comma_list(unit_columns(scan, "w"))} FROM {source} '
                f'JOIN ({_select_parent_units(parent, parent_key, dialect)}) AS w ON c.{quote_name(on)} = w.".key"'
            )
        case UnitKey(unit):
            own_unit, has_unit = _own_unit(unit, dialect)
            return f'SELECT {quote_name(key)} AS ".key", {comma_list(own_unit)} FROM {source} WHERE {has_unit}'
    raise ValueError("a parent table must have a unit key")


def _select_public_join(join: JoinPublic, dialect: Dialect) -> str:
    """Return the rows of a relation joined with a public table.

    Claim: a row becomes at most `fanout` rows, or one without a match in a left join, and keeps its owner.
    Proof: the public rows are numbered within the values of `equal`, in an order of all their columns, and the first
        `fanout` are used. ON compares `equal`, so all partners of a row are in one partition; the unit columns come
        from the private side. Which public rows are used depends on the public table alone.
    Needs: JoinPublic, PublicTable, select_rows, write_expr, order_list.
    Checked by: test_the_sql_of_a_relation_gives_its_rows_and_their_owners, test_the_engine_equals_the_reference,
        test_situations
    """
    aliased = [f"{quote_name(column.name)} AS {quote_name(name)}" for name, column in join.table.columns]
    public = f"SELECT {_select_list(aliased)} FROM {dialect.table_source(join.table.table)} AS p"
    if join.table.condition is not None:
        public = f"SELECT * FROM ({public}) AS p WHERE {write_expr(join.table.condition, dialect)}"
    names = [quote_name(name) for name in join.table.schema]
    number = f'{_row_number([quote_name(theirs) for _, theirs in join.equal], order_list(names))} AS ".n"'
    first = (
        f'SELECT {_select_list(names)} FROM (SELECT *, {number} FROM ({public}) AS p) AS p WHERE ".n" <= {join.fanout}'
    )
    outputs = _select_list(
        unit_columns(join.source, "s"), _own_columns(join.source, "s"), [f"p.{name}" for name in names]
    )
    on = [f"s.{quote_name(ours)} = p.{quote_name(theirs)}" for ours, theirs in join.equal]
    joined = _join_on(join, f"({first}) AS p", on, dialect)
    return f"SELECT {outputs} FROM ({select_rows(join.source, dialect)}) AS s {joined}"


def _select_unit_join(join: JoinOnUnit, dialect: Dialect) -> str:
    """Return the rows of two relations joined where they belong to the same unit.

    Claim: both parts of a joined row belong to the unit in its key, and at most max_rows_per_unit rows of each side.
    Proof: ON compares the whole unit, whatever else it compares; in a left join, a row without a partner keeps its own
        unit. Of each side at most `max_rows_per_unit` rows of a unit are left.
    Needs: JoinOnUnit, select_rows, unit_equalities, _select_first_rows, write_expr.
    Checked by: test_the_sql_of_a_relation_gives_its_rows_and_their_owners, test_the_engine_equals_the_reference,
        test_situations
    """
    left, right = (
        f"({_select_first_rows(side, join.max_rows_per_unit, dialect)}) AS {name}"
        for side, name in ((join.left, "l"), (join.right, "r"))
    )
    names = comma_list(unit_columns(join.left, "l"), _own_columns(join.left, "l"), _own_columns(join.right, "r"))
    return f"SELECT {names} FROM {left} {_join_on(join, right, unit_equalities(join.left, 'l', 'r'), dialect)}"


def _join_on(join: JoinPublic | JoinOnUnit, right: str, on: list[str], dialect: Dialect) -> str:
    conditions = [*on, write_expr(join.condition, dialect)] if join.condition else on
    return f"{'JOIN' if join.kind is JoinKind.INNER else 'LEFT JOIN'} {right} ON {conjunction(conditions)}"


def _select_first_rows(side: Relation, max_rows: int, dialect: Dialect) -> str:
    """Return a SELECT of at most `max_rows` rows per unit; only units with more rows are sorted.

    Claim: a unit keeps all of its rows, or its first max_rows; which ones depends on its own rows alone.
    Proof: a unit in `.m` has more than max_rows rows; they are numbered within the unit, in an order of all columns:
        rows that tie are equal, so it does not matter which comes first. The other units have at most max_rows rows.
    Needs: select_rows, unit_equalities, order_list.
    Checked by: test_the_sql_of_a_relation_gives_its_rows_and_their_owners, test_the_engine_equals_the_reference,
        test_situations
    """
    if side.shape.max_rows_per_unit is not None and side.shape.max_rows_per_unit <= max_rows:
        return select_rows(side, dialect)
    units, names = unit_columns(side), _own_columns(side)
    outputs = comma_list(units, names)
    heavy = f'EXISTS (SELECT 1 FROM ".m" AS m WHERE {conjunction(unit_equalities(side, "a", "m"))})'
    number = f'{_row_number(units, order_list(names))} AS ".n"'
    heavy_units = f'SELECT {comma_list(units)} FROM ".a"{group_by(units)} HAVING COUNT(*) > {max_rows}'
    return (
        f"WITH {with_query('.a', select_rows(side, dialect), dialect)}, {with_query('.m', heavy_units, dialect)} "
        f'SELECT {outputs} FROM ".a" AS a WHERE NOT {heavy} UNION ALL '
        f'SELECT {outputs} FROM (SELECT *, {number} FROM ".a" AS a WHERE {heavy}) AS n WHERE ".n" <= {max_rows}'
    )


def _write_unit_aggregate(aggregate: UnitAggregate, dialect: Dialect) -> str:
    if aggregate.expr is None:
        return "COUNT(*)"
    function, value = aggregate.function, write_key(aggregate.expr, dialect)  # finite, like the values of a total
    if function in (AggregateFunction.MIN, AggregateFunction.MAX):
        return dialect.min_or_max(function.name, value, aggregate.type)
    templates = {
        AggregateFunction.COUNT: "COUNT({0})",
        AggregateFunction.DISTINCT: "COUNT(DISTINCT {0})",
        AggregateFunction.SUM: dialect.sum_or_null,
        AggregateFunction.GRID_SUM: dialect.bigint_sum,
    }
    return templates[function].format(write_grid_step(value, aggregate.grid, dialect) if aggregate.grid else value)


def unit_columns(relation: Relation, alias: str = "") -> list[str]:
    """Return the unit columns of a relation."""
    parts = range(len(relation.shape.unit or ()))
    return [f'{alias and alias + "."}".u{index}"' for index in parts]


def unit_equalities(relation: Relation, left: str, right: str) -> list[str]:
    """Return the conditions that two rows belong to the same unit: all parts of its key are equal, and none is NULL."""
    return [f"{left}.{unit} = {right}.{unit}" for unit in unit_columns(relation)]


def _own_columns(relation: Relation, alias: str = "") -> list[str]:
    return [f"{alias and alias + '.'}{quote_name(name)}" for name in relation.shape.schema]


def _row_number(partition: list[str], order: str) -> str:
    return f"ROW_NUMBER() OVER ({f'PARTITION BY {comma_list(partition)} ' if partition else ''}ORDER BY {order})"


def order_list(names: list[str]) -> str:
    """Return an ORDER BY list, in which NULL comes last on every engine."""
    return ", ".join(f"{name} ASC NULLS LAST" for name in names) or "1"


def conjunction(conditions: list[str]) -> str:
    """Return the conjunction of conditions."""
    return " AND ".join(conditions) or "TRUE"


def comma_list(*parts: list[str]) -> str:
    """Return the parts separated by commas."""
    return ", ".join(item for part in parts for item in part)


def _select_list(*parts: list[str]) -> str:
    """Return the select list; if it is empty, a constant, so that rows can still be counted."""
    return comma_list(*parts) or '1 AS ".one"'


def group_by(names: list[str]) -> str:
    """Return the GROUP BY clause, or nothing."""
    return f" GROUP BY {comma_list(names)}" if names else ""


def with_query(name: str, select: str, dialect: Dialect, *, stored: str = "") -> str:
    """Return a query of a WITH clause; it is computed once, although it is used twice, or reads a stored table."""
    return f'"{name}" AS {"NOT MATERIALIZED " if stored else dialect.materialized}({select})'
