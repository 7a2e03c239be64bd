"""The differencing game: a coin toss decides a diagnosis, and an attacker guesses it from two counts."""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import discreet as dc
from discreet.audit.policy.curator_pairs import prepare_query, repeat_release
from discreet.audit.policy.query_suite import AuditQuery
from discreet.plotting import BLUE, INK, ORANGE, add_legend, format_plain_numbers, panels, set_title, style
from discreet.pricing import CostRequest
from discreet.worlds.town import SECRET_ILLNESS, Town

COUNT_SENSITIVITY = dc.Sensitivity(groups=1, size=1)


@dataclass(frozen=True)
class GuessingResult:
    """Correct guesses of an attacker who gets two counts at this total epsilon."""

    epsilon: Fraction
    correct: int
    plays: int

    @property
    def share(self) -> float:
        """Share of correct guesses."""
        return self.correct / self.plays

    @property
    def standard_error(self) -> float:
        """Standard error of the share."""
        return float(np.sqrt(max(self.share * (1 - self.share), 1 / self.plays) / self.plays))


@dataclass(frozen=True)
class TradeoffPoint:
    """Margin of a count at an epsilon, and probabilities that differencing and the best possible attack succeed."""

    epsilon: float
    margin: int
    differencing: float
    upper_bound: float


def guess_is_ill(with_him: int, without_him: int) -> bool:
    """Guess from two counts, true or noisy, whether the Governor was counted."""
    return with_him - without_him >= 1


def play(town: Town, epsilon: Fraction, plays: int) -> GuessingResult:
    """Play `plays` times: toss a coin, ask about the town with that diagnosis, and guess."""
    queries = town.governor().differencing_queries()
    with (
        town.open_with_budget(str(epsilon), ill="none") as well,
        town.open_with_budget(str(epsilon), ill=SECRET_ILLNESS) as ill,
    ):
        counts = [[noisy_counts(curator, sql, epsilon / 2, plays) for sql in queries] for curator in (well, ill)]
        correct = 0
        for _ in range(plays):
            secret = secrets.randbelow(2)
            correct += guess_is_ill(*map(next, counts[secret])) == bool(secret)
    return GuessingResult(epsilon, correct, plays)


def noisy_counts(curator: dc.Curator, sql: str, epsilon: Fraction, times: int) -> Iterator[int]:
    """Answer a count repeatedly, each time charged and with fresh noise, as the curator does."""
    query = prepare_query(
        curator, AuditQuery("people", "COUNT", sql, groups=1, rows=1), CostRequest(epsilon, None, None)
    )
    (question,) = [request.question for request in query.requests]
    for (noisy,) in repeat_release(curator, query, times):
        yield round(int(noisy.values[0, 0]) / (1 << question.fraction_bits(question.totals[0])))


def play_non_private(town: Town, plays: int) -> GuessingResult:
    """Play with true counts, which have no privacy guarantee."""
    queries = town.governor().differencing_queries()
    towns = [town.people_with_diagnosis(ill=illness) for illness in ("none", SECRET_ILLNESS)]
    answers = [[town.true_answer(sql, people=people)[0][0] for sql in queries] for people in towns]
    coin_tosses = [secrets.randbelow(2) for _ in range(plays)]
    return GuessingResult(
        Fraction(0), sum(guess_is_ill(*answers[secret]) == bool(secret) for secret in coin_tosses), plays
    )


def tradeoff_point(epsilon: float) -> TradeoffPoint:
    """Compute margin and success probabilities at an epsilon from the distribution of the noise.

    Differencing is right with probability (1 + Pr[both rounded noises are equal]) / 2. The curator draws noise on a
    fine grid and rounds counts to integers, so a rounded noise of 0 stands for all noise below one half.
    """
    half_step, step = np.exp(epsilon / 4), np.exp(-epsilon / 2)  # each count gets half of epsilon
    zero, one = 1 - 1 / half_step, (half_step - 1 / half_step) * step / 2
    equal = float(zero**2 + 2 * one**2 / (1 - step**2))
    margin = dc.privacy.margin(dc.laplace_for(COUNT_SENSITIVITY, epsilon), 0.95)
    return TradeoffPoint(epsilon, margin, (1 + equal) / 2, dc.privacy.posterior_bound(0.5, epsilon))


def tradeoff_curve() -> list[TradeoffPoint]:
    """Compute the trade-off for a range of epsilons."""
    return [tradeoff_point(float(f"{epsilon:.3g}")) for epsilon in np.geomspace(0.02, 3.5, 40)]


def tradeoff_figure(points: Sequence[TradeoffPoint], results: Sequence[GuessingResult]) -> Any:
    """Return the figure of accuracy and of privacy against epsilon."""
    figure, (left, right) = panels(2)
    epsilons, upper_bounds = [point.epsilon for point in points], [100 * point.upper_bound for point in points]
    shares = np.array([result.share for result in results])
    errors = 196 * np.sqrt(shares * (1 - shares) / [result.plays for result in results])
    with style():
        left.plot(epsilons, [point.margin for point in points], color=INK)
        left.set(yscale="log", ylabel="95 % margin of a count")
        left.set_title("Accuracy")
        right.fill_between(epsilons, 50, upper_bounds, color=ORANGE, alpha=0.15, lw=0)
        right.plot(epsilons, upper_bounds, color=ORANGE, label="upper bound for every attack")
        right.plot(
            epsilons,
            [100 * point.differencing for point in points],
            color=BLUE,
            label="differencing, in theory",
        )
        marker_style: dict[str, Any] = {
            "color": BLUE,
            "label": f"differencing, simulated {results[0].plays:,} times",
        }
        right.errorbar([float(result.epsilon) for result in results], 100 * shares, errors, fmt="o", **marker_style)
        right.axhline(50, color=INK, lw=0.8, ls="--", label="random guess")
        right.set(ylabel="correct guesses, % (95 % interval)", ylim=(40, 102))
        right.set_title("Privacy")
        for axes in (left, right):
            axes.set(xscale="log", xlabel="epsilon")
            format_plain_numbers(axes.xaxis)
        format_plain_numbers(left.yaxis)
        add_legend(figure, [right], columns=2)
        one = tradeoff_point(1.0)
        bound = f"no attack is right more than {100 * one.upper_bound:.0f} % of the time"
        set_title(figure, f"At epsilon 1, a count has a margin of ± {one.margin}, and {bound}")
    return figure
