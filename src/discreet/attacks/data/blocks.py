"""People in census blocks with their traits: simulated ones, and people of a survey who are assigned to blocks."""

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.attacks.attack import Source
from discreet.attacks.validation import (
    array_or_object,
    boolean_array,
    random_generator,
    read_data_table,
    real_array,
    require,
    set_fields,
)
from discreet.kernel.numbers import as_integer

_RESERVED_NAMES = ("block", "n", "row")  # used in queries
_BLOCK_COUNT = 50
_FILE = "pums_10000.parquet"
_REAL_SHAPE = (60, 12)  # blocks, and people in each, of whom about six are counted
_TRAIT_SIZES = {"sex": 2, "decade": 8, "race": 6, "married": 2}
_SURVEY_SIZE = 4000  # people from whom the public rates are estimated
_PSEUDOCOUNT = 0.2  # added to every combination, so that none is impossible
_RACE_RATES = (0.5, 0.2, 0.12, 0.1, 0.05, 0.03)


@dataclass(frozen=True)
class Blocks:
    """People with their block and traits, and whether the census counted them (`is_member`), with probability 1/2.

    `traits` has one row per person and one column per name in `sizes`, with integers below the size. Non-members are
    comparable people who are in no table. `rates` are the public probabilities of all combinations of traits, uniform
    by default.

    >>> blocks = Blocks([0, 0, 1], [[0, 1], [1, 1], [0, 0]], {"sex": 2, "married": 2}, is_member=[True, True, False])
    >>> blocks.block_count, blocks.trait_pairs
    (2, [('sex', 'married')])
    """

    block: np.ndarray
    traits: np.ndarray
    sizes: dict[str, int]
    is_member: np.ndarray
    rates: np.ndarray | None = None

    def __post_init__(self) -> None:
        block, traits = array_or_object(self.block), array_or_object(self.traits)
        is_member, sizes = boolean_array(self.is_member, "is_member"), _check_sizes(self.sizes)
        require(
            traits.ndim == 2 and traits.shape[1] == len(sizes) and len(sizes) >= 2,
            "traits must have one row per person and one column per entry of sizes, at least two",
        )
        require(
            block.shape == is_member.shape == traits.shape[:1],
            "block, traits and is_member must have one entry per person",
        )
        if block.dtype.kind not in "iu" or traits.dtype.kind not in "iu" or not block.size or block.min() < 0:
            raise TypeError("block and traits must be non-negative integers, for at least one person")
        require(
            traits.min() >= 0 and not (traits >= list(sizes.values())).any(),
            "each trait must be at least 0 and below its size: recode it, or give a larger size",
        )
        require(
            not is_member.all() and is_member.any(),
            "is_member must have both members, whom the census counted, and non-members",
        )
        count = int(np.prod(list(sizes.values())))
        rates = np.full(count, 1 / count) if self.rates is None else real_array(self.rates, "rates")
        require(
            rates.shape == (count,) and (rates > 0).all(),
            f"rates must be {count} positive numbers, one per combination of traits",
        )
        set_fields(self, block=block, traits=traits, sizes=sizes, is_member=is_member, rates=rates / rates.sum())

    @property
    def block_count(self) -> int:
        """The number of blocks."""
        return int(self.block.max()) + 1

    @property
    def trait_pairs(self) -> list[tuple[str, str]]:
        """All pairs of traits; a table is published for each."""
        return list(combinations(self.sizes, 2))

    @property
    def cell_codes(self) -> np.ndarray:
        """Each person's combination of all traits, encoded as one integer."""
        return np.asarray(np.ravel_multi_index(tuple(self.traits.T), tuple(self.sizes.values())))

    @property
    def member_table(self) -> pa.Table:
        """The census: one row per counted person."""
        counted = self.traits[self.is_member]
        columns = {name: counted[:, index] for index, name in enumerate(self.sizes)}
        return pa.table({"block": self.block[self.is_member], **columns})


def _check_sizes(sizes: Any) -> dict[str, int]:
    if not isinstance(sizes, dict):
        raise TypeError(f'sizes must be a dict such as {{"sex": 2, "married": 2}}, not {type(sizes).__name__}')
    for name in sizes:
        require(
            isinstance(name, str) and name.isidentifier() and name.lower() not in _RESERVED_NAMES,
            f"sizes: a trait cannot be named {name!r}. Use an identifier other than {', '.join(_RESERVED_NAMES)}.",
        )
    require(
        len({name.lower() for name in sizes}) >= len(sizes),
        "sizes: two names of traits differ only in case. Rename one of them.",
    )
    return {name: as_integer(size, f"sizes: {name}", 1) for name, size in sizes.items()}


def simulate_blocks(blocks: int, random_state: int | None = None) -> Blocks:
    """Simulate blocks of about 3 to 12 counted people with sex, decade of age, race and marital status.

    >>> blocks = simulate_blocks(10, random_state=0)
    >>> blocks.block_count, list(blocks.sizes.values())
    (10, [2, 8, 6, 2])
    """
    rng = random_generator(random_state)
    # Twice as many people as are counted: each is a member with probability 1/2.
    block = np.repeat(np.arange(as_integer(blocks, "blocks", 1)), rng.integers(6, 25, blocks))
    others = combination_rates(_simulate_traits(_SURVEY_SIZE, rng), _TRAIT_SIZES)
    return Blocks(block, _simulate_traits(len(block), rng), dict(_TRAIT_SIZES), rng.random(len(block)) < 1 / 2, others)


def assign_to_blocks(
    traits: np.ndarray, sizes: dict[str, int], shape: tuple[int, int], random_state: int | None = None
) -> Blocks:
    """Assign people to blocks of the given number and size, each as a member with probability 1/2; rates come from the
    others.

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
    """Estimate the probability of each combination of traits from these people; none is impossible.

    >>> combination_rates(np.array([[0, 0], [0, 0], [1, 1]]), {"sex": 2, "married": 2}).round(2).tolist()
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


def read_blocks(folder: Path) -> Blocks:
    """Read people of a survey, and assign them to blocks of twelve; a coin decides who is counted."""
    people = read_data_table(folder, _FILE, ["sex", "age", "race", "married"])
    sex, age, race, married = (people[name].to_numpy() for name in people.column_names)
    traits = np.stack([sex, np.clip(age // 10 - 1, 0, 7), race - 1, married], axis=1)
    return assign_to_blocks(traits, dict(_TRAIT_SIZES), _REAL_SHAPE, random_state=0)


BLOCKS = Source(
    Blocks,
    "Blocks(block, traits, sizes, is_member)",
    lambda rng: simulate_blocks(_BLOCK_COUNT, int(rng.integers(2**32))),
    built_in=f"{_BLOCK_COUNT} simulated blocks of 3 to 12 people",
    files=(_FILE,),
    read=read_blocks,
)
