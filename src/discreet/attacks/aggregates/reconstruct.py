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
from discreet.attacks.aggregates.noise_drawing import draw_noise
from discreet.attacks.aggregates.solving import Method, estimates, expected_share
from discreet.attacks.defences import CURATOR, EASY, NOTHING, Defence, Shield, shield
from discreet.attacks.evidence import Guesses
from discreet.attacks.listing import Attack
from discreet.attacks.rarity import exposure
from discreet.attacks.result import AttackResult
from discreet.kernel.exact import Number, fraction, whole

Questions = Literal["random subsets", "one by one"]
_PEOPLE = 512
_FILE = "pums_ca_1000.parquet"


@dataclass(frozen=True)
class Secrets:
    """A secret bit for each person, which an oracle adds up over subsets of people.

    `chance` is how likely a bit is set, if they were drawn; otherwise the share of set bits is taken for known.

    >>> Secrets([1, 0, 0, 1, 1]).prior
    0.6
    """

    bits: np.ndarray
    chance: float | None = None

    def __post_init__(self) -> None:
        bits = np.asarray(self.bits)
        if bits.ndim != 1 or len(bits) < 2 or not np.isin(bits, (0, 1)).all():
            raise ValueError("bits must be a list of zeros and ones, one for each person, of at least two people")
        if self.chance is not None and not 0 < self.chance < 1:
            raise ValueError(f"chance must lie between 0 and 1, not {self.chance}")
        object.__setattr__(self, "bits", bits.astype(bool))

    @classmethod
    def drawn(cls, people: int, random_state: int | None = None) -> "Secrets":
        """Draw a fair coin for each person.

        >>> len(Secrets.drawn(64, random_state=0).bits)
        64
        """
        return cls(np.random.default_rng(random_state).random(whole(people, "people", 2)) < 1 / 2, chance=1 / 2)

    @property
    def prior(self) -> float:
        """How likely the more frequent value is: what guessing it for everybody reaches."""
        share = float(self.bits.mean()) if self.chance is None else self.chance
        return max(share, 1 - share)


def reconstruct(  # noqa: PLR0913 - the questions, the answers and the solver, each by name
    data: Secrets | Blocks | None = None,
    *,
    defence: Defence = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    noise: float = 0.0,
    delta: Number = 0,
    per_person: int = 4,
    questions: Questions = "random subsets",
    method: Method = "least squares",
) -> AttackResult:
    """Rebuild everybody's secret bit from the number of set bits in random subsets, `per_person` for each person.

    `data` are `Secrets`, 512 fair coins unless given; `Blocks` of a census are rebuilt from tables, see `census`. The
    oracle answers exactly, or with an error of `noise`/sqrt(n) in every share ("nothing"); rounds to tens ("easy"); is
    the curator, which answers all questions at epsilon, with Gaussian noise if there is a `delta` ("curator"); or is
    what a function of yours makes of the array of bits: a function from the matrix of subsets to the answers.
    Asked "one by one", each question is about one person.

    >>> reconstruct(random_state=0).success
    1.0
    >>> reconstruct(noise=1 / 4, random_state=0).success > 0.9
    True
    """
    if isinstance(data, Blocks):
        if (noise, delta, per_person, questions, method) != (0, 0, 4, "random subsets", "least squares"):
            raise TypeError("noise, delta, per_person, questions and method are for Secrets: leave them out for Blocks")
        return census(data, defence=defence, epsilon=epsilon, random_state=random_state)
    protected, allowed = shield(defence, epsilon), _checked_delta(delta, epsilon)
    rng = np.random.default_rng(random_state).spawn(1)[0]  # data drawn from the same number must not know the subsets
    secrets = Secrets(rng.random(_PEOPLE) < 1 / 2, chance=1 / 2) if data is None else checked(data)
    subsets = asked(len(secrets.bits), questions, per_person, rng)
    answers = answered(oracle_of(protected, secrets.bits, _checked_noise(noise, protected), allowed, rng), subsets)
    return _result(protected, _Game(secrets, subsets, answers), guessed(subsets, answers, method), float(allowed))


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
        evidence=Guesses(int(right.sum()), len(right), prior=min(game.secrets.prior, 1 - 1e-9)),
        details=_details(protected, game.subsets, spread),
        # The fewer questions are about somebody, the less is known of them.
        exposure=exposure(
            -game.subsets.sum(axis=0),
            right,
            labels=[f"person {number}" for number in range(len(right))],
            by="how few questions are about them",
        ),
        delta=delta,
        draw=partial(draw_noise, shape=game.subsets.shape, spread=spread, share=right.mean()),
    )


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
    answers = np.asarray(oracle(subsets), float)
    if answers.shape != (len(subsets),) or not np.isfinite(answers).all():
        raise ValueError(f"the oracle must return one number for each of the {len(subsets)} rows of the matrix")
    return answers


def guessed(subsets: np.ndarray, answers: np.ndarray, method: Method = "least squares") -> np.ndarray:
    """Return the attack's guess of each bit. It knows who is in which question, and the answers, and nothing else.

    >>> guessed(np.eye(3, dtype=bool), np.array([0.9, -3.0, 1.0])).tolist()
    [True, False, True]
    """
    return np.asarray(estimates(subsets, answers, method) > 1 / 2)


def load(folder: Path) -> Secrets:
    """Read who of 1,000 Californians is married (a sample of the American Community Survey)."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only for real data

    path = Path(folder) / _FILE
    if not path.exists():
        raise FileNotFoundError(f"{_FILE} is not in {folder}: name the folder that has it")
    return Secrets(pq.read_table(path, columns=["married"])["married"].to_numpy())


def checked(data: Any) -> Secrets:
    """Refuse other data than secrets."""
    if not isinstance(data, Secrets):
        raise TypeError(f"data must be Secrets(bits) or Blocks, not {type(data).__name__}")
    return data


def _checked_delta(delta: Number, epsilon: Number | None) -> Fraction:
    exact = fraction(delta, "delta")
    if not 0 <= exact < 1:
        raise ValueError(f"delta must be at least 0 and below 1, not {delta}")
    if exact and epsilon is None:
        raise TypeError("delta goes with an epsilon: leave it out, or promise an epsilon, too")
    return exact


def _checked_noise(noise: float, protected: Shield) -> float:
    if not 0 <= noise < float("inf"):
        raise ValueError(f"noise must be 0 or more, in units of 1/sqrt(n), not {noise}")
    if noise and protected.word != NOTHING:
        raise TypeError('noise is for defence="nothing": the other defences have errors of their own')
    return float(noise)


def oracle_of(
    protected: Shield, bits: np.ndarray, noise: float, delta: Fraction, rng: np.random.Generator
) -> oracles.Oracle:
    """Return who answers questions about these bits under a defence."""
    if protected.make is not None:
        made = protected.make(bits.copy())
        if not callable(made):
            raise TypeError("your defence must return an oracle: a function from the matrix of subsets to the answers")
        oracle: Callable[[np.ndarray], Any] = made
        return oracle
    if protected.word == CURATOR:
        return oracles.curated(bits, protected.price, delta)
    if protected.word == EASY:
        return oracles.rounded(bits)
    return oracles.blurred(bits, noise, rng) if noise else oracles.exact(bits)


def _details(protected: Shield, subsets: np.ndarray, spread: float) -> dict[str, Any]:
    questions, people = subsets.shape
    said = {
        "people": people,
        "questions": questions,
        "error of an answer, people": spread,
        "error of a share, in units of 1/sqrt(n)": float(spread / np.sqrt(people)),
    }
    if questions > people:
        said["least squares gets, in theory"] = expected_share(people, questions, spread)
    if protected.word == CURATOR:
        said["asked"] = "in SQL" if oracles.in_sql(subsets) else "of the kernel, as one vector"
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
