"""The SELECT of a question's counts and sums, with each unit's contributions clipped.

k0, k1, … are the keys of groups; v0, v1, … the contributions of rows to a total; m, m0, … their number for one unit in
one group, s0, s1, … their sum; x0, x1, … a unit's term, xr its row count; .nx0, … the sum of its |y| or y² over all
groups (Ball); .wx0, … its weight; t0, t1, … the totals.
"""

from collections.abc import Mapping

from discreet.kernel.ball import WEIGHT_BITS, Ball, Norm
from discreet.kernel.expr import Call, Type
from discreet.kernel.question import PublicGroups, Question
from discreet.kernel.sqlgen.dialect import Dialect
from discreet.kernel.sqlgen.expr_sql import write_expr, write_grid_step, write_key
from discreet.kernel.sqlgen.relation_sql import (
    comma_list,
    conjunction,
    group_by,
    select_rows,
    unit_columns,
    unit_equalities,
    with_query,
)
from discreet.kernel.totals import Count, CountUnits, SelectionWeight, Sum, Total

COUNTS_AND_SUMS = (Count, CountUnits, Sum)


def select_counts_and_sums(question: Question, dialect: Dialect) -> str:
    """Return one SELECT of the keys, counts and sums of the groups of a question.

    Claim: each total is the sum over units of the terms whose bounds Question.sensitivity_of proves.
    Proof: rows → the values of one unit in one group, counted and summed → terms, each limited (_write_term) → terms
        weighted by unit so that they are in the ball (_sum_terms) → sums. Without clipping, a unit has one row, and its
        term is that row's contribution. No intermediate result exceeds 64 bits, as Question checks. Values that were
        stored before have the same rows (Dialect.stored_groups). Without clipping a selection weight counts rows.
    Needs: Question.sensitivity_of, select_groups, select_keyed_rows, row_values, _select_terms, _write_term,
        _measured, _sum_terms, _unclipped_total, Dialect.
    Checked by: test_the_engine_equals_the_reference, test_postgresql_equals_the_reference,
        test_spark_sql_equals_the_reference, test_removing_a_unit_moves_totals_by_at_most_the_sensitivity
    """
    keys, (totals, names, values) = key_names(question), row_values(question, dialect)
    if not question.needs_clipping:
        sums = {index: _unclipped_total(total, names[index], dialect) for index, total in totals.items()}
        keyed = select_keyed_rows(question, values, dialect)
        return f"SELECT {output_columns(keys, sums)} FROM ({keyed}) AS r{group_by(keys)}"
    begin, source = _select_terms(question, totals, names, dialect)
    sums = {index: _sum_terms(question, total, index, dialect) for index, total in totals.items()}
    return f"{begin}SELECT {output_columns(keys, sums)} FROM {source}{group_by(keys)}"


def select_groups(question: Question, dialect: Dialect) -> str:
    """Return a SELECT of the groups of each unit: the number of its rows there (m), counts and sums of their values.

    Claim: each unit occurs once with each group in which it has rows, and its numbers are those of these rows.
    Proof: the rows are grouped by all columns of the unit and all keys.
    Needs: row_values, select_keyed_rows, unit_columns, _pair_aggregates, Dialect.sum_in_group.
    Checked by: test_the_engine_equals_the_reference, test_stored_groups_do_not_change_totals
    """
    totals, names, values = row_values(question, dialect)
    aggregates = [text for index, total in totals.items() for text in _pair_aggregates(total, names[index], dialect)]
    columns = [*unit_columns(question.relation), *key_names(question)]
    outputs = comma_list(columns, list(dict.fromkeys([*aggregates, "COUNT(*) AS m"])))
    return f"SELECT {outputs} FROM ({select_keyed_rows(question, values, dialect)}) AS r{group_by(columns)}"


def row_values(question: Question, dialect: Dialect) -> tuple[Mapping[int, Total], Mapping[int, str | None], list[str]]:
    """Return the counts and sums, the names of the values that they count or sum, and the columns of these values.

    Without clipping, the selection weights beside other totals are among them, because they are numbers of rows.
    """
    totals: dict[int, Total] = {
        index: total
        for index, total in enumerate(question.totals)
        if isinstance(total, COUNTS_AND_SUMS)
        or (isinstance(total, SelectionWeight) and len(question.totals) > 1 and not question.needs_clipping)
    }
    texts = {index: _row_value(question, total, dialect) for index, total in totals.items()}
    values = {text: f"v{place}" for place, text in enumerate(dict.fromkeys(filter(None, texts.values())))}
    columns = [f"{text} AS {name}" for text, name in values.items()]
    return totals, {index: values.get(text or "") for index, text in texts.items()}, columns


def _select_terms(
    question: Question, totals: Mapping[int, Total], names: Mapping[int, str | None], dialect: Dialect
) -> tuple[str, str]:
    """Return the WITH clause, and the terms of each unit in each group with its weights."""
    units, keys, stored = unit_columns(question.relation), key_names(question), dialect.stored_groups(question)
    groups = stored or f"({select_groups(question, dialect)})"
    terms = [f"{_write_term(question, total, names[at], dialect)} AS x{at}" for at, total in totals.items()]
    balls = {
        _measured(question, index): ball
        for index, total in totals.items()
        if (ball := question.ball_of(total)) is not None
    }
    if not balls:
        return "", f"(SELECT {comma_list(keys, terms)} FROM {groups} AS g) AS p"
    if "xr" in balls:
        terms.append(f"LEAST(m, {question.max_rows_per_group}) AS xr")
    pairs = f"SELECT {comma_list(units, keys, terms)} FROM {groups} AS g"
    heavy = with_query(".heavy", _select_heavy_units(question, balls, dialect), dialect)
    equal = conjunction(unit_equalities(question.relation, "p", "h"))
    return (
        f"WITH {with_query('.pairs', pairs, dialect, stored=stored)}, {heavy} ",
        f'".pairs" AS p LEFT JOIN ".heavy" AS h ON {equal}',
    )


def _measured(question: Question, index: int) -> str:
    """Return the column whose norm determines the weight of a unit in a total: its term, or its row count."""
    return "xr" if question.weighs_by_rows(question.totals[index]) else f"x{index}"


def _select_heavy_units(question: Question, balls: Mapping[str, Ball], dialect: Dialect) -> str:
    """Return the units that exceed a ball in some measured column, with their weights.

    Claim: every such unit is listed once, with the weight of Ball.weight_numerator for each ball that it exceeds, and
        2^20 for the others.
    Proof: `.pairs` has one row for each group of a unit, so the sums by unit are those of its terms over all groups.
    Needs: Ball, Ball.weight_numerator, unit_columns, _write_step.
    Checked by: test_the_engine_equals_the_reference, test_a_missing_ball_is_caught
    """
    units = unit_columns(question.relation)
    norms = [
        f'{dialect.sum_or_zero.format(_write_step(column, ball, dialect))} AS ".n{column}"'
        for column, ball in balls.items()
    ]
    real, integer = dialect.types[Type.REAL], dialect.types[Type.INTEGER]
    weights = []
    for column, ball in balls.items():
        norm = f'".n{column}"'
        quotient = dialect.quotient.format(ball.weight_numerator, norm)
        if ball.norm is Norm.L2:
            root = f"SQRT(CAST({norm} AS {real}))"
            quotient = f"CAST(FLOOR(CAST({ball.weight_numerator} AS {real}) / {root}) AS {integer})"
        weights.append(f'CASE WHEN {norm} > {ball.limit} THEN {quotient} ELSE {1 << WEIGHT_BITS} END AS ".w{column}"')
    exceeds = " OR ".join(f'".n{column}" > {ball.limit}' for column, ball in balls.items())
    measured = f'SELECT {comma_list(units, norms)} FROM ".pairs"{group_by(units)}'
    return f"SELECT {comma_list(units, weights)} FROM ({measured}) AS n WHERE {exceeds}"


def _write_step(term: str, ball: Ball, dialect: Dialect) -> str:
    """Return |y| or y² for a term, where y is the term in steps of 2^shift, rounded away from zero."""
    if ball.norm is Norm.L2 and not ball.shift:
        return f"{term} * {term}"
    step = f"ABS({term})"
    if ball.shift:
        step = f"({dialect.right_shift.format(f'({step} + {(1 << ball.shift) - 1})', ball.shift)})"
    return step if ball.norm is Norm.L1 else f"{step} * {step}"


def select_keyed_rows(question: Question, computed_columns: list[str], dialect: Dialect) -> str:
    """Return a SELECT of the rows of a question, each with its unit, its keys and computed columns.

    Claim: each row of the relation occurs once, with its own unit, or not at all, if one of its keys is not public.
    Proof: the inner SELECT computes columns row by row; the outer one keeps a row by its own keys and public lists.
    Needs: select_rows, unit_columns, write_key, PublicGroups, Dialect.write_in_list.
    Checked by: test_the_engine_equals_the_reference, test_situations
    """
    keys = [f"{write_key(expr, dialect)} AS k{index}" for index, (_, expr) in enumerate(question.by)]
    outputs = comma_list(unit_columns(question.relation), keys, computed_columns) or "1 AS one"
    computed = computed_columns or any(isinstance(expr, Call) for _, expr in question.by)
    fence = dialect.optimization_fence if computed else ""
    source = f"SELECT {outputs} FROM ({select_rows(question.relation, dialect)}) AS s{fence}"
    conditions = []
    for index, domain in enumerate(question.groups.domains if isinstance(question.groups, PublicGroups) else ()):
        values = [value for value in domain if value is not None]
        listed = [dialect.write_in_list(f"k{index}", values, question.by[index][1].type)] if values else []
        conditions.append(f"({' OR '.join(listed + ([f'k{index} IS NULL'] if None in domain else []))})")
    return f"SELECT * FROM ({source}) AS s WHERE {conjunction(conditions)}"


def _row_value(question: Question, total: Total, dialect: Dialect) -> str | None:
    """Return the contribution of a row: its grid index, or a value that is NULL if the row does not count."""
    if isinstance(total, Sum):
        return write_grid_step(write_expr(total.expr, dialect), total.grid, dialect)
    if total.expr is None or total.expr.type is not Type.REAL:
        return None if total.expr is None else write_expr(total.expr, dialect)
    # A real counts if it is finite, like its grid index; if it is also summed, that index is reused.
    summed = [other for other in question.totals if isinstance(other, Sum) and other.expr == total.expr]
    return _row_value(question, summed[0], dialect) if summed else write_key(total.expr, dialect)


def _sum_rows(total: Sum, name: str | None, template: str) -> str:
    """Return the sum of x^power - shift over rows."""
    power = f"{name} * {name}" if total.power == 2 else f"{name}"
    return template.format(f"{power} - {total.shift}" if total.shift else power)


def _unclipped_total(total: Total, name: str | None, dialect: Dialect) -> str:
    return _sum_rows(total, name, dialect.sum_or_zero) if isinstance(total, Sum) else f"COUNT({name or '*'})"


def _pair_aggregates(total: Total, name: str | None, dialect: Dialect) -> list[str]:
    """Return the aggregates of one unit in one group: the number of values, and their sum."""
    if total == CountUnits():
        return []
    count = f"COUNT({name or '*'}) AS {_count_name(name)}"
    if not isinstance(total, Sum):
        return [count]
    return [count, f"{_sum_rows(total, name, dialect.sum_in_group or dialect.sum_or_zero)} AS {_sum_name(total, name)}"]


def _count_name(name: str | None) -> str:
    return f"m{name[1:] if name else ''}"


def _sum_name(total: Sum, name: str | None) -> str:
    return f'"s{(name or "")[1:]} {total.power} {total.shift}"'


def _write_term(question: Question, total: Total, name: str | None, dialect: Dialect) -> str:
    """Return a unit's term in one group, limited, in units of 2^-term_bits of the total's step.

    Claim: with caps_terms or without a ball, its absolute value is at most max_term·2^term_bits; else at most ball.cut.
    Proof: m values sum to s with |s| <= m·max. With a cap, the term for m <= rows is s·2^bits; for m > rows it is the
        sign of s times floor(|s|·2^bits·rows/m): with |s|·2^bits = q·m + r it is q·rows + floor(r·rows/m), in which no
        product exceeds 64 bits. Counts are at most min(m, rows), units 0 or 1. Without a cap, LEAST and GREATEST.
    Needs: Question.term_bits, Question.max_rows_per_group, Question.max_term, Question.ball_of, max_abs_contribution,
        Dialect.quotient, Dialect.sign.
    Checked by: test_the_engine_equals_the_reference,
        test_a_missing_row_bound_is_caught_in_the_totals_and_the_answers
    """
    max_rows, count = question.max_rows_per_group, _count_name(name)
    if isinstance(total, CountUnits):
        return f"CASE WHEN {count} > 0 THEN 1 ELSE 0 END" if total.expr else "1"
    if not question.caps_terms(total):
        ball, term = question.ball_of(total), _sum_name(total, name) if isinstance(total, Sum) else count
        limit = ball.cut if ball else question.max_term(total)
        if limit is not None:
            term = f"LEAST({term}, {limit})"
            term = f"GREATEST({term}, {-limit})" if isinstance(total, Sum) else term
        return term
    if not isinstance(total, Sum):
        return f"LEAST({count}, {max_rows})"
    bits = question.term_bits(total)
    scaled_sum = f"{_sum_name(total, name)}{f' * {1 << bits}' if bits else ''}"
    size, rest = f"({dialect.quotient.format(f'ABS({scaled_sum})', count)})", f"(ABS({scaled_sum}) % {count})"
    rest_share = dialect.quotient.format(f"({rest} * {max_rows})", count)
    lowered = f"{dialect.sign.format(scaled_sum)} * ({size} * {max_rows} + {rest_share})"
    return f"CASE WHEN {count} > {max_rows} THEN {lowered} ELSE {scaled_sum} END"


def _sum_terms(question: Question, total: Total, index: int, dialect: Dialect) -> str:
    """Return one total of a group as the sum of its units' terms, each multiplied by the unit's weight.

    Claim: a term is multiplied by weight·2^(fraction_bits - term_bits - 20), and rounded towards zero.
    Proof: a unit that is not in `.heavy` has the weight 2^20. A shift rounds down, so sums shift their absolute value.
    Needs: _select_heavy_units, Question.ball_of, Question.fraction_bits, Question.term_bits, Dialect.right_shift,
        Dialect.sign.
    Checked by: test_the_engine_equals_the_reference, test_a_missing_ball_is_caught
    """
    if question.ball_of(total) is None:
        return dialect.sum_or_zero.format(f"x{index}")
    weight = f'COALESCE(h.".w{_measured(question, index)}", {1 << WEIGHT_BITS})'  # faster than CASE
    shift = WEIGHT_BITS - question.fraction_bits(total) + question.term_bits(total)
    size = f"({'ABS' if isinstance(total, Sum) else ''}(x{index}) * {weight})"
    size = dialect.right_shift.format(size, shift) if shift else size
    if not isinstance(total, Sum):
        return dialect.sum_or_zero.format(size)
    return dialect.sum_or_zero.format(f"{dialect.sign.format(f'x{index}')} * ({size})")


def key_names(question: Question) -> list[str]:
    """Return the names of the keys of groups."""
    return [f"k{index}" for index in range(len(question.by))]


def output_columns(keys: list[str], totals: Mapping[int, str]) -> str:
    """Return the output columns: the keys, then the totals with their indices."""
    return comma_list(keys, [f"{total} AS t{index}" for index, total in totals.items()])
