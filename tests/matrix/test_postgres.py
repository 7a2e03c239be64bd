"""PostgreSQL agrees with the reference on special cases."""

import math
import random
from dataclasses import replace
from datetime import datetime

import compare
import postgres_under
import pytest
import situations
import strategies
from strategies import REAL, TIME, VISITS

from discreet.engines.postgres.dialect import POSTGRES
from discreet.engines.postgres.text_functions import shorten_names
from discreet.engines.sql_totals import compute_totals
from discreet.kernel.expr import Call, Column, Constant
from discreet.kernel.grid import Grid
from discreet.kernel.question import ContributionBounds, PublicGroups, Question
from discreet.kernel.sqlgen.expr_sql import write_expr
from discreet.kernel.totals import CountDistinct
from discreet.postgres.server import connect


@pytest.fixture
def engine(connection):
    return postgres_under.under(connection)


@pytest.mark.parametrize("name", situations.SITUATIONS)
def test_situations(engine, name):
    situations.check(engine, situations.SITUATIONS[name])


def test_where_hashes_collide_the_value_decides_what_counts_here_too(engine):
    people = list(range(200))
    random.Random(1).shuffle(people)
    pairs = [(user, place) for user in people for place in ("ba"[user % 2], "ab"[user % 2])]
    engine.load(situations.small(visits=[situations.visit(user=user, place=place) for user, place in pairs]))
    question = Question(VISITS, (), PublicGroups(()), ContributionBounds(1, 1), (CountDistinct(situations.PLACE),))
    met = replace(POSTGRES, text_hash="LENGTH({0})")
    assert compute_totals(question, engine.run, met).values.tolist() == [[1]]


def test_nothing_is_created_on_the_server(postgres, connection, engine):
    """A role that can read the tables and do nothing else has every answer."""
    engine.load(situations.SITUATIONS["units with too much: values by text"].tables)
    connection.execute("CREATE ROLE reads LOGIN")
    connection.execute(f"REVOKE TEMPORARY, CREATE ON DATABASE {connection.info.dbname} FROM PUBLIC")
    connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reads")
    with connect(postgres.url(connection.info.dbname, "reads"), default_transaction_read_only="on") as reader:
        under = postgres_under.under(reader)
        for kind in ("text", "integer", "boolean"):
            for name in ("cells", "values"):
                situation = situations.SITUATIONS[f"units with too much: {name} by {kind}"]
                found = compare.computed(under, situation.question)
                assert found == compare.expected(situation.tables, situation.question)
    connection.execute("DROP OWNED BY reads; DROP ROLE reads")


def test_columns_of_columns_do_not_grow(engine):
    """Each names the one before it many times: written out, the last would have a million parts."""
    rows = [
        situations.visit(user=user, **{'x"q': x}) for user, x in enumerate([1.0, 1.5, -2.0, math.inf, None, 1e-200])
    ]
    relation = strategies.Derive(VISITS, (("c0", Column('x"q', REAL)),))
    for number in range(11):
        column = Column(f"c{number}", REAL)
        relation = strategies.Derive(relation, ((f"c{number + 1}", Call("multiply", (column, column))),))
    total = strategies.Sum(Column("c11", REAL), Grid(-5, 5, "1/4"))
    question = Question(relation, (), PublicGroups(()), ContributionBounds(1, 1), (total,))
    situations.check(engine, situations.Situation(situations.small(visits=rows), question))


def test_names_are_shortened_and_constants_are_not():
    name, other = "n" * 64, "n" * 63
    sql = f'SELECT "{name}", "{other}", \'"{name}"\', E\'\\\\\', "{name}" FROM "{name}"""'
    found = shorten_names(sql)
    assert found.count(f'"{name}"') == 1
    assert f'"{other}"' in found
    short = found.split('"')[1]
    assert short.startswith(".")
    assert found.count(f'"{short}"') == 2
    quotes = '"' + 63 * '""' + '"'  # a name of 63 characters
    assert shorten_names(quotes) == quotes
    assert shorten_names('"' + 64 * '""' + '"') != '"' + 64 * '""' + '"'


def test_the_time_of_a_question_is_local():
    expr = Constant(datetime(2020, 1, 1, 12), TIME)
    assert write_expr(expr, POSTGRES) == "TIMESTAMP '2020-01-01 12:00:00'"
