"""Families of tables with dense matrices: what least squares must agree with."""

from itertools import product

import numpy as np
from hypothesis import strategies as st

from discreet.publish.marginals import Axis, coarsenings


def matrix(axes, table):
    """Return the matrix that sums the cells of all axes at their finest levels to those of a table."""
    result, levels = np.ones((1, 1)), dict(table)
    for index, axis in enumerate(axes):
        nodes = axis.ancestors[0, levels.get(index, axis.total)]
        result = np.kron(result, np.equal.outer(np.arange(nodes.max() + 1), nodes).astype(float))
    return result


def stacked(axes, measured):
    """Return the matrix of all measured tables, in units of their noise, and a pseudo-inverse of its square."""
    rows = np.vstack([matrix(axes, table) / variance**0.5 for table, variance in measured.items()])
    return rows, np.linalg.pinv(rows.T @ rows, hermitian=True)


def all_tables(axes):
    choices = [[None, *((index, level) for level in range(axis.total))] for index, axis in enumerate(axes)]
    return [tuple(part for part in parts if part is not None) for parts in product(*choices)]


def follow_from(axes, measured):
    return list(dict.fromkeys(part for table in measured for part in coarsenings(axes, table)))


flat_axes = st.builds(lambda size: Axis("a", size), st.integers(1, 4))


@st.composite
def balanced_axes(draw):
    fine, middle, coarse = (draw(st.integers(1, 3)) for _ in range(3))
    codes = np.arange(fine * middle * coarse)
    if draw(st.booleans()):
        codes = codes[::-1]  # the nodes of a level need not be in order
    parents = (tuple((codes // fine).tolist()), tuple((codes // fine // middle).tolist()))
    return Axis("b", len(codes), parents[: draw(st.integers(1, 2))])


@st.composite
def uneven_axes(draw):
    towns = draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    codes = np.repeat(np.arange(len(towns)), towns)
    return Axis("u", len(codes), (tuple(codes[draw(st.permutations(range(len(codes))))].tolist()),))


even_axes = flat_axes | balanced_axes()


@st.composite
def families(draw, axis=even_axes, largest=3):
    """Return axes, and some tables with their variances."""
    axes = tuple(draw(st.lists(axis, min_size=1, max_size=largest)))
    while np.prod([axis.size for axis in axes]) > 120:
        axes = axes[:-1]
    tables = draw(st.lists(st.sampled_from(all_tables(axes)), min_size=1, max_size=6, unique=True))
    return axes, {table: draw(st.sampled_from([0.25, 1.0, 3.0, 50.0])) for table in tables}
