"""Graphical models by brute force: the joint distribution of all columns, for a few small columns."""

import numpy as np
from hypothesis import strategies as st


def joint_table(model):
    """Return the expected counts of all columns together."""
    columns = range(len(model.sizes))
    log = np.zeros(model.sizes)
    for table, factor in model.factors.items():
        log = log + np.expand_dims(factor, [column for column in columns if column not in table])
    weights = np.exp(log - log.max())
    return model.total * weights / weights.sum()


def marginal(joint, columns):
    """Return the table of some columns, with its axes in their order."""
    rest = tuple(column for column in range(joint.ndim) if column not in columns)
    ordered = sorted(columns)
    return joint.sum(axis=rest).transpose([ordered.index(column) for column in columns])


@st.composite
def sizes_and_tables(draw, max_columns=6):
    """Draw the sizes of some columns, and some tables of one to three of them."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=max_columns))
    columns = st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=3, unique=True)
    return sizes, draw(st.lists(columns.map(sorted).map(tuple), max_size=7, unique=True))
