"""The picture of clipping bias against noise, for bounds on the rows per patient.

Everything is measured by queries to a curator about simulated patients, a few of whom come nearly every day. The true
counts are known only because the data is simulated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.plotting import BLUE, INK, ORANGE, add_legend, format_plain_numbers, panels, set_title, style

SQL = "SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic ORDER BY clinic"
CLINICS = 20
PATIENTS = 100_000
MOST_VISITS = 366  # one on each day of a year
LIMITS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 366)
EPSILONS = ("0.1", "1")
ROUNDS = 40  # answers for each bound and epsilon, with one count per clinic
_LARGE_EPSILON = 1000  # noise of at most a row or two, so that the difference from the truth is clipping bias


@dataclass(frozen=True)
class Point:
    """Effects of a bound on a count: clipping bias, margin of error from noise, and total error."""

    rows: int
    taken: float
    margin: float
    error: float


def visits_of(patients: int) -> np.ndarray:
    """Return the number of visits of each patient: mostly one or two, for a few nearly one a day."""
    chance = (np.arange(patients) + 0.5) / patients
    return np.minimum(MOST_VISITS, chance**-0.5).astype(np.int64)


def simulated(patients: int = PATIENTS) -> pa.Table:
    """Return a table of visits; each patient goes to one clinic."""
    patient = np.repeat(np.arange(patients), visits_of(patients))
    return pa.table({"patient": patient, "clinic": patient % CLINICS})


def measured(
    visits: pa.Table, limits: Sequence[int] = LIMITS, epsilons: Sequence[str] = EPSILONS, rounds: int = ROUNDS
) -> dict[str, list[Point]]:
    """Ask with every bound at every epsilon, and compare with the true counts."""
    truth = np.bincount(visits["clinic"].to_numpy(), minlength=CLINICS)
    asked = [(epsilon, rows) for epsilon in epsilons for rows in limits]
    with _curator(visits) as curator:
        margins = {each: _margin(curator, *each) for each in asked}  # before cached answers make them smaller
        taken = {rows: truth - _asked(curator, _LARGE_EPSILON, rows) for rows in limits}
    errors = {each: list[np.ndarray]() for each in asked}
    for _ in range(rounds):
        with _curator(visits) as curator:  # a new ledger, to avoid cached answers
            for (epsilon, rows), found in errors.items():
                found.append(np.abs(_asked(curator, epsilon, rows) - truth))
    return {
        epsilon: [
            Point(rows, _most(taken[rows]), margins[epsilon, rows], _most(errors[epsilon, rows])) for rows in limits
        ]
        for epsilon in epsilons
    }


def _most(numbers: object) -> float:
    """Return the 95 % quantile."""
    return float(np.quantile(np.array(numbers), 0.95))


def _curator(visits: pa.Table) -> dc.Curator:
    return dc.open(
        visits,
        table="visits",
        unit="patient",
        budget=1_000_000,
        columns={"clinic": (0, CLINICS - 1)},
        groups=1,
        ledger=":memory:",
    )


def _margin(curator: dc.Curator, epsilon: str, rows: int) -> float:
    (column,) = curator.explain(SQL, epsilon=epsilon, rows=rows).columns
    assert column.margin is not None
    return column.margin


def _asked(curator: dc.Curator, epsilon: str | int, rows: int) -> np.ndarray:
    return curator.ask(SQL, epsilon=epsilon, rows=rows).to_arrow()["n"].to_numpy()


def best(points: Sequence[Point]) -> Point:
    """Return the point with the smallest error."""
    return min(points, key=lambda point: point.error)


def bounds_figure(found: Mapping[str, Sequence[Point]]) -> Any:
    """Draw a panel for each epsilon: bias decreases with the bound, noise increases, the error has a minimum."""
    figure, every = panels(len(found), sharey=True)
    top = max(max(point.error, point.margin, point.taken) for points in found.values() for point in points)
    leasts = {epsilon: best(points) for epsilon, points in found.items()}
    with style():
        for axes, (epsilon, points) in zip(every, found.items(), strict=True):
            rows, least = [point.rows for point in points], leasts[epsilon]
            axes.plot(rows, [point.taken for point in points], color=BLUE, ls="--", label="clipping bias")
            axes.plot(rows, [point.margin for point in points], color=ORANGE, ls="-.", label="noise (95 % margin)")
            axes.plot(rows, [point.error for point in points], ".-", color=INK, lw=1, label="total error")
            axes.plot([least.rows], [least.error], "o", color=INK, ms=6)
            above = {"textcoords": "offset points", "ha": "center", "fontsize": 8}
            axes.annotate(f"rows = {least.rows}", (least.rows, least.error), (0, 10), **above)
            axes.set(xscale="log", yscale="log", xlabel="maximum rows per patient", ylim=(10, 2 * top))
            axes.set_title(f"epsilon {epsilon}")
            format_plain_numbers(axes.xaxis, axes.yaxis)
        every[0].set_ylabel("visits to a clinic, at 95 %")
        add_legend(figure, every[:1])
        said = ", ".join(f"{least.rows} at epsilon {epsilon}" for epsilon, least in leasts.items())
        set_title(figure, f"The bound on rows that minimises the error grows with epsilon: {said}")
    return figure


PICTURES = {"bounds": (lambda: measured(simulated()), bounds_figure)}
