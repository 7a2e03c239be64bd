"""All SELECTs of a question, and those of histogram cells and distinct counts.

k0, k1, … are the keys of groups, v the counted value, .m a unit's rows in one group, .k its groups, .w a row's weight.
"""

from discreet.kernel.ball import WEIGHT_BITS
from discreet.kernel.expr import Call, Column, Expr, Type
from discreet.kernel.grid import Grid
from discreet.kernel.question import Question
from discreet.kernel.sqlgen.counts_and_sums import (
    key_names,
    output_columns,
    row_values,
    select_counts_and_sums,
    select_keyed_rows,
)
from discreet.kernel.sqlgen.dialect import Dialect
from discreet.kernel.sqlgen.expr_sql import write_expr, write_grid_step, write_key
from discreet.kernel.sqlgen.relation_sql import (
    comma_list,
    conjunction,
    group_by,
    unit_columns,
    unit_equalities,
    with_query,
)
from discreet.kernel.sqlgen.selection_weights import select_key_weights
from discreet.kernel.totals import CountDistinct, HistogramTree, SelectionWeight

_TEXT_OPERATIONS = {Type.INTEGER: "write_integer", Type.BOOLEAN: "write_boolean", Type.DATE: "write_date"}


def write_selects(question: Question, dialect: Dialect) -> dict[int | None, str]:
    """Return the SELECTs of a question, by the index of a total with its own SELECT; None for all other totals.

    Claim: together they give the totals of the question and nothing else, if the dialect accepts its size.
    Proof: each total is in exactly one of the SELECTs, which claim this for their own. finish_select changes how names
        are quoted or abbreviated, not what they name.
    Needs: Dialect.check_size, Dialect.finish_select, row_values, select_distinct_counts, select_cell_counts,
        select_counts_and_sums, select_key_weights.
    Checked by: test_the_engine_equals_the_reference,
        test_what_is_too_long_for_an_engine_is_refused_before_it_is_written
    """
    dialect.check_size(question, dialect)
    together, _, _ = row_values(question, dialect)
    places = dict.fromkeys(None if index in together else index for index in range(len(question.totals)))
    return {place: dialect.finish_select(_select_totals(question, place, dialect)) for place in places}


def _select_totals(question: Question, place: int | None, dialect: Dialect) -> str:
    total = None if place is None else question.totals[place]
    match total:
        case CountDistinct():
            return select_distinct_counts(question, total, dialect)
        case HistogramTree():
            return select_cell_counts(question, total, dialect)
        case SelectionWeight():
            return select_key_weights(question, dialect)
    return select_counts_and_sums(question, dialect)


def select_cell_counts(question: Question, total: HistogramTree, dialect: Dialect) -> str:
    """Return a SELECT of the weight of each cell (v) of each group; empty cells may be missing.

    Claim: a unit's weights in a group's cells sum to at most rows·2^bits, and to groups/k of that in k > groups groups.
    Proof: a unit with m values in a group, more than rows, gives each the weight floor(rows·2^bits/m), else 2^bits. In
        k > groups groups with values (`.pairs` has one row for each) every weight is multiplied by
        floor(groups·2^20/k)/2^20 and rounded down. `.weights` has one row for each unit and group with less than full
        weight, so a row is joined with at most one.
    Needs: Question.fraction_bits, select_keyed_rows, _weights_below_full, unit_equalities, Dialect.null_safe_equal.
    Checked by: test_the_engine_equals_the_reference,
        test_removing_a_unit_moves_cells_and_distinct_values_by_at_most_the_sensitivity
    """
    keys, relation = key_names(question), question.relation
    keyed = select_keyed_rows(question, [f"{_write_cell(total, dialect)} AS v"], dialect)
    has_cell = (
        "v IS NOT NULL" if isinstance(total.domain, Grid) else dialect.write_in_list("v", total.domain, total.expr.type)
    )
    source = f"SELECT * FROM ({keyed}) AS r WHERE {has_cell}"
    if not question.needs_clipping:
        return f"SELECT {comma_list(keys, ['v', 'COUNT(*) AS t'])} FROM ({source}) AS r{group_by([*keys, 'v'])}"
    units, full = unit_columns(relation), 1 << question.fraction_bits(total)
    lowered = dialect.quotient.format(question.max_rows_per_group * full, '".m"')
    row_weight = f'CASE WHEN ".m" > {question.max_rows_per_group} THEN {lowered} ELSE {full} END'
    pairs = f'SELECT {comma_list(units, keys)}, COUNT(*) AS ".m" FROM ({source}) AS r{group_by([*units, *keys])}'
    kinds = [expr.type for _, expr in question.by]
    equal = [dialect.null_safe_equal(f"r.{key}", f"w.{key}", kind) for key, kind in zip(keys, kinds, strict=True)]
    same = conjunction([*unit_equalities(relation, "r", "w"), *equal])
    weight = dialect.bigint_sum.format(f'COALESCE(w.".w", {full})')
    outputs = [f"r.{name}" for name in (*keys, "v")]
    return (
        f"WITH {with_query('.pairs', pairs, dialect)}, {_weights_below_full(question, row_weight, dialect)} "
        f"SELECT {comma_list(outputs, [f'{weight} AS t'])} "
        f'FROM ({source}) AS r LEFT JOIN ".weights" AS w ON {same}{group_by(outputs)}'
    )


def _weights_below_full(question: Question, row_weight: str, dialect: Dialect) -> str:
    """Return the WITH queries of the weights of a unit's rows in the groups where they are below full weight."""
    units, keys, rows = unit_columns(question.relation), key_names(question), question.max_rows_per_group
    if not question.needs_l0_clipping:
        weights = f'SELECT {comma_list(units, keys)}, {row_weight} AS ".w" FROM ".pairs" WHERE ".m" > {rows}'
        return with_query(".weights", weights, dialect)
    weight = dialect.quotient.format(question.bounds.groups << WEIGHT_BITS, "COUNT(*)")
    heavy = (
        f'SELECT {comma_list(units)}, {weight} AS ".k" FROM ".pairs"{group_by(units)} '
        f"HAVING COUNT(*) > {question.bounds.groups}"
    )
    lighter = dialect.right_shift.format(f'(({row_weight}) * COALESCE(h.".k", {1 << WEIGHT_BITS}))', WEIGHT_BITS)
    weights = (
        f'SELECT {comma_list([f"p.{name}" for name in (*units, *keys)])}, {lighter} AS ".w" FROM ".pairs" AS p '
        f'LEFT JOIN ".heavy" AS h ON {conjunction(unit_equalities(question.relation, "p", "h"))} '
        f'WHERE ".m" > {rows} OR h.".k" IS NOT NULL'
    )
    return f"{with_query('.heavy', heavy, dialect)}, {with_query('.weights', weights, dialect)}"


def select_distinct_counts(question: Question, total: CountDistinct, dialect: Dialect) -> str:
    """Return a SELECT of the number of distinct values of each group.

    Claim: of a unit's distinct values at most rows count in a group, and groups·rows in total.
    Proof: the values of a unit that may have more are numbered twice: within each group by a hash, then the remaining
        ones over all groups by those numbers; both numbers are bounded. The other units have at most rows values in
        total. No two values have the same number, even if hashes collide: which ones count depends on this unit's rows
        alone.
    Needs: select_keyed_rows, unit_equalities, Question.l0_bound, Question.max_rows_per_group, Dialect.text_hash.
    Checked by: test_the_engine_equals_the_reference, test_where_hashes_collide_the_value_decides_what_counts
    """
    keys = key_names(question)
    computed_columns = [f"{write_key(total.expr, dialect)} AS v", f"{_write_text(total.expr, dialect)} AS x"]
    source = f"SELECT * FROM ({select_keyed_rows(question, computed_columns, dialect)}) AS r WHERE v IS NOT NULL"
    counted = output_columns(keys, {0: "COUNT(DISTINCT v)"})
    if not question.needs_clipping:
        return f"SELECT {counted} FROM ({source}) AS r{group_by(keys)}"
    units, max_rows = unit_columns(question.relation), question.max_rows_per_group
    hashed = dialect.text_hash.format(f"{_write_unit_text(question, dialect)} || '/' || x")
    # Hashes can be made to collide: without the value, rows of other units could decide which one comes first.
    in_group = f'ROW_NUMBER() OVER (PARTITION BY {comma_list(units, keys)} ORDER BY {hashed}, v) AS ".n"'
    in_turn = ", ".join(['".n"', hashed, *(f"{key} ASC NULLS LAST" for key in keys)])  # one of each group in turn
    in_all = f'ROW_NUMBER() OVER (PARTITION BY {comma_list(units)} ORDER BY {in_turn}) AS ".a"'
    has_many = f'EXISTS (SELECT 1 FROM ".many" AS m WHERE {conjunction(unit_equalities(question.relation, "d", "m"))})'
    numbered = f'SELECT *, {in_group} FROM ".pairs" AS d WHERE {has_many}'
    numbered = f'SELECT *, {in_all} FROM ({numbered}) AS n WHERE ".n" <= {max_rows}'
    pairs = f"SELECT DISTINCT {comma_list(units, keys, ['v', 'x'])} FROM ({source}) AS r"
    many = f'SELECT {comma_list(units)} FROM ".pairs"{group_by(units)} HAVING COUNT(*) > {max_rows}'
    values = comma_list(keys, ["v"])
    return (
        f"WITH {with_query('.pairs', pairs, dialect)}, {with_query('.many', many, dialect)} SELECT {counted} FROM ("
        f'SELECT {values} FROM ".pairs" AS d WHERE NOT {has_many} '
        f'UNION ALL SELECT {values} FROM ({numbered}) AS a WHERE ".a" <= {question.l0_bound * max_rows}'
        f") AS p{group_by(keys)}"
    )


def _write_cell(total: HistogramTree, dialect: Dialect) -> str:
    """Return the cell of a row: its grid index, or the value itself."""
    if isinstance(total.domain, Grid):
        return write_grid_step(write_expr(total.expr, dialect), total.domain, dialect)
    return write_key(total.expr, dialect)


def _write_text(expr: Expr, dialect: Dialect) -> str:
    """Return the SQL of a value as text, the same on every engine."""
    return write_expr(Call(_TEXT_OPERATIONS[expr.type], (expr,)) if expr.type in _TEXT_OPERATIONS else expr, dialect)


def _write_unit_text(question: Question, dialect: Dialect) -> str:
    """Return the SQL of a text that identifies a unit, or an empty text; the choice only has to depend on the unit."""
    kind = (question.relation.shape.unit or (Type.REAL,))[0]
    if kind is not Type.TEXT and kind not in _TEXT_OPERATIONS:
        return "''"
    return _write_text(Column("u", kind), dialect).replace('"u"', '".u0"')
