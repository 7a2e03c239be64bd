"""Fingerprints of totals: equal for the same question about the same data, whatever its text."""

import json
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from fractions import Fraction
from hashlib import sha256
from typing import Any

from discreet.kernel.event import bounded_text
from discreet.kernel.question import ClippedUnits, Count, CountUnits, Question, SelectedGroups, Sum

SEMANTICS_VERSION = (
    1  # of a question: another number whenever the same question becomes other integers (weights, hashes, steps)
)
_INDEPENDENT_TOTALS = (
    Count,
    CountUnits,
    Sum,
    ClippedUnits,
)  # each is computed from the rows by itself, whatever else is asked with it


def fingerprints_of(question: Question, version: str) -> tuple[str, ...]:
    """Return the topic of each total of a question about one state of the data.

    Claim: two totals with the same topic are, on the same data, the same vector of integers over the same keys, with
        the same sensitivity.
    Proof: the digest is of everything that they are computed from: the relation, the keys, the limit and the total,
        and for a total that looks at the others all of them, in any order; the text of a query is not in it. The first
        total of groups that are discovered counts who has a say in them, which no other count of units does. It is
        written so that different ones differ: each record with its name and number of fields, each value with its
        type (SHA-256 has no known collisions).
    Needs: that `version`, the owner's word, changes whenever the data do, and SEMANTICS_VERSION whenever the kernel's terms do.
    Checked by: test_topics_differ_wherever_questions_do, test_the_same_question_has_the_same_topic_in_every_process
    Seal: 1c5e38b0c91f
    """
    bounded_text(version, "version", max_length=1_000)
    context = digest((SEMANTICS_VERSION, version, question.relation, question.by, question.groups, question.bounds))
    all_totals = tuple(sorted(map(digest, question.totals)))
    selects_groups = isinstance(question.groups, SelectedGroups)
    return tuple(
        digest(
            (context, total, selects_groups and not index)
            if isinstance(total, _INDEPENDENT_TOTALS)
            else (context, total, all_totals)
        )
        for index, total in enumerate(question.totals)
    )


def digest(value: Any) -> str:
    """Return a digest of nested records, tuples and plain values.

    >>> digest((1, "a")) == digest((1, "a")), digest((1, ("a",))) == digest((1, "a")), digest(1) == digest(True)
    (True, False, False)
    """
    return sha256(json.dumps(list(_canonical_words(value))).encode()).hexdigest()


def _canonical_words(value: Any) -> Iterator[str]:
    """Write a value as words: what holds others says how many, and they follow."""
    stack = [value]
    while stack:
        item = stack.pop()
        kind = type(item)
        if kind in _SCALAR_WRITERS:
            yield f"{kind.__name__} {_SCALAR_WRITERS[kind](item)}"
        elif isinstance(item, Enum):
            yield f"{kind.__name__} {item.name}"
        else:
            components = _components(item)
            yield f"{kind.__name__} of {len(components)}"
            stack += reversed(components)


def _components(value: Any) -> tuple[Any, ...]:
    if type(value) is tuple:
        return value
    if not is_dataclass(value):
        raise TypeError(f"a {type(value).__name__} is no part of a question")
    return tuple(getattr(value, field.name) for field in fields(value) if field.compare)


_SCALAR_WRITERS: dict[type, Callable[[Any], str]] = {
    **dict.fromkeys((int, bool, str, Fraction, type(None)), str),
    **dict.fromkeys((date, datetime), lambda value: value.isoformat()),
    float: float.hex,
}
