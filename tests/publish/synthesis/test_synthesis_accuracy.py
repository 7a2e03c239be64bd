"""How close synthetic rows come to a census. Skipped where the data is missing."""

import pytest

from bench import publish_synthesis as bench


@pytest.mark.long
def test_synthetic_rows_of_adult_reach_their_bars():
    coded = bench.coded_table("adult")
    if coded is None:
        pytest.skip("needs adult.parquet in DISCREET_DATA")
    rows, sizes, columns = coded
    ordered = [column in bench.WIDTHS["adult"] for column in columns]
    synthetic, *_ = bench.synthetic_rows(rows, sizes, 1, ordered)
    assert bench.variation(rows, synthetic, sizes, 2) <= 0.025
    assert bench.variation(rows, synthetic, sizes, 3) <= 0.056
