"""Build the documentation as a site that loads nothing from elsewhere: `make docs` writes it to site/.

    python tools/documentation_site.py [FOLDER]

It has the pages of docs/, the README, the examples, the public names with their signatures and docstrings, and the
commands with their own help.
Links to pages or headings that do not exist, and resources outside of the site, are errors.
"""

import argparse
import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import typer
from typer.testing import CliRunner

import discreet
from discreet.cli import app

ROOT = Path(__file__).resolve().parent.parent
ROOT_PAGES = {  # the README would be the index of the site, which docs/ has
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "README.md": "overview.md",
    "LICENSE": "license.md",
    "CITATION.cff": "license.md",
}
MODULES = ("anonymity", "attacks", "audit", "dbapi", "learn", "local", "policy", "privacy", "publish")
NAV: dict[str, list[str]] = {
    "What it is": ["overview", "license"],
    "My own data": ["start", "policy", "choosing", "scale", "auditing-policy", "limits"],
    "Analyse": ["asking", "python", "learning", "examples/*"],
    "Publish": ["publishing", "report"],
    "Serve": ["serving", "analysts", "agents", "page"],
    "Teach": ["course", "course/*", "attacks", "attacks/*", "anonymity", "local", "glossary"],
    "Review": ["design", "extending", "proofs", "auditing", "versus", "mission", "evidence"],
    "Reference": ["reference", "commands", "api/*", "CHANGELOG", "CONTRIBUTING", "SECURITY"],
}
SETTINGS = """\
[project]
site_name = "Discreet"
site_description = "Differentially private answers to SQL queries about personal data"
use_directory_urls = false
nav = {nav}
[project.theme]
language = "en"
font = false
features = ["content.code.copy", "navigation.footer", "navigation.sections", "navigation.top",
  "search.highlight", "toc.follow"]
[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle = {{ icon = "lucide/sun", name = "Dark mode" }}
[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle = {{ icon = "lucide/moon", name = "Light mode" }}
"""
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*?\bsrc="(?:https?:)?//|<link\b[^>]*?\bhref="(?:https?:)?//"""
)


def copy_pages(target: Path) -> None:
    """Copy docs/ and the pages beside it into one folder, and adjust the links between them."""
    shutil.copytree(ROOT / "docs", target)
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "README.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        (target / ROOT_PAGES[name]).write_text(re.sub(r"\]\((?:docs/)?", "](", text), encoding="utf-8")
    write_license(target / "license.md")
    write_examples(target / "examples")
    for page in target.rglob("*.md"):
        up = "../" * (len(page.relative_to(target).parts) - 1)
        text = re.sub(
            r"\]\((?:\.\./)*(?:examples/(\w+)\.py)", rf"]({up}examples/\1.md", page.read_text(encoding="utf-8")
        )
        for name, copied in ROOT_PAGES.items():
            text = re.sub(rf"\]\((?:\.\./)*{re.escape(name)}", f"]({up}{copied}", text)
        text = re.sub(
            r"\[([^\]]+)\]\((?:\.\./)+(?:bench|mission|src|tests|tools|versus)/?[^)]*\)", r"\1", text
        )  # of the checkout only
        page.write_text(text, encoding="utf-8")


def write_license(page: Path) -> None:
    """Write how to cite Discreet, and its licence."""
    files = {"How to cite Discreet": "CITATION.cff", "Licence": "LICENSE"}
    parts = [
        f"## {title}\n\n```text\n{(ROOT / name).read_text('utf-8').strip()}\n```\n" for title, name in files.items()
    ]
    page.write_text("\n".join(["# Citation and licence\n", *parts]), encoding="utf-8")


def write_examples(target: Path) -> None:
    """Write a page for each example: its cells of text, and its cells of code."""
    target.mkdir()
    for example in sorted((ROOT / "examples").glob("*.py")):
        page = []
        for cell in re.split(r"^# %% ?", example.read_text(encoding="utf-8"), flags=re.MULTILINE):
            kind, _, body = cell.partition("\n")
            if kind == "[markdown]":
                page.append(re.sub(r"^# ?", "", body, flags=re.MULTILINE).strip())
            elif body.strip():
                page.append(f"```python\n{body.strip()}\n```")
        (target / f"{example.stem}.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")


def write_api(target: Path) -> None:
    """Write a page for each public module, with the docstring of every public name."""
    target.mkdir()
    top = [name for name in discreet.__all__ if not inspect.ismodule(getattr(discreet, name))]
    pages = {"discreet": (discreet, top)}
    for name in MODULES:
        module = importlib.import_module(f"discreet.{name}")
        pages[f"discreet.{name}"] = (module, sorted(module.__all__))
    for title, (module, names) in pages.items():
        page = target / f"{title.rpartition('.')[2]}.md"
        page.write_text("\n".join(_module_lines(title, module, names)), encoding="utf-8")


def _module_lines(title: str, module: ModuleType, names: list[str]) -> Iterator[str]:
    yield f"# `{title}`\n"
    yield f"{_doc_text(inspect.getdoc(module) or '')}\n"
    for name in names:
        thing = getattr(module, name)
        yield from _entry_lines(name, thing, level=2)
        if inspect.isclass(thing):
            for method, function in vars(thing).items():
                plain = function.__func__ if isinstance(function, classmethod | staticmethod) else function
                if not method.startswith("_") and (inspect.isfunction(plain) or isinstance(plain, property)):
                    yield from _entry_lines(f"{name}.{method}", plain, level=3)


def _entry_lines(name: str, thing: object, level: int) -> Iterator[str]:
    doc = inspect.getdoc(thing)
    if not doc:
        return
    yield f"{'#' * level} `{name}`\n"
    if callable(thing) and not (inspect.isclass(thing) and issubclass(thing, Exception)):
        yield f"```python\n{name.rpartition('.')[2]}{_signature(thing)}\n```\n"
    yield f"{_doc_text(doc)}\n"


def _signature(thing: object) -> str:
    try:
        signature = inspect.signature(thing)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "(…)"
    own = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    text = str(signature.replace(parameters=own, return_annotation=inspect.Signature.empty))
    return re.sub(r"<factory>|<[\w.]+ object at 0x[0-9a-f]+>", "…", text)


def _doc_text(doc: str) -> str:
    """Return a docstring as Markdown: examples and indented lists become blocks of code."""
    blocks = []
    for block in doc.split("\n\n"):
        lines = block.splitlines()
        if lines and (lines[0].startswith(">>>") or all(line.startswith("    ") for line in lines)):
            blocks.append(f"```python\n{textwrap.dedent(block)}\n```")
        elif re.match(r"(Claim|Proof|Needs|Checked by):", block):
            blocks.append(re.sub(r"^(Claim|Proof|Needs|Checked by):", r"\n**\1.**", block, flags=re.MULTILINE))
        else:
            blocks.append(re.sub(r"\n {4,}(?=\S)", "\n", block))
    return "\n\n".join(blocks)


def write_commands(page: Path) -> None:
    """Write the help text of every command."""
    lines = ["# Commands\n", "What `--help` prints for each command.\n"]
    for words in _commands(typer.main.get_command(app), []):
        help_text = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "100", "TERM": "dumb"}).output
        lines += [f"## `discreet {' '.join(words)}`\n", f"```text\n{help_text.strip()}\n```\n"]
    page.write_text("\n".join(lines), encoding="utf-8")


def _commands(command: object, words: list[str]) -> Iterator[list[str]]:
    subcommands = getattr(command, "commands", None)
    if not subcommands:
        yield words
        return
    for name, subcommand in subcommands.items():
        yield from _commands(subcommand, [*words, name])


def nav(pages: Path) -> str:
    """Return the navigation in TOML; a page that is missing from NAV is an error."""
    sections, listed = ['{ "Discreet" = "index.md" }'], {"index.md"}
    for title, names in NAV.items():
        files = [
            str(path.relative_to(pages))
            for name in names
            for path in (sorted(pages.glob(f"{name}.md")) if "*" in name else [pages / f"{name}.md"])
            if path.exists()
        ]
        listed.update(files)
        if files:
            sections.append(f'{{ "{title}" = {json.dumps(files)} }}')
    if missing := {str(path.relative_to(pages)) for path in pages.rglob("*.md")} - listed:
        raise SystemExit(f"tools/documentation_site.py: NAV has no place for {', '.join(sorted(missing))}")
    return f"[{', '.join(sections)}]"


def external_resources(site: Path) -> list[str]:
    """Return the pages that load something from elsewhere."""
    return [
        str(page.relative_to(site)) for page in sorted(site.rglob("*.html")) if _LOADED.search(page.read_text("utf-8"))
    ]


def broken_links(site: Path) -> list[str]:
    """Return the links within the site that lead to no page, or to no place on it."""
    texts = {
        page.resolve(): page.read_text(encoding="utf-8") for page in site.rglob("*.html") if page.name != "404.html"
    }
    places = {page: set(re.findall(r'\bid="?([^" >]+)', text)) for page, text in texts.items()}
    broken = set()
    for page, text in texts.items():
        for link in re.findall(r'<a\b[^>]*?\bhref="?([^" >]+)', text):
            file, _, place = unquote(link).partition("#")
            target = (page.parent / file).resolve() if file else page
            target = target / "index.html" if target.is_dir() else target
            if not re.match(r"[a-z]+:|//", link) and (
                not target.exists() or place not in {"", *places.get(target, ())}
            ):
                broken.add(f"{page.relative_to(site.resolve())}: {link}")
    return sorted(broken)


def main(arguments: list[str]) -> int:
    """Build the site."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "site", help="where the site is written")
    folder = parser.parse_args(arguments).folder
    with tempfile.TemporaryDirectory(prefix="discreet-site-") as name:
        build = Path(name)
        copy_pages(build / "docs")
        write_api(build / "docs" / "api")
        write_commands(build / "docs" / "commands.md")
        (build / "zensical.toml").write_text(SETTINGS.format(nav=nav(build / "docs")), encoding="utf-8")
        built = subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=build, check=False)
        if built.returncode:
            return built.returncode
        if outside := external_resources(build / "site"):
            print(f"loads resources from elsewhere: {', '.join(outside)}")
            return 1
        if broken := broken_links(build / "site"):
            print("\n".join(["links that lead nowhere:", *broken]))
            return 1
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(build / "site", folder)
    print(f"{folder / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
