"""The audit by a single run: many made-up people, each in the data or not by a coin, and guesses who was in."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from discreet.audit.arguments import parse_claim, parse_confidence
from discreet.audit.result import AuditResult, CanaryGuesses
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.numbers import Number, as_integer

_EPSILON_GRID_SIZE = 64
_REVERSED_P_VALUE = 1e-3  # what has a smaller chance by guessing, at the wrong end, is no bad luck


def one_run(  # noqa: PLR0913 - what was seen, and what is to be judged how
    scores: Any,
    canaries: Any,
    delta: Number,
    *,
    guesses: int | Iterable[int] | None = None,
    confidence: float = 0.95,
    claim: Number | Loss | Budget | None = None,
) -> AuditResult:
    """Return the least epsilon of a training run, by the scores of canaries of which a fair coin put some in.

    `scores` say how much each looks like a member; `canaries` are True for those that were in. The `guesses` highest
    and lowest scores (half of them each) are guessed to be in and out; their number must be fixed before the scores
    are seen, or several numbers given, for which the chance of error is divided. Without it, all are guessed.
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
        event=f"{correct:,} of {guess_count:,} guesses who was in are right",
        direction=_direction(low, epsilon),
        details={"canaries": len(values), "guesses": guess_count, "right": correct, "numbers tried": len(guess_counts)},
        notes=_hints(correct, guess_count),
        plot_data=CanaryGuesses(correct, guess_count, allowed),
    )


def _direction(low: float, claim: Number | None) -> str:
    if not low:
        return "not more often right than guessing allows"
    if claim is None:
        return "more often right than guessing allows"
    if low > float(claim):
        return "more often right than the claim allows"
    return "more often right than guessing allows, but not more often than the claim allows"


def _hints(correct: int, guesses: int) -> tuple[tuple[str, str], ...]:
    """Say so if guesses are wrong more often than chance lets them be."""
    from scipy.special import bdtr  # noqa: PLC0415 - an extra

    if bdtr(correct, guesses, 0.5) >= _REVERSED_P_VALUE:
        return ()
    text = f"only {correct:,} of {guesses:,} are right, far fewer than half: are the scores turned round?"
    return (("hint", f"{text} A high score must mean that a canary was in, and canaries be True for those that were."),)


def _max_correct(guesses: int, canaries: int, epsilon: float, delta: float, error: float) -> int:
    """Return how many guesses can be right without refuting an epsilon."""
    low, high = math.floor(guesses / (1 + math.exp(-epsilon))), guesses + 1
    while high - low > 1:
        middle = (low + high) // 2
        is_refuted = p_value_bound(middle, guesses, canaries, epsilon=epsilon, delta=delta) < error
        low, high = (low, middle) if is_refuted else (middle, high)
    return low


def p_value_bound(correct: int, guesses: int, canaries: int, *, epsilon: float, delta: float = 0.0) -> float:
    """Return the highest chance that an (epsilon, delta)-private run lets so many guesses be right.

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
    # P[v > Bin >= v-i]/i is largest where v-i passes the bulk of the law: further down only i grows, and further up
    # there is next to nothing, which is taken whole.
    above, spread = max(0.0, correct - guesses * q), math.sqrt(guesses * q * (1 - q))
    near, far = max(1, math.floor(above - 12 * spread)), min(correct, math.ceil(above + 12 * spread + 12))
    i = np.arange(near, max(near, far) + 1)
    below = np.where(correct - i - 1 >= 0, bdtr(np.maximum(correct - i - 1, 0), guesses, q), 0.0)
    alpha = float(((float(bdtr(correct - 1, guesses, q)) - below) / i).max())
    if near > 1:
        alpha = max(alpha, float(bdtrc(correct - near, guesses, q)))
    return min(1.0, beta + 2 * canaries * delta * alpha)


def _epsilon_lower_bound(correct: int, guesses: int, canaries: int, delta: float, error: float) -> float:
    """Return the first epsilon that is not refuted."""

    def is_refuted(epsilon: float) -> bool:
        return p_value_bound(correct, guesses, canaries, epsilon=epsilon, delta=delta) < error

    if not is_refuted(0.0):
        return 0.0
    share = (correct + 0.5) / (guesses + 1)
    high = max(math.log(share / (1 - share)), 0.0) + 1.0
    while is_refuted(high):
        high += 1.0
    # With a delta the chance need not rise with epsilon everywhere: the first crossing is the one that is safe.
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
        raise TypeError(f"scores must be one number for each canary, not {scores!r:.40}") from None
    if values.ndim != 1 or not values.size or np.isnan(values).any():
        raise ValueError("scores must be one number for each canary, at least one, and none of them NaN")
    if members.shape != values.shape:
        raise ValueError(f"canaries must be one truth value for each of the {values.size} scores, not {members.shape}")
    if members.dtype.kind not in "biuf" or not np.isin(members, (0, 1)).all():
        raise ValueError("canaries must be True for those that were in and False for the others (or 1 and 0)")
    return values, members.astype(bool)


def _check_guess_counts(guesses: Any, canary_count: int) -> list[int]:
    if guesses is None:
        return [canary_count]
    if not isinstance(guesses, int | np.integer | Iterable) or isinstance(guesses, str):
        raise TypeError(f"guesses must be a number of guesses, or several, not {guesses!r:.40}")
    several = [guesses] if isinstance(guesses, int | np.integer) else list(guesses)
    counts = [as_integer(count, "guesses", 1) for count in several]
    if not counts or max(counts) > canary_count:
        raise ValueError(f"guesses must be from 1 to the number of canaries, {canary_count}")
    return counts


def _count_correct(values: np.ndarray, members: np.ndarray, guesses: int) -> int:
    """Return how many guesses are right: the highest scores are taken for members, the lowest for others."""
    # Equal scores must not be taken in the order of the canaries, which may be members first.
    shuffled = np.random.default_rng(0).permutation(len(values))
    order = shuffled[np.argsort(values[shuffled], kind="stable")]
    guessed_in = guesses - guesses // 2
    return int(members[order[len(order) - guessed_in :]].sum() + (~members[order[: guesses // 2]]).sum())
