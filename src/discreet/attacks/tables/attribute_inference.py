"""Infer sensitive values from tables or noisy counts, for members and the same people removed.

Each person is both a member and a stranger. The stranger is the same person, whose row was taken out of the class that
the table puts it into, while all other rows and the classes stay as they are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet import anonymity
from discreet.attacks.evidence import EventEvidence
from discreet.attacks.tables.patients import ROW, Patients, SensitiveValues, value_codes
from discreet.attacks.tables.table_releases import CountOracle, answers_and_decoys, estimate_noise_epsilon
from discreet.audit.binomial import Proportion

_BATCH_SIZE = 200


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """For each person, how many like them have each value: with the person's own row, and without it."""

    with_target: np.ndarray
    without_target: np.ndarray


@dataclass(frozen=True, eq=False)
class AttributeInference:
    """For each person asked about, whether the guess was right: of a member, and of the same person as a stranger."""

    people: np.ndarray
    right_as_member: np.ndarray
    right_as_non_member: np.ndarray
    highest_posterior: float  # the highest chance that the attack gives to a guess

    @property
    def evidence(self) -> EventEvidence:
        """The shares of right guesses."""
        return EventEvidence(
            Proportion.from_outcomes(self.right_as_member), Proportion.from_outcomes(self.right_as_non_member)
        )


def class_counts(released: pa.Table, data: Patients) -> ClassCounts:
    """Look up each person's class in a released table: who is not in it is like nobody.

    >>> table = pa.table({"age": ["3*", "3*", "4*"], "ill": ["flu", "no", "no"]})
    >>> patients = Patients(table, ["age"], "ill")
    >>> answers = class_counts(patients.numbered, patients)
    >>> answers.inside.tolist(), answers.outside.tolist()
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
    """Return how likely each value is, by the rows of a class; by the whole table's if there are none.

    >>> posterior_from_counts(np.array([[2, 2, 0], [0, 0, 0]]), np.array([0.5, 0.25, 0.25]), np.array([[False, True, True]] * 2))
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
    """Return how likely each value is of somebody who is counted in these noisy answers, by the rule of Bayes.

    The attacker knows how many `others` are like the target, say from a census, but not what they have.

    >>> even, any_ = np.array([0.5, 0.5]), np.array([[True, True]])
    >>> posterior_from_answers(np.array([[9.0, 0.0]]), np.array([0]), even, any_, epsilon=1.0).round(2)
    array([[0.88, 0.12]])
    >>> posterior_from_answers(np.array([[30.0, 10.0]]), np.array([39]), even, any_, epsilon=50.0).round(2)
    array([[0.75, 0.25]])
    """
    parts = np.array_split(np.argsort(others, kind="stable"), 1 + len(others) // _BATCH_SIZE)  # alike sizes together
    log_posterior = np.empty(answers.shape)
    for part in parts:
        log_posterior[part] = np.log(prior) + _log_likelihood_ratios(answers[part], others[part, None] * prior, epsilon)
    log_posterior[~possible] = -np.inf
    weight = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _log_likelihood_ratios(answers: np.ndarray, expected: np.ndarray, epsilon: float) -> np.ndarray:
    """Return how much better each answer is explained by one person more than those who are expected (Poisson)."""
    from scipy.special import gammaln, logsumexp, xlogy  # noqa: PLC0415 - an extra

    other_counts = np.arange(math.ceil(expected.max(initial=0) + 8 * math.sqrt(expected.max(initial=0))) + 1)
    log_poisson = xlogy(other_counts, expected[..., None]) - expected[..., None] - gammaln(other_counts + 1)
    residuals = answers[..., None] - other_counts
    with_one, without = (logsumexp(log_poisson - epsilon * np.abs(residuals - more), axis=-1) for more in (1, 0))
    return np.asarray(with_one - without)


def infer_from_table(counts: ClassCounts, sensitive: SensitiveValues) -> AttributeInference:
    """Guess everybody's value by a released table."""
    posteriors = tuple(
        posterior_from_counts(each, sensitive.prior, sensitive.possible)
        for each in (counts.with_target, counts.without_target)
    )
    return infer_most_likely(np.arange(len(sensitive.truth)), posteriors, sensitive)


def infer_from_answers(
    counts: ClassCounts, sensitive: SensitiveValues, people: np.ndarray, oracle: CountOracle
) -> AttributeInference:
    """Guess the values of these people by answered counts of those who are just like them."""
    exact = np.concatenate([counts.with_target[people], counts.without_target[people]])
    answers, decoys = answers_and_decoys(oracle, exact)
    possible = np.concatenate([sensitive.possible[people]] * 2)
    others = np.tile(counts.without_target[people].sum(axis=1), 2)
    posteriors = posterior_from_answers(answers, others, sensitive.prior, possible, estimate_noise_epsilon(decoys))
    return infer_most_likely(people, (posteriors[: len(people)], posteriors[len(people) :]), sensitive)


def infer_most_likely(
    people: np.ndarray, posteriors: Sequence[np.ndarray], sensitive: SensitiveValues
) -> AttributeInference:
    """Guess what is likeliest, of members and of strangers, and see who is right."""
    # Among equally likely values the one that is commonest in the whole table is guessed.
    right_as_member, right_as_non_member = (
        np.argmax(each + 1e-9 * sensitive.prior, axis=1) == sensitive.truth[people] for each in posteriors
    )
    return AttributeInference(people, right_as_member, right_as_non_member, float(posteriors[0].max(initial=0)))


def epsilon_implied_by_absent_values(counts: ClassCounts, truth: np.ndarray) -> float:
    """Return the epsilon that a table's classes imply by the values they lack: a member's own is never among these.

    >>> counts = ClassCounts(np.array([[1, 1]] * 100), np.array([[0, 1]] * 100))
    >>> epsilon_implied_by_absent_values(counts, np.zeros(100, int)) > 3
    True
    """
    people = np.arange(len(truth))
    has_own_value = [each[people, truth] > 0 for each in (counts.with_target, counts.without_target)]
    return (
        EventEvidence(Proportion.from_outcomes(has_own_value[0]), Proportion.from_outcomes(has_own_value[1]))
        .implied()
        .low
    )


def sample_people(count: int, max_people: int, rng: np.random.Generator) -> np.ndarray:
    """Return who is asked about: everybody, or so many by chance."""
    return np.arange(count) if count <= max_people else np.sort(rng.choice(count, max_people, replace=False))


def rarity_of_rows(table: pa.Table, quasi: Sequence[str]) -> np.ndarray:
    """Return how rare each person is: how surprising their values are, added up over the columns.

    >>> rarity_of_rows(pa.table({"sex": ["F", "F", "F", "M"]}), ["sex"]).round(2).tolist()
    [0.29, 0.29, 0.29, 1.39]
    """
    total = np.zeros(table.num_rows)
    for name in quasi:
        coded = pc.dictionary_encode(table[name].combine_chunks())
        codes = np.asarray(coded.indices.fill_null(len(coded.dictionary)))
        total -= np.log(np.bincount(codes)[codes] / len(codes))
    return total
