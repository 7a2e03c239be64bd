"""People with many attributes, some of them in a study: genomes, real or simulated, and survey answers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.attacks.validation import array_or_object, data_file, random_generator
from discreet.kernel.numbers import as_integer


@dataclass(frozen=True)
class Panel:
    """One row of integers from 0 to `max_value` per person, and the population each person comes from.

    A genome counts an allele at each locus (`max_value` is 2); a survey has yes or no per question (`max_value` is 1).

    >>> Panel([[0, 1], [1, 1], [0, 0]], max_value=1).person_count
    3
    """

    values: np.ndarray
    max_value: int = 1
    populations: np.ndarray | None = None

    def __post_init__(self) -> None:
        values = array_or_object(self.values)
        if values.ndim != 2 or not values.size or values.dtype.kind not in "biu":
            raise ValueError("values must be integers, with one row per person and one column per attribute")
        if values.min() < 0 or values.max() > as_integer(self.max_value, "max_value", 1):
            raise ValueError(f"values must be from 0 to max_value = {self.max_value}: recode them, or raise max_value")
        populations = np.zeros(len(values), int) if self.populations is None else array_or_object(self.populations)
        if populations.shape != (len(values),):
            raise ValueError("populations must have one entry per person")
        object.__setattr__(self, "values", values.astype(np.uint8) if self.max_value < 256 else values)
        object.__setattr__(self, "populations", populations)

    @property
    def person_count(self) -> int:
        """The number of people, in the study or not."""
        return len(self.values)

    @property
    def attribute_count(self) -> int:
        """The number of attributes."""
        return int(self.values.shape[1])


@dataclass(frozen=True)
class StudySample:
    """One study: its members, comparable non-members, and a reference sample that the attacker knows."""

    members: np.ndarray
    non_members: np.ndarray
    reference: np.ndarray


def draw_study_samples(panel: Panel, pool: int, plays: int, rng: np.random.Generator) -> list[StudySample]:
    """Draw `plays` studies: 2 · `pool` candidates, each a member with probability 1/2, and all others as the reference.

    Members are drawn independently, without a fixed number, so that membership is the addition or removal of one
    person, which is what the curator's epsilon covers. Candidates and reference are balanced over the populations;
    otherwise the score would measure ancestry instead of membership.
    """
    candidates = 2 * as_integer(pool, "pool", 10)
    if panel.person_count < candidates + pool:
        raise ValueError(
            f"pool: {pool} members need {candidates} candidates and at least {pool} others as a reference, "
            f"but there are only {panel.person_count} people. Choose a pool of at most {panel.person_count // 3}."
        )
    return [_draw_study_sample(panel, candidates, rng) for _ in range(as_integer(plays, "plays", 1))]


def _draw_study_sample(panel: Panel, candidates: int, rng: np.random.Generator) -> StudySample:
    shuffled = rng.permutation(panel.person_count)
    populations: Any = panel.populations
    order = shuffled[np.argsort(populations[shuffled], kind="stable")]
    steps = np.arange(panel.person_count + 1) * candidates // panel.person_count
    is_candidate = np.diff(steps) > 0
    is_member = rng.random(candidates) < 1 / 2
    while is_member.all() or not is_member.any():  # rare: probability 2e-6 with the smallest pool
        is_member = rng.random(candidates) < 1 / 2
    chosen_people = order[is_candidate]
    return StudySample(
        panel.values[chosen_people[is_member]],
        panel.values[chosen_people[~is_member]],
        panel.values[order[~is_candidate]],
    )


def sample_attributes(panel: Panel, attributes: int | None, rng: np.random.Generator) -> Panel:
    """Return the panel with this many randomly drawn attributes; None keeps all."""
    if attributes is None:
        return panel
    if as_integer(attributes, "attributes", 1) > panel.attribute_count:
        raise ValueError(f"attributes must be at most {panel.attribute_count}, not {attributes}")
    columns = np.sort(rng.choice(panel.attribute_count, attributes, replace=False))
    return Panel(panel.values[:, columns], panel.max_value, panel.populations)


def rarity_of_values(people: np.ndarray, reference: np.ndarray, max_value: int) -> np.ndarray:
    """Return the rarity of each person: squared deviations from the reference means, divided by their variances.

    >>> reference = np.array([[0, 0], [0, 1], [0, 0], [0, 1]])
    >>> rarity_of_values(np.array([[0, 1], [1, 1]]), reference, max_value=1).round(1).tolist()
    [1.2, 6.0]
    """
    reference_means = (reference.sum(axis=0, dtype=float) + 1) / (max_value * len(reference) + 2)
    return np.asarray((people / max_value - reference_means) ** 2 @ (1 / (reference_means * (1 - reference_means))))


GENOTYPES_FILE, SAMPLES_FILE = "kg1000_genotypes.parquet", "kg1000_samples.parquet"
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


def load(folder: Path) -> Panel:
    """Read the 503 Europeans of the 1000 Genomes project, at loci where both alleles are common among them."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import

    genotypes, people = (data_file(folder, name) for name in (GENOTYPES_FILE, SAMPLES_FILE))
    samples = pq.read_table(people, columns=["population", "superpopulation"])
    is_european = np.array(samples["superpopulation"].to_pylist()) == _SUPERPOPULATION
    copies = pq.read_table(genotypes, columns=["gt"])["gt"].combine_chunks().flatten().to_numpy()
    values = copies.reshape(-1, len(is_european))[:, is_european].T
    allele_frequencies = values.mean(axis=0) / 2
    values = values[:, np.minimum(allele_frequencies, 1 - allele_frequencies) >= _MIN_ALLELE_FREQUENCY]
    return Panel(np.ascontiguousarray(values), 2, np.array(samples["population"].to_pylist())[is_european])
