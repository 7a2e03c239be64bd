"""People in small areas, and the tables of them that are published: of every two traits, for each area."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.attacks.validation import array_or_object, boolean_array, random_generator, real_array
from discreet.kernel.numbers import as_integer

TraitPair = tuple[str, str]
_RESERVED_NAMES = ("block", "n", "row")  # what questions about blocks call other things
_TRAIT_SIZES = {"sex": 2, "decade": 8, "race": 6, "married": 2}
_SURVEY_SIZE = 4000  # so many other people told the public rates
_PSEUDOCOUNT = 0.2  # what somebody counts for whom no survey has met
_RACE_RATES = (0.5, 0.2, 0.12, 0.1, 0.05, 0.03)


@dataclass(frozen=True)
class Blocks:
    """Who lives where, with some traits each, and whether the census has counted them: a coin decided that.

    `traits` has a row for each person and a column for each name in `sizes`, with numbers from 0 to below the size.
    Whoever is not `is_member` is a stranger: as like the others as can be, but in no table. `rates` are how likely each
    combination of traits is among all people, which is public; alike unless given.

    >>> made = Blocks([0, 0, 1], [[0, 1], [1, 1], [0, 0]], {"sex": 2, "married": 2}, is_member=[True, True, False])
    >>> made.block_count, made.trait_pairs
    (2, [('sex', 'married')])
    """

    block: np.ndarray
    traits: np.ndarray
    sizes: dict[str, int]
    is_member: np.ndarray
    rates: np.ndarray | None = None

    def __post_init__(self) -> None:
        block, traits, is_member = (
            array_or_object(self.block),
            array_or_object(self.traits),
            boolean_array(self.is_member, "is_member"),
        )
        sizes = _checked_sizes(self.sizes)
        if traits.ndim != 2 or traits.shape[1] != len(sizes) or len(sizes) < 2:
            raise ValueError("traits must have a row for each person and a column for each of sizes, at least two")
        if not block.shape == is_member.shape == traits.shape[:1]:
            raise ValueError("block, traits and inside must have one entry for each person")
        if block.dtype.kind not in "iu" or traits.dtype.kind not in "iu" or not block.size or block.min() < 0:
            raise TypeError("block and traits must be whole numbers from 0, of at least one person")
        if traits.min() < 0 or (traits >= list(sizes.values())).any():
            raise ValueError("each trait must lie from 0 to below its size: recode it, or state a larger size")
        if is_member.all() or not is_member.any():
            raise ValueError("inside: there must be people whom the census counted, and equal ones whom it did not")
        combination_count = int(np.prod(list(sizes.values())))
        rates = (
            np.full(combination_count, 1 / combination_count) if self.rates is None else real_array(self.rates, "rates")
        )
        if rates.shape != (combination_count,) or not (rates > 0).all():
            raise ValueError(f"rates must be {combination_count} numbers above 0, one for each combination of traits")
        checked = {"block": block, "traits": traits, "sizes": sizes, "inside": is_member, "rates": rates / rates.sum()}
        for name, values in checked.items():
            object.__setattr__(self, name, values)

    @property
    def block_count(self) -> int:
        """The number of blocks."""
        return int(self.block.max()) + 1

    @property
    def trait_pairs(self) -> list[TraitPair]:
        """Every two traits, of which a table is published."""
        return list(combinations(self.sizes, 2))

    @property
    def cell_codes(self) -> np.ndarray:
        """Each person's combination of all traits, as one number."""
        return np.asarray(np.ravel_multi_index(tuple(self.traits.T), tuple(self.sizes.values())))

    @property
    def member_table(self) -> pa.Table:
        """What the census has: a row for each person counted."""
        counted = self.traits[self.is_member]
        columns = {name: counted[:, place] for place, name in enumerate(self.sizes)}
        return pa.table({"block": self.block[self.is_member], **columns})


def _checked_sizes(sizes: Any) -> dict[str, int]:
    if not isinstance(sizes, dict):
        raise TypeError(f'sizes must be a dict such as {{"sex": 2, "married": 2}}, not {type(sizes).__name__}')
    for name in sizes:
        if not isinstance(name, str) or not name.isidentifier() or name.lower() in _RESERVED_NAMES:
            raise ValueError(
                f"sizes: a trait cannot be named {name!r}. Take a word of letters, not {', '.join(_RESERVED_NAMES)}."
            )
    if len({name.lower() for name in sizes}) < len(sizes):
        raise ValueError("sizes: two traits have the same name, as case does not count. Rename one of them.")
    return {name: as_integer(size, f"sizes: {name}", 1) for name, size in sizes.items()}


def simulate_blocks(blocks: int, random_state: int | None = None) -> Blocks:
    """Draw blocks of 3 to 12 people counted, about, by sex, decade of age, race and marriage.

    >>> made = simulate_blocks(10, random_state=0)
    >>> made.block_count, list(made.sizes.values())
    (10, [2, 8, 6, 2])
    """
    rng = random_generator(random_state)
    # Twice as many as are counted, and a coin for each of them.
    block = np.repeat(np.arange(as_integer(blocks, "blocks", 1)), rng.integers(6, 25, blocks))
    others = combination_rates(_simulate_traits(_SURVEY_SIZE, rng), _TRAIT_SIZES)
    return Blocks(block, _simulate_traits(len(block), rng), dict(_TRAIT_SIZES), rng.random(len(block)) < 1 / 2, others)


def assign_to_blocks(
    traits: np.ndarray, sizes: dict[str, int], shape: tuple[int, int], random_state: int | None = None
) -> Blocks:
    """Settle people in so many blocks of so many, of whom a coin counts every other; the rest tell the public rates.

    >>> people = np.tile([[0, 1], [1, 1]], (30, 1))
    >>> assign_to_blocks(people, {"sex": 2, "married": 2}, shape=(4, 10), random_state=0).block_count
    4
    """
    rng = random_generator(random_state)
    blocks, size = shape
    shuffled = rng.permutation(traits)
    here, others = shuffled[: blocks * size], shuffled[blocks * size :]
    return Blocks(
        np.arange(len(here)) // size, here, sizes, rng.random(len(here)) < 1 / 2, combination_rates(others, sizes)
    )


def combination_rates(traits: np.ndarray, sizes: dict[str, int]) -> np.ndarray:
    """Return how likely each combination of traits is, judged by these people; none is impossible.

    >>> combination_rates(np.array_or_object([[0, 0], [0, 0], [1, 1]]), {"sex": 2, "married": 2}).round(2).tolist()
    [0.58, 0.05, 0.05, 0.32]
    """
    shape = tuple(sizes.values())
    counts = np.bincount(np.ravel_multi_index(tuple(traits.T), shape), minlength=int(np.prod(shape))) + _PSEUDOCOUNT
    return np.asarray(counts / counts.sum())


def _simulate_traits(count: int, rng: np.random.Generator) -> np.ndarray:
    decade = np.minimum(rng.gamma(4, 0.9, count).astype(int), 7)
    married = rng.random(count) < np.array([0.1, 0.45, 0.65, 0.7, 0.7, 0.65, 0.55, 0.4])[decade]
    race = rng.choice(len(_RACE_RATES), count, p=_RACE_RATES)
    return np.stack([rng.integers(0, 2, count), decade, race, married.astype(int)], axis=1)


def pair_tables(members: pa.Table, blocks: int, sizes: dict[str, int]) -> dict[TraitPair, np.ndarray]:
    """Return the exact tables: for every two traits the numbers of people, by block and by both.

    >>> counted = pa.table({"block": [0, 0], "sex": [0, 1], "married": [1, 1]})
    >>> pair_tables(counted, 1, {"sex": 2, "married": 2})["sex", "married"].tolist()
    [[[0, 1], [0, 1]]]
    """
    tables_by_pair = {}
    for pair in combinations(sizes, 2):
        counts = np.zeros((blocks, sizes[pair[0]], sizes[pair[1]]), int)
        np.add.at(counts, tuple(members[name].to_numpy() for name in ("block", *pair)), 1)
        tables_by_pair[pair] = counts
    return tables_by_pair


def design_matrix(sizes: dict[str, int], pairs: Sequence[TraitPair]) -> Any:
    """Return which combination of all traits is in which cell of the tables, as a sparse matrix.

    >>> design_matrix({"sex": 2, "married": 2}, [("sex", "married")]).toarray().tolist()
    [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    """
    from scipy import sparse  # noqa: PLC0415 - an extra

    names, shape = list(sizes), tuple(sizes.values())
    trait_values = np.unravel_index(np.arange(np.prod(shape)), shape)
    parts = []
    for first, second in pairs:
        within = (trait_values[names.index(first)], trait_values[names.index(second)])
        row = np.ravel_multi_index(within, (sizes[first], sizes[second]))
        ones = (np.ones(len(row)), (row, np.arange(len(row))))
        parts.append(sparse.csr_array(ones, shape=(sizes[first] * sizes[second], len(row))))
    return sparse.vstack(parts, format="csr")
