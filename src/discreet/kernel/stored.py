"""Released totals as they are stored: written in the one way that equal ones share, and read again."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np

from discreet.kernel.errors import LedgerError
from discreet.kernel.event import canonical
from discreet.kernel.expr import Type, Value
from discreet.kernel.question import Cells, Question
from discreet.kernel.tree import Look

Key = tuple[Value, ...]
_OTHER = "a stored answer is of another format than this version reads"


@dataclass(frozen=True)
class Noisy:
    """The released totals of one question: groups in the order of their keys, and the noisy integers."""

    keys: list[Key]
    values: np.ndarray
    trees: tuple[tuple[Look, ...], ...] = ()  # for each total of cells what was seen of it, level by level


def write_parts(parts: tuple[Noisy, ...]) -> bytes:
    """Write released totals in the one way that equal ones share."""
    data = [
        {
            "keys": [[_plain(part) for part in key] for key in noisy.keys],
            "trees": [[[look.nodes.tolist(), look.counts.tolist()] for look in looks] for looks in noisy.trees],
            "values": noisy.values.tolist(),
        }
        for noisy in parts
    ]
    return canonical(data).encode()


def read_parts(stored: bytes, questions: Sequence[Question]) -> tuple[Noisy, ...]:
    """Read what write_parts wrote."""
    parts = parse_parts(stored)
    if len(parts) != len(questions):
        raise LedgerError(_OTHER)
    return tuple(map(read_part, parts, questions))


def parse_parts(stored: bytes) -> list[Any]:
    """Take apart what write_parts wrote."""
    try:
        parts = json.loads(stored)
    except ValueError:
        raise LedgerError(_OTHER) from None
    return parts if isinstance(parts, list) else []


def read_part(part: Any, question: Question) -> Noisy:
    """Read all that was released of a question."""
    keys, values = read_table(part, question)
    fans = [total.fan for total in question.totals if isinstance(total, Cells)]
    try:
        trees = tuple(
            tuple(Look(_levels(nodes, len(keys), -1), _levels(counts, len(keys), -1, fan)) for nodes, counts in looks)
            for looks, fan in zip(part["trees"], fans, strict=True)
        )
        return Noisy(keys, _levels(values, len(keys), len(question.totals)), trees)
    except (ValueError, KeyError, TypeError):
        raise LedgerError(_OTHER) from None


def read_table(part: Any, question: Question) -> tuple[list[Key], np.ndarray]:
    """Read the keys, which are those of a question, and all noisy integers beside them, whatever their totals are."""
    try:
        readers = [_READERS.get(expr.type) for _, expr in question.by]
        keys = [
            tuple(read(text) if read and text is not None else text for read, text in zip(readers, key, strict=True))
            for key in part["keys"]
        ]
        return keys, _levels(part["values"], len(keys), len(part["values"][0]) if keys else 0)
    except (ValueError, KeyError, TypeError, IndexError):
        raise LedgerError(_OTHER) from None


def _levels(numbers: Any, *shape: int) -> np.ndarray:
    return np.array(numbers, np.int64).reshape(shape if 0 not in shape else tuple(max(size, 0) for size in shape))


_READERS: dict[Type, Callable[[Any], Value]] = {
    Type.DATE: date.fromisoformat,
    Type.TIMESTAMP: datetime.fromisoformat,
    Type.REAL: float,
}


def _plain(value: Value) -> int | float | str | bool | None:
    return value.isoformat() if isinstance(value, date) else value
