"""Every picture of the course is drawn by a command of ours, and shown on a page."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_SPEC = importlib.util.spec_from_file_location("attack_pictures", ROOT / "tools" / "attack_pictures.py")
tool = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(tool)


def test_what_the_tool_draws_is_what_the_pages_show():
    pages = [*(ROOT / "docs" / "attacks").glob("*.md"), ROOT / "docs" / "auditing.md"]
    shown = {name for page in pages for name in re.findall(r"pictures/((?:attack-)?[a-z_-]+)\.svg", page.read_text())}
    drawn = {path.stem for path in (ROOT / "docs" / "pictures").glob("attack-*.svg")}
    assert shown == set(tool.DRAWINGS)
    assert drawn == set(tool.DRAWINGS) - {"audit"}
