"""Two reductions: membership inference from reconstruction, and reconstruction from membership inference."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.attacks.aggregates.linear_reconstruction import METHODS, Method, guess_bits
from discreet.attacks.aggregates.reconstruct import SUBSET_RELEASES, draw_subsets, oracle_answers, user_oracle
from discreet.attacks.aggregates.subset_oracles import exact_sums
from discreet.attacks.attack import (
    CURATOR,
    EASY,
    NOTHING,
    Attack,
    AttackResult,
    BitEvidence,
    DefenceChoice,
    DefenceRelease,
    EventEvidence,
    Game,
    Number,
    choice,
)
from discreet.attacks.data.secret_bits import ROSTER, STUDY, Secrets, Study
from discreet.attacks.private_answers import ask_curator
from discreet.attacks.validation import finite_array, require

_COUNTS_SQL = "SELECT secret, item, COUNT(*) AS n FROM data GROUP BY secret, item ORDER BY secret, item"
_PER_PERSON = 8
_MEMBER_THRESHOLD = 1.645  # standard deviations; 5 % of non-members exceed it


def means_by_secret(values: np.ndarray, secrets: np.ndarray) -> np.ndarray:
    """Return the non-private means: one row for people without the secret, one for people with it.

    >>> means_by_secret(np.array([[1, 0], [1, 1], [0, 0]]), np.array([0, 0, 1])).tolist()
    [[1.0, 0.5], [0.0, 0.0]]
    """
    return np.stack([values[secrets == secret].mean(axis=0) for secret in (0, 1)])


def private_means(values: np.ndarray, secrets: np.ndarray, epsilon: Fraction) -> np.ndarray:
    """Return the means of both groups from private counts of the attributes and of the people."""
    people, attributes = values.shape
    everybody = np.concatenate([values, np.ones((people, 1), bool)], axis=1)  # the last attribute counts the people
    person, item = np.nonzero(everybody)
    table = pa.table({"person": person, "item": item, "secret": secrets[person]})
    columns = {"item": (0, attributes), "secret": (0, 1)}
    answer = ask_curator(table, _COUNTS_SQL, epsilon, columns, unit="person", groups=attributes + 1)
    counts = answer["n"].to_numpy().reshape(2, attributes + 1)
    return np.asarray(counts[:, :-1] / np.maximum(counts[:, -1:], 1))


def _exact_means(game: Game) -> np.ndarray:
    return means_by_secret(game.data.values, game.data.secrets)


def _user_means(game: Game) -> np.ndarray:
    returned = game.ask_user(game.data.values.copy(), game.data.secrets.copy())
    shape = (2, game.data.values.shape[1])
    return finite_array(returned, shape, "the defence (means without and with the secret)")


def membership_from_reconstruction(
    data: Secrets | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    method: Method = "one at a time",
) -> AttackResult:
    """Infer membership by reconstruction: the secret bit is whether a person is in the data.

    `data` are `Secrets`: for each person on a public roster, whether they are in the data; 256 fair coins by default.
    An oracle answers how many people of a random subset of the roster are in the data; the defences are those of
    `reconstruct`. A bit that is wrongly set is a false positive.

    >>> result = membership_from_reconstruction(random_state=0)
    >>> result.success > 0.9, result.baseline < 0.1
    (True, True)
    """
    return _MEMBERSHIP.run(data, defence, epsilon, random_state, method=method)


def _infer_membership(game: Game) -> AttackResult:
    is_member = game.data.bits
    require(not is_member.all() and is_member.any(), "data must have both members (1) and non-members (0)")
    other_bits = game.rng.permutation(is_member)  # another secret with the same rate
    called_members, question_counts = _reconstruct_bits(game, is_member)
    evidence = EventEvidence.from_outcomes(called_members[is_member], called_members[~is_member])
    return game.result(
        "of members identified",
        # Non-members contribute to no answer: a member and a non-member differ by adding or removing one person.
        evidence,
        {
            "bits reconstructed correctly": float((_reconstruct_bits(game, other_bits)[0] == other_bits).mean()),
            "membership inferred correctly": float((called_members == is_member).mean()),
            "true positive rate": evidence.success,
            "false positive rate": evidence.baseline,
        },
        hit=called_members[is_member],
        rarity=-question_counts[is_member],  # people in few queries are harder to attack
        rarity_label="few queries about them",
        labels=[f"row {row}" for row in np.flatnonzero(is_member)],
    )


def _reconstruct_bits(game: Game, bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a reconstruction of these bits, and the number of queries about each person."""
    subsets = draw_subsets(len(bits), "random subsets", _PER_PERSON, game.rng)
    return guess_bits(subsets, oracle_answers(game, bits, subsets), game.settings.method), subsets.sum(axis=0)


def reconstruction_from_membership(
    data: Study | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
) -> AttackResult:
    """Reconstruct a secret bit by membership inference in two groups: the people with the bit and those without it.

    `data` is a `Study`, 200 people with 2,000 attributes by default. The release is the non-private means of the
    attributes in both groups ("nothing"), the means rounded to whole percentages ("easy"), or means from private
    counts, which cost epsilon together ("curator"). A function as defence gets the arrays of attributes and of secrets
    and returns two rows of means. Everybody gets the bit of the likelier group; the sizes of the groups are assumed
    known.

    >>> result = reconstruction_from_membership(random_state=0)
    >>> result.success > 0.95, result.details["bit right"] > 0.9
    (True, True)
    """
    return _RECONSTRUCTION.run(data, defence, epsilon, random_state)


def _reconstruct_secrets(game: Game) -> AttackResult:
    study, means = game.data, game.release()
    scores = group_scores(study.values, means, study.rates)
    has_secret, share = study.secrets == 1, float(study.secrets.mean())
    group_sizes = np.array([1 - share, share]) * len(has_secret)
    is_right = likelier_in_second_group(scores, means, study.rates, group_sizes) == has_secret
    return game.result(
        "of bits reconstructed",
        # Another secret moves a person from one group to the other: a removal and an addition.
        BitEvidence.from_guesses(is_right, has_secret, max(share, 1 - share), steps=2),
        _details(study, scores, group_scores(study.non_members, means, study.rates)),
        hit=is_right,
        rarity=_surprisal(study),
        rarity_label="unusual attributes",
        labels=[f"row {row}" for row in range(len(is_right))],
    )


def group_scores(people: np.ndarray, means: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the membership score of each person in each group, in standard deviations of a non-member's score.

    It uses the published means, the public rates, and the attributes of the people under test.

    >>> people, rates = np.array([[1, 1, 1], [0, 0, 0]]), np.full(3, 1 / 2)
    >>> group_scores(people, np.array([[1.0, 1.0, 1.0]]), rates).round(2).tolist()
    [[1.73, -1.73]]
    """
    return np.asarray((means - rates) @ (people - rates).T / _score_deviations(means, rates)[:, None])


def likelier_in_second_group(scores: np.ndarray, means: np.ndarray, rates: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return who is more likely in the second group than in the first, given their scores and the group sizes.

    >>> means, rates = np.array([[0.4, 0.6], [0.6, 0.4]]), np.full(2, 1 / 2)
    >>> likelier_in_second_group(np.array([[3.0, -3.0], [-3.0, 3.0]]), means, rates, np.array([5, 5])).tolist()
    [False, True]
    """
    # A member shifts the means of their own group, and so raises their own score by this many standard deviations.
    member_shifts = (rates * (1 - rates)).sum() / (sizes * _score_deviations(means, rates))
    log_posteriors = member_shifts[:, None] * scores - member_shifts[:, None] ** 2 / 2 + np.log(sizes)[:, None]
    return np.asarray(log_posteriors[1] > log_posteriors[0])


def _score_deviations(means: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the standard deviation of a non-member's score in each group."""
    return np.asarray(np.maximum(np.sqrt((rates * (1 - rates) * (means - rates) ** 2).sum(axis=1)), 1e-300))


def _details(study: Study, scores: np.ndarray, non_member_scores: np.ndarray) -> dict[str, Any]:
    own, other = (
        scores[study.secrets, np.arange(len(study.secrets))],
        scores[1 - study.secrets, np.arange(scores.shape[1])],
    )
    return {
        "true positive rate": float((own > _MEMBER_THRESHOLD).mean()),
        "false positive rate": float((non_member_scores > _MEMBER_THRESHOLD).mean()),
        "bit right": float(((own > _MEMBER_THRESHOLD) & (own > other)).mean()),
        "bit wrong": float(((other > _MEMBER_THRESHOLD) & (other > own)).mean()),
        "rejected by both tests": float(((own <= _MEMBER_THRESHOLD) & (other <= _MEMBER_THRESHOLD)).mean()),
    }


def _surprisal(study: Study) -> np.ndarray:
    chances = np.where(study.values, study.rates, 1 - study.rates)
    return np.asarray(-np.log(chances).sum(axis=1))


_MEMBERSHIP = Attack(
    function=membership_from_reconstruction,
    docs_page="reconstruction",
    summary="Infers membership by reconstructing who is in the data.",
    data=ROSTER,
    releases={**SUBSET_RELEASES, NOTHING: DefenceRelease("non-private sums", lambda _, bits: exact_sums(bits))},
    own=user_oracle,
    play=_infer_membership,
    settings={"method": choice(METHODS)},
    is_independent=True,
)
_RECONSTRUCTION = Attack(
    function=reconstruction_from_membership,
    docs_page="reconstruction",
    summary="Reconstructs a secret bit by membership inference in the groups of people with it and without it.",
    data=STUDY,
    releases={
        NOTHING: DefenceRelease("non-private means of the attributes in both groups", _exact_means),
        EASY: DefenceRelease("the means rounded to whole percentages", lambda game: _exact_means(game).round(2)),
        CURATOR: DefenceRelease(
            "means from private counts, which cost epsilon together",
            lambda game: private_means(game.data.values, game.data.secrets, game.epsilon),
        ),
    },
    own=_user_means,
    play=_reconstruct_secrets,
)
