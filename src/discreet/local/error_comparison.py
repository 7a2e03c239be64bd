"""The error of local protocols compared with that of a trusted curator, measured and plotted."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.kernel.mechanism import Laplace
from discreet.kernel.numbers import Number, as_fraction, as_integer, as_positive
from discreet.local.domain import Domain
from discreet.local.frequency_oracles.grr import GRR
from discreet.local.frequency_oracles.hadamard_response import Hadamard
from discreet.local.frequency_oracles.subset_selection import SubsetSelection
from discreet.local.frequency_oracles.unary_encoding import OUE
from discreet.local.mean_estimation.noisy_mean import laplace_standard_deviation
from discreet.local.oracle import Oracle
from discreet.plotting import (
    BLUE,
    GREEN,
    GREY,
    INK,
    MARKERS,
    PURPLE,
    RED,
    SKY,
    add_legend,
    format_plain_numbers,
    panels,
    save_figure,
    set_epsilon_ticks,
    style,
)

PROTOCOLS = (GRR, OUE, SubsetSelection, Hadamard)
_COLOURS = (PURPLE, BLUE, GREEN, RED, SKY, GREY)


def compare(  # noqa: PLR0913 - most are keyword-only
    values: Any,
    domain: int | Sequence[Any],
    epsilons: Sequence[Number],
    *,
    protocols: Sequence[Callable[[Any, Number], Oracle]] = PROTOCOLS,
    path: str | Path | None = None,
    axes: Any = None,
) -> Any:
    """Plot the error of shares against epsilon, in the local model and for a curator's histogram of the same people.

    Use it with simulated values only: the error is measured against the true shares, and is not private. Returns the
    matplotlib axes; with `path`, saves the figure.

    >>> import numpy as np, discreet as dc
    >>> axes = dc.local.compare(np.arange(8000) % 8, 8, epsilons=[1, 2])
    >>> [line.get_label() for line in axes.lines]
    ['GRR', 'OUE', 'SubsetSelection', 'Hadamard', 'a curator']
    """
    if not isinstance(epsilons, Sequence) or isinstance(epsilons, str) or not epsilons:
        raise TypeError("epsilons must be a list of numbers, such as [0.5, 1, 2]")
    epsilon_values = [float(as_fraction(epsilon, "epsilons")) for epsilon in epsilons]
    people, size = len(values), Domain.from_values(domain).size
    errors_by_protocol = {
        protocol.__name__: [survey_error(protocol(domain, epsilon), values) for epsilon in epsilons]
        for protocol in protocols
    }
    target_axes = axes if axes is not None else panels()[1][0]
    line_styles = zip(
        _COLOURS * len(errors_by_protocol), MARKERS * len(errors_by_protocol), errors_by_protocol.items(), strict=False
    )
    central = [curator_error(people, epsilon) for epsilon in epsilons]
    with style():
        for colour, mark, (name, errors) in line_styles:
            target_axes.plot(epsilon_values, errors, f"{mark}-", color=colour, lw=1.2, ms=3.5, label=name)
        target_axes.plot(epsilon_values, central, ".-", color=INK, lw=2, label="a curator")
        set_epsilon_ticks(target_axes, epsilon_values)
        target_axes.set(yscale="log", ylabel="typical error of a share")
        target_axes.set_title(f"{people:,} people, {size:,} values")
        format_plain_numbers(target_axes.yaxis)
        if axes is None:
            add_legend(target_axes.figure, [target_axes], columns=5)
    if path is not None:
        save_figure(target_axes.figure, path)
    return target_axes


def survey_error(oracle: Oracle, values: Any, *, times: int = 1) -> float:
    """Return the root mean square error of an oracle's shares, over the domain and `times` simulated surveys.

    Use it with simulated values only: the error is measured against the true shares, and is not private.

    >>> import numpy as np, discreet as dc
    >>> 0 < survey_error(dc.local.GRR(4, epsilon=1), np.arange(10_000) % 4) < 0.1
    True
    """
    if not isinstance(oracle.domain, Domain):
        raise TypeError("oracle must be a frequency oracle over a list of values")
    if not len(values):
        raise ValueError("values must not be empty")
    codes = oracle.domain.encode(values, "values")
    truth = np.bincount(codes, minlength=oracle.domain.size) / len(codes)
    estimates = [oracle.estimate(oracle.perturb(values)).estimates for _ in range(as_integer(times, "times", 1))]
    return math.sqrt(np.mean(np.square(np.array(estimates) - truth)))


def curator_error(people: int, epsilon: Number) -> float:
    """Return the theoretical root mean square error of a share if a curator adds Laplace noise to a histogram.

    Neighbouring datasets differ by substitution, as in the local model, so two counts change by one.

    >>> round(curator_error(1_000_000, 1), 9)
    2.799e-06
    """
    noise = Laplace(2 / as_positive(epsilon, "epsilon"))
    return laplace_standard_deviation(noise) / as_integer(people, "people", 1)
