"""The chance that audits themselves use; that of the mechanisms is theirs."""

import numpy as np

from discreet.kernel.exact import whole


def generator(random_state: int | None) -> np.random.Generator:
    """Return where an audit's own chance comes from: the same for the same number, and always another for None.

    >>> int(generator(1).integers(10))
    4
    """
    return np.random.default_rng(None if random_state is None else whole(random_state, "random_state", 0))
