"""The chapter on learning: what a mixture model discloses, and what privacy costs it."""

from functools import partial
from typing import Any

import numpy as np

from discreet.cli.tour.page import Cell
from discreet.cli.tour.recorder import TourContext, good, warn
from discreet.plotting import add_legend, panels
from discreet.worlds.town import WARDS

BOX = (0, 10)  # kilometres; public
EPSILON, DELTA = 1, 1e-9
_HOMES = 24_000
_HALF = 0.5
_FAR = 3  # times as far from the people: a coarser model
_CLOSE = 0.05  # difference in mean log-likelihood that counts as an equal fit
_MISSING = "This chapter needs scikit-learn and scipy: pip install 'discreet[attacks]'."


def show_chapter(context: TourContext) -> None:
    """Locate people from the parameters of a non-private and a private model, and compare how well both fit."""
    recorder = context.recorder
    recorder.add_section("Models disclose data too: people who live far from everybody else")
    try:
        _show_attack(context)
        _show_fit(context)
    except ModuleNotFoundError:
        recorder.add_paragraph(_MISSING)


def _show_attack(context: TourContext) -> None:
    from discreet.attacks import lone_cluster  # noqa: PLC0415 - an extra

    recorder = context.recorder
    seed = int(np.random.default_rng().integers(1 << 32))  # the same people under every defence
    defences: list[dict[str, Any]] = [{}, {"defence": "easy"}, {"defence": "curator", "epsilon": EPSILON}]
    labels = ("non-private", "no small components", f"private, epsilon {EPSILON}")
    jobs = [context.workers.submit(partial(lone_cluster, **defence, random_state=seed)) for defence in defences]
    results = recorder.wait(jobs, "attacking mixtures")
    details = results[0].details
    recorder.add_paragraph(
        f"A Gaussian mixture with {details['components shown']:.0f} components is fitted to the homes of "
        f"{details['people of the crowd']} people in a city and of up to {details['lone people']} people who live "
        "kilometres from anybody else; a coin toss decides which of the latter are in the data. An attacker who sees "
        "only the parameters of the mixture guesses where they live."
    )
    rows: list[tuple[Cell, ...]] = []
    shares = [float(result.details["located"]) for result in results]
    for label, result, share in zip(labels, results, shares, strict=True):
        bound = "" if result.ceiling is None else f"{result.ceiling:.2f}"
        style_text = warn if share > _HALF else good
        rows.append((label, style_text(f"{share:.1%}"), f"{result.success:.2f}", bound))
    within = f"located within {details['located means within, in m']:.0f} m"
    recorder.add_table(("released mixture", within, "membership AUC", "AUC bound"), rows)
    non_member_share = float(results[2].details["located while not in the data"])
    recorder.add_paragraph(*_verdict(shares, non_member_share, results[1].details["rows planted for each"]))
    near, far = (_median_distance(results[index]) for index in (0, 2))
    recorder.add_paragraph(
        f"Half of the city's people live within {near:.1f} km of a mean of the non-private mixture, and within "
        f"{far:.1f} km of a mean of the private one: at epsilon {EPSILON}, {details['people of the crowd']} people are "
        f"{'too few for a detailed model' if far > _FAR * near else 'enough for an equally detailed model'}."
    )
    recorder.draw_picture(
        lambda: _draw_map({labels[place]: results[place] for place in (0, 2)}),
        "lone.svg",
        "The components of both mixtures, and the people who were located.",
    )


def _median_distance(result: Any) -> float:
    """Return the median distance of the city's people from the nearest released mean, in kilometres."""
    draw_arguments = result.draw.keywords  # the people and the mixture on the attack's map
    distances = np.linalg.norm(draw_arguments["city"].crowd[:, None] - draw_arguments["mixture"].means, axis=2)
    return float(np.median(distances.min(axis=1)))


def _verdict(shares: list[float], non_member_share: float, planted: int) -> list[Cell]:
    """Say how well each defence worked, from the shares of people who were located."""
    non_private, easy_fix, private = shares
    sentences: list[Cell] = []
    if non_private > _HALF:
        sentences.append("The mean of a component with a single member is that person's address. ")
    if easy_fix > _HALF:
        sentences.append(
            f"Removing components of fewer than five people does not help: the attacker plants {planted} records "
            "around the place where they expect somebody. "
        )
    sentences.append(
        good("Nobody was located from the private mixture.")
        if private == 0
        else f"Near a mean of the private mixture are {private:.1%} of them, and {non_member_share:.1%} of those who "
        "are not in the data."
    )
    return sentences


def homes() -> np.ndarray:
    """Return the coordinates of simulated homes, around the centres of eight wards."""
    rng = np.random.default_rng(1848)
    centres = np.array([[2, 2], [5, 1.5], [8, 2.5], [1.5, 5], [4.5, 4.8], [7.5, 5.5], [2.5, 8], [5.5, 7.6]])
    ward = rng.integers(0, len(WARDS), _HOMES)
    return np.clip(centres[ward] + rng.normal(0, 0.35, (_HOMES, 2)), *BOX)


def fit_both(points: np.ndarray) -> tuple[Any, Any]:
    """Fit a mixture to points, without and with privacy."""
    from sklearn.mixture import GaussianMixture as NonPrivate  # noqa: PLC0415 - an extra

    from discreet.learn import GaussianMixture  # noqa: PLC0415

    non_private = NonPrivate(len(WARDS), random_state=0, n_init=3).fit(points)
    return non_private, GaussianMixture(len(WARDS), epsilon=EPSILON, delta=DELTA, bounds=BOX).fit(points)


def _show_fit(context: TourContext) -> None:
    recorder = context.recorder
    recorder.add_section("What privacy costs a model")
    points = homes()
    ((non_private, private),) = recorder.wait([context.workers.submit(fit_both, points)], "fitting mixtures")
    scores = [float(model.score(points)) for model in (non_private, private)]
    gap = scores[0] - scores[1]
    recorder.add_paragraph(
        f"Mixtures of the homes of {len(points):,} people in {len(WARDS)} wards, fitted without privacy and at epsilon "
        f"{EPSILON}. Mean log-likelihood: {scores[0]:.3f} (non-private) and {scores[1]:.3f} (private). ",
        good("The private mixture fits as well.") if gap <= _CLOSE else warn(f"The private one is worse by {gap:.2f}."),
    )
    recorder.draw_picture(
        lambda: _draw_mixtures(non_private, private), "homes.svg", "Both mixtures of the town's homes."
    )


def _draw_mixtures(non_private: Any, private: Any) -> Any:
    from discreet.learn import draw  # noqa: PLC0415

    figure, all_axes = panels(2)
    for axes, (title, mixture) in zip(all_axes, (("non-private", non_private), ("private", private)), strict=True):
        draw(mixture, axes=axes)
        axes.set(xlim=BOX, ylim=BOX, aspect=1, xlabel="km", ylabel="km")
        axes.set_title(title, fontsize=10)
    return figure


def _draw_map(results: dict[str, Any]) -> Any:
    figure, all_axes = panels(2)
    for axes, (label, result) in zip(all_axes, results.items(), strict=True):
        result.draw(axes)
        axes.set_title(label, fontsize=10)
    add_legend(figure, [all_axes[0]])
    return figure
