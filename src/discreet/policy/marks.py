"""Values that a draft leaves to a human: they say FILL IN, and no policy with one of them is accepted."""

import re
from collections.abc import Iterator
from typing import Any

from discreet.policy.toml import KeyPath

MARK = "FILL IN"

_HINTS = {
    "name": "Give the data set a name: its ledger is kept under it.",
    "source": 'Say where the rows are, such as "visits.parquet".',
    "unit": (
        "Say who is protected: a column of people, { through, on } for rows that another table owns, "
        '"row" for single rows; or write public = true instead of unit, groups and rows.'
    ),
    "public": "Write true only if the table could be printed in a newspaper; otherwise write unit instead.",
    "epsilon": "Decide how much may be learned in all, such as 1.0; there is no default.",
    "groups": "Say in how many groups of an answer a unit counts fully, such as 3.",
    "rows": "Say with how many rows a unit counts fully in each group, such as 10.",
    "type": "Write integer, real, decimal, boolean, text, date or timestamp.",
    "between": "Write the lowest and highest value from what the column means, never from the data; or leave it out.",
    "in": "List the values that the column may have from what they mean, never from the data; or leave it out.",
}
_COMMENT = re.compile(rf"^[^\n]*#[^\n]*\b{MARK}\b", re.MULTILINE)


def find_marks(values: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the keys whose values are still to be filled in, each once; a list is meant as a whole."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from find_marks(value, (*path, key))
    elif isinstance(values, list | tuple):
        nested = [value for value in values if isinstance(value, dict | list | tuple)]
        texts = [value for value in values if type(value) is str]
        if any(text.startswith(MARK) for text in texts) or any(True for value in nested for _ in find_marks(value)):
            yield path
    elif isinstance(values, str) and values.startswith(MARK):
        yield path


def mark_words(path: KeyPath) -> str:
    """Say that a value is missing, and what to write."""
    key = str(path[-1]) if path else "the file"
    return f"{key} is still to be filled in. {_HINTS.get(key, 'The comments beside it say what is meant.')}"


def commented_marks(text: str) -> list[int]:
    """Return the lines whose comment asks for a decision, though what stands there is valid."""
    return [text.count("\n", 0, found.start()) + 1 for found in _COMMENT.finditer(text)]
