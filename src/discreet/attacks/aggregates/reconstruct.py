"""The reconstruction attack: everybody's secret bit from sums over random subsets of people."""

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
from discreet.kernel.numbers import Number, as_integer, as_nonnegative
from discreet.privacy.probability import as_probability

Questions = Literal["random subsets", "one by one"]
_PERSON_COUNT = 512
_FILE = "pums_ca_1000.parquet"


@dataclass(frozen=True)
class Secrets:
    """A secret bit for each person, which an oracle sums over subsets of people.

    `chance` is the probability of a set bit if the bits were drawn; otherwise the share of set bits is assumed known.

    >>> Secrets([1, 0, 0, 0, 0]).prior, Secrets([1, 0, 0, 0, 0]).bit_rate
    (0.8, 0.2)
    """

    bits: np.ndarray
    chance: float | None = None

    def __post_init__(self) -> None:
        bits = boolean_array(self.bits, "bits")
        if bits.ndim != 1 or len(bits) < 2:
            raise ValueError("bits must be a list of zeros and ones for at least two people")
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
        """The public probability that a bit is set."""
        return float(self.bits.mean()) if self.chance is None else self.chance

    @property
    def prior(self) -> float:
        """The probability of the more frequent value: the success of guessing it for everybody."""
        return max(self.bit_rate, 1 - self.bit_rate)


def reconstruct(  # noqa: PLR0913 - all but the first by name only
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
    """Reconstruct everybody's secret bit from sums over random subsets, `per_person` queries for each person.

    `data` are `Secrets`, 512 fair coins by default; `Blocks` of a census are passed on to `census`. The oracle answers
    exactly, or with an error of `noise`/sqrt(n) in every share ("nothing"); rounds to tens ("easy"); or is the curator,
    which answers all queries at epsilon, with Gaussian noise if `delta` is given ("curator"). A function as defence
    gets the array of bits and returns a function from the matrix of subsets to the answers. With "one by one", each
    query is about one person. The rate of set bits is assumed known: the noisier the answers, the more the guesses
    tend to the more frequent value.

    >>> reconstruct(random_state=0).success
    1.0
    >>> reconstruct(noise=1 / 4, random_state=0).success > 0.9
    True
    """
    if isinstance(data, Blocks):
        if (noise, delta, per_person, questions, method) != (0, None, 4, "random subsets", "least squares"):
            raise TypeError("noise, delta, per_person, questions and method apply only to Secrets, not to Blocks")
        return census(data, defence=defence, epsilon=epsilon, random_state=random_state)
    parsed_defence = parse_defence(defence, epsilon)
    exact_delta = promised_delta(parsed_defence, delta)
    rng = random_generator(random_state).spawn(1)[0]  # independent of data drawn with the same seed
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
        """Return the root mean square error of the answers."""
        errors = self.answers - subset_oracles.exact_sums(self.secrets.bits)(self.subsets)
        return float(np.sqrt(np.mean(errors**2)))


def _result(defence: Defence, game: _ReconstructionGame, guesses: np.ndarray, delta: float) -> AttackResult:
    is_right, answer_error = guesses == game.secrets.bits, game.root_mean_square_error()
    return AttackResult(
        attack="reconstruct",
        against=defence,
        metric="of bits reconstructed",
        # The guarantee is for adding or removing a person, and here a bit is substituted. A person whose bit is not set
        # contributes to no answer, as if removed, so epsilon also bounds this game. The noise of an answer affects the
        # guesses about all people in it, but no two guesses share much of it: the interval treats them as independent.
        evidence=_evidence(game.secrets, is_right),
        details=_details(defence, game, answer_error),
        # People in few queries are harder to reconstruct.
        exposure=exposure_by_rarity(
            -game.subsets.sum(axis=0),
            is_right,
            labels=[f"person {number}" for number in range(len(is_right))],
            rarity_label="few queries about them",
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
    if secrets.bits.all() or not secrets.bits.any():  # all bits are equal: there are no two groups to compare
        return GuessEvidence(int(is_right.sum()), len(is_right), prior=min(secrets.prior, 1 - 1e-9))
    return BitEvidence(
        Proportion.from_outcomes(is_right[secrets.bits]),
        Proportion.from_outcomes(is_right[~secrets.bits]),
        secrets.prior,
    )


def draw_subsets(people: int, questions: Questions, per_person: int, rng: np.random.Generator) -> np.ndarray:
    """Return the subsets as a boolean matrix, queries × people.

    >>> draw_subsets(2, "one by one", 4, np.random.default_rng(0)).tolist()
    [[True, False], [False, True]]
    """
    if questions == "one by one":
        return np.eye(people, dtype=bool)
    if questions != "random subsets":
        raise ValueError(f'questions must be "random subsets" or "one by one", not {questions!r}')
    shape = (as_integer(per_person, "per_person", 1) * people, people)
    return rng.integers(0, 2, shape, dtype=np.uint8).astype(bool)


def oracle_answers(oracle: subset_oracles.SubsetOracle, subsets: np.ndarray) -> np.ndarray:
    """Return an oracle's answers, one number per query."""
    return finite_array(oracle(subsets), (len(subsets),), "the defence's oracle")


def load(folder: Path) -> Secrets:
    """Read which of 1,000 Californians are married (a sample of the American Community Survey)."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only for real data

    return Secrets(pq.read_table(data_file(folder, _FILE), columns=["married"])["married"].to_numpy())


def checked_secrets(data: Any) -> Secrets:
    """Return the data if they are `Secrets`, else raise."""
    if not isinstance(data, Secrets):
        raise TypeError(f"data must be Secrets(bits) or Blocks, not {type(data).__name__}")
    return data


def _checked_noise(noise: Any, defence: Defence) -> float:
    level = float(as_nonnegative(noise, "noise, in units of 1/sqrt(n),"))
    if level and defence.kind != NOTHING:
        raise TypeError('noise applies only to defence="nothing": the other defences add their own error')
    return level


def oracle_under(
    defence: Defence, bits: np.ndarray, noise: float, delta: Fraction, rng: np.random.Generator
) -> subset_oracles.SubsetOracle:
    """Return the oracle that answers queries about these bits under a defence."""
    if defence.user_function is not None:
        returned = defence.user_function(bits.copy())
        if not callable(returned) or isinstance(returned, type):
            raise TypeError("the defence must return an oracle: a function from the matrix of subsets to the answers")
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
        "error of an answer (RMS)": answer_error,
        "error of a share, in units of 1/sqrt(n)": float(answer_error / np.sqrt(people)),
    }
    if questions > people:
        details["accuracy of least squares, in theory"] = expected_accuracy(
            people, questions, answer_error, game.secrets.bit_rate
        )
    if defence.kind == CURATOR:
        is_sql = subset_oracles.is_asked_in_sql(game.subsets)
        details["answered"] = "in SQL" if is_sql else "by the mechanism, as one vector"
    return details


ATTACK = Attack(
    run=reconstruct,
    docs_page="reconstruction",
    summary="Reconstructs everybody's secret bit from sums over random subsets of people.",
    without_defence="non-private sums",
    with_easy_fix="sums rounded to tens",
    with_curator="private counts, which cost epsilon together",
    built_in_data="512 people with a random secret bit each",
    data_files=(_FILE,),
    load=load,
)
