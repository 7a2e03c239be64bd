"""All SELECTs of a question, and those of histogram cells and distinct counts.

k0, k1, … are the keys of groups, v the counted value, .m a unit's rows in one group, .k its groups, .w a row's weight.
"""

from discreet.kernel.expr import Call, Column, Expr, Type
from discreet.kernel.grid import Grid
from discreet.kernel.question import WEIGHT_BITS, CountDistinct, HistogramTree, Question
from discreet.kernel.sqlgen.counts_and_sums import output_columns, select_counts_and_sums, select_keyed_rows
from discreet.kernel.sqlgen.dialect import Dialect
from discreet.kernel.sqlgen.relation_sql import (
    comma_list,
    conjunction,
    group_by,
    unit_columns,
    unit_equalities,
    write_expr,
    write_grid_step,
    write_key,
)

_TEXT_OPERATIONS = {Type.INTEGER: "write_integer", Type.BOOLEAN: "write_boolean", Type.DATE: "write_date"}


def write_selects(question: Question, dialect: Dialect) -> dict[int | None, str]:
    """Return the SELECTs of a question, by the index of a total with its own SELECT; None for all other totals."""
    statements: dict[int | None, str] = {}
    for index, total in enumerate(question.totals):
        match total:
            case CountDistinct():
                statements[index] = select_distinct_counts(question, total, dialect)
            case HistogramTree():
                statements[index] = select_cell_counts(question, total, dialect)
            case _:
                statements[None] = ""
    statements |= {None: select_counts_and_sums(question, dialect)} if None in statements else {}
    return {place: dialect.finish_select(text) for place, text in statements.items()}


def select_cell_counts(question: Question, total: HistogramTree, dialect: Dialect) -> str:
    """Return a SELECT of the weight of each cell (v) of each group; empty cells may be missing.

    Claim: a unit's weights in a group's cells sum to at most rows·2^bits, and to groups/k of that in k > groups groups.
    Proof: a unit with m values in a group, more than rows, gives each the weight floor(rows·2^bits/m), else 2^bits. In
        k > groups groups with values every weight is multiplied by floor(groups·2^20/k)/2^20 and rounded down.
    Needs: the engine computes integers exactly; it is tested against a reference in plain Python.
    Checked by: test_the_engine_equals_the_reference
    Seal: bf9f5f8b48ea
    """
    keys = [f"k{index}" for index in range(len(question.by))]
    value = _write_cell(total, dialect)
    keyed = select_keyed_rows(question, [f"{value} AS v"], dialect)
    source = f"SELECT * FROM ({keyed}) AS r WHERE {_has_cell(total, dialect)}"
    if not question.needs_clipping:
        return f"SELECT {comma_list(keys, ['v', 'COUNT(*) AS t'])} FROM ({source}) AS r{group_by([*keys, 'v'])}"
    units, full = unit_columns(question.relation), 1 << question.fraction_bits(total)
    lowered = dialect.quotient.format(question.max_rows_per_group * full, '".m"')
    row_weight = f'CASE WHEN ".m" > {question.max_rows_per_group} THEN {lowered} ELSE {full} END'
    pairs = f'SELECT {comma_list(units, keys)}, COUNT(*) AS ".m" FROM ({source}) AS r{group_by([*units, *keys])}'
    # Only weights below full weight are joined to the rows.
    write_weights = _clipped_row_and_group_weights if question.needs_l0_clipping else _clipped_row_weights
    kinds = [expr.type for _, expr in question.by]
    equal = [dialect.null_safe_equal(f"r.{key}", f"w.{key}", kind) for key, kind in zip(keys, kinds, strict=True)]
    same = conjunction([*unit_equalities(question.relation, "r", "w"), *equal])
    weight = dialect.bigint_sum.format(f'COALESCE(w.".w", {full})')
    return (
        f'WITH ".pairs" AS {dialect.materialized}({pairs}), {write_weights(question, keys, row_weight, dialect)} '
        f"SELECT {comma_list(_qualify_names('r', keys), ['r.v', f'{weight} AS t'])} "
        f'FROM ({source}) AS r LEFT JOIN ".weights" AS w ON {same}{group_by(_qualify_names("r", [*keys, "v"]))}'
    )


def _clipped_row_weights(question: Question, keys: list[str], row_weight: str, dialect: Dialect) -> str:
    """Return the weights of a unit's rows in groups where it has too many."""
    names = comma_list(unit_columns(question.relation), keys)
    weights = f'SELECT {names}, {row_weight} AS ".w" FROM ".pairs" WHERE ".m" > {question.max_rows_per_group}'
    return f'".weights" AS {dialect.materialized}({weights})'


def _clipped_row_and_group_weights(question: Question, keys: list[str], row_weight: str, dialect: Dialect) -> str:
    """Return the weights of a unit's rows in groups where it has too many, or of all if it is in too many groups."""
    units, max_groups = unit_columns(question.relation), question.bounds.groups
    count = dialect.quotient.format(max_groups << WEIGHT_BITS, "COUNT(*)")
    lighter = dialect.right_shift.format(f'(({row_weight}) * COALESCE(h.".k", {1 << WEIGHT_BITS}))', WEIGHT_BITS)
    return (
        f'".heavy" AS {dialect.materialized}(SELECT {comma_list(units)}, {count} AS ".k" FROM ".pairs"'
        f"{group_by(units)} HAVING COUNT(*) > {max_groups}), "
        f'".weights" AS {dialect.materialized}(SELECT {comma_list(_qualify_names("p", [*units, *keys]))}, '
        f'{lighter} AS ".w" FROM ".pairs" AS p '
        f'LEFT JOIN ".heavy" AS h ON {conjunction(unit_equalities(question.relation, "p", "h"))} '
        f'WHERE ".m" > {question.max_rows_per_group} OR h.".k" IS NOT NULL)'
    )


def select_distinct_counts(question: Question, total: CountDistinct, dialect: Dialect) -> str:
    """Return a SELECT of the number of distinct values of each group.

    Claim: of a unit's distinct values at most rows count in a group, and groups·rows in total.
    Proof: the values of a unit that may have more are numbered twice: within each group by a hash, then the remaining
        ones over all groups by those numbers; both numbers are bounded. The other units have at most rows values in
        total. No two values have the same number, even if hashes collide: which ones count depends on this unit's rows
        alone.
    Needs: the engine numbers, hashes and compares correctly.
    Checked by: test_the_engine_equals_the_reference, test_where_hashes_meet_the_value_decides_what_counts
    Seal: c3dd701b3a0c
    """
    keys = [f"k{index}" for index in range(len(question.by))]
    computed_columns = [f"{write_key(total.expr, dialect)} AS v", f"{_write_text(total.expr, dialect)} AS x"]
    source = f"SELECT * FROM ({select_keyed_rows(question, computed_columns, dialect)}) AS r WHERE v IS NOT NULL"
    counted = output_columns(keys, {0: "COUNT(DISTINCT v)"})
    if not question.needs_clipping:
        return f"SELECT {counted} FROM ({source}) AS r{group_by(keys)}"
    units, max_rows = unit_columns(question.relation), question.max_rows_per_group
    names = comma_list(units, keys, ["v", "x"])
    same = conjunction(unit_equalities(question.relation, "d", "m"))
    hashed = dialect.text_hash.format(f"{_write_unit_text(question, dialect)} || '/' || x")
    # Hashes can be made to collide: without the value, rows of other units could decide which one comes first.
    in_group = f'ROW_NUMBER() OVER (PARTITION BY {comma_list(units, keys)} ORDER BY {hashed}, v) AS ".n"'
    in_turn = ", ".join(['".n"', hashed, *(f"{key} ASC NULLS LAST" for key in keys)])  # one of each group in turn
    in_all = f'ROW_NUMBER() OVER (PARTITION BY {comma_list(units)} ORDER BY {in_turn}) AS ".a"'
    numbered = f'SELECT *, {in_group} FROM ".pairs" AS d WHERE EXISTS (SELECT 1 FROM ".many" AS m WHERE {same})'
    numbered = f'SELECT *, {in_all} FROM ({numbered}) AS n WHERE ".n" <= {max_rows}'
    return (
        f'WITH ".pairs" AS {dialect.materialized}(SELECT DISTINCT {names} FROM ({source}) AS r), '
        f'".many" AS {dialect.materialized}(SELECT {comma_list(units)} FROM ".pairs"{group_by(units)} '
        f"HAVING COUNT(*) > {max_rows}) "
        f"SELECT {counted} FROM ("
        f'SELECT {comma_list(keys, ["v"])} FROM ".pairs" AS d '
        f'WHERE NOT EXISTS (SELECT 1 FROM ".many" AS m WHERE {same}) '
        f"UNION ALL SELECT {comma_list(keys, ['v'])} FROM ({numbered}) AS a "
        f'WHERE ".a" <= {question.l0_bound * max_rows}'
        f") AS p{group_by(keys)}"
    )


def _qualify_names(alias: str, names: list[str]) -> list[str]:
    return [f"{alias}.{name}" for name in names]


def _write_cell(total: HistogramTree, dialect: Dialect) -> str:
    """Return the cell of a row: its grid index, or the value itself."""
    if isinstance(total.domain, Grid):
        return write_grid_step(write_expr(total.expr, dialect), total.domain, dialect)
    return write_key(total.expr, dialect)


def _has_cell(total: HistogramTree, dialect: Dialect) -> str:
    if isinstance(total.domain, Grid):
        return "v IS NOT NULL"
    return dialect.write_in_list("v", total.domain, total.expr.type)


def _write_text(expr: Expr, dialect: Dialect) -> str:
    """Return the SQL of a value as text, the same on every engine."""
    return write_expr(Call(_TEXT_OPERATIONS[expr.type], (expr,)) if expr.type in _TEXT_OPERATIONS else expr, dialect)


def _write_unit_text(question: Question, dialect: Dialect) -> str:
    """Return the SQL of a text that identifies a unit, or an empty text; the choice only has to depend on the unit."""
    kind = (question.relation.shape.unit or (Type.REAL,))[0]
    if kind is not Type.TEXT and kind not in _TEXT_OPERATIONS:
        return "''"
    return _write_text(Column("u", kind), dialect).replace('"u"', '".u0"')
