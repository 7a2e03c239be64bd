"""The chapter on local privacy: people who trust nobody toss their own coins."""

import math
from pathlib import Path

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
    """Ask the whole town about its illnesses without any curator, and say what that costs."""
    ill = pq.read_table(stage.town.folder / "people.parquet", columns=["ill"])["ill"].to_numpy(zero_copy_only=False)
    _coins(stage.recorder, ill == SECRET)
    _protocols(stage.recorder, ill)


def _coins(recorder: Recorder, sick: np.ndarray) -> None:
    recorder.title("Nobody to trust: everybody tosses a coin")
    coin = dc.RandomizedResponse("1/2")
    recorder.say(
        f"Everybody is asked about {SECRET}. Heads: tell the truth; tails: let a second coin answer. A yes proves "
        "nothing, since a healthy person says it once in four times; epsilon is ",
        good(f"ln 3 = {math.log(3):.3f}"),
        ". But the expected share of yes is 1/4 + p/2, so the crowd tells p:",
    )
    rows = []
    for people in _CROWDS:
        reports = coin.perturb(sick[:people])
        share, margin = coin.estimate(reports)
        truth = float(sick[:people].mean())
        inside = yes_or_no(abs(share - truth) <= margin)
        rows.append((f"{people:,}", f"{reports.mean():.1%}", f"{truth:.1%}", f"{share:.1%} ± {margin:.1%}", inside))
    recorder.table(("people", "said yes", "truth", "estimate ± 95 %", "inside?"), rows)


def _protocols(recorder: Recorder, ill: np.ndarray) -> None:
    recorder.title("What trusting nobody costs")
    truth = np.array([np.count_nonzero(ill == each) for each in ILLS])
    rows, errors = [], {}
    for name in ("GRR", "OUE", "Hadamard"):
        oracle = getattr(dc.local, name)(ILLS, EPSILON)
        estimates = [oracle.estimate(oracle.perturb(ill)).estimates * len(ill) for _ in range(_TIMES)]
        errors[name] = _error(estimates, truth)
        size = len(next(oracle.perturb(ill[:1]).messages()))
        rows.append((f"{name}, at home", f"{size} bytes", f"{errors[name]:,.1f} people"))
    laplace = dc.laplace_for(dc.Sensitivity(groups=2, size=1), EPSILON)  # an answer is replaced: two counts change
    errors["curator"] = _error([laplace.perturb(truth) for _ in range(_TIMES)], truth)
    rows.append(("a curator's noise", "", f"{errors['curator']:,.1f} people"))
    recorder.say(
        f"How many of {len(ill):,} have each of {len(ILLS)} illnesses, at epsilon {EPSILON}: the typical error, over "
        f"{_TIMES} surveys."
    )
    recorder.table(("who adds the noise", "each sends", "typical error"), rows)
    recorder.say(
        "At home every answer has noise of its own, and the error grows with the root of the crowd; a curator's stays "
        "as it is. That is the price of not having to trust one."
    )
    add(
        recorder,
        lambda: _draw(recorder.folder, errors),
        "The same question at the same epsilon, without and with trust.",
    )


def _error(estimates: list[np.ndarray], truth: np.ndarray) -> float:
    return float(np.sqrt(np.mean((np.array(estimates) - truth) ** 2)))


def _draw(folder: Path, errors: dict[str, float]) -> Path:
    figure, axes = panels(1)
    colours = [WITHOUT if name == "curator" else WITH for name in errors]
    axes.barh(list(errors), list(errors.values()), color=colours, height=0.6)
    axes.set(xscale="log", xlabel=f"typical error of a count among {PEOPLE:,} people")
    axes.invert_yaxis()
    return saved(figure, folder / "local.svg")
