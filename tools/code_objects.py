"""Which classes the objects in a piece of code may have, as far as annotations and constructors give them.

mypy checks the annotations, so they can be relied on. Whatever they leave open is not known (None), and then every
class is possible.
"""

import ast
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from code_bindings import KEY, VALUE, bindings, bound_name
from code_definitions import Definition, FunctionNode

if TYPE_CHECKING:
    from code_graph import CodeGraph

Classes = frozenset[str] | None  # the classes that an object may have, by their full names; None if that is not known
Annotation = tuple[Definition, ast.expr | None]  # and the definition in which it is written
_PLAIN: Classes = frozenset({"builtins.str"})  # stands for all classes that are not the project's
_OUTSIDE = sys.stdlib_module_names | {"numpy", "cryptography", "psycopg"}
_ANY = {"typing.Any", "typing.Self", "builtins.object", "builtins.type"}
# What these return is never an object of the project; what `next` or `dataclasses.replace` return may be.
_PLAIN_MODULES = {"numpy", "math", "os", "hashlib", "json", "re", "struct", "datetime", "pathlib", "fractions", "time"}
_PLAIN_MODULES |= {"threading", "sqlite3", "sys", "logging", "stat", "ipaddress", "decimal", "fcntl", "zoneinfo"}
_PLAIN_BUILTINS = {
    "str",
    "int",
    "float",
    "bytes",
    "dict",
    "list",
    "set",
    "tuple",
    "frozenset",
    "sorted",
    "len",
    "range",
}
_PLAIN_BUILTINS |= {"bool", "repr", "bytearray", "memoryview", "enumerate", "zip", "map", "filter", "reversed", "open"}
_LITERALS = (
    ast.Constant,
    ast.JoinedStr,
    ast.List,
    ast.Tuple,
    ast.Dict,
    ast.Set,
    ast.ListComp,
    ast.DictComp,
    ast.SetComp,
)
_LITERALS += (ast.GeneratorExp, ast.Compare, ast.Lambda)


def is_outside(name: str) -> bool:
    """Tell whether a full name belongs to Python or a library, not to the project."""
    return name.partition(".")[0] in _OUTSIDE


class Objects:
    """The objects of one definition."""

    def __init__(self, graph: "CodeGraph", definition: Definition) -> None:
        self._graph, self._definition = graph, definition
        self._annotations: dict[str, list[ast.expr | None]] = {}
        self._values: dict[str, list[ast.expr | None]] = {}  # None: bound in a way that is not followed
        self._waiting: set[str] = set()  # local names whose classes are being found out
        if isinstance(definition.node, FunctionNode):
            self._collect()

    def _collect(self) -> None:
        """Note how each local name is bound."""
        followed = set()
        for node in self._definition.all_nodes:
            if isinstance(node, ast.arg):
                self._annotations.setdefault(node.arg, []).append(node.annotation)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                self._annotations.setdefault(node.target.id, []).append(node.annotation)
            for target, value in [*bindings(node), *self._captures(node)]:
                if bound_name(target):
                    followed.add(id(target))
                    self._values.setdefault(bound_name(target), []).append(value)
        for node in self._definition.all_nodes:
            if bound_name(node) and id(node) not in followed:
                self._values.setdefault(bound_name(node), []).append(None)

    def _captures(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.expr]]:
        """Yield the names that `case Where(source, condition)` binds, each with the field that it is."""
        owner = (
            self._graph.definitions.get(self._full_name(node.cls) or "") if isinstance(node, ast.MatchClass) else None
        )
        if owner is not None:
            fields = self._graph.modules[owner.module].fields.get(owner.name, {})
            for pattern, field in zip(node.patterns, fields, strict=False):
                yield pattern, ast.Attribute(node.cls, field)

    def module_of(self, node: ast.expr) -> str | None:
        """Return the module of the project that an expression names; None if it names none."""
        full = self._full_name(node)
        return full if full in self._graph.modules else None

    def classes_of(self, node: ast.expr) -> Classes:  # noqa: PLR0911 - one case for each kind of expression
        """Return the classes that an object may have; a class itself stands for its instances."""
        match node:
            case ast.Name(id="self" | "cls") if self._definition.owner:
                return frozenset({self._definition.owner})
            case ast.Name(id=name) if self._is_local(name):
                return self._local(name)
            case ast.Name():
                return self._global(self._full_name(node))
            case ast.Attribute(value=value, attr=attribute):
                full = self._full_name(node)
                return self._global(full) if full in self._graph.definitions else self._member(value, attribute)
            case ast.Call(func=function, args=args):
                return self._call(function, args)
            case ast.IfExp(body=one, orelse=other):
                return _either([self.classes_of(one), self.classes_of(other)])
            case ast.BoolOp(values=values):
                return _either(map(self.classes_of, values))
            case ast.NamedExpr(value=value):
                return self.classes_of(value)
            case ast.Subscript(value=container, slice=index):
                return self._annotated(self._element(container, index))
        return _PLAIN if isinstance(node, _LITERALS) else None

    def _is_local(self, name: str) -> bool:
        return name in self._annotations or name in self._values

    def _full_name(self, node: ast.expr) -> str | None:
        """Return the full name of a dotted name; None if it begins with a local name, or is none."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        is_local = not isinstance(root, ast.Name) or self._is_local(root.id)
        return None if is_local else self._graph.full_name(self._definition, node)

    def _local(self, name: str) -> Classes:
        if name in self._annotations:  # which holds for every assignment to the name
            return _either(self._annotated((self._definition, note)) for note in self._annotations[name])
        if name in self._waiting:
            return None
        self._waiting.add(name)
        found = _either(None if value is None else self.classes_of(value) for value in self._values[name])
        self._waiting.discard(name)
        return found

    def _global(self, full: str | None) -> Classes:
        """Return the classes of an object that has a full name; of a class, itself."""
        definition = self._graph.definitions.get(full or "")
        if definition is None:
            return _PLAIN if full and is_outside(full) else None
        node = definition.node
        if definition.is_class:
            return frozenset({definition.name})
        if len(definition.nodes) == 1 and isinstance(node, ast.AnnAssign):
            return self._annotated((definition, node.annotation))
        if len(definition.nodes) == 1 and isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            return Objects(self._graph, definition).classes_of(node.value)
        return _PLAIN if isinstance(node, FunctionNode) else None

    def _member(self, value: ast.expr, attribute: str) -> Classes:
        """Return the classes of an attribute, or of what a method returns."""
        owners = self.classes_of(value)
        if owners is None or not all(owner in self._graph.definitions or is_outside(owner) for owner in owners):
            return None
        if not any(owner in self._graph.definitions for owner in owners):
            return _PLAIN
        # Of several classes, those without the attribute are not the object's where it is read.
        names = {name for owner in owners for name in self._graph.class_attribute(owner, attribute) or ()}
        return _either(self._member_of(name, attribute) for name in names) if names else None

    def _member_of(self, name: str, attribute: str) -> Classes:
        """Return the classes of an attribute that is a method, a field of a class, or assigned in a method."""
        definition = self._graph.definitions[name]
        annotation = self._annotation_in(definition, attribute)
        if annotation is not None:
            return self._annotated(annotation)
        if (name, attribute) in self._graph.pending:
            return None
        self._graph.pending.add((name, attribute))
        inside = Objects(self._graph, definition)
        pairs = [pair for node in definition.all_nodes for pair in bindings(node) if _is_own(pair[0], attribute)]
        notes = [node.annotation for node in definition.all_nodes if _is_annotated_own(node, attribute)]
        found = [self._annotated((definition, note)) for note in notes]
        found = found or [inside.classes_of(value) for _, value in pairs] or [None]
        self._graph.pending.discard((name, attribute))
        return _either(found)

    def _annotation_in(self, definition: Definition, attribute: str) -> Annotation | None:
        """Return the annotation of a field or of what a method returns."""
        if definition.last == attribute and isinstance(definition.node, FunctionNode):
            return definition, definition.node.returns
        field = self._graph.modules[definition.module].fields.get(definition.name, {}).get(attribute)
        return (definition, field.annotation) if isinstance(field, ast.AnnAssign) else None

    def _call(self, function: ast.expr, args: list[ast.expr]) -> Classes:  # noqa: PLR0911 - one case for each callee
        full = self._full_name(function)
        definition = self._graph.definitions.get(full or "")
        if definition is not None and isinstance(definition.node, FunctionNode):
            first = definition.node.args.args[0].annotation if definition.node.args.args else None
            if args and isinstance(first, ast.Subscript) and ast.unparse(first.value) == "type":
                return self.classes_of(args[0])  # f(x: type[T], ...) -> T
            return self._annotated((definition, definition.node.returns))
        if definition is not None and definition.is_class:
            return frozenset({definition.name})
        if full == "dataclasses.replace" and args:
            return self.classes_of(args[0])
        if full and (full.partition(".")[0] in _PLAIN_MODULES or full.removeprefix("builtins.") in _PLAIN_BUILTINS):
            return _PLAIN
        where, annotation = self._annotation_of(function)
        if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Callable":
            assert isinstance(annotation.slice, ast.Tuple)
            return self._annotated((where, annotation.slice.elts[-1]))
        return self._member(function.value, function.attr) if isinstance(function, ast.Attribute) else None

    def _annotation_of(self, node: ast.expr) -> Annotation:
        """Return the annotation of a local name, a field, an element, or the result of a function."""
        unknown = self._definition, None
        if isinstance(node, ast.Name) and self._is_local(node.id):
            notes = self._annotations.get(node.id, [])
            return (self._definition, notes[0]) if len(notes) == 1 else unknown
        if isinstance(node, ast.Subscript):
            return self._element(node.value, node.slice)
        called = node.func if isinstance(node, ast.Call) else node
        full = self._full_name(called)
        if full in self._graph.definitions:
            found = self._graph.definitions[full]
            is_annotated = isinstance(found.node, ast.AnnAssign)
            return found, found.node.annotation if is_annotated else getattr(found.node, "returns", None)
        if isinstance(called, ast.Attribute):
            owners = self.classes_of(called.value) or ()
            names = {name for owner in owners for name in self._graph.class_attribute(owner, called.attr) or ()}
            if len(names) == 1:
                found = self._graph.definitions[names.pop()]
                return self._annotation_in(found, called.attr) or unknown
        return unknown

    def _element(self, container: ast.expr, index: ast.expr) -> Annotation:
        """Return the annotation of an element of a container: of a mapping, of a key or a value."""
        match container:
            case ast.Call(func=ast.Name(id="sorted" | "list" | "tuple" | "reversed" | "set"), args=[inner, *_]):
                return self._element(inner, index)
            case ast.Call(func=ast.Attribute(value=inner, attr="values"), args=[]):
                return self._element(inner, VALUE)
        where, annotation = self._graph.without_alias(*self._annotation_of(container))
        if not isinstance(annotation, ast.Subscript):
            return where, None
        inside = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        types = [each for each in inside if not (isinstance(each, ast.Constant) and each.value is ...)]
        place = 0
        if len(types) > 1 and "uple" in ast.unparse(annotation.value):
            place = index.value if isinstance(index, ast.Constant) and type(index.value) is int else len(types)
        elif len(types) > 1:  # a mapping
            place = int(index is not KEY)
        return where, types[place] if -len(types) <= place < len(types) else None

    def _annotated(self, annotation: Annotation) -> Classes:
        """Return the classes that an annotation allows."""
        where, node = annotation
        match node:
            case ast.Constant(value=None):
                return frozenset()
            case ast.Constant(value=str(text)):
                return self._annotated((where, ast.parse(text, mode="eval").body))
            case ast.BinOp(left=left, right=right):
                return _either([self._annotated((where, left)), self._annotated((where, right))])
            case ast.Subscript(value=container):
                return self._annotated((where, container))
            case ast.Name() | ast.Attribute():
                return self._named_type(self._graph.full_name(where, node))
        return None

    def _named_type(self, full: str | None) -> Classes:
        definition = self._graph.definitions.get(full or "")
        if definition is None:
            return _PLAIN if full and is_outside(full) and full not in _ANY else None
        if definition.is_class:
            return frozenset({definition.name})
        value = definition.node.value if isinstance(definition.node, ast.Assign) else None
        return None if isinstance(value, ast.Call) else self._annotated((definition, value))  # a call makes a TypeVar


def _is_own(node: ast.expr, attribute: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == attribute and ast.unparse(node.value) == "self"


def _is_annotated_own(node: ast.AST, attribute: str) -> bool:
    return isinstance(node, ast.AnnAssign) and _is_own(node.target, attribute)


def _either(classes: Iterable[Classes]) -> Classes:
    found: set[str] = set()
    for each in classes:
        if each is None:
            return None
        found |= each
    return frozenset(found)
