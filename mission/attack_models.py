"""The rows on models that leak their training data: membership, missing attributes, and overfitting."""

import numpy as np

from discreet import attacks
from mission.data import real
from mission.rows import outside_of, rate_of, record, row, share_of

FRESH = 100  # a seed that was not used for tuning
FOUND = "TPR at 1 % FPR"
PEOPLE = 2000
PRIVATE = {"defence": "curator", "epsilon": 1}


@row("D4", "Membership in a model's training data: shadow models and likelihood ratios against a prediction service")
def d4():
    ways = {"exact": {}, "easy": {"defence": "easy"}, "private": PRIVATE}
    results = {
        name: {way: getattr(attacks, name)(random_state=FRESH, **defence) for way, defence in ways.items()}
        for name in ("shadow", "likelihood_ratio")
    }
    people = real("likelihood_ratio").subset(np.arange(PEOPLE))
    location = attacks.likelihood_ratio(people, shadows=3, targets=1, random_state=FRESH)
    shown = (
        f"{name}: AUC {rate_of(each['exact'])}, {_found(each['exact'])} of members found at 1 % "
        f"false positives; with the easy fix {rate_of(each['easy'])}; at epsilon 1 {rate_of(each['private'])}, "
        f"{_found(each['private'])} found, implied epsilon {each['private'].implied}"
        for name, each in results.items()
    )
    return record(
        "{shown}; {people:,} people of the Location data, likelihood_ratio with 3 shadow models: AUC {location}, "
        "{location_found} found",
        rates={name: {way: rate_of(result) for way, result in each.items()} for name, each in results.items()},
        found={name: {way: result.details[FOUND] for way, result in each.items()} for name, each in results.items()},
        location=rate_of(location),
        location_found=_found(location),
        people=PEOPLE,
        shown="; ".join(shown),
    )


def _found(result):
    """Return the share of members found, with its interval at the threshold that was used."""
    return share_of(result.details[FOUND], result.evidence.members.size)


@row("E3", "A learned membership oracle: a neural network trained on shadow models, against a forest and a network")
def e3():
    ways = {
        "a forest": {"target": "forest"},
        "a network": {"target": "network"},
        "a private logistic regression, epsilon 1": PRIVATE,
    }
    rates = {name: rate_of(attacks.shadow(attacker="network", random_state=FRESH, **way)) for name, way in ways.items()}
    return record("AUC against {shown}", rates=rates, shown="; ".join(f"{name} {each}" for name, each in rates.items()))


@row("E4", "Missing attributes by brute force over the membership oracle, compared with imputation without the model")
def e4():
    forest, pairs, private = (
        "forest",
        "non-private regression on pairs of values",
        "regression on pairs of values, private at epsilon 1",
    )
    ways = {forest: {"target": "forest"}, pairs: {"target": "pairs"}, private: PRIVATE}
    adult = real("attributes")
    results = {
        "2,000 patients, five grades": {
            name: attacks.attributes(random_state=FRESH, **way) for name, way in ways.items()
        },
        "4,000 of Adult, 14 occupations": {
            name: attacks.attributes(adult, random_state=FRESH, targets=1, **ways[name]) for name in (forest, private)
        },
    }
    shown = (
        f"{name}, imputed {_imputed(each):.1%}: "
        + ", ".join(
            f"{way} {rate_of(result)} of members, {outside_of(result)} of non-members" for way, result in each.items()
        )
        for name, each in results.items()
    )
    return record(
        "{shown}",
        rates={name: {way: rate_of(result) for way, result in each.items()} for name, each in results.items()},
        imputed={name: _imputed(each) for name, each in results.items()},
        shown="; ".join(shown),
    )


def _imputed(results):
    return results["forest"].baseline


@row("E11", "Overfitting hurts accuracy and privacy: the attack's AUC against the generalisation gap, as a picture")
def e11():
    seen = attacks.overfitting(random_state=FRESH)
    tame, wild = (end(seen.points, key=lambda each: each.gap) for end in (min, max))
    private = seen.points[-1]
    return record(
        "gap {tame.gap:.2f} → {wild.gap:.2f}, AUC {tame.auc:.2f} → {wild.auc:.2f} over {models} models, correlation "
        "{correlation:.2f} ({low:.2f} to {high:.2f}); a private model (epsilon {private.strength:g}) is correct for "
        "{private.non_member_accuracy:.0%} of non-members, with AUC {private.auc:.2f}; the model with the widest gap "
        "for {wild.non_member_accuracy:.0%}, with AUC {wild.auc:.2f}: [picture](pictures/attack-overfitting.svg)",
        tame=tame,
        wild=wild,
        private=private,
        models=len(seen.points),
        correlation=seen.correlation,
        low=_fisher(seen.correlation, len(seen.points), -1.96),
        high=_fisher(seen.correlation, len(seen.points), 1.96),
    )


def _fisher(correlation, count, deviations):
    """Return an end of the confidence interval of a correlation (Fisher 1921)."""
    return float(np.tanh(np.arctanh(correlation) + deviations / np.sqrt(count - 3)))
