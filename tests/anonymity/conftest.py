"""A small table with all that is awkward, in each of the three libraries."""

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

LIBRARIES = ("pandas", "polars", "arrow")


def in_library(table, library):
    """Turn an Arrow table into one of another library."""
    if library == "pandas":
        return pytest.importorskip("pandas").DataFrame(table.to_pydict())
    return pytest.importorskip("polars").from_arrow(table) if library == "polars" else table


@pytest.fixture(params=LIBRARIES)
def library(request):
    return request.param


@pytest.fixture
def awkward():
    return pa.table(
        {
            "whole": [3, 1, None, 3],
            "real": [0.5, float("nan"), None, -0.0],
            "text": ["b", "a", None, "b"],
            "yes": [True, None, False, True],
            "day": [date(2024, 2, 1), date(2024, 1, 1), None, date(2024, 2, 1)],
            "exact": [Decimal("1.50"), Decimal("0.10"), None, Decimal("1.50")],
        }
    )
