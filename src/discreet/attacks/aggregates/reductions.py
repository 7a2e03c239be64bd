"""Two reductions: membership inference from reconstruction, and reconstruction from membership inference."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.aggregates.linear_reconstruction import Method, guess_bits
from discreet.attacks.aggregates.reconstruct import Secrets, draw_subsets, oracle_answers, oracle_under
from discreet.attacks.defences import CURATOR, EASY, Defence, DefenceChoice, parse_defence
from discreet.attacks.evidence import AttackEvidence, BitEvidence, EventEvidence, ImpliedEpsilon
from discreet.attacks.result import AttackResult, exposure_by_rarity
from discreet.attacks.validation import boolean_array, finite_array, random_generator, real_array
from discreet.audit.binomial import Proportion
from discreet.kernel.numbers import Number, as_integer

_COUNTS_SQL = "SELECT secret, item, COUNT(*) AS n FROM data GROUP BY secret, item ORDER BY secret, item"


@dataclass(frozen=True)
class Study:
    """The participants of a study with binary attributes and a secret bit each, and comparable non-members.

    `rates` are the public frequencies of the attributes in the population.

    >>> study = simulate_study(people=20, attributes=50, rng=np.random.default_rng(0))
    >>> study.values.shape, study.non_members.shape, study.secrets.shape
    ((20, 50), (80, 50), (20,))
    """

    values: np.ndarray
    secrets: np.ndarray
    non_members: np.ndarray
    rates: np.ndarray

    def __post_init__(self) -> None:
        names = ("values", "secrets", "non_members")
        values, secrets, non_members = (boolean_array(getattr(self, name), name) for name in names)
        rates = real_array(self.rates, "rates")
        if values.ndim != 2 or secrets.shape != values.shape[:1] or not len(values):
            raise ValueError("values must have one row, and secrets one entry, per participant")
        if non_members.shape[1:] != values.shape[1:] or rates.shape != values.shape[1:] or not len(non_members):
            raise ValueError("non_members and rates must have the same attributes as values")
        if not ((rates > 0) & (rates < 1)).all() or len(np.unique(secrets)) < 2:
            raise ValueError("rates must be between 0 and 1, and secrets must contain both 0 and 1")
        checked = {"values": values, "secrets": secrets.astype(np.int64), "non_members": non_members, "rates": rates}
        for name, array in checked.items():
            object.__setattr__(self, name, array)


def simulate_study(people: int, attributes: int, rng: np.random.Generator) -> Study:
    """Simulate a study with independent attributes and fair secret bits, and four times as many non-members."""
    rates = rng.uniform(0.1, 0.9, as_integer(attributes, "attributes", 1))
    values, non_members = (
        rng.random((count, attributes)) < rates for count in (as_integer(people, "people", 2), 4 * people)
    )
    return Study(values, rng.integers(0, 2, people), non_members, rates)


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
    with dc.open(
        table,
        unit="person",
        budget=epsilon,
        columns={"item": (0, attributes), "secret": (0, 1)},
        groups=attributes + 1,
        rows=1,
        ledger=":memory:",
    ) as curator:
        counts = curator.ask(_COUNTS_SQL, epsilon=epsilon).table["n"].to_numpy().reshape(2, attributes + 1)
    return np.asarray(counts[:, :-1] / np.maximum(counts[:, -1:], 1))


_ROSTER_SIZE, _PER_PERSON = 256, 8
_STUDY_SIZE, _ATTRIBUTE_COUNT = 200, 2000
_MEMBER_THRESHOLD = 1.645  # standard deviations; 5 % of non-members exceed it


@dataclass(frozen=True)
class SubstitutionEvidence:
    """Evidence from a game that substitutes a record: two steps of the add/remove relation.

    >>> bits = BitEvidence(Proportion(450, 500), Proportion(450, 500))
    >>> evidence = SubstitutionEvidence(bits)
    >>> evidence.ceiling(1) == bits.ceiling(2), evidence.implied().low == bits.implied().low / 2
    (True, True)
    """

    game: AttackEvidence

    @property
    def success(self) -> float:
        """The attack's success."""
        return self.game.success

    @property
    def baseline(self) -> float:
        """The success without the person's data."""
        return self.game.baseline

    @property
    def baseline_name(self) -> str:
        """The label of the baseline."""
        return self.game.baseline_name

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return a confidence interval of the attack's success."""
        return self.game.interval(confidence)

    def implied(self, delta: float = 0.0, confidence: float = 0.95) -> ImpliedEpsilon:
        """Return half of the epsilon implied between the two records."""
        between_records = self.game.implied(_require_zero_delta(delta), confidence)
        return ImpliedEpsilon(between_records.estimate / 2, between_records.low / 2, between_records.high / 2)

    def ceiling(self, epsilon: float, delta: float = 0.0) -> float:
        """Return the highest success at 2 · epsilon."""
        return self.game.ceiling(2 * epsilon, _require_zero_delta(delta))


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
    parsed_defence = parse_defence(defence, epsilon)
    rng = random_generator(random_state).spawn(1)[0]  # independent of data drawn with the same seed
    roster = Secrets(rng.random(_ROSTER_SIZE) < 1 / 2, chance=1 / 2) if data is None else _checked_roster(data)
    is_member, other_bits = roster.bits, rng.permutation(roster.bits)  # another secret with the same rate
    called_members, question_counts = _reconstruct_bits(is_member, parsed_defence, method, rng)
    members, non_members = (Proportion.from_outcomes(called_members[group]) for group in (is_member, ~is_member))
    return AttackResult(
        attack="membership_from_reconstruction",
        against=parsed_defence,
        metric="of members identified",
        # Non-members contribute to no answer: a member and a non-member differ by adding or removing one person.
        evidence=EventEvidence(members, non_members),
        details={
            "bits reconstructed correctly": float(
                (_reconstruct_bits(other_bits, parsed_defence, method, rng)[0] == other_bits).mean()
            ),
            "membership inferred correctly": float((called_members == is_member).mean()),
            "true positive rate": members.value,
            "false positive rate": non_members.value,
        },
        # People in few queries are harder to attack.
        exposure=exposure_by_rarity(
            -question_counts[is_member],
            called_members[is_member],
            labels=_row_labels(is_member),
            rarity_label="few queries about them",
        ),
    )


def _reconstruct_bits(
    bits: np.ndarray, defence: Defence, method: Method, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return a reconstruction of these bits, and the number of queries about each person."""
    subsets = draw_subsets(len(bits), "random subsets", _PER_PERSON, rng)
    answers = oracle_answers(oracle_under(defence, bits, 0.0, Fraction(0), rng), subsets)
    return guess_bits(subsets, answers, method), subsets.sum(axis=0)


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
    parsed_defence = parse_defence(defence, epsilon)
    rng = random_generator(random_state)
    study = simulate_study(_STUDY_SIZE, _ATTRIBUTE_COUNT, rng) if data is None else _checked_study(data)
    means = _publish_means(parsed_defence, study)
    scores = group_scores(study.values, means, study.rates)
    has_secret, share = study.secrets == 1, float(study.secrets.mean())
    is_right = (
        likelier_in_second_group(scores, means, study.rates, np.array([1 - share, share]) * len(has_secret))
        == has_secret
    )
    return AttackResult(
        attack="reconstruction_from_membership",
        against=parsed_defence,
        metric="of bits reconstructed",
        # Another secret moves a person from one group to the other: a removal and an addition.
        evidence=SubstitutionEvidence(
            BitEvidence(
                Proportion.from_outcomes(is_right[has_secret]),
                Proportion.from_outcomes(is_right[~has_secret]),
                max(share, 1 - share),
            )
        ),
        details=_details(study, scores, group_scores(study.non_members, means, study.rates)),
        # People with improbable attributes count as rare.
        exposure=exposure_by_rarity(
            _surprisal(study),
            is_right,
            labels=_row_labels(np.ones(len(is_right), bool)),
            rarity_label="unusual attributes",
        ),
    )


def group_scores(people: np.ndarray, means: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the membership score of each person in each group, in standard deviations of a non-member's score.

    It uses the published means, the public rates, and the attributes of the people under test.

    >>> people, rates = np.array([[1, 1, 1], [0, 0, 0]]), np.full(3, 1 / 2)
    >>> group_scores(people, np.array([[1.0, 1.0, 1.0]]), rates).round(2).tolist()
    [[1.73, -1.73]]
    """
    scores: np.ndarray = (means - rates) @ (people - rates).T / _score_deviations(means, rates)[:, None]
    return scores


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


def _publish_means(defence: Defence, study: Study) -> np.ndarray:
    if defence.user_function is not None:
        returned = defence.user_function(study.values.copy(), study.secrets.copy())
        return finite_array(returned, (2, study.values.shape[1]), "the defence (means without and with the secret)")
    if defence.kind == CURATOR:
        return private_means(study.values, study.secrets, defence.curator_epsilon)
    means = means_by_secret(study.values, study.secrets)
    return means.round(2) if defence.kind == EASY else means


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


def _row_labels(is_chosen: np.ndarray) -> list[str]:
    return [f"row {row}" for row in np.flatnonzero(is_chosen)]


def _checked_roster(data: Any) -> Secrets:
    if not isinstance(data, Secrets):
        raise TypeError(f"data must be Secrets(bits), one bit per person on the roster, not {type(data).__name__}")
    if data.bits.all() or not data.bits.any():
        raise ValueError("data must have both members (1) and non-members (0)")
    return data


def _checked_study(data: Any) -> Study:
    if not isinstance(data, Study):
        raise TypeError(f"data must be Study(values, secrets, non_members, rates), not {type(data).__name__}")
    return data


def _require_zero_delta(delta: float) -> float:
    if delta:
        raise ValueError("delta must be 0: for substitution its group-privacy bound depends on epsilon")
    return 0.0
