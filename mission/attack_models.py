"""The rows on models that leak their training data: membership, missing attributes, and overfitting."""

import numpy as np

from discreet import attacks
from discreet.attacks.result import ACCURACY_ON_NON_MEMBERS as ACCURACY
from mission.data import real
from mission.rows import outside_of, rate_of, record, row, share_of

FRESH = 100  # a seed that was not used for tuning
FOUND = "TPR at 1 % FPR"
PEOPLE = 2000
PRIVATE = {"defence": "curator", "epsilon": 1}


WITHOUT, WITH = "without privacy", "private at epsilon 1"
SAME_MODEL = {WITHOUT: {}, WITH: PRIVATE}


def model_classes():
    """Return people, a target for attacks on membership, and what to call them: the same models with and without noise.

    Additive models by boosting are for two classes, so they are fitted to the income classes of Adult.
    """
    adult = real("attributes").people.subset(np.arange(PEOPLE))
    return {
        "logistic regression on simulated customers": (None, "logistic"),
        f"boosting on {PEOPLE:,} people of Adult": (adult, "boosting"),
    }


@row("D4", "Membership in a model's training data: shadow models and likelihood ratios against a prediction service")
def d4():
    results = {
        (name, people): {
            way: getattr(attacks, name)(data, target=target, random_state=FRESH, **settings)
            for way, settings in {WITHOUT: {}, "with the easy fix": {"defence": "easy"}, WITH: PRIVATE}.items()
        }
        for name in ("shadow", "likelihood_ratio")
        for people, (data, target) in model_classes().items()
    }
    forests = {name: getattr(attacks, name)(random_state=FRESH) for name in ("shadow", "likelihood_ratio")}
    people = real("likelihood_ratio").subset(np.arange(PEOPLE))
    location = attacks.likelihood_ratio(people, shadows=3, targets=1, random_state=FRESH)
    shown = (
        f"{name}, {people}: "
        + ", ".join(f"{way} AUC {rate_of(each)}, {_found(each)} found, {_accuracy(each)}" for way, each in ways.items())
        for (name, people), ways in results.items()
    )
    return record(
        "members found at 1 % false positives; {shown}; forests, which have no private form here: {forests_shown}; "
        "forest on {people:,} people of the Location data, likelihood_ratio with 3 shadow models: AUC {location}, "
        "{location_found} found",
        rates={key: {way: rate_of(result) for way, result in each.items()} for key, each in results.items()},
        accuracy={key: {way: each.details[ACCURACY] for way, each in ways.items()} for key, ways in results.items()},
        forests={name: rate_of(result) for name, result in forests.items()},
        forests_shown=", ".join(f"{name} {rate_of(each)}, {_accuracy(each)}" for name, each in forests.items()),
        location=rate_of(location),
        location_found=_found(location),
        people=PEOPLE,
        shown="; ".join(shown),
    )


def _found(result):
    """Return the share of members found, with its interval at the threshold that was used."""
    return share_of(result.details[FOUND], result.evidence.members.size)


def _accuracy(result):
    """Return how often the model is right about people who are not in its training data."""
    return f"accuracy {result.details[ACCURACY]:.0%}"


@row("E3", "A learned membership oracle: a neural network trained on shadow models, with and without privacy")
def e3():
    results = {
        people: {
            way: attacks.shadow(data, attacker="network", target=target, random_state=FRESH, **settings)
            for way, settings in SAME_MODEL.items()
        }
        for people, (data, target) in model_classes().items()
    }
    shown = (
        f"{people}: " + ", ".join(f"{way} {rate_of(each)} ({_accuracy(each)})" for way, each in ways.items())
        for people, ways in results.items()
    )
    return record(
        "AUC, and the model's accuracy on non-members; {shown}",
        rates={people: {way: rate_of(each) for way, each in ways.items()} for people, ways in results.items()},
        accuracy={key: {way: each.details[ACCURACY] for way, each in ways.items()} for key, ways in results.items()},
        shown="; ".join(shown),
    )


@row("E4", "Missing attributes by brute force over the membership oracle, compared with imputation without the model")
def e4():
    adult = real("attributes")
    games = {
        "2,000 patients, five grades": (None, {}, ("pairs", "boosting")),
        "4,000 of Adult, 14 occupations": (adult, {"targets": 1}, ("pairs", "boosting")),
    }
    results = {
        (name, target): {
            way: attacks.attributes(data, target=target, random_state=FRESH, **settings, **privacy)
            for way, privacy in SAME_MODEL.items()
        }
        for name, (data, settings, targets) in games.items()
        for target in targets
    }
    models = {"pairs": "regression on pairs of values", "boosting": "boosting"}
    shown = (
        f"{name}, {models[target]}, imputed {_imputed(each):.1%}: "
        + ", ".join(
            f"{way} {rate_of(result)} of members, {outside_of(result)} of non-members, {_accuracy(result)}"
            for way, result in each.items()
        )
        for (name, target), each in results.items()
    )
    return record(
        "{shown}",
        rates={key: {way: rate_of(result) for way, result in each.items()} for key, each in results.items()},
        imputed={key: _imputed(each) for key, each in results.items()},
        shown="; ".join(shown),
    )


def _imputed(results):
    return results[WITHOUT].baseline


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
