"""The advertising attack: a secret attribute inferred from the report of an advertisement aimed at one person."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from discreet.attacks.attack import (
    CURATOR,
    EASY,
    NOTHING,
    Attack,
    AttackResult,
    DefenceChoice,
    DefenceRelease,
    Game,
    Number,
    choice,
    whole,
)
from discreet.attacks.data.population import POPULATION, Population
from discreet.attacks.private_answers import private_counts
from discreet.attacks.queries.attack_targets import AttackTargets, draw_targets, result_by_answer_count
from discreet.attacks.validation import finite_array

ReportKind = Literal["impressions", "clicks"]
# The probability that somebody in the audience sees the advertisement in one campaign, or clicks on it.
RATES: Mapping[str, float] = {"impressions": 0.5, "clicks": 0.05}


@dataclass(frozen=True)
class _Delivery:
    """How many people of each target's audience saw the advertisement, and clicked; targets × campaigns."""

    impressions: np.ndarray
    clicks: np.ndarray
    reached: np.ndarray  # people per target who saw, or clicked on, at least one advertisement

    def counted(self, report: ReportKind) -> np.ndarray:
        """Return what the report counts."""
        return self.impressions if report == "impressions" else self.clicks


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
    return ATTACK.run(
        data,
        defence,
        epsilon,
        random_state,
        report=report,
        targets=targets,
        campaigns=campaigns,
        smallest=smallest,
    )


def _play(game: Game) -> AttackResult:
    targets = draw_targets(game.data, game.settings.targets, game.rng)
    audience = targets.secret_holders
    delivery = _deliver(audience, game.settings.campaigns, game.settings.report, game.rng)
    is_refused = (game.defence.kind == EASY) & (audience < game.settings.smallest)
    details = {
        "campaigns for each target": game.settings.campaigns,
        "campaigns refused without the advertiser's own accounts": float(is_refused.mean()),
        **_not_prevented(targets, delivery),
    }
    return result_by_answer_count(game, targets, game.release(delivery), details, "campaigns for each target")


def _deliver(audience: np.ndarray, campaigns: int, report: ReportKind, rng: np.random.Generator) -> _Delivery:
    """Show the advertisements to the real people in each audience."""
    impressions = rng.binomial(audience[:, None], RATES["impressions"], (audience.size, campaigns))
    clicks = rng.binomial(impressions, RATES["clicks"] / RATES["impressions"])
    reached = rng.binomial(audience, 1 - (1 - RATES[report]) ** campaigns)
    alone = audience == 1  # for one person the reports determine who was reached
    counted = impressions if report == "impressions" else clicks
    return _Delivery(impressions, clicks, np.where(alone, counted.any(axis=1), reached))


def _estimates_from_exact(game: Game, delivery: _Delivery) -> dict[int, np.ndarray]:
    return _estimates(game, delivery.counted(game.settings.report).astype(float), is_exact=True)


def _estimates_from_user(game: Game, delivery: _Delivery) -> dict[int, np.ndarray]:
    counts = delivery.counted(game.settings.report)
    return _estimates(
        game, finite_array(game.ask_user(counts.copy()), counts.shape, "the defence", may_withhold=True), is_exact=False
    )


def _private_estimates(game: Game, delivery: _Delivery) -> dict[int, np.ndarray]:
    """Return one report on all campaigns together: more reports would share the same epsilon."""
    campaigns = game.settings.campaigns
    reached = private_counts(delivery.reached[:, None], game.epsilon)[:, 0]
    return {campaigns: np.asarray(reached / (1 - (1 - RATES[game.settings.report]) ** campaigns), float)}


def _estimates(game: Game, reports: np.ndarray, *, is_exact: bool) -> dict[int, np.ndarray]:
    """Return the estimated number of people with the secret in each audience, by the number of campaigns."""
    rate, numbers = RATES[game.settings.report], np.unique(np.geomspace(1, reports.shape[1], 8).astype(int)).tolist()
    return {number: _estimate_holders(reports[:, :number], rate, is_exact=is_exact) for number in numbers}


def _estimate_holders(reports: np.ndarray, rate: float, *, is_exact: bool) -> np.ndarray:
    """Estimate how many people an advertisement can reach from its reports; a single exact impression proves one."""
    answered = np.maximum((~np.isnan(reports)).sum(axis=1), 1)
    total = np.nansum(reports, axis=1)
    estimate = total / (answered * rate)
    return np.asarray(np.maximum(estimate, total > 0) if is_exact else estimate)


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
    function=advertising,
    docs_page="queries",
    summary="Books an advertisement for one person with a certain attribute, and reads in its report who was reached.",
    data=replace(POPULATION, built_in="a simulated social network of 500 people"),
    releases={
        NOTHING: DefenceRelease("non-private numbers of impressions or clicks", _estimates_from_exact),
        EASY: DefenceRelease(
            "the same, but only for audiences of at least 20; the advertiser adds 20 accounts of their own",
            _estimates_from_exact,
        ),
        CURATOR: DefenceRelease("a private number of the people reached", _private_estimates),
    },
    own=_estimates_from_user,
    play=_play,
    settings={"report": choice(RATES), "targets": whole(1), "campaigns": whole(1), "smallest": whole(1)},
)
