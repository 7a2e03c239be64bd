"""The rows on models that give their data away: membership, missing attributes, and overfitting behind both."""

import os
from pathlib import Path

import numpy as np

from discreet import attacks
from discreet.attacks.models.overfitting import overfitting
from discreet.attacks.models.people import purchases
from mission.rows import NeedsDataError, row

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
FRESH = 100  # nothing was tuned on what this number draws
FOUND = "members found at 1% of strangers"
RIGHT = "and about strangers"


def real(name):
    """Return the real data of an attack."""
    attack = attacks.attack_named(name)
    try:
        return attack.load(DATA)
    except FileNotFoundError:
        raise NeedsDataError(f"{attack.files[0].removesuffix('.parquet')} in DISCREET_DATA") from None


@row("D4", "Membership in a model's data: shadow models and likelihood ratios against a prediction service")
def d4():
    said = []
    for attack in (attacks.shadow, attacks.likelihood_ratio):
        exact, easy = (attack(random_state=FRESH, defence=word) for word in ("nothing", "easy"))
        private = attack(random_state=FRESH, defence="curator", epsilon=1)
        said.append(
            f"{exact.attack}: AUC {exact.success:.3f}, {exact.details[FOUND]:.1%} of members found at 1 % of strangers "
            f"({easy.success:.3f} with the easy fix); epsilon 1: {private.success:.3f}, {private.details[FOUND]:.1%}, "
            f"epsilon implied at least {private.implied.low:.2g}"
        )
    people = real("likelihood_ratio").some(np.arange(2000))
    seen = attacks.likelihood_ratio(people, shadows=3, targets=1, random_state=FRESH)
    said.append(
        f"2,000 people of Location, likelihood_ratio with 3 shadows: AUC {seen.success:.3f}, {seen.details[FOUND]:.1%}"
    )
    return "; ".join(said)


@row(
    "E3", "A learned membership oracle: a neural network that was trained on shadow models, against forest and network"
)
def e3():
    said = []
    for target in ("forest", "network"):
        result = attacks.shadow(attacker="network", target=target, random_state=FRESH)
        said.append(f"{target} {result.success:.3f}")
    private = attacks.shadow(attacker="network", defence="curator", epsilon=1, random_state=FRESH)
    return f"AUC against {', '.join(said)}; against a private logistic regression, epsilon 1: {private.success:.3f}"


@row("E4", "Missing attributes by brute force over the membership oracle, beside imputation without the model")
def e4():
    said = []
    for name, data in (("2,000 patients, five grades", None), ("4,000 of Adult, 14 occupations", real("attributes"))):
        exact, pairs = (attacks.attributes(data, random_state=FRESH, target=target) for target in ("forest", "pairs"))
        private = attacks.attributes(data, random_state=FRESH, defence="curator", epsilon=1)
        said.append(
            f"{name}, imputed {exact.baseline:.1%}: "
            + ", ".join(
                f"{kind} {each.success:.1%} right of members and {each.evidence.baseline:.1%} of strangers"
                for kind, each in (
                    ("forest", exact),
                    ("exact regression of pairs of values", pairs),
                    ("the same, private at epsilon 1,", private),
                )
            )
        )
    return "; ".join(said)


@row("E11", "Overfitting is the enemy of both: the attack's AUC against the generalisation gap, as a picture")
def e11():
    seen = overfitting(purchases(FRESH), random_state=FRESH)
    tame, wild = min(seen.points, key=lambda each: each.gap), max(seen.points, key=lambda each: each.gap)
    private = seen.points[-1]
    return (
        f"gap {tame.gap:.2f} → {wild.gap:.2f}, AUC {tame.auc:.2f} → {wild.auc:.2f} over {len(seen.points)} models, "
        f"correlation {seen.correlation:.2f}; a private model (epsilon {private.strength:g}) is right about "
        f"{private.strangers:.0%} of strangers with AUC {private.auc:.2f}, the wildest forest about "
        f"{wild.strangers:.0%} with {wild.auc:.2f}: [picture](pictures/attack-overfitting.svg)"
    )
