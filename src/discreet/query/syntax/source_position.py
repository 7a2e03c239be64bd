"""Source positions in the query text, and refusals that name them."""

from collections.abc import Callable
from itertools import islice
from typing import TypeVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from discreet.kernel.errors import Refused
from discreet.policy.problems import shorten

_MAX_NODES_SHOWN = 100  # nodes; a message shows 60 characters


def line_of(node: exp.Expr) -> str:
    r"""Return the line on which a part of the query begins, as "line 3".

    >>> from sqlglot import parse_one
    >>> line_of(parse_one("SELECT a,\n  b + 1", read="postgres").selects[1])
    'line 2'
    """
    return f"line {line_number(node)}"


def line_number(node: exp.Expr) -> int:
    """Return the line on which a part of the query begins."""
    around: exp.Expr | None = node
    while around is not None:  # NULL, for example, has no position
        lines = [part.meta["line"] for part in around.walk() if "line" in part.meta]
        if lines:
            return int(min(lines))
        around = around.parent
    return 1


def sql_of(node: exp.Expr) -> str:
    """Return the PostgreSQL text of a node, or its kind if it has none.

    A node that replaces a part of the query, such as a released column for its aggregate, gives the original text.

    >>> from sqlglot import parse_one
    >>> sql_of(parse_one("a+1"))
    'a + 1'
    """
    if next(islice(node.walk(), _MAX_NODES_SHOWN, None), None) is not None:
        return f"{node.key.upper()}(…)"
    try:
        restored = node.transform(
            lambda part: exp.var(part.meta["original_sql"]()) if "original_sql" in part.meta else part
        )
        return restored.sql("postgres", comments=False, unsupported_level=ErrorLevel.IGNORE)
    except Exception:  # noqa: BLE001 - some trees have no SQL, and this is for messages only
        return node.key.upper()


def function_name(node: exp.Expr) -> str:
    """Return the name of a function or operator as the query wrote it."""
    if isinstance(node, exp.Filter | exp.WithinGroup):
        return function_name(node.this)
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper()
    if isinstance(node, exp.Func):
        return str(
            node.meta.get("name") or ("STRING_AGG" if isinstance(node, exp.GroupConcat) else node.sql_name())
        ).upper()
    return quote_name(sql_of(node))


def quote_name(name: str) -> str:
    """Return a name in quotation marks, shortened to 40 characters."""
    return f'"{shorten(name)}"'


def refuse(node: exp.Expr | None, clause: str, cause: str, hint: str) -> Refused:
    r"""Return a refusal with line, clause, cause and hint.

    >>> from sqlglot import parse_one
    >>> query = parse_one("SELECT a FROM t\nGROUP BY a", read="postgres")
    >>> print(refuse(query.args["group"], "GROUP BY", '"a" has no declared keys', "Declare them with in = […]"))
    line 2, GROUP BY: "a" has no declared keys. Declare them with in = […].
    """
    where = ", ".join(word for word in (line_of(node) if node is not None else "", clause) if word)
    return Refused(
        f"{where}: {end_sentence(cause)} {end_sentence(hint)}"
        if where
        else f"{end_sentence(cause)} {end_sentence(hint)}"
    )


def end_sentence(text: str) -> str:
    """Return a text that ends with a full stop, unless it ends with other punctuation."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


Node = TypeVar("Node")


def build_or_refuse(make: Callable[[], Node], node: exp.Expr | None, clause: str) -> Node:
    """Return the result of `make`, or refuse with the kernel's message, which depends only on the query."""
    try:
        return make()
    except ValueError as error:
        raise refuse(node, clause, str(error), "Simplify it.") from None
