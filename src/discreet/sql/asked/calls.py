"""Small things about aggregate calls that all who read them need."""

from sqlglot import exp

from discreet.kernel.expr import Call, Constant, Expr
from discreet.sql.places import written


def kept(expr: Expr, when: Expr | None) -> Expr:
    """Return the value where the condition is true, and NULL elsewhere."""
    return expr if when is None else Call("case", (when, expr, Constant(None, expr.type)))


def function_name(call: exp.Expr) -> str:
    """Return the name of a function in capitals."""
    if isinstance(call, exp.Anonymous) or "name" in call.meta:
        return str(call.meta.get("name", call.this)).upper()
    return written(call).partition("(")[0]


def text_of(node: exp.Expr) -> str:
    """Return an expression as it can be told in a refusal."""
    text = written(node)
    return text if len(text) <= 40 and text.isprintable() else "…"
