"""The chapter on learning: what a mixture model discloses of people who live apart, and what privacy costs it."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from discreet.cli.tour.pictures import add, panels, saved
from discreet.cli.tour.recorder import Cell, good, warn
from discreet.cli.tour.stage import Stage
from discreet.cli.tour.town import WARDS
from discreet.figures import explain

BOX = (0, 10)  # kilometres: what everybody knows of the town
EPSILON, DELTA = 1, 1e-9
_HOMES = 24_000
_HALF = 0.5
_FAR = 3  # times as far from the people: a model of another detail
_CLOSE = 0.05  # in the mean log-likelihood: as good a model
_MISSING = "This chapter needs scikit-learn and scipy, which come with the extra `attacks`."


def tell(stage: Stage) -> None:
    """Locate people from the parameters of a model, non-private and private; then compare how well both fit."""
    recorder = stage.recorder
    recorder.title("A model discloses data too: people who live apart")
    try:
        _attack(stage)
        _fit(stage)
    except ModuleNotFoundError:
        recorder.say(_MISSING)


def _attack(stage: Stage) -> None:
    from discreet.attacks import lone_cluster  # noqa: PLC0415 - an extra

    recorder = stage.recorder
    seed = int(np.random.default_rng().integers(1 << 32))  # the same people under every defence
    against: list[dict[str, Any]] = [{}, {"defence": "easy"}, {"defence": "curator", "epsilon": EPSILON}]
    labels = ("non-private", "no small components", f"private, epsilon {EPSILON}")
    jobs = [stage.hands.submit(partial(lone_cluster, **defence, random_state=seed)) for defence in against]
    results = recorder.wait(jobs, "attacking mixtures")
    about = results[0].details
    recorder.say(
        f"A Gaussian mixture with {about['components shown']:.0f} components is fitted to the homes of "
        f"{about['people of the crowd']} people in a city and of up to {about['lone people']} people who live "
        "kilometres from anybody else; a coin decides which of these are in the data. An attacker sees the parameters "
        "of the mixture and names places."
    )
    rows: list[tuple[Cell, ...]] = []
    shares = [float(result.details["located"]) for result in results]
    for label, result, share in zip(labels, results, shares, strict=True):
        bound = "" if result.ceiling is None else f"{result.ceiling:.2f}"
        mark = warn if share > _HALF else good
        rows.append((label, mark(f"{share:.1%}"), f"{result.success:.2f}", bound))
    within = f"located within {about['located means within, in m']:.0f} m"
    recorder.table(("released mixture", within, "membership AUC", "AUC bound"), rows)
    others = float(results[2].details["located while not in the data"])
    recorder.say(*_verdict(shares, others, results[1].details["rows planted for each"]))
    near, far = (_distance(results[place]) for place in (0, 2))
    recorder.say(
        f"Half of the city's people live within {near:.1f} km of a mean of the non-private mixture, and within "
        f"{far:.1f} km of a mean of the private one: at epsilon {EPSILON}, {about['people of the crowd']} people allow "
        f"{'no detailed model' if far > _FAR * near else 'a model as detailed'}."
    )
    add(
        recorder,
        lambda: _map(recorder.folder, {labels[place]: results[place] for place in (0, 2)}),
        "The released components, and the people who were located.",
    )


def _distance(result: Any) -> float:
    """Return the median distance of the city's people from the nearest released mean, in kilometres."""
    drawn = result.draw.keywords  # the attack's map has the people and the mixture
    apart = np.linalg.norm(drawn["known"].crowd[:, None] - drawn["seen"].means, axis=2)
    return float(np.median(apart.min(axis=1)))


def _verdict(shares: list[float], others: float, planted: int) -> list[Cell]:
    """Say what each defence did, from the shares of people who were located."""
    plain, fixed, private = shares
    said: list[Cell] = []
    if plain > _HALF:
        said.append("A component with a single member is that person's address. ")
    if fixed > _HALF:
        said.append(
            f"Removing components of fewer than five people does not help: the attacker adds {planted} records of "
            "their own around the place where they expect somebody. "
        )
    said.append(
        good("From the private mixture, none of them was located.")
        if private == 0
        else f"Around the private means are {private:.1%} of them, and {others:.1%} of those not in the data."
    )
    return said


def homes() -> np.ndarray:
    """Return where simulated people live: around the centres of eight wards."""
    rng = np.random.default_rng(1848)
    centres = np.array([[2, 2], [5, 1.5], [8, 2.5], [1.5, 5], [4.5, 4.8], [7.5, 5.5], [2.5, 8], [5.5, 7.6]])
    ward = rng.integers(0, len(WARDS), _HOMES)
    return np.clip(centres[ward] + rng.normal(0, 0.35, (_HOMES, 2)), *BOX)


def fit_both(places: np.ndarray) -> tuple[Any, Any]:
    """Fit a mixture to places, without and with privacy."""
    from sklearn.mixture import GaussianMixture as NonPrivate  # noqa: PLC0415 - an extra

    from discreet.learn import GaussianMixture  # noqa: PLC0415

    plain = NonPrivate(len(WARDS), random_state=0, n_init=3).fit(places)
    return plain, GaussianMixture(len(WARDS), epsilon=EPSILON, delta=DELTA, bounds=BOX).fit(places)


def _fit(stage: Stage) -> None:
    recorder = stage.recorder
    recorder.title("What privacy costs a model")
    places = homes()
    ((plain, private),) = recorder.wait([stage.hands.submit(fit_both, places)], "fitting mixtures")
    scores = [float(model.score(places)) for model in (plain, private)]
    gap = scores[0] - scores[1]
    recorder.say(
        f"The homes of {len(places):,} people in {len(WARDS)} wards, fitted without privacy and at epsilon {EPSILON}. "
        f"Mean log-likelihood: {scores[0]:.3f} and {scores[1]:.3f}. ",
        good("The private mixture fits as well.") if gap <= _CLOSE else warn(f"The private one is worse by {gap:.2f}."),
    )
    add(recorder, lambda: _draw(recorder.folder, plain, private), "Both mixtures of the town's homes.")


def _draw(folder: Path, plain: Any, private: Any) -> Path:
    from discreet.learn import draw  # noqa: PLC0415

    figure, every = panels(2)
    for axes, (title, mixture) in zip(every, (("non-private", plain), ("private", private)), strict=True):
        draw(mixture, axes=axes)
        axes.set(xlim=BOX, ylim=BOX, aspect=1, xlabel="km", ylabel="km")
        axes.set_title(title, fontsize=10)
    return saved(figure, folder / "homes.svg")


def _map(folder: Path, results: dict[str, Any]) -> Path:
    figure, every = panels(2)
    for axes, (label, result) in zip(every, results.items(), strict=True):
        result.draw(axes)
        axes.set_title(label, fontsize=10)
    explain(figure, [every[0]])
    return saved(figure, folder / "lone.svg")
