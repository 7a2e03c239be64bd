"""Which code of the trusted base uses which, directly or not.

What a definition uses errs on the side of too much. A name is looked up in its module and along imports. An attribute
is looked up in the classes that annotations give for the object (mypy checks them); where they give none, `x.loss` uses
every `loss` of every class. A class uses its special methods, which no text names when they run; a method uses its
class.
"""

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from code_definitions import STARTUP, Definition, ModuleCode, module_name, read_module
from code_objects import Objects, is_outside


class CodeGraph:
    """The definitions of some modules, given as texts by path, and what each of them uses.

    Modules that begin with one of `apart` use the others, and are not used by them.
    """

    def __init__(self, texts: Mapping[str, str], apart: Iterable[str] = (), like: "CodeGraph | None" = None) -> None:
        """Read the modules; what code uses is taken from `like`, if its own text and all interfaces are the same."""
        self.texts, self._apart = texts, tuple(apart)
        self.modules = {module_name(path): read_module(path, text) for path, text in texts.items()}
        self.definitions = {name: each for module in self.modules.values() for name, each in module.definitions.items()}
        self.pending: set[tuple[str, str]] = set()  # attributes whose classes are being found out
        self._uses: dict[str, frozenset[str]] = {}
        if like and _interfaces(like) == _interfaces(self):
            known = {name: each for name, each in like.definitions.items() if self.definitions[name] is each}
            self._uses = {name: like.uses(name) for name in known}

    def with_text(self, path: str, text: str) -> "CodeGraph":
        """Return the graph after a change of one module."""
        return CodeGraph({**self.texts, path: text}, self._apart, like=self)

    def uses(self, name: str) -> frozenset[str]:
        """Return the definitions that a definition uses directly."""
        if name not in self._uses:
            self._uses[name] = self.seen_from(name, self._find_uses(self.definitions[name])) - {name}
        return self._uses[name]

    def seen_from(self, name: str, names: Iterable[str]) -> frozenset[str]:
        """Return the definitions that one can use: those of modules that are kept apart only if it is one of them."""
        return frozenset(names) if self.is_apart(name) else frozenset(each for each in names if not self.is_apart(each))

    def is_apart(self, name: str) -> bool:
        """Tell whether a definition is kept apart."""
        return name.startswith(self._apart)

    def reach(self, roots: Iterable[str], also: Mapping[str, set[str]]) -> set[str]:
        """Return the given definitions and all that they use, directly or not; some use others besides (`also`)."""
        reached: set[str] = set()
        waiting = list(roots)
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting += (self.uses(name) | also.get(name, set())) - reached
        return reached

    def whole(self, name: str) -> set[str]:
        """Return a definition, of a class with all its methods and the classes inside it."""
        if not self.definitions[name].is_class:
            return {name}
        inside = self.modules[self.definitions[name].module].definitions
        return {name, *(each for each in inside if each.startswith(f"{name}."))}

    def _find_uses(self, definition: Definition) -> Iterator[str]:
        module = self.modules[definition.module]
        if definition.last != STARTUP and f"{module.name}.{STARTUP}" in module.definitions:
            yield f"{module.name}.{STARTUP}"
        if definition.owner:
            yield definition.owner
        elif definition.is_class:
            yield from (each for each in self.whole(definition.name) if _is_special(each.rpartition(".")[2]))
        for name in definition.names:
            full = self._global(module, name)
            if full in self.definitions:
                yield full
        objects = Objects(self, definition)
        for node in definition.all_nodes:
            match node:
                case ast.Attribute(value=value, attr=attribute):
                    yield from self._attribute(objects, value, attribute)
                case ast.Call(func=ast.Name(id="getattr"), args=[value, ast.Constant(value=str(attribute)), *_]):
                    yield from self._attribute(objects, value, attribute)

    def _attribute(self, objects: Objects, receiver: ast.expr, attribute: str) -> Iterable[str]:
        """Return the definitions that an attribute may be."""
        module = objects.module_of(receiver)
        if module is not None:
            target = self.canonical(f"{module}.{attribute}")
            return [target] if target in self.definitions else ()
        classes = objects.classes_of(receiver)
        found: set[str] = set()
        for owner in classes or ():
            found |= self.class_attribute(owner, attribute) or set()
        if _is_special(attribute):  # comes with its class
            return found
        is_known = classes is not None and not any(map(self._is_open, classes))
        return found if is_known else found | self.members[attribute]

    def _is_open(self, owner: str) -> bool:
        """Tell whether other classes may stand for a class: it is a protocol, or of another part of the project."""
        if owner in self.definitions:
            node = self.definitions[owner].node
            return isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases)
        return not is_outside(owner)

    @cached_property
    def members(self) -> dict[str, set[str]]:
        """The definitions that an attribute of this name may be, in any class."""
        members: dict[str, set[str]] = defaultdict(set)
        for module in self.modules.values():
            for definition in module.definitions.values():
                if definition.owner:
                    members[definition.last].add(definition.name)
            for owner, fields in module.fields.items():
                for name in fields:
                    members[name].add(owner)
            for attributes in module.assigned.values():
                for name, methods in attributes.items():
                    members[name] |= methods
        return members

    @cached_property
    def _subclasses(self) -> dict[str, set[str]]:
        subclasses: dict[str, set[str]] = defaultdict(set)
        for definition in self.definitions.values():
            for base in self._bases(definition) if definition.is_class else ():
                subclasses[base].add(definition.name)
        return subclasses

    def _bases(self, definition: Definition) -> list[str]:
        assert isinstance(definition.node, ast.ClassDef)
        names = [node.id for node in definition.node.bases if isinstance(node, ast.Name)]
        full = (self._global(self.modules[definition.module], name) for name in names)
        return [name for name in full if name in self.definitions]

    def class_attribute(self, owner: str, attribute: str) -> set[str] | None:
        """Return what an attribute of a class is, with what subclasses make of it; None if the class has none."""
        if owner not in self.definitions:
            return None
        module, found = self.modules[self.definitions[owner].module], set[str]()
        if f"{owner}.{attribute}" in module.definitions:
            found.add(f"{owner}.{attribute}")
        if attribute in module.fields.get(owner, ()):
            found.add(owner)
        found |= module.assigned.get(owner, {}).get(attribute, set())
        for name in self._bases(self.definitions[owner]):
            found |= self.class_attribute(name, attribute) or set()
        for name in self._subclasses[owner]:
            found |= {f"{name}.{attribute}"} & set(self.definitions)
        return found or None

    def implementations(self, owner: str, attribute: str) -> set[str]:
        """Return what an attribute of a protocol is in all classes; of another class, nothing more."""
        return self.members[attribute] if self._is_open(owner) else set()

    def alias_attribute(self, alias: str, attribute: str) -> set[str]:
        """Return what an attribute is in the classes that a name stands for, such as `Noise = Laplace | Gaussian`."""
        where, annotation = self.definitions[alias], getattr(self.definitions[alias].node, "value", None)
        nodes = [node for node in ast.walk(annotation) if isinstance(node, ast.Name)] if annotation else []
        names = {name for node in nodes if (name := self.full_name(where, node)) is not None}
        return {name for owner in names for name in self.class_attribute(owner, attribute) or ()}

    def _global(self, module: ModuleCode, name: str) -> str | None:
        """Return the full name that a name of a module stands for; None if the module does not know it."""
        if f"{module.name}.{name}" in module.definitions:
            return f"{module.name}.{name}"
        if name in module.imports:
            return self.canonical(module.imports[name])
        return f"builtins.{name}" if hasattr(builtins, name) else None

    def canonical(self, full: str) -> str:
        """Follow imports of imports to where a name is defined."""
        while full not in self.definitions and full not in self.modules:
            source, _, name = full.rpartition(".")
            if source not in self.modules or name not in self.modules[source].imports:
                break
            full = self.modules[source].imports[name]
        return full

    def full_name(self, definition: Definition, node: ast.expr) -> str | None:
        """Return the full name of a dotted name that is not a local one; None if it has none."""
        if isinstance(node, ast.Attribute):
            before = self.full_name(definition, node.value)
            return self.canonical(f"{before}.{node.attr}") if before and before not in self.definitions else None
        return self._global(self.modules[definition.module], node.id) if isinstance(node, ast.Name) else None

    def without_alias(self, where: Definition, annotation: ast.expr | None) -> tuple[Definition, ast.expr | None]:
        """Return what an annotation stands for that is the name of another."""
        name = self.full_name(where, annotation) if isinstance(annotation, ast.Name | ast.Attribute) else None
        target = self.definitions.get(name or "")
        if target is None or not isinstance(target.node, ast.Assign):
            return where, annotation
        return self.without_alias(target, target.node.value)


def _interfaces(graph: CodeGraph) -> dict[str, tuple[object, ...]]:
    return {name: module.interface for name, module in graph.modules.items()}


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
