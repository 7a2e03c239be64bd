"""Which values the names in a piece of code are bound to, by assignments, loops and `with`."""

import ast
from collections.abc import Iterator

KEY, VALUE = ast.Constant("key"), ast.Constant("value")  # indices of what a loop takes from a container


def bindings(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the targets that a node binds, each with its value."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _taken_apart(target, value)
        case ast.NamedExpr(target=target, value=value):
            yield target, value
        case ast.withitem(context_expr=manager, optional_vars=ast.expr() as target):
            yield from _taken_apart(target, ast.Subscript(manager, KEY))  # f() -> Iterator[X] gives an X
        case ast.For(target=target, iter=container) | ast.comprehension(target=target, iter=container):
            yield from _loop_bindings(target, container)


def _loop_bindings(target: ast.expr, container: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    match target, container:
        case ast.Tuple(elts=[key, value]), ast.Call(func=ast.Attribute(value=mapping, attr="items")):
            yield key, ast.Subscript(mapping, KEY)
            yield from _taken_apart(value, ast.Subscript(mapping, VALUE))
        case ast.Tuple(elts=[_, value]), ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
            yield from _loop_bindings(value, inner)
        case _:
            yield from _taken_apart(target, ast.Subscript(container, KEY))


def _taken_apart(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if not isinstance(target, ast.Tuple):
        yield target, value
    elif isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
        yield from zip(target.elts, value.elts, strict=True)
    else:
        for place, each in enumerate(target.elts):
            yield from _taken_apart(each, ast.Subscript(value, ast.Constant(place)))


def bound_name(node: ast.AST) -> str:
    """Return the name that a node binds; "" if it binds none."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else ""
    return (node.name or "") if isinstance(node, ast.MatchAs | ast.MatchStar | ast.ExceptHandler) else ""
