"""Every row of the mission that is claimed runs, and shows the number that it must."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import mission.anonymity  # noqa: E402
import mission.curator  # noqa: E402
import mission.habit  # noqa: E402
import mission.kernel  # noqa: E402
import mission.learning  # noqa: E402
import mission.local  # noqa: E402
import mission.tradeoff  # noqa: E402, F401
from mission.rows import ORDER, ROWS, NeedsDataError  # noqa: E402

# What each row must show; numbers that noise decides are matched by their shape.
MUST_SHOW = {
    "A1": r"^MD5: 13,223 of 14,144 opened by trying 26,000 numbers in \d+\.\d\d s, trips of 11 taxis with them, one "
    r"day of 57 and 770 dollars; keyed pseudonyms of the same 13,223: 0 opened$",
    "A2": r"^29,928 of 30,000 fit one name only, 29,928 of them the right one; .* \(3-anonymous\) 0, .* right in 33\.3%"
    r"; but 363 share the diagnosis of all like them$",
    "A3": r"tables: 4- and 6-anonymous; 30,162 rows of Adult by 8 columns in \d+\.\d s: k 1 → [5-9], l 1 → 2, t 0\.75 "
    r"→ 0\.[0-5]\d, rows alone 14,021 → 0, \d\.\d% of the information lost$",
    "A4": r"^first table: rows 9-12, l = 1; second: none, l = 3$",
    "A5": r"^exact: 60 of 60 people found out; private at epsilon 1/100 \(± 993\): ([7-9]|[1-4][0-9]|5[0-3]) of 60",
    "B4": r"^a bit by two coins: [12]\d\.\d% ± 0\.\d% .*GRR at epsilon 1: ± 1\.1\d%, .* within [0-7]\.\d deviations of "
    r"0, (9\d|100)\.\d% inside.*OUE at epsilon 1: ± 1\.2\d%, .* within [0-7]\.\d deviations of 0, (9\d|100)\.\d%",
    "B5": r"NoisyMean ± 1,75\d, inside in ([7-9]\d|100)%.*Duchi ± 1,3[23]\d.*Piecewise ± 1,2[45]\d.*Hybrid ± 1,28\d.* "
    r"2\.0\d times that$",
    "B6": r"^ask: 8 wards, n ± \d+ as explained beforehand, 0\.\d+% of the budget .*refused \(line 1, SELECT\)",
    "B8": r"^epsilon 1/10: count ± 30, attack right in [3-6]\d\.\d% \(ceiling 52\.5%\); epsilon 1: count ± 3, attack "
    r"right in [4-7]\d\.\d% \(ceiling 73\.1%\); epsilon 3: count ± 1, attack right in [5-8]\d\.\d% \(ceiling 95\.3%\)",
    "C10": r"row: seen on day 1 \((8\d|9\d|100)\.\d% right\); person-day: [4-7]\d\.\d% on day 1, seen after 10 days "
    r"\((8\d|9\d|100)\.\d%\); person: hidden, [4-7]\d\.\d% after 60 days \(ceiling 62\.2%\)$",
    "D7": r"1: n ≥ 10, 1/10: n ≥ 938, 1/100: n ≥ 93,711 \(in 40,000 surveys of 938: sampling ± 3\.\d%, noise ± 3\.\d%, "
    r"at 95 %\).*: [7-9]\d%, [5-7]\d%, [45]\d% right: \[picture\]",
    "C4": r"event level 0\.[89]\d\d \(0\.9\d\d for .* user level 0\.9\d\d \(.*the same for every film 1\.0\d\d",
    "E1": r"^exact parameters: the person's place to 0\.000; private at epsilon 1: nearest mean at \d+\.\d with",
    "E6": r"epsilon \.5 / 1 / 4: GGG -\d\.\d+ / -\d\.\d+ / -\d\.\d+, LLG -\d\.\d+ / -\d\.\d+ / -\d\.\d+$",
    "E7": r"at epsilon 1: linear 371, advanced 228, zcdp 43; mean gap at epsilon",
    "E8": r"^gap at epsilon \.5 / 1 / 4: -[1-9]\.\d+ / -[1-9]\.\d+ / -[1-9]\.\d+$",
    "E9": r"held-out people's check-ins: [34]\.\d\d at epsilon 1 and 4\.\d\d at epsilon 4, .* exact, by check-ins, 4\.",
    "E10": r": -?0\.0\d\d / -?0\.0\d\d / -?0\.0\d\d$",
    "A9": r"max divergence inf$",
    "A10": r"worst log-ratio 1/10$",
    "A11": r"^removal 1/10, replacement 1/5$",
    "A12": r"1/10 → 7/10; rho 1/200 → 49/200$",
    "A13": r"at most 0\.52498$",
    "B7": r"sensitivity 1; Laplace of scale 1/epsilon$",
    "C2": r"^epsilon 1\.098612 \(ln 3 = 1\.098612\); p = 1/5: expected yes 7/20 = 1/4 \+ p/2",
    "C3": r"max divergence inf, delta at epsilon 1/2 0\.000497763; Laplace, scale 5: max divergence 1/5$",
    "C5": r"0\.333333 → 0\.333333; 1/3 \+ 1/7 = 10/21, delta 3/1000000000; group of 3: 10/7$",
    "C6": r"^± 12 \(ln\(10000/0\.05\) = 12\.21\); all inside in 9\d\.\d% of 1,000 releases",
    "C7": r"e-0[78] above the analytic sigma, 20\.3% below the classic; the classic at epsilon 10 has delta 1\.9e-06",
    "C8": r"^epsilon 1: \.311 / \.264 / \.264 / \.161; revenue with 4, 40, 400 bidders: 70\.8%, 93\.0%, 100\.0%",
    "C9": r"is constant to [0-9]e[-+]\d\d$",
    "D6": r"mean 1/5, median 1, variance 4/25, sample variance 1/5; n = 4: median 1/2; 9 of 9 equal the enumeration$",
    "E5": r"0\.112 / 0\.888, log-ratio 2\.07, epsilon 3; .*0\.423 / 0\.577, log-ratio 0\.31, epsilon 1/3$",
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_row_shows_its_number(row):
    try:
        seen = row.run()
    except NeedsDataError as error:
        pytest.skip(f"needs {error}")
    assert re.search(MUST_SHOW[row.id], seen), seen


def test_the_page_lists_every_row_once():
    page = (ROOT / "docs" / "mission.md").read_text()
    assert sorted(row.id for row in ROWS) == sorted(MUST_SHOW)
    for row in ROWS:
        assert row.id in ORDER
        assert page.count(f"| `python -m mission {row.id}` |") == 1
