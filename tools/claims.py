"""The claims of the kernel, and of what people run at home: find them, check them, seal them, print them.

    python tools/claims.py check              list what is wrong; exit code 1 if anything is
    python tools/claims.py seal [NAME ...]    write the seals, of every claim or of those named
    python tools/claims.py proofs             write docs/proofs.md

A claim is a docstring with the blocks Claim, Proof, Needs, Checked by and Seal; each begins a line, and its
further lines are indented. A seal is a hash of the code that the proof was written for: the function or class
without docstrings, comments and layout, the private helpers that it names in its module or class, and the properties
that it reads of its class.
"""

import ast
import hashlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROMISING = ("kernel", "local", "ledger_postgres")
BLOCKS = ("Claim", "Proof", "Needs", "Checked by", "Seal")
# Public functions with these names promise something about privacy, so they must say what and why.
PROMISES = re.compile(r"loss|perturb|choose|charge|settle|covers|for_group|to_epsilon|verify|[a-z]\w*_for|zcdp_\w+")
HOW = "read the proof against the code, then run `python tools/claims.py seal {}`"
RESEAL = "the proof was written for other code; read it again, then run `python tools/claims.py seal {}`"
INTRODUCTION = """# Proofs

What the kernel promises about privacy, and the randomizers of local privacy and the shared ledger after it, with the
reason for each promise. This page is generated from the docstrings by `python tools/claims.py proofs`; do not edit it
by hand. A module comes after those that it imports, so each proof needs only what stands above it, or beside it in
the same module.

*Checked by* names the tests that would fail if the claim were false. The *seal* is a hash of the code that
the proof was written for; when the code changes, the tests fail until somebody has read the proof again and
renewed the seal."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Helpers = dict[str, list[ast.stmt]]


@dataclass(frozen=True)
class Item:
    """A function, method or class, with the private names that it may use."""

    name: str
    node: Definition
    owner: ast.ClassDef | None
    helpers: Helpers

    @property
    def doc(self) -> ast.Constant | None:
        """The docstring as a node: it knows its lines."""
        first = self.node.body[0]
        found = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        return first.value if found and isinstance(first.value.value, str) else None

    @property
    def claims(self) -> bool:
        """Whether the docstring holds a claim, well formed or not."""
        return self.doc is not None and "Claim:" in self.doc.value

    @property
    def must_claim(self) -> bool:
        """Whether the name promises something; stubs of protocols and overloads have no code to prove."""
        marks = [*self.node.decorator_list, *(self.owner.bases if self.owner else [])]
        stub = any(re.search(r"\b(overload|Protocol)\b", ast.unparse(mark)) for mark in marks)
        return not isinstance(self.node, ast.ClassDef) and not stub and bool(PROMISES.fullmatch(self.node.name))


def modules(root: Path) -> dict[str, Path]:
    """Return the modules that promise something by name, such as kernel.loss, those that others import first."""
    base = root / "src" / "discreet"
    paths = {}
    for path in sorted(each for package in PROMISING for each in (base / package).rglob("*.py")):
        parts = path.relative_to(base).with_suffix("").parts
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    needs = {name: _imports(name, path) & set(paths) - {name} for name, path in paths.items()}
    sorter = TopologicalSorter(needs)
    order = []
    try:
        sorter.prepare()
    except CycleError:
        return paths
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += ready
        sorter.done(*ready)
    return {name: paths[name] for name in order}


def _imports(name: str, path: Path) -> set[str]:
    package = ["discreet", *name.split(".")]
    if path.name != "__init__.py":
        package.pop()
    found = set()
    for node in _parse(path).body:
        if isinstance(node, ast.ImportFrom):
            parts = package[: len(package) + 1 - node.level] if node.level else []
            source = ".".join([*parts, *([node.module] if node.module else [])])
            found |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {each.removeprefix("discreet.") for each in found}


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def items(name: str, path: Path) -> Iterator[Item]:
    """Yield every function, method and class of a module, in the order of the text."""
    tree = _parse(path)
    yield from _walk(name, tree, None, _private(tree))


def _walk(name: str, node: ast.AST, owner: ast.ClassDef | None, helpers: Helpers) -> Iterator[Item]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            inner = f"{name}.{child.name}"
            yield Item(inner, child, owner, helpers)
            if isinstance(child, ast.ClassDef):
                yield from _walk(inner, child, child, helpers | _private(child) | _properties(child))
            else:
                yield from _walk(inner, child, None, helpers)
        elif isinstance(child, ast.stmt | ast.ExceptHandler):  # definitions under if, try or with
            yield from _walk(name, child, owner, helpers)


def _private(scope: ast.AST) -> Helpers:
    """Return the statements that define each private name of a module or class body."""
    found: Helpers = {}
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, ast.stmt | ast.ExceptHandler):
            continue
        if isinstance(node, Definition):
            names = {node.name}
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        else:
            for name, statements in _private(node).items():
                found.setdefault(name, []).extend(statements)
            continue
        for name in filter(_is_private, names):
            found.setdefault(name, []).append(node)
    return found


def _properties(owner: ast.ClassDef) -> Helpers:
    """Return the properties of a class: what a method reads there is as much its code as what it calls."""
    found = (node for node in owner.body if isinstance(node, ast.FunctionDef))
    return {node.name: [node] for node in found if any(map(_makes_property, node.decorator_list))}


def _makes_property(decorator: ast.expr) -> bool:
    return ast.unparse(decorator).rpartition(".")[2] in {"property", "cached_property"}


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def seal_of(item: Item) -> str:
    """Return the hash of the code: its own and that of every private helper and property it reaches."""
    reached: dict[str, list[object]] = {}
    waiting: list[ast.AST] = [item.node]
    while waiting:
        for each in ast.walk(waiting.pop()):
            name = each.id if isinstance(each, ast.Name) else each.attr if isinstance(each, ast.Attribute) else ""
            if name in item.helpers and name not in reached:
                reached[name] = [_normal(statement) for statement in item.helpers[name]]
                waiting += item.helpers[name]
    code = repr((_normal(item.node), sorted(reached.items())))
    return hashlib.sha256(code.encode("ascii")).hexdigest()[:12]


def _normal(node: object) -> object:
    """Return a syntax tree as plain tuples: what is empty is left out, so that all Python versions agree."""
    if isinstance(node, list):
        return [_normal(each) for each in node]
    if isinstance(node, ast.Constant):  # the kind, u"" or "", is layout
        return f"{type(node.value).__name__} {node.value!a}"
    if not isinstance(node, ast.AST):
        return ascii(node)
    fields = dict(ast.iter_fields(node))
    if isinstance(node, Definition) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    if isinstance(node, ast.JoinedStr):  # versions differ in how they cut the text between braces
        fields["values"] = _joined(node.values)
    kept = [(name, _normal(value)) for name, value in fields.items() if value is not None and value != []]
    return (type(node).__name__, *kept)


def _joined(values: list[ast.expr]) -> list[ast.expr]:
    joined: list[ast.expr] = []
    for value in values:
        if isinstance(value, ast.Constant) and joined and isinstance(joined[-1], ast.Constant):
            joined[-1] = ast.Constant(joined[-1].value + value.value)
        else:
            joined.append(value)
    return [each for each in joined if not (isinstance(each, ast.Constant) and not each.value)]


def blocks(doc: ast.Constant) -> dict[str, tuple[str, int]]:
    """Return each block's text and the last line, counted from the docstring's first, that belongs to it."""
    first, *rest = str(doc.value).expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    found: dict[str, tuple[str, int]] = {}
    current = None
    for number, line in enumerate([first.strip(), *(line[margin:].rstrip() for line in rest)]):
        begins = re.match(rf"({'|'.join(BLOCKS)}):\s*(.*)", line)
        if begins:
            current = begins[1] if begins[1] not in found else f"second {begins[1]}"
            found[current] = begins[2], number
        elif line and not line.startswith(" "):
            current = None
        elif line and current:
            text = found[current][0]
            space = "" if re.search(r"(^|\w-)$", text) else " "
            found[current] = text + space + line.strip(), number
    return found


def test_names(root: Path) -> set[str]:
    """Return the name of every test function under tests/."""
    trees = (_parse(path) for path in sorted((root / "tests").rglob("*.py")))
    nodes = (node for tree in trees for node in ast.walk(tree))
    functions = (node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {name for name in functions if name.startswith("test_")}


def problems(root: Path = ROOT) -> list[str]:
    """Return one line for each thing that is wrong with a claim."""
    tests = test_names(root)
    found = []
    for module, path in modules(root).items():
        for item in items(module, path):
            if item.claims:
                found += [f"{item.name}: {wrong}" for wrong in _problems_of(item, tests)]
            elif item.must_claim:
                found.append(f"{item.name}: promises something about privacy by its name and has no Claim")
    page = root / "docs" / "proofs.md"
    if not page.exists() or page.read_text(encoding="utf-8") != proofs(root):
        found.append("docs/proofs.md: is out of date; run `python tools/claims.py proofs`")
    return found


def _problems_of(item: Item, tests: set[str]) -> list[str]:
    assert item.doc is not None
    parts = blocks(item.doc)
    text = {name: parts.get(name, ("", 0))[0] for name in BLOCKS}
    named = re.findall(r"\btest_\w+", text["Checked by"])
    found = [f"has no {name}" for name in BLOCKS[:4] if not text[name]]
    found += [f"has a {name}" for name in parts if name not in BLOCKS]
    found += [f"is checked by {name}, which does not exist" for name in named if name not in tests]
    if text["Checked by"] and not named:
        found.append("is checked by no test")
    if text["Seal"] != seal_of(item):
        found.append(RESEAL.format(item.name) if text["Seal"] else f"has no Seal: {HOW.format(item.name)}")
    return found


def seal(root: Path = ROOT, only: tuple[str, ...] = ()) -> list[str]:
    """Write the seals in place, of the claims named or of all, and return the names of those that changed."""
    known = {item.name for module, path in modules(root).items() for item in items(module, path) if item.claims}
    if not known >= set(only):
        raise ValueError(f"no such claim: {', '.join(sorted(set(only) - known))}")
    changed = []
    for module, path in modules(root).items():
        lines = path.read_text(encoding="utf-8").split("\n")
        chosen = [each for each in items(module, path) if each.claims and each.name in (only or known)]
        # From the end, so that the line numbers of those above stay true.
        changed += [item.name for item in reversed(chosen) if _write_seal(lines, item)]
        text = "\n".join(lines)
        if text != path.read_text(encoding="utf-8"):
            path.write_text(text, encoding="utf-8", newline="\n")
    return sorted(changed)


def _write_seal(lines: list[str], item: Item) -> bool:
    doc = item.doc
    assert doc is not None
    parts = blocks(doc)
    if doc.value.count("\n") != doc.end_lineno - doc.lineno:
        raise ValueError(f"{item.name}: a docstring with escaped line ends cannot be sealed")
    if "Claim" not in parts or parts.get("Seal", ("", 0))[0] == seal_of(item):
        return False
    at = doc.lineno - 1 + max(last for _, last in parts.values())
    new = f"Seal: {seal_of(item)}"
    if "Seal" in parts:
        at = doc.lineno - 1 + parts["Seal"][1]
        lines[at] = re.sub(r"Seal:[ \t]*\w*", new, lines[at])
        return True
    indent = " " * (item.node.col_offset + 4)
    if at == doc.end_lineno - 1:  # the closing quotes stand on the last block's line
        raw = lines[at].encode()
        end = doc.end_col_offset - 3
        lines[at : at + 1] = [raw[:end].decode().rstrip(), indent + new, indent + raw[end:].decode()]
    else:
        lines.insert(at + 1, indent + new)
    return True


def proofs(root: Path = ROOT) -> str:
    """Return the page of all claims: modules in the order of their imports, claims in that of the text."""
    page = [INTRODUCTION]
    for module, path in modules(root).items():
        claimed = [item for item in items(module, path) if item.claims]
        if claimed:
            page += ["", f"## {module}"]
        for item in claimed:
            page += ["", f"### `{_signature(item, module)}`"]
            for name, (text, _) in blocks(item.doc).items():
                page += ["", f"**{name}.** {f'`{text}`' if name == 'Seal' else _markdown(text)}"]
    return "\n".join(page) + "\n"


def _signature(item: Item, module: str) -> str:
    name = item.name.removeprefix(f"{module}.")
    if isinstance(item.node, ast.ClassDef):
        return f"class {name}"
    returns = f" -> {ast.unparse(item.node.returns)}" if item.node.returns else ""
    return f"{name}({ast.unparse(item.node.args)}){returns}"


def _markdown(text: str) -> str:
    """Escape what Markdown would take for markup, outside of code; the names of tests are code."""
    pieces = re.split(r"(`[^`]*`)", re.sub(r"(?<!`)\btest_\w+", r"`\g<0>`", text))
    markup = r"[\\*\[]|<(?=[a-zA-Z/!])|(?<![a-zA-Z0-9])_|_(?![a-zA-Z0-9])"
    return "".join(p if p.startswith("`") else re.sub(markup, r"\\\g<0>", p) for p in pieces)


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Run one command and return its exit code."""
    match arguments:
        case ["check"]:
            found = problems(root)
            print(*found, f"{len(found)} problems", sep="\n")
            return 1 if found else 0
        case ["seal", *names]:
            try:
                print(*seal(root, tuple(names)), sep="\n")
            except ValueError as error:
                print(error, file=sys.stderr)
                return 2
            return 0
        case ["proofs"]:
            (root / "docs").mkdir(exist_ok=True)
            (root / "docs" / "proofs.md").write_text(proofs(root), encoding="utf-8", newline="\n")
            return 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
