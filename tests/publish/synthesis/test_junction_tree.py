"""The properties that make a tree of cliques a junction tree."""

from hypothesis import given

from discreet.publish.synthesis.junction_tree import junction_tree
from tests.publish.synthesis.dense import sizes_and_tables


@given(sizes_and_tables(max_columns=9))
def test_every_table_lies_within_a_clique_and_every_column_in_one(drawn):
    sizes, tables = drawn
    tree = junction_tree(sizes, tables)
    assert all({*table} <= {*tree.cliques[tree.clique_of(table)]} for table in tables)
    assert {column for clique in tree.cliques for column in clique} == {*range(len(sizes))}


@given(sizes_and_tables(max_columns=9))
def test_what_a_clique_shares_with_earlier_ones_is_in_its_parent(drawn):
    tree = junction_tree(*drawn)
    for index, clique in enumerate(tree.cliques[1:], start=1):
        earlier = {column for other in tree.cliques[:index] for column in other}
        assert tree.parents[index] < index
        assert {*clique} & earlier == {*tree.separators[index]}
        assert {*tree.separators[index]} <= {*tree.cliques[tree.parents[index]]}


@given(sizes_and_tables(max_columns=9))
def test_no_clique_contains_another(drawn):
    cliques = junction_tree(*drawn).cliques
    assert not any({*one} <= {*other} for one in cliques for other in cliques if one != other)
    assert len({*cliques}) == len(cliques)


def test_a_tree_of_pairs_needs_no_larger_cliques():
    pairs = [(0, 1), (1, 2), (1, 3), (3, 4)]
    assert sorted(junction_tree([5] * 5, pairs).cliques) == pairs


def test_a_cycle_is_closed_over_its_smallest_columns():
    tree = junction_tree([2, 100, 2, 100], [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert tree.cliques == ((0, 1, 2), (0, 2, 3))
    assert tree.cells([2, 100, 2, 100]) == 800
