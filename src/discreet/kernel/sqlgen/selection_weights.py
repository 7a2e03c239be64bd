"""The SELECT of partition selection: the weight of each key.

k0, k1, … are the keys of groups; .pairs has the keys of each unit, .units the weight of each unit.
"""

from discreet.kernel.expr import Constant, Type
from discreet.kernel.question import Question, SelectedGroups
from discreet.kernel.sqlgen.counts_and_sums import key_names, output_columns, select_keyed_rows
from discreet.kernel.sqlgen.dialect import Dialect
from discreet.kernel.sqlgen.expr_sql import write_expr
from discreet.kernel.sqlgen.relation_sql import (
    comma_list,
    conjunction,
    group_by,
    unit_columns,
    unit_equalities,
    with_query,
)


def select_key_weights(question: Question, dialect: Dialect) -> str:
    """Return a SELECT of the weight of each key that was not shown in an earlier round.

    Claim: a unit with k such keys adds isqrt(4^bits // k) to each, and 0 if k is above max_selection_keys; without
        clipping, each of its rows adds one.
    Proof: `.pairs` has each of these keys of a unit once, whether rows are grouped here or in a stored table, so
        COUNT(*) by unit is k, and `.units` has each unit once. A filter by key may come before or after grouping by it.
        The root of an integer up to 2^40, correctly rounded as IEEE requires, is floored exactly: the root of m² is m,
        and that of m² - 1 is below m by more than 1/(2m) >= 2^-21, while a double below 2^20 is exact to 2^-33.
    Needs: select_keyed_rows, select_groups, Dialect, unit_columns, unit_equalities, Question.fraction_bits,
        Question.max_selection_keys, Dialect.quotient, Dialect.bigint_sum, _not_shown.
    Checked by: test_the_engine_equals_the_reference, test_postgresql_equals_the_reference,
        test_spark_sql_equals_the_reference, test_situations,
        test_removing_a_unit_moves_selection_weights_by_at_most_the_sensitivity
    """
    keys, units = key_names(question), unit_columns(question.relation)
    stored = dialect.stored_groups(question)
    source = f"{stored or f'({select_keyed_rows(question, [], dialect)})'} AS r{_not_shown(question, dialect)}"
    if not question.needs_clipping:
        return f"SELECT {output_columns(keys, {0: 'COUNT(*)'})} FROM {source}{group_by(keys)}"
    pairs = f"SELECT {comma_list(units, keys)} FROM {source}{'' if stored else group_by([*units, *keys])}"
    share = dialect.quotient.format(1 << 2 * question.fraction_bits(question.totals[0]), "COUNT(*)")
    weight = (
        f"CASE WHEN COUNT(*) <= {question.max_selection_keys} THEN CAST(FLOOR(SQRT(CAST({share} AS "
        f'{dialect.types[Type.REAL]}))) AS {dialect.types[Type.INTEGER]}) ELSE 0 END AS ".w"'
    )
    weights = f'SELECT {comma_list(units)}, {weight} FROM ".pairs"{group_by(units)}'
    outputs = output_columns(keys, {0: dialect.bigint_sum.format('u.".w"')})
    return (
        f"WITH {with_query('.pairs', pairs, dialect, stored=stored)}, {with_query('.units', weights, dialect)} "
        f'SELECT {outputs} FROM ".pairs" AS p JOIN ".units" AS u '
        f"ON {conjunction(unit_equalities(question.relation, 'p', 'u'))}{group_by(keys)}"
    )


def _not_shown(question: Question, dialect: Dialect) -> str:
    """Return the condition that a row's key is not among those shown in an earlier round."""
    kinds = [expr.type for _, expr in question.by]
    rows = [
        f"({', '.join(write_expr(Constant(value, kind), dialect) for value, kind in zip(key, kinds, strict=True))})"
        for key in (question.groups.shown if isinstance(question.groups, SelectedGroups) else ())
    ]
    keys = key_names(question)
    same = [dialect.null_safe_equal(f"r.{key}", f"x.{key}", kind) for key, kind in zip(keys, kinds, strict=True)]
    listed = f"(VALUES {', '.join(rows)}) AS x({', '.join(keys)})"
    return f" WHERE NOT EXISTS (SELECT 1 FROM {listed} WHERE {conjunction(same)})" if rows else ""
