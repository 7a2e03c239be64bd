"""The site: built from the pages, the docstrings and the commands, without links that lead nowhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import discreet as dc

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "documentation_site.py"
sys.path.insert(0, str(TOOL.parent))

from documentation_site import broken_links, external_resources  # noqa: E402


@pytest.mark.long
def test_the_site_has_every_page_public_name_and_command_and_loads_nothing_from_elsewhere(tmp_path):
    built = subprocess.run([sys.executable, TOOL, tmp_path / "site"], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    pages = {str(page.relative_to(tmp_path / "site")): page.read_text() for page in (tmp_path / "site").rglob("*.html")}
    written = {str(page.relative_to(ROOT / "docs").with_suffix(".html")) for page in (ROOT / "docs").rglob("*.md")}
    assert written <= set(pages)
    assert {name for name in dc.learn.__all__ if f">{name}<" not in pages["api/learn.html"]} == set()
    assert {f"examples/{each.stem}.html" for each in (ROOT / "examples").glob("*.py")} <= set(pages)
    assert "Try it" in pages["overview.html"]  # the README, beside the index of the documentation
    assert "Apache License" in pages["license.html"]
    for command in ("discreet ask", "discreet ledger verify"):
        assert f">{command}<" in pages["commands.html"]
    assert external_resources(tmp_path / "site") == []
    assert (tmp_path / "site" / "search.json").stat().st_size > 100_000


def test_a_link_that_leads_nowhere_is_noticed(tmp_path):
    (tmp_path / "one.html").write_text('<h2 id="here">1</h2><a href="two.html#there">2</a><a href="#here">1</a>')
    (tmp_path / "two.html").write_text(
        '<a href="one.html#gone">1</a><a href="../three.html">3</a><a href="mailto:a">a</a>'
    )
    assert broken_links(tmp_path) == ["one.html: two.html#there", "two.html: ../three.html", "two.html: one.html#gone"]


def test_a_resource_from_elsewhere_is_noticed(tmp_path):
    (tmp_path / "fine.html").write_text('<a href="https://example.org">out</a><script src="own.js"></script>')
    (tmp_path / "loads.html").write_text('<link rel="stylesheet" href="https://example.org/a.css">')
    assert external_resources(tmp_path) == ["loads.html"]


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.name
)
def test_every_picture_has_a_text(page):
    assert [picture for picture in re.findall(r"!\[(.*?)\]\(", page.read_text()) if len(picture) < 15] == []
