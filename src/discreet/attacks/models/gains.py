"""What being in the data adds for a person, with its interval."""

import numpy as np


def gain(beyond: np.ndarray) -> str:
    """Return the mean of what members were hit beyond strangers, and its interval at 95 %, as a text.

    Each entry is of one person who was both: pairs allow for hits that go together, and for those that exclude each
    other.

    >>> gain(np.array([1.0, 0.0, 0.0, 1.0]))
    '+0.500 (+0.010 to +0.990)'
    """
    middle, wide = beyond.mean(), 1.96 * beyond.std() / np.sqrt(beyond.size)
    return f"{middle:+.3f} ({middle - wide:+.3f} to {middle + wide:+.3f})"
