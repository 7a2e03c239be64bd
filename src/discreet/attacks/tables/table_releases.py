"""Releases of a table: k-anonymous, or what the user's defence returns."""

from typing import Any

import numpy as np
import pyarrow as pa

from discreet import anonymity
from discreet.attacks.data.patients import ROW, Patients
from discreet.attacks.private_answers import CountOracle, count_oracle_or_none
from discreet.attacks.validation import arrow_table


def k_anonymous_release(data: Patients, k: int, l: int = 1) -> pa.Table:  # noqa: E741 - the usual name
    """Release a table with classes of at least k people and at least l distinct sensitive values in each.

    >>> table = pa.table({"age": [23, 29, 35, 41], "ill": list("abab")})
    >>> k_anonymous_release(Patients(table, ["age"], "ill"), k=2)["age"].to_pylist()
    ['23-29', '23-29', '35-41', '35-41']
    """
    values = min(l, len(data.values))
    return anonymity.anonymise(data.numbered_table, data.quasi, k, data.sensitive, l=values if values > 1 else None)


def checked_release(returned: Any, data: Patients) -> pa.Table | CountOracle:
    """Return what the user's defence returned: a validated table, or an oracle for counts."""
    oracle = count_oracle_or_none(returned)
    if oracle is not None:
        return oracle
    table = arrow_table(returned, "the defence's return value")
    required = [*data.quasi, data.sensitive, ROW]
    missing = [name for name in required if name not in table.column_names]
    if missing:
        raise ValueError(
            f"column {missing[0]!r} is missing from the defence's table. Return a modified table with the columns "
            f"{', '.join(required)}, or a function that takes an array of counts and returns them with noise."
        )
    rows = table[ROW]
    if (
        not pa.types.is_integer(rows.type)
        or rows.null_count
        or not _are_distinct_rows(np.asarray(rows), data.table.num_rows)
    ):
        raise ValueError("column 'row' of the defence's table must contain row numbers of its input, each at most once")
    return table.select(required)


def _are_distinct_rows(rows: np.ndarray, count: int) -> bool:
    return bool(rows.size) and rows.min() >= 0 and rows.max() < count and len(np.unique(rows)) == len(rows)
