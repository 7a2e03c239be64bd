"""Genomes: made up after the laws of heredity, and those of the 1000 Genomes project."""

from pathlib import Path

import numpy as np

from discreet.attacks.aggregates.panel import Panel
from discreet.attacks.checking import file_in, generator
from discreet.kernel.exact import whole

GENOTYPES, SAMPLES = "kg1000_genotypes.parquet", "kg1000_samples.parquet"
_ORIGIN = "EUR"  # one continent: with more, the score would tell where people come from
_COMMON = 0.05  # of the alleles in this continent


def genomes(people: int = 500, places: int = 1000, *, random_state: int | None = None) -> Panel:
    """Draw genomes: at every place an allele that is common or rare, and two copies of it, one or none.

    The copies are independent (Hardy and Weinberg), and so are the places.

    >>> genomes(10, 5, random_state=0).values.max()
    np.uint8(2)
    """
    rng, shape = generator(random_state), (whole(people, "people", 1), whole(places, "places", 1))
    return Panel(rng.binomial(2, rng.beta(0.8, 2, places).clip(0.02, 0.98), shape), most=2)


def load(folder: Path) -> Panel:
    """Read the 503 Europeans of the 1000 Genomes project, at the places where both alleles are common among them."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - half of the time that importing an attack takes

    genotypes, people = (file_in(folder, name) for name in (GENOTYPES, SAMPLES))
    samples = pq.read_table(people, columns=["population", "superpopulation"])
    here = np.array(samples["superpopulation"].to_pylist()) == _ORIGIN
    copies = pq.read_table(genotypes, columns=["gt"])["gt"].combine_chunks().flatten().to_numpy()
    values = copies.reshape(-1, len(here))[:, here].T
    share = values.mean(axis=0) / 2
    values = values[:, np.minimum(share, 1 - share) >= _COMMON]
    return Panel(np.ascontiguousarray(values), 2, np.array(samples["population"].to_pylist())[here])
