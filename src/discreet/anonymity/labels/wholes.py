"""Whole numbers that are stored as reals."""

import numpy as np
import pyarrow as pa

_EXACT = 2.0**53  # beyond it reals are whole whether the numbers were or not


def as_wholes(values: pa.Array) -> pa.Array:
    """Make integers of reals that are all whole: so does pandas store ages of which one is missing.

    >>> as_wholes(pa.array([21.0, None])).type, as_wholes(pa.array([21.0, 0.5])).type
    (DataType(int64), DataType(double))
    """
    if not pa.types.is_floating(values.type):
        return values
    numbers = values.drop_null().to_numpy(zero_copy_only=False)
    is_whole = bool(((np.abs(numbers) < _EXACT) & (numbers == np.rint(numbers))).all())
    return values.cast(pa.int64()) if is_whole else values
