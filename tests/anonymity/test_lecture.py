"""The two tables of the lecture, typed as they are printed there: k, homogeneity, and what both tell together."""

import sys
from pathlib import Path

import pyarrow as pa
import pytest

from discreet.anonymity import measure

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from mission import lecture  # noqa: E402

FIRST = """
130**|<30||AIDS
130**|<30||Heart Disease
130**|<30||Viral Infection
130**|<30||Viral Infection
130**|≥40|•|Cancer
130**|>40||Heart Disease
130**|>40|•|Viral Infection
130**|≥40|•|Viral Infection
130**|3*|•|Cancer
130**|3*|•|Cancer
130**|3*||Cancer
130**|3*||Cancer
"""
SECOND = """
130**|<35|*|AIDS
130**|<35|*|Tuberculosis
130**|<35|*|Flu
130**|<35|*|Tuberculosis
130**|<35||Cancer
130**|<35|•|Cancer
130**|>35|*|Cancer
130**|>35|*|Cancer
130**|>35|*|Cancer
130**|>35||Tuberculosis
130**|>35||Viral Infection
130**|>35|*|Viral Infection
"""


def read(text):
    """Read a blank and a bullet as *, and both ways to write forty as one."""
    rows = [line.split("|") for line in text.strip().splitlines()]
    names = ("zip", "age", "nationality", "condition")
    return pa.Table.from_pylist(
        [
            {
                **dict(zip(names, row, strict=True)),
                "age": row[1].replace("≥40", ">=40").replace(">40", ">=40"),
                "nationality": "*",
            }
            for row in rows
            if row[2] in {"", "•", "*"}
        ]
    )


@pytest.mark.parametrize(("text", "table"), [(FIRST, lecture.first), (SECOND, lecture.second)])
def test_the_mission_has_the_tables_of_the_lecture(text, table):
    assert read(text).to_pylist() == table().to_pylist()
    assert table().num_rows == 12


def test_the_first_is_4_anonymous_and_the_second_6_anonymous():
    first, second = (measure(table, lecture.QUASI) for table in (lecture.first(), lecture.second()))
    assert (first.k, first.classes, dict(first.sizes)) == (4, 3, {4: 3})
    assert (second.k, second.classes, dict(second.sizes)) == (6, 2, {6: 2})


def test_rows_9_to_12_of_the_first_are_exposed_by_homogeneity():
    risk = measure(lecture.first(), lecture.QUASI, "condition")
    (exposed,) = risk.sensitive
    assert (exposed.exposed_rows + 1).tolist() == [9, 10, 11, 12]
    assert (exposed.homogeneous, risk.l, risk.alpha) == (1, 1, 1)
    assert "homogeneity attack (4 rows in 1 class" in risk.not_protected


def test_nobody_in_the_second_is_exposed_by_homogeneity():
    risk = measure(lecture.second(), lecture.QUASI, "condition")
    assert (risk.sensitive[0].homogeneous, risk.l) == (0, 3)
    assert "homogeneity" not in risk.not_protected


def test_people_in_both_are_exposed_by_their_intersection():
    young = [
        {row["condition"] for row in table.to_pylist() if row["age"] == age}
        for table, age in ((lecture.first(), "<30"), (lecture.second(), "<35"))
    ]
    assert young[0] & young[1] == {"AIDS"}
    for table in (lecture.first(), lecture.second()):
        assert "intersection attack" in measure(table, lecture.QUASI, "condition").not_protected
