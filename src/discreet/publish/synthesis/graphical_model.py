"""A graphical model on a junction tree: log factors of tables, and the expected counts that follow from them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from discreet.publish.synthesis.junction_tree import Columns, JunctionTree, junction_tree

_Message = tuple[Columns, np.ndarray]


@dataclass(frozen=True, eq=False)
class GraphicalModel:
    """Expected counts of `total` rows: proportional to the product of the tables' factors, given as logarithms.

    >>> ties = np.log([[3.0, 1.0], [1.0, 3.0]])
    >>> independent_model([2, 2, 2], 16).with_factors({(0, 1): ties, (1, 2): ties}).table([0, 2])
    array([[5., 3.],
           [3., 5.]])
    """

    sizes: tuple[int, ...]
    total: float
    tree: JunctionTree
    factors: Mapping[Columns, np.ndarray]

    def with_factors(self, factors: Mapping[Columns, np.ndarray]) -> "GraphicalModel":
        """Return a model of other factors, on this tree if it has a clique for each of them."""
        known = factors.keys() <= self.factors.keys()
        return replace(self, factors=factors, tree=self.tree if known else junction_tree(self.sizes, factors))

    @cached_property
    def conditionals(self) -> list[np.ndarray]:
        """The distribution of each clique's other columns, given those of its separator.

        Logarithms of sums go from the leaves to the root, so that no product of factors can overflow or vanish.
        """
        beliefs = self._clique_factors()
        for index, clique, separator in reversed(self._positions()):
            others = _axes_of(clique, {*clique} - {*separator})
            highest = beliefs[index].max(axis=others, keepdims=True)
            beliefs[index] = np.exp(beliefs[index] - highest)
            sums = beliefs[index].sum(axis=others, keepdims=True)
            beliefs[index] /= sums
            if index:
                message = (np.log(sums) + highest).squeeze(axis=others)
                parent = self.tree.parents[index]
                beliefs[parent] += _align(message, separator, self.tree.cliques[parent])
        return beliefs

    @cached_property
    def marginals(self) -> list[np.ndarray]:
        """The expected counts of each clique."""
        marginals = [self.conditionals[0] * self.total]
        for index, clique, separator in self._positions()[1:]:
            parent = self.tree.parents[index]
            weights = _sum_to(marginals[parent], self.tree.cliques[parent], separator)
            marginals.append(self.conditionals[index] * _align(weights, separator, clique))
        return marginals

    def tables_of(self, tables: Iterable[Columns]) -> dict[Columns, np.ndarray]:
        """Return the expected counts of some tables that have factors."""
        return {
            table: _sum_to(self.marginals[index], self.tree.cliques[index], table)
            for table in tables
            for index in [self.tree.clique_of(table)]
        }

    def table(self, columns: Sequence[int]) -> np.ndarray:
        """Return the expected counts of a table of any columns, with its axes in their order."""
        wanted = {*columns}
        messages: list[list[_Message]] = [[] for _ in self.tree.cliques]
        for index, clique, separator in reversed(self._positions()):
            below = {*clique}.union(*(axes for axes, _ in messages[index]))
            if wanted <= below:
                break
            kept = below & wanted | {*separator}
            if kept > {*separator}:  # otherwise the message is one everywhere
                axes = tuple(sorted(kept))
                message = _sum_product(clique, self.conditionals[index], messages[index], axes)
                messages[self.tree.parents[index]].append((axes, message))
        return _sum_product(clique, self.marginals[index], messages[index], tuple(columns))

    def _positions(self) -> list[tuple[int, Columns, Columns]]:
        return list(zip(range(len(self.tree.cliques)), self.tree.cliques, self.tree.separators, strict=True))

    def _clique_factors(self) -> list[np.ndarray]:
        sums = [np.zeros([self.sizes[column] for column in clique]) for clique in self.tree.cliques]
        for table, factor in self.factors.items():
            index = self.tree.clique_of(table)
            sums[index] += _align(factor, table, self.tree.cliques[index])
        return sums


def independent_model(sizes: Sequence[int], total: float) -> GraphicalModel:
    """Return a model in which all cells are equally likely."""
    return GraphicalModel(tuple(sizes), total, junction_tree(sizes, ()), {})


def _axes_of(clique: Columns, columns: set[int]) -> tuple[int, ...]:
    return tuple(axis for axis, column in enumerate(clique) if column in columns)


def _align(values: np.ndarray, table: Columns, clique: Columns) -> np.ndarray:
    """Return a table's values with axes of length one for the clique's other columns."""
    return np.expand_dims(values, _axes_of(clique, {*clique} - {*table}))


def _sum_to(values: np.ndarray, clique: Columns, table: Columns) -> np.ndarray:
    return np.asarray(values.sum(axis=_axes_of(clique, {*clique} - {*table})))


def _sum_product(clique: Columns, values: np.ndarray, messages: Iterable[_Message], kept: Columns) -> np.ndarray:
    """Multiply a clique's values with messages and sum over the columns that are not kept, as early as possible."""
    axes, remaining = clique, list(messages)
    while remaining:
        message_axes, message = remaining.pop()
        needed = {*kept}.union(*(other for other, _ in remaining))
        result = tuple(sorted(needed & {*axes, *message_axes}))
        values, axes = _einsum([(axes, values), (message_axes, message)], result), result
    return _einsum([(axes, values)], kept)


def _einsum(operands: Sequence[_Message], result: Columns) -> np.ndarray:
    labels = {column: label for label, column in enumerate({column for axes, _ in operands for column in axes})}
    arguments = [part for axes, values in operands for part in (values, [labels[column] for column in axes])]
    return np.asarray(np.einsum(*arguments, [labels[column] for column in result]))
