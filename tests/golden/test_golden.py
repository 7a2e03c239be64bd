"""Every query here is read, and what it became is compared with what stands below it.

`DISCREET_GOLDEN=write pytest tests/golden` writes what queries become now; look at the difference before keeping it.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from golden_compact import compact
from golden_policies import POLICIES, PUBLIC

from discreet.engines.dialects.duckdb import DUCKDB
from discreet.kernel.errors import Refused
from discreet.kernel.gather import selects
from discreet.sql import read

HERE = Path(__file__).parent
WRITES = os.environ.get("DISCREET_GOLDEN") == "write"
FILES = sorted(HERE.glob("*.sql"))


@dataclass(frozen=True)
class Case:
    """A query with its title, who asks with which limits, and what it became."""

    title: str
    said: dict[str, str]
    sql: str
    expected: str


def cases(text):
    """Take a file apart: a title, lines that begin with @, the query, and the outcome in a comment."""
    for block in re.split(r"\n\n(?=-- )", text.strip())[1:]:
        head, _, rest = block.partition("/*\n")
        lines = head.strip().splitlines()
        said = dict(line[4:].split(" ", 1) for line in lines if line.startswith("-- @"))
        sql = "\n".join(line for line in lines if not line.startswith("-- "))
        yield Case(lines[0][3:], said, sql, rest.removesuffix("\n*/"))


def policy_of(text):
    return POLICIES[re.match(r"-- policy: (\w+)", text)[1]]


def outcome(case, policy):
    limits = {name: int(case.said[name]) for name in ("groups", "rows") if name in case.said}
    try:
        plan = read(case.sql, policy, PUBLIC, by=case.said.get("by", "owner"), **limits)
    except Refused as refusal:
        return f"refused: {refusal}", ""
    engine = "\n".join(
        f"{part.name}{'' if place is None else f'.{place}'}: {text}"
        for part in plan.parts
        for place, text in selects(part.question, DUCKDB).items()
    )
    return compact(plan), engine


def written(case, found):
    said = [f"-- @{name} {value}" for name, value in case.said.items()]
    return "\n".join([f"-- {case.title}", *said, case.sql, "/*", found, "*/"])


def run(path):
    text = path.read_text()
    policy = policy_of(text)
    found = [(case, *outcome(case, policy)) for case in cases(text)]
    if WRITES:
        first = text.partition("\n")[0]
        path.write_text("\n\n".join([first, *(written(case, now) for case, now, _ in found)]) + "\n")
        engine = "\n\n".join(f"-- {case.title}\n{sql}" for case, _, sql in found if sql)
        path.with_suffix(".engine.txt").write_text(engine + "\n")
    return found


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_queries_become_what_is_written_below_them(path):
    changed = [case.title for case, now, _ in run(path) if now != case.expected]
    assert not changed or WRITES


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_questions_become_the_engine_sql_that_is_written_beside_them(path):
    now = "\n\n".join(f"-- {case.title}\n{sql}" for case, _, sql in run(path) if sql) + "\n"
    assert now == path.with_suffix(".engine.txt").read_text()


def test_every_refusal_has_a_line_a_cause_and_a_way_out():
    told = [case.expected for path in FILES for case in cases(path.read_text()) if case.expected.startswith("refused")]
    shape = re.compile(r"refused: line \d+(?:, [^:]+)?: .+[.?!…] .+[.?!]")
    assert len(told) > 60
    assert [text for text in told if not shape.fullmatch(text)] == []


def test_there_are_a_hundred_queries_and_no_two_of_a_title():
    titles = [(path.stem, case.title) for path in FILES for case in cases(path.read_text())]
    assert len(titles) >= 100
    assert len(set(titles)) == len(titles)
