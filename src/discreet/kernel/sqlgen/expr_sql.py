"""Expressions as SQL: all names are quoted and all constants are written here, so no text of a query is passed on.

The differences between engines are in a Dialect.
"""

from collections.abc import Sequence

from discreet.kernel.expr import MAX_TEXT_LENGTH, TEXT_SCANS, Call, Column, Constant, Expr, Type
from discreet.kernel.grid import Grid
from discreet.kernel.sqlgen.dialect import Dialect, Operation, quote_name


def write_expr(expr: Expr, dialect: Dialect) -> str:
    """Return the SQL of an expression.

    Claim: its value is a function of the constants and of the named columns of its own row, or NULL; it never raises.
    Proof: a column is its quoted name, a constant the dialect's literal, and everything else apply_operation of these.
    Needs: quote_name, Dialect.constant, apply_operation.
    Checked by: test_a_constant_cannot_inject_sql, test_a_name_cannot_inject_sql, test_each_operation_means_the_same
    """
    match expr:
        case Column(name):
            return quote_name(name)
        case Constant(None, kind):
            return f"CAST(NULL AS {dialect.types[kind]})"
        case Constant(value, kind):
            return dialect.constant(value, kind)
    return apply_operation(expr, [write_expr(arg, dialect) for arg in expr.args], dialect)


def apply_operation(call: Call, args: list[str], dialect: Dialect) -> str:
    """Return the SQL of an operation on arguments whose SQL is given.

    Claim: it reads at most MAX_TEXT_LENGTH characters of a text, and yields a value or NULL.
    Proof: texts are truncated before TEXT_SCANS and after a concatenation, and the operations of a dialect
        are total. `replace` makes a text at most MAX_GROWTH times as long before its dialect truncates it.
    Needs: Dialect.operations, TEXT_SCANS, MAX_TEXT_LENGTH, MAX_GROWTH.
    Checked by: test_each_operation_means_the_same,
        test_a_text_is_cut_off_before_it_is_searched_and_after_it_is_joined
    """
    # Truncated, so that texts joined to themselves repeatedly do not exhaust memory.
    if call.op == "join" and "join" not in dialect.operations:
        return f"SUBSTRING({' || '.join(args)}, 1, {MAX_TEXT_LENGTH})"
    if call.op in TEXT_SCANS:  # a long text must not take a time that discloses it
        args = [f"SUBSTRING({args[0]}, 1, {MAX_TEXT_LENGTH})", *args[1:]]
    operation = dialect.operations.get(f"{call.op} {call.args[0].type.value}") or dialect.operations[call.op]
    return f"({fill_operation(operation, args, call.args)})"


def fill_operation(operation: str | Operation, args: Sequence[str], exprs: Sequence[Expr]) -> str:
    """Return the SQL of an operation, which is a template or a function, on arguments whose SQL is given."""
    if isinstance(operation, str):
        return operation.format(*args, all=", ".join(args), rest=", ".join(args[1:]))
    return operation(args, exprs)


def write_key(expr: Expr, dialect: Dialect) -> str:
    """Return the SQL of a key: a real that is not finite is NULL, and there is no negative zero."""
    text = write_expr(expr, dialect)
    return dialect.finite_or_null.format(value=text) if expr.type is Type.REAL else text


def write_grid_step(value: str, grid: Grid, dialect: Dialect) -> str:
    """Return the SQL of the grid index of a value, relative to the offset.

    Claim: it is Grid.index of the value less the offset, or NULL if the value is NULL or not finite; so it is within
        grid.first and grid.last.
    Proof: the dialect's SQL clamps the value to the ends as doubles before it divides by the step and rounds, as
        Grid.index does.
    Needs: Grid.index, Grid.as_floats, Dialect.grid_step.
    Checked by: test_the_steps_of_a_grid_are_the_kernels_own, test_a_sum_that_is_not_clipped_is_caught
    """
    index = dialect.grid_step(value, grid.as_floats)
    return f"({index} - {grid.offset})" if grid.offset else index
