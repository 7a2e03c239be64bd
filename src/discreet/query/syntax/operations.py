"""The operations that both sides of a release share: what a node computes, what its operands must be, and what to write
instead of a function that is not supported.

Below a release, an operation becomes one of the kernel's, with the range of its values; above it, SQL for the sandbox.
Each side reads operands in its own types, and applies operations by their names.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from functools import partial
from typing import Any, Protocol

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.query.syntax.syntax_tree import is_aggregate, surplus_arguments


class Operand(Enum):
    """What an operand must be."""

    VALUE = "of any type"
    CONDITION = "boolean"
    NUMBER = "a number"
    REAL = "a number, for a result in double precision"
    TEXT = "text"
    PART = "text; a constant below the release"
    CONSTANT_TEXT = "a text constant"
    CONSTANT_INTEGER = "an integer constant"
    DIGITS = "a number of decimal digits"


class Reader(Protocol):
    """Reads the operands of an expression on one side of the release."""

    def read(self, node: exp.Expr, kind: Operand) -> Any:
        """Return an operand; Refused if it is not of this kind."""

    def to_common_type(self, node: exp.Expr, parts: Sequence[exp.Expr], values: Sequence[Any]) -> Sequence[Any]:
        """Return values of some parts of a node, converted to their common type; Refused if there is none."""

    def refuse(self, node: exp.Expr, cause: str, hint: str) -> Refused:
        """Return a refusal that names the clause."""


Apply = Callable[[str, Any, Any, Sequence[Any]], Any]  # operation, node, reader and operands to the result


@dataclass(frozen=True)
class NodeRule:
    """How a node is read, and its allowed arguments."""

    arguments: str
    read: Callable[[Any, Any], Any]


# Functions whose result changes from call to call.
VOLATILE = (
    *(exp.CurrentDate, exp.CurrentDatetime, exp.CurrentTime, exp.CurrentTimestamp),
    *(exp.Localtime, exp.Localtimestamp, exp.Rand, exp.Randn, exp.Uuid),
)
# Operations by node, with their operands by argument.
_OPERATIONS: dict[type[exp.Expr], tuple[str, dict[str, Operand]]] = {
    exp.Not: ("not", {"this": Operand.CONDITION}),
    exp.Neg: ("negate", {"this": Operand.NUMBER}),
    exp.Abs: ("abs", {"this": Operand.NUMBER}),
    exp.Sign: ("sign", {"this": Operand.REAL}),
    exp.Floor: ("floor", {"this": Operand.REAL}),
    exp.Ceil: ("ceil", {"this": Operand.REAL}),
    exp.Sqrt: ("sqrt", {"this": Operand.REAL}),
    exp.Exp: ("exp", {"this": Operand.REAL}),
    exp.Ln: ("ln", {"this": Operand.REAL}),
    exp.Log: ("log", {"this": Operand.REAL, "expression": Operand.REAL}),
    exp.Pow: ("power", {"this": Operand.REAL, "expression": Operand.REAL}),
    exp.Round: ("round", {"this": Operand.REAL, "decimals": Operand.DIGITS}),
    exp.Trunc: ("trunc", {"this": Operand.REAL, "decimals": Operand.DIGITS}),
    exp.Lower: ("lower", {"this": Operand.TEXT}),
    exp.Upper: ("upper", {"this": Operand.TEXT}),
    exp.Length: ("length", {"this": Operand.TEXT}),
    exp.Substring: (
        "substring",
        {"this": Operand.TEXT, "start": Operand.CONSTANT_INTEGER, "length": Operand.CONSTANT_INTEGER},
    ),
    exp.Left: ("left", {"this": Operand.TEXT, "expression": Operand.CONSTANT_INTEGER}),
    exp.Right: ("right", {"this": Operand.TEXT, "expression": Operand.CONSTANT_INTEGER}),
    exp.StrPosition: ("position", {"this": Operand.TEXT, "substr": Operand.PART}),
    exp.StartsWith: ("starts_with", {"this": Operand.TEXT, "expression": Operand.PART}),
    exp.EndsWith: ("ends_with", {"this": Operand.TEXT, "expression": Operand.PART}),
    exp.Contains: ("contains", {"this": Operand.TEXT, "expression": Operand.PART}),
    exp.Replace: (
        "replace",
        {"this": Operand.TEXT, "expression": Operand.CONSTANT_TEXT, "replacement": Operand.CONSTANT_TEXT},
    ),
    exp.SplitPart: (
        "split_part",
        {"this": Operand.TEXT, "delimiter": Operand.CONSTANT_TEXT, "part_index": Operand.CONSTANT_INTEGER},
    ),
}
_OPTIONAL: dict[type[exp.Expr], str] = {
    exp.Log: "expression",
    exp.Round: "decimals",
    exp.Trunc: "decimals",
    exp.Substring: "start length",
}
# Operations whose operands are converted to their common type, with the arguments that hold them.
_COMPARED = "this expression"
_OF_COMMON_TYPE: dict[type[exp.Expr], tuple[str, str]] = {
    exp.EQ: ("equal", _COMPARED),
    exp.NEQ: ("not_equal", _COMPARED),
    exp.LT: ("less", _COMPARED),
    exp.LTE: ("at_most", _COMPARED),
    exp.GT: ("greater", _COMPARED),
    exp.GTE: ("at_least", _COMPARED),
    exp.NullSafeEQ: ("same", _COMPARED),
    exp.NullSafeNEQ: ("not_same", _COMPARED),
    exp.Nullif: ("nullif", _COMPARED),
    exp.Between: ("between", "this low high"),
    exp.Coalesce: ("coalesce", "this expressions"),
    exp.Least: ("least", "this expressions"),
    exp.Greatest: ("greatest", "this expressions"),
}
# Operators that are applied to a whole chain of operands at once.
_CHAINS: dict[type[exp.Expr], tuple[str, Operand]] = {
    exp.And: ("and", Operand.CONDITION),
    exp.Or: ("or", Operand.CONDITION),
    exp.DPipe: ("join", Operand.VALUE),
}


def _read_operands(node: exp.Expr, reader: Reader, apply: Apply) -> Any:
    name, operands = _OPERATIONS[type(node)]
    optional = _OPTIONAL.get(type(node), "").split()
    parts = [(node.args.get(argument), kind) for argument, kind in operands.items()]
    if any(node.args.get(argument) is None and argument not in optional for argument in operands):
        raise reader.refuse(node, "a function call is incomplete", "Write all of its operands.")
    return apply(name, node, reader, [None if part is None else reader.read(part, kind) for part, kind in parts])


def _read_together(node: exp.Expr, parts: Sequence[exp.Expr], reader: Reader) -> Sequence[Any]:
    return reader.to_common_type(node, parts, [reader.read(part, Operand.VALUE) for part in parts])


def _read_of_common_type(node: exp.Expr, reader: Reader, apply: Apply) -> Any:
    name, arguments = _OF_COMMON_TYPE[type(node)]
    given: list[Any] = [node.args.get(argument) for argument in arguments.split()]
    parts: list[exp.Expr] = [part for each in given for part in (each if isinstance(each, list) else [each])]
    return apply(name, node, reader, _read_together(node, parts, reader))


def _read_chain(node: exp.Expr, reader: Reader, apply: Apply) -> Any:
    name, kind = _CHAINS[type(node)]
    return apply(name, node, reader, [reader.read(operand, kind) for operand in chain_operands(node)])


def chain_operands(node: exp.Expr) -> list[exp.Expr]:
    """Return the operands of a chain of one operator, without recursion."""
    operands, rest = [], [node]
    while rest:
        current = rest.pop()
        if type(current) is type(node):
            rest += [current.expression, current.this]
        else:
            operands.append(current)
    return operands


def _read_in(node: exp.In, reader: Reader, apply: Apply) -> Any:
    if not node.expressions:
        raise reader.refuse(node, "the IN list is empty", "Write IN (…) with constants.")
    return apply("in", node, reader, _read_together(node, [node.this, *node.expressions], reader))


def _read_is(node: exp.Is, reader: Reader, apply: Apply) -> Any:
    no = "not_" if node.args.get("negate") else ""
    if isinstance(node.expression, exp.Null):
        return apply(f"is_{no}null", node, reader, [reader.read(node.this, Operand.VALUE)])
    if isinstance(node.expression, exp.Boolean):
        truth = "true" if node.expression.this else "false"
        return apply(f"is_{no}{truth}", node, reader, [reader.read(node.this, Operand.CONDITION)])
    raise reader.refuse(node, "this use of IS is not supported", "Write IS NULL, IS TRUE or IS FALSE.")


def _read_case(node: exp.Case, reader: Reader, apply: Apply) -> Any:
    """Read a CASE: its conditions, then as many results, and perhaps one more for ELSE."""
    branches, last = node.args["ifs"], node.args.get("default")
    if any(surplus_arguments(branch, "this true") for branch in branches):
        raise reader.refuse(node, "this form of CASE is not supported", "Write CASE WHEN … THEN … ELSE … END.")
    if node.this is None:
        conditions = [reader.read(branch.this, Operand.CONDITION) for branch in branches]
    else:
        parts, value = [branch.this for branch in branches], reader.read(node.this, Operand.VALUE)
        values = ([value, reader.read(part, Operand.VALUE)] for part in parts)
        pairs = (reader.to_common_type(node, [node.this, part], pair) for part, pair in zip(parts, values, strict=True))
        conditions = [apply("equal", node, reader, pair) for pair in pairs]
    results = [branch.args["true"] for branch in branches] + ([] if last is None else [last])
    return apply("case", node, reader, [*conditions, *_read_together(node, results, reader)])


def _read_trim(node: exp.Trim, reader: Reader, apply: Apply) -> Any:
    position, letters = str(node.args.get("position") or "").upper(), node.args.get("expression")
    operands = [reader.read(node.this, Operand.TEXT), letters and reader.read(letters, Operand.CONSTANT_TEXT)]
    return apply({"LEADING": "trim_left", "TRAILING": "trim_right"}.get(position, "trim"), node, reader, operands)


def _read_like(node: exp.Binary, reader: Reader, apply: Apply, escape: str = "\\") -> Any:
    """Read LIKE or ILIKE with a constant pattern: the text, the pattern, and its escape character."""
    text, pattern = reader.read(node.this, Operand.TEXT), reader.read(node.expression, Operand.CONSTANT_TEXT)
    if escape and pattern.replace(escape * 2, "").endswith(escape):
        raise reader.refuse(node, "the pattern must not end with its escape character", "Write the character twice.")
    return apply(f"{'not_' if node.args.get('negate') else ''}{node.key}", node, reader, [text, pattern, escape])


def _read_escape(node: exp.Escape, reader: Reader, apply: Apply) -> Any:
    letter = reader.read(node.expression, Operand.CONSTANT_TEXT)
    if type(node.this) not in (exp.Like, exp.ILike) or len(letter) > 1:
        raise reader.refuse(node, "ESCAPE takes one character, after LIKE or ILIKE", "Write LIKE 'a!%' ESCAPE '!'.")
    return _read_like(node.this, reader, apply, letter)


_SPECIAL: dict[type[exp.Expr], tuple[str, Callable[..., Any]]] = {
    exp.Paren: ("this", lambda node, reader, **_: reader.read(node.this, Operand.VALUE)),
    exp.In: ("this expressions", _read_in),
    exp.Is: ("this expression negate", _read_is),
    exp.Case: ("this ifs default", _read_case),
    exp.Trim: ("this expression position", _read_trim),
    exp.Like: ("this expression negate", _read_like),
    exp.ILike: ("this expression negate", _read_like),
    exp.Escape: ("this expression", _read_escape),
}


def operation_rules(apply: Apply) -> dict[type[exp.Expr], NodeRule]:
    """Return the rules of one side, which applies operations to the operands that its reader reads."""
    readers = {
        **{kind: (" ".join(operands), _read_operands) for kind, (_, operands) in _OPERATIONS.items()},
        **{kind: (f"{names} ignore_nulls", _read_of_common_type) for kind, (_, names) in _OF_COMMON_TYPE.items()},
        **dict.fromkeys(_CHAINS, ("this expression safe", _read_chain)),
        **_SPECIAL,
    }
    return {kind: NodeRule(arguments, partial(read, apply=apply)) for kind, (arguments, read) in readers.items()}


_HINTS = {
    **dict.fromkeys(("AVERAGE", "MEAN"), "Write AVG(x)."),
    **dict.fromkeys(("COUNT_DISTINCT", "COUNTD", "NUNIQUE"), "Write COUNT(DISTINCT x)."),
    "AGE": "Write EXTRACT(YEAR FROM AGE(end, start)), DATE_DIFF('month', start, end), or subtract dates.",
    **dict.fromkeys(
        ("TO_CHAR", "STRFTIME", "DATE_FORMAT", "FORMAT_DATE"), "Write EXTRACT(YEAR FROM x) or DATE_TRUNC('month', x)."
    ),
    **dict.fromkeys(("DATEADD", "DATE_ADD", "ADDDATE"), "Write x + INTERVAL '7 days'."),
    **dict.fromkeys(("DATE_SUB", "DATESUB", "SUBDATE"), "Write x - INTERVAL '7 days'."),
    "ISNULL": "Write COALESCE(x, 0), or x IS NULL.",
    **dict.fromkeys(("GETDATE", "TO_DATE", "STR_TO_DATE"), "Write the date as a constant: DATE '2010-01-31'."),
    "DATE_BIN": "Write DATE_TRUNC('hour', x).",
    "DAYOFWEEK": "Write EXTRACT(DOW FROM x).",
    "MAKE_DATE": "Write DATE '2010-01-31'.",
    "CONCAT_WS": "Write CONCAT(x, '-', y).",
}
FUNCTION_NAMES = (
    *("ABS", "CEIL", "CEILING", "CLIP", "EXP", "FLOOR", "GREATEST", "LEAST", "LN", "LOG", "LOG10", "MOD", "POWER"),
    *("ROUND", "SIGN", "SQRT", "TRUNC", "COALESCE", "NULLIF", "CAST", "CHAR_LENGTH", "CONCAT", "LEFT", "LENGTH"),
    *("INSTR", "LOWER", "LTRIM", "POSITION", "REGEXP_LIKE", "REPLACE", "RIGHT", "RTRIM", "SPLIT_PART", "STARTS_WITH"),
    *("STRPOS", "SUBSTR", "SUBSTRING", "TRIM", "UPPER", "WIDTH_BUCKET"),
    *("DATE_DIFF", "DATE_PART", "DATE_TRUNC", "EXTRACT"),
)
_AGGREGATE_NAMES = (
    *("AVG", "CORR", "COUNT", "COUNT_IF", "COVAR_POP", "COVAR_SAMP", "MAX", "MEDIAN", "MIN", "MODE", "QUANTILE"),
    *("REGR_INTERCEPT", "REGR_R2", "REGR_SLOPE", "STDDEV", "SUM", "VARIANCE"),
    *("DENSE_RANK", "NTILE", "PERCENT_RANK", "RANK", "ROW_NUMBER"),
)


def function_hint(name: str) -> str | None:
    """Return what to write instead of an unknown function; None if nothing is similar.

    >>> function_hint("MEDAIN"), function_hint("average"), function_hint("XIRR")
    ('Did you mean MEDIAN?', 'Write AVG(x).', None)
    """
    if name.upper() in FUNCTION_NAMES:  # which is not supported in this place
        return None
    close = get_close_matches(name.upper(), (*FUNCTION_NAMES, *_AGGREGATE_NAMES), n=1, cutoff=0.75)
    return _HINTS.get(name.upper()) or (f"Did you mean {close[0]}?" if close else None)


def is_unknown_function(node: exp.Expr) -> bool:
    """Return whether a node calls a function that is neither supported nor an aggregate."""
    return isinstance(node, exp.Anonymous) and not is_aggregate(node) and node.name.upper() not in FUNCTION_NAMES
