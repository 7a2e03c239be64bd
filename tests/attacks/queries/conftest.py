import numpy as np
import pytest

from discreet.attacks.queries.oracles import exact, fresh_noise


@pytest.fixture
def little_noise():
    """Return a function that makes a defence: fresh noise of a width that is too small for what it claims."""

    def make(width):
        rng, opened = np.random.default_rng(0), {}

        def defence(table):
            if not opened:  # all copies are the same table, and opening it takes a moment
                opened["people"] = exact(table)
            return fresh_noise(opened["people"], width, rng)

        return defence

    return make
