"""The functions that a query may use on single rows, with PostgreSQL's meaning and a value, or NULL, for every row.

A handler takes a node and a Reader, which reads the parts; RULES says which node each handler takes, and which of the
node's arguments it understands: a node with any other argument is refused.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from difflib import get_close_matches
from fractions import Fraction
from math import isfinite

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.kernel.expr import Constant, Type, Value
from discreet.sql.places import refuse
from discreet.sql.values.bound import Bound
from discreet.sql.values.ranges import NUMBERS, PARTS, call, is_null, known

INTEGER, REAL, BOOLEAN, TEXT, DATE, TIMESTAMP = Type
KINDS = {
    INTEGER: "an integer",
    REAL: "a number",
    BOOLEAN: "true or false",
    TEXT: "text",
    DATE: "a date",
    TIMESTAMP: "a timestamp",
}
_EXAMPLES = {
    INTEGER: "42",
    REAL: "4.2",
    BOOLEAN: "TRUE or FALSE",
    DATE: "'2010-01-31'",
    TIMESTAMP: "'2010-01-31 12:00:00', in local time and without an offset",
}
_WAYS = {
    (INTEGER, BOOLEAN): "Write x <> 0.",
    (REAL, BOOLEAN): "Write x <> 0.",
    (TEXT, BOOLEAN): "Compare it with something.",
    (BOOLEAN, INTEGER): "Write CASE WHEN x THEN 1 ELSE 0 END.",
    (BOOLEAN, REAL): "Write CASE WHEN x THEN 1 ELSE 0 END.",
    (DATE, INTEGER): "Write EXTRACT(YEAR FROM x), or subtract another date.",
    (TIMESTAMP, INTEGER): "Write EXTRACT(YEAR FROM x).",
    (REAL, INTEGER): "Write CAST(x AS INTEGER), or FLOOR(x).",
    (REAL, TEXT): "Write CAST(CAST(x AS INTEGER) AS TEXT).",
    **dict.fromkeys(((INTEGER, TEXT), (DATE, TEXT), (BOOLEAN, TEXT)), "Write CAST(x AS TEXT)."),
    **dict.fromkeys(((TEXT, INTEGER), (TEXT, REAL)), "Write CAST(x AS DOUBLE PRECISION)."),
    **dict.fromkeys(((TEXT, DATE), (TIMESTAMP, DATE)), "Write CAST(x AS DATE)."),
    (TEXT, TIMESTAMP): "Write CAST(x AS TIMESTAMP).",
}
TRUE = ("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1")
FALSE = ("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0")
_WHOLE = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII)
_MOMENT = re.compile(r"(\d{4}-\d{1,2}-\d{1,2})(?:[ t]+(\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?))?", re.ASCII)
_LONGEST = 100_000  # characters of a text


@dataclass(frozen=True)
class Reader:
    """How the parts of an expression are read; `clause` is where it stands, for refusals."""

    bind: Callable[[exp.Expression], Bound]
    clause: str

    def refuse(self, node: exp.Expression, cause: str, way_out: str) -> Refused:
        """Return the refusal of a node."""
        return refuse(node, self.clause, cause, way_out)

    def need(self, node: exp.Expression, kind: Type) -> Bound:
        """Read a part that must have this type."""
        return self.turned(node, self.bind(node), kind)

    def number(self, node: exp.Expression) -> Bound:
        """Read a part that must be an integer or a real."""
        found = self.bind(node)
        return found if found.type is INTEGER else self.turned(node, found, REAL)

    def moment(self, node: exp.Expression) -> Bound:
        """Read a part that must be a date or a timestamp."""
        return _as_moment(node, self, self.bind(node))

    def constant(self, node: exp.Expression, kind: Type) -> Value:
        """Read a part that must be a constant, and not NULL."""
        found = self.need(node, kind).expr
        if not isinstance(found, Constant) or found.value is None:
            raise self.refuse(node, f"only a constant can stand here ({KINDS[kind]})", "Write the value itself.")
        return found.value

    def whole(self, node: exp.Expression | None, otherwise: int) -> int:
        """Read a part that must be a constant integer, if it is there."""
        return otherwise if node is None else int(self.constant(node, INTEGER))  # type: ignore[arg-type]

    def together(self, node: exp.Expression, parts: Iterable[exp.Expression]) -> list[Bound]:
        """Read parts that must have one type: text constants and NULL take that of the others."""
        nodes = list(parts)
        found = [self.bind(part) for part in nodes]
        kind = common(found)
        if kind is None:
            names = " and ".join(dict.fromkeys(KINDS[each.type] for each in found))
            raise self.refuse(node, f"{names} do not fit together", "Cast one to the type of the other.")
        return [self.turned(part, each, kind) for part, each in zip(nodes, found, strict=True)]

    def turned(self, node: exp.Expression, found: Bound, kind: Type) -> Bound:
        """Return a part as another type, where PostgreSQL turns it by itself."""
        try:
            turned = convert(found, kind)
        except ValueError:
            cause = f"this text cannot be read as {KINDS[kind]}"
            raise self.refuse(node, cause, f"Write it as {_EXAMPLES[kind]}.") from None
        if turned is None:
            cause = f"{KINDS[kind]} is needed here, not {KINDS[found.type]}"
            raise self.refuse(node, cause, _WAYS.get((found.type, kind), f"Use {KINDS[kind]}."))
        return turned


def read(text: str, kind: Type) -> Value:
    """Read a text constant as another type, as PostgreSQL does; ValueError if it cannot be.

    >>> read("2010-1-31", Type.DATE)
    datetime.date(2010, 1, 31)
    """
    bare = text.strip().lower()
    match kind:
        case Type.TEXT:
            return text
        case Type.INTEGER if _WHOLE.fullmatch(bare):
            return int(bare)
        case Type.REAL if _DECIMAL.fullmatch(bare) and isfinite(float(bare)):
            return float(bare)
        case Type.BOOLEAN if bare in (*TRUE, *FALSE):
            return bare in TRUE
        case Type.DATE | Type.TIMESTAMP if found := _MOMENT.fullmatch(bare):
            day = date(*map(int, found[1].split("-")))
            clock = time.fromisoformat(("0" if (found[2] or "")[1:2] == ":" else "") + (found[2] or "00:00"))
            if kind is TIMESTAMP:
                return datetime.combine(day, clock)
            if clock == time.min:
                return day
    raise ValueError("text must be of the wanted type")


def convert(bound: Bound, kind: Type) -> Bound | None:
    """Return an expression as another type if PostgreSQL turns it by itself; ValueError if its text cannot be read."""
    expr = bound.expr
    if bound.type is kind:
        return bound
    if isinstance(expr, Constant) and _yields(bound):
        return known(None if expr.value is None else read(str(expr.value), kind), kind)
    wider = {(INTEGER, REAL): "to_real", (DATE, TIMESTAMP): "to_timestamp"}.get((bound.type, kind))
    return call(wider, bound) if wider else None


def common(bounds: Sequence[Bound]) -> Type | None:
    """Return the type that several expressions take together; None if there is none."""
    firm = {each.type for each in bounds if not _yields(each)} or {each.type for each in bounds} - {TEXT} or {TEXT}
    for pair, wider in (({INTEGER, REAL}, REAL), ({DATE, TIMESTAMP}, TIMESTAMP)):
        firm = {wider} if firm == pair else firm
    return firm.pop() if len(firm) == 1 else None


def _yields(bound: Bound) -> bool:
    """Tell whether an expression takes the type of what it meets: NULL, and a text constant."""
    return is_null(bound) or (isinstance(bound.expr, Constant) and bound.type is TEXT)


Handler = Callable[[exp.Expression, Reader], Bound]


def _simple(op: str, kind: Type) -> Handler:
    """Make the handler of a function whose arguments have one known type."""
    return lambda node, reader: call(op, *(reader.need(each, kind) for each in _parts(node)))


def _parts(node: exp.Expression) -> list[exp.Expression]:
    second = node.args.get("expression")
    return [node.this, *([] if second is None else [second]), *node.expressions]


def _round(node: exp.Expression, reader: Reader) -> Bound:
    digits = known(reader.whole(node.args.get("decimals"), 0), INTEGER)
    return call("round", reader.need(node.this, REAL), digits)


def _trunc(node: exp.Expression, reader: Reader) -> Bound:
    value, digits = reader.need(node.this, REAL), reader.whole(node.args.get("decimals"), 0)
    if abs(digits) > 15:
        raise reader.refuse(node, "so many digits cannot be cut off", "Write a number from -15 to 15.")
    scale = known(10.0**digits, REAL)
    scaled = call("multiply", value, scale) if digits else value
    cut = call("case", call("less", scaled, known(0.0, REAL)), call("ceil", scaled), call("floor", scaled))
    return call("divide", cut, scale) if digits else cut


def _log(node: exp.Expression, reader: Reader) -> Bound:
    """LOG(x) is to the base 10; LOG(b, x) to the base b."""
    base, value = node.this, node.args.get("expression")
    if value is None or (isinstance(base, exp.Literal) and base.name == "10"):
        return call("log10", reader.need(base if value is None else value, REAL))
    return call("divide", *(call("ln", reader.need(part, REAL)) for part in (value, base)))


def _several(op: str) -> Handler:
    """Make the handler of a function whose arguments have one type together."""

    def handle(node: exp.Expression, reader: Reader) -> Bound:
        values = reader.together(node, _parts(node))
        return call(op, *values) if len(values) > 1 else values[0]

    return handle


def _clip(node: exp.Expression, reader: Reader) -> Bound:
    if len(node.expressions) != 3:
        raise reader.refuse(node, "CLIP takes a value and two ends", "Write CLIP(x, 0, 100).")
    value, *ends = reader.together(node, node.expressions)
    if value.type in (TEXT, BOOLEAN):
        raise reader.refuse(node, f"CLIP does not take {KINDS[value.type]}", "Use it on numbers, dates and timestamps.")
    if not all(isinstance(end.expr, Constant) and not is_null(end) for end in ends):
        raise reader.refuse(node, "the ends of CLIP must be constants", "Write CLIP(x, 0, 100).")
    if ends[0].low > ends[1].low:  # type: ignore[operator]
        raise reader.refuse(node, "the ends of CLIP are in the wrong order", "Write the lower end first.")
    return call("clip", value, *ends)


def _trim(node: exp.Expression, reader: Reader) -> Bound:
    letters = node.args.get("expression")
    if letters is not None and reader.constant(letters, TEXT) != " ":
        raise reader.refuse(node, "only spaces can be trimmed", "Leave the characters out.")
    position = str(node.args.get("position") or "BOTH").upper()
    op = {"BOTH": "trim", "LEADING": "trim_left", "TRAILING": "trim_right"}[position]
    return call(op, reader.need(node.this, TEXT))


def part(node: exp.Expression, reader: Reader, text: Bound, start: int, size: int) -> Bound:
    """Return a part of a text; positions before the first count, as in PostgreSQL."""
    if size < 0:
        raise reader.refuse(node, "the length of a part must not be negative", "Write a number from 0.")
    end = min(start + size, _LONGEST + 1)
    start = max(start, 1)
    return call("part", text, known(start, INTEGER), known(max(end - start, 0), INTEGER))


def _substring(node: exp.Expression, reader: Reader) -> Bound:
    text, start = reader.need(node.this, TEXT), reader.whole(node.args.get("start"), 1)
    return part(node, reader, text, start, reader.whole(node.args.get("length"), 2 * _LONGEST + abs(start)))


def _left(node: exp.Expression, reader: Reader) -> Bound:
    return part(node, reader, reader.need(node.this, TEXT), 1, reader.whole(node.expression, 0))


def written(node: exp.Expression, reader: Reader, found: Bound) -> Bound:
    """Return a value as text."""
    op = {INTEGER: "write_integer", BOOLEAN: "write_boolean", DATE: "write_date"}.get(found.type)
    if found.type is TEXT or is_null(found):
        return reader.turned(node, found, TEXT)
    if op is None:
        way_out = "Use ROUND and CAST to an integer first." if found.type is REAL else "Use EXTRACT, or CAST to a date."
        raise reader.refuse(node, f"{KINDS[found.type]} has no text that every engine writes alike", way_out)
    return call(op, found)


def joined(texts: Sequence[Bound]) -> Bound:
    """Return texts one after the other; NULL if one is."""
    return call("join", *texts) if len(texts) > 1 else texts[0]


def _concat(node: exp.Expression, reader: Reader) -> Bound:
    """CONCAT passes over NULL."""
    texts = [(each, reader.bind(each)) for each in node.expressions]
    for each, found in texts:
        if found.type is BOOLEAN:
            raise reader.refuse(each, "CONCAT does not take true or false", "Write CASE WHEN x THEN 't' ELSE 'f' END.")
    kept = [written(each, reader, found) for each, found in texts if not is_null(found)]
    empty = known("", TEXT)
    filled = [each if isinstance(each.expr, Constant) else call("coalesce", each, empty) for each in kept]
    return joined(filled or [empty])


def _pattern(text: str, escape: str) -> str:
    """Write a LIKE pattern with a backslash before what is meant literally, and nowhere else."""
    found, letters = "", iter(text)
    for letter in letters:
        if letter == escape:
            following = next(letters, "")
            if not following:
                raise ValueError("the pattern ends with its escape character")
            found += _literally(following)
        else:
            found += letter if letter in "%_" else _literally(letter)
    return found


def _literally(letter: str) -> str:
    return "\\" + letter if letter in "%_\\" else letter


def like(node: exp.Expression, reader: Reader, escape: str = "\\") -> Bound:
    """Read LIKE or ILIKE with a constant pattern."""
    op = "like" if isinstance(node, exp.Like) else "like_any_case"
    text, pattern = reader.need(node.this, TEXT), str(reader.constant(node.expression, TEXT))
    found = call(op, text, known(_pattern(pattern, escape), TEXT))
    return call("not", found) if node.args.get("negate") else found


def _escape(node: exp.Expression, reader: Reader) -> Bound:
    letter = str(reader.constant(node.expression, TEXT))
    if type(node.this) not in (exp.Like, exp.ILike) or len(letter) > 1:
        raise reader.refuse(node, "ESCAPE takes one character, after LIKE or ILIKE", "Use a backslash instead.")
    return like(node.this, reader, letter)


def _affix(before: str, after: str) -> Handler:
    def handle(node: exp.Expression, reader: Reader) -> Bound:
        text, found = reader.need(node.this, TEXT), str(reader.constant(node.expression, TEXT))
        return call("like", text, known(before + "".join(map(_literally, found)) + after, TEXT))

    return handle


def _matches(node: exp.Expression, reader: Reader) -> Bound:
    text, pattern = reader.need(node.this, TEXT), str(reader.constant(node.expression, TEXT))
    given = node.args.get("flag")
    flag = "" if given is None else str(reader.constant(given, TEXT))
    if flag not in ("", "c", "i"):
        raise reader.refuse(node, "only the flags i and c are understood", "Leave the flags out.")
    if not isinstance(node, exp.RegexpILike) and flag != "i":
        return call("matches", text, known(pattern, TEXT))
    if "[" in pattern and pattern != pattern.lower():
        cause = "a class with capitals cannot be matched in any case"
        raise reader.refuse(node, cause, "Write [classes] in lower case.")
    return call("matches", call("lower", text), known(pattern.lower(), TEXT))


def _similar(node: exp.Expression, reader: Reader) -> Bound:
    """Read SIMILAR TO: the whole text, with % and _ as in LIKE and the rest as in a regular expression."""
    pattern = str(reader.constant(node.expression, TEXT))
    special = {"%": ".*", "_": ".", ".": "\\.", "^": "\\^", "$": "\\$", "\\%": "%", "\\_": "_"}
    tokens = re.findall(r"\\.|\[[^\]]*\]|.", pattern, re.DOTALL)
    inside = "".join(special.get(token, token) for token in tokens)
    return call("matches", reader.need(node.this, TEXT), known(f"^({inside})$", TEXT))


_WINDOWS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_DAY = {"day": 1, "hour": 24, "minute": 1440, "second": 86400}
_SECONDS = {"week": 604800, "day": 86400, "hour": 3600, "minute": 60, "second": 1}
_MONTHS = {"year": 12, "month": 1}
_SHORT = {"min": "minute", "sec": "second", "hr": "hour", "mon": "month", "yr": "year"}
_AMOUNTS = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.ASCII)
_CLOCK = re.compile(r"(\d{1,3}):(\d{2})(?::(\d{2}))?", re.ASCII)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - every timestamp is a local time


def unit(node: exp.Expression) -> str:
    """Return the name of a unit of time in the singular."""
    name = node.name.lower().removesuffix("s")
    return _SHORT.get(name, name)


def _as_moment(node: exp.Expression, reader: Reader, found: Bound) -> Bound:
    return found if found.type is DATE else reader.turned(node, found, TIMESTAMP)


def _as_date(moment: Bound) -> Bound:
    return moment if moment.type is DATE else call("to_date", moment)


def _as_timestamp(moment: Bound) -> Bound:
    return moment if moment.type is TIMESTAMP else call("to_timestamp", moment)


def _scaled_sum(first: Bound, factor: int, second: Bound) -> Bound:
    return call("add", call("multiply", first, known(factor, INTEGER)), second)


def elapsed(start: Bound, end: Bound, window: str) -> Bound:
    """Return how many beginnings of such windows lie between two moments."""

    def index(moment: Bound) -> Bound:
        moment = _as_timestamp(moment)
        if window == "year":
            return call("year", moment)
        if window in ("quarter", "month"):
            return _scaled_sum(call("year", moment), 4 if window == "quarter" else 12, call(window, moment))
        found = call("hour", moment)
        for finer in ("minute", "second")[: ("hour", "minute", "second").index(window)]:
            found = _scaled_sum(found, 60, call(finer, moment))
        return found

    if window == "week":
        weeks = (call("trunc_week", _as_timestamp(moment)) for moment in (start, end))
        return call("divide", call("days_between", *map(_as_date, weeks)), known(7, INTEGER))
    days = call("days_between", _as_date(start), _as_date(end))
    if window == "day":
        return days
    passed = call("subtract", index(end), index(start))
    return _scaled_sum(days, _DAY[window], passed) if window in _DAY else passed


def _extract(node: exp.Expression, reader: Reader) -> Bound:
    name, inner = unit(node.this), node.expression.unnest()
    if isinstance(inner, exp.Sub) and _interval(inner.expression, reader) is None:
        end, start = reader.bind(inner.this), reader.bind(inner.expression)
        if TIMESTAMP in (end.type, start.type):
            ends = reader.turned(inner.this, end, TIMESTAMP), reader.turned(inner.expression, start, TIMESTAMP)
            return _of_interval(node, reader, name, elapsed(ends[1], ends[0], "second"))
        moment = _as_moment(node, reader, _subtracted(inner, reader, end, start))
    else:
        moment = reader.moment(node.expression)
    if name == "epoch":
        return call("to_real", elapsed(known(_EPOCH, TIMESTAMP), moment, "second"))
    if name not in PARTS and name != "year":
        names = ", ".join(each.upper() for each in ("year", *PARTS, "epoch"))
        raise reader.refuse(node, f"{node.this.name.upper()[:40]} cannot be extracted", f"There are {names}.")
    return call(name, _as_timestamp(moment))


def _of_interval(node: exp.Expression, reader: Reader, name: str, seconds: Bound) -> Bound:
    if name not in ("epoch", "day"):
        raise reader.refuse(node, "only EPOCH and DAY of an interval can be extracted", "Divide EPOCH, its seconds.")
    return call("to_real", seconds) if name == "epoch" else call("divide", seconds, known(86400, INTEGER))


def _part_of_date(name: str) -> Handler:
    return lambda node, reader: call(name, _as_timestamp(reader.moment(node.this)))


def _date_trunc(node: exp.Expression, reader: Reader) -> Bound:
    window = unit(node.args["unit"])
    if window not in _WINDOWS:
        names = ", ".join(_WINDOWS)
        raise reader.refuse(node, "DATE_TRUNC does not know this unit", f"There are {names}, each as a constant.")
    return call(f"trunc_{window}", _as_timestamp(reader.moment(node.this)))


def _date_diff(node: exp.Expression, reader: Reader) -> Bound:
    """DATE_DIFF('day', start, end), DATE_DIFF(end, start, DAY) and DATEDIFF(end, start), as other systems write it."""
    first, second, third = node.this, node.expression, node.args.get("unit")
    if third is None:
        return elapsed(reader.moment(second), reader.moment(first), "day")
    if isinstance(third, exp.Var) and unit(third) in _WINDOWS and unit(first) not in _WINDOWS:
        return elapsed(reader.moment(second), reader.moment(first), unit(third))
    if unit(first) not in _WINDOWS or not isinstance(first, exp.Literal | exp.Column):
        way_out = "Write DATE_DIFF('day', start, end)."
        raise reader.refuse(node, "DATE_DIFF takes a unit as a constant and two dates", way_out)
    # The parser takes the third argument for a unit, and a bare name there for a word in capitals.
    end = exp.column(third.name.lower()) if isinstance(third, exp.Var) else third
    end.parent = node
    return elapsed(reader.moment(second), reader.moment(end), unit(first))


def interval(node: exp.Expression) -> tuple[int, Fraction] | None:
    """Return the months and seconds of a constant interval; None if it is none, ValueError if it is not understood."""
    node = node.unnest()  # type: ignore[assignment]
    if isinstance(node, exp.Neg) and (found := interval(node.this)) is not None:
        return -found[0], -found[1]
    if isinstance(node, exp.Mul):
        for side, factor in ((node.this, node.expression), (node.expression, node.this)):
            if (found := interval(side)) is not None:
                if not isinstance(factor, exp.Literal):
                    raise ValueError("an interval must be multiplied by a constant")
                return found[0] * int(factor.name), found[1] * int(factor.name)
    if isinstance(node, exp.Cast) and node.to.this is exp.DType.INTERVAL:
        return _amounts(node.this.name.lower())
    if not isinstance(node, exp.Interval):
        return None
    spelled = node.args.get("unit")
    return _amounts(f"{node.this.name} {spelled.name if isinstance(spelled, exp.Var) else ''}".strip().lower())


def _amounts(text: str) -> tuple[int, Fraction]:
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = (int(each or 0) for each in clock.groups())
        return 0, Fraction(hours * 3600 + minutes * 60 + seconds)
    months, seconds_in_all, rest = Fraction(0), Fraction(0), text
    while found := _AMOUNTS.match(rest):
        amount, name = Fraction(found[1]), unit(exp.var(found[2]))
        months += amount * _MONTHS.get(name, 0)
        seconds_in_all += amount * _SECONDS.get(name, 0)
        rest = rest[found.end() :] if name in _MONTHS or name in _SECONDS else "?"
    if rest or not text or months.denominator != 1:
        raise ValueError("text must be an interval")
    return int(months), seconds_in_all


def shifted(node: exp.Expression, reader: Reader, moment: Bound, months: int, seconds: Fraction) -> Bound:
    """Return a moment moved by an interval; only constants can be moved by months, which are not of one length."""
    moment = _as_timestamp(moment)
    if seconds.denominator != 1:
        raise reader.refuse(node, "an interval must have whole seconds", "Write whole seconds.")
    if months:
        value = moment.expr.value if isinstance(moment.expr, Constant) else None
        if not isinstance(value, datetime):
            way_out = "Move the interval to the side of a constant, use days, or compare DATE_TRUNC('month', x)."
            raise reader.refuse(node, "months and years are not of one length", way_out)
        moment = known(_months_later(value, months), TIMESTAMP)
    return call("add_seconds", moment, known(int(seconds), INTEGER)) if seconds else moment


def _months_later(moment: datetime, months: int) -> datetime:
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    return moment.replace(year=year, month=month + 1, day=min(moment.day, monthrange(year, month + 1)[1]))


def _interval(node: exp.Expression, reader: Reader) -> tuple[int, Fraction] | None:
    try:
        return interval(node)
    except ValueError:
        raise reader.refuse(node, "this interval is not understood", "Write INTERVAL '3 days 12 hours'.") from None


def _add(node: exp.Expression, reader: Reader) -> Bound:
    sides = ((node.this, node.expression), (node.expression, node.this))
    for moment, other in sides:
        if (found := _interval(other, reader)) is not None:
            return shifted(node, reader, reader.moment(moment), *found)
    left, right = reader.bind(node.this), reader.bind(node.expression)
    for moment, days in ((left, right), (right, left)):
        if moment.type is DATE and days.type is not DATE:
            return _days_later(node, reader, moment, days, 1)
    return arithmetic("add", node, reader, left, right)


def _subtract(node: exp.Expression, reader: Reader) -> Bound:
    if (found := _interval(node.expression, reader)) is not None:
        return shifted(node, reader, reader.moment(node.this), -found[0], -found[1])
    return _subtracted(node, reader, reader.bind(node.this), reader.bind(node.expression))


def _subtracted(node: exp.Expression, reader: Reader, left: Bound, right: Bound) -> Bound:
    if TIMESTAMP in (left.type, right.type):
        way_out = "Write DATE_DIFF('second', start, end), or subtract dates: CAST(x AS DATE) - CAST(y AS DATE)."
        raise reader.refuse(node, "the difference of two timestamps is an interval, not a number", way_out)
    if left.type is DATE and right.type in NUMBERS:
        return _days_later(node, reader, left, right, -1)
    if DATE in (left.type, right.type):
        start, end = reader.turned(node.expression, right, DATE), reader.turned(node.this, left, DATE)
        return call("days_between", start, end)
    return arithmetic("subtract", node, reader, left, right)


def _days_later(node: exp.Expression, reader: Reader, moment: Bound, days: Bound, sign: int) -> Bound:
    days = reader.turned(node, days, INTEGER)
    if not isinstance(days.expr, Constant) or days.expr.value is None:
        way_out = "Write a whole number, or compare the difference of two dates with it."
        raise reader.refuse(node, "only a constant number of days can be added to a date", way_out)
    return call("add_days", moment, known(sign * int(days.expr.value), INTEGER))  # type: ignore[arg-type]


def arithmetic(op: str, node: exp.Expression, reader: Reader, left: Bound, right: Bound) -> Bound:
    """Return an operation on two numbers of one type."""
    kind = common([left, right])
    kind = kind if kind in NUMBERS else INTEGER if INTEGER in (left.type, right.type) else REAL
    return call(op, reader.turned(node.this, left, kind), reader.turned(node.expression, right, kind))


def _date_add(node: exp.Expression, reader: Reader) -> Bound:
    return (_subtract if isinstance(node, exp.DateSub) else _add)(node, reader)


def _to_date(node: exp.Expression, reader: Reader) -> Bound:
    return _as_date(reader.moment(node.this))


def _anonymous(node: exp.Expression, reader: Reader) -> Bound:
    if node.name.upper() == "CLIP":
        return _clip(node, reader)
    raise unknown(node, reader)


def shown(node: exp.Expression) -> str:
    """Show a part of the query, at most 60 characters of it."""
    try:
        text = node.sql("postgres", comments=False)
    except Exception:  # noqa: BLE001 - only a message
        text = node.key.upper()
    text = "".join(letter if letter.isprintable() else " " for letter in text[:61])
    return text if len(text) <= 60 else text[:59] + "…"


def unknown(node: exp.Expression, reader: Reader) -> Refused:
    """Return the refusal of a function that is not on the list, with the nearest one that is."""
    found = re.match(r"\w+", shown(node))
    name = (found[0] if found else node.key).upper()
    if isinstance(node, _VOLATILE) or name in _VOLATILE_NAMES:
        way_out = "Write the date, time or number as a constant."
        return reader.refuse(node, f"{name} would give another answer at another time", way_out)
    close = get_close_matches(name, NAMES, n=1, cutoff=0.75)
    way_out = _HINTS.get(name) or (f"Did you mean {close[0]}?" if close else _OTHERWISE)
    return reader.refuse(node, f"{name} is not among the functions that are safe for every row", way_out)


_OTHERWISE = (
    "Use arithmetic, CASE, LIKE, ROUND, EXTRACT, DATE_TRUNC, LOWER or SUBSTRING, or ask the owner for a column of it."
)
_VOLATILE = (
    exp.CurrentTimestamp,
    exp.CurrentDate,
    exp.CurrentTime,
    exp.CurrentDatetime,
    exp.Localtime,
    exp.Localtimestamp,
    exp.Rand,
    exp.Randn,
    exp.Uuid,
)
_VOLATILE_NAMES = (
    *("CLOCK_TIMESTAMP", "STATEMENT_TIMESTAMP", "TRANSACTION_TIMESTAMP", "TIMEOFDAY", "GETDATE", "SYSDATE", "TODAY"),
    *("UUID_GENERATE_V4", "RANDOM_NORMAL", "NEXTVAL", "SETSEED"),
)
_HINTS = {
    "AGE": "Subtract dates, CAST(x AS DATE) - CAST(y AS DATE), or write DATE_DIFF('year', x, y).",
    "TO_CHAR": "Write EXTRACT(YEAR FROM x) or DATE_TRUNC('month', x).",
    "POSITION": "Write x LIKE '%text%'.",
    "DATE_BIN": "Write DATE_TRUNC('hour', x).",
    "WIDTH_BUCKET": "Write FLOOR((x - low) / width).",
    "RIGHT": "Write x LIKE '%end', or SUBSTRING with constant positions.",
    "DAYOFWEEK": "Write EXTRACT(DOW FROM x).",
    "MAKE_DATE": "Write DATE '2010-01-31'.",
    "CONCAT_WS": "Write CONCAT(x, '-', y).",
}
NAMES = (
    *("ABS", "CEIL", "CEILING", "CLIP", "EXP", "FLOOR", "GREATEST", "LEAST", "LN", "LOG", "LOG10", "MOD", "POWER"),
    *("ROUND", "SIGN", "SQRT", "TRUNC", "COALESCE", "NULLIF", "CAST", "CHAR_LENGTH", "CONCAT", "LEFT", "LENGTH"),
    *("LOWER", "LTRIM", "REGEXP_LIKE", "RTRIM", "STARTS_WITH", "SUBSTR", "SUBSTRING", "TRIM", "UPPER"),
    *("DATE_DIFF", "DATE_PART", "DATE_TRUNC", "EXTRACT"),
)
_UNARY = {
    exp.Sign: "sign",
    exp.Floor: "floor",
    exp.Ceil: "ceil",
    exp.Sqrt: "sqrt",
    exp.Exp: "exp",
    exp.Ln: "ln",
    exp.Lower: "lower",
    exp.Upper: "upper",
    exp.Length: "length",
}
_DATE_PARTS = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Week: "week",
    exp.WeekOfYear: "week",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.DayOfYear: "doy",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}
RULES: dict[type, tuple[Handler, str]] = {
    **{
        kind: (_simple(op, TEXT if op in ("lower", "upper", "length") else REAL), "this") for kind, op in _UNARY.items()
    },
    **{kind: (_part_of_date(name), "this") for kind, name in _DATE_PARTS.items()},
    exp.Abs: (lambda node, reader: call("abs", reader.number(node.this)), "this"),
    exp.Round: (_round, "this decimals"),
    exp.Trunc: (_trunc, "this decimals"),
    exp.Log: (_log, "this expression"),
    exp.Pow: (_simple("power", REAL), "this expression"),
    exp.Least: (_several("least"), "this expressions ignore_nulls"),
    exp.Greatest: (_several("greatest"), "this expressions ignore_nulls"),
    exp.Coalesce: (_several("coalesce"), "this expressions"),
    exp.Nullif: (_several("nullif"), "this expression"),
    exp.Trim: (_trim, "this expression position"),
    exp.Substring: (_substring, "this start length"),
    exp.Left: (_left, "this expression"),
    exp.Concat: (_concat, "expressions safe coalesce"),
    exp.Like: (like, "this expression negate"),
    exp.ILike: (like, "this expression negate"),
    exp.Escape: (_escape, "this expression"),
    exp.StartsWith: (_affix("", "%"), "this expression"),
    exp.EndsWith: (_affix("%", ""), "this expression"),
    exp.Contains: (_affix("%", "%"), "this expression"),
    exp.RegexpLike: (_matches, "this expression flag"),
    exp.RegexpILike: (_matches, "this expression flag"),
    exp.SimilarTo: (_similar, "this expression"),
    exp.Extract: (_extract, "this expression"),
    exp.TimestampTrunc: (_date_trunc, "this unit"),
    exp.DateDiff: (_date_diff, "this expression unit"),
    exp.Date: (_to_date, "this"),
    exp.Add: (_add, "this expression"),
    exp.Sub: (_subtract, "this expression"),
    exp.DateAdd: (_date_add, "this expression"),
    exp.DateSub: (_date_add, "this expression"),
    exp.Anonymous: (_anonymous, "this expressions"),
}
