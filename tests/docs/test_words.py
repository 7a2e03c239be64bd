"""Docstrings, messages and documentation use the field's words: phrases of an earlier dialect do not come back."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What to write instead is in docs/glossary.md. Phrases of several words only: each word by itself is ordinary English.
BANNED = (
    "what the noise can have changed",
    "as far as the noise",
    "margins above a quarter",
    "weighs at most",
    "may weigh",
    "can weigh",
    "weighs less",
    "weigh less",
    "come out too low",
    "comes out too low",
    "too dear",
    "what still fits",
    "does not fit. what",
    "price does not fit",
    "told before",
    "cannot be told",
    "made finer",
    "asked more exactly",
    "asked before",
    "by the law",
    "made up",
    "made-up",
    "way out",
    "at this price",
    "for this price",
    "those who are protected",
    "limits that bite",
    "does not begin a question",
    "safe for every row",
    "do not fit together",
    "where it lies",
    "is not without people",
    "what hangs on it",
    "may not ask about",
    "how sure:",
    "in so many",
    "tells of a unit",
    "told of a unit",
    "lets tell",
    "equal strangers",
    "what it costs in words",
)
_PHRASES = re.compile(rf"\b(?:{'|'.join(map(re.escape, BANNED))})(?!\w)")


def _strings(path):
    """Yield every string of a module with its line: docstrings, messages, labels."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def _found(text):
    return _PHRASES.findall(" ".join(text.lower().split()))


@pytest.mark.parametrize(
    "package", sorted(p.name for p in (ROOT / "src" / "discreet").iterdir() if p.suffix != ".typed")
)
def test_no_string_of_the_source_has_a_banned_phrase(package):
    place = ROOT / "src" / "discreet" / package
    paths = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    found = [
        f"{path.relative_to(ROOT)}:{line} {phrase}"
        for path in paths
        for line, text in _strings(path)
        for phrase in _found(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    "page", sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]), ids=lambda path: path.name
)
def test_no_page_has_a_banned_phrase(page):
    if page.name != "CHANGELOG.md":  # it names what was renamed
        assert _found(page.read_text(encoding="utf-8")) == []


def test_a_banned_phrase_is_found_across_lines():
    assert _found("the price\n    does not fit") == ["price does not fit"]
    assert _found("it is known") == []
