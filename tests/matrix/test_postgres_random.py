"""PostgreSQL agrees with the reference on random questions over random databases."""

import random

import compare
import postgres_under
import pytest
import situations
import strategies

from discreet.kernel.question import ContributionBounds, PublicGroups, Question
from discreet.postgres.server import connect

HOSTILE = (
    "SET DateStyle = 'German, DMY'; SET IntervalStyle = 'sql_standard'; SET TimeZone = 'America/Sao_Paulo'; "
    "SET standard_conforming_strings = off; SET escape_string_warning = off; "
    "SET lc_time = 'C'; SET array_nulls = off; SET bytea_output = 'escape'; SET enable_hashjoin = off"
)


@pytest.fixture
def engine(connection):
    return postgres_under.under(connection)


@pytest.mark.long
@pytest.mark.parametrize("block", range(8))
def test_postgresql_equals_the_reference(engine, block):
    deep, _ = compare.explore(engine, range(block * 16, block * 16 + 16))
    wide, _ = compare.explore(
        engine, range(9000 + block * 2, 9002 + block * 2), questions=15, depth=0, inner=0, most=60
    )
    assert deep > 15
    assert wide > 4


@pytest.mark.long
def test_settings_of_the_server_change_nothing(postgres, connection):
    with connect(postgres.url(connection.info.dbname)) as other:
        other.execute(HOSTILE)
        full, _ = compare.explore(postgres_under.under(other), range(500, 505))
        for name in (
            "many keys, listed: text",
            "long names that begin alike",
            "a real key has one zero and no infinity",
        ):
            situations.check(postgres_under.under(other), situations.SITUATIONS[name])
    assert full > 5


@pytest.mark.long
def test_postgresql_equals_the_reference_on_thousands_of_rows(engine):
    full = 0
    for seed in range(2):
        rng = random.Random(f"crowd {seed}")
        tables = strategies.crowd(rng)
        engine.load(tables)
        for _ in range(6):
            question = strategies.question(rng, tables, rng.choice([0, 0, 1, 2]), 1, 1)
            wanted = compare.expected(tables, question)
            assert compare.computed(engine, question) == wanted, question
            full += any(wanted.values())
    assert full > 3


@pytest.mark.slow
@pytest.mark.parametrize("block", range(8))
def test_postgresql_equals_the_reference_thousands_of_times(engine, block):
    compare.explore(engine, range(1000 + block * 100, 1100 + block * 100))
    compare.explore(engine, range(10_000 + block * 20, 10_020 + block * 20), depth=5, most=30)
    compare.explore(engine, range(20_000 + block * 20, 20_020 + block * 20), questions=20, depth=1, inner=0, most=80)


@pytest.mark.long
def test_a_million_keys_may_be_listed(engine):
    """As many as a policy may declare; they are sent as one array."""
    tables = situations.small(events=[situations.event("a", n) for n in (-1, 0, 999_999, 1_000_000)])
    keys = tuple(range(1_000_000))
    question = Question(
        strategies.EVENTS,
        (("k", situations.N),),
        PublicGroups((keys,)),
        ContributionBounds(5, 5),
        (situations.Count(),),
    )
    engine.load(tables)
    assert compare.computed(engine, question) == {(0,): (1,), (999_999,): (1,)}
