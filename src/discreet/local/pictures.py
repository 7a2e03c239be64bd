"""What it costs to trust nobody, measured and drawn. matplotlib is loaded only then."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.kernel.exact import Number, fraction, whole
from discreet.kernel.mechanism import Sensitivity, laplace_for
from discreet.local.domain import Domain
from discreet.local.oracle import Oracle
from discreet.local.schemes.direct import GRR
from discreet.local.schemes.hadamard import Hadamard
from discreet.local.schemes.noisy import deviation_of
from discreet.local.schemes.subset import SubsetSelection
from discreet.local.schemes.unary import OUE

PROTOCOLS = (GRR, OUE, SubsetSelection, Hadamard)
_COLOURS = ("#8c6bb1", "#3b6ea8", "#2a9d8f", "#c0392b", "#7f7f7f", "#333333")
_CURATOR = "#d9822b"


def compare(  # noqa: PLR0913 - what is compared, and where it is drawn
    values: Any,
    domain: int | Sequence[Any],
    epsilons: Sequence[Number],
    *,
    protocols: Sequence[Callable[[Any, Number], Oracle]] = PROTOCOLS,
    path: str | Path | None = None,
    axes: Any = None,
) -> Any:
    """Draw the error of shares against epsilon: of surveys at home, and of a curator's histogram of the same people.

    For made-up values: an error is measured against the exact truth. Returns matplotlib's axes, and saves them if a
    path is given.

    >>> import numpy as np, discreet as dc
    >>> axes = dc.local.compare(np.arange(8000) % 8, 8, epsilons=[1, 2])
    >>> [line.get_label() for line in axes.lines]
    ['GRR', 'OUE', 'SubsetSelection', 'Hadamard', 'a curator']
    """
    if not isinstance(epsilons, Sequence) or isinstance(epsilons, str) or not epsilons:
        raise TypeError("epsilons must be a list of prices, such as [0.5, 1, 2]")
    prices = [float(fraction(epsilon, "epsilons")) for epsilon in epsilons]
    people, size = len(values), Domain.of(domain).size
    found = {
        protocol.__name__: [survey_error(protocol(domain, epsilon), values) for epsilon in epsilons]
        for protocol in protocols
    }
    drawn = axes if axes is not None else _axes()
    for colour, (name, errors) in zip(_COLOURS * len(found), found.items(), strict=False):
        drawn.plot(prices, errors, ".-", color=colour, lw=1.2, label=name)
    central = [curator_error(people, epsilon) for epsilon in epsilons]
    drawn.plot(prices, central, ".-", color=_CURATOR, lw=2, label="a curator")
    drawn.set(xscale="log", yscale="log", xlabel="price (epsilon)", ylabel="typical error of a share")
    drawn.set_title(f"{people:,} people, {size:,} values", fontsize=10)
    drawn.set_xticks(prices, [f"{price:g}" for price in prices])
    drawn.set_xticks([], minor=True)
    drawn.legend(frameon=False, fontsize=8, loc="center left", ncols=2)
    if path is not None:
        drawn.figure.savefig(path, bbox_inches="tight")
    return drawn


def survey_error(oracle: Oracle, values: Any, *, times: int = 1) -> float:
    """Return the root of the mean squared error of an oracle's shares, over the domain and so many surveys.

    For made-up values: it is measured against the exact truth.

    >>> import numpy as np, discreet as dc
    >>> 0 < survey_error(dc.local.GRR(4, epsilon=1), np.arange(10_000) % 4) < 0.1
    True
    """
    if not isinstance(oracle.domain, Domain):
        raise TypeError("oracle must be one for the values of a list")
    if not len(values):
        raise ValueError("values must not be empty")
    places = oracle.domain.places(values, "values")
    truth = np.bincount(places, minlength=oracle.domain.size) / len(places)
    found = [oracle.estimate(oracle.perturb(values)).estimates for _ in range(whole(times, "times", 1))]
    return math.sqrt(np.mean(np.square(np.array(found) - truth)))


def curator_error(people: int, epsilon: Number) -> float:
    """Return the same error of a curator who adds Laplace noise to a histogram of so many people, by its law.

    Somebody with another value changes two counts by one: what local privacy hides is hidden here, too.

    >>> round(curator_error(1_000_000, 1), 9)
    2.799e-06
    """
    noise = laplace_for(Sensitivity(groups=2, size=1), epsilon)
    return deviation_of(noise) / whole(people, "people", 1)


def _axes() -> Any:
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - half a second, and an extra
    except ImportError:
        raise ImportError("compare needs matplotlib: pip install matplotlib") from None
    return Figure(figsize=(6, 4)).add_subplot()
