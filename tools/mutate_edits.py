"""The mutants of a module: every small change of its code that a test ought to notice."""

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
# Functions whose opposite has the same parameters; rounding the wrong way is the one that privacy feels.
_OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}
_OPPOSITES |= {"log_up": "log_down", "log_down": "log_up", "round_up": "round_down", "round_down": "round_up"}
# Arguments whose order means nothing, or whose exchange cannot run.
_UNORDERED = {"min", "max", "isinstance", "issubclass", "getattr", "setattr", "hasattr", "cast", "gcd", "field", "wipe"}
_UNORDERED |= {"minimum", "maximum"}
# In texts that become SQL: a clause without effect, a bound moved, a guard dropped.
_CLAUSES = (
    (" WHERE ", " WHERE TRUE OR "),
    (" HAVING ", " HAVING TRUE OR "),
    (" ON ", " ON TRUE OR "),
    (" IS NOT NULL", " IS NULL"),
    (" NULLS LAST", " NULLS FIRST"),
    ("LEFT JOIN", "JOIN"),
    ("UNION ALL", "UNION"),
    ("DISTINCT ", ""),
    ("NOT EXISTS", "EXISTS"),
    ("TRY_CAST(", "CAST("),
    ("HUGEINT", "BIGINT"),
    ("LEAST(", "GREATEST("),
    ("GREATEST(", "LEAST("),
    ("MIN(", "MAX("),
    ("ABS(", "("),
    ("SIGN(", "("),
    ("FLOOR(", "CEIL("),
    ("ROUND_EVEN(", "ROUND("),
    ("ISFINITE(", "0 = 0 * ("),
    (" BETWEEN ", " NOT BETWEEN "),
    (" <= ", " < "),
    (" >= ", " > "),
    (" < ", " <= "),
    (" > ", " >= "),
    (" >> ", " << "),
    (" + ", " - "),
    (" - ", " + "),
    (" * ", " + "),
    (" // ", " * "),
    (" % ", " // "),
    (" 0 ", " 1 "),
    ("0.5", "0.4"),
    (", 0)", ", 1)"),
)
_LINE, _AROUND = (
    160,
    50,
)  # characters of a statement that are shown: of a longer one, so many on each side of the change
_NUMBERS = {"int", "Fraction", "float"}
_CHECKED_OR_SHOWN = {"strict", "repr"}  # keywords
_SHOWN = {"__repr__", "__str__", "__getattr__", "__dir__"}  # what people read; refusals and losses do not pass here


@dataclass(frozen=True, eq=False)
class Edit:
    """Another value in a field of a node."""

    node: ast.AST
    field: str
    new: Any

    def applied(self, look: Callable[[], Any]) -> Any:
        """Return what `look` gives while the edit is in place."""
        old = getattr(self.node, self.field)
        setattr(self.node, self.field, self.new)
        try:
            return look()
        finally:
            setattr(self.node, self.field, old)


@dataclass(frozen=True, eq=False)
class Mutant:
    """A module with one thing changed; its name says what, however lines move."""

    module: str  # as in kernel/loss
    function: str  # qualified; empty outside functions
    before: str
    after: str
    nth: int  # of those that read the same in this function
    line: int
    place: tuple[str, int] | None  # qualified name and first line of the function to exchange; None if import decides
    key: str  # of the function's code and the change: equal as long as both are
    edit: Edit

    @property
    def name(self) -> str:
        """Return the text that identifies it for people."""
        again = f" ({self.nth})" if self.nth > 1 else ""
        return f"{self.module} {self.function or '-'}: {self.before} → {self.after}{again}"


@dataclass(frozen=True, eq=False)
class _Site:
    """A node that may be changed, and where it is."""

    node: ast.AST
    parent: ast.AST
    statement: ast.AST
    scope: tuple[str, ...]
    function: ast.AST | None  # the outermost one, if the node is in its body
    qualified: str
    inner: ast.AST | None = None  # the innermost one


class Module:
    """The source of a module and its mutants."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name

    @cached_property
    def tree(self) -> ast.Module:
        """Return the code."""
        return ast.parse(self.path.read_text(encoding="utf-8"))

    @cached_property
    def mutants(self) -> list[Mutant]:
        """Return every mutant, in the order of the code."""
        seen: Counter[tuple[str, str, str]] = Counter()
        digests: dict[int, str] = {}
        found = []
        for site in _sites(self.tree):
            for edit in _edits(site):
                before = _line(site.statement)
                # A statement that is removed is not in the statement any more: what replaces it is shown.
                removed = isinstance(site.node, ast.stmt) and edit.node is not site.node
                after = "pass" if removed else edit.applied(lambda s=site: _line(s.statement))
                function = ".".join(site.scope)
                if before == after:
                    continue
                before, after = _shortened(before, after)
                seen[function, before, after] += 1
                nth = seen[function, before, after]
                outer = site.function
                whole = outer if outer is not None else site.statement
                if id(whole) not in digests:
                    digests[id(whole)] = _digest(whole)
                text = "\0".join([self.name, function, digests[id(whole)], before, after, str(nth)])
                key = hashlib.sha256(text.encode()).hexdigest()[:20]
                first = min([outer.lineno, *(d.lineno for d in outer.decorator_list)]) if outer else 0
                place = (site.qualified, first) if outer else None
                line = getattr(site.node, "lineno", getattr(site.statement, "lineno", 1))
                found.append(Mutant(self.name, function, before, after, nth, line, place, key, edit))
        return found

    def tests_of_claim(self, qualified: str) -> frozenset[str]:
        """Return the tests that the docstring of a function, or of its class, names under `Checked by`."""
        return self._claims.get(qualified, frozenset()) | self._claims.get(qualified.partition(".")[0], frozenset())

    @cached_property
    def _claims(self) -> dict[str, frozenset[str]]:
        found = {}
        for site in _sites(self.tree):
            if isinstance(site.node, ast.FunctionDef | ast.ClassDef):
                checked = (ast.get_docstring(site.node) or "").partition("Checked by:")[2]
                found[".".join([*site.scope, site.node.name])] = frozenset(re.findall(r"\btest_\w+", checked))
        return found

    @cached_property
    def digests(self) -> dict[str, str]:
        """Return a hash of the code of each function that is not in another one, by its qualified name."""
        found: dict[str, str] = {}
        for site in _sites(self.tree):
            if isinstance(site.node, ast.FunctionDef) and site.function is None:
                name = ".".join([*site.scope, site.node.name])  # getter and setter have the same
                found[name] = found.get(name, "") + _digest(site.node)[:16]
        return found

    def compiled(self, mutant: Mutant) -> Any:
        """Return the code of the module with a mutant in it; lines are those of the original."""
        return mutant.edit.applied(lambda: compile(ast.fix_missing_locations(self.tree), str(self.path), "exec"))

    def source(self, mutant: Mutant) -> str:
        """Return the text of the module with a mutant in it."""
        return str(mutant.edit.applied(lambda: ast.unparse(self.tree))) + "\n"


def _sites(tree: ast.Module) -> Iterator[_Site]:
    yield from _walk(_Site(tree, tree, tree, (), None, ""))


def _walk(site: _Site) -> Iterator[_Site]:
    """Yield what may be changed: not messages, annotations, docstrings and assertions, which decide nothing."""
    node = site.node
    yield site
    scope, function, qualified, innermost = site.scope, site.function, site.qualified, site.inner
    inside: list[ast.AST] = []
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        scope = (*scope, node.name)
        if function is None:
            qualified = ".".join(scope)
        if isinstance(node, ast.FunctionDef) and function is None:
            inside = list(node.body)
        innermost = node
    left_out = [getattr(node, name, None) for name in ("annotation", "returns", "exc", "cause", "msg")]
    left_out += getattr(node, "decorator_list", [])
    left_out += [child.annotation for child in [getattr(node, "args", None)] if isinstance(child, ast.arg)]
    for child in ast.iter_child_nodes(node):
        text = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        shown = isinstance(child, ast.FunctionDef) and child.name in _SHOWN
        idle = isinstance(child, ast.Assert | ast.Import | ast.ImportFrom)
        # Under `if TYPE_CHECKING`, and names that type checkers need, nothing runs.
        typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        listed = isinstance(child, ast.Assign) and "__all__" in ast.unparse(child.targets[0])
        # Whether lists have equal lengths, and what a dataclass prints: asserted or shown, like the above.
        checked = isinstance(child, ast.keyword) and child.arg in _CHECKED_OR_SHOWN
        if child in left_out or text or shown or idle or typing or listed or checked:
            continue
        outer = node if child in inside else function
        statement = child if isinstance(child, ast.stmt | ast.match_case) else site.statement
        if isinstance(child, ast.ExceptHandler):
            statement = child
        yield from _walk(_Site(child, node, statement, scope, outer, qualified, innermost))


def _edits(site: _Site) -> Iterator[Edit]:  # noqa: C901, PLR0912 - one case a kind
    node, parent = site.node, site.parent
    match node:
        case ast.Compare(ops=ops):
            for place, kind in enumerate(ops):
                yield Edit(node, "ops", [*ops[:place], _COMPARISONS[type(kind)](), *ops[place + 1 :]])
        case ast.BinOp(op=kind) | ast.AugAssign(op=kind):
            if type(kind) in _OPERATORS and not _is_text(node):
                yield Edit(node, "op", _OPERATORS[type(kind)]())
            if isinstance(node, ast.AugAssign):
                yield _replaced(parent, node, ast.Pass())
        case ast.BoolOp(op=kind, values=values):
            yield Edit(node, "op", ast.Or() if isinstance(kind, ast.And) else ast.And())
            for place in range(len(values)):
                left = [*values[:place], *values[place + 1 :]]
                yield _replaced(parent, node, left[0]) if len(left) == 1 else Edit(node, "values", left)
        case ast.IfExp(body=body, orelse=other):
            yield _replaced(parent, node, body)
            yield _replaced(parent, node, other)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield _replaced(parent, node, operand)
        case ast.Call():
            yield from _calls(node, parent)
        case ast.Raise() | ast.Expr(value=ast.Call() | ast.Await()) | ast.Delete() | ast.Break() | ast.Continue():
            yield _replaced(parent, node, ast.Pass())
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) if site.function:
            yield _replaced(parent, node, ast.Pass())
        case ast.Return(value=ast.expr() as value) if site.function:
            yield from _returned(node, value, site.inner)
        case ast.If(test=test, body=body, orelse=[]) if site.function and not isinstance(body[-1], ast.Raise):
            if not _is_constant(test):
                yield Edit(node, "test", ast.Constant(value=False))
        case ast.With(items=[item], body=body) if item.optional_vars is None:
            yield _spliced(parent, node, body)
        case ast.ExceptHandler(body=body) if not isinstance(body[-1], ast.Raise):
            yield Edit(node, "body", [ast.Raise()])
        case ast.comprehension(ifs=ifs):
            for place in range(len(ifs)):
                yield Edit(node, "ifs", [*ifs[:place], *ifs[place + 1 :]])
        case ast.match_case(guard=ast.expr()):
            yield Edit(node, "guard", None)
        case ast.Constant(value=bool() as value):
            yield Edit(node, "value", not value)
        case ast.Constant(value=int() as value):
            for number in (value + 1, value - 1):
                yield Edit(node, "value", number)
        case ast.Constant(value=str() as value) if not isinstance(parent, ast.Expr):
            for old, new in _CLAUSES:
                if old in value and _is_sql(value, old):
                    yield Edit(node, "value", value.replace(old, new, 1))


def _calls(node: ast.Call, parent: ast.AST) -> Iterator[Edit]:
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if name in _OPPOSITES:
        new = _OPPOSITES[name]
        if isinstance(node.func, ast.Name):
            yield Edit(node, "func", ast.Name(id=new, ctx=ast.Load()))
        else:
            yield Edit(node.func, "attr", new)
    if name == "_if" and len(node.args) == 2:
        yield _replaced(parent, node, node.args[1])
    plain = len(node.args) >= 2 and not any(isinstance(arg, ast.Starred) for arg in node.args[:2])
    if plain and name not in _UNORDERED and ast.dump(node.args[0]) != ast.dump(node.args[1]):
        yield Edit(node, "args", [node.args[1], node.args[0], *node.args[2:]])


def _returned(node: ast.Return, value: ast.expr, function: ast.AST | None) -> Iterator[Edit]:
    kind = ast.unparse(function.returns) if getattr(function, "returns", None) else ""
    if kind in _NUMBERS:
        for moved in (ast.Add(), ast.Sub()):
            yield Edit(node, "value", ast.BinOp(left=value, op=moved, right=ast.Constant(value=1)))
    elif kind == "bool":
        if not _is_constant(value):
            yield Edit(node, "value", ast.UnaryOp(op=ast.Not(), operand=value))
    elif not _is_constant(value):
        yield Edit(node, "value", ast.Constant(value=None))


def _is_constant(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant)


def _is_text(node: ast.AST) -> bool:
    """Tell whether an operator surely joins texts: to subtract them fails at once, and tells nothing."""
    sides = [getattr(node, name, None) for name in ("left", "right", "value")]
    return any(isinstance(s, ast.JoinedStr) or (_is_constant(s) and isinstance(s.value, str)) for s in sides)


def _is_sql(text: str, old: str) -> bool:
    """Tell whether a text is one that an engine reads; prose has small letters only."""
    return bool(re.search(r"[A-Z]{2,}|\{|\(", text)) or old.strip() == old or len(text) <= len(old) + 2


def _replaced(parent: ast.AST, node: ast.AST, new: ast.AST) -> Edit:
    """Put another node where this one is."""
    return _spliced(parent, node, [new])


def _spliced(parent: ast.AST, node: ast.AST, new: list[Any]) -> Edit:
    for field, value in ast.iter_fields(parent):
        if value is node:
            return Edit(parent, field, new[0])
        if isinstance(value, list) and any(item is node for item in value):
            return Edit(parent, field, [each for item in value for each in (new if item is node else [item])])
    raise ValueError("node must be a child of parent")


def _line(node: ast.AST) -> str:
    """Return a statement as one line, without what is under it."""
    text = ast.unparse(node)
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return next(line for line in text.splitlines() if line.startswith(("def ", "class ")))
    compound = ast.If | ast.For | ast.While | ast.With | ast.Try | ast.match_case | ast.Match
    if isinstance(node, ast.ExceptHandler):
        return " ".join(text.split())
    return text.strip().splitlines()[0] if isinstance(node, compound) else " ".join(text.split())


def _shortened(before: str, after: str) -> tuple[str, str]:
    """Leave out of long statements what is far from the change."""
    if max(len(before), len(after)) <= _LINE:
        return before, after
    same = next(n for n, (a, b) in enumerate(zip(before + "\0", after + "\1", strict=False)) if a != b)
    back = 0
    while back < min(len(before), len(after)) - same and before[-1 - back] == after[-1 - back]:
        back += 1

    def part(text: str) -> str:
        first, last = max(0, same - _AROUND), len(text) - max(0, back - _AROUND)
        return ("…" if first else "") + text[first:last] + ("…" if last < len(text) else "")

    return part(before), part(after)


def _digest(node: ast.AST) -> str:
    """Return a hash of code without docstrings, comments and layout."""
    dropped = []
    for each in ast.walk(node):
        body = getattr(each, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and _is_constant(body[0].value):
            dropped.append((each, body))
            each.body = body[1:]  # type: ignore[attr-defined]
    try:
        return hashlib.sha256(ast.dump(node).encode()).hexdigest()
    finally:
        for each, body in dropped:
            each.body = body  # type: ignore[attr-defined]
