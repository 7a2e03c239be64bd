"""The domain of a person's value: a list of values, or a number between declared bounds."""

import difflib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.numbers import Number, as_fraction, as_integer

GRID_STEPS = 1 << 20  # numbers are rounded to this many steps between the bounds
_MAX_BOUND, _MIN_BOUND = Fraction(10) ** 307, Fraction(1, 10**290)
_MAX_BOUND_TO_WIDTH = 1 << 30  # keeps the steps of a narrow interval distinct as floats
MAX_DOMAIN_SIZE = 1 << 24  # an estimate has a number for each value


@dataclass(frozen=True)
class Domain:
    """A list of values, or only its size if the values are 0, 1, ….

    >>> Domain.from_values(["red", "green"]).encode(["green", "red", "green"], "values")
    array([1, 0, 1])
    """

    size: int
    values: tuple[Any, ...] | None = None

    @classmethod
    def from_values(cls, given: int | Sequence[Any]) -> "Domain":
        """Return the domain of a list of values, or of a number of values."""
        if isinstance(given, int | np.integer) and not isinstance(given, bool):
            size = as_integer(given, "domain", 2)
            if size > MAX_DOMAIN_SIZE:
                raise ValueError(
                    f"domain: {size:,} values are too many, at most {MAX_DOMAIN_SIZE:,} are supported. "
                    "Use HeavyHitters to find the frequent ones."
                )
            return cls(size)
        values = tuple(as_list(given, "domain"))
        if len(values) < 2:
            raise ValueError("domain must have at least two values")
        try:
            distinct_count = len(set(values))
        except TypeError:
            raise TypeError("domain: the values must be hashable, such as numbers or strings, not lists") from None
        if distinct_count < len(values):
            raise ValueError("domain: a value occurs twice")
        if any(value != value for value in values):  # noqa: PLR0124 - only NaN differs from itself
            raise ValueError("domain: NaN cannot be a value. Use None or a string instead.")
        return cls(len(values), values)

    @property
    def names(self) -> tuple[Any, ...] | None:
        """The names of the values, if the domain has a list."""
        return self.values

    @property
    def description(self) -> str:
        """A short description."""
        return f"{self.size:,} values"

    def encode(self, values: Any, name: str) -> np.ndarray:
        """Return the index of each value in the domain, as int64."""
        if self.values is not None:
            return self._encode_listed(as_list(values, name), name)
        given = as_number_array(values, name, "biu", f"integers below {self.size}")
        if given.size and (given.min() < 0 or given.max() >= self.size):
            worst = int(given.max()) if given.max() >= self.size else int(given.min())
            raise ValueError(f"{name}: {worst} is outside the domain 0 to {self.size - 1}")
        return given.astype(np.int64)

    def _encode_listed(self, given: list[Any], name: str) -> np.ndarray:
        code_of_value = {value: index for index, value in enumerate(self.values or ())}
        try:
            return np.array([code_of_value[value] for value in given], np.int64)
        except (KeyError, TypeError):
            missing = next(value for value in given if not _is_listed(value, code_of_value))
            close_matches = difflib.get_close_matches(
                str(missing)[:60], [known_value for known_value in code_of_value if isinstance(known_value, str)], 1
            )
            hint = f". Did you mean {close_matches[0]!r:.60}?" if close_matches else ""
            preview = _preview_values(self.values or ())
            raise ValueError(f"{name}: {missing!r:.60} is not in the domain: {preview}{hint}") from None

    def rescale_estimate(self, shares: np.ndarray, margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins unchanged."""
        return shares, margins

    def __str__(self) -> str:
        if self.values is None:
            return str(self.size)
        return hashlib.sha256(repr(self.values).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Interval:
    """A number from `low` to `high`, rounded to the nearest of 2^20 steps.

    >>> Interval.from_bounds(0, 100).encode([25.0], "values")
    array([262144])
    """

    low: Fraction
    high: Fraction

    @classmethod
    def from_bounds(cls, low: Number, high: Number) -> "Interval":
        """Return the interval between two bounds."""
        bounds = as_fraction(low, "low"), as_fraction(high, "high")
        if bounds[0] >= bounds[1]:
            raise ValueError(f"low must be below high, not {low} and {high}")
        max_magnitude = max(map(abs, bounds))
        if max_magnitude > _MAX_BOUND or (bounds[1] - bounds[0]) * _MAX_BOUND_TO_WIDTH < max(max_magnitude, _MIN_BOUND):
            raise ValueError("low, high: floats cannot resolve the interval. Use other units.")
        return cls(*bounds)

    def encode(self, values: Any, name: str) -> np.ndarray:
        """Return the step of each value, as int64."""
        numbers = as_number_array(values, name, "biuf", "numbers").astype(np.float64)
        if np.isnan(numbers).any():
            raise ValueError(f"{name}: NaN is not allowed. Leave out missing values.")
        low, high = float(self.low), float(self.high)
        outside = ~((numbers >= low) & (numbers <= high))
        if outside.any():
            raise ValueError(
                f"{name}: {numbers[outside][0]:g} is outside the declared bounds, {low:g} to {high:g}. "
                "Clip it, or declare wider bounds."
            )
        # Dividing by two avoids overflow with the widest bounds.
        steps = np.rint((numbers / 2 - low / 2) / (high / 2 - low / 2) * GRID_STEPS)
        return np.clip(steps, 0, GRID_STEPS).astype(np.int64)

    @property
    def names(self) -> None:
        """None: a mean has no names."""
        return

    @property
    def description(self) -> str:
        """A short description."""
        return f"numbers from {float(self.low):.12g} to {float(self.high):.12g}"

    def rescale_estimate(self, shares: np.ndarray, margins: np.ndarray) -> tuple[float, float]:
        """Convert a mean and its margin from steps to the unit of the bounds."""
        width = float(self.high - self.low) / GRID_STEPS
        return float(self.low) + float(shares[0]) * width, float(margins[0]) * width

    def __str__(self) -> str:
        return f"{self.low} {self.high}"


def _is_listed(value: Any, code_of_value: Mapping[Any, int]) -> bool:
    try:
        return value in code_of_value
    except TypeError:  # not hashable
        return False


def as_list(values: Any, name: str) -> list[Any]:
    """Return a column of any library as a list; TypeError for a single value, or a table."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(
            f"{name} must be a list, not {type(values).__name__}. For one person, pass a list of one value."
        )
    if np.ma.isMaskedArray(values):
        raise TypeError(f"{name} must not be a masked array. Leave out missing values.")
    if getattr(values, "ndim", 1) != 1 or isinstance(values, Mapping):
        raise TypeError(f"{name} must be a list, or one column of a table")
    for method in ("tolist", "to_list", "to_pylist"):  # numpy and pandas, polars, Arrow
        if hasattr(values, method):
            return list(getattr(values, method)())
    return list(values)


def as_number_array(values: Any, name: str, kinds: str, wanted: str) -> np.ndarray:
    """Return a column of any library as an array of numbers of certain dtype kinds."""
    given = values if isinstance(values, np.ndarray) else np.asarray(as_list(values, name))
    if given.ndim != 1 or np.ma.isMaskedArray(given):
        kind = "a masked array" if given.ndim == 1 else f"an array of {given.ndim} dimensions"
        raise ValueError(f"{name} must be a list, not {kind}")
    if given.size and given.dtype.kind not in kinds:
        raise TypeError(f"{name} must be {wanted}, not {given.dtype}")
    return given


def _preview_values(values: tuple[Any, ...]) -> str:
    shown = ", ".join(f"{value!r:.30}" for value in values[:5])
    return shown if len(values) <= 5 else f"{shown}, … ({len(values):,} values)"
