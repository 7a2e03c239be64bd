"""Noise that is the same in every run: of the same law and by the same code, of random bytes that are not random.

A bound that noise exceeds once in a million draws makes a test that fails once in a million runs. Of these bytes it is
exceeded in every run or in none. A process that a test starts draws real noise: bounds for it allow for all that comes.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.stats  # noqa: F401 - it makes generators when it is loaded: before the first test, not within

from discreet.kernel.noise import keystream


@contextmanager
def seeded() -> Iterator[None]:
    """Draw all that the library draws from one seed."""
    generator = np.random.default_rng
    noise, coins, seeds = (generator(seed) for seed in range(3))  # each its own: one more of a kind moves no other
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keystream.Keystream, "bytes", lambda _, count: bytearray(noise.bytes(count)))
        patch.setattr(secrets, "randbelow", lambda end: int(coins.integers(end)))
        patch.setattr(
            np.random, "default_rng", lambda seed=None: generator(seeds.integers(1 << 62) if seed is None else seed)
        )
        keystream._reset_streams()  # and with it what was drawn ahead
        yield
    keystream._reset_streams()
