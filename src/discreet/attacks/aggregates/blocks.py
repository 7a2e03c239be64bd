"""People in small areas, and the tables of them that are published: of every two traits, for each area."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.attacks.aggregates.fields import array, real, zeros_and_ones
from discreet.attacks.checking import generator
from discreet.kernel.exact import whole

Pair = tuple[str, str]
_TAKEN = ("block", "n", "row")  # what questions about blocks call other things
_TRAITS = {"sex": 2, "decade": 8, "race": 6, "married": 2}
_SURVEYED = 4000  # so many other people told the public rates
_UNSEEN = 0.2  # what somebody counts for whom no survey has met
_RACES = (0.5, 0.2, 0.12, 0.1, 0.05, 0.03)


@dataclass(frozen=True)
class Blocks:
    """Who lives where, with some traits each, and whether the census has counted them: a coin decided that.

    `traits` has a row for each person and a column for each name in `sizes`, with numbers from 0 to below the size.
    Whoever is not `inside` is a stranger: as like the others as can be, but in no table. `rates` are how likely each
    combination of traits is among all people, which is public; alike unless given.

    >>> made = Blocks([0, 0, 1], [[0, 1], [1, 1], [0, 0]], {"sex": 2, "married": 2}, inside=[True, True, False])
    >>> made.count, made.pairs
    (2, [('sex', 'married')])
    """

    block: np.ndarray
    traits: np.ndarray
    sizes: dict[str, int]
    inside: np.ndarray
    rates: np.ndarray | None = None

    def __post_init__(self) -> None:
        block, traits, inside = array(self.block), array(self.traits), zeros_and_ones(self.inside, "inside")
        sizes = _checked_sizes(self.sizes)
        if traits.ndim != 2 or traits.shape[1] != len(sizes) or len(sizes) < 2:
            raise ValueError("traits must have a row for each person and a column for each of sizes, at least two")
        if not block.shape == inside.shape == traits.shape[:1]:
            raise ValueError("block, traits and inside must have one entry for each person")
        if block.dtype.kind not in "iu" or traits.dtype.kind not in "iu" or not block.size or block.min() < 0:
            raise TypeError("block and traits must be whole numbers from 0, of at least one person")
        if traits.min() < 0 or (traits >= list(sizes.values())).any():
            raise ValueError("each trait must lie from 0 to below its size: recode it, or state a larger size")
        if inside.all() or not inside.any():
            raise ValueError("inside: there must be people whom the census counted, and equal ones whom it did not")
        places = int(np.prod(list(sizes.values())))
        rates = np.full(places, 1 / places) if self.rates is None else real(self.rates, "rates")
        if rates.shape != (places,) or not (rates > 0).all():
            raise ValueError(f"rates must be {places} numbers above 0, one for each combination of traits")
        checked = {"block": block, "traits": traits, "sizes": sizes, "inside": inside, "rates": rates / rates.sum()}
        for name, values in checked.items():
            object.__setattr__(self, name, values)

    @property
    def count(self) -> int:
        """The number of blocks."""
        return int(self.block.max()) + 1

    @property
    def pairs(self) -> list[Pair]:
        """Every two traits, of which a table is published."""
        return list(combinations(self.sizes, 2))

    @property
    def cells(self) -> np.ndarray:
        """Each person's combination of all traits, as one number."""
        return np.asarray(np.ravel_multi_index(tuple(self.traits.T), tuple(self.sizes.values())))

    @property
    def members(self) -> pa.Table:
        """What the census has: a row for each person counted."""
        counted = self.traits[self.inside]
        columns = {name: counted[:, place] for place, name in enumerate(self.sizes)}
        return pa.table({"block": self.block[self.inside], **columns})


def _checked_sizes(sizes: Any) -> dict[str, int]:
    if not isinstance(sizes, dict):
        raise TypeError(f'sizes must be a dict such as {{"sex": 2, "married": 2}}, not {type(sizes).__name__}')
    for name in sizes:
        if not isinstance(name, str) or not name.isidentifier() or name.lower() in _TAKEN:
            raise ValueError(
                f"sizes: a trait cannot be named {name!r}. Take a word of letters, not {', '.join(_TAKEN)}."
            )
    if len({name.lower() for name in sizes}) < len(sizes):
        raise ValueError("sizes: two traits have the same name, as case does not count. Rename one of them.")
    return {name: whole(size, f"sizes: {name}", 1) for name, size in sizes.items()}


def drawn(blocks: int, random_state: int | None = None) -> Blocks:
    """Draw blocks of 3 to 12 people counted, about, by sex, decade of age, race and marriage.

    >>> made = drawn(10, random_state=0)
    >>> made.count, list(made.sizes.values())
    (10, [2, 8, 6, 2])
    """
    rng = generator(random_state)
    # Twice as many as are counted, and a coin for each of them.
    block = np.repeat(np.arange(whole(blocks, "blocks", 1)), rng.integers(6, 25, blocks))
    others = rates_of(_people(_SURVEYED, rng), _TRAITS)
    return Blocks(block, _people(len(block), rng), dict(_TRAITS), rng.random(len(block)) < 1 / 2, others)


def settled(
    traits: np.ndarray, sizes: dict[str, int], shape: tuple[int, int], random_state: int | None = None
) -> Blocks:
    """Settle people in so many blocks of so many, of whom a coin counts every other; the rest tell the public rates.

    >>> people = np.tile([[0, 1], [1, 1]], (30, 1))
    >>> settled(people, {"sex": 2, "married": 2}, shape=(4, 10), random_state=0).count
    4
    """
    rng = generator(random_state)
    blocks, size = shape
    shuffled = rng.permutation(traits)
    here, others = shuffled[: blocks * size], shuffled[blocks * size :]
    return Blocks(np.arange(len(here)) // size, here, sizes, rng.random(len(here)) < 1 / 2, rates_of(others, sizes))


def rates_of(traits: np.ndarray, sizes: dict[str, int]) -> np.ndarray:
    """Return how likely each combination of traits is, judged by these people; none is impossible.

    >>> rates_of(np.array([[0, 0], [0, 0], [1, 1]]), {"sex": 2, "married": 2}).round(2).tolist()
    [0.58, 0.05, 0.05, 0.32]
    """
    shape = tuple(sizes.values())
    seen = np.bincount(np.ravel_multi_index(tuple(traits.T), shape), minlength=int(np.prod(shape))) + _UNSEEN
    return np.asarray(seen / seen.sum())


def _people(count: int, rng: np.random.Generator) -> np.ndarray:
    decade = np.minimum(rng.gamma(4, 0.9, count).astype(int), 7)
    married = rng.random(count) < np.array([0.1, 0.45, 0.65, 0.7, 0.7, 0.65, 0.55, 0.4])[decade]
    race = rng.choice(len(_RACES), count, p=_RACES)
    return np.stack([rng.integers(0, 2, count), decade, race, married.astype(int)], axis=1)


def tables(members: pa.Table, blocks: int, sizes: dict[str, int]) -> dict[Pair, np.ndarray]:
    """Return the exact tables: for every two traits the numbers of people, by block and by both.

    >>> counted = pa.table({"block": [0, 0], "sex": [0, 1], "married": [1, 1]})
    >>> tables(counted, 1, {"sex": 2, "married": 2})["sex", "married"].tolist()
    [[[0, 1], [0, 1]]]
    """
    found = {}
    for pair in combinations(sizes, 2):
        counts = np.zeros((blocks, sizes[pair[0]], sizes[pair[1]]), int)
        np.add.at(counts, tuple(members[name].to_numpy() for name in ("block", *pair)), 1)
        found[pair] = counts
    return found


def design(sizes: dict[str, int], pairs: Sequence[Pair]) -> Any:
    """Return which combination of all traits is in which cell of the tables, as a sparse matrix.

    >>> design({"sex": 2, "married": 2}, [("sex", "married")]).toarray().tolist()
    [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    """
    from scipy import sparse  # noqa: PLC0415 - an extra

    names, shape = list(sizes), tuple(sizes.values())
    every = np.unravel_index(np.arange(np.prod(shape)), shape)
    parts = []
    for first, second in pairs:
        within = (every[names.index(first)], every[names.index(second)])
        row = np.ravel_multi_index(within, (sizes[first], sizes[second]))
        ones = (np.ones(len(row)), (row, np.arange(len(row))))
        parts.append(sparse.csr_array(ones, shape=(sizes[first] * sizes[second], len(row))))
    return sparse.vstack(parts, format="csr")
