"""Junction trees: the cliques on which a graphical model of some tables is exact, and how they hang together."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

Columns = tuple[int, ...]


@dataclass(frozen=True)
class JunctionTree:
    """Cliques of columns, each after its parent; the first is the root and its own parent.

    The columns that a clique shares with any earlier clique are in its parent too (running intersection).
    """

    cliques: tuple[Columns, ...]
    parents: tuple[int, ...]

    @cached_property
    def separators(self) -> tuple[Columns, ...]:
        """The columns that each clique shares with its parent; none for the root."""
        shared = [
            tuple(sorted({*clique} & {*self.cliques[parent]}))
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        ]
        return ((), *shared[1:])

    def clique_of(self, table: Iterable[int]) -> int:
        """Return the first clique that contains these columns."""
        return next(index for index, clique in enumerate(self.cliques) if {*table} <= {*clique})

    def cells(self, sizes: Sequence[int]) -> int:
        """Return the number of cells in all cliques."""
        return sum(table_cells(clique, sizes) for clique in self.cliques)


def table_cells(table: Columns, sizes: Sequence[int]) -> int:
    """Return the number of cells of a table."""
    return math.prod(sizes[column] for column in table)


def junction_tree(sizes: Sequence[int], tables: Iterable[Columns]) -> JunctionTree:
    """Return a junction tree over all columns in which every table lies within a clique.

    >>> junction_tree([2, 3, 4, 5], [(0, 1), (1, 2)])
    JunctionTree(cliques=((0, 1), (1, 2), (3,)), parents=(0, 0, 0))
    """
    cliques = _maximal_cliques(sizes, tables)
    order, parents = [0], [0]
    # Prim's algorithm: a spanning tree of the largest separators has the running intersection property.
    best = {index: (len({*cliques[0]} & {*clique}), 0) for index, clique in enumerate(cliques) if index}
    while best:
        chosen = max(best, key=lambda index: best[index][0])
        parents.append(best.pop(chosen)[1])
        for index, (shared, _) in best.items():
            common = len({*cliques[chosen]} & {*cliques[index]})
            if common > shared:
                best[index] = common, len(order)
        order.append(chosen)
    return JunctionTree(tuple(cliques[index] for index in order), tuple(parents))


def _maximal_cliques(sizes: Sequence[int], tables: Iterable[Columns]) -> list[Columns]:
    """Return the cliques of a triangulated graph: columns are eliminated where that adds the fewest edges."""
    neighbours: dict[int, set[int]] = {column: set() for column in range(len(sizes))}
    for table in tables:
        for one, other in combinations(table, 2):
            neighbours[one].add(other)
            neighbours[other].add(one)
    cliques: list[set[int]] = []
    while neighbours:
        column = min(neighbours, key=lambda c: (*_elimination_cost(c, neighbours, sizes), c))
        around = neighbours.pop(column)
        for other in around:
            neighbours[other] |= around - {other}
            neighbours[other].discard(column)
        if not any(around | {column} <= clique for clique in cliques):
            cliques.append(around | {column})
    return sorted(tuple(sorted(clique)) for clique in cliques)


def _elimination_cost(column: int, neighbours: dict[int, set[int]], sizes: Sequence[int]) -> tuple[int, int]:
    around = neighbours[column]
    missing = sum(len(around - neighbours[other]) - 1 for other in around)
    return missing, math.prod(sizes[other] for other in around) * sizes[column]
