"""The least number with a property that all larger ones have, by doubling and bisection."""

from collections.abc import Callable


def lowest_integer(fits: Callable[[int], bool], low: int, guess: int) -> int:
    """Return the lowest integer above `low` that fits, if all larger ones fit; the search begins at `guess`.

    >>> lowest_integer(lambda n: n * n >= 50, -1, 1)
    8
    """
    step, high = 1, max(low + 1, guess)
    while not fits(high):
        low, high, step = high, high + step, 2 * step
    step = 1 if step == 1 else 0  # a guess that fits at once may be close
    while high - low > 1:
        middle = max(high - step, (low + high) // 2) if step else (low + high) // 2
        low, high, step = (low, middle, 2 * step) if fits(middle) else (middle, high, 0)
    return high


def lowest_float(fits: Callable[[float], bool], low: float, guess: float, precision: float) -> float:
    """Return about the lowest float above `low` that fits, if all larger ones fit; it fits itself.

    `guess` is positive, and `precision` is relative.

    >>> round(lowest_float(lambda x: x * x >= 2, 0.0, 1.0, 1e-12), 6)
    1.414214
    """
    high = guess
    while not fits(high):
        low, high = high, 2 * high
    while high - low > precision * abs(high) and low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high
