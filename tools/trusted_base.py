"""The trusted base: the one list of the modules on which the guarantee rests, and how their size is counted.

A defect in any other module can make an answer wrong or missing, but not make it disclose more than was charged. Seals
(claims.py), mutation testing (mutate.py), the limits on size (tests/test_layout.py) and docs/design.md use this list.
"""

import ast
import io
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# By part, so that docs/design.md can say what each is for; the patterns are paths below src/discreet without `.py`.
TRUSTED_BASE = {
    "the kernel": ("kernel/**/*",),
    "dialects and casts of the engines": (
        "engines/common_sql",
        "engines/portable_regex",  # these two: an engine that fails for some rows only would disclose them
        "engines/size_limit",
        "engines/row_selects",
        "engines/*/dialect",
        "engines/*/casts",
        "engines/*/text_functions",
        "engines/postgres/float_arithmetic",
        "engines/spark/literals",
        "engines/spark/regex*",
    ),
    "the totals cache and the groups that a release stores": ("engines/totals_cache", "engines/stored_groups"),
    "the catalog": ("policy/catalog",),
    "the SQLite ledger": ("ledger_sqlite/**/*",),
    "the PostgreSQL ledger": ("ledger_postgres/**/*", "postgres/**/*"),
}
# These make claims too, but nothing above relies on them: people randomise their own reports with the local model,
# calibration and conversion choose or show what the kernel checks, and ledgers are verified and moved by their owners.
APART = {
    "the local model": ("local/**/*",),
    "definitions, calibration and private selection": ("privacy/**/*",),
    "verifying and moving ledgers": ("ledger_admin/**/*",),
}

_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_LAYOUT = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
)


def source_files(parts: dict[str, tuple[str, ...]], root: Path = ROOT) -> dict[str, Path]:
    """Return the files of some parts, by their paths below src/discreet without `.py`."""
    source = root / "src" / "discreet"
    paths = sorted(
        {path for patterns in parts.values() for pattern in patterns for path in source.glob(f"{pattern}.py")}
    )
    return {path.relative_to(source).with_suffix("").as_posix(): path for path in paths}


def statement_lines(text: str) -> int:
    """Count the lines of code, one for each statement or header however it is broken into lines, without docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return sum(bool(line.strip()) for line in ast.unparse(tree).split("\n"))


def physical_lines(text: str) -> int:
    """Count the lines with code on them, without blank lines, comments and docstrings."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstrings |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    code = {line for token in tokens if token.type not in _LAYOUT for line in range(token.start[0], token.end[0] + 1)}
    return len(code - docstrings)
