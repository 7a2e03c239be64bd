"""Change one thing in the kernel at a time, and see whether the tests notice.

    python tools/mutate.py MODULE ... [--sample N] [--start K] [--list]

MODULE is a name such as question or render. Each mutant is written into a copy of the project in a temporary folder,
never into the checkout, and the tests that fit its module are run against it, those that find most first. A mutant
that they all pass has survived. The order of mutants is by a hash of their names: the same in every run, and changed
only where the code is. The tests of seals are not among those run: they would notice any change, whatever it means.
"""

import argparse
import ast
import hashlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KERNEL = Path("src") / "discreet" / "kernel"
SLOWEST = 1800  # seconds for the tests without a mutant
PATIENCE = 4  # times as long as those took: a mutant that takes longer is noticed
WORKERS = 2
_MEMORY = 12 << 30  # bytes of addresses: a mutant that drops a bound must not take the machine with it
_EXPR, _GRID, _RELATION = (f"tests/kernel/test_{name}.py" for name in ("expr", "grid", "relation"))
_QUESTION, _RELEASE = (f"tests/kernel/test_{name}.py" for name in ("question", "release"))
_EVALUATE, _REFERENCE, _MATRIX = "tests/engines/test_evaluate.py", "tests/engines/test_reference.py", "tests/matrix"
_FIRST = "tests/matrix/test_engine.py::test_the_engine_equals_the_reference[0]"
# The tests that fit a module, the quickest to find something first.
TESTS = {
    "expr": (_EXPR, _RELATION, _EVALUATE, _MATRIX),
    "grid": (_GRID, _QUESTION, _MATRIX),
    "relation": (_RELATION, _QUESTION, _REFERENCE, _RELEASE, _MATRIX),
    "fold": (_RELATION, _FIRST, _REFERENCE, _MATRIX),
    "question": (_QUESTION, _RELEASE, _MATRIX),
    "render": (_FIRST, _QUESTION, _RELEASE, _MATRIX),
    "writing": (_FIRST, _RELATION, _QUESTION, _EXPR, _EVALUATE, _MATRIX),
    "release": (_RELEASE,),
    "dialect": (_FIRST, _EVALUATE, _GRID, _EXPR, _MATRIX),
}

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
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
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
_SQL = ("render", "writing", "dialect")


@dataclass(frozen=True)
class Mutant:
    """The kernel's module with one thing changed."""

    module: str
    name: str  # says which one, also when lines move
    line: int
    source: str

    @property
    def place(self) -> str:
        """Where it is, as editors read it."""
        return f"{KERNEL / self.module}.py:{self.line}"


@dataclass(frozen=True)
class Outcome:
    """What the tests said to a mutant: the first one that failed, or None if it survived."""

    mutant: Mutant
    found_by: str | None


def mutants(module: str, root: Path = ROOT) -> list[Mutant]:
    """Return every mutant of a module, in an order that looks like chance and is the same every time."""
    tree = ast.parse((root / KERNEL / f"{module}.py").read_text(encoding="utf-8"))
    found: dict[str, Mutant] = {}
    for node, parent, scope in _nodes(tree, tree, ""):
        for edit in _edits(node, parent, module):
            before, after = (" ".join(text.split()) for text in edit.texts())
            name = same = f"{module} {scope or '-'}: {before} → {after}"
            again = 1
            while name in found:
                again += 1
                name = f"{same} ({again})"
            line = getattr(node, "lineno", 1)
            found[name] = Mutant(module, name, line, edit.applied(lambda: ast.unparse(tree)) + "\n")
    return sorted(found.values(), key=lambda each: hashlib.sha256(each.name.encode()).digest())


def _nodes(node: ast.AST, parent: ast.AST, scope: str) -> Iterator[tuple[ast.AST, ast.AST, str]]:
    """Yield what may be changed: not messages, annotations, docstrings and assertions, which decide nothing."""
    yield node, parent, scope
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        scope = f"{scope}.{node.name}".lstrip(".")
    left_out = [getattr(node, name, None) for name in ("annotation", "returns", "exc", "msg")]
    left_out += getattr(node, "decorator_list", [])
    for child in ast.iter_child_nodes(node):
        text = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if child not in left_out and not text and not isinstance(child, ast.Assert):
            yield from _nodes(child, node, scope)


def _edits(node: ast.AST, parent: ast.AST, module: str) -> Iterator["Edit"]:  # noqa: C901, PLR0912 - one case a kind
    match node:
        case ast.Compare(ops=ops):
            for place, kind in enumerate(ops):
                yield Edit(node, "ops", [*ops[:place], _COMPARISONS[type(kind)](), *ops[place + 1 :]])
        case ast.BinOp(op=kind) if type(kind) in _OPERATORS:
            yield Edit(node, "op", _OPERATORS[type(kind)]())
        case ast.BoolOp(op=kind, values=values):
            yield Edit(node, "op", ast.Or() if isinstance(kind, ast.And) else ast.And())
            for place in range(len(values)):
                yield Edit(node, "values", [*values[:place], *values[place + 1 :]])
        case ast.IfExp(body=body, orelse=other):
            yield _replaced(parent, node, body)
            yield _replaced(parent, node, other)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield _replaced(parent, node, operand)
        case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
            yield Edit(node, "func", ast.Name(id=_CALLS[name], ctx=ast.Load()))
        case ast.Call(func=ast.Name(id="_if"), args=[_, value]):
            yield _replaced(parent, node, value)
        case ast.Raise() | ast.Expr(value=ast.Call()):
            yield _replaced(parent, node, ast.Pass())
        case ast.FunctionDef(returns=ast.Name(id="int"), body=[*_, ast.Return(value=ast.expr() as value) as last]):
            for moved in (ast.Add(), ast.Sub()):
                yield Edit(last, "value", ast.BinOp(left=value, op=moved, right=ast.Constant(value=1)))
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            for number in (value + 1, value - 1):
                yield Edit(node, "value", number, _around(node, parent))
        case ast.Constant(value=str() as value) if module in _SQL:
            for old, new in _CLAUSES:
                if old in value:
                    yield Edit(node, "value", value.replace(old, new, 1), _around(node, parent))


@dataclass(frozen=True)
class Edit:
    """Another value in a field of a node, and what to show of the tree for it."""

    node: ast.AST
    field: str
    new: Any
    around: ast.AST | None = None
    replaces: tuple[ast.AST, ast.AST] | None = None

    def texts(self) -> tuple[str, str]:
        """Return what stands there before and after."""
        if self.replaces:
            return _shown(self.replaces[0]), _shown(self.replaces[1])
        before = _shown(self.around or self.node)
        return before, self.applied(lambda: _shown(self.around or self.node))

    def applied(self, look: Callable[[], str]) -> str:
        """Return what `look` gives while the edit is in place."""
        old = getattr(self.node, self.field)
        setattr(self.node, self.field, self.new)
        try:
            return look()
        finally:
            setattr(self.node, self.field, old)


def _replaced(parent: ast.AST, node: ast.AST, new: ast.AST) -> Edit:
    """Put another node where this one is."""
    for field, value in ast.iter_fields(parent):
        if value is node:
            return Edit(parent, field, new, replaces=(node, new))
        if isinstance(value, list) and any(item is node for item in value):
            return Edit(parent, field, [new if item is node else item for item in value], replaces=(node, new))
    raise ValueError("node must be a child of parent")


def _around(node: ast.AST, parent: ast.AST) -> ast.AST:
    """Return what shows a constant best: what it is part of, unless that is long."""
    fits = isinstance(parent, ast.expr | ast.Assign | ast.Return | ast.keyword) and len(ast.unparse(parent)) < 110
    return parent if fits else node


def _shown(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)


def run(chosen: Iterable[Mutant], root: Path = ROOT, workers: int = WORKERS) -> Iterator[Outcome]:
    """Yield what the tests say to each mutant, in their order; stop if they fail on the code as it is."""
    chosen = list(chosen)
    if not chosen:
        return
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(workers) as pool:
        tests = dict.fromkeys(test for mutant in chosen for test in TESTS[mutant.module])
        intact = _copied(root, Path(folder) / "intact")
        begun = time.monotonic()
        broken = _noticed(intact, tests, {}, SLOWEST)
        if broken:
            raise RuntimeError(f"the tests fail without any mutant: {broken}")
        seconds = 60 + PATIENCE * int(time.monotonic() - begun)
        copies: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for place in range(workers):
            copies.put(Path(shutil.copytree(intact, Path(folder) / str(place))))

        def tried(mutant: Mutant) -> Outcome:
            copy = copies.get()
            path = copy / KERNEL / f"{mutant.module}.py"
            original = path.read_bytes()
            try:
                path.write_text(mutant.source, encoding="utf-8")
                # No byte code of a mutant is kept: it could be taken for that of the next one.
                return Outcome(mutant, _noticed(copy, TESTS[mutant.module], {"PYTHONDONTWRITEBYTECODE": "1"}, seconds))
            finally:
                path.write_bytes(original)
                copies.put(copy)

        yield from pool.map(tried, chosen)


def _copied(root: Path, to: Path) -> Path:
    for name in ("src", "tests"):
        shutil.copytree(root / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(root / "pyproject.toml", to)
    return to


def _noticed(copy: Path, tests: Iterable[str], settings: Mapping[str, str], seconds: int) -> str | None:
    """Run tests in a copy and return the first that failed."""
    limited = (
        f"import resource, sys, pytest; resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY}, {_MEMORY})); "
        "sys.exit(pytest.main(sys.argv[1:]))"
    )
    options = ("-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--tb=no", "--no-header")
    path = os.pathsep.join([str(copy / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, **settings}
    process = subprocess.Popen(  # noqa: S603 - our own tests
        [sys.executable, "-c", limited, *options, *tests],
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"no end within {seconds} seconds"
    if process.returncode == 0:
        return None
    if process.returncode in (4, 5):
        raise RuntimeError(f"pytest could not find the tests: {printed[-2000:]}")
    failed = [line for line in printed.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0] if failed else f"exit code {process.returncode}"


def main(arguments: list[str]) -> int:
    """Run what the command line names and return 1 if a mutant survived."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("modules", nargs="+", choices=sorted(TESTS), metavar="MODULE")
    parser.add_argument("--sample", type=int, help="so many mutants of each module; without it, all")
    parser.add_argument("--start", type=int, default=0, help="leave out so many before them")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    asked = parser.parse_args(arguments)
    end = None if asked.sample is None else asked.start + asked.sample
    chosen = [mutant for module in asked.modules for mutant in mutants(module)[asked.start : end]]
    if asked.list:
        print(*(f"{mutant.place} {mutant.name}" for mutant in chosen), f"{len(chosen)} mutants", sep="\n")
        return 0
    survived = 0
    for outcome in run(chosen):
        survived += outcome.found_by is None
        word = f"killed by {outcome.found_by}" if outcome.found_by else "SURVIVED"
        print(f"{outcome.mutant.place} {outcome.mutant.name}\n    {word}", flush=True)
    print(f"{len(chosen)} mutants, {survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
