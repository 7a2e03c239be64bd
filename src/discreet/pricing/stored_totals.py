"""Read stored answers of the ledger: which totals an event released, with which noise, and their noisy values."""

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from discreet.estimate.intervals import ReleaseNoise
from discreet.kernel.errors import LedgerError
from discreet.kernel.event import Event
from discreet.kernel.expr import Type, Value
from discreet.kernel.histogram_tree import NodeCounts
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.question import GroupKey, Question
from discreet.kernel.refinement import recorded_draws
from discreet.kernel.release import NoisyTotals
from discreet.kernel.selection import QuantileSelection
from discreet.kernel.totals import HistogramTree
from discreet.privacy.selection import read_quantile_selection

_UNKNOWN_FORMAT = "a stored answer has an unsupported format"


Cuts = tuple[int, ...]  # the thresholds of the rounds of partition selection


class StoredDraw(NamedTuple):
    """One total that an event released: its fingerprint, its position in the stored answer, noise and thresholds."""

    fingerprint: str
    part: int
    position: int
    noise: ReleaseNoise
    thresholds: Cuts = ()


def stored_draws(event: Event) -> list[StoredDraw]:
    """Return the draws that an event released."""
    return [
        StoredDraw(fingerprint, part, position, *_read_mechanism(record))
        for fingerprint, part, position, record in recorded_draws(event)
    ]


def _read_mechanism(record: Any) -> tuple[ReleaseNoise, Cuts]:
    match record["name"]:
        case "partition selection":  # its noise is that of the last round
            rounds = [json.loads(each) for each in record["rounds"]]
            return _read_mechanism(json.loads(rounds[-1]["noise"]))[0], tuple(int(each["cut"]) for each in rounds)
        case "laplace" | "refined":
            return Laplace(record["scale"]), ()
        case "gaussian":
            return Gaussian(record["scale"]), ()
        case "quantiles":
            return read_quantile_selection(record), ()
    raise ValueError(f"{record['name']!r} is not a mechanism of a release")


def parse_totals(stored: bytes) -> list[Any]:
    """Return a stored answer, as the kernel's write_totals wrote it, as unparsed parts, one per question."""
    try:
        parts = json.loads(stored)
    except ValueError:
        raise LedgerError(_UNKNOWN_FORMAT) from None
    return parts if isinstance(parts, list) else []


def read_question_totals(
    part: Any, question: Question, selections: Mapping[int, QuantileSelection] = MappingProxyType({})
) -> NoisyTotals:
    """Return the released totals of one question; `selections` are those of its quantiles, by index of the total."""
    keys, values = read_keys_and_values(part, question)
    branchings = [
        total.branching
        for index, total in enumerate(question.totals)
        if isinstance(total, HistogramTree) and index not in selections
    ]
    try:
        trees = tuple(
            tuple(
                NodeCounts(_int64_array(nodes, len(keys), -1), _int64_array(counts, len(keys), -1, branching))
                for nodes, counts in levels
            )
            for levels, branching in zip(part["trees"], branchings, strict=True)
        )
        quantiles = tuple(
            _int64_array(cells, len(keys), len(selections[index].targets), 2)
            for cells, index in zip(part["quantiles"], sorted(selections), strict=True)
        )
        return NoisyTotals(keys, _int64_array(values, len(keys), len(question.totals)), trees, quantiles)
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
