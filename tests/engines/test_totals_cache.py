"""Cached totals are used for other questions on the same relation, groups and bounds, and for no others."""

import random
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from discreet.engines.duckdb.engine import DuckDB, Tuning
from discreet.engines.table_source import EngineError, TableSource
from discreet.engines.totals_cache import TotalsCache, _estimated_bytes
from discreet.kernel.expr import Column, Type
from discreet.kernel.grid import Grid
from discreet.kernel.question import ContributionBounds, PublicGroups, Question, SelectedGroups
from discreet.kernel.relation import Scan, UnitKey
from discreet.kernel.totals import Count, CountDistinct, CountUnits, HistogramTree, SelectionWeight, Sum
from tests.reference.engine import ReferenceEngine

sys.path.insert(0, str(Path(__file__).parents[1] / "matrix"))
import strategies

USER, PLACE, X = Column("user", Type.INTEGER), Column("place", Type.TEXT), Column("x", Type.INTEGER)
VISITS = Scan("visits", (USER, PLACE, X), UnitKey((USER,)), max_rows=1000)
ROWS = [{"user": user, "place": place, "x": user + n} for user in range(6) for n, place in enumerate("aab")]
BY = (("place", PLACE),)
LISTED = Question(
    VISITS, BY, PublicGroups((("a", "b", "c"),)), ContributionBounds(1, 1), (Count(), Sum(X, Grid(0, 9, 1)))
)


class Counting:
    """An engine that counts how often it is asked, and for what."""

    def __init__(self, tables):
        self._reference, self.asked = ReferenceEngine(tables), []

    def totals(self, question):
        self.asked.append(question.totals)
        return self._reference.totals(question)


def seen(question, totals):
    found = strategies.Seen(question, totals)
    return {key: row for key, row in found.items() if any(row)}, found.cells


def test_the_same_totals_are_computed_once_for_all_questions():
    engine, known = Counting({"visits": ROWS}), TotalsCache(1 << 20)
    for totals in (LISTED.totals, LISTED.totals[::-1], LISTED.totals[:1], (Count(), Count())):
        question = replace(LISTED, totals=totals)
        found = known.totals(question, engine.totals)
        assert seen(question, found) == seen(question, ReferenceEngine({"visits": ROWS}).totals(question))
    assert engine.asked == [LISTED.totals]


def test_only_what_is_missing_is_computed():
    engine, known = Counting({"visits": ROWS}), TotalsCache(1 << 20)
    known.totals(LISTED, engine.totals)
    tree = HistogramTree(X, Grid(0, 9, 1), 10, 1)
    question = replace(LISTED, totals=(Count(), tree, CountDistinct(X), CountUnits()))
    found = known.totals(question, engine.totals)
    assert engine.asked[1] == (tree, CountDistinct(X), CountUnits())
    assert seen(question, found) == seen(question, ReferenceEngine({"visits": ROWS}).totals(question))


@pytest.mark.parametrize(
    "other",
    [
        replace(LISTED, bounds=ContributionBounds(2, 1)),
        replace(LISTED, bounds=ContributionBounds(1, 2)),
        replace(LISTED, groups=PublicGroups((("a", "b"),))),
        replace(LISTED, by=(), groups=PublicGroups(())),
        replace(LISTED, relation=replace(VISITS, max_rows=999)),
        replace(LISTED, groups=SelectedGroups(5), totals=(SelectionWeight(), *LISTED.totals)),
    ],
    ids=["groups", "rows", "keys", "none", "relation", "discovered"],
)
def test_another_question_is_computed_again(other):
    engine, known = Counting({"visits": ROWS}), TotalsCache(1 << 20)
    known.totals(LISTED, engine.totals)
    found = known.totals(other, engine.totals)
    assert len(engine.asked) == 2
    assert seen(other, found) == seen(other, ReferenceEngine({"visits": ROWS}).totals(other))


def test_cached_totals_equal_those_of_the_reference():
    for seed in range(30):
        rng = random.Random(f"remembered {seed}")
        tables = strategies.database(rng)
        engine, known = Counting(tables), TotalsCache(1 << 16)
        question = strategies.question(rng, tables, 0)
        first = question.totals[:1] if isinstance(question.groups, SelectedGroups) else ()
        for _ in range(6):
            others = question.totals[len(first) :]
            some = tuple(rng.sample(others, rng.randint(1, len(others))))
            asked = replace(question, totals=first + some)
            found = known.totals(asked, engine.totals)
            assert seen(asked, found) == seen(asked, ReferenceEngine(tables).totals(asked))


def test_a_later_round_of_partition_selection_is_not_cached():
    """What it leaves out is random: it would never be asked again, and would evict what is."""
    engine, known = Counting({"visits": ROWS}), TotalsCache(1 << 20)
    groups = SelectedGroups(5, shown=(("a",),))
    question = replace(LISTED, groups=groups, totals=(SelectionWeight(),))
    for _ in range(2):
        assert ("a",) not in known.totals(question, engine.totals).keys
    assert len(engine.asked) == 2


def test_the_least_recently_used_totals_are_evicted():
    engine, known = Counting({"visits": ROWS}), TotalsCache(3000)
    for limit in (*range(1, 12), 11, 10, 1):
        known.totals(replace(LISTED, bounds=ContributionBounds(1, limit)), engine.totals)
    assert len(engine.asked) == 12  # the last ones were known still, the first was not
    assert TotalsCache(0).totals(LISTED, engine.totals).keys
    assert len(engine.asked) == 13


@pytest.mark.parametrize("most", [0, 1000, 5000, 20_000, 60_000, 1 << 20])
def test_cache_eviction_does_not_depend_on_the_data(most):
    """A place of her own is shown to nobody; that a later answer takes longer must not tell of it either."""
    hers = [{"user": 9, "place": "hers", "x": 7}, {"user": 9, "place": "b", "x": 7}]
    found = Question(
        replace(VISITS, max_rows=100),
        BY,
        SelectedGroups(5),
        ContributionBounds(1, 1),
        (SelectionWeight(), Count(), CountDistinct(X)),
    )
    tree = replace(LISTED, totals=(Count(), HistogramTree(X, Grid(0, 50, 1), 51, 1)))
    asked = []
    for rows in (ROWS, ROWS + hers, ROWS[:1], []):
        engine, known = Counting({"visits": rows}), TotalsCache(most)
        for question in (
            LISTED,
            found,
            tree,
            found,
            LISTED,
            tree,
            replace(found, bounds=ContributionBounds(2, 2)),
            LISTED,
            found,
        ):
            known.totals(question, engine.totals)
        asked.append(engine.asked)
    assert asked[1:] == asked[:1] * 3


SELECTED = Question(
    replace(VISITS, max_rows=100), BY, SelectedGroups(5), ContributionBounds(1, 1), (SelectionWeight(),)
)


def test_with_partition_selection_the_weights_are_computed_together_with_every_missing_total():
    """The groups are those of the first total: without it, they would be those of another."""
    engine = Counting({"visits": ROWS})
    known = TotalsCache(3 * _estimated_bytes(SELECTED, Count()))  # what the weights use is counted once
    for totals in ((Count(),), (CountDistinct(X),), (Count(),), (CountDistinct(X), Count())):
        question = replace(SELECTED, totals=(SelectionWeight(), *totals))
        found = known.totals(question, engine.totals)
        assert seen(question, found) == seen(question, ReferenceEngine({"visits": ROWS}).totals(question))
    assert engine.asked == [(SelectionWeight(), Count()), (SelectionWeight(), CountDistinct(X))]


def test_totals_whose_groups_were_found_at_different_times_are_aligned_by_group():
    """A total that was computed alone has only the groups that it needs."""
    tree = HistogramTree(X, Grid(0, 9, 1), 10, 1)
    question = replace(LISTED, totals=(Count(), tree, CountUnits()))
    expected = ReferenceEngine({"visits": ROWS}).totals(question)

    def compute(part):
        found = ReferenceEngine({"visits": ROWS}).totals(part)
        if part.totals != (Count(),):
            return found
        assert len(found.keys) > 1
        return replace(found, keys=found.keys[::-1], values=found.values[::-1])

    known = TotalsCache(1 << 20)
    known.totals(replace(question, totals=(Count(),)), compute)
    assert seen(question, known.totals(question, compute)) == seen(question, expected)
    swapped = replace(question, totals=(tree, Count()))
    assert seen(swapped, known.totals(swapped, compute)) == seen(
        swapped, ReferenceEngine({"visits": ROWS}).totals(swapped)
    )


def computed_with(most, limits):
    """Return which of the questions with these contribution bounds a cache of so many bytes has computed."""
    engine, known, computed = Counting({"visits": ROWS}), TotalsCache(most), []
    for limit in limits:
        before = len(engine.asked)
        known.totals(replace(LISTED, totals=(Count(),), bounds=ContributionBounds(1, limit)), engine.totals)
        computed += [limit] * (len(engine.asked) - before)
    return computed


def test_the_cache_holds_as_many_totals_as_fit_and_none_larger_than_half():
    size = _estimated_bytes(LISTED, Count())
    assert computed_with(2 * size, (1, 2, 1, 2, 1, 3, 1, 2)) == [1, 2, 3, 2]  # the least recently used was 2
    assert computed_with(3 * size - 1, (1, 2, 1, 2, 3, 2, 1)) == [1, 2, 3, 1]
    assert computed_with(3 * size, (1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 1)) == [1, 2, 3, 4, 1]
    assert computed_with(2 * size - 1, (1, 1, 2, 2)) == [1, 1, 2, 2]


def test_the_size_of_a_total_is_estimated_from_the_question_alone():
    tree = HistogramTree(X, Grid(0, 9, 1), 10, 1)
    few = replace(LISTED, relation=replace(VISITS, max_rows=2))
    many = replace(SELECTED, relation=replace(VISITS, max_rows=10**9))
    assert _estimated_bytes(LISTED, Count()) == 200 + 3 * 108
    assert _estimated_bytes(LISTED, tree) == 200 + 3 * 108 + 3 * tree.cell_count * 24
    assert _estimated_bytes(few, tree) == 200 + 2 * 108 + 2 * 24
    assert _estimated_bytes(SELECTED, Count()) == 200 + 100 * 108
    assert _estimated_bytes(many, Count()) == 200 + 400_000 * 108
    # The tree is larger than half of the cache, and the count is not.
    engine, known = Counting({"visits": ROWS}), TotalsCache(2 * _estimated_bytes(LISTED, tree) - 1)
    for _ in range(2):
        known.totals(replace(LISTED, totals=(Count(), tree)), engine.totals)
    assert engine.asked == [(Count(), tree), (tree,)]


def test_an_engine_whose_file_changed_does_not_answer_from_the_cache(tmp_path):
    path = tmp_path / "visits.parquet"
    pa.parquet.write_table(pa.Table.from_pylist(ROWS), path)
    columns = {"user": Type.INTEGER, "place": Type.TEXT, "x": Type.INTEGER}
    with DuckDB({"visits": TableSource(str(path), columns)}) as engine:
        before = engine.totals(LISTED)
        assert np.array_equal(engine.totals(LISTED).values, before.values)
        path.write_bytes(b"something else")
        with pytest.raises(EngineError, match="changed"):
            engine.totals(LISTED)


def test_a_closed_engine_does_not_answer_from_the_cache():
    columns = {"user": Type.INTEGER, "place": Type.TEXT, "x": Type.INTEGER}
    engine = DuckDB({"visits": TableSource(pa.Table.from_pylist(ROWS), columns)})
    engine.totals(LISTED)
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        engine.totals(LISTED)


def test_the_cache_size_can_be_set_and_invalid_sizes_are_refused():
    assert Tuning(totals_cache=0).totals_cache == 0
    with pytest.raises(ValueError, match="totals_cache"):
        Tuning(totals_cache=-1)
