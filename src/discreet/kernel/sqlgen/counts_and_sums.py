"""The SELECT of a question's counts and sums, with each unit's contribution clipped.

k0, k1, … are the keys of groups; v0, v1, … the contributions of rows to a total; m, m0, … their number for one unit in
one group, s0, s1, … their sum; x0, x1, … a unit's term; .w a unit's weight; t0, t1, … the totals.
"""

from collections.abc import Mapping

from discreet.kernel.expr import Call, Type
from discreet.kernel.question import (
    WEIGHT_BITS,
    ClippedUnits,
    Count,
    CountUnits,
    PublicGroups,
    Question,
    Sum,
    Total,
)
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

_COUNTS_AND_SUMS = (Count, CountUnits, Sum, ClippedUnits)


def select_counts_and_sums(question: Question, dialect: Dialect) -> str:
    """Return one SELECT of the keys, counts and sums of the groups of a question.

    Claim: each total is the sum over units of the terms whose bounds Question.sensitivity_of proves.
    Proof: rows → the values of one unit in one group, counted and summed (`.pairs`) → terms scaled by rows/m
        (_clipped_term) and, in more than `groups` groups, by the unit's weight (_sum_terms) → sums. Without
        clipping, a unit has one row, and its term is that row's contribution. No intermediate result exceeds 64 bits,
        as Question checks.
    Needs: Question.sensitivity_of, select_keyed_rows, _row_value, _select_terms, _pair_aggregates, _clipped_term,
        _sum_terms, _unclipped_total, Dialect.
    Checked by: test_the_engine_equals_the_reference, test_postgresql_equals_the_reference,
        test_spark_sql_equals_the_reference, test_removing_a_unit_moves_totals_by_at_most_the_sensitivity
    """
    totals = {index: total for index, total in enumerate(question.totals) if isinstance(total, _COUNTS_AND_SUMS)}
    texts = {index: _row_value(question, total, dialect) for index, total in totals.items()}
    values = {text: f"v{place}" for place, text in enumerate(dict.fromkeys(filter(None, texts.values())))}
    names = {index: values.get(text or "") for index, text in texts.items()}
    keyed = select_keyed_rows(question, [f"{text} AS {name}" for text, name in values.items()], dialect)
    if question.needs_clipping:
        begin, source = _select_terms(question, totals, names, keyed, dialect)
        sums = {index: _sum_terms(question, total, index, dialect) for index, total in totals.items()}
    else:
        begin, source = "", keyed
        sums = {index: _unclipped_total(total, names[index], dialect) for index, total in totals.items()}
    keys = key_names(question)
    alias = "p" if question.needs_clipping else "r"
    return f"{begin}SELECT {output_columns(keys, sums)} FROM ({source}) AS {alias}{group_by(keys)}"


def _select_terms(
    question: Question, totals: Mapping[int, Total], names: Mapping[int, str | None], keyed: str, dialect: Dialect
) -> tuple[str, str]:
    """Return the WITH clause, and the terms of each unit in each group with its weights."""
    units, keys = unit_columns(question.relation), key_names(question)
    aggregates = [text for index, total in totals.items() for text in _pair_aggregates(total, names[index], dialect)]
    columns = comma_list(units, keys, list(dict.fromkeys(aggregates)))
    pairs = f"SELECT {columns} FROM ({keyed}) AS r{group_by([*units, *keys])}"
    terms = [
        f"{_clipped_term(question, total, names[index], dialect)} AS x{index}"
        for index, total in totals.items()
        if not isinstance(total, ClippedUnits)
    ]
    clipped = [total for total in totals.values() if isinstance(total, ClippedUnits)]
    with_pairs = f"WITH {with_query('.pairs', pairs, dialect)}"
    if not question.needs_l0_clipping:
        outputs = comma_list(keys, terms) or "1 AS one"
        if not clipped:
            return "", f"SELECT {outputs} FROM ({pairs}) AS p"
        return f"{with_pairs} ", f'SELECT {outputs} FROM ".pairs" AS p'
    weight, excess = group_weight(question, dialect), ""
    if any(total.by_rows for total in clipped):  # then some of the units are not in too many groups
        weight, excess = f"LEAST({weight}, {1 << WEIGHT_BITS})", f" OR MAX(m) > {question.max_rows_per_group}"
    heavy = select_heavy_units(question, f'{weight} AS ".w"') + excess
    joined = f'".pairs" AS p LEFT JOIN ".heavy" AS h ON {conjunction(unit_equalities(question.relation, "p", "h"))}'
    source = f"SELECT {comma_list(keys, terms, [_joined_weight()])} FROM {joined}"
    return f"{with_pairs}, {with_query('.heavy', heavy, dialect)} ", source


def select_heavy_units(question: Question, weights: str) -> str:
    """Return the units in more groups than the bound, with their weights; ends with the condition.

    Claim: every unit in more than `groups` groups is listed, once.
    Proof: `.pairs` has one row for each group of a unit, so COUNT(*) by unit is the number of its groups.
    Needs: unit_columns.
    Checked by: test_the_engine_equals_the_reference, test_a_missing_group_bound_is_caught
    """
    units = unit_columns(question.relation)
    return (
        f'SELECT {comma_list(units)}, {weights} FROM ".pairs"{group_by(units)} '
        f"HAVING COUNT(*) > {question.bounds.groups}"
    )


def group_weight(question: Question, dialect: Dialect) -> str:
    """Return the weight floor(groups·2^20/k) of a unit in k groups."""
    return dialect.quotient.format(question.bounds.groups << WEIGHT_BITS, "COUNT(*)")


def _joined_weight() -> str:
    """Return the weight of every unit; the default is 1. COALESCE is faster than CASE."""
    return f'COALESCE(h.".w", {1 << WEIGHT_BITS}) AS ".w"'


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


def _sum_rows(total: Sum, name: str | None, dialect: Dialect) -> str:
    """Return the sum of x^power - shift over rows."""
    power = f"{name} * {name}" if total.power == 2 else f"{name}"
    return dialect.sum_or_zero.format(f"{power} - {total.shift}" if total.shift else power)


def _unclipped_total(total: Total, name: str | None, dialect: Dialect) -> str:
    return _sum_rows(total, name, dialect) if isinstance(total, Sum) else f"COUNT({name or '*'})"


def _pair_aggregates(total: Total, name: str | None, dialect: Dialect) -> list[str]:
    """Return the aggregates of one unit in one group: the number of values, and their sum."""
    if total in (CountUnits(), ClippedUnits(by_rows=False)):
        return []
    count = f"COUNT({name or '*'}) AS {_count_name(name)}"
    return (
        [count, f"{_sum_rows(total, name, dialect)} AS {_sum_name(total, name)}"] if isinstance(total, Sum) else [count]
    )


def _count_name(name: str | None) -> str:
    return f"m{name[1:] if name else ''}"


def _sum_name(total: Sum, name: str | None) -> str:
    return f'"s{(name or "")[1:]} {total.power} {total.shift}"'


def _clipped_term(question: Question, total: Total, name: str | None, dialect: Dialect) -> str:
    """Return a unit's term in one group, clipped by rows, in units of 2^-bits of the total's step.

    Claim: its absolute value is at most rows·2^bits times the largest contribution of a row.
    Proof: m values sum to s with |s| <= m·max. For m <= rows the term is s·2^bits. For m > rows it is the sign of s
        times floor(|s|·2^bits·rows/m): with |s|·2^bits = q·m + r it is q·rows + floor(r·rows/m), in which no product
        exceeds 64 bits. Counts are at most min(m, rows), units 0 or 1.
    Needs: Question.fraction_bits, Question.max_rows_per_group, max_abs_contribution, Dialect.quotient, Dialect.sign.
    Checked by: test_the_engine_equals_the_reference,
        test_a_missing_row_bound_is_caught_in_the_totals_and_the_answers
    """
    bits, max_rows, count = question.fraction_bits(total), question.max_rows_per_group, _count_name(name)
    scale = f" * {1 << bits}" if bits else ""
    if isinstance(total, CountUnits):
        return f"CASE WHEN {count} > 0 THEN {1 << bits} ELSE 0 END" if total.expr else str(1 << bits)
    if not isinstance(total, Sum):
        return f"LEAST({count}, {max_rows}){scale}"
    scaled_sum = f"{_sum_name(total, name)}{scale}"
    size, rest = f"({dialect.quotient.format(f'ABS({scaled_sum})', count)})", f"(ABS({scaled_sum}) % {count})"
    rest_share = dialect.quotient.format(f"({rest} * {max_rows})", count)
    lowered = f"{dialect.sign.format(scaled_sum)} * ({size} * {max_rows} + {rest_share})"
    return f"CASE WHEN {count} > {max_rows} THEN {lowered} ELSE {scaled_sum} END"


def _sum_terms(question: Question, total: Total, index: int, dialect: Dialect) -> str:
    """Return one total of a group as the sum of its units' terms, each clipped by groups, too.

    Claim: the k > groups terms of a unit are multiplied by at most groups/k, and rounded towards zero.
    Proof: a weight is at most groups·2^20/k, and 2^20 for other units, so the product shifted by 20 bits is at most
        the term times groups/k; a shift rounds down, so sums shift their absolute value. Where `.heavy` also lists
        units in fewer groups, LEAST keeps their weight at 2^20. A unit adds one to ClippedUnits, or nothing: it is in
        `.heavy` once, or DISTINCT.
    Needs: select_heavy_units, group_weight, _joined_weight, _count_clipped_units, Dialect.right_shift, Dialect.sign.
    Checked by: test_the_engine_equals_the_reference, test_a_missing_group_bound_is_caught
    """
    if isinstance(total, ClippedUnits):
        return _count_clipped_units(question, total)
    if not question.needs_l0_clipping:
        return dialect.sum_or_zero.format(f"x{index}")
    if not isinstance(total, Sum):
        return dialect.sum_or_zero.format(dialect.right_shift.format(f'(x{index} * ".w")', WEIGHT_BITS))
    size = dialect.right_shift.format(f'(ABS(x{index}) * ".w")', WEIGHT_BITS)
    return dialect.sum_or_zero.format(f"{dialect.sign.format(f'x{index}')} * ({size})")


def _count_clipped_units(question: Question, total: ClippedUnits) -> str:
    """Return the number of units above the bounds on groups or rows per group; the same in every group."""
    if question.needs_l0_clipping:
        in_too_many_groups = f' WHERE ".w" < {1 << WEIGHT_BITS}'
        return f'(SELECT COUNT(*) FROM ".heavy"{"" if total.by_rows else in_too_many_groups})'
    above = f"m > {question.max_rows_per_group}" if total.by_rows else "FALSE"
    units = comma_list(unit_columns(question.relation))
    return f'(SELECT COUNT(*) FROM (SELECT DISTINCT {units} FROM ".pairs" WHERE {above}) AS u)'


def key_names(question: Question) -> list[str]:
    """Return the names of the keys of groups."""
    return [f"k{index}" for index in range(len(question.by))]


def output_columns(keys: list[str], totals: Mapping[int, str]) -> str:
    """Return the output columns: the keys, then the totals with their indices."""
    return comma_list(keys, [f"{total} AS t{index}" for index, total in totals.items()])
