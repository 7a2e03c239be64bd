"""What reports say together: a number for each value, or a mean, with its margin; to print, to draw, as a table."""

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from discreet.figures import BLUE, INK, panels, save, style

_SHOWN = 20  # lines of a long list


class _Pair(NamedTuple):
    estimates: Any
    margins: Any


class Estimate(_Pair):
    """The share of people with each value, as arrays, or the mean of a number; and what noise can have changed in it.

    It is a pair, and knows the names of the values.

    >>> import discreet as dc
    >>> survey = dc.local.GRR(["yes", "no"], epsilon=30)
    >>> found = survey.estimate(survey.perturb(["yes", "no", "no", "no"]))
    >>> shares, margins = found
    >>> shares.round(3), found.names
    (array([0.25, 0.75]), ('yes', 'no'))
    """

    names: tuple[Any, ...] | None

    def __new__(cls, estimates: Any, margins: Any, names: tuple[Any, ...] | None = None) -> Self:
        """Put together what belongs together; without names, values are called by their places."""
        made = super().__new__(cls, estimates, margins)
        made.names = names
        return made

    def to_pandas(self) -> Any:
        """Return a frame of pandas with a line for each value."""
        columns = {"estimate": np.atleast_1d(self.estimates), "margin": np.atleast_1d(self.margins)}
        return import_module("pandas").DataFrame(columns, index=None if self.names is None else list(self.names))

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the estimates with their margins; return matplotlib's axes, and save them if a path is given."""
        figure, (axes,) = panels()
        heights, margins = np.atleast_1d(self.estimates), np.atleast_1d(self.margins)
        places = np.arange(len(heights))
        with style():
            axes.bar(places, heights, yerr=margins, color=BLUE, ecolor=INK, capsize=2)
            axes.axhline(0, color=INK, lw=0.5)
            axes.set_ylabel("estimate (error bars: 95 % margin)")
            if self.names is not None:
                turned = 90 if len(heights) > 5 else 0
                axes.set_xticks(places, [f"{name!s:.30}" for name in self.names], rotation=turned, parse_math=False)
        if path is not None:
            save(figure, path)
        return axes

    def __repr__(self) -> str:
        values, margins = np.atleast_1d(self.estimates), np.atleast_1d(self.margins)
        digits = [_digits(margin) for margin in margins[:_SHOWN]]
        shown = [f"{v:,.{d}f} ± {m:,.{d}f}" for v, m, d in zip(values, margins, digits, strict=False)]
        if np.ndim(self.estimates) == 0:
            return shown[0]
        names = [f"{name!s:.40}" for name in (self.names or range(len(values)))[:_SHOWN]]
        width = max(map(len, names))
        lines = [f"{name:<{width}}  {each}" for name, each in zip(names, shown, strict=True)]
        return "\n".join(lines + ([f"… {len(values):,} values"] if len(values) > _SHOWN else []))


def _digits(margin: float) -> int:
    """Return how many digits behind the point say something: two of the margin's."""
    return int(min(max(1 - np.floor(np.log10(margin)), 0), 12)) if np.isfinite(margin) and margin > 0 else 6
