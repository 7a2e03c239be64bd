"""The chapter on learning: where a town lives, as a mixture, with one person who lives apart from everybody."""

from pathlib import Path
from typing import Any

import numpy as np

from discreet.cli.tour.pictures import add, panels, saved
from discreet.cli.tour.recorder import Recorder, good, warn
from discreet.cli.tour.stage import Stage
from discreet.cli.tour.town import WARDS

BOX = (0, 10)  # kilometres: what everybody knows of the town
CABIN = np.array([8.7, 9.1])
EPSILON, DELTA = 1, 1e-9
_HOMES = 24_000
_NEAR = 0.05  # kilometres: nearer than that, a mean gives a house away
_MISSING = "This chapter needs scikit-learn, which comes with the extra `learn`."


def tell(stage: Stage) -> None:
    """Fit the town's homes exactly and privately, and look for the house that stands alone."""
    recorder = stage.recorder
    recorder.title("A model is an answer too: the house that stands alone")
    try:
        _tell(recorder)
    except ModuleNotFoundError:
        recorder.say(_MISSING)


def homes() -> np.ndarray:
    """Return where people live: around the middle of eight wards, and one of them in a cabin in the woods."""
    rng = np.random.default_rng(1848)
    middles = np.array([[2, 2], [5, 1.5], [8, 2.5], [1.5, 5], [4.5, 4.8], [7.5, 5.5], [2.5, 8], [5.5, 7.6]])
    ward = rng.integers(0, len(WARDS), _HOMES)
    near = middles[ward] + rng.normal(0, 0.35, (_HOMES, 2))
    return np.concatenate([np.clip(near, *BOX), CABIN[np.newaxis]])


def _tell(recorder: Recorder) -> None:
    from sklearn.mixture import GaussianMixture as Exact  # noqa: PLC0415 - an extra

    from discreet.learn import GaussianMixture  # noqa: PLC0415

    places = homes()
    parts = len(WARDS) + 1
    exact = Exact(parts, means_init=_guesses(places, parts), max_iter=50).fit(places)
    private = GaussianMixture(parts, epsilon=EPSILON, delta=DELTA, bounds=BOX).fit(places)
    recorder.say(
        f"{len(places):,} homes in {len(WARDS)} wards, and one cabin in the woods. A mixture of {parts} ellipses says "
        "where people live; whoever reads it knows the town, and that somebody lives out there."
    )
    rows = [("exact", *_found(exact)), (f"private, epsilon {EPSILON}", *_found(private))]
    recorder.table(("mixture", "smallest part", "nearest mean to the cabin", "gives it away"), rows)
    gap = exact.score(places) - private.score(places)
    recorder.say(
        f"The private mixture explains the town's homes as well, to {abs(gap):.3f} in the mean log-likelihood. Its "
        "noise is enough for anybody's home, also for the one that stands alone."
    )
    add(recorder, lambda: _draw(recorder.folder, exact, private), "The same town, exactly and privately.")


def _guesses(places: np.ndarray, parts: int) -> np.ndarray:
    """Return places far from each other: an adversary's good guess at where parts are."""
    found = [places[-1]]
    while len(found) < parts:
        apart = np.min([((places - each) ** 2).sum(axis=1) for each in found], axis=0)
        found.append(places[apart.argmax()])
    return np.array(found)


def _found(mixture: Any) -> tuple[Any, ...]:
    away = float(np.linalg.norm(mixture.means_ - CABIN, axis=1).min())
    people = float(mixture.weights_.min()) * (_HOMES + 1)
    told = warn("yes, to the metre") if away < _NEAR / 10 else warn("yes") if away < _NEAR else good("no")
    return f"{people:,.0f} homes", f"{away * 1000:,.0f} m", told


def _draw(folder: Path, exact: Any, private: Any) -> Path:
    from discreet.learn import draw  # noqa: PLC0415

    figure, every = panels(2)
    for axes, (title, mixture) in zip(every, (("exact", exact), ("private", private)), strict=True):
        draw(mixture, axes=axes)
        axes.plot(*CABIN, "x", color="#c0392b", ms=8, label="the cabin")
        axes.set(xlim=BOX, ylim=BOX, aspect=1, xlabel="km", ylabel="km")
        axes.set_title(title, fontsize=10)
    every[0].legend(frameon=False, fontsize=8, loc="upper left")
    return saved(figure, folder / "homes.svg")
