"""The definitions of a module: functions, methods, constants, and classes without their methods.

Each has its code as text without docstrings, comments and layout, equal on all versions of Python, and the names and
attributes that occur in it.
"""

import ast
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
DefinitionNode = FunctionNode | ast.ClassDef
STARTUP = "<startup>"  # statements of a module that define nothing: they run before everything else in it
_PACKAGE = "discreet"


@dataclass(frozen=True, eq=False)
class Definition:
    """A piece of code with a name."""

    name: str  # kernel.loss.Loss.__add__
    module: str
    owner: str | None  # the class of a method
    nodes: tuple[ast.stmt, ...]  # several if it is defined under conditions, or changed after it was made

    @property
    def last(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]

    @property
    def node(self) -> ast.stmt:
        """The first statement, which has the docstring."""
        return self.nodes[0]

    @property
    def is_class(self) -> bool:
        """Whether it is a class without its methods."""
        return isinstance(self.node, ast.ClassDef)

    @property
    def is_stub(self) -> bool:
        """Whether it is a function without statements, as in a protocol."""
        body = self.node.body if isinstance(self.node, FunctionNode) else []
        return bool(body) and all(is_text(each) or isinstance(each, ast.Pass) for each in body)

    @cached_property
    def code(self) -> str:
        """The code as text, without docstrings, comments and layout."""
        return "\n".join("".join(_normal(node)) for node in self.nodes)

    @cached_property
    def all_nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the syntax tree, with those of types that annotations give as text."""
        return tuple(each for node in self.nodes for each in _walk_with_annotations(node))

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that occur in it."""
        return frozenset(node.id for node in self.all_nodes if isinstance(node, ast.Name))

    @cached_property
    def signature(self) -> str:
        """What others know of it: all but the statements of a function."""
        if not isinstance(self.node, FunctionNode):
            return f"{self.name} {self.code}"
        return f"{self.name} {''.join(_normal(self.node.args))} {''.join(_normal(self.node.returns))}"


@dataclass
class ModuleCode:
    """The definitions of a module, and the names that it imports."""

    name: str
    imports: dict[str, str]  # local name -> kernel.loss.Loss, numpy, ...
    definitions: dict[str, Definition] = field(default_factory=dict)
    fields: dict[str, dict[str, ast.stmt]] = field(default_factory=dict)  # class -> name in its body -> statement
    # class -> attribute of the instance -> the methods that assign it
    assigned: dict[str, dict[str, set[str]]] = field(default_factory=dict)

    @cached_property
    def hashes(self) -> dict[str, str]:
        """The hash of each definition: of its own code, and of what the imported names in it stand for."""
        found = {}
        for name, definition in self.definitions.items():
            targets = sorted(f"{each} {self.imports[each]}" for each in definition.names if each in self.imports)
            found[name] = digest([definition.code, *targets])
        return found

    @cached_property
    def interface(self) -> tuple[object, ...]:
        """What other modules know of it."""
        signatures = sorted(each.signature for each in self.definitions.values())
        return self.imports, signatures, self.assigned


def digest(lines: Iterable[str]) -> str:
    """Return a short hash of lines."""
    return hashlib.sha256("\n".join(lines).encode("ascii")).hexdigest()[:12]


def module_name(path: str) -> str:
    """Return kernel.ledger for kernel/ledger/__init__, and kernel.loss for kernel/loss."""
    return path.removesuffix("/__init__").replace("/", ".")


@lru_cache(maxsize=512)  # a module that is tried in many versions must not fill the memory
def read_module(path: str, text: str) -> ModuleCode:
    """Return the code of a module, given its path below src/discreet without `.py`."""
    tree, name = ast.parse(text), module_name(path)
    module = ModuleCode(name, _imports(tree, name if path.endswith("__init__") else name.rpartition(".")[0]))
    found: dict[tuple[str, str | None], list[ast.stmt]] = defaultdict(list)
    for defined, owner, statement in _statements(name, tree.body, None, module):
        found[defined, owner].append(statement)
    for (defined, owner), statements in found.items():
        module.definitions[defined] = Definition(defined, name, owner, tuple(statements))
        for attribute in _instance_attributes(statements) if owner else ():
            module.assigned.setdefault(str(owner), {}).setdefault(attribute, set()).add(defined)
    return module


def _imports(tree: ast.Module, package: str) -> dict[str, str]:
    """Return what each imported name stands for, wherever the import is written."""
    imports = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:  # `import a.b` binds a, `import a.b as c` binds a.b
                bound = alias.name if alias.asname else alias.name.partition(".")[0]
                imports[alias.asname or bound] = bound
        elif isinstance(node, ast.ImportFrom):
            parts = [_PACKAGE, *package.split(".")]
            parts = parts[: len(parts) + 1 - node.level] if node.level else []
            source = ".".join([*parts, *filter(None, [node.module])])
            imports |= {alias.asname or alias.name: f"{source}.{alias.name}" for alias in node.names}
    return {name: target.removeprefix(f"{_PACKAGE}.") for name, target in imports.items()}


def _statements(
    prefix: str, body: Iterable[ast.stmt], owner: str | None, module: ModuleCode
) -> Iterator[tuple[str, str | None, ast.stmt]]:
    """Yield each statement with the definition that it belongs to, and the class of that definition."""
    for node in body:
        if isinstance(node, FunctionNode):
            yield f"{prefix}.{node.name}", owner, node
        elif isinstance(node, ast.ClassDef):
            yield from _class_statements(f"{prefix}.{node.name}", node, module)
        elif names := assigned_names(node) - {"__all__"}:
            for name in sorted(names):
                yield f"{prefix}.{name}", owner, node
        elif isinstance(node, ast.If | ast.Try | ast.With):  # definitions below a condition
            parts = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt | ast.ExceptHandler)]
            inner = [each for part in parts for each in (part.body if isinstance(part, ast.ExceptHandler) else [part])]
            yield from _statements(prefix, inner, owner, module)
        elif (
            not isinstance(node, ast.Import | ast.ImportFrom | ast.Pass) and not is_text(node) and not _is_listing(node)
        ):
            yield f"{prefix}.{STARTUP}", owner, node


def _class_statements(name: str, node: ast.ClassDef, module: ModuleCode) -> Iterator[tuple[str, str | None, ast.stmt]]:
    inner = [each for each in node.body if isinstance(each, DefinitionNode)]
    shell = [each for each in node.body if not isinstance(each, DefinitionNode)]
    module.fields[name] = {field: each for each in shell for field in assigned_names(each)}
    yield name, None, ast.ClassDef(**{**dict(ast.iter_fields(node)), "body": shell})
    yield from _statements(name, inner, name, module)


def is_text(node: ast.stmt) -> bool:
    """Tell whether a statement is a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_listing(node: ast.stmt) -> bool:
    """Tell whether a statement only changes __all__, which no code reads."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)


def assigned_names(node: ast.AST) -> set[str]:
    """Return the names that an assignment gives a value or a type."""
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return set()
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    nodes = (each for target in targets for each in ast.walk(target))
    return {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def _walk_with_annotations(node: ast.AST) -> Iterator[ast.AST]:
    for each in ast.walk(node):
        yield each
        for annotation in (getattr(each, "annotation", None), getattr(each, "returns", None)):
            for part in ast.walk(annotation) if annotation is not None else ():
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield from ast.walk(ast.parse(part.value, mode="eval"))


def _instance_attributes(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the attributes of its instance that a method assigns."""
    nodes = (node for statement in statements for node in ast.walk(statement))
    stored = (node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
    return {node.attr for node in stored if isinstance(node.value, ast.Name) and node.value.id == "self"}


def _normal(node: object) -> Iterator[str]:
    """Yield a syntax tree as text: what is empty is left out, so that all Python versions agree."""
    if isinstance(node, list):
        for each in node:
            yield from _normal(each)
            yield ","
    elif isinstance(node, ast.Constant):  # the kind, u"" or "", is layout
        yield f"{type(node.value).__name__} {node.value!a}"
    elif isinstance(node, ast.AST):
        yield type(node).__name__
        for name, value in _fields(node):
            yield f"({name}="
            yield from _normal(value)
            yield ")"
    else:
        yield ascii(node)


def _fields(node: ast.AST) -> Iterator[tuple[str, object]]:
    for name, value in ast.iter_fields(node):
        if value is None or value == [] or name == "ctx":
            continue
        if name == "body" and isinstance(node, DefinitionNode) and is_text(node.body[0]):
            yield name, node.body[1:]
        elif isinstance(node, ast.JoinedStr):
            yield name, _joined(node.values)
        else:
            yield name, value


def _joined(values: list[ast.expr]) -> list[ast.expr]:
    """Join the texts between the braces of an f-string, which versions cut differently."""
    joined: list[ast.expr] = []
    for value in values:
        if isinstance(value, ast.Constant) and joined and isinstance(joined[-1], ast.Constant):
            joined[-1] = ast.Constant(str(joined[-1].value) + str(value.value))
        else:
            joined.append(value)
    return [each for each in joined if not (isinstance(each, ast.Constant) and not each.value)]
