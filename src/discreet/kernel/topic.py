"""The name under which an answer is found again: a digest of what is asked, never of data, time or words."""

import json
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from fractions import Fraction
from hashlib import sha256
from typing import Any

from discreet.kernel.event import bounded_text
from discreet.kernel.question import Count, Discover, Question, Sum, Touched, Units

MEANING = 1  # of a question: another number whenever the same question becomes other integers (weights, hashes, steps)
_ALONE = (Count, Units, Sum, Touched)  # each is computed from the rows by itself, whatever else is asked with it


def topics_of(question: Question, version: str) -> tuple[str, ...]:
    """Return the topic of each total of a question about one state of the data.

    Claim: two totals with the same topic are, on the same data, the same vector of integers over the same keys, with
        the same sensitivity.
    Proof: the digest is of everything that they are computed from: the relation, the keys, the limit and the total,
        and for a total that looks at the others all of them, in any order; the text of a query is not in it. The first
        total of groups that are discovered counts who has a say in them, which no other count of units does. It is
        written so that different ones differ: each record with its name and number of fields, each value with its
        type (SHA-256 has no known collisions).
    Needs: that `version`, the owner's word, changes whenever the data do, and MEANING whenever the kernel's terms do.
    Checked by: test_topics_differ_wherever_questions_do, test_the_same_question_has_the_same_topic_in_every_process
    Seal: 662144caeadf
    """
    bounded_text(version, "version", longest=1_000)
    about = digest((MEANING, version, question.relation, question.by, question.groups, question.limit))
    every = tuple(sorted(map(digest, question.totals)))
    decides = isinstance(question.groups, Discover)
    return tuple(
        digest((about, total, decides and not place) if isinstance(total, _ALONE) else (about, total, every))
        for place, total in enumerate(question.totals)
    )


def digest(value: Any) -> str:
    """Return a digest of nested records, tuples and plain values.

    >>> digest((1, "a")) == digest((1, "a")), digest((1, ("a",))) == digest((1, "a")), digest(1) == digest(True)
    (True, False, False)
    """
    return sha256(json.dumps(list(_words(value))).encode()).hexdigest()


def _words(value: Any) -> Iterator[str]:
    """Write a value as words: what holds others says how many, and they follow."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        kind = type(each)
        if kind in _PLAIN:
            yield f"{kind.__name__} {_PLAIN[kind](each)}"
        elif isinstance(each, Enum):
            yield f"{kind.__name__} {each.name}"
        else:
            held = _held(each)
            yield f"{kind.__name__} of {len(held)}"
            waiting += reversed(held)


def _held(value: Any) -> tuple[Any, ...]:
    if type(value) is tuple:
        return value
    if not is_dataclass(value):
        raise TypeError(f"a {type(value).__name__} is no part of a question")
    return tuple(getattr(value, one.name) for one in fields(value) if one.compare)


_PLAIN: dict[type, Callable[[Any], str]] = {
    **dict.fromkeys((int, bool, str, Fraction, type(None)), str),
    **dict.fromkeys((date, datetime), lambda value: value.isoformat()),
    float: float.hex,
}
