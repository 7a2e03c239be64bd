"""The advertising attack: a secret attribute inferred from the report of an advertisement aimed at one person."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from discreet.attacks.defences import CURATOR, EASY, OWN, Defence, DefenceChoice, parse_defence
from discreet.attacks.queries.attack_targets import (
    FILES,
    METRIC,
    AttackTargets,
    Population,
    draw_success_by_answer_count,
    draw_targets,
    guess_evidence,
    guess_secrets,
    load,
    simulate_town,
    success_by_answer_count,
    target_details,
    target_exposure,
)
from discreet.attacks.registry import Attack
from discreet.attacks.result import AttackResult
from discreet.attacks.tables.table_releases import private_counts
from discreet.attacks.validation import array_with_gaps, random_generator
from discreet.kernel.numbers import Number, as_integer

ReportKind = Literal["impressions", "clicks"]
# The probability that somebody in the audience sees the advertisement in one campaign, or clicks on it.
RATES: Mapping[str, float] = {"impressions": 0.5, "clicks": 0.05}


@dataclass(frozen=True)
class _Delivery:
    """How many people of each target's audience saw the advertisement, and clicked; targets × campaigns."""

    impressions: np.ndarray
    clicks: np.ndarray
    reached: np.ndarray  # people per target who saw, or clicked on, at least one advertisement


def advertising(  # noqa: PLR0913 - the common arguments and four settings
    data: Population | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    report: ReportKind = "impressions",
    targets: int = 500,
    campaigns: int = 50,
    smallest: int = 20,
) -> AttackResult:
    """Infer people's secrets from the report of an advertisement that is shown only to them, if they have the secret.

    `data` is a `Population`, a simulated town by default: the members of a social network. For each target, an
    advertiser books `campaigns` advertisements for people with the target's known values and the secret, and reads in
    the `report` how many people saw them ("impressions") or clicked on them ("clicks") (Korolova 2010). Reports are
    exact ("nothing"), exact but refused for audiences below `smallest` ("easy"; the advertiser fills the audience with
    accounts of their own, which see nothing), or a private count of the people reached ("curator"). A function as
    defence gets the counts, targets × campaigns, and returns them modified; NaN stands for a refused report.

    >>> result = advertising(defence="easy", random_state=0)
    >>> result.success, result.details["campaigns refused without the advertiser's own accounts"]
    (1.0, 1.0)
    >>> advertising(defence="curator", epsilon="1/10", random_state=0).success < 0.65
    True
    """
    if report not in RATES:
        raise ValueError(f"report must be one of {', '.join(RATES)}, not {report!r}")
    parsed_defence, rng = parse_defence(defence, epsilon), random_generator(random_state)
    drawn = draw_targets(simulate_town(rng) if data is None else data, targets, rng)
    min_audience = as_integer(smallest, "smallest", 1)
    audience = drawn.secret_holders
    delivery = _deliver(audience, as_integer(campaigns, "campaigns", 1), report, rng)
    estimates = _estimates(parsed_defence, delivery, report)
    is_right = guess_secrets(estimates[campaigns], drawn.class_sizes) == drawn.secret_bits
    is_refused = audience < min_audience if parsed_defence.kind == EASY else np.zeros(audience.size, bool)
    return AttackResult(
        attack="advertising",
        against=parsed_defence,
        metric=METRIC,
        evidence=guess_evidence(drawn, is_right),
        details={
            **target_details(drawn, is_right),
            "campaigns for each target": campaigns,
            "campaigns refused without the advertiser's own accounts": float(is_refused.mean()),
            **_not_prevented(drawn, delivery),
        },
        exposure=target_exposure(drawn, is_right),
        draw=partial(
            draw_success_by_answer_count,
            success=success_by_answer_count(estimates, drawn),
            defence=parsed_defence,
            xlabel="campaigns for each target",
        ),
    )


def _deliver(audience: np.ndarray, campaigns: int, report: ReportKind, rng: np.random.Generator) -> _Delivery:
    """Show the advertisements to the real people in each audience."""
    impressions = rng.binomial(audience[:, None], RATES["impressions"], (audience.size, campaigns))
    clicks = rng.binomial(impressions, RATES["clicks"] / RATES["impressions"])
    reached = rng.binomial(audience, 1 - (1 - RATES[report]) ** campaigns)
    alone = audience == 1  # for one person the reports determine who was reached
    counted = impressions if report == "impressions" else clicks
    return _Delivery(impressions, clicks, np.where(alone, counted.any(axis=1), reached))


def _estimates(defence: Defence, delivery: _Delivery, report: ReportKind) -> dict[int, np.ndarray]:
    """Return the estimated number of people with the secret in each audience, by the number of campaigns."""
    counts = delivery.impressions if report == "impressions" else delivery.clicks
    campaigns = counts.shape[1]
    if defence.kind == CURATOR:  # one report on all campaigns together: more reports would share the same epsilon
        reached = private_counts(delivery.reached[:, None], defence.curator_epsilon)[:, 0]
        return {campaigns: np.asarray(reached / (1 - (1 - RATES[report]) ** campaigns), float)}
    is_own = defence.kind == OWN and defence.user_function is not None
    reports = _user_reports(defence, counts) if is_own else counts.astype(float)
    numbers = np.unique(np.geomspace(1, campaigns, 8).astype(int)).tolist()
    return {number: _estimate_holders(reports[:, :number], RATES[report], is_exact=not is_own) for number in numbers}


def _estimate_holders(reports: np.ndarray, rate: float, *, is_exact: bool) -> np.ndarray:
    """Estimate how many people an advertisement can reach from its reports; a single exact impression proves one."""
    answered = np.maximum((~np.isnan(reports)).sum(axis=1), 1)
    total = np.nansum(reports, axis=1)
    estimate = total / (answered * rate)
    return np.asarray(np.maximum(estimate, total > 0) if is_exact else estimate)


def _user_reports(defence: Defence, counts: np.ndarray) -> np.ndarray:
    returned = defence.user_function(counts.copy()) if defence.user_function is not None else None
    return array_with_gaps(returned, counts.shape, "the defence")


def _not_prevented(targets: AttackTargets, delivery: _Delivery) -> dict[str, float]:
    """Return what happens whatever is reported: unique targets are shown the advertisement, and visit its page.

    Only people with the secret are shown it, so whoever arrives at the advertiser's page has the secret.
    """
    has_secret = (targets.class_sizes == 1) & targets.secret_bits
    if not has_secret.any():
        return {}
    shown, clicked = (each[has_secret].any(axis=1) for each in (delivery.impressions, delivery.clicks))
    return {
        "people with the secret who were shown the advertisement": float(shown.mean()),
        "people with the secret who clicked, and so disclosed it": float(clicked.mean()),
    }


ATTACK = Attack(
    run=advertising,
    docs_page="queries",
    summary="Books an advertisement for one person with a certain attribute, and reads in its report who was reached.",
    without_defence="non-private numbers of impressions or clicks",
    with_easy_fix="the same, but only for audiences of at least 20; the advertiser adds 20 accounts of their own",
    with_curator="a private number of the people reached",
    built_in_data="a simulated social network of 500 people",
    data_files=FILES,
    load=load,
)
