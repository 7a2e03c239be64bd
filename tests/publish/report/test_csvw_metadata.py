"""CSV on the Web describes each released CSV file."""

import json

from release_examples import RECORD, ROWS, changed_record

from discreet.publish import report_of
from discreet.publish.report.csvw_metadata import csvw_metadata


def test_each_csv_file_is_described_with_its_columns():
    (table,) = json.loads(csvw_metadata(RECORD))["tables"]
    assert table["url"] == "tables/wards.csv"
    assert table["tableSchema"]["columns"][1] == {
        "titles": "n_margin",
        "dc:description": "95 % margin of error of n from privacy noise",
        "datatype": "double",
    }


def test_parquet_files_and_missing_parts_are_not_described(policy):
    assert csvw_metadata(changed_record(files=(("tables/wards.parquet", "ab" * 32),))) is None
    assert csvw_metadata(changed_record(parts=(ROWS,))) is None
    assert report_of(policy, None).to_csvw() is None
