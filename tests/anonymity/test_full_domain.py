"""Full-domain generalisation: the best levels of all, proved against trying every one of them."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.anonymity import anonymise_and_measure, intervals, measure, prefixes, read_hierarchy
from discreet.anonymity.encoding.encoded_table import encode_column, encode_table
from discreet.anonymity.generalisation import full_domain
from discreet.anonymity.generalisation.full_domain import (
    NodeEvaluation,
    _evaluate_node,
    _WeightedRows,
    find_best_levels,
    find_node_greedily,
    find_optimal_node,
)
from discreet.anonymity.generalisation.privacy_criteria import AnonymityParameters, PrivacyCriteria, build_criteria
from discreet.anonymity.hierarchies.taxonomy_tree import build_tree
from tests.anonymity import naive

HIERARCHIES = {"age": intervals(0, 9, [2, 4]), "zip": prefixes(3)}
QUASI = ("age", "job", "zip")
ROW = st.tuples(
    st.none() | st.integers(0, 9),
    st.none() | st.sampled_from("ab"),
    st.sampled_from(["110", "111", "120", "200", "211"]),
    st.sampled_from("xyz"),
    st.none() | st.integers(0, 3),
)
GOALS = st.one_of(
    st.builds(AnonymityParameters, st.integers(1, 4)),
    st.builds(AnonymityParameters, st.integers(1, 4), st.just(2)),
    st.builds(AnonymityParameters, st.integers(1, 4), st.sampled_from([1.3, 1.8]), st.none(), st.just("entropy")),
    st.builds(
        AnonymityParameters, st.integers(1, 4), st.just(2), st.none(), st.just("recursive"), st.sampled_from([1.5, 3.0])
    ),
    st.builds(AnonymityParameters, st.integers(1, 4), st.none(), st.sampled_from([0.2, 0.5])),
    st.builds(AnonymityParameters, st.integers(1, 4), st.just(2), st.sampled_from([0.3, 0.6])),
)


def tabled(rows):
    ages, jobs, zips, ills, pays = (list(column) for column in zip(*rows, strict=True))
    columns = [pa.array(ages, pa.int64()), pa.array(jobs, pa.string()), zips, ills, pa.array(pays, pa.int64())]
    return pa.table(dict(zip((*QUASI, "ill", "pay"), columns, strict=True)))


def shown(name, value, level):
    """Return the label of a value, without any code of ours; and which values of a column have it."""
    if level == 0:
        return value
    if name == "job" or level == 3:
        return "*"
    if value is None:
        return None
    return value // (2, 4)[level - 1] if name == "age" else value[: 3 - level]


def loss_of(name, value, level, column):
    label = shown(name, value, level)
    leaves = {leaf for leaf in column if shown(name, leaf, level) == label}
    return 0 if len(leaves) == 1 else len(leaves) / len(set(column))


def is_good(group, released, goals):
    """Check one class of rows against what is released, by the definitions."""
    if len(group) < goals.k:
        return False
    for place, distance in ((3, naive.equal), (4, naive.ordered)):
        counts = Counter(row[place] for row in group)
        if goals.l is not None and not is_diverse(sorted(counts.values(), reverse=True), goals):
            return False
        if goals.t is not None:
            table = naive.shares(Counter(row[place] for row in released))
            if distance(naive.shares(counts), table) > goals.t + 1e-9:
                return False
    return True


def is_diverse(counts, goals):
    if goals.diversity == "entropy":
        return math.exp(-sum(c / sum(counts) * math.log(c / sum(counts)) for c in counts)) >= goals.l - 1e-9
    if goals.diversity == "recursive":
        return counts[0] < goals.c * sum(counts[goals.l - 1 :])
    return len(counts) >= goals.l


def judged(rows, levels, goals, most):
    """Return the loss and the discernibility of some levels, or None if too many rows must go."""
    classes = {}
    for row in rows:
        key = tuple(shown(name, row[place], levels[place]) for place, name in enumerate(QUASI))
        classes.setdefault(key, []).append(row)
    kept = [group for group in classes.values() if len(group) >= goals.k]
    while len(rows) - sum(map(len, kept)) <= most:
        released = [row for group in kept for row in group]
        still = [group for group in kept if is_good(group, released, goals)]
        if len(still) == len(kept):
            break
        kept = still
    removed = len(rows) - sum(map(len, kept))
    if removed > most:
        return None
    columns = list(zip(*rows, strict=True))
    lost = sum(
        loss_of(name, row[place], levels[place], columns[place])
        for group in kept
        for row in group
        for place, name in enumerate(QUASI)
    )
    return (lost / 3 + removed) / len(rows), sum(len(group) ** 2 for group in kept) + removed * len(rows)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(st.lists(ROW, min_size=2, max_size=20), GOALS, st.sampled_from([0, 0.1, 0.3]))
def test_the_levels_are_optimal(rows, goals, suppress):
    rows = [*rows, (0, "a", "110", "x", 0), (1, "b", "111", "y", 1)]  # no column is all null, or of one value
    table = encode_table(tabled(rows), QUASI, ["ill", "pay"])
    trees = [build_tree(column, HIERARCHIES.get(column.name)) for column in table.quasi]
    most = math.floor(suppress * len(rows) + 1e-9)
    found = find_best_levels(
        [column.codes for column in table.quasi],
        trees,
        build_criteria(goals, table, {}),
        np.ones(len(rows), np.int64),
        most,
    )
    every = {levels: judged(rows, levels, goals, most) for levels in product(range(4), range(2), range(4))}
    possible = {levels: verdict for levels, verdict in every.items() if verdict is not None}
    if not possible:
        assert found is None
        return
    least = min(loss for loss, _ in possible.values())
    ties = {levels: worth for levels, (loss, worth) in possible.items() if loss < least + 1e-9}
    assert found.levels == min(ties, key=lambda levels: (ties[levels], levels))
    assert np.count_nonzero(~found.is_kept) <= most


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(st.lists(ROW, min_size=4, max_size=20), GOALS, st.sampled_from([0, 2, 5]))
def test_a_verdict_on_lower_levels_holds_for_all_of_them(rows, goals, most):
    rows = [*rows, (0, "a", "110", "x", 0), (1, "b", "111", "y", 1)]
    given_rows = encode_table(tabled(rows), QUASI, ["ill", "pay"])
    trees = tuple(build_tree(column, HIERARCHIES.get(column.name)) for column in given_rows.quasi)
    table = _WeightedRows(tuple(column.codes for column in given_rows.quasi), trees, np.ones(len(rows), np.int64))
    targets = build_criteria(goals, given_rows, {})
    every = [_evaluate_node(table, levels, targets, most) for levels in product(range(4), range(2), range(4))]
    for high in every:
        for low in every:
            if all(mine <= theirs for mine, theirs in zip(low.levels, high.levels, strict=True)):
                if high.added_loss_below == math.inf:
                    assert not low.is_feasible
                else:
                    assert low.loss >= table.row_losses(low.levels).mean() + high.added_loss_below - 1e-9


def one_level(rows, k):
    """Return the verdicts of a column of two levels with these codes, as generalise sees them."""
    column = encode_column(pa.table({"it": rows}), "it")
    return find_best_levels([column.codes], [build_tree(column)], PrivacyCriteria(k), np.ones(len(rows), np.int64), 0)


def test_a_table_that_meets_the_criteria_is_unchanged():
    assert one_level(["a", "a", "b", "b"], 2).levels == (0,)
    assert one_level(["a", "a", "b"], 2).levels == (1,)


def judge_by(least):
    """Call a combination good from some sum of levels on, and let it lose its levels, the first column's most."""

    def judge(levels):
        asked.append(levels)
        is_good = sum(levels) >= least
        return NodeEvaluation(levels, is_good, (3 * levels[0] + 2 * levels[1]) / 20, 0, 0 if is_good else math.inf)

    asked = []
    return judge, asked


def test_the_search_skips_levels_that_cannot_win():
    losses = [np.arange(5) * 3 / 10, np.arange(5) * 2 / 10]
    judge, asked = judge_by(4)
    assert find_optimal_node(losses, judge).levels == (0, 4)
    assert len(asked) == len(set(asked)) < 15
    judge, _ = judge_by(99)
    assert find_optimal_node(losses, judge) is None


def test_the_greedy_search_goes_down_from_the_top():
    losses = [np.arange(5) * 3 / 10, np.arange(5) * 2 / 10]
    judge, _ = judge_by(4)
    assert find_node_greedily(losses, judge).levels == (0, 4)
    judge, _ = judge_by(99)
    assert find_node_greedily(losses, judge) is None


def test_many_levels_are_searched_greedily_and_the_result_reports_it(monkeypatch):
    noise = np.random.default_rng(3)
    table = pa.table({name: noise.integers(0, 16, 400) for name in "abcd"})
    hierarchies = {name: intervals(0, 15, [2, 4, 8]) for name in "abcd"}
    best = anonymise_and_measure(table, list("abcd"), 5, hierarchies=hierarchies, method="full-domain", suppress=0.1)
    assert best.optimality == "optimal among 625 combinations of levels"
    assert full_domain.MAX_NODES == 20_000
    monkeypatch.setattr(full_domain, "MAX_NODES", 100)
    quick = anonymise_and_measure(table, list("abcd"), 5, hierarchies=hierarchies, method="full-domain", suppress=0.1)
    assert "possibly not optimal" in quick.optimality
    assert quick.after.k >= 5
    assert best.after.loss.ncp <= quick.after.loss.ncp


def test_suppression_never_removes_more_than_it_may():
    table = pa.table({"age": [21, 22, 23, 24, 25, 90], "job": list("aaaaab")})
    ages = {"age": intervals(0, 99, 10)}
    kept = anonymise_and_measure(table, ["age", "job"], 3, hierarchies=ages, method="full-domain", suppress=0.2)
    assert (kept.suppressed, kept.levels, kept.after.k) == (1, {"age": 1, "job": 0}, 5)
    assert kept.table["age"].to_pylist() == ["20-29"] * 5
    none = anonymise_and_measure(table, ["age", "job"], 3, hierarchies=ages, method="full-domain", suppress=0.16)
    assert (none.suppressed, none.levels) == (0, {"age": 2, "job": 1})


def test_closeness_is_to_what_is_released():
    """Without the removed rows nobody is ill of x more often than others; with them all classes would be far off."""
    table = pa.table({"sex": list("ffffmmmmn"), "ill": list("xyxyxyxyz")})
    done = anonymise_and_measure(table, "sex", 2, "ill", t=0.001, method="full-domain", suppress=0.2)
    assert (done.suppressed, done.levels, done.after.t) == (1, {"sex": 0}, 0)


# The twelve patients of the literature, and its hierarchy.
HOSPITAL = """
13053 28 Russian  Heart Disease
13068 29 American Heart Disease
13068 21 Japanese Viral Infection
13053 23 American Viral Infection
14853 50 Indian   Cancer
14853 55 Russian  Heart Disease
14850 47 American Viral Infection
14850 49 American Viral Infection
13053 31 American Cancer
13053 37 Indian   Cancer
13068 36 Japanese Cancer
13068 35 American Cancer
"""
AGES = "\n".join(f"{age};{'<30' if age < 30 else '30-39' if age < 40 else '>=40'};*" for age in range(20, 60))


def test_the_hospital_becomes_the_four_anonymous_table_of_the_literature():
    rows = [line.split(maxsplit=3) for line in HOSPITAL.strip().splitlines()]
    table = pa.table(
        {
            "zip": [row[0] for row in rows],
            "age": [int(row[1]) for row in rows],
            "nationality": [row[2] for row in rows],
            "condition": [row[3] for row in rows],
        }
    )
    quasi = ["zip", "age", "nationality"]
    hierarchies = {"zip": prefixes(5), "age": read_hierarchy(AGES)}
    done = anonymise_and_measure(table, quasi, 4, "condition", hierarchies=hierarchies, method="full-domain")
    expected = [("130**", "<30", "*")] * 4 + [("148**", ">=40", "*")] * 4 + [("130**", "30-39", "*")] * 4
    assert list(zip(*(done.table[name].to_pylist() for name in quasi), strict=True)) == expected
    assert done.levels == {"zip": 2, "age": 1, "nationality": 1}
    assert done.before.k == 1
    assert done.after.k == 4
    assert done.after.l == 1
    assert done.after.sensitive[0].exposed_rows.tolist() == [8, 9, 10, 11]
    assert "homogeneity attack" in done.not_protected
    diverse = anonymise_and_measure(table, quasi, 4, "condition", 3, hierarchies=hierarchies, method="full-domain")
    assert diverse.after.l == 3
    assert measure(diverse.table, quasi, "condition").l == 3
