"""People with many attributes: genomes, real or simulated, and answers to a survey."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from discreet.attacks.attack import Source
from discreet.attacks.validation import array_or_object, random_generator, read_data_table, require, set_fields
from discreet.kernel.numbers import as_integer


@dataclass(frozen=True)
class Panel:
    """One row of integers from 0 to `max_value` per person, and the population each person comes from.

    A genome counts an allele at each locus (`max_value` is 2); a survey has yes or no per question (`max_value` is 1).

    >>> Panel([[0, 1], [1, 1], [0, 0]], max_value=1).values.shape
    (3, 2)
    """

    values: np.ndarray
    max_value: int = 1
    populations: np.ndarray | None = None

    def __post_init__(self) -> None:
        values = array_or_object(self.values)
        require(
            values.ndim == 2 and values.size and values.dtype.kind in "biu",
            "values must be integers, with one row per person and one column per attribute",
        )
        require(
            values.min() >= 0 and values.max() <= as_integer(self.max_value, "max_value", 1),
            f"values must be from 0 to max_value = {self.max_value}: recode them, or raise max_value",
        )
        populations = np.zeros(len(values), int) if self.populations is None else array_or_object(self.populations)
        require(populations.shape == (len(values),), "populations must have one entry per person")
        small = values.astype(np.uint8) if self.max_value < 256 else values
        set_fields(self, values=small, populations=populations)


_GENOTYPES_FILE, _SAMPLES_FILE = "kg1000_genotypes.parquet", "kg1000_samples.parquet"
_SUPERPOPULATION = "EUR"  # one continent only, so that the score does not reveal ancestry instead of membership
_MIN_ALLELE_FREQUENCY = 0.05  # within this continent


def simulate_genomes(people: int = 500, loci: int = 1000, *, random_state: int | None = None) -> Panel:
    """Simulate genomes: 0, 1 or 2 copies of an allele at every locus.

    The copies are independent (Hardy-Weinberg equilibrium), and so are the loci.

    >>> simulate_genomes(10, 5, random_state=0).values.max()
    np.uint8(2)
    """
    rng, shape = random_generator(random_state), (as_integer(people, "people", 1), as_integer(loci, "loci", 1))
    return Panel(rng.binomial(2, rng.beta(0.8, 2, loci).clip(0.02, 0.98), shape), max_value=2)


def simulate_answers(people: int, questions: int, *, random_state: int | None = None) -> Panel:
    """Simulate yes/no answers to survey questions, each with a rate of yes between 0.2 and 0.8.

    >>> simulate_answers(4, 3, random_state=0).values.shape
    (4, 3)
    """
    rng, shape = (
        random_generator(random_state),
        (as_integer(people, "people", 1), as_integer(questions, "questions", 1)),
    )
    return Panel(rng.random(shape) < rng.uniform(0.2, 0.8, questions))


def read_genomes(folder: Path) -> Panel:
    """Read the 503 Europeans of the 1000 Genomes project, at loci where both alleles are common among them."""
    genotypes = read_data_table(folder, _GENOTYPES_FILE, ["gt"])
    samples = read_data_table(folder, _SAMPLES_FILE, ["population", "superpopulation"])
    is_european = np.array(samples["superpopulation"].to_pylist()) == _SUPERPOPULATION
    copies = genotypes["gt"].combine_chunks().flatten().to_numpy()
    values = copies.reshape(-1, len(is_european))[:, is_european].T
    allele_frequencies = values.mean(axis=0) / 2
    values = values[:, np.minimum(allele_frequencies, 1 - allele_frequencies) >= _MIN_ALLELE_FREQUENCY]
    return Panel(np.ascontiguousarray(values), 2, np.array(samples["population"].to_pylist())[is_european])


PANEL = Source(
    Panel,
    "a Panel, such as Panel(values, max_value=2)",
    lambda rng: simulate_genomes(random_state=int(rng.integers(2**32))),
    built_in="500 simulated genomes with 1,000 loci; 12 studies of about 100 people",
    files=(_GENOTYPES_FILE, _SAMPLES_FILE),
    read=read_genomes,
)
