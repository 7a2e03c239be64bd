"""Audit of a single training run: canaries are included at random, and an attack guesses which ones."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from discreet.audit.arguments import parse_claim, parse_confidence
from discreet.audit.result import AuditResult, CanaryGuesses
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.numbers import Number, as_integer

_EPSILON_GRID_SIZE = 64
_REVERSED_P_VALUE = 1e-3  # below this, the scores are probably reversed


def one_run(  # noqa: PLR0913 - public interface
    scores: Any,
    canaries: Any,
    delta: Number,
    *,
    guesses: int | Iterable[int] | None = None,
    confidence: float = 0.95,
    claim: Number | Loss | Budget | None = None,
) -> AuditResult:
    """Return a lower bound on the epsilon of one training run from canaries that were included with probability 1/2.

    A higher score means more likely a member; `canaries` is True for those that were included. `guesses` canaries are
    guessed, half of them (the highest scores) as included and half (the lowest) as not included. Fix this number before
    you see the scores, or give several, among which the error probability is divided; by default all are guessed.
    (Steinke, Nasr and Jagielski 2023.)

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> coins = rng.integers(0, 2, 10_000).astype(bool)
    >>> survey = np.where(rng.random(10_000) < 0.75, coins, ~coins)      # randomized response with epsilon ln 3
    >>> result = one_run(survey + 0.01 * rng.random(10_000), coins, delta=0, claim=1)
    >>> result.holds, round(result.epsilon_low, 2)
    (False, 1.06)
    """
    values, members = _check_scores(scores, canaries)
    epsilon, claimed_delta = parse_claim(claim, delta)
    guess_counts = _check_guess_counts(guesses, len(values))
    error = (1 - parse_confidence(confidence)) / len(guess_counts)
    bounds = []
    for guess_count in guess_counts:
        correct = _count_correct(values, members, guess_count)
        bounds.append(
            (_epsilon_lower_bound(correct, guess_count, len(values), claimed_delta, error), guess_count, correct)
        )
    low, guess_count, correct = max(bounds)
    allowed = {"by guessing": _max_correct(guess_count, len(values), 0.0, claimed_delta, error)}
    if epsilon:
        allowed[f"at epsilon {float(epsilon):.4g}"] = _max_correct(
            guess_count, len(values), float(epsilon), claimed_delta, error
        )
    return AuditResult(
        epsilon_low=low,
        claim=epsilon,
        runs=1,
        delta=claimed_delta,
        confidence=confidence,
        event=f"{correct:,} of {guess_count:,} guesses of membership are correct",
        direction=_direction(low, epsilon),
        details={
            "canaries": len(values),
            "guesses": guess_count,
            "correct": correct,
            "guess counts tried": len(guess_counts),
        },
        notes=_hints(correct, guess_count),
        plot_data=CanaryGuesses(correct, guess_count, allowed),
    )


def _direction(low: float, claim: Number | None) -> str:
    if not low:
        return "not more than random guessing allows"
    if claim is None:
        return "more than random guessing allows"
    if low > float(claim):
        return "more than the claim allows"
    return "more than random guessing allows, but not more than the claim allows"


def _hints(correct: int, guesses: int) -> tuple[tuple[str, str], ...]:
    """Return a hint if significantly more guesses are wrong than right."""
    from scipy.special import bdtr  # noqa: PLC0415 - an extra

    if bdtr(correct, guesses, 0.5) >= _REVERSED_P_VALUE:
        return ()
    text = f"only {correct:,} of {guesses:,} guesses are correct, far fewer than half: are the scores reversed?"
    return (("hint", f"{text} Scores must be high for included canaries, for which `canaries` is True."),)


def _max_correct(guesses: int, canaries: int, epsilon: float, delta: float, error: float) -> int:
    """Return the largest number of correct guesses that does not refute an epsilon."""
    low, high = math.floor(guesses / (1 + math.exp(-epsilon))), guesses + 1
    while high - low > 1:
        middle = (low + high) // 2
        is_refuted = p_value_bound(middle, guesses, canaries, epsilon=epsilon, delta=delta) < error
        low, high = (low, middle) if is_refuted else (middle, high)
    return low


def p_value_bound(correct: int, guesses: int, canaries: int, *, epsilon: float, delta: float = 0.0) -> float:
    """Return an upper bound on the probability of this many correct guesses if the run is (epsilon, delta)-private.

    >>> round(p_value_bound(60, 100, 100, epsilon=0), 4)
    0.0284
    >>> p_value_bound(60, 100, 100, epsilon=0, delta=1e-3) > p_value_bound(60, 100, 100, epsilon=0)
    True
    """
    from scipy.special import bdtr, bdtrc  # noqa: PLC0415 - an extra

    if correct <= 0:
        return 1.0
    q = 1 / (1 + math.exp(-epsilon))
    beta = float(bdtrc(correct - 1, guesses, q))
    if not delta:
        return min(1.0, beta)
    # P[v > Bin >= v-i]/i is largest where v-i passes the bulk of the distribution: further down only i grows, and
    # further up there is almost no mass, which is bounded as a whole.
    above, spread = max(0.0, correct - guesses * q), math.sqrt(guesses * q * (1 - q))
    near, far = max(1, math.floor(above - 12 * spread)), min(correct, math.ceil(above + 12 * spread + 12))
    i = np.arange(near, max(near, far) + 1)
    below = np.where(correct - i - 1 >= 0, bdtr(np.maximum(correct - i - 1, 0), guesses, q), 0.0)
    alpha = float(((float(bdtr(correct - 1, guesses, q)) - below) / i).max())
    if near > 1:
        alpha = max(alpha, float(bdtrc(correct - near, guesses, q)))
    return min(1.0, beta + 2 * canaries * delta * alpha)


def _epsilon_lower_bound(correct: int, guesses: int, canaries: int, delta: float, error: float) -> float:
    """Return the smallest epsilon that is not refuted."""

    def is_refuted(epsilon: float) -> bool:
        return p_value_bound(correct, guesses, canaries, epsilon=epsilon, delta=delta) < error

    if not is_refuted(0.0):
        return 0.0
    share = (correct + 0.5) / (guesses + 1)
    high = max(math.log(share / (1 - share)), 0.0) + 1.0
    while is_refuted(high):
        high += 1.0
    # With a delta, the bound need not increase with epsilon everywhere; the first crossing is the safe one.
    grid = np.linspace(0.0, high, _EPSILON_GRID_SIZE)
    first = next(index for index, epsilon in enumerate(grid) if not is_refuted(float(epsilon)))
    low, high = float(grid[first - 1]), float(grid[first])
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low


def _check_scores(scores: Any, canaries: Any) -> tuple[np.ndarray, np.ndarray]:
    try:
        values, members = np.asarray(scores, np.float64), np.asarray(canaries)
    except (TypeError, ValueError):
        raise TypeError(f"scores must have one number for each canary, not {scores!r:.40}") from None
    if values.ndim != 1 or not values.size or np.isnan(values).any():
        raise ValueError("scores must have one number for each canary, at least one and no NaN")
    if members.shape != values.shape:
        raise ValueError(
            f"canaries must have one boolean for each of the {values.size} scores; their shape is {members.shape}"
        )
    if members.dtype.kind not in "biuf" or not np.isin(members, (0, 1)).all():
        raise ValueError("canaries must be True if included and False otherwise (or 1 and 0)")
    return values, members.astype(bool)


def _check_guess_counts(guesses: Any, canary_count: int) -> list[int]:
    if guesses is None:
        return [canary_count]
    if not isinstance(guesses, int | np.integer | Iterable) or isinstance(guesses, str):
        raise TypeError(f"guesses must be an integer or several integers, not {guesses!r:.40}")
    several = [guesses] if isinstance(guesses, int | np.integer) else list(guesses)
    counts = [as_integer(count, "guesses", 1) for count in several]
    if not counts or max(counts) > canary_count:
        raise ValueError(f"guesses must be between 1 and the number of canaries, {canary_count}")
    return counts


def _count_correct(values: np.ndarray, members: np.ndarray, guesses: int) -> int:
    """Count correct guesses: the highest scores are guessed as included, the lowest as not included."""
    # Break ties at random: the canaries may be sorted by membership.
    shuffled = np.random.default_rng(0).permutation(len(values))
    order = shuffled[np.argsort(values[shuffled], kind="stable")]
    guessed_in = guesses - guesses // 2
    return int(members[order[len(order) - guessed_in :]].sum() + (~members[order[: guesses // 2]]).sum())
