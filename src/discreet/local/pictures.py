"""What it costs to trust nobody, measured and drawn. matplotlib is loaded only then."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.figures import (
    BLUE,
    GREEN,
    GREY,
    INK,
    MARKS,
    PURPLE,
    RED,
    SKY,
    epsilon_ticks,
    explain,
    panels,
    plain_numbers,
    save,
    style,
)
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
_COLOURS = (PURPLE, BLUE, GREEN, RED, SKY, GREY)


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
    drawn = axes if axes is not None else panels()[1][0]
    looks = zip(_COLOURS * len(found), MARKS * len(found), found.items(), strict=False)
    central = [curator_error(people, epsilon) for epsilon in epsilons]
    with style():
        for colour, mark, (name, errors) in looks:
            drawn.plot(prices, errors, f"{mark}-", color=colour, lw=1.2, ms=3.5, label=name)
        drawn.plot(prices, central, ".-", color=INK, lw=2, label="a curator")
        epsilon_ticks(drawn, prices)
        drawn.set(yscale="log", ylabel="typical error of a share")
        drawn.set_title(f"{people:,} people, {size:,} values")
        plain_numbers(drawn.yaxis)
        if axes is None:
            explain(drawn.figure, [drawn], columns=5)
    if path is not None:
        save(drawn.figure, path)
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
