"""From the words of a query to the kernel's expressions on single rows, with what is publicly known of their values.

Every node that is not listed in RULES is refused, and so is a node with an argument that its rule does not understand.
A caller that wants columns held to their declared ranges, as under an aggregate, passes `columns` that return clipped
expressions with the ranges they were clipped to: everything above then follows from these.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.kernel.expr import Constant, Type, Value
from discreet.sql.places import refuse
from discreet.sql.values import functions
from discreet.sql.values.bound import Bound
from discreet.sql.values.declared import Lists, check_declared
from discreet.sql.values.functions import shown, unknown
from discreet.sql.values.ranges import call, is_null, known, whole
from discreet.sql.values.reading import FALSE, KINDS, TRUE, Handler, Reader, read
from discreet.sql.values.texts import joined, part, written
from discreet.sql.values.times import arithmetic

Columns = Callable[[exp.Column], Bound]


@dataclass(frozen=True)
class Names:
    """What the names of columns mean, with the values that the policy lists for them."""

    read: Columns
    lists: Lists

    def __call__(self, node: exp.Column) -> Bound:
        """Return what a name means."""
        return self.read(node)


_SAFE = "is not among the expressions that are safe for every row"


def bind(node: exp.Expression, columns: Columns, clause: str) -> Bound:
    """Read an expression on single rows; `columns` says what a name means, `clause` where the expression stands.

    >>> import sqlglot
    >>> from discreet.kernel.expr import Column
    >>> age = Bound(Column("age", Type.INTEGER))
    >>> bind(sqlglot.parse_one("age >= 18", dialect="postgres"), lambda _: age, "WHERE").expr.op
    'at_most'
    """
    lists = columns.lists if isinstance(columns, Names) else {}
    reader = Reader(lambda each: _bind(each, columns, reader), clause, lists)
    try:
        return whole(reader.bind(node))
    except Refused:
        raise
    except Exception:  # noqa: BLE001 - whatever a query is, it is answered or refused
        raise refuse(
            node, clause, "this expression cannot be understood", "Write it in fewer or simpler steps."
        ) from None


def constant(node: exp.Expression, kind: Type | None, clause: str) -> Value:
    """Read a constant, of a type if one is given."""

    def no_columns(column: exp.Column) -> Bound:
        raise refuse(column, clause, "only a constant can stand here", "Write the value itself.")

    found = bind(node, no_columns, clause)
    reader = Reader(lambda _: found, clause)
    return None if is_null(found) else reader.constant(node, kind or found.type)


def _bind(node: exp.Expression, columns: Columns, reader: Reader) -> Bound:
    if type(node) is exp.Column and not isinstance(node.this, exp.Star):
        try:
            return columns(node)
        except (ValueError, TypeError, OverflowError) as error:  # below, the words of these are shown
            raise RuntimeError from error
    handler, understood = RULES.get(type(node), (None, ""))
    if handler is None:
        raise _stranger(node, reader)
    surplus = [name for name, given in node.args.items() if given and name not in understood.split()]
    if surplus:
        raise _stranger(node, reader)
    try:
        return handler(node, reader)
    except (ValueError, TypeError, OverflowError) as error:  # what the kernel's constructors do not take
        raise reader.refuse(node, f"{shown(node)}: {error}", "Write it in another way.") from None


def _stranger(node: exp.Expression, reader: Reader) -> Refused:
    """Return the refusal of a node that has no rule here."""
    inside = node.find(exp.Query) if isinstance(node, exp.In | exp.Any | exp.All) else None
    for kinds, cause, way_out in _STRANGERS:
        if isinstance(inside or node, kinds):
            return reader.refuse(node, cause, way_out)
    if isinstance(node, exp.Func) and type(node) not in RULES and type(node) not in _HINTS:
        return unknown(node, reader)
    way_out = _HINTS.get(type(node), "Leave it out, or write it in another way.")
    return reader.refuse(node, f"{shown(node)} {_SAFE}", way_out)


_STRANGERS: tuple[tuple[tuple[type, ...], str, str], ...] = (
    (
        (exp.Query, exp.Exists),
        "a query inside an expression is understood only as a condition of its own, joined by AND in WHERE",
        "Write WHERE … AND unit IN (SELECT unit …), or join.",
    ),
    (
        (exp.Window, exp.IgnoreNulls, exp.RespectNulls),
        "a window function looks at other rows",
        "Use it above the aggregate, on the released table.",
    ),
    (
        (exp.AggFunc, exp.WithinGroup, exp.Filter, exp.Distinct),
        "an aggregate cannot stand inside an expression on single rows",
        "Aggregate in a subquery per unit, or use HAVING.",
    ),
    (
        (exp.Parameter, exp.Placeholder, exp.SessionParameter),
        "a parameter has no value here",
        "Write the value itself.",
    ),
    ((exp.Star, exp.Column), "* stands for all columns, not for a value", "Name the column."),
)
_HINTS: dict[type, str] = {
    exp.Any: "Write IN (…).",
    exp.Between: "Write BETWEEN LEAST(…) AND GREATEST(…).",
    exp.In: "Write IN (…) with constants.",
    exp.Interval: "Add it to a date or timestamp, or subtract it.",
    exp.ByteString: "Write the text in plain quotes.",
    exp.AtTimeZone: "Timestamps are in the policy's time zone already.",
    exp.Collate: "Leave COLLATE out: text is compared by its bytes.",
}


def _literal(node: exp.Expression, reader: Reader) -> Bound:
    text = node.name
    if isinstance(node, exp.RawString) or node.is_string:
        return known(text, Type.TEXT)
    whole_number = text.lstrip("0") if text.isdecimal() else ""  # so many digits as Python would not read
    if text.isdecimal() and len(whole_number) < 20 and int(whole_number or 0) < 1 << 63:
        return known(int(whole_number or 0), Type.INTEGER)
    try:
        return known(read(text, Type.REAL), Type.REAL)
    except ValueError:
        raise reader.refuse(node, "this number is beyond what a double holds", "Write a smaller one.") from None


def _compare(op: str, *, swapped: bool = False, negated: bool = False) -> Handler:
    def handle(node: exp.Expression, reader: Reader) -> Bound:
        sides = reader.together(node, [node.this, node.expression])
        found = reader.equal(node, *sides) if op == "equal" else call(op, *(reversed(sides) if swapped else sides))
        return call("not", found) if negated else found

    return handle


def _connect(op: str) -> Handler:
    def handle(node: exp.Expression, reader: Reader) -> Bound:
        return call(op, *(reader.need(each, Type.BOOLEAN) for each in _flat(node)))

    return handle


def _flat(node: exp.Expression) -> list[exp.Expression]:
    """Return what one operator holds together: a long chain is no deep one."""
    found, rest = [], [node]
    while rest:
        each = rest.pop()
        if type(each) is type(node):
            rest += [each.expression, each.this]
        else:
            found.append(each)
    return found


def _between(node: exp.Expression, reader: Reader) -> Bound:
    value, low, high = reader.together(node, [node.this, node.args["low"], node.args["high"]])
    return call("and", call("at_most", low, value), call("at_most", value, high))


def _in(node: exp.Expression, reader: Reader) -> Bound:
    if not node.expressions:
        raise reader.refuse(node, "IN has nothing to compare with", _HINTS[exp.In])
    value, *others = reader.together(node, [node.this, *node.expressions])
    listed = [other for other in others if _fixed(other) and not is_null(other)]
    for other in listed:
        check_declared(value, other, reader.lists, node, reader.clause)
    found = [call("one_of", value, *listed)] if listed else []
    found += [call("equal", value, other) for other in others if not _fixed(other)]
    if any(is_null(other) for other in others):
        found.append(known(None, Type.BOOLEAN))  # x IN (1, NULL) is true or unknown, never false
    return call("or", *found) if len(found) > 1 else found[0]


def _fixed(bound: Bound) -> bool:
    return isinstance(bound.expr, Constant)


def _is(node: exp.Expression, reader: Reader) -> Bound:
    if isinstance(node.expression, exp.Null):
        found = call("is_null", reader.bind(node.this))
    elif isinstance(node.expression, exp.Boolean):
        value, no = reader.need(node.this, Type.BOOLEAN), known(value=False, kind=Type.BOOLEAN)
        found = call("coalesce", value if node.expression.this else call("not", value), no)
    else:
        raise reader.refuse(node, f"{shown(node)} {_SAFE}", "Write IS NULL, IS TRUE or IS FALSE.")
    return call("not", found) if node.args.get("negate") else found


def _same(node: exp.Expression, reader: Reader) -> Bound:
    """IS NOT DISTINCT FROM: NULL equals NULL."""
    left, right = reader.together(node, [node.this, node.expression])
    both = call("and", call("is_null", left), call("is_null", right))
    found = call("coalesce", reader.equal(node, left, right), both)
    return call("not", found) if isinstance(node, exp.NullSafeNEQ) else found


def _case(node: exp.Expression, reader: Reader) -> Bound:
    branches, otherwise = node.args["ifs"], node.args.get("default") or exp.Null()
    values = reader.together(node, [*(each.args["true"] for each in branches), otherwise])
    if node.args.get("this") is None:
        conditions = [reader.need(each.this, Type.BOOLEAN) for each in branches]
    else:
        value, *others = reader.together(node, [node.this, *(each.this for each in branches)])
        conditions = [reader.equal(node, value, other) for other in others]
    pairs = [side for pair in zip(conditions, values, strict=False) for side in pair]
    return call("case", *pairs, values[-1])


def _if(node: exp.Expression, reader: Reader) -> Bound:
    values = reader.together(node, [node.args["true"], node.args.get("false") or exp.Null()])
    return call("case", reader.need(node.this, Type.BOOLEAN), *values)


def _negate(node: exp.Expression, reader: Reader) -> Bound:
    return call("negate", reader.number(node.this))


def _multiply(node: exp.Expression, reader: Reader) -> Bound:
    return arithmetic("multiply", node, reader, reader.bind(node.this), reader.bind(node.expression))


def _divide(node: exp.Expression, reader: Reader) -> Bound:
    left, right = reader.bind(node.this), reader.bind(node.expression)
    if left.type is right.type is Type.INTEGER and (_is_numeric(node.this) or _is_numeric(node.expression)):
        left, right = call("to_real", left), call("to_real", right)
    return arithmetic("divide", node, reader, left, right)


def _is_numeric(node: exp.Expression) -> bool:
    """Tell whether PostgreSQL computes with decimals although the value is whole: EXTRACT(…) / 10 does not truncate."""
    bare = node.unnest()
    if isinstance(bare, exp.Neg | exp.Abs):
        return _is_numeric(bare.this)
    if isinstance(bare, exp.Add | exp.Sub | exp.Mul | exp.Mod):
        return _is_numeric(bare.this) or _is_numeric(bare.expression)
    return isinstance(bare, exp.Extract)


def _modulo(node: exp.Expression, reader: Reader) -> Bound:
    left, right = reader.bind(node.this), reader.bind(node.expression)
    if Type.REAL in (left.type, right.type):
        raise reader.refuse(node, "the remainder is of integers only", "Write x - y * FLOOR(x / y).")
    return arithmetic("modulo", node, reader, left, right)


def _join(node: exp.Expression, reader: Reader) -> Bound:
    return joined([written(each, reader, reader.bind(each)) for each in _flat(node)])


_TYPES = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), Type.INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), Type.REAL),
    **dict.fromkeys(("TEXT", "VARCHAR"), Type.TEXT),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME"), Type.TIMESTAMP),
    "DATE": Type.DATE,
    "BOOLEAN": Type.BOOLEAN,
}
_CASTS = {
    (Type.INTEGER, Type.REAL): "to_real",
    (Type.DATE, Type.TIMESTAMP): "to_timestamp",
    (Type.REAL, Type.INTEGER): "to_integer",
    (Type.BOOLEAN, Type.INTEGER): "as_integer",
    (Type.TIMESTAMP, Type.DATE): "to_date",
}


def _cast(node: exp.Expression, reader: Reader) -> Bound:
    to = node.args["to"]
    kind = _TYPES.get(to.this.name)
    if kind is None or (to.expressions and kind in (Type.TIMESTAMP, Type.INTEGER, Type.BOOLEAN)):
        names = "INTEGER, BIGINT, DOUBLE PRECISION, NUMERIC, TEXT, DATE, TIMESTAMP and BOOLEAN"
        raise reader.refuse(node, f"there is no cast to {shown(to)}", f"There are {names}.")
    sizes = [reader.whole(each.this, 0) for each in to.expressions]
    found = _turned(node, reader, reader.bind(node.this), kind)
    if kind is Type.TEXT and sizes:
        return part(node, reader, found, 1, sizes[0])
    if to.this is exp.DType.DECIMAL and sizes:
        return call("round", found, known(sizes[1] if len(sizes) > 1 else 0, Type.INTEGER))
    return found


def _turned(node: exp.Expression, reader: Reader, found: Bound, kind: Type) -> Bound:
    if found.type is kind or is_null(found) or (_fixed(found) and found.type is Type.TEXT):
        return _turned_constant(node, reader, found, kind)
    if kind is Type.TEXT:
        return written(node.this, reader, found)
    if kind is Type.BOOLEAN and found.type is Type.INTEGER:
        return call("not", call("equal", found, known(0, Type.INTEGER)))
    if found.type is Type.TEXT:
        return _read(call("trim", found), kind)
    op = _CASTS.get((found.type, kind))
    if op is None:
        raise reader.refuse(node, f"{KINDS[found.type]} cannot be cast to {KINDS[kind]}", "Use another column or type.")
    return call(op, found)


def _turned_constant(node: exp.Expression, reader: Reader, found: Bound, kind: Type) -> Bound:
    try:
        return reader.turned(node.this, found, kind)
    except Refused:
        if isinstance(node, exp.TryCast):
            return known(None, kind)
        raise


def _read(text: Bound, kind: Type) -> Bound:
    """Read a text in every row, as a constant is read; NULL where it cannot be."""
    match kind:
        case Type.DATE:
            return call("coalesce", call("read_date", text), call("to_date", call("read_timestamp", text)))
        case Type.TIMESTAMP:
            return call("coalesce", call("read_timestamp", text), call("to_timestamp", call("read_date", text)))
        case Type.BOOLEAN:
            lower = call("lower", text)
            yes, no = (call("one_of", lower, *(known(word, Type.TEXT) for word in words)) for words in (TRUE, FALSE))
            first, second, neither = (known(value, kind) for value in (True, False, None))
            return call("case", yes, first, no, second, neither)
    return call("read_integer" if kind is Type.INTEGER else "read_real", text)


RULES: dict[type, tuple[Handler, str]] = {
    **functions.RULES,
    exp.Paren: (lambda node, reader: reader.bind(node.this), "this"),
    exp.Literal: (_literal, "this is_string"),
    exp.RawString: (_literal, "this"),
    exp.Null: (lambda _node, _reader: known(None, Type.TEXT), ""),
    exp.Boolean: (lambda node, _: known(bool(node.this), Type.BOOLEAN), "this"),
    exp.EQ: (_compare("equal"), "this expression"),
    exp.NEQ: (_compare("equal", negated=True), "this expression"),
    exp.LT: (_compare("less"), "this expression"),
    exp.LTE: (_compare("at_most"), "this expression"),
    exp.GT: (_compare("less", swapped=True), "this expression"),
    exp.GTE: (_compare("at_most", swapped=True), "this expression"),
    exp.And: (_connect("and"), "this expression"),
    exp.Or: (_connect("or"), "this expression"),
    exp.Not: (lambda node, reader: call("not", reader.need(node.this, Type.BOOLEAN)), "this"),
    exp.Between: (_between, "this low high"),
    exp.In: (_in, "this expressions"),
    exp.Is: (_is, "this expression negate"),
    exp.NullSafeEQ: (_same, "this expression"),
    exp.NullSafeNEQ: (_same, "this expression"),
    exp.Case: (_case, "this ifs default"),
    exp.If: (_if, "this true false"),
    exp.Neg: (_negate, "this"),
    exp.Mul: (_multiply, "this expression"),
    exp.Div: (_divide, "this expression typed safe"),
    exp.Mod: (_modulo, "this expression"),
    exp.DPipe: (_join, "this expression safe"),
    exp.Cast: (_cast, "this to"),
    exp.TryCast: (_cast, "this to safe"),
}
