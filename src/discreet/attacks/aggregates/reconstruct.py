"""Reconstruction: everybody's secret bit from sums over enough subsets, each of which looks harmless."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from discreet.attacks.aggregates import subset_oracles
from discreet.attacks.aggregates.blocks import Blocks
from discreet.attacks.aggregates.census import census
from discreet.attacks.aggregates.linear_reconstruction import Method, expected_accuracy, guess_bits
from discreet.attacks.aggregates.plots import draw_accuracy_by_error
from discreet.attacks.defences import CURATOR, EASY, NOTHING, Defence, DefenceChoice, parse_defence, promised_delta
from discreet.attacks.evidence import AttackEvidence, BitEvidence, GuessEvidence
from discreet.attacks.registry import Attack
from discreet.attacks.result import AttackResult, exposure_by_rarity
from discreet.attacks.validation import boolean_array, data_file, finite_array, random_generator
from discreet.audit.binomial import Proportion
from discreet.kernel.numbers import Number, as_integer, as_nonnegative, as_probability

Questions = Literal["random subsets", "one by one"]
_PERSON_COUNT = 512
_FILE = "pums_ca_1000.parquet"


@dataclass(frozen=True)
class Secrets:
    """A secret bit for each person, which an oracle adds up over subsets of people.

    `bit_rate` is how likely a bit is set, if they were drawn; otherwise the share of set bits is taken for known.

    >>> Secrets([1, 0, 0, 0, 0]).prior, Secrets([1, 0, 0, 0, 0]).bit_rate
    (0.8, 0.2)
    """

    bits: np.ndarray
    chance: float | None = None

    def __post_init__(self) -> None:
        bits = boolean_array(self.bits, "bits")
        if bits.ndim != 1 or len(bits) < 2:
            raise ValueError("bits must be a list of zeros and ones, one for each person, of at least two people")
        object.__setattr__(self, "bits", bits)
        if self.chance is not None:
            object.__setattr__(self, "chance", float(as_probability(self.chance, "chance")))

    @classmethod
    def simulate(cls, people: int, random_state: int | None = None) -> "Secrets":
        """Draw a fair coin for each person.

        >>> len(Secrets.simulate(64, random_state=0).bits)
        64
        """
        return cls(random_generator(random_state).random(as_integer(people, "people", 2)) < 1 / 2, chance=1 / 2)

    @property
    def bit_rate(self) -> float:
        """How likely a bit is set, as everybody knows."""
        return float(self.bits.mean()) if self.chance is None else self.chance

    @property
    def prior(self) -> float:
        """How likely the more frequent value is: what guessing it for everybody reaches."""
        return max(self.bit_rate, 1 - self.bit_rate)


def reconstruct(  # noqa: PLR0913 - the questions, the answers and the solver, each by name
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
    parsed_defence = parse_defence(defence, epsilon)
    exact_delta = promised_delta(parsed_defence, delta)
    rng = random_generator(random_state).spawn(1)[0]  # data drawn from the same number must not know the subsets
    secrets = Secrets(rng.random(_PERSON_COUNT) < 1 / 2, chance=1 / 2) if data is None else checked_secrets(data)
    subsets = draw_subsets(len(secrets.bits), questions, per_person, rng)
    answers = oracle_answers(
        oracle_under(parsed_defence, secrets.bits, _checked_noise(noise, parsed_defence), exact_delta, rng), subsets
    )
    guesses = guess_bits(subsets, answers, method, secrets.bit_rate)
    return _result(parsed_defence, _ReconstructionGame(secrets, subsets, answers), guesses, float(exact_delta))


@dataclass(frozen=True)
class _ReconstructionGame:
    secrets: Secrets
    subsets: np.ndarray
    answers: np.ndarray

    def root_mean_square_error(self) -> float:
        """Return how far the answers are from the truth, as the root of the mean square."""
        errors = self.answers - subset_oracles.exact_sums(self.secrets.bits)(self.subsets)
        return float(np.sqrt(np.mean(errors**2)))


def _result(defence: Defence, game: _ReconstructionGame, guesses: np.ndarray, delta: float) -> AttackResult:
    is_right, answer_error = guesses == game.secrets.bits, game.root_mean_square_error()
    return AttackResult(
        attack="reconstruct",
        against=defence,
        metric="of the bits were rebuilt",
        # The promise is for removal, and here a bit is replaced. But somebody whose bit is not set is in no answer,
        # as if removed; so epsilon bounds this game, too. One answer's noise enters the guesses of all who are in it,
        # and no two guesses share much of it: the interval takes them as independent.
        evidence=_evidence(game.secrets, is_right),
        details=_details(defence, game, answer_error),
        # The fewer questions are about somebody, the less is known of them.
        exposure=exposure_by_rarity(
            -game.subsets.sum(axis=0),
            is_right,
            labels=[f"person {number}" for number in range(len(is_right))],
            rarity_label="how few questions are about them",
        ),
        delta=delta,
        draw=partial(
            draw_accuracy_by_error,
            shape=game.subsets.shape,
            answer_error=answer_error,
            accuracy=is_right.mean(),
            bit_rate=game.secrets.bit_rate,
        ),
    )


def _evidence(secrets: Secrets, is_right: np.ndarray) -> AttackEvidence:
    if secrets.bits.all() or not secrets.bits.any():  # nobody's bit differs, so nothing can be compared
        return GuessEvidence(int(is_right.sum()), len(is_right), prior=min(secrets.prior, 1 - 1e-9))
    return BitEvidence(
        Proportion.from_outcomes(is_right[secrets.bits]),
        Proportion.from_outcomes(is_right[~secrets.bits]),
        secrets.prior,
    )


def draw_subsets(people: int, questions: Questions, per_person: int, rng: np.random.Generator) -> np.ndarray:
    """Return who is in which question: a row for each question, a column for each person.

    >>> draw_subsets(2, "one rarity_label one", 4, np.random.default_rng(0)).tolist()
    [[True, False], [False, True]]
    """
    if questions == "one by one":
        return np.eye(people, dtype=bool)
    if questions != "random subsets":
        raise ValueError(f'questions must be "random subsets" or "one by one", not {questions!r}')
    shape = (as_integer(per_person, "per_person", 1) * people, people)
    return rng.integers(0, 2, shape, dtype=np.uint8).astype(bool)


def oracle_answers(oracle: subset_oracles.SubsetOracle, subsets: np.ndarray) -> np.ndarray:
    """Return an oracle's answers, one number for each question."""
    return finite_array(oracle(subsets), (len(subsets),), "the defence's oracle")


def load(folder: Path) -> Secrets:
    """Read who of 1,000 Californians is married (a sample of the American Community Survey)."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only for real data

    return Secrets(pq.read_table(data_file(folder, _FILE), columns=["married"])["married"].to_numpy())


def checked_secrets(data: Any) -> Secrets:
    """Refuse other data than secrets."""
    if not isinstance(data, Secrets):
        raise TypeError(f"data must be Secrets(bits) or Blocks, not {type(data).__name__}")
    return data


def _checked_noise(noise: Any, defence: Defence) -> float:
    level = float(as_nonnegative(noise, "noise, in units of 1/sqrt(n),"))
    if level and defence.kind != NOTHING:
        raise TypeError('noise is for defence="nothing": the other defences have errors of their own')
    return level


def oracle_under(
    defence: Defence, bits: np.ndarray, noise: float, delta: Fraction, rng: np.random.Generator
) -> subset_oracles.SubsetOracle:
    """Return who answers questions about these bits under a defence."""
    if defence.user_function is not None:
        returned = defence.user_function(bits.copy())
        if not callable(returned) or isinstance(returned, type):
            raise TypeError("your defence must return an oracle: a function from the matrix of subsets to the answers")
        oracle: Callable[[np.ndarray], Any] = returned
        return oracle
    if defence.kind == CURATOR:
        return subset_oracles.private_sums(bits, defence.curator_epsilon, delta)
    if defence.kind == EASY:
        return subset_oracles.rounded_sums(bits)
    return subset_oracles.noisy_sums(bits, noise, rng) if noise else subset_oracles.exact_sums(bits)


def _details(defence: Defence, game: _ReconstructionGame, answer_error: float) -> dict[str, Any]:
    questions, people = game.subsets.shape
    details = {
        "people": people,
        "questions": questions,
        "error of an answer, people": answer_error,
        "error of a share, in units of 1/sqrt(n)": float(answer_error / np.sqrt(people)),
    }
    if questions > people:
        details["least squares gets, in theory"] = expected_accuracy(
            people, questions, answer_error, game.secrets.bit_rate
        )
    if defence.kind == CURATOR:
        details["asked"] = "in SQL" if subset_oracles.is_asked_in_sql(game.subsets) else "of the kernel, as one vector"
    return details


ATTACK = Attack(
    run=reconstruct,
    docs_page="reconstruction",
    summary="Rebuilds everybody's secret bit from sums over random subsets of people.",
    without_defence="the exact sums",
    with_easy_fix="the sums, rounded to tens",
    with_curator="the sums as private counts: all of them together cost epsilon",
    built_in_data="512 people with a secret bit each, drawn by a fair coin",
    data_files=(_FILE,),
    load=load,
)
