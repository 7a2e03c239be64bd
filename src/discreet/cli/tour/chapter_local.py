"""The chapter on the local model: randomised answers without a trusted curator."""

from typing import Any

import numpy as np
import pyarrow.parquet as pq

import discreet as dc
from discreet.cli.tour.recorder import Recorder, TourContext, good, yes_or_no
from discreet.plotting import BLUE, ORANGE, panels
from discreet.worlds.town import ILLNESSES, PEOPLE, SECRET_ILLNESS

EPSILON = 1
_CROWD_SIZES = (100, 1_000, 10_000, PEOPLE)
_SURVEYS = 20


def show_chapter(context: TourContext) -> None:
    """Survey the town without a trusted curator, and compare the errors."""
    ill = pq.read_table(context.town.folder / "people.parquet", columns=["ill"])["ill"].to_numpy(zero_copy_only=False)
    _show_randomised_response(context.recorder, ill == SECRET_ILLNESS)
    _show_protocols(context.recorder, ill)


def _show_randomised_response(recorder: Recorder, sick: np.ndarray) -> None:
    recorder.add_section("Randomised response: no trusted curator")
    coin = dc.RandomizedResponse("1/2")
    recorder.add_paragraph(
        f"A survey asks whether people have {SECRET_ILLNESS}. Everybody tosses a coin in secret. Heads: answer "
        "truthfully. Tails: let a second toss decide. Any single answer may be due to the coin; epsilon is ",
        good(f"ln 3 = {float(coin.loss().epsilon or 0):.3f}"),
        ". If the true share is p, the expected share of yes is 1/4 + p/2, from which p is estimated:",
    )
    rows, last = [], (0.0, 0.0, 0.0)
    for people in _CROWD_SIZES:
        reports = coin.perturb(sick[:people])
        share, margin = coin.estimate(reports)
        truth = float(sick[:people].mean())
        last = share, margin, truth
        is_within = yes_or_no(abs(share - truth) <= margin)
        rows.append((f"{people:,}", f"{reports.mean():.1%}", f"{truth:.1%}", f"{share:.1%} ± {margin:.1%}", is_within))
    recorder.add_table(("people", "answered yes", "true share", "estimate ± 95 %", "within?"), rows)
    share, margin, truth = last
    recorder.add_paragraph(
        f"With {_CROWD_SIZES[-1]:,} people the error is {abs(share - truth):.1%}, with a margin of ± {margin:.1%}."
    )


def _show_protocols(recorder: Recorder, ill: np.ndarray) -> None:
    recorder.add_section("What the local model costs in accuracy")
    part = ill[: len(ill) // 4]
    rows: list[tuple[str, ...]] = []
    errors: dict[str, float] = {}
    for name in ("GRR", "OUE", "Hadamard"):
        oracle = getattr(dc.local, name)(ILLNESSES, EPSILON)
        few, errors[name] = (
            _root_mean_squared_error(_survey_estimates(oracle, crowd), _illness_counts(crowd)) for crowd in (part, ill)
        )
        size = len(next(oracle.perturb(ill[:1]).messages()))
        rows.append((f"{name} (local)", f"{size} bytes", f"{few:,.1f}", f"{errors[name]:,.1f}"))
    laplace = dc.laplace_for(dc.Sensitivity(groups=2, size=1), EPSILON)  # substitution of one answer changes two counts
    few, errors["curator"] = (
        _root_mean_squared_error(
            [laplace.perturb(_illness_counts(crowd)) for _ in range(_SURVEYS)], _illness_counts(crowd)
        )
        for crowd in (part, ill)
    )
    rows.append(("Laplace (central)", "", f"{few:,.1f}", f"{errors['curator']:,.1f}"))
    recorder.add_paragraph(
        f"The numbers of people with each of {len(ILLNESSES)} illnesses are estimated at epsilon {EPSILON}. The table "
        f"shows the root mean squared error of a count over {_SURVEYS} surveys."
    )
    crowds = (f"error, {len(part):,} people", f"error, {len(ill):,} people")
    recorder.add_table(("mechanism", "message", *crowds), rows)
    best = min(errors, key=lambda name: (name == "curator", errors[name]))
    recorder.add_paragraph(
        f"With all {len(ill):,} people, {best} has {errors[best] / errors['curator']:.0f} times the error of a trusted "
        "curator. In the local model everybody adds noise, so the error grows with the square root of the number of "
        "people; in the central model the expected error does not depend on that number."
    )
    recorder.draw_picture(
        lambda: _draw_errors(errors),
        "local.svg",
        f"The error of a count at epsilon {EPSILON} in the local and the central model.",
    )


def _survey_estimates(oracle: Any, ill: np.ndarray) -> list[np.ndarray]:
    return [oracle.estimate(oracle.perturb(ill)).estimates * len(ill) for _ in range(_SURVEYS)]


def _illness_counts(ill: np.ndarray) -> np.ndarray:
    return np.array([np.count_nonzero(ill == illness) for illness in ILLNESSES])


def _root_mean_squared_error(estimates: list[np.ndarray], truth: np.ndarray) -> float:
    return float(np.sqrt(np.mean((np.array(estimates) - truth) ** 2)))


def _draw_errors(errors: dict[str, float]) -> Any:
    figure, (axes,) = panels()
    colours = [BLUE if name == "curator" else ORANGE for name in errors]
    axes.barh(list(errors), list(errors.values()), color=colours, height=0.6)
    axes.set(xscale="log", xlabel=f"root mean squared error of a count, {PEOPLE:,} people")
    axes.invert_yaxis()
    return figure
