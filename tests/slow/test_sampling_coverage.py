"""Combined margins cover the population truth in 95 % of cases; equal groups are rarely called different."""

import pytest
from sampled_populations import coverage, false_positives, population

pytestmark = pytest.mark.slow

GROUPS = 20_000  # the standard deviation of a coverage of 95 % is 0.0015: the bounds are ten of them away


@pytest.mark.parametrize("measure", ["proportion", "mean", "total", "sum"])
@pytest.mark.parametrize("delta", ["", "delta = 1e-9"], ids=["laplace", "gaussian"])
@pytest.mark.parametrize(
    ("size", "share", "epsilon"), [(400, 0.5, 3), (200, 0.9, 100), (400, 0.25, 100)], ids=["noise", "most", "few"]
)
def test_combined_margins_cover_the_population(measure, delta, size, share, epsilon):
    found = coverage(population(measure, GROUPS, 1, size, share), epsilon, delta)
    print(f"{measure} {delta or 'pure'} size {size} share {share} epsilon {epsilon}: {found:.4f}")
    assert 0.93 <= found <= 0.97


@pytest.mark.parametrize("measure", ["proportion", "mean", "total", "sum"])
@pytest.mark.parametrize("delta", ["", "delta = 1e-9"], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("epsilon", [1, 100])
def test_equal_groups_are_called_different_in_at_most_five_percent(measure, delta, epsilon):
    found = false_positives(population(measure, GROUPS, 2, different=1), epsilon, delta)
    print(f"{measure} {delta or 'pure'} epsilon {epsilon}: {found:.4f}")
    assert found <= 0.05 + 0.012
