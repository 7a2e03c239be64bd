"""The pictures of attacks and of an audit. All people in them are simulated."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from discreet import attacks, audit
from discreet.attacks.data.city import simulate_city
from tools.pictures.attack_figures import (
    accuracy_by_error_figure,
    city_maps_figure,
    member_rates_figure,
    membership_power_figure,
    mosaics_figure,
    roc_figure,
)

FRESH = 100  # a seed that was not used for tuning
LEVELS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4)
Results = Sequence[attacks.AttackResult]


def compared(attack: str | Callable[..., Any], *epsilons: Any, seed: int = 0) -> tuple[Callable[[], Any], Any]:
    """Return functions that run one attack against all defences and draw the comparison."""
    return partial(attacks.compare, attack, epsilons=epsilons, random_state=seed), attacks.Comparison.figure


def single(attack: Callable[..., Any], seed: int = 0) -> tuple[Callable[[], Any], Any]:
    """Return functions that run one attack against the easy fix and draw the result."""
    return partial(attack, defence="easy", random_state=seed), attacks.AttackResult.figure


def reconstruct() -> tuple[Results, Results, dict[str, attacks.AttackResult]]:
    """Run reconstruction with growing noise, by both solvers, and against the curator."""
    many = attacks.Secrets.simulate(2048, random_state=0)
    few = [attacks.Secrets.simulate(256, random_state=seed) for seed in range(3)]
    blurred = [attacks.reconstruct(many, noise=level, random_state=0) for level in LEVELS]
    programmed = [
        attacks.reconstruct(each, noise=level, method="linear programme", random_state=0)
        for level in LEVELS
        for each in few
    ]
    asked = {f"epsilon {epsilon}": {"epsilon": epsilon} for epsilon in (1, 10, 100)}
    asked["epsilon 1, delta 1e-6"] = {"epsilon": 1, "delta": 1e-6}
    private = {
        label: attacks.reconstruct(many, defence="curator", random_state=0, **cost) for label, cost in asked.items()
    }
    return blurred, programmed, private


def likelihood_ratio() -> Results:
    """Run the likelihood-ratio attack against three defences."""
    defences = (("nothing", None), ("easy", None), ("curator", 1))
    return [attacks.likelihood_ratio(defence=word, epsilon=epsilon, random_state=FRESH) for word, epsilon in defences]


def correlation() -> dict[str, Results]:
    """Infer genotypes from a model that generalises and one that memorises, against all defences."""
    models = {"linear": "linear regression", "tree": "fully grown tree"}
    return {
        title: attacks.compare(
            partial(attacks.correlation, model=model), epsilons=[10, 1, "1/10"], random_state=0
        ).results
        for model, title in models.items()
    }


def invert() -> dict[str, Results]:
    """Recover images of classes of many people, and of one person each, against all defences."""
    kinds = {"digits": "classes of many people", "people": "classes of one person"}
    return {
        title: attacks.compare(
            partial(attacks.invert, classes=classes, repeats=1), epsilons=[10, 4, 1, "1/10"], random_state=0
        ).results
        for classes, title in kinds.items()
    }


def lone_cluster() -> Results:
    """Locate lone people from released mixtures, without a defence, with the easy fix, and with the curator."""
    defences = (("nothing", None), ("easy", None), ("curator", 1))
    played = [attacks.lone_cluster(defence=defence, epsilon=epsilon, random_state=0) for defence, epsilon in defences]
    large = simulate_city(people=12_000, random_state=0)
    return [*played, attacks.lone_cluster(large, people=10_000, defence="curator", epsilon=1, random_state=0)]


def audit_of_half_the_noise() -> audit.AuditResult:
    """Audit a count with half of the claimed noise."""
    rng, q = np.random.default_rng(0), np.exp(-2.0)
    half = audit.Batch(lambda count, runs: count + rng.geometric(1 - q, runs) - rng.geometric(1 - q, runs))
    return audit.measure(half, 100, 101, 1, 100_000, random_state=0)


PICTURES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "audit": (audit_of_half_the_noise, audit.AuditResult.figure),
    **{
        f"attack-{name}": compared(name, "1/10", "1/2", 1, 2, 4)
        for name in ("pseudonyms", "linkage", "homogeneity", "intersection")
    },
    **{f"attack-{name}": compared(name, "1/10", "3/10", 1, 3) for name in ("differencing", "rephrasing")},
    "attack-averaging": single(attacks.averaging),
    "attack-threshold_game": single(attacks.threshold_game),
    "attack-reconstruct": (reconstruct, lambda found: accuracy_by_error_figure(*found)),
    "attack-census": compared("census", "1/10", 1, 3, 10),
    "attack-membership": compared(partial(attacks.membership, plays=25), "1/10", 1, 3, 10, 30),
    "attack-membership-means": (lambda: None, lambda _: membership_power_figure(random_state=0)),
    "attack-shadow": compared("shadow", "1/10", 1, 3, seed=FRESH),
    "attack-likelihood_ratio": (likelihood_ratio, roc_figure),
    "attack-attributes": compared("attributes", "1/10", 1, 3, seed=FRESH),
    "attack-overfitting": (partial(attacks.overfitting, random_state=FRESH), lambda found: found.figure()),
    "attack-correlation": (correlation, member_rates_figure),
    "attack-invert": (invert, mosaics_figure),
    "attack-lone_cluster": (lone_cluster, city_maps_figure),
}
