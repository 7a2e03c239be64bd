"""Membership from published means: whose genome is in the study, by comparing with its allele frequencies."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.attacks.aggregates import frequencies
from discreet.attacks.aggregates.genomes import GENOTYPES, SAMPLES, genomes, load
from discreet.attacks.aggregates.membership_scores import Known, Statistic, scores_of
from discreet.attacks.aggregates.panel import Panel, Play, plays_of, rareness, thinned
from discreet.attacks.checking import generator
from discreet.attacks.defences import CURATOR, EASY, OWN, Defence, Shield, delta_of, shield
from discreet.attacks.listing import Attack
from discreet.attacks.rarity import Exposure, exposure
from discreet.attacks.result import AttackResult
from discreet.attacks.scores import Scores
from discreet.kernel.exact import Number

_DELTA = "1e-6"  # the curator's, unless another is wished
_TAKEN = 0.05  # the strangers whom the attacker may take for members where people are named


def membership(  # noqa: PLR0913 - each has a name and a default
    data: Panel | None = None,
    *,
    defence: Defence = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    statistic: Statistic = "likelihood ratio",
    pool: int = 100,
    attributes: int | None = None,
    plays: int = 12,
    delta: Number | None = None,
) -> AttackResult:
    """Tell members of a study from equal strangers, by the means that it publishes of many attributes.

    `data` is a Panel of people, made-up genomes unless given; each of 2·`pool` of them is in the study by a coin. It
    publishes exact means ("nothing"), means in whole percents ("easy"), private means ("curator", Gaussian noise for
    this `delta`, 1e-6 unless given, Laplace noise for 0), or what a function of yours makes of the members' rows: one
    mean from 0 to 1 for each attribute, NaN for none; `epsilon` and `delta` are then what it promises. The attacker
    knows the genome of the person, those of other people, and the means.

    >>> membership(random_state=0).success > 0.95
    True
    >>> result = membership(random_state=0, attributes=50, statistic="inner product")
    >>> 0.55 < result.success < 0.8
    True
    """
    protected = shield(defence, epsilon)
    loose = delta_of(protected, delta, _DELTA)
    rng = generator(random_state)
    panel = thinned(_panel(data, rng), attributes, rng)
    drawn = plays_of(panel, pool, plays, rng)
    published, by = _release(protected, drawn, (panel.most, pool), loose)
    evidence = scored(drawn, published, (panel.most, pool), statistic)
    return AttackResult(
        attack="membership",
        shield=protected,
        metric="of pairs of a member and a stranger were ranked right",
        evidence=evidence,
        details=_details(evidence, drawn, published, panel) | {"statistic": statistic, "published by": by},
        exposure=_exposed(evidence, drawn, panel.most),
        delta=float(loose),
    )


def _panel(data: Any, rng: np.random.Generator) -> Panel:
    if data is None:
        return genomes(random_state=int(rng.integers(2**32)))
    if not isinstance(data, Panel):
        raise TypeError(f"data must be a Panel of people, such as Panel(values, most=2), not {type(data).__name__}")
    return data


def _release(
    protected: Shield, plays: Sequence[Play], sizes: tuple[int, int], delta: Fraction
) -> tuple[list[np.ndarray], str]:
    """Return what each study publishes, and how it came about."""
    most, pool = sizes
    if protected.word == CURATOR:
        return frequencies.private(plays, most, pool, protected.price, delta)
    if protected.word == OWN and protected.make is not None:
        return [frequencies.own(protected.make, play.members, most) for play in plays], "a function of yours"
    publish = frequencies.rounded if protected.word == EASY else frequencies.exact
    return [publish(play.members, most) for play in plays], "the study itself"


def scored(
    plays: Sequence[Play], published: Sequence[np.ndarray], sizes: tuple[int, int], statistic: Statistic
) -> Scores:
    """Return the scores of all studies' members and strangers, by what was published; `sizes` are most and pool."""
    most, pool = sizes
    members, strangers = [], []
    for play, means in zip(plays, published, strict=True):
        known = Known(means, play.reference, most, pool)
        members.append(scores_of(play.members, known, statistic))
        strangers.append(scores_of(play.strangers, known, statistic))
    return Scores(np.concatenate(members), np.concatenate(strangers))


def _details(evidence: Scores, plays: Sequence[Play], published: Sequence[np.ndarray], panel: Panel) -> dict[str, Any]:
    curve = evidence.curve
    errors = np.concatenate(
        [means - frequencies.exact(play.members, panel.most) for play, means in zip(plays, published, strict=True)]
    )
    shown = errors[~np.isnan(errors)]
    return {
        "members found at 1 % of strangers": curve.found_at(0.01),
        "members found at 0.1 % of strangers": curve.found_at(0.001),
        "error of a published mean": float(np.sqrt(np.mean(shown**2))) if shown.size else None,
        "attributes published": int(np.mean([np.isfinite(means).sum() for means in published])),
        "people in a study, about": round(float(np.mean([len(play.members) for play in plays]))),
        "studies": len(plays),
    }


def _exposed(evidence: Scores, plays: Sequence[Play], most: int) -> Exposure:
    """Return who is found while few strangers are taken for members, by how rare their values are."""
    least = np.quantile(evidence.strangers, 1 - _TAKEN, method="higher")
    rarity = np.concatenate([rareness(play.members, play.reference, most) for play in plays])
    labels = [f"study {at} member {place}" for at, play in enumerate(plays, 1) for place in range(len(play.members))]
    return exposure(rarity, evidence.members > least, labels=labels, by="rarity of their values")


ATTACK = Attack(
    run=membership,
    topic="membership",
    says="Tells whose data are in a study, from nothing but the means that it publishes.",
    nothing="exact means (allele frequencies)",
    easy="the means in whole percents",
    curator="private totals of every attribute, all of them together for epsilon",
    built_in="500 made-up genomes of 1,000 places; 12 studies of about 100 people",
    files=(GENOTYPES, SAMPLES),
    load=load,
)
