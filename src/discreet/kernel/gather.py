"""Totals that need a SELECT of their own: cells, whose rows keep their places, and different values.

k0, k1, … are the keys of groups, v what is counted, .m a unit's rows in one group, .k its groups, .w a row's weight.
"""

from discreet.kernel.dialect import Dialect
from discreet.kernel.expr import Call, Column, Expr, Type
from discreet.kernel.grid import Grid
from discreet.kernel.question import WEIGHT_BITS, Cells, Question, Values
from discreet.kernel.render import keyed_rows, outputs_of, render
from discreet.kernel.writing import every, grouped, key_of, listed, same_unit, steps, unit_of, write

_TEXTS = {Type.INTEGER: "write_integer", Type.BOOLEAN: "write_boolean", Type.DATE: "write_date"}


def selects(question: Question, dialect: Dialect) -> dict[int | None, str]:
    """Write all SELECTs of a question: by the place of a total that has its own, and under None that of the others."""
    found: dict[int | None, str] = {}
    for place, total in enumerate(question.totals):
        match total:
            case Values():
                found[place] = gather_values(question, total, dialect)
            case Cells():
                found[place] = gather_cells(question, total, dialect)
            case _:
                found[None] = ""
    found |= {None: render(question, dialect)} if None in found else {}
    return {place: dialect.finish(text) for place, text in found.items()}


def gather_cells(question: Question, total: Cells, dialect: Dialect) -> str:
    """Write a SELECT of the weight of each cell (v) of each group; empty ones may be left out.

    Claim: a unit's weights in a group's cells sum to at most rows·2^bits, and to groups/k of that in k > groups groups.
    Proof: a unit with m values in a group, more than rows, gives each the weight floor(rows·2^bits/m), else 2^bits. In
        k > groups groups with values every weight is multiplied by floor(groups·2^20/k)/2^20 and rounded down.
    Needs: that the engine computes integers exactly; checked against a reference in plain Python.
    Checked by: test_the_engine_equals_the_reference
    Seal: 5a8af023f5dd
    """
    keys = [f"k{place}" for place in range(len(question.by))]
    value = _place(total, dialect)
    source = f"SELECT * FROM ({keyed_rows(question, [f'{value} AS v'], dialect)}) AS r WHERE {_held(total, dialect)}"
    if not question.bounded:
        return f"SELECT {listed(keys, ['v', 'COUNT(*) AS t'])} FROM ({source}) AS r{grouped([*keys, 'v'])}"
    units, full = unit_of(question.relation), 1 << question.bits(total)
    lowered = dialect.quotient.format(question.rows * full, '".m"')
    light = f'CASE WHEN ".m" > {question.rows} THEN {lowered} ELSE {full} END'
    pairs = f'SELECT {listed(units, keys)}, COUNT(*) AS ".m" FROM ({source}) AS r{grouped([*units, *keys])}'
    # Only what is not of full weight is joined to the rows.
    lowers = _all_weights if question.scaled else _row_weights
    kinds = [expr.type for _, expr in question.by]
    equal = [dialect.same(f"r.{key}", f"w.{key}", kind) for key, kind in zip(keys, kinds, strict=True)]
    same = every([*same_unit(question.relation, "r", "w"), *equal])
    weight = dialect.summed.format(f'COALESCE(w.".w", {full})')
    return (
        f'WITH ".pairs" AS {dialect.computed_once}({pairs}), {lowers(question, keys, light, dialect)} '
        f"SELECT {listed(_of('r', keys), ['r.v', f'{weight} AS t'])} "
        f'FROM ({source}) AS r LEFT JOIN ".weights" AS w ON {same}{grouped(_of("r", [*keys, "v"]))}'
    )


def _row_weights(question: Question, keys: list[str], light: str, dialect: Dialect) -> str:
    """Write the weights of a unit's rows in groups where it has too many."""
    names = listed(unit_of(question.relation), keys)
    found = f'SELECT {names}, {light} AS ".w" FROM ".pairs" WHERE ".m" > {question.rows}'
    return f'".weights" AS {dialect.computed_once}({found})'


def _all_weights(question: Question, keys: list[str], light: str, dialect: Dialect) -> str:
    """Write the weights of a unit's rows in groups where it has too many, or of all if it is in too many groups."""
    units, most = unit_of(question.relation), question.limit.groups
    count = dialect.quotient.format(most << WEIGHT_BITS, "COUNT(*)")
    lighter = dialect.shifted.format(f'(({light}) * COALESCE(h.".k", {1 << WEIGHT_BITS}))', WEIGHT_BITS)
    return (
        f'".heavy" AS {dialect.computed_once}(SELECT {listed(units)}, {count} AS ".k" FROM ".pairs"'
        f"{grouped(units)} HAVING COUNT(*) > {most}), "
        f'".weights" AS {dialect.computed_once}(SELECT {listed(_of("p", units), _of("p", keys))}, '
        f'{lighter} AS ".w" FROM ".pairs" AS p '
        f'LEFT JOIN ".heavy" AS h ON {every(same_unit(question.relation, "p", "h"))} '
        f'WHERE ".m" > {question.rows} OR h.".k" IS NOT NULL)'
    )


def gather_values(question: Question, total: Values, dialect: Dialect) -> str:
    """Write a SELECT of how many different values each group has.

    Claim: of a unit's different values at most rows count in a group, and groups·rows in all.
    Proof: a unit that may have more is numbered twice: its values within each group by a hash, then what is left over
        all groups by those numbers; both numbers are cut off. The others have at most rows in all. No two have the same
        place, even where hashes meet: which ones count depends on this unit's rows alone.
    Needs: that numbering, hashing and comparing are the engine's own.
    Checked by: test_the_engine_equals_the_reference, test_where_hashes_meet_the_value_decides_what_counts
    Seal: d1ba947a64fe
    """
    keys = [f"k{place}" for place in range(len(question.by))]
    made = [f"{key_of(total.expr, dialect)} AS v", f"{_text(total.expr, dialect)} AS x"]
    source = f"SELECT * FROM ({keyed_rows(question, made, dialect)}) AS r WHERE v IS NOT NULL"
    counted = outputs_of(keys, {0: "COUNT(DISTINCT v)"})
    if not question.bounded:
        return f"SELECT {counted} FROM ({source}) AS r{grouped(keys)}"
    units, most = unit_of(question.relation), question.rows
    names = listed(units, keys, ["v", "x"])
    same = every(same_unit(question.relation, "d", "m"))
    hashed = dialect.hashed.format(f"{_who(question, dialect)} || '/' || x")
    # Hashes can be made to meet: without the value, other units' rows would decide which one an engine puts first.
    in_group = f'ROW_NUMBER() OVER (PARTITION BY {listed(units, keys)} ORDER BY {hashed}, v) AS ".n"'
    in_turn = ", ".join(['".n"', hashed, *(f"{key} ASC NULLS LAST" for key in keys)])  # one of each group, then on
    in_all = f'ROW_NUMBER() OVER (PARTITION BY {listed(units)} ORDER BY {in_turn}) AS ".a"'
    chosen = f'SELECT *, {in_group} FROM ".pairs" AS d WHERE EXISTS (SELECT 1 FROM ".many" AS m WHERE {same})'
    chosen = f'SELECT *, {in_all} FROM ({chosen}) AS n WHERE ".n" <= {most}'
    return (
        f'WITH ".pairs" AS {dialect.computed_once}(SELECT DISTINCT {names} FROM ({source}) AS r), '
        f'".many" AS {dialect.computed_once}(SELECT {listed(units)} FROM ".pairs"{grouped(units)} '
        f"HAVING COUNT(*) > {most}) "
        f"SELECT {counted} FROM ("
        f'SELECT {listed(keys, ["v"])} FROM ".pairs" AS d WHERE NOT EXISTS (SELECT 1 FROM ".many" AS m WHERE {same}) '
        f'UNION ALL SELECT {listed(keys, ["v"])} FROM ({chosen}) AS a WHERE ".a" <= {question.spread * most}'
        f") AS p{grouped(keys)}"
    )


def _of(alias: str, names: list[str]) -> list[str]:
    return [f"{alias}.{name}" for name in names]


def _place(total: Cells, dialect: Dialect) -> str:
    """Write where a row's value lies: the number of its step, or the value itself."""
    if isinstance(total.places, Grid):
        return steps(write(total.expr, dialect), total.places, dialect)
    return key_of(total.expr, dialect)


def _held(total: Cells, dialect: Dialect) -> str:
    if isinstance(total.places, Grid):
        return "v IS NOT NULL"
    return dialect.among("v", total.places, total.expr.type)


def _text(expr: Expr, dialect: Dialect) -> str:
    """Write a value as the text that every engine gives it."""
    return write(Call(_TEXTS[expr.type], (expr,)) if expr.type in _TEXTS else expr, dialect)


def _who(question: Question, dialect: Dialect) -> str:
    """Write a text that differs between units, where their key has one; the choice needs only to be the unit's own."""
    kind = (question.relation.shape.unit or (Type.REAL,))[0]
    if kind is not Type.TEXT and kind not in _TEXTS:
        return "''"
    return _text(Column("u", kind), dialect).replace('"u"', '".u0"')
