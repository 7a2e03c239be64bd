"""What a released table, or answered counts, tell of a person's secret value: in the data, and taken out of it.

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
from discreet.attacks.evidence import Found
from discreet.attacks.tables.counting import Answers, answered, sharpness
from discreet.attacks.tables.patients import ROW, Patients, Secret, codes_of
from discreet.audit.counting import Share

_AT_ONCE = 200


@dataclass(frozen=True, eq=False)
class Views:
    """For each person, how many like them have each value: with the person's own row, and without it."""

    inside: np.ndarray
    outside: np.ndarray


@dataclass(frozen=True, eq=False)
class Told:
    """For each person asked about, whether the guess was right: of a member, and of the same person as a stranger."""

    people: np.ndarray
    inside: np.ndarray
    outside: np.ndarray
    surest: float  # the highest chance that the attack gives to a guess

    @property
    def evidence(self) -> Found:
        """The shares of right guesses."""
        return Found(Share.of(self.inside), Share.of(self.outside))


def views_of(released: pa.Table, data: Patients) -> Views:
    """Look up each person's class in a released table: who is not in it is like nobody.

    >>> table = pa.table({"age": ["3*", "3*", "4*"], "ill": ["flu", "no", "no"]})
    >>> patients = Patients(table, ["age"], "ill")
    >>> seen = views_of(patients.numbered, patients)
    >>> seen.inside.tolist(), seen.outside.tolist()
    ([[1, 1], [1, 1], [0, 1]], [[0, 1], [1, 0], [0, 0]])
    """
    classes = anonymity.measure(released.select(data.quasi), data.quasi).members
    secrets, rows = codes_of(released[data.sensitive], data.values), np.asarray(released[ROW])
    values, people = len(data.values), data.table.num_rows
    tallies = np.bincount(classes.ids * values + secrets, minlength=len(classes.sizes) * values)
    inside = np.zeros((people, values), np.int64)
    inside[rows] = tallies.reshape(-1, values)[classes.ids]
    outside = inside.copy()
    outside[rows, secrets] -= 1
    return Views(inside, outside)


def chances(counts: np.ndarray, prior: np.ndarray, possible: np.ndarray) -> np.ndarray:
    """Return how likely each value is, by the rows of a class; by the whole table's if there are none.

    >>> chances(np.array([[2, 2, 0], [0, 0, 0]]), np.array([0.5, 0.25, 0.25]), np.array([[False, True, True]] * 2))
    array([[0. , 1. , 0. ],
           [0. , 0.5, 0.5]])
    """
    left = np.where(possible, counts, 0).astype(float)
    empty = left.sum(axis=1) == 0
    left[empty] = np.where(possible, prior, 0)[empty]
    return np.asarray(left / np.maximum(left.sum(axis=1, keepdims=True), 1e-300))


def chances_by_answers(
    answers: np.ndarray, others: np.ndarray, prior: np.ndarray, possible: np.ndarray, epsilon: float
) -> np.ndarray:
    """Return how likely each value is of somebody who is counted in these noisy answers, by the rule of Bayes.

    The attacker knows how many `others` are like the target, say from a census, but not what they have.

    >>> even, any_ = np.array([0.5, 0.5]), np.array([[True, True]])
    >>> chances_by_answers(np.array([[9.0, 0.0]]), np.array([0]), even, any_, epsilon=1.0).round(2)
    array([[0.88, 0.12]])
    >>> chances_by_answers(np.array([[30.0, 10.0]]), np.array([39]), even, any_, epsilon=50.0).round(2)
    array([[0.75, 0.25]])
    """
    parts = np.array_split(np.argsort(others, kind="stable"), 1 + len(others) // _AT_ONCE)  # alike sizes together
    log = np.empty(answers.shape)
    for part in parts:
        log[part] = np.log(prior) + _gains(answers[part], others[part, None] * prior, epsilon)
    log[~possible] = -np.inf
    weight = np.exp(log - log.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _gains(answers: np.ndarray, expected: np.ndarray, epsilon: float) -> np.ndarray:
    """Return how much better each answer is explained by one person more than those who are expected (Poisson)."""
    from scipy.special import gammaln, logsumexp, xlogy  # noqa: PLC0415 - an extra

    many = np.arange(math.ceil(expected.max(initial=0) + 8 * math.sqrt(expected.max(initial=0))) + 1)
    law = xlogy(many, expected[..., None]) - expected[..., None] - gammaln(many + 1)
    off = answers[..., None] - many
    with_one, without = (logsumexp(law - epsilon * np.abs(off - more), axis=-1) for more in (1, 0))
    return np.asarray(with_one - without)


def told_by_table(views: Views, secret: Secret) -> Told:
    """Guess everybody's value by a released table."""
    likely = tuple(chances(each, secret.prior, secret.possible) for each in (views.inside, views.outside))
    return told_by(np.arange(len(secret.truth)), likely, secret)


def told_by_answers(views: Views, secret: Secret, people: np.ndarray, answers: Answers) -> Told:
    """Guess the values of these people by answered counts of those who are just like them."""
    exact = np.concatenate([views.inside[people], views.outside[people]])
    seen, decoys = answered(answers, exact)
    possible = np.concatenate([secret.possible[people]] * 2)
    others = np.tile(views.outside[people].sum(axis=1), 2)
    likely = chances_by_answers(seen, others, secret.prior, possible, sharpness(decoys))
    return told_by(people, (likely[: len(people)], likely[len(people) :]), secret)


def told_by(people: np.ndarray, likely: Sequence[np.ndarray], secret: Secret) -> Told:
    """Guess what is likeliest, of members and of strangers, and see who is right."""
    # Among equally likely values the one that is commonest in the whole table is guessed.
    inside, outside = (np.argmax(each + 1e-9 * secret.prior, axis=1) == secret.truth[people] for each in likely)
    return Told(people, inside, outside, float(likely[0].max(initial=0)))


def implied_by_possible(views: Views, truth: np.ndarray) -> float:
    """Return the epsilon that a table's classes imply by the values they lack: a member's own is never among these.

    >>> views = Views(np.array([[1, 1]] * 100), np.array([[0, 1]] * 100))
    >>> implied_by_possible(views, np.zeros(100, int)) > 3
    True
    """
    people = np.arange(len(truth))
    left = [each[people, truth] > 0 for each in (views.inside, views.outside)]
    return Found(Share.of(left[0]), Share.of(left[1])).implied().low


def some_people(count: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return who is asked about: everybody, or so many by chance."""
    return np.arange(count) if count <= most else np.sort(rng.choice(count, most, replace=False))


def rareness(table: pa.Table, quasi: Sequence[str]) -> np.ndarray:
    """Return how rare each person is: how surprising their values are, added up over the columns.

    >>> rareness(pa.table({"sex": ["F", "F", "F", "M"]}), ["sex"]).round(2).tolist()
    [0.29, 0.29, 0.29, 1.39]
    """
    total = np.zeros(table.num_rows)
    for name in quasi:
        coded = pc.dictionary_encode(table[name].combine_chunks())
        codes = np.asarray(coded.indices.fill_null(len(coded.dictionary)))
        total -= np.log(np.bincount(codes)[codes] / len(codes))
    return total
