"""SELECTs of the rows that models are computed from."""

from discreet.kernel.expr import Type
from discreet.kernel.relation import Relation
from discreet.kernel.sqlgen.dialect import Dialect, quote_name
from discreet.kernel.sqlgen.relation_sql import comma_list, conjunction, order_list, select_rows, unit_columns


def select_complete_rows(relation: Relation, columns: tuple[str, ...], dialect: Dialect) -> str:
    """Return a SELECT of the unit's key and these columns, for the rows without NULL or infinity in them.

    Claim: each row of the relation occurs once, with its own unit, or not at all, which depends on the row alone.
    Proof: the inner SELECT computes columns row by row, and the outer one keeps a row by its own values.
    Needs: select_rows, unit_columns, Dialect.check_size, Dialect.finite_or_null.
    Checked by: test_rows_come_in_batches_unit_by_unit, test_batches_are_those_of_duckdb_unit_by_unit
    """
    dialect.check_size(relation, dialect)
    names = [quote_name(name) for name in columns]
    values = [
        f"{dialect.finite_or_null.format(value=name)} AS {name}" if relation.shape.schema[column] is Type.REAL else name
        for column, name in zip(columns, names, strict=True)
    ]
    outputs = comma_list(unit_columns(relation), values)
    present = conjunction([f"{name} IS NOT NULL" for name in names])
    return f"SELECT * FROM (SELECT {outputs} FROM ({select_rows(relation, dialect)}) AS s) AS s WHERE {present}"  # noqa: S608 - the kernel's own


def select_rows_by_unit(relation: Relation, columns: tuple[str, ...], dialect: Dialect) -> str:
    """Return a SELECT of complete rows, ordered by unit and with the number of the unit.

    Claim: rows have the same number if and only if they belong to the same unit, and stand together.
    Proof: DENSE_RANK over the whole key gives equal numbers to equal keys alone; without a key every row is a unit and
        has a number of its own. The rows are ordered by this number.
    Needs: select_complete_rows, unit_columns.
    Checked by: test_rows_come_in_batches_unit_by_unit, test_batches_are_those_of_duckdb_unit_by_unit
    """
    units, names = unit_columns(relation), comma_list([quote_name(name) for name in columns])
    number = f"DENSE_RANK() OVER (ORDER BY {order_list(units)})" if units else "ROW_NUMBER() OVER ()"
    source = select_complete_rows(relation, columns, dialect)
    return dialect.finish_select(f'SELECT {number} AS ".n", {names} FROM ({source}) AS s ORDER BY ".n"')  # noqa: S608
