"""The distances behind t-closeness are the least work, as linear programming finds it."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.anonymity import measure, read_hierarchy
from tests.anonymity import naive

pytest.importorskip("scipy")
TREE = {"a": "AB*", "b": "AB*", "c": "CB*", "d": "DE*", "e": "DE*", "f": "FE*"}
HIERARCHY = read_hierarchy("\n".join(";".join([leaf, *path]) for leaf, path in TREE.items()))


def farthest(values, groups, apart):
    """Return the largest least work over the classes."""
    table = naive.shares(Counter(values))
    parts = [Counter(v for v, g in zip(values, groups, strict=True) if g == each) for each in set(groups)]
    return max(naive.least_work(naive.shares(part), table, apart) for part in parts)


def tables(values):
    return st.lists(st.tuples(st.sampled_from(values), st.integers(0, 2)), min_size=1, max_size=14)


def t_of(values, groups, **given):
    return measure(pa.table({"group": groups, "value": values}), "group", "value", **given).t


@pytest.mark.long
@settings(max_examples=60)
@given(tables(["x", "y", "z", "w"]))
def test_equal_distance(rows):
    values, groups = zip(*rows, strict=True)
    assert t_of(values, groups) == pytest.approx(farthest(values, groups, lambda a, b: a != b), abs=1e-8)


@pytest.mark.long
@settings(max_examples=60)
@given(tables([10, 20, 50, 51, 90]))
def test_ordered_distance(rows):
    values, groups = zip(*rows, strict=True)
    steps = {value: place for place, value in enumerate(sorted(set(values)))}
    most = max(len(steps) - 1, 1)
    expected = farthest(values, groups, lambda a, b: abs(steps[a] - steps[b]) / most)
    assert t_of(values, groups) == pytest.approx(expected, abs=1e-8)


@pytest.mark.long
@settings(max_examples=60)
@given(tables(list(TREE)))
def test_hierarchical_distance(rows):
    values, groups = zip(*rows, strict=True)

    def apart(a, b):
        return 0 if a == b else next(i for i in range(3) if TREE[a][i] == TREE[b][i]) / 3 + 1 / 3

    expected = farthest(values, groups, apart)
    assert t_of(values, groups, hierarchies={"value": HIERARCHY}) == pytest.approx(expected, abs=1e-8)


@pytest.mark.long
@settings(max_examples=60)
@given(tables([1, 2, 3, 7, None]).filter(lambda rows: any(value is not None for value, _ in rows)))
def test_with_nulls_the_ordered_distance_is_never_understated(rows):
    values, groups = zip(*rows, strict=True)
    steps = {value: place for place, value in enumerate(sorted({each for each in values if each is not None}))}
    most = max(len(steps) - 1, 1)

    def apart(a, b):
        return float(a is not b) if a is None or b is None else abs(steps[a] - steps[b]) / most

    assert t_of(values, groups) >= farthest(values, groups, apart) - 1e-8
    assert t_of(values, groups) <= 1


def test_distances_of_many_values_are_as_exact_as_of_few():
    rng = np.random.default_rng(7)
    groups, values = rng.integers(0, 40, 20_000), rng.integers(0, 15_000, 20_000)
    many = np.unique(values)
    counts = np.zeros((40, len(many)))
    np.add.at(counts, (groups, np.searchsorted(many, values)), 1)
    off = counts / counts.sum(1, keepdims=True) - counts.sum(0) / counts.sum()
    expected = (np.abs(np.cumsum(off, axis=1)).sum(1) / (len(many) - 1)).max()
    assert t_of(values, groups) == pytest.approx(expected, rel=1e-9)
