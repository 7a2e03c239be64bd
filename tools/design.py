"""Write the tree of packages into docs/design.md, from the first line of every docstring.

    python tools/design.py [check]

With `check` nothing is written, and the exit code is 1 if the page is out of date.
"""

import ast
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "design.md"
SOURCE = ROOT / "src" / "discreet"
BLOCK = re.compile(r"(<!-- tree: .*? -->\n```\n).*?(```\n)", re.DOTALL)
_WIDTH = 118


def tree() -> str:
    """Return every package with the first line of its docstring and the names of its modules."""
    lines = []
    for package in sorted(path.parent for path in SOURCE.rglob("__init__.py")):
        name = package.relative_to(SOURCE).as_posix()
        indent = "  " * name.count("/")
        if name != ".":
            lines.append(f"{indent}{package.name}/  {_summary(package / '__init__.py')}".rstrip())
        modules = sorted(path.stem for path in package.glob("*.py") if not path.stem.startswith("__"))
        inner = indent + ("" if name == "." else "    ")
        lines += textwrap.wrap(", ".join(modules), _WIDTH, initial_indent=inner, subsequent_indent=inner)
    return "\n".join(lines) + "\n"


def _summary(path: Path) -> str:
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return doc.partition("\n")[0]


def main(arguments: list[str]) -> int:
    """Write the page, or check it."""
    old = PAGE.read_text(encoding="utf-8")
    new = BLOCK.sub(lambda block: block[1] + tree() + block[2], old)
    if arguments == ["check"]:
        return int(new != old)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
