"""The project's own rules: a small kernel, few dependencies, a light import, a short README."""

import ast
import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from trusted_base import TRUSTED_BASE, physical_lines, source_files, statement_lines  # noqa: E402

# Lines of code by statement, whatever their layout; docs/design.md lists every module.
KERNEL_LIMIT = 3000
TRUSTED_BASE_LIMIT = 4918
ATTACKS_LIMIT = 4800
KERNEL = sorted((ROOT / "src" / "discreet" / "kernel").rglob("*.py"))
RANDOMIZERS = sorted((ROOT / "src" / "discreet" / "local").rglob("*.py"))
NAMES = [str(path.relative_to(ROOT / "src" / "discreet")) for path in KERNEL]
each_kernel_module = pytest.mark.parametrize("path", KERNEL, ids=NAMES)


def imported(tree, package):
    """Return the full name of every module that is imported, also inside functions."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package[: len(package) + 1 - node.level] if node.level else []
            found.add(".".join([*parts, *filter(None, [node.module])]))
    return found


def package_of(path):
    return path.relative_to(ROOT / "src").parts[:-1]


def strangers(modules):
    allowed = {"numpy", "cryptography"} | set(sys.stdlib_module_names)
    own = re.compile(r"discreet\.kernel(\.|$)")
    return sorted(name for name in modules if name.split(".")[0] not in allowed and not own.match(name))


CHANCE = {"random", "default_rng", "RandomState", "SeedSequence", "seed"}


def chance_in(tree):
    """Return the names of ordinary randomness that a module uses, defines or takes as a parameter."""
    found = set()
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "asname", "module"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                found |= CHANCE & set(value.split("."))
    return found


def test_statement_lines_do_not_depend_on_layout_docstrings_and_comments():
    values = "x = (\n    1,  # one\n)\n"
    text = f'"""Two\nlines."""\n\n# why\n{values}\n\ndef f():\n    """Doc."""\n    return 2\n'
    assert statement_lines(text) == 3
    assert physical_lines(text) == 5


@pytest.mark.long
def test_the_trusted_base_is_small():
    sizes = {
        name: statement_lines(path.read_text(encoding="utf-8")) for name, path in source_files(TRUSTED_BASE).items()
    }
    kernel = sum(size for name, size in sizes.items() if name.startswith("kernel/"))
    print(f"kernel {kernel}, trusted base {sum(sizes.values())}")
    assert kernel <= KERNEL_LIMIT
    assert sum(sizes.values()) <= TRUSTED_BASE_LIMIT
    assert {name: size for name, size in sizes.items() if size > 250} == {}


@pytest.mark.long
def test_the_attacks_are_small():
    attacks = (ROOT / "src" / "discreet" / "attacks").rglob("*.py")
    assert sum(statement_lines(path.read_text(encoding="utf-8")) for path in attacks) <= ATTACKS_LIMIT


@pytest.mark.long
def test_a_class_name_occurs_once():
    places = {}
    for path in sorted((ROOT / "src" / "discreet").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


@each_kernel_module
def test_the_kernel_imports_numpy_cryptography_and_the_standard_library_only(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert strangers(imported(tree, package_of(path))) == []
    called = {getattr(node, "id", getattr(node, "attr", None)) for node in ast.walk(tree)}
    assert not called & {"__import__", "import_module"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f():\n    import scipy.stats", ["scipy.stats"]),
        ("from discreet.policy import Policy", ["discreet.policy"]),
        ("from ..policy import Policy", ["discreet.policy"]),
        ("from .loss import Loss\nfrom discreet.kernel.numbers import share\nimport numpy.linalg, hashlib", []),
    ],
)
def test_a_foreign_import_is_detected_anywhere(text, found):
    assert strangers(imported(ast.parse(text), ("discreet", "kernel"))) == found


@each_kernel_module
def test_the_kernel_uses_no_seed_and_no_ordinary_randomness(path):
    assert chance_in(ast.parse(path.read_text(encoding="utf-8"))) == set()


@pytest.mark.parametrize("path", RANDOMIZERS, ids=lambda path: path.name)
def test_local_randomizers_use_no_seed_and_no_ordinary_randomness(path):
    assert chance_in(ast.parse(path.read_text(encoding="utf-8"))) == set()


@pytest.mark.parametrize(
    "text",
    [
        "import random",
        "import numpy.random",
        "from numpy import random as r",
        "np.random.normal()",
        "default_rng()",
        "def perturb(value, seed): ...",
        "perturb(1, seed=2)",
        "source.seed = 1",
    ],
)
def test_ordinary_randomness_is_detected_in_every_form(text):
    assert chance_in(ast.parse(text))


def test_the_version_and_its_date_are_the_same_everywhere():
    version = re.search(r'__version__ = "(.*)"', (ROOT / "src" / "discreet" / "__init__.py").read_text())[1]
    newest = re.search(r"^## \[(\d.*?)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    cited = re.findall(r"^(?:version|date-released): (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert [version, newest[2]] == cited == list(newest.groups())


def test_the_readme_is_short():
    readme = ROOT / "README.md"
    if not readme.exists():
        pytest.skip("no README")
    assert len(readme.read_text(encoding="utf-8").splitlines()) <= 120


# A home or working directory of somebody's machine, or a package index.
TRACES = re.compile(
    r"(?<![\w.])/(?:root|home|Users|work)/\w"
    r"|[A-Z]:\\+Users\\+\w"
    r"|https?://[^\s\"'<>]+/simple\b"
    r"|(?:extra-|default-)?index-url\s*="
    r"|https?://(?:10|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d"
)


@pytest.mark.parametrize(
    "text",
    [
        "see /{}/ana/data.csv".format("home"),
        "/{}/x".format("root"),
        "https://mirror.example.org/{}".format("simple"),
    ],
)
def test_a_trace_of_a_machine_is_detected(text):
    assert TRACES.search(text)


@pytest.mark.long
def test_tracked_files_name_no_machine_and_no_private_index():
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = []
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.is_file():
            for number, line in enumerate(path.read_bytes().decode("utf-8", "replace").splitlines(), 1):
                found += [f"{name}:{number}: {trace[0]}" for trace in TRACES.finditer(line)]
    assert found == []


HEAVY = {
    "typer",
    "pydantic",
    "rich",
    "matplotlib",
    "scipy",
    "dp_accounting",
    "duckdb",
    "pyarrow",
    "sqlglot",
    "pandas",
    "polars",
}
IMPORT = """
import json, sys, time
start = time.perf_counter()
import discreet
seconds = time.perf_counter() - start
print(json.dumps([seconds, sorted({name.split(".")[0] for name in sys.modules})]))
"""


def test_importing_discreet_loads_nothing_heavy():
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    seconds, loaded = json.loads(done.stdout)
    print(f"import discreet: {seconds:.3f} s")
    assert "discreet" in loaded
    assert HEAVY & set(loaded) == set()


def test_the_core_installs_at_most_20_packages():
    requirements = pytest.importorskip("packaging.requirements")
    names = pytest.importorskip("packaging.utils")
    found, waiting = set(), [("discreet", frozenset())]
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in found:
            continue
        found.add((name, extras))
        try:
            needed = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{name} is not installed")
        for line in needed:
            need = requirements.Requirement(line)
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in {"", *extras}):
                waiting.append((names.canonicalize_name(need.name), frozenset(need.extras)))
    packages = {name for name, _ in found} - {"discreet"}
    assert "numpy" in packages
    assert len(packages) <= 20, sorted(packages)
