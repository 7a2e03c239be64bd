"""Walsh and Hadamard's transform: every sum of signed numbers at once."""

import numpy as np


def walsh(numbers: np.ndarray) -> np.ndarray:
    """Return, for each i, the sum over j of numbers[j] if i and j have an even number of bits in common, else minus it.

    Of an array of several dimensions, the last is transformed; its length must be a power of two.

    >>> walsh(np.array([5, 1, 0, 2]))
    array([8, 2, 4, 6])
    """
    for _ in range(numbers.shape[-1].bit_length() - 1):
        even, odd = numbers[..., ::2], numbers[..., 1::2]
        # The bit that was summed goes to the top, so that all have had their turn when the first is back.
        numbers = np.concatenate((even + odd, even - odd), axis=-1)
    return numbers


def odd_bits(numbers: np.ndarray) -> np.ndarray:
    """Return 1 where a number has an odd number of bits, else 0."""
    odd: np.ndarray = np.bitwise_count(numbers) & 1
    return odd
