"""Golden tests: what each pass makes of every query, and the SELECTs for each engine.

The .sql files have the queries, with their questions to the kernel or their refusal; `parse/`, `resolve/` and
`postprocess/` have what these passes make of them, and the .txt files beside the queries the SELECTs.

`DISCREET_GOLDEN=write pytest tests/golden` writes the current plans; review the difference before committing it.
"""

import os
import re
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path

import duckdb
import pytest
from golden_compact import compact, resolved_sql
from golden_policies import POLICIES, PUBLIC

from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.postgres.dialect import POSTGRES
from discreet.engines.spark.dialect import SPARK
from discreet.kernel.errors import Refused
from discreet.kernel.expr import Type
from discreet.kernel.relation import PublicTable, Scan
from discreet.kernel.sqlgen.dialect import quote_name
from discreet.kernel.sqlgen.question_sql import write_selects
from discreet.postgres.server import connect, driver
from discreet.query.passes import draft_query, plan_of
from discreet.query.relations.bound_sources import BindContext, RequestedBounds

HERE = Path(__file__).parent
WRITES = os.environ.get("DISCREET_GOLDEN") == "write"
FILES = sorted(HERE.glob("*.sql"))
DIALECTS = {"engine": DUCKDB, "postgres": POSTGRES, "spark": SPARK}  # by the ending of the file with their SELECTs
each_file = pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
each_dialect = pytest.mark.parametrize("kind", DIALECTS)


@dataclass(frozen=True)
class Case:
    """A query with its title, analyst, bounds, and expected outcome."""

    title: str
    said: dict[str, str]
    sql: str
    expected: str


def cases(text):
    """Parse a file: a title, lines that begin with @, the query, and the outcome in a comment."""
    for block in re.split(r"\n\n(?=-- )", text.strip())[1:]:
        head, _, rest = block.partition("/*\n")
        lines = head.strip().splitlines()
        said = dict(line[4:].split(" ", 1) for line in lines if line.startswith("-- @"))
        sql = "\n".join(line for line in lines if not line.startswith("-- "))
        yield Case(lines[0][3:], said, sql, rest.removesuffix("\n*/"))


def policy_of(text):
    return POLICIES[re.match(r"-- policy: (\w+)", text)[1]]


def outcome(case, policy):
    """Return the outcome of a query as text, and the plan unless it was refused."""
    limits = RequestedBounds(*(int(case.said[name]) if name in case.said else None for name in ("groups", "rows")))
    try:
        draft = draft_query(case.sql, BindContext(policy, PUBLIC, case.said.get("by", "owner"), limits))
    except Refused as refusal:
        return f"refused: {refusal}", None
    return compact(draft), draft


@cache
def run(path):
    text = path.read_text()
    policy = policy_of(text)
    return [(case, *outcome(case, policy)) for case in cases(text)]


def asked(plan, dialect):
    """Return the SELECTs of a plan, with the names of their releases; contribution histograms are all alike."""
    return [
        (f"{part.name}{'' if place is None else f'.{place}'}", text)
        for part in plan.answering
        for place, text in write_selects(part.question, dialect).items()
    ]


def without_letters(sql):
    """Shorten lists of all letters, which depend on the Unicode version of Python."""
    parts = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`"
    return re.sub(parts, lambda part: "'…'" if part[0][0] == "'" and len(part[0]) > 300 else part[0], sql)


def written(case, found):
    said = [f"-- @{name} {value}" for name, value in case.said.items()]
    return "\n".join([f"-- {case.title}", *said, case.sql, "/*", found, "*/"])


@pytest.mark.long(only=["checkins"])
@each_file
def test_queries_have_the_recorded_plans_or_refusals(path):
    if WRITES:
        first = path.read_text().partition("\n")[0]
        path.write_text("\n\n".join([first, *(written(case, now) for case, now, _ in run(path))]) + "\n")
    assert [case.title for case, now, _ in run(path) if now != case.expected and not WRITES] == []


PASSES = {
    "parse": lambda draft: draft.parsed.query.sql("postgres"),
    "resolve": lambda draft: resolved_sql(draft.resolved),
    "postprocess": lambda draft: draft.postprocess.sql,
}


@pytest.mark.parametrize("name", PASSES)
@each_file
def test_each_pass_gives_the_recorded_text(path, name):
    texts = [f"-- {case.title}\n{PASSES[name](draft)}" for case, _, draft in run(path) if draft is not None]
    now, beside = "\n\n".join(texts) + "\n", HERE / name / f"{path.stem}.txt"
    if WRITES:
        beside.parent.mkdir(exist_ok=True)
        beside.write_text(now)
    assert now == beside.read_text()


@pytest.mark.long(only=["checkins-spark"])
@each_dialect
@each_file
def test_questions_have_the_recorded_engine_sql(path, kind):
    plans = [(case.title, plan_of(draft)) for case, _, draft in run(path) if draft is not None]
    texts = [
        [f"-- {title}", *(f"{name}: {without_letters(sql)}" for name, sql in asked(plan, DIALECTS[kind]))]
        for title, plan in plans
    ]
    now = "\n\n".join("\n".join(lines) for lines in texts) + "\n"
    beside = path.with_suffix(f".{kind}.txt")
    if WRITES:
        beside.write_text(now)
    assert now == beside.read_text()


# No engine sums doubles: the result would depend on the order of the rows, by more than the noise covers.


@each_dialect
def test_only_integers_are_counted_and_summed(kind):
    known = {"COUNT", "SUM", "SUM_NO_OVERFLOW", "MIN", "MAX", "BOOL_AND", "BOOL_OR", "STRING_AGG"}
    known |= {"ROW_NUMBER", "DENSE_RANK"}
    for path in HERE.glob(f"*.{kind}.txt"):
        bare = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", "", path.read_text())
        called = set(re.findall(r"\b([A-Z_]+)\(", bare.upper()))
        strange = {name for name in called if re.search("AVG|MEAN|STD|VAR|AGG|SUM|QUANT|MEDIAN|CORR|REGR|TOTAL", name)}
        assert strange <= known


def mentioned(node):
    """Yield every table of a question with its columns."""
    if isinstance(node, Scan):
        yield node.table, {column.name: column.type for column in node.columns}
    if isinstance(node, PublicTable):
        yield node.table, {column.name: column.type for _, column in node.columns}
    if isinstance(node, tuple):
        for each in node:
            yield from mentioned(each)
    elif is_dataclass(node):
        yield from mentioned(tuple(getattr(node, field.name) for field in fields(node) if field.compare))


def empty_tables(plan, types):
    """Yield the statements that create a plan's tables, without rows."""
    found: dict[str, dict[str, Type]] = {}
    for part in plan.releases:
        for table, columns in mentioned(part.question):
            found.setdefault(table, {}).update(columns)
    for table, columns in found.items():
        listed = ", ".join(f"{quote_name(name)} {types[kind]}" for name, kind in columns.items())
        yield f"CREATE TEMPORARY TABLE {quote_name(table)} ({listed or 'nothing INTEGER'})"


def check_binding(path, dialect, execute, stops):
    """Check that an engine accepts every SELECT, also with BIT_OR, which takes only integers, in place of SUM."""
    for plan in (plan_of(draft) for _, _, draft in run(path) if draft is not None):
        for sql in empty_tables(plan, dialect.types):
            execute(sql)
        for _, sql in asked(plan, dialect):
            whole = re.sub(r"\bSUM\(", "BIT_OR(", sql)
            execute(f"EXPLAIN {sql}")
            execute(f"EXPLAIN {whole}")
            if whole != sql:
                with pytest.raises(stops):
                    execute(f"EXPLAIN {whole.replace('BIT_OR(', 'BIT_OR(CAST(1 AS DOUBLE PRECISION) * ')}")
        for table in {table for part in plan.releases for table, _ in mentioned(part.question)}:
            execute(f"DROP TABLE {quote_name(table)}")


@pytest.mark.long(but=["checkins_chosen", "meter", "shop_queries", "weblog"])
@each_file
def test_duckdb_sums_only_integers(path):
    with duckdb.connect() as connection:
        check_binding(path, DUCKDB, connection.execute, duckdb.Error)


@each_file
def test_postgresql_sums_only_integers(path, postgres):
    with connect(postgres.url()) as connection:
        check_binding(path, POSTGRES, connection.execute, driver().Error)


def test_every_refusal_has_a_line_a_cause_and_a_hint():
    told = [case.expected for path in FILES for case in cases(path.read_text()) if case.expected.startswith("refused")]
    shape = re.compile(r"refused: line \d+(?:, [^:]+)?: .+[.?!…] .+[.?!]")
    assert len(told) > 60
    assert [text for text in told if not shape.fullmatch(text)] == []


def test_there_are_a_hundred_queries_with_distinct_titles():
    titles = [(path.stem, case.title) for path in FILES for case in cases(path.read_text())]
    assert len(titles) >= 100
    assert len(set(titles)) == len(titles)
