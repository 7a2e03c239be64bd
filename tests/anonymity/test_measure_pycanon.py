"""measure() agrees with what pycanon found on twelve tables, but for what pycanon defines in its own way.

pycanon_numbers.json has its numbers: it needs older libraries than these tests run with. Where it differs:

    entropy l    it cuts off what is behind the point, and may lose a whole by rounding before that
    (c, l)       it divides by the rarest value's count, where the definition has the most frequent one's
    enhanced     it gives min(beta, -ln of the smallest share) without asking whether a value breaks its own limit
    nulls        it leaves out rows with null in a quasi-identifying column; the tables here have none
"""

import json
import math
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from discreet.anonymity import measure
from tests.anonymity.samples import SETS, sample

SAID = json.loads((Path(__file__).parent / "pycanon_numbers.json").read_text())["sets"]


@pytest.mark.parametrize("name", SETS)
def test_the_numbers_are_those_of_pycanon(name):
    quasi, sensitive = SETS[name]
    columns = sample(name)
    risk = measure(pa.table(columns), quasi, sensitive)
    assert (risk.rows, risk.k) == (SAID[name]["rows"], SAID[name]["k"])
    for found in risk.sensitive:
        said = SAID[name]["sensitive"][found.column]
        assert found.l == said["l"]
        assert math.floor(found.entropy_l) == said["entropy_l"]
        for measured in ("alpha", "beta", "delta", "t"):
            assert getattr(found, measured) == pytest.approx(said[measured], rel=1e-9)
        rarest = min(Counter(columns[found.column]).values()) / risk.rows
        assert min(found.beta, -math.log(rarest)) == pytest.approx(said["enhanced_beta"], rel=1e-9)
        assert found.enhanced_beta in (found.beta, math.inf)


def test_every_data_set_has_expected_numbers():
    assert set(SAID) == set(SETS)
    assert len(SETS) >= 10
