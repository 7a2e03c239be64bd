"""Functions on numbers, and choices among values."""

from sqlglot import exp

from discreet.kernel.expr import Constant, Type
from discreet.sql.values.bound import Bound
from discreet.sql.values.ranges import call, is_null, known
from discreet.sql.values.reading import BOOLEAN, INTEGER, KINDS, REAL, TEXT, Handler, Reader


def simple(op: str, kind: Type) -> Handler:
    """Make the handler of a function whose arguments have one known type."""
    return lambda node, reader: call(op, *(reader.need(each, kind) for each in _parts(node)))


def _parts(node: exp.Expression) -> list[exp.Expression]:
    second = node.args.get("expression")
    return [node.this, *([] if second is None else [second]), *node.expressions]


def rounded(node: exp.Expression, reader: Reader) -> Bound:
    """Read ROUND(x) and ROUND(x, n)."""
    digits = known(reader.whole(node.args.get("decimals"), 0), INTEGER)
    return call("round", reader.need(node.this, REAL), digits)


def truncated(node: exp.Expression, reader: Reader) -> Bound:
    """Read TRUNC(x): towards zero."""
    value, digits = reader.need(node.this, REAL), reader.whole(node.args.get("decimals"), 0)
    if abs(digits) > 15:
        raise reader.refuse(node, "so many digits cannot be cut off", "Write a number from -15 to 15.")
    scale = known(10.0**digits, REAL)
    scaled = call("multiply", value, scale) if digits else value
    cut = call("case", call("less", scaled, known(0.0, REAL)), call("ceil", scaled), call("floor", scaled))
    return call("divide", cut, scale) if digits else cut


def logarithm(node: exp.Expression, reader: Reader) -> Bound:
    """LOG(x) is to the base 10; LOG(b, x) to the base b."""
    base, value = node.this, node.args.get("expression")
    if value is None or (isinstance(base, exp.Literal) and base.name == "10"):
        return call("log10", reader.need(base if value is None else value, REAL))
    return call("divide", *(call("ln", reader.need(part, REAL)) for part in (value, base)))


def several(op: str) -> Handler:
    """Make the handler of a function whose arguments have one type together."""

    def handle(node: exp.Expression, reader: Reader) -> Bound:
        values = reader.together(node, _parts(node))
        return call(op, *values) if len(values) > 1 else values[0]

    return handle


def clipped(node: exp.Expression, reader: Reader) -> Bound:
    """Read CLIP(x, low, high)."""
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
