"""The reconstruction attack: everybody's secret bit from sums over random subsets of people."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, cast, get_args

import numpy as np

from discreet.attacks.aggregates import subset_oracles
from discreet.attacks.aggregates.census import census
from discreet.attacks.aggregates.linear_reconstruction import METHODS, Method, expected_accuracy, guess_bits
from discreet.attacks.attack import (
    CURATOR,
    EASY,
    NOTHING,
    Attack,
    AttackResult,
    BitEvidence,
    DefenceChoice,
    DefenceRelease,
    Game,
    GuessEvidence,
    choice,
    whole,
)
from discreet.attacks.data.blocks import Blocks
from discreet.attacks.data.secret_bits import SECRETS, Secrets
from discreet.attacks.validation import finite_array
from discreet.kernel.numbers import Number, as_nonnegative
from discreet.plotting import GREY, INK, RED, format_plain_numbers

MIN_ERROR, _MAX_ERROR = 0.05, 8.0
ERROR_KEY = "error of a share, in units of 1/sqrt(n)"
Questions = Literal["random subsets", "one by one"]


def reconstruct(  # noqa: PLR0913 - all but the first by name only
    data: Secrets | Blocks | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    noise: float = 0.0,
    delta: Number | None = None,
    per_person: int = 4,
    questions: Questions = "random subsets",
    method: Method = "least squares",
) -> AttackResult:
    """Reconstruct everybody's secret bit from sums over random subsets, `per_person` queries for each person.

    `data` are `Secrets`, 512 fair coins by default; `Blocks` of a census are passed on to `census`. The oracle answers
    exactly, or with an error of `noise`/sqrt(n) in every share ("nothing"); rounds to tens ("easy"); or is the curator,
    which answers all queries at epsilon, with Gaussian noise if `delta` is given ("curator"). A function as defence
    gets the array of bits and returns a function from the matrix of subsets to the answers. With "one by one", each
    query is about one person. The rate of set bits is assumed known: the noisier the answers, the more the guesses
    tend to the more frequent value.

    >>> reconstruct(random_state=0).success
    1.0
    >>> reconstruct(noise=1 / 4, random_state=0).success > 0.9
    True
    """
    if isinstance(data, Blocks):
        if (noise, delta, per_person, questions, method) != (0, None, 4, "random subsets", "least squares"):
            raise TypeError("noise, delta, per_person, questions and method apply only to Secrets, not to Blocks")
        return census(data, defence=defence, epsilon=epsilon, random_state=random_state)
    return ATTACK.run(
        data,
        defence,
        epsilon,
        random_state,
        noise=noise,
        delta=delta,
        per_person=per_person,
        questions=questions,
        method=method,
    )


def _play(game: Game) -> AttackResult:
    secrets, settings = game.data, game.settings
    if settings.noise and game.defence.kind != NOTHING:
        raise TypeError('noise applies only to defence="nothing": the other defences add their own error')
    subsets = draw_subsets(len(secrets.bits), settings.questions, settings.per_person, game.rng)
    answers = oracle_answers(game, secrets.bits, subsets)
    is_right = guess_bits(subsets, answers, settings.method, secrets.bit_rate) == secrets.bits
    errors = answers - subset_oracles.exact_sums(secrets.bits)(subsets)
    answer_error = float(np.sqrt(np.mean(errors**2)))
    return game.result(
        "of bits reconstructed",
        # The guarantee is for adding or removing a person, and here a bit is substituted. A person whose bit is not set
        # contributes to no answer, as if removed, so epsilon also bounds this game. The noise of an answer affects the
        # guesses about all people in it, but no two guesses share much of it: the interval treats them as independent.
        _evidence(secrets, is_right),
        _details(game, subsets, answer_error),
        hit=is_right,
        rarity=-subsets.sum(axis=0),  # people in few queries are harder to reconstruct
        rarity_label="few queries about them",
        labels=[f"person {number}" for number in range(len(is_right))],
        draw=partial(
            draw_accuracy_by_error,
            shape=subsets.shape,
            answer_error=answer_error,
            accuracy=is_right.mean(),
            bit_rate=secrets.bit_rate,
        ),
    )


def _evidence(secrets: Secrets, is_right: np.ndarray) -> BitEvidence | GuessEvidence:
    if secrets.bits.all() or not secrets.bits.any():  # all bits are equal: there are no two groups to compare
        return GuessEvidence(int(is_right.sum()), len(is_right), prior=min(secrets.prior, 1 - 1e-9))
    return BitEvidence.from_guesses(is_right, secrets.bits, secrets.prior)


def draw_subsets(people: int, questions: Questions, per_person: int, rng: np.random.Generator) -> np.ndarray:
    """Return the subsets as a boolean matrix, queries × people.

    >>> draw_subsets(2, "one by one", 4, np.random.default_rng(0)).tolist()
    [[True, False], [False, True]]
    """
    if questions == "one by one":
        return np.eye(people, dtype=bool)
    return rng.integers(0, 2, (per_person * people, people), dtype=np.uint8).astype(bool)


def oracle_answers(game: Game, bits: np.ndarray, subsets: np.ndarray) -> np.ndarray:
    """Return the answers of the defence's oracle about these bits, one number per query."""
    return finite_array(game.release(bits)(subsets), (len(subsets),), "the defence's oracle")


def user_oracle(game: Game, bits: np.ndarray) -> subset_oracles.SubsetOracle:
    """Return the oracle that the user's defence returns."""
    returned = game.ask_user(bits.copy())
    if not callable(returned) or isinstance(returned, type):
        raise TypeError("the defence must return an oracle: a function from the matrix of subsets to the answers")
    return cast("Callable[[np.ndarray], Any]", returned)


def _details(game: Game, subsets: np.ndarray, answer_error: float) -> dict[str, Any]:
    questions, people = subsets.shape
    details: dict[str, Any] = {
        "people": people,
        "questions": questions,
        "error of an answer (RMS)": answer_error,
        ERROR_KEY: float(answer_error / np.sqrt(people)),
    }
    if questions > people:
        theory = expected_accuracy(people, questions, answer_error, game.data.bit_rate)
        details["accuracy of least squares, in theory"] = theory
    if game.defence.kind == CURATOR:
        is_sql = subset_oracles.is_asked_in_sql(subsets)
        details["answered"] = "in SQL" if is_sql else "by the mechanism, as one vector"
    return details


def draw_accuracy_by_error(
    axes: Any, *, shape: tuple[int, int], answer_error: float, accuracy: float, bit_rate: float
) -> None:
    """Draw the accuracy of least squares against the error of the answers, and mark this run."""
    questions, people = shape
    here = max(answer_error / np.sqrt(people), MIN_ERROR)
    if questions > people:
        draw_theory(axes, shape, max(_MAX_ERROR, 1.5 * here), bit_rate)
    axes.plot([here], [accuracy], "o", color=RED, ms=6, label="this run")
    finish_axes(axes, max(bit_rate, 1 - bit_rate), "guessing")


def draw_theory(axes: Any, shape: tuple[int, int], max_error: float, bit_rate: float = 1 / 2) -> None:
    """Draw the theoretical accuracy of least squares up to this error."""
    questions, people = shape
    errors = np.geomspace(MIN_ERROR, max_error, 160)
    theory = [expected_accuracy(people, questions, error * np.sqrt(people), bit_rate) for error in errors]
    axes.plot(errors, theory, color=GREY, lw=1.2, label="least squares, in theory")


def finish_axes(axes: Any, guessing: float, label: str) -> None:
    """Label the axes, and draw the line of guessing."""
    axes.axhline(guessing, color=INK, ls=":", lw=1, label=label)
    axes.set(xscale="log", ylim=(0.4, 1.04), xlabel=ERROR_KEY, ylabel="share of bits reconstructed")
    format_plain_numbers(axes.xaxis)


SUBSET_RELEASES = {
    NOTHING: DefenceRelease(
        "non-private sums",
        lambda game, bits: (
            subset_oracles.noisy_sums(bits, game.settings.noise, game.rng)
            if game.settings.noise
            else subset_oracles.exact_sums(bits)
        ),
    ),
    EASY: DefenceRelease("sums rounded to tens", lambda _, bits: subset_oracles.rounded_sums(bits)),
    CURATOR: DefenceRelease(
        "private counts, which cost epsilon together",
        lambda game, bits: subset_oracles.private_sums(bits, game.epsilon, game.delta),
    ),
}
ATTACK = Attack(
    function=reconstruct,
    docs_page="reconstruction",
    summary="Reconstructs everybody's secret bit from sums over random subsets of people.",
    data=SECRETS,
    releases=SUBSET_RELEASES,
    own=user_oracle,
    play=_play,
    settings={
        "noise": lambda noise, _: float(as_nonnegative(noise, "noise, in units of 1/sqrt(n),")),
        "per_person": whole(1),
        "questions": choice(get_args(Questions)),
        "method": choice(METHODS),
    },
    is_independent=True,
)
