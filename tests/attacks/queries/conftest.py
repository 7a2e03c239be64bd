import numpy as np
import pytest

from discreet.attacks.queries.sql_oracles import add_fresh_noise, exact_oracle


@pytest.fixture
def little_noise():
    """Return a function that makes a defence: fresh noise of a width that is too small for what it claims."""

    def make(width):
        rng, opened = np.random.default_rng(0), {}

        def defence(table):
            if not opened:  # all copies are the same table, and opening it takes a moment
                opened["people"] = exact_oracle(table)
            return add_fresh_noise(opened["people"], width, rng)

        return defence

    return make
