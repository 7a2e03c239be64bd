"""Write the generated parts of docs/design.md: the tree of packages, and the size of the trusted base.

    python tools/design.py [check]

With `check` nothing is written, and the exit code is 1 if the page is out of date.
"""

import ast
import re
import sys
import textwrap
from collections import Counter

from code_definitions import module_name
from sealed_code import read_sealed_code
from trusted_base import APART, ROOT, TRUSTED_BASE, physical_lines, source_files, statement_lines

PAGE = ROOT / "docs" / "design.md"
SOURCE = ROOT / "src" / "discreet"
TREE = re.compile(r"(<!-- tree: .*? -->\n```\n).*?(```\n)", re.DOTALL)
SIZES = re.compile(r"(<!-- trusted base: .*? -->\n).*?(\n\n)", re.DOTALL)
_WIDTH = 118


def tree() -> str:
    """Return every package with the first line of its docstring and the names of its modules."""
    lines = []
    for package in sorted(path.parent for path in SOURCE.rglob("__init__.py")):
        name = package.relative_to(SOURCE).as_posix()
        indent = "  " * name.count("/")
        if name != ".":
            text = (package / "__init__.py").read_text(encoding="utf-8")
            summary = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
            lines.append(f"{indent}{package.name}/  {summary}".rstrip())
        modules = sorted(path.stem for path in package.glob("*.py") if not path.stem.startswith("__"))
        inner = indent + ("" if name == "." else "    ")
        lines += textwrap.wrap(", ".join(modules), _WIDTH, initial_indent=inner, subsequent_indent=inner)
    return "\n".join(lines) + "\n"


def sizes() -> str:
    """Return a table of the trusted base, and of what makes claims apart from it: code lines and claims."""
    claims = Counter(claim.definition.module for claim in read_sealed_code().claims.values())
    counts = {}
    for name, path in source_files(TRUSTED_BASE | APART).items():
        text = path.read_text(encoding="utf-8")
        counts[name] = (statement_lines(text), physical_lines(text), claims[module_name(name)])
    lines = ["| module | statements | lines | claims |", "|---|--:|--:|--:|"]
    lines.append(_row("**trusted base**", [counts[name] for name in source_files(TRUSTED_BASE)]))
    for part, patterns in TRUSTED_BASE.items():
        files = source_files({part: patterns})
        lines.append(_row(f"**{part}**", [counts[name] for name in files]))
        lines += [_row(f"`{name}`", [counts[name]]) for name in files if not name.endswith("__init__")]
    for part, patterns in APART.items():
        lines.append(_row(f"apart: **{part}**", [counts[name] for name in source_files({part: patterns})]))
    return "\n".join(lines)


def _row(title: str, counts: list[tuple[int, int, int]]) -> str:
    statements, physical, claims = map(sum, zip(*counts, strict=True))
    return f"| {title} | {statements:,} | {physical:,} | {claims or ''} |"


def main(arguments: list[str]) -> int:
    """Write the page, or check it."""
    old = PAGE.read_text(encoding="utf-8")
    new = TREE.sub(lambda block: block[1] + tree() + block[2], old)
    new = SIZES.sub(lambda block: block[1] + sizes() + block[2], new)
    if arguments == ["check"]:
        return int(new != old)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
