"""The numbers on the page for owners are those that the code computes."""

import re
from pathlib import Path

import discreet as dc

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "choosing.md").read_text()


def beliefs():
    """Return the table of beliefs: the prior of each row, and what it says for each epsilon."""
    head, *rows = re.findall(r"^\| (?:belief|1 in) .*\|$", PAGE, re.MULTILINE)
    epsilons = re.findall(r"\d+(?:\.\d+)?", head)
    for row in rows:
        first, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        yield "1/" + first.removeprefix("1 in ").replace(",", ""), dict(zip(epsilons, cells, strict=True))


def test_the_table_of_posterior_bounds_follows_from_the_definition():
    found = dict(beliefs())
    assert list(found) == ["1/2", "1/10", "1/1000"]
    for prior, cells in found.items():
        assert list(cells) == ["0.1", "0.5", "1", "2", "4"]
        for epsilon, cell in cells.items():
            assert cell == f"{100 * dc.privacy.posterior_bound(prior, epsilon):.3g} %"


def test_about_eighty_queries_at_a_tenth_of_epsilon_fit_with_a_delta():
    for epsilon in (1, 2, 4):
        limit = dc.Budget(epsilon, delta="1e-9")
        assert 75 <= limit.rho / dc.privacy.cost_of(limit, dc.Budget(epsilon).epsilon / 10).rho <= 100
