"""From a question to an engine's SQL, written anew from the kernel's own algebra.

k0, k1, … are the keys of groups; v0, v1, … what rows contribute to a total; m, m0, … how many of a unit's rows in one
group do, s0, s1, … their sum; x0, x1, … a unit's term; t0, t1, … the totals.
"""

from collections.abc import Mapping

from discreet.kernel.expr import Type
from discreet.kernel.question import WEIGHT_BITS, Count, Discover, Public, Question, Sum, Total, Touched, Units
from discreet.kernel.writing import Dialect, every, grouped, key_of, listed, rows, same_unit, steps, unit_of, write

_PLAIN = (Count, Units, Sum, Touched)


def render(question: Question, dialect: Dialect) -> str:
    """Write a question's counts and sums as one SELECT of the keys and totals of its groups.

    Claim: each total is the sum over units of the terms whose bounds Question.sensitivity_of proves.
    Proof: rows → the values of one unit in one group, counted and summed (pairs) → each unit's number of groups, if it
        is above the limit (heavy) → terms scaled by rows/m and by floor(groups·2^20/k)/2^20, truncated towards zero by
        taking the sign apart → sums. No intermediate exceeds 64 bits: Question checked it. Cells and different values
        have SELECTs of their own.
    Needs: that the engine computes integers exactly; checked against a reference in plain Python.
    Checked by: test_the_engine_equals_the_reference
    Seal: d6cca602a498
    """
    totals = {place: total for place, total in enumerate(question.totals) if isinstance(total, _PLAIN)}
    values = _values(question, dialect)
    keys = [f"k{place}" for place in range(len(question.by))]
    units = unit_of(question.relation)
    kept = keyed_rows(question, [f"{text} AS {name}" for text, name in values.items()], dialect)
    names = {place: values.get(_value(question, total, dialect) or "") for place, total in totals.items()}
    ending = grouped(keys) + _voted(question)
    if not question.bounded:
        sums = {place: _direct(total, names[place]) for place, total in totals.items()}
        return f"SELECT {outputs_of(keys, sums)} FROM ({kept}) AS r{ending}"
    gathered = list(dict.fromkeys(part for place, total in totals.items() for part in _pair(total, names[place])))
    pairs = f"SELECT {listed(units, keys, gathered)} FROM ({kept}) AS r{grouped([*units, *keys])}"
    terms = [
        f"{_term(question, total, names[place])} AS x{place}"
        for place, total in totals.items()
        if not isinstance(total, Touched)
    ]
    if not question.scaled:
        sums = {
            place: _touched(question, total) if isinstance(total, Touched) else _sum(f"x{place}")
            for place, total in totals.items()
        }
        shared = any(isinstance(total, Touched) for total in totals.values())
        begin, source = (f'WITH ".pairs" AS MATERIALIZED ({pairs}) ', '".pairs"') if shared else ("", f"({pairs})")
        found = f"SELECT {listed(keys, terms) or '1 AS one'} FROM {source} AS p"
        return f"{begin}SELECT {outputs_of(keys, sums)} FROM ({found}) AS p{ending}"
    joined = f'".pairs" AS p LEFT JOIN ".heavy" AS h ON {every(same_unit(question.relation, "p", "h"))}'
    bounded = f"SELECT {listed(keys, terms, _weights())} FROM {joined}"
    sums = {
        place: _touched(question, total) if isinstance(total, Touched) else _sum(_weighed(question, total, place))
        for place, total in totals.items()
    }
    return (
        f'WITH ".pairs" AS MATERIALIZED ({pairs}), ".heavy" AS MATERIALIZED ({_heavy(question, units)}) '
        f"SELECT {outputs_of(keys, sums)} FROM ({bounded}) AS p{ending}"
    )


def keyed_rows(question: Question, made: list[str], dialect: Dialect) -> str:
    """Write the rows that a question is about, each with its unit, its keys, and what else is made of it."""
    keys = [f"{key_of(expr, dialect)} AS k{place}" for place, (_, expr) in enumerate(question.by)]
    shown = listed(unit_of(question.relation), keys, made) or "1 AS one"
    source = f"SELECT {shown} FROM ({rows(question.relation, dialect)}) AS s"
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
        values = [dialect.constant(value, expr.type) for value in domain if value is not None]
        ways = [f"k{place} IN ({', '.join(values)})"] if values else []
        conditions.append(" OR ".join([*ways, *([f"k{place} IS NULL"] if None in domain else [])]))
    return [f"({condition})" for condition in conditions]


def _powers(total: Sum, name: str) -> str:
    """Write what one row adds to a sum."""
    text = f"{name} * {name}" if total.power == 2 else name
    return f"{text} - {total.shift}" if total.shift else text


def _direct(total: Total, name: str | None) -> str:
    """Write a total of rows that need no bounds."""
    if isinstance(total, Sum):
        assert name
        return _sum(_powers(total, name))
    return f"COUNT({name or '*'})"


def _pair(total: Total, name: str | None) -> list[str]:
    """Write what is gathered of one unit in one group: how many values, and their sum."""
    if total in (Units(), Touched(rows=False)):
        return []
    count = [f"COUNT({name or '*'}) AS {_count(name)}"]
    if not isinstance(total, Sum):
        return count
    assert name
    return [*count, f"{_sum(_powers(total, name))} AS {_summed(total, name)}"]


def _count(name: str | None) -> str:
    return f"m{name[1:] if name else ''}"


def _summed(total: Sum, name: str) -> str:
    return f'"s{name[1:]} {total.power} {total.shift}"'


def _term(question: Question, total: Total, name: str | None) -> str:
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
    size, rest = f"(ABS({held}) // {count})", f"(ABS({held}) % {count})"
    lowered = f"SIGN({held}) * ({size} * {most} + ({rest} * {most}) // {count})"
    return f"CASE WHEN {count} > {most} THEN {lowered} ELSE {held} END"


def _heavy(question: Question, units: list[str]) -> str:
    """Write the weight of each unit in more groups than the limit: `.w`, and `.v` where it is about which are shown."""
    most, found = question.limit.groups, f"{question.limit.groups << WEIGHT_BITS} // COUNT(*)"
    # A unit in more groups than Discover.most has no say in which are shown.
    has_say = f"COUNT(*) <= {question.groups.most}" if isinstance(question.groups, Discover) else "TRUE"
    weights = f'{found} AS ".w", CASE WHEN {has_say} THEN {found} ELSE 0 END AS ".v"'
    return f'SELECT {listed(units)}, {weights} FROM ".pairs"{grouped(units)} HAVING COUNT(*) > {most}'


def _weights() -> list[str]:
    """Write the weights of every unit: those of the others are 1. Without a CASE, which is slower."""
    return [f'COALESCE(h.".{name}", {1 << WEIGHT_BITS}) AS ".{name}"' for name in ("w", "v")]


def _weighed(question: Question, total: Total, place: int) -> str:
    """Write a unit's term in one group, bounded by groups too."""
    weight = '".v"' if isinstance(question.groups, Discover) and place == 0 else '".w"'
    if not isinstance(total, Sum):
        return f"(x{place} * {weight}) >> {WEIGHT_BITS}"
    # A shift alone would round a negative term away from zero.
    return f"SIGN(x{place}) * ((ABS(x{place}) * {weight}) >> {WEIGHT_BITS})"


def _voted(question: Question) -> str:
    """Leave out keys that nobody has a say in."""
    return " HAVING t0 > 0" if isinstance(question.groups, Discover) else ""


def _sum(text: str) -> str:
    return f"CAST(COALESCE(SUM({text}), 0) AS BIGINT)"


def outputs_of(keys: list[str], totals: Mapping[int, str]) -> str:
    """Write the columns of a result: the keys, then each total with the number of its place."""
    return listed(keys, [f"{total} AS t{place}" for place, total in totals.items()])
