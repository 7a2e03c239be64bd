"""The record of a release survives JSON, and whatever is no record is refused."""

import json
from dataclasses import replace

import pytest

from discreet.kernel.loss import Loss
from discreet.publish import ColumnDescription, MarginSummary, ReleasePart, ReleaseRecord, SizeClass

PART = ReleasePart(
    "wards",
    "table",
    "SELECT 1",
    Loss(None, "1/3", "1e-12"),
    "5e1f",
    "released",
    3,
    (ColumnDescription("ward", "text", "the ward"),),
    MarginSummary(1.5, 2.0, 0.5, (SizeClass("below 10", 1, 2.0, 0.0),)),
    ("a note",),
)
RECORD = ReleaseRecord(
    "wards", "plan", "2026-11-18T12:00:00+00:00", (PART, replace(PART, cost=Loss("1/7"), margins=None))
)


@pytest.mark.parametrize(
    "record",
    [
        RECORD,
        replace(RECORD, invariants=()),
        replace(RECORD, invariants=("a",), files=(("t.csv", "ab" * 32),)),
        replace(RECORD, clipping="1 %", post_processing=("x",), parts=()),
    ],
    ids=range(4),
)
def test_a_record_is_read_back_exactly(record):
    assert ReleaseRecord.from_json(record.to_json()) == record


def test_the_cost_of_a_release_is_that_of_its_parts():
    assert RECORD.cost == Loss(None, "1/3", "1e-12") + Loss("1/7")
    assert replace(RECORD, parts=()).cost == Loss(0)


@pytest.mark.parametrize("data", [{}, [], {"name": "x"}, None])
def test_what_is_no_record_is_refused(data):
    with pytest.raises(ValueError, match="not the record of a release"):
        ReleaseRecord.from_data(data)


def test_a_record_with_an_unknown_field_is_refused():
    with pytest.raises(ValueError, match="not the record of a release"):
        ReleaseRecord.from_data(json.loads(RECORD.to_json()) | {"more": 1})
