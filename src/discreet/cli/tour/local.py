"""The chapter on the local model: everybody randomises their own answer, and no curator is trusted."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import discreet as dc
from discreet.cli.tour.pictures import WITH, WITHOUT, add, panels, saved
from discreet.cli.tour.recorder import Recorder, good, yes_or_no
from discreet.cli.tour.stage import Stage
from discreet.cli.tour.town import ILLS, PEOPLE, SECRET

EPSILON = 1
_CROWDS = (100, 1_000, 10_000, PEOPLE)
_TIMES = 20


def tell(stage: Stage) -> None:
    """Survey the town without a trusted curator, and compare the errors."""
    ill = pq.read_table(stage.town.folder / "people.parquet", columns=["ill"])["ill"].to_numpy(zero_copy_only=False)
    _coins(stage.recorder, ill == SECRET)
    _protocols(stage.recorder, ill)


def _coins(recorder: Recorder, sick: np.ndarray) -> None:
    recorder.title("Randomised response: no trusted curator")
    coin = dc.RandomizedResponse("1/2")
    recorder.say(
        f"Everybody is asked about {SECRET} and tosses a coin. Heads: answer truthfully. Tails: answer by a second "
        "toss. Every answer may be due to the coin; epsilon is ",
        good(f"ln 3 = {float(coin.loss().epsilon or 0):.3f}"),
        ". The expected share of yes is 1/4 + p/2, from which p is estimated:",
    )
    rows, last = [], (0.0, 0.0, 0.0)
    for people in _CROWDS:
        reports = coin.perturb(sick[:people])
        share, margin = coin.estimate(reports)
        truth = float(sick[:people].mean())
        last = share, margin, truth
        inside = yes_or_no(abs(share - truth) <= margin)
        rows.append((f"{people:,}", f"{reports.mean():.1%}", f"{truth:.1%}", f"{share:.1%} ± {margin:.1%}", inside))
    recorder.table(("people", "answered yes", "true share", "estimate ± 95 %", "within?"), rows)
    share, margin, truth = last
    recorder.say(f"With {_CROWDS[-1]:,} people the estimate is off by {abs(share - truth):.1%}, at ± {margin:.1%}.")


def _protocols(recorder: Recorder, ill: np.ndarray) -> None:
    recorder.title("What the local model costs in accuracy")
    part = ill[: len(ill) // 4]
    rows: list[tuple[str, ...]] = []
    errors: dict[str, float] = {}
    for name in ("GRR", "OUE", "Hadamard"):
        oracle = getattr(dc.local, name)(ILLS, EPSILON)
        few, errors[name] = (_error(_surveys(oracle, crowd), _counts(crowd)) for crowd in (part, ill))
        size = len(next(oracle.perturb(ill[:1]).messages()))
        rows.append((f"{name} (local)", f"{size} bytes", f"{few:,.1f}", f"{errors[name]:,.1f}"))
    laplace = dc.laplace_for(dc.Sensitivity(groups=2, size=1), EPSILON)  # an answer is replaced: two counts change
    few, errors["curator"] = (
        _error([laplace.perturb(_counts(crowd)) for _ in range(_TIMES)], _counts(crowd)) for crowd in (part, ill)
    )
    rows.append(("Laplace (central)", "", f"{few:,.1f}", f"{errors['curator']:,.1f}"))
    recorder.say(
        f"How many people have each of {len(ILLS)} illnesses, at epsilon {EPSILON}: the root mean squared error of a "
        f"count over {_TIMES} surveys."
    )
    crowds = (f"error, {len(part):,} people", f"error, {len(ill):,} people")
    recorder.table(("mechanism", "message", *crowds), rows)
    best = min(errors, key=lambda name: (name == "curator", errors[name]))
    recorder.say(
        f"With all {len(ill):,} people, {best} has {errors[best] / errors['curator']:.0f} times the error of a trusted "
        "curator. In the local model everybody adds noise, so the error grows with the square root of the number of "
        "people; in the central model it does not depend on it."
    )
    add(
        recorder,
        lambda: _draw(recorder.folder, errors),
        f"The error of a count at epsilon {EPSILON}, in the local and in the central model.",
    )


def _surveys(oracle: Any, ill: np.ndarray) -> list[np.ndarray]:
    return [oracle.estimate(oracle.perturb(ill)).estimates * len(ill) for _ in range(_TIMES)]


def _counts(ill: np.ndarray) -> np.ndarray:
    return np.array([np.count_nonzero(ill == each) for each in ILLS])


def _error(estimates: list[np.ndarray], truth: np.ndarray) -> float:
    return float(np.sqrt(np.mean((np.array(estimates) - truth) ** 2)))


def _draw(folder: Path, errors: dict[str, float]) -> Path:
    figure, axes = panels(1)
    colours = [WITHOUT if name == "curator" else WITH for name in errors]
    axes.barh(list(errors), list(errors.values()), color=colours, height=0.6)
    axes.set(xscale="log", xlabel=f"root mean squared error of a count, {PEOPLE:,} people")
    axes.invert_yaxis()
    return saved(figure, folder / "local.svg")
