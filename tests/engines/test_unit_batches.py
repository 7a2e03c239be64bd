"""Batches of whole units, from batches that are cut anywhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.engines.row_sums import batch_rows, whole_units
from discreet.kernel.model_release import Combine, PartialSum


@given(counts=st.lists(st.integers(1, 5), max_size=8), cuts=st.lists(st.integers(0, 30), max_size=6))
def test_no_unit_is_divided_and_no_row_is_lost(counts, cuts):
    units = np.repeat(np.arange(len(counts)), counts)
    rows = np.arange(len(units), dtype=float).reshape(-1, 1)
    parts = np.split(np.arange(len(units)), sorted(min(cut, len(units)) for cut in cuts))
    found = list(whole_units((rows[part], units[part]) for part in parts))
    assert np.concatenate([each for each, _ in found] or [rows[:0]]).tolist() == rows.tolist()
    seen = [unit for _, numbers in found for unit in np.unique(numbers).tolist()]
    assert seen == list(range(len(counts)))


def test_rows_that_are_their_own_units_pass_as_they_are():
    batches = [(np.zeros((3, 1)), None), (np.zeros((0, 1)), None), (np.ones((2, 1)), None)]
    assert [len(rows) for rows, units in whole_units(batches) if units is None] == [3, 0, 2]


@pytest.mark.parametrize(
    ("width", "rows"), [(1, 1 << 16), (64, 1 << 12), (1 << 12, 1 << 11), (1 << 18, 32), (1 << 30, 1)]
)
def test_wide_rows_come_in_small_batches(width, rows):
    ends = np.zeros(1)
    part = PartialSum(
        np.abs, (), ends, ends, grouped=True, size=1, width=width, steps=1.0, l1=True, combine=Combine.SUM
    )
    assert batch_rows(part) == rows
