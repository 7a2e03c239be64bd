"""Infer sensitive values from tables or noisy counts, for members and for the same people removed.

Each person is attacked twice: as a member, and as a non-member whose row is removed from its equivalence class while
all other rows and the classes stay the same.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet import anonymity
from discreet.attacks.attack import AttackResult, EventEvidence, Game
from discreet.attacks.data.patients import ROW, Patients, SensitiveValues, value_codes
from discreet.attacks.private_answers import (
    CountOracle,
    answers_and_decoys,
    estimate_noise_epsilon,
    is_count_oracle,
)
from discreet.attacks.validation import arrow_table, require, require_columns

_BATCH_SIZE = 200
PosteriorPair = tuple[np.ndarray, np.ndarray]  # as members, and as non-members


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """For each person, the sensitive values in their equivalence class, with and without their own row."""

    with_target: np.ndarray
    without_target: np.ndarray


@dataclass(frozen=True, eq=False)
class AttributeInference:
    """For each target, whether their value was inferred as a member, and as a non-member."""

    people: np.ndarray
    right_as_member: np.ndarray
    right_as_non_member: np.ndarray
    highest_posterior: float  # over all guesses about members


def class_counts(released: pa.Table, data: Patients) -> ClassCounts:
    """Count the sensitive values in each person's class of a released table; zeros for people who are not in it.

    >>> table = pa.table({"age": ["3*", "3*", "4*"], "ill": ["flu", "no", "no"]})
    >>> patients = Patients(table, ["age"], "ill")
    >>> counts = class_counts(patients.numbered_table, patients)
    >>> counts.with_target.tolist(), counts.without_target.tolist()
    ([[1, 1], [1, 1], [0, 1]], [[0, 1], [1, 0], [0, 0]])
    """
    classes = anonymity.measure(released.select(data.quasi), data.quasi).equivalence_classes
    codes, rows = value_codes(released[data.sensitive], data.values), np.asarray(released[ROW])
    values, people = len(data.values), data.table.num_rows
    counts = np.bincount(classes.ids * values + codes, minlength=len(classes.sizes) * values)
    with_target = np.zeros((people, values), np.int64)
    with_target[rows] = counts.reshape(-1, values)[classes.ids]
    without_target = with_target.copy()
    without_target[rows, codes] -= 1
    return ClassCounts(with_target, without_target)


def posterior_from_counts(counts: np.ndarray, prior: np.ndarray, possible: np.ndarray) -> np.ndarray:
    """Return the posterior of each value from the counts of a class, or from the prior if the class is empty.

    >>> counts, possible = np.array([[2, 2, 0], [0, 0, 0]]), np.array([[False, True, True]] * 2)
    >>> posterior_from_counts(counts, np.array([0.5, 0.25, 0.25]), possible)
    array([[0. , 1. , 0. ],
           [0. , 0.5, 0.5]])
    """
    weights = np.where(possible, counts, 0).astype(float)
    empty = weights.sum(axis=1) == 0
    weights[empty] = np.where(possible, prior, 0)[empty]
    return np.asarray(weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300))


def posterior_from_answers(
    answers: np.ndarray, others: np.ndarray, prior: np.ndarray, possible: np.ndarray, epsilon: float
) -> np.ndarray:
    """Return the posterior of each value, by Bayes' rule, for a target who is counted in these noisy answers.

    The attacker knows how many `others` look like the target, for example from a census, but not their values.

    >>> even, any_ = np.array([0.5, 0.5]), np.array([[True, True]])
    >>> posterior_from_answers(np.array([[9.0, 0.0]]), np.array([0]), even, any_, epsilon=1.0).round(2)
    array([[0.88, 0.12]])
    >>> posterior_from_answers(np.array([[30.0, 10.0]]), np.array([39]), even, any_, epsilon=50.0).round(2)
    array([[0.75, 0.25]])
    """
    parts = np.array_split(np.argsort(others, kind="stable"), 1 + len(others) // _BATCH_SIZE)  # similar sizes together
    log_posterior = np.empty(answers.shape)
    for part in parts:
        log_posterior[part] = np.log(prior) + _log_likelihood_ratios(answers[part], others[part, None] * prior, epsilon)
    log_posterior[~possible] = -np.inf
    return np.asarray(np.exp(log_posterior - np.logaddexp.reduce(log_posterior, axis=1, keepdims=True)))


def _log_likelihood_ratios(answers: np.ndarray, expected: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the log-likelihood ratio of one more person against the expected (Poisson) count, for each answer."""
    from scipy.special import gammaln, logsumexp, xlogy  # noqa: PLC0415 - an extra

    other_counts = np.arange(math.ceil(expected.max(initial=0) + 8 * math.sqrt(expected.max(initial=0))) + 1)
    log_poisson = xlogy(other_counts, expected[..., None]) - expected[..., None] - gammaln(other_counts + 1)
    residuals = answers[..., None] - other_counts
    with_one, without = (logsumexp(log_poisson - epsilon * np.abs(residuals - more), axis=-1) for more in (1, 0))
    return np.asarray(with_one - without)


def posteriors_from_table(counts: ClassCounts, sensitive: SensitiveValues) -> PosteriorPair:
    """Return everybody's posteriors, as members and as non-members, from the classes of a released table."""
    with_target, without_target = (
        posterior_from_counts(each, sensitive.prior, sensitive.possible)
        for each in (counts.with_target, counts.without_target)
    )
    return with_target, without_target


def posteriors_from_oracle(
    counts: ClassCounts, sensitive: SensitiveValues, people: np.ndarray, oracle: CountOracle
) -> PosteriorPair:
    """Return the posteriors of these people from noisy counts of the people who share their quasi-identifiers."""
    exact = np.concatenate([counts.with_target[people], counts.without_target[people]])
    answers, decoys = answers_and_decoys(oracle, exact)
    possible = np.concatenate([sensitive.possible[people]] * 2)
    others = np.tile(counts.without_target[people].sum(axis=1), 2)
    posteriors = posterior_from_answers(answers, others, sensitive.prior, possible, estimate_noise_epsilon(decoys))
    return posteriors[: len(people)], posteriors[len(people) :]


def infer_most_likely(people: np.ndarray, posteriors: PosteriorPair, sensitive: SensitiveValues) -> AttributeInference:
    """Guess the value with the highest posterior, for members and for non-members."""
    # Ties go to the value that is most common in the whole table.
    right_as_member, right_as_non_member = (
        np.argmax(each + 1e-9 * sensitive.prior, axis=1) == sensitive.truth[people] for each in posteriors
    )
    return AttributeInference(people, right_as_member, right_as_non_member, float(posteriors[0].max(initial=0)))


def epsilon_implied_by_absent_values(counts: ClassCounts, truth: np.ndarray) -> float:
    """Return the epsilon implied by values absent from classes: a member's own value is never absent.

    >>> counts = ClassCounts(np.array([[1, 1]] * 100), np.array([[0, 1]] * 100))
    >>> epsilon_implied_by_absent_values(counts, np.zeros(100, int)) > 3
    True
    """
    people = np.arange(len(truth))
    own, other = (each[people, truth] > 0 for each in (counts.with_target, counts.without_target))
    return EventEvidence.from_outcomes(own, other).implied().low


def rarity_of_rows(table: pa.Table, quasi: Sequence[str]) -> np.ndarray:
    """Return the rarity of each row: the sum over the columns of -log(frequency of the value).

    >>> rarity_of_rows(pa.table({"sex": ["F", "F", "F", "M"]}), ["sex"]).round(2).tolist()
    [0.29, 0.29, 0.29, 1.39]
    """
    total = np.zeros(table.num_rows)
    for name in quasi:
        coded = pc.dictionary_encode(table[name].combine_chunks())
        codes = np.asarray(coded.indices.fill_null(len(coded.dictionary)))
        total -= np.log(np.bincount(codes)[codes] / len(codes))
    return total


def infer_values(
    game: Game, released: pa.Table | CountOracle, data: Patients
) -> tuple[AttributeInference, ClassCounts]:
    """Infer everybody's value from a released table, or the targets' values from the narrowest counts.

    These are counts of the people with the same quasi-identifiers as the target. A non-member is the same person,
    removed: neighbouring databases in the sense of the curator's guarantee.
    """
    is_table, sensitive = isinstance(released, pa.Table), data.sensitive_values
    counts = class_counts(released if is_table else data.numbered_table, data)
    people = np.arange(data.table.num_rows) if is_table else draw_people(game, data.table.num_rows)
    posteriors = (
        posteriors_from_table(counts, sensitive)
        if is_table
        else posteriors_from_oracle(counts, sensitive, people, released)
    )
    return infer_most_likely(people, posteriors, sensitive), counts


def draw_people(game: Game, count: int) -> np.ndarray:
    """Return the targets: everybody, or a random sample."""
    most = game.settings.targets
    return np.arange(count) if count <= most else np.sort(game.rng.choice(count, most, replace=False))


def inference_result(  # noqa: PLR0913 - what was inferred, and how to show it
    game: Game,
    metric: str,
    inference: AttributeInference,
    details: Mapping[str, Any],
    rarity: np.ndarray,
    *,
    person: str = "row",
) -> AttackResult:
    """Return what inferred values show, given the rarity of everybody in the order of their numbers."""
    return game.result(
        metric,
        EventEvidence.from_outcomes(inference.right_as_member, inference.right_as_non_member),
        details,
        hit=inference.right_as_member,
        rarity=rarity[inference.people],
        labels=[f"{person} {number + 1}" for number in inference.people],
    )


def k_anonymous_release(data: Patients, k: int, l: int = 1) -> pa.Table:  # noqa: E741 - the usual name
    """Release a table with classes of at least k people and at least l distinct sensitive values in each.

    >>> table = pa.table({"age": [23, 29, 35, 41], "ill": list("abab")})
    >>> k_anonymous_release(Patients(table, ["age"], "ill"), k=2)["age"].to_pylist()
    ['23-29', '23-29', '35-41', '35-41']
    """
    values = min(l, len(data.values))
    return anonymity.anonymise(data.numbered_table, data.quasi, k, data.sensitive, l=values if values > 1 else None)


def checked_release(returned: Any, data: Patients) -> pa.Table | CountOracle:
    """Return what the user's defence returned: a validated table, or an oracle for counts."""
    if is_count_oracle(returned):
        return returned
    table = arrow_table(returned, "the defence's return value")
    required = [*data.quasi, data.sensitive, ROW]
    require_columns(table, required, "the defence's table")
    rows = table[ROW]
    require(
        pa.types.is_integer(rows.type)
        and not rows.null_count
        and 0 < len(set(rows.to_pylist()) & set(range(data.table.num_rows))) == table.num_rows,
        "column 'row' of the defence's table must contain row numbers of its input, each at most once",
    )
    return table.select(required)
