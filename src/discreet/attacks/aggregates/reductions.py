"""Two reductions: whoever can reconstruct can tell members, and whoever can tell members can reconstruct."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.attacks.aggregates.deciding import guessed
from discreet.attacks.aggregates.reconstruct import Secrets, answered, asked, oracle_of
from discreet.attacks.aggregates.solving import Method
from discreet.attacks.aggregates.study import Study, drawn_study, means_by_secret, private_means
from discreet.attacks.checking import generator, numbers
from discreet.attacks.defences import CURATOR, EASY, Defence, Shield, shield
from discreet.attacks.evidence import Bits, Found
from discreet.attacks.implied import Evidence, Implied
from discreet.attacks.rarity import exposure
from discreet.attacks.result import AttackResult
from discreet.audit.counting import Share
from discreet.kernel.exact import Number

_ROSTER, _PER_PERSON = 256, 8
_PEOPLE, _ATTRIBUTES = 200, 2000
_SURE = 1.645  # how many standard deviations above a stranger's a score must be: strangers get there in 5 %


@dataclass(frozen=True)
class Replaced:
    """Evidence from a game that changes a record: two steps for a promise about people who are added or removed.

    >>> bits = Bits(Share(450, 500), Share(450, 500))
    >>> Replaced(bits).ceiling(1) == bits.ceiling(2), Replaced(bits).implied().low == bits.implied().low / 2
    (True, True)
    """

    game: Evidence

    @property
    def success(self) -> float:
        """What the attack reached."""
        return self.game.success

    @property
    def baseline(self) -> float:
        """What it would have reached without the person's data."""
        return self.game.baseline

    @property
    def beside(self) -> str:
        """Whose success the baseline is."""
        return self.game.beside

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ends between which the attack's true success lies."""
        return self.game.interval(confidence)

    def implied(self, delta: float = 0.0, confidence: float = 0.95) -> Implied:
        """Return half of the epsilon between the two records."""
        found = self.game.implied(_without(delta), confidence)
        return Implied(found.seen / 2, found.low / 2, found.high / 2)

    def ceiling(self, epsilon: float, delta: float = 0.0) -> float:
        """Return the highest success at twice epsilon."""
        return self.game.ceiling(2 * epsilon, _without(delta))


def membership_from_reconstruction(
    data: Secrets | None = None,
    *,
    defence: Defence = "nothing",
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
    protected = shield(defence, epsilon)
    rng = generator(random_state).spawn(1)[0]  # data drawn from the same number must not know the subsets
    roster = Secrets(rng.random(_ROSTER) < 1 / 2, chance=1 / 2) if data is None else _checked_roster(data)
    inside, other = roster.bits, rng.permutation(roster.bits)  # and a secret of people as many of whom have it
    found, times = _rebuilt(inside, protected, method, rng)
    members, strangers = (Share.of(found[group]) for group in (inside, ~inside))
    return AttackResult(
        attack="membership_from_reconstruction",
        shield=protected,
        metric="of the members were found",
        # Whoever is not in the data is in no answer: a member and a stranger differ by a removal.
        evidence=Found(members, strangers),
        details={
            "bits right in the reconstruction": float((_rebuilt(other, protected, method, rng)[0] == other).mean()),
            "membership told right": float((found == inside).mean()),
            "members found": members.value,
            "strangers taken for members": strangers.value,
        },
        # The fewer questions are about somebody, the less is known of them.
        exposure=exposure(-times[inside], found[inside], labels=_rows(inside), by="how few questions are about them"),
    )


def _rebuilt(
    bits: np.ndarray, protected: Shield, method: Method, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return a reconstruction of these bits, and how many questions were about each person."""
    subsets = asked(len(bits), "random subsets", _PER_PERSON, rng)
    answers = answered(oracle_of(protected, bits, 0.0, Fraction(0), rng), subsets)
    return guessed(subsets, answers, method), subsets.sum(axis=0)


def reconstruction_from_membership(
    data: Study | None = None,
    *,
    defence: Defence = "nothing",
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
    >>> found.success > 0.95, found.details["bit right"] > 0.9
    (True, True)
    """
    protected = shield(defence, epsilon)
    rng = generator(random_state)
    study = drawn_study(_PEOPLE, _ATTRIBUTES, rng) if data is None else _checked_study(data)
    means = _published(protected, study)
    scores = fitting(study.values, means, study.rates)
    has_it, share = study.secrets == 1, float(study.secrets.mean())
    right = likelier_with(scores, means, study.rates, np.array([1 - share, share]) * len(has_it)) == has_it
    return AttackResult(
        attack="reconstruction_from_membership",
        shield=protected,
        metric="of the bits were rebuilt",
        # Another secret moves a person from one group to the other: they are removed here and added there.
        evidence=Replaced(Bits(Share.of(right[has_it]), Share.of(right[~has_it]), max(share, 1 - share))),
        details=_details(study, scores, fitting(study.strangers, means, study.rates)),
        # How unlikely somebody's attributes are, taken together.
        exposure=exposure(_surprise(study), right, labels=_rows(np.ones(len(right), bool)), by="unusual attributes"),
    )


def fitting(people: np.ndarray, means: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return how well each person fits each group, in standard deviations of a stranger's fit: the membership test.

    It knows the published means, the public rates, and the attributes of the people whom it tests.

    >>> people, rates = np.array([[1, 1, 1], [0, 0, 0]]), np.full(3, 1 / 2)
    >>> fitting(people, np.array([[1.0, 1.0, 1.0]]), rates).round(2).tolist()
    [[1.73, -1.73]]
    """
    found: np.ndarray = (means - rates) @ (people - rates).T / _strays(means, rates)[:, None]
    return found


def likelier_with(scores: np.ndarray, means: np.ndarray, rates: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Tell who is likelier in the second group than in the first, by their fits and by how large the groups are.

    >>> means, rates = np.array([[0.4, 0.6], [0.6, 0.4]]), np.full(2, 1 / 2)
    >>> likelier_with(np.array([[3.0, -3.0], [-3.0, 3.0]]), means, rates, np.array([5, 5])).tolist()
    [False, True]
    """
    # A member moves the own group's means by a part of the size, so that they fit by so many deviations more.
    more = (rates * (1 - rates)).sum() / (sizes * _strays(means, rates))
    said = more[:, None] * scores - more[:, None] ** 2 / 2 + np.log(sizes)[:, None]
    return np.asarray(said[1] > said[0])


def _strays(means: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the standard deviation of a stranger's fit to each group."""
    return np.asarray(np.maximum(np.sqrt((rates * (1 - rates) * (means - rates) ** 2).sum(axis=1)), 1e-300))


def _published(protected: Shield, study: Study) -> np.ndarray:
    if protected.make is not None:
        made = protected.make(study.values.copy(), study.secrets.copy())
        return numbers(made, (2, study.values.shape[1]), "the defence (means without the secret, and with it)")
    if protected.word == CURATOR:
        return private_means(study.values, study.secrets, protected.price)
    means = means_by_secret(study.values, study.secrets)
    return means.round(2) if protected.word == EASY else means


def _details(study: Study, scores: np.ndarray, outside: np.ndarray) -> dict[str, Any]:
    own, other = (
        scores[study.secrets, np.arange(len(study.secrets))],
        scores[1 - study.secrets, np.arange(scores.shape[1])],
    )
    return {
        "members found": float((own > _SURE).mean()),
        "strangers taken for members": float((outside > _SURE).mean()),
        "bit right": float(((own > _SURE) & (own > other)).mean()),
        "bit wrong": float(((other > _SURE) & (other > own)).mean()),
        "both tests say out": float(((own <= _SURE) & (other <= _SURE)).mean()),
    }


def _surprise(study: Study) -> np.ndarray:
    chances = np.where(study.values, study.rates, 1 - study.rates)
    return np.asarray(-np.log(chances).sum(axis=1))


def _rows(which: np.ndarray) -> list[str]:
    return [f"row {row}" for row in np.flatnonzero(which)]


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


def _without(delta: float) -> float:
    if delta:
        raise ValueError("delta: what it becomes for two steps depends on epsilon; play a game of one step instead")
    return 0.0
