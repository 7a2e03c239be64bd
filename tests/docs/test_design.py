"""docs/design.md shows the tree as it is, and names files that a query really runs through."""

import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import discreet as dc

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import design  # noqa: E402

PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
QUERY = re.search(r"`(SELECT ward.*?)`", PAGE)[1]
MOST = 20


def _files_of_the_walk():
    section = PAGE.partition("## Following one query")[2].partition("Where to look")[0]
    return re.findall(r"^\| `([\w/]+\.py)` \|", section, re.MULTILINE)


def test_the_tree_is_up_to_date():
    assert design.TREE.search(PAGE)[0].count(design.tree()) == 1, "run `python tools/design.py`"


@pytest.mark.long
def test_the_table_of_the_trusted_base_is_up_to_date():
    assert design.SIZES.search(PAGE)[0].count(design.sizes()) == 1, "run `python tools/design.py`"
    assert design.main(["check"]) == 0


def test_a_newcomer_who_follows_a_query_opens_few_files_and_the_query_runs_through_each():
    files = _files_of_the_walk()
    assert 10 < len(files) <= MOST
    policy = dc.policy.Policy.parse(
        """
        [data]
        name = "visits"
        ledger = ":memory:"
        [budget]
        epsilon = 10
        [tables.visits]
        source = "visits"
        unit = "patient"
        groups = 1
        rows = 2
        [tables.visits.columns]
        patient = { type = "integer" }
        ward = { type = "text", in = ["A", "B"] }
        cost = { type = "real", between = [0, 500] }
        """
    )
    visits = pa.table({"patient": [1, 2, 3], "ward": ["A", "B", "A"], "cost": [120.0, 90.0, 300.0]})
    visited = set()

    def note(frame, event, _):
        if event == "call":
            visited.add(frame.f_code.co_filename)

    with dc.open(policy, data={"visits": visits}) as curator:
        sys.setprofile(note)
        try:
            curator.ask(QUERY, epsilon="1/2")
        finally:
            sys.setprofile(None)
    missed = [file for file in files if not any(path.endswith(f"/discreet/{file}") for path in visited)]
    assert missed == []


@pytest.mark.parametrize("page", ["design.md", "extending.md"])
def test_every_path_that_the_page_names_exists(page):
    for path in re.findall(r"`((?:\w+/)+\w+\.py)`", (ROOT / "docs" / page).read_text(encoding="utf-8")):
        assert (ROOT / "src" / "discreet" / path).exists() or (ROOT / path).exists(), path
