"""Audits of whole publications, thousands of each: two tables that add up and synthetic rows stay below their claim."""

import sys
from pathlib import Path

import pytest

from discreet import audit
from discreet.kernel.loss import Budget

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.broken import publishers

pytestmark = pytest.mark.slow
CROWD = [(person, person % 2, person % 3) for person in range(8)]
NEIGHBOURS = {
    "two rows": [*CROWD, (8, 0, 0), (8, 0, 0)],
    "two different rows": [*CROWD, (8, 0, 0), (8, 1, 2)],
    "fifty rows": [*CROWD, *[(8, 0, 0)] * 50],
}
CLAIMS = {
    "pure": ("epsilon = 100", publishers.EPSILON),
    "Gaussian": ("epsilon = 100\ndelta = 0.01", Budget(publishers.EPSILON, delta="0.01")),
}


@pytest.mark.parametrize("here", NEIGHBOURS.values(), ids=NEIGHBOURS)
@pytest.mark.parametrize(("budget", "claim"), CLAIMS.values(), ids=CLAIMS)
def test_thousands_of_publications_disclose_no_more_about_one_unit_than_they_claim(budget, claim, here):
    sound = publishers.Sound(budget)
    result = audit.measure(
        lambda rows: tuple(sound.told(rows)), here, CROWD, claim=claim, runs=600, confidence=1 - 1e-9
    )
    likely = audit.measure(
        lambda rows: tuple(sound.tables(publishers.Rows(rows))), here, CROWD, claim=claim, runs=4_000
    )
    print(f"whole release: epsilon above {result.epsilon_low:.2f}; its tables alone: {likely.epsilon_low:.2f} of 1")
    assert result.holds
    assert likely.epsilon_low > 0, "or it would be no test"
