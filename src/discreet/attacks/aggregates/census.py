"""Census reconstruction: the people of small blocks from the tables published about them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.aggregates.block_reconstruction import (
    SUPPRESSED_COUNTS,
    BlockPrior,
    estimate_noise_scale,
    reconstruct_blocks,
)
from discreet.attacks.aggregates.blocks import Blocks, TraitPair, assign_to_blocks, pair_tables, simulate_blocks
from discreet.attacks.defences import CURATOR, EASY, Defence, DefenceChoice, parse_defence
from discreet.attacks.evidence import EventEvidence
from discreet.attacks.registry import Attack
from discreet.attacks.result import AttackResult, exposure_by_rarity
from discreet.attacks.validation import array_with_gaps, data_file, integer_domain, random_generator
from discreet.audit.binomial import Proportion
from discreet.kernel.numbers import Number

_BLOCK_COUNT = 50
_SMALL_BLOCK_SIZE = 5
_FILE = "pums_10000.parquet"
_REAL_SHAPE = (60, 12)  # blocks, and people in each, of whom about six are counted
_TRAIT_SIZES = {"sex": 2, "decade": 8, "race": 6, "married": 2}


def census(
    data: Blocks | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
) -> AttackResult:
    """Reconstruct people with all their traits from two-way tables of the traits in each block.

    `data` are `Blocks`, 50 simulated ones by default. The release is the non-private tables ("nothing"), the tables
    without cells of 1 and 2 ("easy"), or private tables, which cost epsilon together ("curator"). A function as defence
    gets the table of counted people and returns an array for each pair of traits (block × first × second), with NaN for
    suppressed cells. A person counts as reconstructed if the reconstructed block contains a person with all their
    traits; the baseline is how often that happens to non-members, who were not counted.

    >>> result = census(random_state=0)
    >>> result.success > 0.9, result.baseline < 0.2
    (True, True)
    """
    parsed_defence = parse_defence(defence, epsilon)
    rng = random_generator(random_state).spawn(1)[0]  # independent of data drawn with the same seed
    blocks = simulate_blocks(_BLOCK_COUNT, int(rng.integers(2**32))) if data is None else _checked_blocks(data)
    published = _publish_tables(parsed_defence, blocks)
    prior = _public_prior(blocks, published)
    counts = reconstruct_blocks(published, blocks.sizes, prior)
    is_rebuilt = counts[blocks.block, blocks.cell_codes] > 0
    is_member = blocks.is_member
    details = _details(blocks, counts, is_rebuilt)
    if prior.noise_scale == 0:  # noisy tables have no exact solution
        unlikely_counts = reconstruct_blocks(
            published, blocks.sizes, replace(prior, rates=rng.permutation(1 / prior.rates))
        )
        details["blocks with a unique solution"] = float((counts == unlikely_counts).all(axis=1).mean())
    return AttackResult(
        attack="census",
        against=parsed_defence,
        metric="of people reconstructed with all traits",
        # A coin decides who is counted, so a member and a non-member differ by adding or removing one person.
        # People of one block share its noise, but given the reconstruction their traits are independent.
        evidence=EventEvidence(*(Proportion.from_outcomes(is_rebuilt[group]) for group in (is_member, ~is_member))),
        details=details,
        # People with a combination of traits that few others have count as rare.
        exposure=exposure_by_rarity(
            -np.bincount(blocks.cell_codes)[blocks.cell_codes[is_member]],
            is_rebuilt[is_member],
            labels=[f"row {row}" for row in np.flatnonzero(is_member)],
            rarity_label="rare traits",
        ),
    )


def suppress_small_cells(published: dict[TraitPair, np.ndarray]) -> dict[TraitPair, np.ndarray]:
    """Return the tables with cells of 1 and 2 replaced by NaN.

    >>> suppress_small_cells({("sex", "married"): np.array([[[0, 1], [2, 3]]])})["sex", "married"].tolist()
    [[[0.0, nan], [nan, 3.0]]]
    """
    return {pair: np.where(np.isin(table, SUPPRESSED_COUNTS), np.nan, table) for pair, table in published.items()}


def load(folder: Path) -> Blocks:
    """Read people of the American Community Survey and assign them to blocks of twelve; each is counted with
    probability 1/2.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - only for real data

    people = pq.read_table(data_file(folder, _FILE), columns=["sex", "age", "race", "married"])
    decade = np.clip(people["age"].to_numpy() // 10 - 1, 0, 7)
    other = {name: people[name].to_numpy() for name in ("sex", "race", "married")}
    traits = np.stack([other["sex"], decade, other["race"] - 1, other["married"]], axis=1)
    return assign_to_blocks(traits, dict(_TRAIT_SIZES), _REAL_SHAPE, random_state=0)


def _checked_blocks(data: Any) -> Blocks:
    if not isinstance(data, Blocks):
        raise TypeError(f"data must be Blocks(block, traits, sizes, is_member), not {type(data).__name__}")
    return data


def _publish_tables(defence: Defence, blocks: Blocks) -> dict[TraitPair, np.ndarray]:
    if defence.user_function is not None:
        return _checked_tables(defence.user_function(blocks.member_table), blocks)
    if defence.kind == CURATOR:
        return _private_tables(blocks.member_table, blocks, defence)
    exact = pair_tables(blocks.member_table, blocks.block_count, blocks.sizes)
    return suppress_small_cells(exact) if defence.kind == EASY else exact


def _public_prior(blocks: Blocks, published: dict[TraitPair, np.ndarray]) -> BlockPrior:
    """Return the public prior: the rates, the sizes of blocks, and the noise scale estimated from the tables."""
    size, noise = np.bincount(blocks.block), estimate_noise_scale(published)
    return BlockPrior(
        np.asarray(blocks.rates), expected_size=float(size.mean() / 2), max_size=int(size.max()), noise_scale=noise
    )


def _private_tables(members: pa.Table, blocks: Blocks, defence: Defence) -> dict[TraitPair, np.ndarray]:
    """Return private tables, each with an equal share of epsilon."""
    columns = {"block": integer_domain(blocks.block_count)} | {
        name: integer_domain(size) for name, size in blocks.sizes.items()
    }
    tables_by_pair = {}
    with dc.open(
        members, unit="row", budget=defence.curator_epsilon, columns=columns, groups=1, rows=1, ledger=":memory:"
    ) as curator:
        for first, second in blocks.trait_pairs:
            keys = f'block, "{first}", "{second}"'
            sql = f"SELECT {keys}, COUNT(*) AS n FROM data GROUP BY {keys} ORDER BY {keys}"  # noqa: S608 - names only
            answer = curator.ask(sql, epsilon=defence.curator_epsilon / len(blocks.trait_pairs))
            shape = (blocks.block_count, blocks.sizes[first], blocks.sizes[second])
            tables_by_pair[first, second] = answer.table["n"].to_numpy().reshape(shape)
    return tables_by_pair


def _checked_tables(returned: Any, blocks: Blocks) -> dict[TraitPair, np.ndarray]:
    shapes = {pair: (blocks.block_count, *(blocks.sizes[name] for name in pair)) for pair in blocks.trait_pairs}
    if not isinstance(returned, dict) or set(returned) != set(shapes):
        raise TypeError(f"the defence must return a dict of arrays with these shapes: {shapes}")
    return {pair: array_with_gaps(returned[pair], shape, f"the defence, for {pair},") for pair, shape in shapes.items()}


def _details(blocks: Blocks, counts: np.ndarray, is_rebuilt: np.ndarray) -> dict[str, Any]:
    truth = np.zeros_like(counts)
    np.add.at(truth, (blocks.block[blocks.is_member], blocks.cell_codes[blocks.is_member]), 1)
    size = truth.sum(axis=1)[blocks.block]
    small, large = blocks.is_member & (size <= _SMALL_BLOCK_SIZE), blocks.is_member & (size > _SMALL_BLOCK_SIZE)
    return {
        "blocks": blocks.block_count,
        "people counted": int(blocks.is_member.sum()),
        "combinations of traits": counts.shape[1],
        "people reconstructed, one to one": float(np.minimum(truth, counts).sum() / truth.sum()),
        "blocks reconstructed completely": float((truth == counts).all(axis=1).mean()),
        f"reconstructed in blocks of up to {_SMALL_BLOCK_SIZE}": float(is_rebuilt[small].mean())
        if small.any()
        else None,
        "reconstructed in larger blocks": float(is_rebuilt[large].mean()) if large.any() else None,
    }


ATTACK = Attack(
    run=census,
    docs_page="reconstruction",
    summary="Reconstructs the people of small census blocks from two-way tables.",
    without_defence="non-private tables of each block",
    with_easy_fix="the tables with cells of 1 and 2 people suppressed",
    with_curator="private tables, which cost epsilon together",
    built_in_data="50 simulated blocks of 3 to 12 people",
    data_files=(_FILE,),
    load=load,
)
