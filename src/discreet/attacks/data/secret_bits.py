"""People with a secret bit each: the bits alone, or a study that publishes the means of other attributes."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from discreet.attacks.attack import Source
from discreet.attacks.validation import (
    Seed,
    boolean_array,
    random_generator,
    read_data_table,
    real_array,
    require,
    set_fields,
)
from discreet.kernel.numbers import as_integer
from discreet.number_arguments import as_probability

_FILE = "pums_ca_1000.parquet"
_PERSON_COUNT, _ROSTER_SIZE = 512, 256
_STUDY_SIZE, _ATTRIBUTE_COUNT = 200, 2000


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
        require(bits.ndim == 1 and len(bits) >= 2, "bits must be a list of zeros and ones for at least two people")
        chance = None if self.chance is None else float(as_probability(self.chance, "chance"))
        set_fields(self, bits=bits, chance=chance)

    @classmethod
    def simulate(cls, people: int, random_state: Seed = None) -> "Secrets":
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


def read_secrets(folder: Path) -> Secrets:
    """Read which of 1,000 Californians are married (a sample of the American Community Survey)."""
    return Secrets(read_data_table(folder, _FILE, ["married"])["married"].to_numpy())


SECRETS = Source(
    Secrets,
    "Secrets(bits) or Blocks",
    lambda rng: Secrets.simulate(_PERSON_COUNT, rng),
    built_in=f"{_PERSON_COUNT} people with a random secret bit each",
    files=(_FILE,),
    read=read_secrets,
)
ROSTER = Source(
    Secrets,
    "Secrets(bits), one bit per person on the roster",
    lambda rng: Secrets.simulate(_ROSTER_SIZE, rng),
    built_in=f"{_ROSTER_SIZE} people, half of whom are in the data",
)


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
        require(
            values.ndim == 2 and secrets.shape == values.shape[:1] and len(values),
            "values must have one row, and secrets one entry, per participant",
        )
        require(
            non_members.shape[1:] == values.shape[1:] and rates.shape == values.shape[1:] and len(non_members),
            "non_members and rates must have the same attributes as values",
        )
        require(
            ((rates > 0) & (rates < 1)).all() and len(np.unique(secrets)) >= 2,
            "rates must be between 0 and 1, and secrets must contain both 0 and 1",
        )
        set_fields(self, values=values, secrets=secrets.astype(np.int64), non_members=non_members, rates=rates)


def simulate_study(people: int, attributes: int, rng: np.random.Generator) -> Study:
    """Simulate a study with independent attributes and fair secret bits, and four times as many non-members."""
    rates = rng.uniform(0.1, 0.9, as_integer(attributes, "attributes", 1))
    sizes = (as_integer(people, "people", 2), 4 * people)
    values, non_members = (rng.random((count, attributes)) < rates for count in sizes)
    return Study(values, rng.integers(0, 2, people), non_members, rates)


STUDY = Source(
    Study,
    "Study(values, secrets, non_members, rates)",
    lambda rng: simulate_study(_STUDY_SIZE, _ATTRIBUTE_COUNT, rng),
    built_in=f"{_STUDY_SIZE} simulated people with {_ATTRIBUTE_COUNT:,} attributes",
)
