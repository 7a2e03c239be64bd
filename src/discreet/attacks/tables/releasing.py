"""What an owner hands out about patients: a table, made coarser or not, or answers to questions."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from discreet import anonymity
from discreet.attacks.checking import arrow_table
from discreet.attacks.defences import CURATOR, EASY, OWN, Shield
from discreet.attacks.tables.counting import Answers, private_counts
from discreet.attacks.tables.patients import ROW, Patients
from discreet.attacks.tables.reading import oracle

Release = Callable[[Patients], pa.Table]


def as_it_is(data: Patients) -> pa.Table:
    """Release the table without names."""
    return data.numbered


def k_anonymous(data: Patients, k: int, l: int = 1) -> pa.Table:  # noqa: E741 - what everybody calls it
    """Release classes of at least k people, with at least l sensitive values in each.

    >>> table = pa.table({"age": [23, 29, 35, 41], "ill": list("abab")})
    >>> k_anonymous(Patients(table, ["age"], "ill"), k=2)["age"].to_pylist()
    ['23-29', '23-29', '35-41', '35-41']
    """
    values = min(l, len(data.values))
    return anonymity.anonymise(data.numbered, data.quasi, k, data.sensitive, l=values if values > 1 else None)


def released(protected: Shield, data: Patients, nothing: Release, easy: Release) -> pa.Table | Answers:
    """Return what the outsider sees: a table, or a function that answers counts."""
    if protected.word == CURATOR:
        return partial(private_counts, epsilon=protected.price)
    if protected.word == OWN and protected.make is not None:
        return _own(protected.make(data.numbered), data)
    return easy(data) if protected.word == EASY else nothing(data)


def _own(seen: Any, data: Patients) -> pa.Table | Answers:
    """Check what a defence of the user's returned."""
    answers = oracle(seen)
    if answers is not None:
        return answers
    table = arrow_table(seen, "what the defence returns")
    wanted = [*data.quasi, data.sensitive, ROW]
    missing = [name for name in wanted if name not in table.column_names]
    if missing:
        raise ValueError(
            f"the defence's table has no column {missing[0]!r}. Return the table that it was given, changed, with "
            f"{', '.join(wanted)}; or a function that takes an array of counts and returns them with noise."
        )
    rows = table[ROW]
    if not pa.types.is_integer(rows.type) or rows.null_count or not _some_of(np.asarray(rows), data.table.num_rows):
        raise ValueError("the defence's table must have each 'row' at most once, and only those that it was given")
    return table.select(wanted)


def _some_of(rows: np.ndarray, count: int) -> bool:
    return bool(rows.size) and rows.min() >= 0 and rows.max() < count and len(np.unique(rows)) == len(rows)
