"""Every row of the mission that is claimed runs, and shows the number that it must."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import mission.anonymity  # noqa: E402
import mission.attack_exposed  # noqa: E402
import mission.attack_facts  # noqa: E402
import mission.attack_membership  # noqa: E402
import mission.attack_models  # noqa: E402
import mission.attack_queries  # noqa: E402
import mission.attack_reconstruction  # noqa: E402
import mission.attack_tables  # noqa: E402
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
    "A6": r"exact frequencies AUC 0\.9\d\d \(\d+% found .*; the curator by epsilon 1/10: 0\.[3-6]\d \(allowed 0\.52\)",
    "A7": r"1,000 Californians, from 4,000 counts: 100\.0% right, 100\.0% if .*, [3-6]\d\.\d% from the curator at "
    r"epsilon 1 \(guessing: 54\.9%\); people in 60 blocks .*: 100% rebuilt .* 100% without cells of 1 and 2",
    "A8": r"is off by \de-(09|1\d) at most, and 100% are told .* private at epsilon 1 together: off by [\d,]{3,} .* "
    r"[3-7]\d\.\d% of secrets found \(coin 50 %, allowed 73\.1%\)",
    "A14": r"leave 3 and 4 values possible, together 1: AIDS; of 1,500 .* 63 values are certain by one, 137 by both",
    "A15": r"^16 attacks, most common tenth → rarest, without a defence: pseudonyms 100% → 100%.*differencing 74% → "
    r"100%.*likelihood_ratio \d\d% → 100%.*members beyond strangers: \+0\.3\d\d",
    "B1": r"^120,402 of 135,000 made-up patients named, 125 wrongly, .* three known ratings single out 5\d\d of 610 "
    r"viewers; eight, .* name 610 and 0 wrongly; counts of the curator at 1/10: \d\d?\.\d%",
    "B2": r"likelihood ratio 0\.9\d / 0\.9\d / 1\.00, Homer's score 0\.(89|9\d) / 0\.9\d / 1\.00; .* at epsilon 1 "
    r"0\.[4-6]\d / 0\.[4-6]\d / 0\.[4-6]\d$",
    "B3": r"^exact: (9\d|100)% of 120 pictures of digits recognised .* one person .* in (8|9)\d% .*private at epsilon "
    r"4",
    "D1": r"d = 2,000, n = 100: 1\.00 / 0\.9\d / 0\.[56]\d / 0\.[45]\d; .* curator's noise at epsilon 1 is \d\.\d "
    r"times",
    "D2": r"^(1\.000|0\.99\d) / 0\.9[5-7]\d / 0\.8[0-4]\d / 0\.6[5-9]\d of the bits at noise 1/8, 1/4, 1/2, 1 "
    r".*0\.5\d\d at "
    r"8 times .*linear programme 0\.9\d\d at 1/4",
    "D3": r"^a reconstruction with 9\d\.\d% of the bits right tells 9\d\.\d% of the members .* finds 9\d\.\d% of "
    r"members "
    r".* rebuilds 9\d\.\d% of the bits",
    "D4": r"^shadow: AUC 0\.[89]\d\d.*epsilon 1: 0\.[45]\d\d.*likelihood_ratio: AUC 0\.9\d\d, [6-9]\d\.\d% of members "
    r"found .* "
    r"epsilon 1: 0\.[45]\d\d",
    "D5": r"^3,524 patients, most frequent genotype 0\.356: least squares 0\.58\d of members, 0\.5[78]\d of "
    r"strangers, .* "
    r"private at epsilon 1 0\.[45]\d\d of members, 0\.[45]\d\d of strangers",
    "E2": r"differencing 100\.0% → [2-7]\d\.\d%.*averaging 100\.0% → [2-7]\d\.\d%.*rephrasing (9\d|100)\.\d% → "
    r"[2-7]\d\.\d%",
    "E3": r"^AUC against forest 0\.[89]\d\d, network 0\.[67]\d\d; against a private logistic regression, epsilon 1: "
    r"0\.[45]\d\d$",
    "E4": r"^2,000 patients, five grades, imputed 3\d\.\d%: forest [67]\d\.\d% right of members and 2\d\.\d% of "
    r"strangers, exact .* 4\d\.\d% right of members and 2\d\.\d% .*private at epsilon 1, [23]\d\.\d% right of members",
    "E11": r"gap 0\.\d\d → 0\.[34]\d, AUC 0\.[45]\d → (0\.9\d|1\.00) over 18 models, correlation 0\.[6-9]\d",
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
