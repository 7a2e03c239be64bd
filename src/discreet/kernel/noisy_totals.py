"""The noisy totals of a release, and their stored form in the ledger."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np

from discreet.kernel.errors import LedgerError
from discreet.kernel.event import canonical_json
from discreet.kernel.expr import Type, Value
from discreet.kernel.histogram_tree import NodeCounts
from discreet.kernel.question import HistogramTree, Question

GroupKey = tuple[Value, ...]
_UNKNOWN_FORMAT = "a stored answer has an unsupported format"


@dataclass(frozen=True)
class NoisyTotals:
    """The released totals of one question: noisy integers, with the groups in the order of their keys."""

    keys: list[GroupKey]
    values: np.ndarray
    trees: tuple[tuple[NodeCounts, ...], ...] = ()  # for each histogram tree, the node counts by level


def write_totals(parts: tuple[NoisyTotals, ...]) -> bytes:
    """Return released totals as canonical JSON."""
    data = [
        {
            "keys": [[_json_value(part) for part in key] for key in noisy.keys],
            "trees": [[[level.nodes.tolist(), level.counts.tolist()] for level in levels] for levels in noisy.trees],
            "values": noisy.values.tolist(),
        }
        for noisy in parts
    ]
    return canonical_json(data).encode()


def read_totals(stored: bytes, questions: Sequence[Question]) -> tuple[NoisyTotals, ...]:
    """Parse the output of write_totals."""
    parts = parse_totals(stored)
    if len(parts) != len(questions):
        raise LedgerError(_UNKNOWN_FORMAT)
    return tuple(map(read_question_totals, parts, questions))


def parse_totals(stored: bytes) -> list[Any]:
    """Return the output of write_totals as unparsed parts, one per question."""
    try:
        parts = json.loads(stored)
    except ValueError:
        raise LedgerError(_UNKNOWN_FORMAT) from None
    return parts if isinstance(parts, list) else []


def read_question_totals(part: Any, question: Question) -> NoisyTotals:
    """Return the released totals of one question."""
    keys, values = read_keys_and_values(part, question)
    branchings = [total.branching for total in question.totals if isinstance(total, HistogramTree)]
    try:
        trees = tuple(
            tuple(
                NodeCounts(_int64_array(nodes, len(keys), -1), _int64_array(counts, len(keys), -1, branching))
                for nodes, counts in levels
            )
            for levels, branching in zip(part["trees"], branchings, strict=True)
        )
        return NoisyTotals(keys, _int64_array(values, len(keys), len(question.totals)), trees)
    except (ValueError, KeyError, TypeError):
        raise LedgerError(_UNKNOWN_FORMAT) from None


def read_keys_and_values(part: Any, question: Question) -> tuple[list[GroupKey], np.ndarray]:
    """Return the keys, with the types of the question, and the noisy integers of all totals."""
    try:
        readers = [_KEY_READERS.get(expr.type) for _, expr in question.by]
        keys = [
            tuple(read(text) if read and text is not None else text for read, text in zip(readers, key, strict=True))
            for key in part["keys"]
        ]
        return keys, _int64_array(part["values"], len(keys), len(part["values"][0]) if keys else 0)
    except (ValueError, KeyError, TypeError, IndexError):
        raise LedgerError(_UNKNOWN_FORMAT) from None


def _int64_array(numbers: Any, *shape: int) -> np.ndarray:
    return np.array(numbers, np.int64).reshape(shape if 0 not in shape else tuple(max(size, 0) for size in shape))


_KEY_READERS: dict[Type, Callable[[Any], Value]] = {
    Type.DATE: date.fromisoformat,
    Type.TIMESTAMP: datetime.fromisoformat,
    Type.REAL: float,
}


def _json_value(value: Value) -> int | float | str | bool | None:
    return value.isoformat() if isinstance(value, date) else value
