"""Clipping bias: by how much clipping makes a number too low."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bias:
    """By how much clipping makes a number too low, in the units of its column.

    `low` holds with 95 % confidence; 0: the number may be biased, but nothing is proved. `estimate` is a best guess
    without a confidence level, None if there is none. `high` holds with `low` at 95 %; None unless the policy declares
    `contribution_max`.

    >>> Bias(low=3900, estimate=4021.5).magnitude, Bias(low=0).magnitude
    (4021.5, 0.0)
    """

    low: float
    estimate: float | None = None
    high: float | None = None

    @property
    def magnitude(self) -> float:
        """The larger of the lower bound and the estimate; 0 if nothing is proved, as the estimate may be noise then."""
        return float(max(self.low, self.estimate or 0.0)) if self.low else 0.0

    def scaled(self, factor: float) -> "Bias":
        """Return the bias of a multiple of the number.

        >>> Bias(3, 4.5).scaled(2)
        Bias(low=6, estimate=9.0, high=None)
        """
        return Bias(
            self.low * factor,
            None if self.estimate is None else self.estimate * factor,
            None if self.high is None else self.high * factor,
        )

    def to_dict(self) -> dict[str, float | None]:
        """Return the bias for JSON."""
        return {"low": self.low, "estimate": self.estimate, "high": self.high}


POSSIBLE_BIAS = Bias(low=0)  # clipping may make the number too low; nothing is known of how much
