import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet import attacks
from discreet.attacks.aggregates import block_reconstruction
from discreet.attacks.aggregates.block_reconstruction import BlockPrior, design_matrix, reconstruct_blocks
from discreet.attacks.aggregates.census import ATTACK, census, pair_tables, suppress_small_cells
from discreet.attacks.data.blocks import Blocks, assign_to_blocks, combination_rates, read_blocks, simulate_blocks

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
SURE = 1 - 1e-9  # intervals of the tests that meet real noise
SIZES = {"sex": 2, "married": 2}


@pytest.fixture(scope="module")
def town():
    return simulate_blocks(16, random_state=0)


@pytest.fixture(scope="module")
def exact(town):
    return census(town, random_state=0)


@pytest.fixture(scope="module")
def easy(town):
    return census(town, defence="easy", random_state=0)


def _noisy(town, scale):
    """A defence that adds noise of this scale to every cell."""
    exact = pair_tables(town.member_table, town.block_count, town.sizes)
    return lambda members: {pair: dc.Laplace(scale).perturb(table) for pair, table in exact.items()}


def test_tables_of_pairs_disclose_people_with_all_their_traits(exact):
    assert exact.success > 0.9
    assert exact.baseline < 0.25
    assert exact.details["reconstructed in blocks of up to 5"] == 1
    assert exact.implied.low > 1


def test_hiding_small_cells_hides_hardly_anybody(easy):
    assert easy.success > 0.88
    assert easy.details["blocks with a unique solution"] > 0.3


def test_no_table_contains_three_traits_of_anybody(town):
    """What is published never has more than two traits: the rest is deduced."""
    assert all(table.ndim == 3 for table in pair_tables(town.member_table, town.block_count, town.sizes).values())


@pytest.mark.long
@pytest.mark.parametrize("epsilon", ["1/10", 1])
def test_the_curators_tables_do_not_distinguish_members_from_non_members(town, epsilon):
    result = census(town, defence="curator", epsilon=epsilon, random_state=0)
    assert result.evidence.implied(confidence=SURE).low <= float(result.epsilon)
    assert result.success < 0.6
    assert result.details["blocks reconstructed completely"] < 0.3


def test_the_curator_spends_epsilon_on_all_tables_together(town, monkeypatch):
    spent, close = [], dc.Curator.__exit__

    def closing(self, *error):
        spent.append(self.budget().spent)
        return close(self, *error)

    monkeypatch.setattr(dc.Curator, "__exit__", closing)
    census(simulate_blocks(3, random_state=0), defence="curator", epsilon=2, random_state=0)
    assert spent[0].epsilon == 2


@pytest.mark.long
def test_noise_that_is_far_too_small_is_caught(town):
    result = census(town, defence=_noisy(town, "1/4"), epsilon="1/10", random_state=0)
    assert result.evidence.implied(confidence=SURE).low > 0.1


def test_noise_is_visible_in_the_tables_themselves(town):
    for scale in (1, 60):
        assert 0.4 * scale < block_reconstruction.estimate_noise_scale(_noisy(town, scale)(None)) < 1.3 * scale


@pytest.mark.long
def test_a_custom_defence_may_hide_cells(town, easy):
    own = census(
        town,
        defence=lambda members: suppress_small_cells(pair_tables(members, town.block_count, town.sizes)),
        random_state=0,
    )
    assert own.success == easy.success
    assert own.defence == "own"


def test_non_members_are_in_no_table(town):
    assert town.member_table.num_rows == town.is_member.sum()
    total = sum(pair_tables(town.member_table, town.block_count, town.sizes)["sex", "married"].ravel())
    assert total == town.is_member.sum()


def test_a_solution_fits_all_exact_tables(town):
    exact = pair_tables(town.member_table, town.block_count, town.sizes)
    known = BlockPrior(town.rates, expected_size=8, max_size=24, noise_scale=0)
    counts = reconstruct_blocks(exact, town.sizes, known)
    matrix = design_matrix(town.sizes, town.trait_pairs)
    seen = np.concatenate([table.reshape(town.block_count, -1) for table in exact.values()], axis=1)
    assert np.array_equal(counts @ matrix.T.toarray(), seen)


def test_prior_rates_matter_only_as_much_as_tables_are_noisy():
    low = np.full(6, 2.0)
    exact, noisy = (BlockPrior(np.ones(1), expected_size=8, max_size=24, noise_scale=noise) for noise in (0, 1000))
    assert block_reconstruction._size_bounds(low, low, exact, tables=1) == [12, 12]
    assert block_reconstruction._size_bounds(low, low, noisy, tables=1) == [8, 8]


def test_the_rarest_people_are_reported(exact):
    assert len(exact.exposure.deciles) == 10
    assert exact.exposure.rarest_hit[0].startswith("row ")


@pytest.mark.long
def test_reconstruct_takes_blocks_too_and_results_are_repeatable(town, exact):
    assert attacks.reconstruct(town, random_state=0) == exact
    with pytest.raises(TypeError, match="only to Secrets"):
        attacks.reconstruct(town, noise=1)


def test_the_attack_is_listed_with_its_data():
    assert (ATTACK.name, ATTACK.docs_page, ATTACK.data.files) == ("census", "reconstruction", ("pums_10000.parquet",))


def test_rates_come_from_other_people_and_none_is_zero():
    people = np.tile([[0, 1]], (50, 1))
    town = assign_to_blocks(people, SIZES, shape=(4, 10), random_state=0)
    assert town.rates.argmax() == 1
    assert (combination_rates(people, SIZES) > 0).all()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"traits": [[0], [1]]}, ValueError, "one column per entry of sizes"),
        ({"block": [0]}, ValueError, "one entry per person"),
        ({"block": [0.5, 1]}, TypeError, "non-negative integers"),
        ({"traits": [[0, 2], [0, 1]]}, ValueError, "below its size"),
        ({"is_member": [True, True]}, ValueError, "is_member .* non-members"),
        ({"rates": [1, 1]}, ValueError, "rates must be 4 positive numbers"),
    ],
)
def test_invalid_blocks_are_refused(change, error, words):
    good = {"block": [0, 0], "traits": [[0, 1], [1, 1]], "sizes": SIZES, "is_member": [True, False]}
    assert Blocks(**good).block_count == 1
    with pytest.raises(error, match=words):
        Blocks(**(good | change))


def test_other_data_and_other_tables_are_refused(town):
    with pytest.raises(TypeError, match="data must be Blocks"):
        census([1, 2])
    with pytest.raises(TypeError, match="must return a dict of arrays"):
        census(town, defence=lambda members: {("sex", "married"): members.num_rows})


def test_a_folder_without_the_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"pums_10000\.parquet"):
        read_blocks(tmp_path)


def test_people_are_counted_in_tables_by_block():
    members = pa.table({"block": [0, 1, 1], "sex": [0, 1, 1], "married": [1, 0, 0]})
    assert pair_tables(members, 2, SIZES)["sex", "married"].tolist() == [[[0, 1], [0, 0]], [[0, 0], [2, 0]]]


@pytest.mark.long
@pytest.mark.skipif(not (DATA / "pums_10000.parquet").exists(), reason="needs pums_10000 in DISCREET_DATA")
def test_americans_in_small_blocks_are_reconstructed():
    people = read_blocks(DATA)
    assert census(people, random_state=0).success == 1
    private = census(people, defence="curator", epsilon=1, random_state=0)
    assert private.evidence.implied(confidence=SURE).low <= 1
    assert private.details["blocks reconstructed completely"] < 0.2
