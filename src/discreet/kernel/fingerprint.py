"""Fingerprints of totals: equal for the same question about the same data, whatever its text."""

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from fractions import Fraction
from hashlib import sha256
from typing import Any

from discreet.kernel.event import bounded_text
from discreet.kernel.question import Question
from discreet.kernel.totals import Count, CountUnits, SelectionWeight, Sum

# To be changed whenever the same question gives other integers (weights, hashes, steps).
SEMANTICS_VERSION = 2
# These do not depend on the other totals of a question.
_INDEPENDENT_TOTALS = (Count, CountUnits, Sum, SelectionWeight)


def fingerprints_of(question: Question, version: str) -> tuple[str, ...]:
    """Return the fingerprint of each total of a question about one state of the data.

    Claim: two totals with the same fingerprint are, on the same data, the same vector of integers over the same keys,
        with the same sensitivity.
    Proof: the digest covers everything that they are computed from: the relation, the keys, the bounds and the total,
        and for a total that depends on the others all of them, in any order; it does not cover the text of the query.
        The encoding is injective: nested lists, each with the name of its type, which no two types share
        (SHA-256 has no known collisions).
    Needs: digest; the owner changes `version` whenever the data change; SEMANTICS_VERSION changes whenever the
        kernel computes other integers.
    Checked by: test_fingerprints_differ_wherever_questions_do,
        test_the_same_question_has_the_same_fingerprint_in_every_process
    """
    bounded_text(version, "version", max_length=1_000)
    rows = digest((SEMANTICS_VERSION, version, question.relation, question.by, question.groups))
    context = digest((rows, question.bounds))
    all_totals = tuple(sorted(map(digest, question.totals)))
    return tuple(
        digest((context, total) if isinstance(total, _INDEPENDENT_TOTALS) else (context, total, all_totals))
        for total in question.totals
    )


def digest(value: Any) -> str:
    """Return a digest of nested records, tuples and scalars.

    >>> digest((1, "a")) == digest((1, "a")), digest((1, ("a",))) == digest((1, "a")), digest(1) == digest(True)
    (True, False, False)
    """
    return sha256(json.dumps(_canonical_form(value)).encode()).hexdigest()


def _canonical_form(value: Any) -> list[Any]:
    """Return nested lists: the type's name, then the text of a scalar, or the forms of the components."""
    kind = type(value)
    if kind in _SCALAR_WRITERS:
        return [kind.__name__, _SCALAR_WRITERS[kind](value)]
    if isinstance(value, Enum):
        return [kind.__name__, value.name]
    if kind is not tuple and not is_dataclass(value):
        raise TypeError(f"a question cannot contain a {kind.__name__}")
    parts = value if kind is tuple else (getattr(value, part.name) for part in fields(value) if part.compare)
    return [kind.__name__, *map(_canonical_form, parts)]


_SCALAR_WRITERS: dict[type, Callable[[Any], str]] = {
    **dict.fromkeys((int, bool, str, Fraction, type(None)), str),
    **dict.fromkeys((date, datetime), lambda value: value.isoformat()),
    float: float.hex,
}
