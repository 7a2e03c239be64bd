"""Reconstruction: everybody's secret bit from sums over enough subsets, each of which looks harmless."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from discreet.attacks.aggregates import oracles
from discreet.attacks.aggregates.blocks import Blocks
from discreet.attacks.aggregates.census import census
from discreet.attacks.aggregates.deciding import guessed
from discreet.attacks.aggregates.fields import zeros_and_ones
from discreet.attacks.aggregates.noise_drawing import draw_noise
from discreet.attacks.aggregates.solving import Method, expected_share
from discreet.attacks.checking import file_in, generator, numbers
from discreet.attacks.defences import CURATOR, EASY, NOTHING, Defence, Shield, delta_of, shield
from discreet.attacks.evidence import Bits, Guesses
from discreet.attacks.implied import Evidence
from discreet.attacks.listing import Attack
from discreet.attacks.rarity import exposure
from discreet.attacks.result import AttackResult
from discreet.audit.counting import Share
from discreet.kernel.exact import Number, not_negative, share, whole

Questions = Literal["random subsets", "one by one"]
_PEOPLE = 512
_FILE = "pums_ca_1000.parquet"


@dataclass(frozen=True)
class Secrets:
    """A secret bit for each person, which an oracle adds up over subsets of people.

    `chance` is how likely a bit is set, if they were drawn; otherwise the share of set bits is taken for known.

    >>> Secrets([1, 0, 0, 0, 0]).prior, Secrets([1, 0, 0, 0, 0]).likely
    (0.8, 0.2)
    """

    bits: np.ndarray
    chance: float | None = None

    def __post_init__(self) -> None:
        bits = zeros_and_ones(self.bits, "bits")
        if bits.ndim != 1 or len(bits) < 2:
            raise ValueError("bits must be a list of zeros and ones, one for each person, of at least two people")
        object.__setattr__(self, "bits", bits)
        if self.chance is not None:
            object.__setattr__(self, "chance", float(share(self.chance, "chance")))

    @classmethod
    def drawn(cls, people: int, random_state: int | None = None) -> "Secrets":
        """Draw a fair coin for each person.

        >>> len(Secrets.drawn(64, random_state=0).bits)
        64
        """
        return cls(generator(random_state).random(whole(people, "people", 2)) < 1 / 2, chance=1 / 2)

    @property
    def likely(self) -> float:
        """How likely a bit is set, as everybody knows."""
        return float(self.bits.mean()) if self.chance is None else self.chance

    @property
    def prior(self) -> float:
        """How likely the more frequent value is: what guessing it for everybody reaches."""
        return max(self.likely, 1 - self.likely)


def reconstruct(  # noqa: PLR0913 - the questions, the answers and the solver, each by name
    data: Secrets | Blocks | None = None,
    *,
    defence: Defence = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    noise: float = 0.0,
    delta: Number | None = None,
    per_person: int = 4,
    questions: Questions = "random subsets",
    method: Method = "least squares",
) -> AttackResult:
    """Rebuild everybody's secret bit from the number of set bits in random subsets, `per_person` for each person.

    `data` are `Secrets`, 512 fair coins unless given; `Blocks` of a census are rebuilt from tables, see `census`. The
    oracle answers exactly, or with an error of `noise`/sqrt(n) in every share ("nothing"); rounds to tens ("easy"); is
    the curator, which answers all questions at epsilon, with Gaussian noise if there is a `delta` ("curator"); or is
    what a function of yours makes of the array of bits: a function from the matrix of subsets to the answers.
    Asked "one by one", each question is about one person. How many bits are set, about, is taken for known: the more
    the answers stray, the more the guesses lean to the more frequent value.

    >>> reconstruct(random_state=0).success
    1.0
    >>> reconstruct(noise=1 / 4, random_state=0).success > 0.9
    True
    """
    if isinstance(data, Blocks):
        if (noise, delta, per_person, questions, method) != (0, None, 4, "random subsets", "least squares"):
            raise TypeError("noise, delta, per_person, questions and method are for Secrets: leave them out for Blocks")
        return census(data, defence=defence, epsilon=epsilon, random_state=random_state)
    protected = shield(defence, epsilon)
    allowed = delta_of(protected, delta)
    rng = generator(random_state).spawn(1)[0]  # data drawn from the same number must not know the subsets
    secrets = Secrets(rng.random(_PEOPLE) < 1 / 2, chance=1 / 2) if data is None else checked(data)
    subsets = asked(len(secrets.bits), questions, per_person, rng)
    answers = answered(oracle_of(protected, secrets.bits, _checked_noise(noise, protected), allowed, rng), subsets)
    guesses = guessed(subsets, answers, method, secrets.likely)
    return _result(protected, _Game(secrets, subsets, answers), guesses, float(allowed))


@dataclass(frozen=True)
class _Game:
    secrets: Secrets
    subsets: np.ndarray
    answers: np.ndarray

    def spread(self) -> float:
        """Return how far the answers are from the truth, as the root of the mean square."""
        errors = self.answers - oracles.exact(self.secrets.bits)(self.subsets)
        return float(np.sqrt(np.mean(errors**2)))


def _result(protected: Shield, game: _Game, guesses: np.ndarray, delta: float) -> AttackResult:
    right, spread = guesses == game.secrets.bits, game.spread()
    return AttackResult(
        attack="reconstruct",
        shield=protected,
        metric="of the bits were rebuilt",
        # The promise is for removal, and here a bit is replaced. But somebody whose bit is not set is in no answer,
        # as if removed; so epsilon bounds this game, too. One answer's noise enters the guesses of all who are in it,
        # and no two guesses share much of it: the interval takes them as independent.
        evidence=_evidence(game.secrets, right),
        details=_details(protected, game, spread),
        # The fewer questions are about somebody, the less is known of them.
        exposure=exposure(
            -game.subsets.sum(axis=0),
            right,
            labels=[f"person {number}" for number in range(len(right))],
            by="how few questions are about them",
        ),
        delta=delta,
        draw=partial(
            draw_noise, shape=game.subsets.shape, spread=spread, share=right.mean(), chance=game.secrets.likely
        ),
    )


def _evidence(secrets: Secrets, right: np.ndarray) -> Evidence:
    if secrets.bits.all() or not secrets.bits.any():  # nobody's bit differs, so nothing can be compared
        return Guesses(int(right.sum()), len(right), prior=min(secrets.prior, 1 - 1e-9))
    return Bits(Share.of(right[secrets.bits]), Share.of(right[~secrets.bits]), secrets.prior)


def asked(people: int, questions: Questions, per_person: int, rng: np.random.Generator) -> np.ndarray:
    """Return who is in which question: a row for each question, a column for each person.

    >>> asked(2, "one by one", 4, np.random.default_rng(0)).tolist()
    [[True, False], [False, True]]
    """
    if questions == "one by one":
        return np.eye(people, dtype=bool)
    if questions != "random subsets":
        raise ValueError(f'questions must be "random subsets" or "one by one", not {questions!r}')
    shape = (whole(per_person, "per_person", 1) * people, people)
    return rng.integers(0, 2, shape, dtype=np.uint8).astype(bool)


def answered(oracle: oracles.Oracle, subsets: np.ndarray) -> np.ndarray:
    """Return an oracle's answers, one number for each question."""
    return numbers(oracle(subsets), (len(subsets),), "the defence's oracle")


def load(folder: Path) -> Secrets:
    """Read who of 1,000 Californians is married (a sample of the American Community Survey)."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only for real data

    return Secrets(pq.read_table(file_in(folder, _FILE), columns=["married"])["married"].to_numpy())


def checked(data: Any) -> Secrets:
    """Refuse other data than secrets."""
    if not isinstance(data, Secrets):
        raise TypeError(f"data must be Secrets(bits) or Blocks, not {type(data).__name__}")
    return data


def _checked_noise(noise: Any, protected: Shield) -> float:
    found = float(not_negative(noise, "noise, in units of 1/sqrt(n),"))
    if found and protected.word != NOTHING:
        raise TypeError('noise is for defence="nothing": the other defences have errors of their own')
    return found


def oracle_of(
    protected: Shield, bits: np.ndarray, noise: float, delta: Fraction, rng: np.random.Generator
) -> oracles.Oracle:
    """Return who answers questions about these bits under a defence."""
    if protected.make is not None:
        made = protected.make(bits.copy())
        if not callable(made) or isinstance(made, type):
            raise TypeError("your defence must return an oracle: a function from the matrix of subsets to the answers")
        oracle: Callable[[np.ndarray], Any] = made
        return oracle
    if protected.word == CURATOR:
        return oracles.curated(bits, protected.price, delta)
    if protected.word == EASY:
        return oracles.rounded(bits)
    return oracles.blurred(bits, noise, rng) if noise else oracles.exact(bits)


def _details(protected: Shield, game: _Game, spread: float) -> dict[str, Any]:
    questions, people = game.subsets.shape
    said = {
        "people": people,
        "questions": questions,
        "error of an answer, people": spread,
        "error of a share, in units of 1/sqrt(n)": float(spread / np.sqrt(people)),
    }
    if questions > people:
        said["least squares gets, in theory"] = expected_share(people, questions, spread, game.secrets.likely)
    if protected.word == CURATOR:
        said["asked"] = "in SQL" if oracles.in_sql(game.subsets) else "of the kernel, as one vector"
    return said


ATTACK = Attack(
    run=reconstruct,
    topic="reconstruction",
    says="Rebuilds everybody's secret bit from sums over random subsets of people.",
    nothing="the exact sums",
    easy="the sums, rounded to tens",
    curator="the sums as private counts: all of them together cost epsilon",
    built_in="512 people with a secret bit each, drawn by a fair coin",
    files=(_FILE,),
    load=load,
)
