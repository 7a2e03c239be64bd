"""The SELECT of a question's counts and sums, with each unit's contribution clipped.

k0, k1, … are the keys of groups; v0, v1, … the contributions of rows to a total; m, m0, … their number for one unit in
one group, s0, s1, … their sum; x0, x1, … a unit's term; t0, t1, … the totals.
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
    SelectedGroups,
    Sum,
    Total,
)
from discreet.kernel.sqlgen.dialect import Dialect, GroupCountStrategy
from discreet.kernel.sqlgen.relation_sql import (
    comma_list,
    conjunction,
    group_by,
    select_rows,
    unit_columns,
    unit_equalities,
    write_expr,
    write_grid_step,
    write_key,
)

_COUNTS_AND_SUMS = (Count, CountUnits, Sum, ClippedUnits)


def select_counts_and_sums(question: Question, dialect: Dialect) -> str:
    """Return one SELECT of the keys, counts and sums of the groups of a question.

    Claim: each total is the sum over units of the terms whose bounds Question.sensitivity_of proves.
    Proof: rows → the values of one unit in one group, counted and summed (pairs) → each unit's number of groups, joined
        if it is above the bound (heavy) or counted over the unit's pairs → terms scaled by rows/m and by
        floor(groups·2^20/k)/2^20, truncated towards zero by separating the sign → sums. No intermediate result exceeds
        64 bits, as Question checks. Cells and distinct values have SELECTs of their own.
    Needs: the engine computes integers exactly; it is tested against a reference in plain Python.
    Checked by: test_the_engine_equals_the_reference
    Seal: d6c180250ae2
    """
    totals = {index: total for index, total in enumerate(question.totals) if isinstance(total, _COUNTS_AND_SUMS)}
    values = _row_values(question, dialect)
    keys = [f"k{place}" for place in range(len(question.by))]
    keyed = select_keyed_rows(question, [f"{text} AS {name}" for text, name in values.items()], dialect)
    names = {place: values.get(_row_value(question, total, dialect) or "") for place, total in totals.items()}
    if not question.needs_clipping:
        sums = {place: _unclipped_total(total, names[place], dialect) for place, total in totals.items()}
        return f"SELECT {output_columns(keys, sums)} FROM ({keyed}) AS r{_group_by_having(question, keys, sums)}"
    pair_columns = dict.fromkeys(
        part for place, total in totals.items() for part in _pair_aggregates(total, names[place], dialect)
    )
    terms = {
        place: _clipped_term(question, total, names[place], dialect)
        for place, total in totals.items()
        if not isinstance(total, ClippedUnits)
    }
    begin, source = _select_terms(question, totals, (keyed, list(pair_columns)), terms, dialect)
    sums = {place: _sum_terms(question, total, place, dialect) for place, total in totals.items()}
    return f"{begin}SELECT {output_columns(keys, sums)} FROM ({source}) AS p{_group_by_having(question, keys, sums)}"


def _select_terms(
    question: Question,
    totals: Mapping[int, Total],
    pair_source: tuple[str, list[str]],
    terms: Mapping[int, str],
    dialect: Dialect,
) -> tuple[str, str]:
    """Return the WITH clause, and a SELECT of the terms of each unit in each group with their weights."""
    (keyed, pair_columns), units = pair_source, unit_columns(question.relation)
    keys = [f"k{index}" for index in range(len(question.by))]
    clipped = [place for place, total in totals.items() if isinstance(total, ClippedUnits)]
    by_window = dialect.group_count_strategy is GroupCountStrategy.WINDOW and (question.needs_l0_clipping or clipped)
    if by_window and dialect.colocate_hint:  # later steps then find the rows of a unit in one place
        keyed = f"SELECT {dialect.colocate_hint.format(units=comma_list(units))}* FROM ({keyed}) AS r"
    pairs = f"SELECT {comma_list(units, keys, pair_columns)} FROM ({keyed}) AS r{group_by([*units, *keys])}"
    outputs = [f"{text} AS x{place}" for place, text in terms.items()]
    if by_window:
        outputs += [f"{_first_clipped_flag(question, totals[place], keys, dialect)} AS x{place}" for place in clipped]
        counted = f"SELECT *, {comma_list(_window_counts(question, totals, keys, dialect))} FROM ({pairs}) AS p"
        return "", f"SELECT {comma_list(keys, outputs, _window_weights(question, dialect))} FROM ({counted}) AS p"
    if not question.needs_l0_clipping:
        begin = f'WITH ".pairs" AS {dialect.materialized}({pairs}) ' if clipped else ""
        source = '".pairs"' if clipped else f"({pairs})"
        return begin, f"SELECT {comma_list(keys, outputs) or '1 AS one'} FROM {source} AS p"
    heavy = f'".heavy" AS {dialect.materialized}({_select_heavy_units(question, units, dialect)})'
    joined = f'".pairs" AS p LEFT JOIN ".heavy" AS h ON {conjunction(unit_equalities(question.relation, "p", "h"))}'
    begin = f'WITH ".pairs" AS {dialect.materialized}({pairs}), {heavy} '
    return begin, f"SELECT {comma_list(keys, outputs, _joined_weights())} FROM {joined}"


def _sum_terms(question: Question, total: Total, index: int, dialect: Dialect) -> str:
    """Return one total of a group as the sum of its units' terms."""
    if isinstance(total, ClippedUnits):
        by_join = dialect.group_count_strategy is GroupCountStrategy.JOIN
        return _count_clipped_units(question, total) if by_join else dialect.sum_or_zero.format(f"x{index}")
    return dialect.sum_or_zero.format(
        _weighted_term(question, total, index, dialect) if question.needs_l0_clipping else f"x{index}"
    )


def _window_counts(question: Question, totals: Mapping[int, Total], keys: list[str], dialect: Dialect) -> list[str]:
    """Return window functions over all groups of a unit: .k their number, .m the most rows in one, .n the first."""
    over = f"PARTITION BY {comma_list(unit_columns(question.relation))}"
    columns = [f'COUNT(*) OVER ({over}) AS ".k"']
    clipped = [total for total in totals.values() if isinstance(total, ClippedUnits)]
    if any(total.by_rows for total in clipped):
        columns.append(f'MAX(m) OVER ({over}) AS ".m"')
    if clipped and len(keys) == 1:  # needs no ordering
        columns.append(f'{dialect.min_or_max("MIN", keys[0], question.by[0][1].type)} OVER ({over}) AS ".n"')
    elif clipped and keys:
        order = ", ".join(f"{key} ASC NULLS LAST" for key in keys)
        columns.append(f'ROW_NUMBER() OVER ({over} ORDER BY {order}) AS ".n"')
    return columns


def _first_clipped_flag(question: Question, total: Total, keys: list[str], dialect: Dialect) -> str:
    """Return 1 in the first group of a unit above the bounds on groups or rows per group, else 0."""
    excesses = [f'".m" > {question.max_rows_per_group}'] if isinstance(total, ClippedUnits) and total.by_rows else []
    excesses += [f'".k" > {question.bounds.groups}'] if question.needs_l0_clipping else []
    first = (
        '".n" = 1'
        if len(keys) > 1
        else dialect.null_safe_equal("k0", '".n"', question.by[0][1].type)
        if keys
        else "TRUE"
    )
    return f"CASE WHEN {first} AND ({' OR '.join(excesses) or 'FALSE'}) THEN 1 ELSE 0 END"


def _window_weights(question: Question, dialect: Dialect) -> list[str]:
    """Return the weights of every unit from its number of groups; same values as _joined_weights."""
    if not question.needs_l0_clipping:
        return []
    max_groups, full = question.bounds.groups, 1 << WEIGHT_BITS
    lowered = dialect.quotient.format(f"{max_groups << WEIGHT_BITS}", '".k"')
    exclusion = (
        f'WHEN ".k" > {question.groups.max_groups} THEN 0 ' if isinstance(question.groups, SelectedGroups) else ""
    )
    weights = {"w": "", "v": exclusion}
    return [
        f'CASE WHEN ".k" <= {max_groups} THEN {full} {none}ELSE {lowered} END AS ".{name}"'
        for name, none in weights.items()
    ]


def select_keyed_rows(question: Question, computed_columns: list[str], dialect: Dialect) -> str:
    """Return a SELECT of the rows of a question, each with its unit, its keys and computed columns."""
    keys = [f"{write_key(expr, dialect)} AS k{index}" for index, (_, expr) in enumerate(question.by)]
    outputs = comma_list(unit_columns(question.relation), keys, computed_columns) or "1 AS one"
    computed = computed_columns or any(isinstance(expr, Call) for _, expr in question.by)
    fence = dialect.optimization_fence if computed else ""
    source = f"SELECT {outputs} FROM ({select_rows(question.relation, dialect)}) AS s{fence}"
    return f"SELECT * FROM ({source}) AS s WHERE {conjunction(_public_key_conditions(question, dialect))}"


def _count_clipped_units(question: Question, total: ClippedUnits) -> str:
    """Return the number of units above the bounds on groups or rows per group; the same in every group."""
    units = comma_list(unit_columns(question.relation))
    selects = [f'SELECT {units} FROM ".pairs" WHERE m > {question.max_rows_per_group}'] if total.by_rows else []
    selects += [f'SELECT {units} FROM ".heavy"'] if question.needs_l0_clipping else []
    none = f'SELECT {units} FROM ".pairs" WHERE FALSE'
    return f"(SELECT COUNT(*) FROM ({' UNION '.join([none, *selects])}) AS u)"


def _row_values(question: Question, dialect: Dialect) -> dict[str, str]:
    """Return the distinct contributions of rows with their column names."""
    texts = [_row_value(question, total, dialect) for total in question.totals if isinstance(total, _COUNTS_AND_SUMS)]
    return {text: f"v{index}" for index, text in enumerate(dict.fromkeys(text for text in texts if text))}


def _row_value(question: Question, total: Total, dialect: Dialect) -> str | None:
    """Return the contribution of a row: its grid index, or a value that is NULL if the row does not count."""
    if isinstance(total, Sum):
        return write_grid_step(write_expr(total.expr, dialect), total.grid, dialect)
    if total.expr is None:
        return None
    if total.expr.type is not Type.REAL:
        return write_expr(total.expr, dialect)
    # A real counts if it is finite, like its grid index; if it is also summed, that index is reused.
    summed = [other for other in question.totals if isinstance(other, Sum) and other.expr == total.expr]
    return _row_value(question, summed[0], dialect) if summed else write_key(total.expr, dialect)


def _public_key_conditions(question: Question, dialect: Dialect) -> list[str]:
    """Return the conditions that select rows with public keys."""
    if not isinstance(question.groups, PublicGroups):
        return []
    conditions = []
    for index, ((_, expr), domain) in enumerate(zip(question.by, question.groups.domains, strict=True)):
        values = [value for value in domain if value is not None]
        alternatives = [dialect.write_in_list(f"k{index}", values, expr.type)] if values else []
        conditions.append(" OR ".join([*alternatives, *([f"k{index} IS NULL"] if None in domain else [])]))
    return [f"({condition})" for condition in conditions]


def _summand(total: Sum, name: str) -> str:
    """Return the summand of one row."""
    text = f"{name} * {name}" if total.power == 2 else name
    return f"{text} - {total.shift}" if total.shift else text


def _unclipped_total(total: Total, name: str | None, dialect: Dialect) -> str:
    """Return a total without clipping."""
    if isinstance(total, Sum):
        assert name
        return dialect.sum_or_zero.format(_summand(total, name))
    return f"COUNT({name or '*'})"


def _pair_aggregates(total: Total, name: str | None, dialect: Dialect) -> list[str]:
    """Return the aggregates of one unit in one group: the number of values, and their sum."""
    if total in (CountUnits(), ClippedUnits(by_rows=False)):
        return []
    count = [f"COUNT({name or '*'}) AS {_count_name(name)}"]
    if not isinstance(total, Sum):
        return count
    assert name
    return [*count, f"{dialect.sum_or_zero.format(_summand(total, name))} AS {_sum_name(total, name)}"]


def _count_name(name: str | None) -> str:
    return f"m{name[1:] if name else ''}"


def _sum_name(total: Sum, name: str) -> str:
    return f'"s{name[1:]} {total.power} {total.shift}"'


def _clipped_term(question: Question, total: Total, name: str | None, dialect: Dialect) -> str:
    """Return a unit's term in one group, clipped by rows, in units of 2^-bits of the total's step."""
    bits, max_rows, count = question.fraction_bits(total), question.max_rows_per_group, _count_name(name)
    scale = f" * {1 << bits}" if bits else ""
    match total:
        case CountUnits(None):
            return str(1 << bits)
        case CountUnits():
            return f"CASE WHEN {count} > 0 THEN {1 << bits} ELSE 0 END"
        case Count():
            return f"LEAST({count}, {max_rows}){scale}"
    assert name
    assert isinstance(total, Sum)
    scaled_sum = f"{_sum_name(total, name)}{scale}"
    size, rest = f"({dialect.quotient.format(f'ABS({scaled_sum})', count)})", f"(ABS({scaled_sum}) % {count})"
    rest_share = dialect.quotient.format(f"({rest} * {max_rows})", count)
    lowered = f"{dialect.sign.format(scaled_sum)} * ({size} * {max_rows} + {rest_share})"
    return f"CASE WHEN {count} > {max_rows} THEN {lowered} ELSE {scaled_sum} END"


def _select_heavy_units(question: Question, units: list[str], dialect: Dialect) -> str:
    """Return the weight of each unit in more groups than the bound: `.w`, and `.v` for partition selection."""
    max_groups = question.bounds.groups
    lowered = dialect.quotient.format(f"{max_groups << WEIGHT_BITS}", "COUNT(*)")
    # A unit in more than SelectedGroups.max_groups groups does not count for the selection.
    counts_for_selection = (
        f"COUNT(*) <= {question.groups.max_groups}" if isinstance(question.groups, SelectedGroups) else "TRUE"
    )
    weights = f'{lowered} AS ".w", CASE WHEN {counts_for_selection} THEN {lowered} ELSE 0 END AS ".v"'
    return f'SELECT {comma_list(units)}, {weights} FROM ".pairs"{group_by(units)} HAVING COUNT(*) > {max_groups}'


def _joined_weights() -> list[str]:
    """Return the weights of every unit; the default is 1. COALESCE is faster than CASE."""
    return [f'COALESCE(h.".{name}", {1 << WEIGHT_BITS}) AS ".{name}"' for name in ("w", "v")]


def _weighted_term(question: Question, total: Total, index: int, dialect: Dialect) -> str:
    """Return a unit's term in one group, clipped by groups, too."""
    weight = '".v"' if isinstance(question.groups, SelectedGroups) and index == 0 else '".w"'
    if not isinstance(total, Sum):
        return dialect.right_shift.format(f"(x{index} * {weight})", WEIGHT_BITS)
    # A shift alone would round a negative term away from zero.
    size = dialect.right_shift.format(f"(ABS(x{index}) * {weight})", WEIGHT_BITS)
    return f"{dialect.sign.format(f'x{index}')} * ({size})"


def _group_by_having(question: Question, keys: list[str], sums: Mapping[int, str]) -> str:
    """Return GROUP BY, and HAVING to drop keys without counted units, unless they carry a count of clipped units."""
    if not isinstance(question.groups, SelectedGroups):
        return group_by(keys)
    clipped = [
        index for index, total in enumerate(question.totals) if isinstance(total, ClippedUnits) and index in sums
    ]
    positive = [0, *(place for place in clipped if not sums[place].startswith("(SELECT"))]
    return f"{group_by(keys)} HAVING {' OR '.join(f'{sums[place]} > 0' for place in positive)}"


def output_columns(keys: list[str], totals: Mapping[int, str]) -> str:
    """Return the output columns: the keys, then the totals with their indices."""
    return comma_list(keys, [f"{total} AS t{index}" for index, total in totals.items()])
