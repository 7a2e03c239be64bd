"""Compare an engine's totals with those of the reference, question by question."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import strategies

from discreet.engines.sql_totals import compute_totals
from discreet.engines.unsupported import unsupported_reason
from discreet.kernel.question import SelectedGroups
from discreet.kernel.sqlgen.dialect import Dialect
from discreet.kernel.totals import CountDistinct, HistogramTree
from tests.reference.engine import ReferenceEngine


@dataclass(frozen=True)
class Under:
    """An engine under test: how it writes, how a SELECT is run there, and how tables of exact types get there."""

    dialect: Dialect
    run: Callable[[str], pa.Table]
    load: Callable[[strategies.Tables], None]


def comparable(question, found):
    """Return the totals of every key, and its cells, if any are asked; then keys with nothing are left out."""
    assert found.values.dtype == np.int64
    assert found.values.shape == (len(found.keys), len(question.totals))
    rows = dict(zip(found.keys, map(tuple, found.values.tolist()), strict=True))
    assert len(rows) == len(found.keys)
    if not any(isinstance(total, HistogramTree | CountDistinct) for total in question.totals):
        return rows
    cells = {key: [] for key in rows}
    for place, tally in sorted(found.cell_counts.items()):
        columns = zip(tally.groups.tolist(), tally.cells.tolist(), tally.weights.tolist(), strict=True)
        for group, cell, weight in sorted(columns):
            assert 0 <= cell < question.totals[place].cell_count
            if weight:
                cells[found.keys[group]].append((place, cell, weight))
    return {key: (row, cells[key]) for key, row in rows.items() if any(row) or cells[key]}


def expected(tables, question):
    """Return what the reference says."""
    return comparable(question, ReferenceEngine(tables).totals(question))


def computed(engine: Under, question):
    """Return what an engine says."""
    return comparable(question, compute_totals(question, engine.run, engine.dialect))


def explore(engine: Under, seeds, *, questions=5, depth=3, inner=2, most=12):
    """Compare random questions; return how many found anything at all, and how many the engine has a gap for."""
    full = gaps = 0
    for seed in seeds:
        rng = random.Random(seed)
        tables = strategies.database(rng, most)
        engine.load(tables)
        for number in range(questions):
            question = strategies.question(rng, tables, rng.choice([0, 0, 0, 1, 2]), depth, inner)
            if unsupported_reason(question, engine.dialect):
                gaps += 1
                continue
            wanted = expected(tables, question)
            assert computed(engine, question) == wanted, (seed, number, question)
            full += any(wanted.values())
            if isinstance(question.groups, SelectedGroups):
                later = strategies.next_round(rng, question, list(wanted))
                assert computed(engine, later) == expected(tables, later), (seed, number, later)
    return full, gaps
