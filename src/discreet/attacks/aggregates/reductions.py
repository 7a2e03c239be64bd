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
    """Who took part: attributes of zeros and ones that others may know, and a secret bit; and equal strangers.

    `rates` are how frequent the attributes are among all people, which is public.

    >>> made = simulate_study(people=20, attributes=50, rng=np.random.default_rng(0))
    >>> made.values.shape, made.non_members.shape, made.secrets.shape
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
            raise ValueError("values must have a row, and secrets an entry, for each person of the study")
        if non_members.shape[1:] != values.shape[1:] or rates.shape != values.shape[1:] or not len(non_members):
            raise ValueError("strangers and rates must be of the same attributes as values")
        if not ((rates > 0) & (rates < 1)).all() or len(np.unique(secrets)) < 2:
            raise ValueError("rates must lie between 0 and 1, and both secrets must occur")
        checked = {"values": values, "secrets": secrets.astype(np.int64), "non_members": non_members, "rates": rates}
        for name, array in checked.items():
            object.__setattr__(self, name, array)


def simulate_study(people: int, attributes: int, rng: np.random.Generator) -> Study:
    """Draw a study of people whose attributes are independent, with fair secrets, and four times as many strangers."""
    rates = rng.uniform(0.1, 0.9, as_integer(attributes, "attributes", 1))
    values, non_members = (
        rng.random((count, attributes)) < rates for count in (as_integer(people, "people", 2), 4 * people)
    )
    return Study(values, rng.integers(0, 2, people), non_members, rates)


def means_by_secret(values: np.ndarray, secrets: np.ndarray) -> np.ndarray:
    """Return the exact means: a row for those without the secret, and a row for those with it.

    >>> means_by_secret(np.array([[1, 0], [1, 1], [0, 0]]), np.array([0, 0, 1])).tolist()
    [[1.0, 0.5], [0.0, 0.0]]
    """
    return np.stack([values[secrets == secret].mean(axis=0) for secret in (0, 1)])


def private_means(values: np.ndarray, secrets: np.ndarray, epsilon: Fraction) -> np.ndarray:
    """Ask the curator how many people of either kind have each attribute, and how many there are."""
    people, attributes = values.shape
    everybody = np.concatenate([values, np.ones((people, 1), bool)], axis=1)  # one more attribute, which counts people
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
_MEMBER_THRESHOLD = 1.645  # how many standard deviations above a stranger's a score must be: strangers get there in 5 %


@dataclass(frozen=True)
class SubstitutionEvidence:
    """Evidence from a game that changes a record: two steps for a promise about people who are added or removed.

    >>> bits = BitEvidence(Proportion(450, 500), Proportion(450, 500))
    >>> SubstitutionEvidence(bits).ceiling(1) == bits.ceiling(2), SubstitutionEvidence(bits).implied().low == bits.implied().low / 2
    (True, True)
    """

    game: AttackEvidence

    @property
    def success(self) -> float:
        """What the attack reached."""
        return self.game.success

    @property
    def baseline(self) -> float:
        """What it would have reached without the person's data."""
        return self.game.baseline

    @property
    def baseline_name(self) -> str:
        """Whose success the baseline is."""
        return self.game.baseline_name

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ends between which the attack's true success lies."""
        return self.game.interval(confidence)

    def implied(self, delta: float = 0.0, confidence: float = 0.95) -> ImpliedEpsilon:
        """Return half of the epsilon between the two records."""
        between_records = self.game.implied(_require_zero_delta(delta), confidence)
        return ImpliedEpsilon(between_records.estimate / 2, between_records.low / 2, between_records.high / 2)

    def ceiling(self, epsilon: float, delta: float = 0.0) -> float:
        """Return the highest success at twice epsilon."""
        return self.game.ceiling(2 * epsilon, _require_zero_delta(delta))


def membership_from_reconstruction(
    data: Secrets | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    method: Method = "one at a time",
) -> AttackResult:
    """Tell who is in the data by a reconstruction whose secret bit is: they are in it.

    `data` are `Secrets`: a public roster, and for each person on it whether they are in the data; 256 people and fair
    coins unless given. An oracle says how many of a random subset of the roster are in the data; the defences are those
    of `reconstruct`. Its errors are this attack's: a bit that is wrongly set is a stranger taken for a member.

    >>> found = membership_from_reconstruction(random_state=0)
    >>> found.success > 0.9, found.baseline < 0.1
    (True, True)
    """
    parsed_defence = parse_defence(defence, epsilon)
    rng = random_generator(random_state).spawn(1)[0]  # data drawn from the same number must not know the subsets
    roster = Secrets(rng.random(_ROSTER_SIZE) < 1 / 2, chance=1 / 2) if data is None else _checked_roster(data)
    is_member, other_bits = roster.bits, rng.permutation(roster.bits)  # and a secret of people as many of whom have it
    called_members, question_counts = _reconstruct_bits(is_member, parsed_defence, method, rng)
    members, non_members = (Proportion.from_outcomes(called_members[group]) for group in (is_member, ~is_member))
    return AttackResult(
        attack="membership_from_reconstruction",
        against=parsed_defence,
        metric="of the members were found",
        # Whoever is not in the data is in no answer: a member and a stranger differ by a removal.
        evidence=EventEvidence(members, non_members),
        details={
            "bits right in the reconstruction": float(
                (_reconstruct_bits(other_bits, parsed_defence, method, rng)[0] == other_bits).mean()
            ),
            "membership told right": float((called_members == is_member).mean()),
            "members found": members.value,
            "strangers taken for members": non_members.value,
        },
        # The fewer questions are about somebody, the less is known of them.
        exposure=exposure_by_rarity(
            -question_counts[is_member],
            called_members[is_member],
            labels=_row_labels(is_member),
            rarity_label="how few questions are about them",
        ),
    )


def _reconstruct_bits(
    bits: np.ndarray, defence: Defence, method: Method, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return a reconstruction of these bits, and how many questions were about each person."""
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
    """Rebuild a secret bit of people in a study by asking of two groups, with the bit and without it: are they in it?

    `data` is a `Study`, 200 people with 2,000 attributes unless given. Published are the exact means of the attributes
    in both groups ("nothing"); the means in whole percents ("easy"); means from private counts, which cost epsilon
    together ("curator"); or what a function of yours makes of the arrays of attributes and of secrets: two rows of
    means. Whoever both tests leave out gets the bit of the group that they fit better; how large the groups are is
    taken for known, so that a poor fit leaves the larger one.

    >>> found = reconstruction_from_membership(random_state=0)
    >>> found.success > 0.95, found.details["bit is_right"] > 0.9
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
        metric="of the bits were rebuilt",
        # Another secret moves a person from one group to the other: they are removed here and added there.
        evidence=SubstitutionEvidence(
            BitEvidence(
                Proportion.from_outcomes(is_right[has_secret]),
                Proportion.from_outcomes(is_right[~has_secret]),
                max(share, 1 - share),
            )
        ),
        details=_details(study, scores, group_scores(study.non_members, means, study.rates)),
        # How unlikely somebody's attributes are, taken together.
        exposure=exposure_by_rarity(
            _surprisal(study),
            is_right,
            labels=_row_labels(np.ones(len(is_right), bool)),
            rarity_label="unusual attributes",
        ),
    )


def group_scores(people: np.ndarray, means: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return how well each person fits each group, in standard deviations of a stranger's fit: the membership test.

    It knows the published means, the public rates, and the attributes of the people whom it tests.

    >>> people, rates = np.array([[1, 1, 1], [0, 0, 0]]), np.full(3, 1 / 2)
    >>> group_scores(people, np.array([[1.0, 1.0, 1.0]]), rates).round(2).tolist()
    [[1.73, -1.73]]
    """
    scores: np.ndarray = (means - rates) @ (people - rates).T / _score_deviations(means, rates)[:, None]
    return scores


def likelier_in_second_group(scores: np.ndarray, means: np.ndarray, rates: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Tell who is likelier in the second group than in the first, by their fits and by how large the groups are.

    >>> means, rates = np.array([[0.4, 0.6], [0.6, 0.4]]), np.full(2, 1 / 2)
    >>> likelier_in_second_group(np.array([[3.0, -3.0], [-3.0, 3.0]]), means, rates, np.array([5, 5])).tolist()
    [False, True]
    """
    # A member moves the own group's means by a part of the size, so that they fit by so many deviations more.
    member_shifts = (rates * (1 - rates)).sum() / (sizes * _score_deviations(means, rates))
    log_posteriors = member_shifts[:, None] * scores - member_shifts[:, None] ** 2 / 2 + np.log(sizes)[:, None]
    return np.asarray(log_posteriors[1] > log_posteriors[0])


def _score_deviations(means: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the standard deviation of a stranger's fit to each group."""
    return np.asarray(np.maximum(np.sqrt((rates * (1 - rates) * (means - rates) ** 2).sum(axis=1)), 1e-300))


def _publish_means(defence: Defence, study: Study) -> np.ndarray:
    if defence.user_function is not None:
        returned = defence.user_function(study.values.copy(), study.secrets.copy())
        return finite_array(returned, (2, study.values.shape[1]), "the defence (means without the secret, and with it)")
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
        "members found": float((own > _MEMBER_THRESHOLD).mean()),
        "strangers taken for members": float((non_member_scores > _MEMBER_THRESHOLD).mean()),
        "bit right": float(((own > _MEMBER_THRESHOLD) & (own > other)).mean()),
        "bit wrong": float(((other > _MEMBER_THRESHOLD) & (other > own)).mean()),
        "both tests say out": float(((own <= _MEMBER_THRESHOLD) & (other <= _MEMBER_THRESHOLD)).mean()),
    }


def _surprisal(study: Study) -> np.ndarray:
    chances = np.where(study.values, study.rates, 1 - study.rates)
    return np.asarray(-np.log(chances).sum(axis=1))


def _row_labels(is_chosen: np.ndarray) -> list[str]:
    return [f"row {row}" for row in np.flatnonzero(is_chosen)]


def _checked_roster(data: Any) -> Secrets:
    if not isinstance(data, Secrets):
        raise TypeError(f"data must be Secrets(bits), one for each person on the roster, not {type(data).__name__}")
    if data.bits.all() or not data.bits.any():
        raise ValueError("data: there must be people who are in the data (1), and equal ones who are not (0)")
    return data


def _checked_study(data: Any) -> Study:
    if not isinstance(data, Study):
        raise TypeError(f"data must be a Study(values, secrets, strangers, rates), not {type(data).__name__}")
    return data


def _require_zero_delta(delta: float) -> float:
    if delta:
        raise ValueError("delta: what it becomes for two steps depends on epsilon; play a game of one step instead")
    return 0.0
