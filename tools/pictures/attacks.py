"""Draw the pictures of the attacks: `make pictures`, or `python tools/attack_pictures.py attack-linkage`.

attack-NAME.svg: what an attack reaches against nothing, the easy fix and the curator, or a picture of the attack's own.
audit.svg: an audit that convicts half of the noise.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from discreet import attacks, audit
from discreet.attacks.aggregates.means import power_figure
from discreet.attacks.aggregates.noise_drawing import noise_figure
from discreet.attacks.drawing import INK, panels
from discreet.attacks.models.city import city
from discreet.attacks.models.city_drawing import maps
from discreet.attacks.models.curves import curves
from discreet.attacks.models.mosaic import stacked
from discreet.attacks.models.sides import draw_sides

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
FRESH = 100  # attacks on models were tuned on smaller seeds
LEVELS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4)


def compared(name: str | Callable[..., Any], *epsilons: Any, seed: int = 0) -> Callable[[], Any]:
    """Return what draws one attack against all defences."""
    return lambda: attacks.compare(name, epsilons=epsilons, random_state=seed).figure()


def reconstruct() -> Any:
    """Draw the share of bits rebuilt against the noise, by both solvers, and where the curator is."""
    many = attacks.Secrets.drawn(2048, random_state=0)
    few = [attacks.Secrets.drawn(256, random_state=seed) for seed in range(3)]
    blurred = [attacks.reconstruct(many, noise=level, random_state=0) for level in LEVELS]
    programmed = [
        attacks.reconstruct(each, noise=level, method="linear programme", random_state=0)
        for level in LEVELS
        for each in few
    ]
    asked = {f"curator, epsilon {epsilon}": {"epsilon": epsilon} for epsilon in (1, 10, 100)}
    asked["curator, epsilon 1, delta 1e-6"] = {"epsilon": 1, "delta": 1e-6}
    private = {
        label: attacks.reconstruct(many, defence="curator", random_state=0, **price) for label, price in asked.items()
    }
    return noise_figure(blurred, programmed, private)


def likelihood_ratio() -> Any:
    """Draw members found against strangers taken for members, against three defences on one pair of axes."""
    defences = (("nothing", None), ("easy", None), ("curator", 1))
    return curves(
        [attacks.likelihood_ratio(defence=word, epsilon=epsilon, random_state=FRESH) for word, epsilon in defences]
    )


def correlation() -> Any:
    """Draw members beside strangers, for a model of facts and for one that remembers."""
    titles = {"linear": "least squares: a fact", "tree": "a full tree: a fact, and memory"}
    figure, axes = panels(2)
    for each, (model, title) in zip(axes, titles.items(), strict=True):
        made = attacks.compare(partial(attacks.correlation, model=model), epsilons=[10, 1, "1/10"], random_state=0)
        sides = {str(result.shield): result.evidence for result in made.results}
        draw_sides(each, sides=sides, guessing=made.results[0].baseline)
        each.set_title(title, fontsize=9, color=INK)
    axes[0].set_ylabel("genotypes guessed", fontsize=8)
    axes[1].set_ylabel("")
    return figure


def invert() -> Any:
    """Draw the images that come out, of classes of many people and of one."""
    titles = {"digits": "classes of many people", "people": "classes of one person"}
    figure, axes = panels(2)
    for each, (classes, title) in zip(axes, titles.items(), strict=True):
        run = partial(attacks.invert, classes=classes, repeats=1)
        stacked(attacks.compare(run, epsilons=[10, 4, 1, "1/10"], random_state=0).results)(each)
        each.set_title(title, fontsize=9, color=INK)
    return figure


def lone_cluster() -> Any:
    """Draw the city's map with what is released."""
    played = [
        attacks.lone_cluster(defence=defence, epsilon=epsilon, random_state=0)
        for defence, epsilon in (("nothing", None), ("easy", None), ("curator", 1))
    ]
    large = city(people=12_000, random_state=0)
    played.append(attacks.lone_cluster(large, people=10_000, defence="curator", epsilon=1, random_state=0))
    return maps(played)


def audit_of_half_the_noise() -> Any:
    """Draw the audit of a count that has half of the noise that is claimed."""
    rng, q = np.random.default_rng(0), np.exp(-2.0)
    half = audit.Batch(lambda count, runs: count + rng.geometric(1 - q, runs) - rng.geometric(1 - q, runs))
    return audit.measure(half, 100, 101, 1, 100_000, random_state=0).figure()


DRAWINGS: dict[str, Callable[[], Any]] = {
    "audit": audit_of_half_the_noise,
    **{
        f"attack-{name}": compared(name, "1/10", "1/2", 1, 2, 4)
        for name in ("pseudonyms", "linkage", "homogeneity", "intersection")
    },
    **{f"attack-{name}": compared(name, "1/10", "3/10", 1, 3) for name in ("differencing", "rephrasing")},
    "attack-averaging": lambda: attacks.averaging(defence="easy", random_state=0).figure(),
    "attack-threshold_game": lambda: attacks.threshold_game(defence="easy", random_state=0).figure(),
    "attack-reconstruct": reconstruct,
    "attack-census": compared("census", "1/10", 1, 3, 10),
    "attack-membership": compared(partial(attacks.membership, plays=25), "1/10", 1, 3, 10, 30),
    "attack-membership-means": lambda: power_figure(random_state=0),
    "attack-shadow": compared("shadow", "1/10", 1, 3, seed=FRESH),
    "attack-likelihood_ratio": likelihood_ratio,
    "attack-attributes": compared("attributes", "1/10", 1, 3, seed=FRESH),
    "attack-overfitting": lambda: attacks.overfitting(random_state=FRESH).figure(),
    "attack-correlation": correlation,
    "attack-invert": invert,
    "attack-lone_cluster": lone_cluster,
}


def main(names: Sequence[str]) -> None:
    """Draw the pictures of these names, or all."""
    mpl.rcParams["svg.hashsalt"] = "discreet"
    for name in names or DRAWINGS:
        path = FOLDER / f"{name}.svg"
        DRAWINGS[name]().savefig(path, metadata={"Date": None})
        print(path.name)


if __name__ == "__main__":
    main(sys.argv[1:])
