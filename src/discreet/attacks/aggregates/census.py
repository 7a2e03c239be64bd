"""A census rebuilt: the people of small blocks from the tables that were published of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.aggregates.blocks import Blocks, Pair, drawn, settled, tables
from discreet.attacks.aggregates.fields import below, numbers_or_gaps
from discreet.attacks.aggregates.rebuilding import HIDDEN, Knowledge, noise_in, rebuild
from discreet.attacks.checking import file_in, generator
from discreet.attacks.defences import CURATOR, EASY, Defence, Shield, shield
from discreet.attacks.evidence import Found
from discreet.attacks.listing import Attack
from discreet.attacks.rarity import exposure
from discreet.attacks.result import AttackResult
from discreet.audit.counting import Share
from discreet.kernel.exact import Number

_BLOCKS = 50
_SMALL = 5
_FILE = "pums_10000.parquet"
_REAL = (60, 12)  # blocks, and people in each, of whom about six are counted
_SIZES = {"sex": 2, "decade": 8, "race": 6, "married": 2}


def census(
    data: Blocks | None = None,
    *,
    defence: Defence = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
) -> AttackResult:
    """Rebuild people with all their traits from tables of every two traits in each block.

    `data` are `Blocks`, 50 that are drawn unless given. Published are the exact tables ("nothing"); the tables without
    their cells of 1 and 2 ("easy"); private tables, which cost epsilon together ("curator"); or what a function of
    yours makes of the table of people counted: an array for every two traits, by block and by both, with NaN for hidden
    cells. Somebody is rebuilt if there is a person with all their traits in the block that the attack puts together;
    guessing is how often that happens to strangers who were not counted.

    >>> found = census(random_state=0)
    >>> found.success > 0.9, found.baseline < 0.2
    (True, True)
    """
    protected = shield(defence, epsilon)
    rng = generator(random_state).spawn(1)[0]  # apart from data that were drawn from the same number
    blocks = drawn(_BLOCKS, int(rng.integers(2**32))) if data is None else _checked(data)
    published = _published(protected, blocks)
    known = _known(blocks, published)
    counts = rebuild(published, blocks.sizes, known)
    hit = counts[blocks.block, blocks.cells] > 0
    inside = blocks.inside
    details = _details(blocks, counts, hit)
    if known.noise == 0:  # of noisy tables no solution is exact, so none is the only one
        least = rebuild(published, blocks.sizes, replace(known, rates=rng.permutation(1 / known.rates)))
        details["blocks with one solution only"] = float((counts == least).all(axis=1).mean())
    return AttackResult(
        attack="census",
        shield=protected,
        metric="of the people were rebuilt with all traits",
        # A coin decided who is counted, so a member and a stranger differ by a removal: what epsilon is promised for.
        # People of one block share its noise; given what was rebuilt, their traits are independent all the same.
        evidence=Found(*(Share.of(hit[group]) for group in (inside, ~inside))),
        details=details,
        # How rare somebody's combination of traits is among all people there are.
        exposure=exposure(
            -np.bincount(blocks.cells)[blocks.cells[inside]],
            hit[inside],
            labels=[f"row {row}" for row in np.flatnonzero(inside)],
            by="rarity of their traits",
        ),
    )


def hide(published: dict[Pair, np.ndarray]) -> dict[Pair, np.ndarray]:
    """Return tables without their small cells: 1 and 2 become NaN.

    >>> hide({("sex", "married"): np.array([[[0, 1], [2, 3]]])})["sex", "married"].tolist()
    [[[0.0, nan], [nan, 3.0]]]
    """
    return {pair: np.where(np.isin(table, HIDDEN), np.nan, table) for pair, table in published.items()}


def load(folder: Path) -> Blocks:
    """Read people of the American Community Survey, and settle them in blocks of twelve, of whom a coin counts half."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only for real data

    people = pq.read_table(file_in(folder, _FILE), columns=["sex", "age", "race", "married"])
    decade = np.clip(people["age"].to_numpy() // 10 - 1, 0, 7)
    other = {name: people[name].to_numpy() for name in ("sex", "race", "married")}
    traits = np.stack([other["sex"], decade, other["race"] - 1, other["married"]], axis=1)
    return settled(traits, dict(_SIZES), _REAL, random_state=0)


def _checked(data: Any) -> Blocks:
    if not isinstance(data, Blocks):
        raise TypeError(f"data must be Blocks(block, traits, sizes, inside), not {type(data).__name__}")
    return data


def _published(protected: Shield, blocks: Blocks) -> dict[Pair, np.ndarray]:
    if protected.make is not None:
        return _as_published(protected.make(blocks.members), blocks)
    if protected.word == CURATOR:
        return _private(blocks.members, blocks, protected)
    exact = tables(blocks.members, blocks.count, blocks.sizes)
    return hide(exact) if protected.word == EASY else exact


def _known(blocks: Blocks, published: dict[Pair, np.ndarray]) -> Knowledge:
    """Return what is public: the rates, how large blocks are, and the noise that the tables show themselves to have."""
    size, noise = np.bincount(blocks.block), noise_in(published)
    return Knowledge(np.asarray(blocks.rates), usual=float(size.mean() / 2), most=int(size.max()), noise=noise)


def _private(members: pa.Table, blocks: Blocks, protected: Shield) -> dict[Pair, np.ndarray]:
    """Ask the curator for every table, each at an equal part of epsilon."""
    columns = {"block": below(blocks.count)} | {name: below(size) for name, size in blocks.sizes.items()}
    found = {}
    with dc.open(
        members, unit="row", budget=protected.price, columns=columns, groups=1, rows=1, ledger=":memory:"
    ) as curator:
        for first, second in blocks.pairs:
            keys = f'block, "{first}", "{second}"'
            sql = f"SELECT {keys}, COUNT(*) AS n FROM data GROUP BY {keys} ORDER BY {keys}"  # noqa: S608 - names only
            answer = curator.ask(sql, epsilon=protected.price / len(blocks.pairs))
            shape = (blocks.count, blocks.sizes[first], blocks.sizes[second])
            found[first, second] = answer.table["n"].to_numpy().reshape(shape)
    return found


def _as_published(made: Any, blocks: Blocks) -> dict[Pair, np.ndarray]:
    shapes = {pair: (blocks.count, *(blocks.sizes[name] for name in pair)) for pair in blocks.pairs}
    if not isinstance(made, dict) or set(made) != set(shapes):
        raise TypeError(f"the defence must return a dict of arrays of these shapes: {shapes}")
    return {pair: numbers_or_gaps(made[pair], shape, f"the defence, of {pair},") for pair, shape in shapes.items()}


def _details(blocks: Blocks, counts: np.ndarray, hit: np.ndarray) -> dict[str, Any]:
    truth = np.zeros_like(counts)
    np.add.at(truth, (blocks.block[blocks.inside], blocks.cells[blocks.inside]), 1)
    size = truth.sum(axis=1)[blocks.block]
    small, large = blocks.inside & (size <= _SMALL), blocks.inside & (size > _SMALL)
    return {
        "blocks": blocks.count,
        "people counted": int(blocks.inside.sum()),
        "combinations of traits": counts.shape[1],
        "people rebuilt, each once": float(np.minimum(truth, counts).sum() / truth.sum()),
        "blocks rebuilt whole": float((truth == counts).all(axis=1).mean()),
        f"rebuilt in blocks of up to {_SMALL}": float(hit[small].mean()) if small.any() else None,
        "rebuilt in larger blocks": float(hit[large].mean()) if large.any() else None,
    }


ATTACK = Attack(
    run=census,
    topic="reconstruction",
    says="Rebuilds the people of small blocks from tables of every two traits.",
    nothing="the exact tables of each block",
    easy="the same tables without the cells of 1 and 2 people",
    curator="the same tables as private counts: all of them together cost epsilon",
    built_in="50 blocks of 3 to 12 people, drawn",
    files=(_FILE,),
    load=load,
)
