"""From a question to an engine's SQL, written anew from the kernel's own algebra.

k0, k1, … are the keys of groups; v0, v1, … what rows contribute to a total; m, m0, … how many of a unit's rows in one
group do, s0, s1, … their sum; x0, x1, … a unit's term; t0, t1, … the totals.
"""

from collections.abc import Mapping

from discreet.kernel.dialect import Dialect, Spread
from discreet.kernel.expr import Call, Type
from discreet.kernel.question import WEIGHT_BITS, Count, Discover, Public, Question, Sum, Total, Touched, Units
from discreet.kernel.writing import every, grouped, key_of, listed, rows, same_unit, steps, unit_of, write

_PLAIN = (Count, Units, Sum, Touched)


def render(question: Question, dialect: Dialect) -> str:
    """Write a question's counts and sums as one SELECT of the keys and totals of its groups.

    Claim: each total is the sum over units of the terms whose bounds Question.sensitivity_of proves.
    Proof: rows → the values of one unit in one group, counted and summed (pairs) → each unit's number of groups, joined
        if it is above the limit (heavy) or counted over the unit's pairs → terms scaled by rows/m and by
        floor(groups·2^20/k)/2^20, truncated towards zero by taking the sign apart → sums. No intermediate exceeds 64
        bits: Question checked it. Cells and different values have SELECTs of their own.
    Needs: that the engine computes integers exactly; checked against a reference in plain Python.
    Checked by: test_the_engine_equals_the_reference
    Seal: fb3d9e7451fe
    """
    totals = {place: total for place, total in enumerate(question.totals) if isinstance(total, _PLAIN)}
    values = _values(question, dialect)
    keys = [f"k{place}" for place in range(len(question.by))]
    kept = keyed_rows(question, [f"{text} AS {name}" for text, name in values.items()], dialect)
    names = {place: values.get(_value(question, total, dialect) or "") for place, total in totals.items()}
    if not question.bounded:
        sums = {place: _direct(total, names[place], dialect) for place, total in totals.items()}
        return f"SELECT {outputs_of(keys, sums)} FROM ({kept}) AS r{_ending(question, keys, sums)}"
    gathered = dict.fromkeys(part for place, total in totals.items() for part in _pair(total, names[place], dialect))
    terms = {
        place: _term(question, total, names[place], dialect)
        for place, total in totals.items()
        if not isinstance(total, Touched)
    }
    begin, source = _terms(question, totals, (kept, list(gathered)), terms, dialect)
    sums = {place: _added(question, total, place, dialect) for place, total in totals.items()}
    return f"{begin}SELECT {outputs_of(keys, sums)} FROM ({source}) AS p{_ending(question, keys, sums)}"


def _terms(
    question: Question,
    totals: Mapping[int, Total],
    pairs_of: tuple[str, list[str]],
    terms: Mapping[int, str],
    dialect: Dialect,
) -> tuple[str, str]:
    """Write what a SELECT begins with, and the terms of each unit in each group, with their weights."""
    (kept, gathered), units = pairs_of, unit_of(question.relation)
    keys = [f"k{place}" for place in range(len(question.by))]
    touches = [place for place, total in totals.items() if isinstance(total, Touched)]
    counts_over = dialect.spread is Spread.WINDOW and (question.scaled or touches)
    if counts_over and dialect.together:  # all that follows finds the rows of a unit in one place
        kept = f"SELECT {dialect.together.format(units=listed(units))}* FROM ({kept}) AS r"
    pairs = f"SELECT {listed(units, keys, gathered)} FROM ({kept}) AS r{grouped([*units, *keys])}"
    shown = [f"{text} AS x{place}" for place, text in terms.items()]
    if counts_over:
        shown += [f"{_first_touched(question, totals[place], keys, dialect)} AS x{place}" for place in touches]
        found = f"SELECT *, {listed(_over_units(question, totals, keys, dialect))} FROM ({pairs}) AS p"
        return "", f"SELECT {listed(keys, shown, _weights_of_count(question, dialect))} FROM ({found}) AS p"
    if not question.scaled:
        begin = f'WITH ".pairs" AS {dialect.computed_once}({pairs}) ' if touches else ""
        source = '".pairs"' if touches else f"({pairs})"
        return begin, f"SELECT {listed(keys, shown) or '1 AS one'} FROM {source} AS p"
    heavy = f'".heavy" AS {dialect.computed_once}({_heavy(question, units, dialect)})'
    joined = f'".pairs" AS p LEFT JOIN ".heavy" AS h ON {every(same_unit(question.relation, "p", "h"))}'
    begin = f'WITH ".pairs" AS {dialect.computed_once}({pairs}), {heavy} '
    return begin, f"SELECT {listed(keys, shown, _weights())} FROM {joined}"


def _added(question: Question, total: Total, place: int, dialect: Dialect) -> str:
    """Write one total of a group as the sum of its units' terms."""
    if isinstance(total, Touched):
        whole = dialect.spread is Spread.JOIN
        return _touched(question, total) if whole else dialect.total.format(f"x{place}")
    return dialect.total.format(_weighed(question, total, place, dialect) if question.scaled else f"x{place}")


def _over_units(question: Question, totals: Mapping[int, Total], keys: list[str], dialect: Dialect) -> list[str]:
    """Write what is counted over all groups of a unit: .k its groups, .m its rows in one of them, .n the first."""
    over = f"PARTITION BY {listed(unit_of(question.relation))}"
    found = [f'COUNT(*) OVER ({over}) AS ".k"']
    touched = [total for total in totals.values() if isinstance(total, Touched)]
    if any(total.rows for total in touched):
        found.append(f'MAX(m) OVER ({over}) AS ".m"')
    if touched and len(keys) == 1:  # without an order: there is less to sort
        found.append(f'{dialect.extreme("MIN", keys[0], question.by[0][1].type)} OVER ({over}) AS ".n"')
    elif touched and keys:
        order = ", ".join(f"{key} ASC NULLS LAST" for key in keys)
        found.append(f'ROW_NUMBER() OVER ({over} ORDER BY {order}) AS ".n"')
    return found


def _first_touched(question: Question, total: Total, keys: list[str], dialect: Dialect) -> str:
    """Write 1 in the first of a unit's groups if it has more groups, or rows in one of them, than the limit; else 0."""
    ways = [f'".m" > {question.rows}'] if isinstance(total, Touched) and total.rows else []
    ways += [f'".k" > {question.limit.groups}'] if question.scaled else []
    first = '".n" = 1' if len(keys) > 1 else dialect.same("k0", '".n"', question.by[0][1].type) if keys else "TRUE"
    return f"CASE WHEN {first} AND ({' OR '.join(ways) or 'FALSE'}) THEN 1 ELSE 0 END"


def _weights_of_count(question: Question, dialect: Dialect) -> list[str]:
    """Write the weights of every unit from the number of its groups, as _heavy and _weights do."""
    if not question.scaled:
        return []
    most, full = question.limit.groups, 1 << WEIGHT_BITS
    found = dialect.quotient.format(f"{most << WEIGHT_BITS}", '".k"')
    say = f'WHEN ".k" > {question.groups.most} THEN 0 ' if isinstance(question.groups, Discover) else ""
    weights = {"w": "", "v": say}
    return [
        f'CASE WHEN ".k" <= {most} THEN {full} {none}ELSE {found} END AS ".{name}"' for name, none in weights.items()
    ]


def keyed_rows(question: Question, made: list[str], dialect: Dialect) -> str:
    """Write the rows that a question is about, each with its unit, its keys, and what else is made of it."""
    keys = [f"{key_of(expr, dialect)} AS k{place}" for place, (_, expr) in enumerate(question.by)]
    shown = listed(unit_of(question.relation), keys, made) or "1 AS one"
    computed = made or any(isinstance(expr, Call) for _, expr in question.by)
    apart = dialect.apart if computed else ""
    source = f"SELECT {shown} FROM ({rows(question.relation, dialect)}) AS s{apart}"
    return f"SELECT * FROM ({source}) AS s WHERE {every(_listed_keys(question, dialect))}"


def _touched(question: Question, total: Touched) -> str:
    """Write how many units have more groups, or in one of them more rows, than the limit; the same in every group."""
    units = listed(unit_of(question.relation))
    found = [f'SELECT {units} FROM ".pairs" WHERE m > {question.rows}'] if total.rows else []
    found += [f'SELECT {units} FROM ".heavy"'] if question.scaled else []
    none = f'SELECT {units} FROM ".pairs" WHERE FALSE'
    return f"(SELECT COUNT(*) FROM ({' UNION '.join([none, *found])}) AS u)"


def _values(question: Question, dialect: Dialect) -> dict[str, str]:
    """Return what rows contribute, each text once, with the names that they get."""
    texts = [_value(question, total, dialect) for total in question.totals if isinstance(total, _PLAIN)]
    return {text: f"v{place}" for place, text in enumerate(dict.fromkeys(text for text in texts if text))}


def _value(question: Question, total: Total, dialect: Dialect) -> str | None:
    """Write what a row contributes to a total: its step on the grid, or anything that is NULL where it counts not."""
    if isinstance(total, Sum):
        return steps(write(total.expr, dialect), total.grid, dialect)
    if total.expr is None:
        return None
    if total.expr.type is not Type.REAL:
        return write(total.expr, dialect)
    # A real counts where it is finite, which is where its step is; the step of a sum is at hand.
    summed = [other for other in question.totals if isinstance(other, Sum) and other.expr == total.expr]
    return _value(question, summed[0], dialect) if summed else key_of(total.expr, dialect)


def _listed_keys(question: Question, dialect: Dialect) -> list[str]:
    """Write the conditions that keep rows of the listed keys only."""
    if not isinstance(question.groups, Public):
        return []
    conditions = []
    for place, ((_, expr), domain) in enumerate(zip(question.by, question.groups.domains, strict=True)):
        values = [value for value in domain if value is not None]
        ways = [dialect.among(f"k{place}", values, expr.type)] if values else []
        conditions.append(" OR ".join([*ways, *([f"k{place} IS NULL"] if None in domain else [])]))
    return [f"({condition})" for condition in conditions]


def _powers(total: Sum, name: str) -> str:
    """Write what one row adds to a sum."""
    text = f"{name} * {name}" if total.power == 2 else name
    return f"{text} - {total.shift}" if total.shift else text


def _direct(total: Total, name: str | None, dialect: Dialect) -> str:
    """Write a total of rows that need no bounds."""
    if isinstance(total, Sum):
        assert name
        return dialect.total.format(_powers(total, name))
    return f"COUNT({name or '*'})"


def _pair(total: Total, name: str | None, dialect: Dialect) -> list[str]:
    """Write what is gathered of one unit in one group: how many values, and their sum."""
    if total in (Units(), Touched(rows=False)):
        return []
    count = [f"COUNT({name or '*'}) AS {_count(name)}"]
    if not isinstance(total, Sum):
        return count
    assert name
    return [*count, f"{dialect.total.format(_powers(total, name))} AS {_summed(total, name)}"]


def _count(name: str | None) -> str:
    return f"m{name[1:] if name else ''}"


def _summed(total: Sum, name: str) -> str:
    return f'"s{name[1:]} {total.power} {total.shift}"'


def _term(question: Question, total: Total, name: str | None, dialect: Dialect) -> str:
    """Write a unit's term in one group, bounded by rows, in units of 2^-bits of the total's step."""
    bits, most, count = question.bits(total), question.rows, _count(name)
    fine = f" * {1 << bits}" if bits else ""
    match total:
        case Units(None):
            return str(1 << bits)
        case Units():
            return f"CASE WHEN {count} > 0 THEN {1 << bits} ELSE 0 END"
        case Count():
            return f"LEAST({count}, {most}){fine}"
    assert name
    assert isinstance(total, Sum)
    held = f"{_summed(total, name)}{fine}"
    size, rest = f"({dialect.quotient.format(f'ABS({held})', count)})", f"(ABS({held}) % {count})"
    more = dialect.quotient.format(f"({rest} * {most})", count)
    lowered = f"{dialect.sign.format(held)} * ({size} * {most} + {more})"
    return f"CASE WHEN {count} > {most} THEN {lowered} ELSE {held} END"


def _heavy(question: Question, units: list[str], dialect: Dialect) -> str:
    """Write the weight of each unit in more groups than the limit: `.w`, and `.v` where it is about which are shown."""
    most = question.limit.groups
    found = dialect.quotient.format(f"{most << WEIGHT_BITS}", "COUNT(*)")
    # A unit in more groups than Discover.most has no say in which are shown.
    has_say = f"COUNT(*) <= {question.groups.most}" if isinstance(question.groups, Discover) else "TRUE"
    weights = f'{found} AS ".w", CASE WHEN {has_say} THEN {found} ELSE 0 END AS ".v"'
    return f'SELECT {listed(units)}, {weights} FROM ".pairs"{grouped(units)} HAVING COUNT(*) > {most}'


def _weights() -> list[str]:
    """Write the weights of every unit: those of the others are 1. Without a CASE, which is slower."""
    return [f'COALESCE(h.".{name}", {1 << WEIGHT_BITS}) AS ".{name}"' for name in ("w", "v")]


def _weighed(question: Question, total: Total, place: int, dialect: Dialect) -> str:
    """Write a unit's term in one group, bounded by groups too."""
    weight = '".v"' if isinstance(question.groups, Discover) and place == 0 else '".w"'
    if not isinstance(total, Sum):
        return dialect.shifted.format(f"(x{place} * {weight})", WEIGHT_BITS)
    # A shift alone would round a negative term away from zero.
    size = dialect.shifted.format(f"(ABS(x{place}) * {weight})", WEIGHT_BITS)
    return f"{dialect.sign.format(f'x{place}')} * ({size})"


def _ending(question: Question, keys: list[str], sums: Mapping[int, str]) -> str:
    """Write the groups, without keys that nobody has a say in; but one that carries a count over all groups stays."""
    if not isinstance(question.groups, Discover):
        return grouped(keys)
    carries = [place for place, total in enumerate(question.totals) if isinstance(total, Touched) and place in sums]
    kept = [0, *(place for place in carries if not sums[place].startswith("(SELECT"))]
    return f"{grouped(keys)} HAVING {' OR '.join(f'{sums[place]} > 0' for place in kept)}"


def outputs_of(keys: list[str], totals: Mapping[int, str]) -> str:
    """Write the columns of a result: the keys, then each total with the number of its place."""
    return listed(keys, [f"{total} AS t{place}" for place, total in totals.items()])
