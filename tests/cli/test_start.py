"""Imports are lazy: a command imports only the modules it needs."""

import ast
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from discreet.cli.main import _COMMANDS

REPORTED = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})), file=sys.stderr))
"""
CURATOR = {"duckdb", "numpy", "pyarrow", "sqlglot", "cryptography"}
EXTRAS = {"dp_accounting", "matplotlib", "pandas", "polars", "psycopg", "pyspark", "scipy", "sklearn"}
POLICY = """
[data]
name = "visits"
[budget]
epsilon = 1.0
[tables.visits]
source = "visits.csv"
unit = "patient"
groups = 1
rows = 1
columns = { patient = { type = "integer" } }
"""


def imported_by(code, *words, cwd=None):
    command = [sys.executable, "-c", f"{REPORTED}\n{code}", *map(str, words)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1])), done.stdout


def test_importing_discreet_imports_nothing_else():
    found, _ = imported_by("import discreet; print(discreet.__version__)")
    assert "discreet" in found
    assert found & (CURATOR | EXTRAS | {"pydantic", "typer", "rich"}) == set()


@pytest.mark.long
def test_the_list_of_commands_imports_none_of_them():
    found, shown = imported_by("from discreet.cli import app; app()", "--help")
    assert all(name in shown for name in _COMMANDS)
    assert found & (CURATOR | EXTRAS) == set()


@pytest.mark.long
def test_asking_imports_no_extra(tmp_path):
    (tmp_path / "visits.csv").write_text("patient\n1\n2\n")
    (tmp_path / "policy.toml").write_text(POLICY)
    words = ("ask", "policy.toml", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "1/2")
    found, shown = imported_by("from discreet.cli import app; app()", *words, cwd=tmp_path)
    assert "±" in shown
    assert found >= CURATOR
    assert found & EXTRAS == set()


@pytest.mark.parametrize("name", _COMMANDS)
def test_the_list_of_commands_quotes_the_first_line_of_each_help_text(name):
    where, said = _COMMANDS[name]
    module, _, attribute = where.partition(":")
    tree = ast.parse(Path(find_spec(f"discreet.cli.{module}").origin).read_text(encoding="utf-8"))
    if attribute == "app":
        helps = [
            keyword.value.value
            for node in ast.walk(tree)
            for keyword in getattr(node, "keywords", ())
            if keyword.arg == "help"
        ]
        assert said == helps[0]
    else:
        (function,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == attribute)
        assert said == ast.get_docstring(function).split("\n\n")[0]


def test_every_public_name_is_in_its_declared_module():
    import discreet

    for name in discreet.__all__:
        if name not in discreet._MODULES:
            known = discreet._INTERNAL_NAMES.get(name, name)
            tree = ast.parse(
                Path(find_spec(f"discreet.{discreet._MODULE_OF[known]}").origin).read_text(encoding="utf-8")
            )
            assert known in {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)} | {
                alias.asname or alias.name
                for node in tree.body
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
            }
    with pytest.raises(AttributeError, match="nothing"):
        discreet.nothing  # noqa: B018
