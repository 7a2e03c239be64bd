"""Census reconstruction: the people of small blocks from the tables published about them."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.aggregates.block_reconstruction import (
    SUPPRESSED_COUNTS,
    BlockPrior,
    TraitPair,
    estimate_noise_scale,
    reconstruct_blocks,
)
from discreet.attacks.attack import (
    CURATOR,
    EASY,
    NOTHING,
    Attack,
    AttackResult,
    DefenceChoice,
    DefenceRelease,
    EventEvidence,
    Game,
    Number,
)
from discreet.attacks.data.blocks import BLOCKS, Blocks
from discreet.attacks.validation import finite_array, integer_domain

_SMALL_BLOCK_SIZE = 5
Tables = dict[TraitPair, np.ndarray]  # block × first trait × second trait


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
    return ATTACK.run(data, defence, epsilon, random_state)


def _play(game: Game) -> AttackResult:
    blocks, published = game.data, game.release()
    prior = _public_prior(blocks, published)
    counts = reconstruct_blocks(published, blocks.sizes, prior)
    is_rebuilt, is_member = counts[blocks.block, blocks.cell_codes] > 0, blocks.is_member
    details = _details(blocks, counts, is_rebuilt)
    if prior.noise_scale == 0:  # noisy tables have no exact solution
        unlikely = replace(prior, rates=game.rng.permutation(1 / prior.rates))
        unlikely_counts = reconstruct_blocks(published, blocks.sizes, unlikely)
        details["blocks with a unique solution"] = float((counts == unlikely_counts).all(axis=1).mean())
    return game.result(
        "of people reconstructed with all traits",
        # A coin decides who is counted, so a member and a non-member differ by adding or removing one person.
        # People of one block share its noise, but given the reconstruction their traits are independent.
        EventEvidence.from_outcomes(is_rebuilt[is_member], is_rebuilt[~is_member]),
        details,
        hit=is_rebuilt[is_member],
        rarity=-np.bincount(blocks.cell_codes)[blocks.cell_codes[is_member]],  # few others have the same traits
        rarity_label="rare traits",
        labels=[f"row {row}" for row in np.flatnonzero(is_member)],
    )


def suppress_small_cells(published: Tables) -> Tables:
    """Return the tables with cells of 1 and 2 replaced by NaN.

    >>> suppress_small_cells({("sex", "married"): np.array([[[0, 1], [2, 3]]])})["sex", "married"].tolist()
    [[[0.0, nan], [nan, 3.0]]]
    """
    return {pair: np.where(np.isin(table, SUPPRESSED_COUNTS), np.nan, table) for pair, table in published.items()}


def pair_tables(members: pa.Table, blocks: int, sizes: dict[str, int]) -> Tables:
    """Return the exact two-way tables: the number of people by block and two traits.

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


def _exact_tables(game: Game) -> Tables:
    return pair_tables(game.data.member_table, game.data.block_count, game.data.sizes)


def _public_prior(blocks: Blocks, published: Tables) -> BlockPrior:
    """Return the public prior: the rates, the sizes of blocks, and the noise scale estimated from the tables."""
    size, noise = np.bincount(blocks.block), estimate_noise_scale(published)
    return BlockPrior(
        np.asarray(blocks.rates), expected_size=float(size.mean() / 2), max_size=int(size.max()), noise_scale=noise
    )


def _private_tables(game: Game) -> Tables:
    """Return private tables, each with an equal share of epsilon."""
    blocks, tables = game.data, {}
    columns = {name: integer_domain(size) for name, size in {"block": blocks.block_count, **blocks.sizes}.items()}
    people = blocks.member_table
    with dc.open(
        people, unit="row", budget=game.epsilon, columns=columns, groups=1, rows=1, ledger=":memory:"
    ) as curator:
        for first, second in blocks.trait_pairs:
            keys = f'block, "{first}", "{second}"'
            sql = f"SELECT {keys}, COUNT(*) AS n FROM data GROUP BY {keys} ORDER BY {keys}"  # noqa: S608 - names only
            answer = curator.ask(sql, epsilon=game.epsilon / len(blocks.trait_pairs))
            shape = (blocks.block_count, blocks.sizes[first], blocks.sizes[second])
            tables[first, second] = answer.table["n"].to_numpy().reshape(shape)
    return tables


def _user_tables(game: Game) -> Tables:
    blocks, returned = game.data, game.ask_user(game.data.member_table)
    shapes = {pair: (blocks.block_count, *(blocks.sizes[name] for name in pair)) for pair in blocks.trait_pairs}
    if not isinstance(returned, dict) or set(returned) != set(shapes):
        raise TypeError(f"the defence must return a dict of arrays with these shapes: {shapes}")
    return {
        pair: finite_array(returned[pair], shape, f"the defence, for {pair},", may_withhold=True)
        for pair, shape in shapes.items()
    }


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
    function=census,
    docs_page="reconstruction",
    summary="Reconstructs the people of small census blocks from two-way tables.",
    data=BLOCKS,
    releases={
        NOTHING: DefenceRelease("non-private tables of each block", _exact_tables),
        EASY: DefenceRelease(
            "the tables with cells of 1 and 2 people suppressed", lambda game: suppress_small_cells(_exact_tables(game))
        ),
        CURATOR: DefenceRelease("private tables, which cost epsilon together", _private_tables),
    },
    own=_user_tables,
    play=_play,
    is_independent=True,
)
