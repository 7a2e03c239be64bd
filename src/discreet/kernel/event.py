"""Events: releases recorded as data, from which their cost can be recomputed."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from discreet.kernel.loss import Loss

OWNER = "owner"
_MAX_SHORT_TEXT = 100  # characters of a fingerprint or a receipt


class EventState(StrEnum):
    """Whether an event is only charged (reserved), or its answer is stored, too (released)."""

    RESERVED = "reserved"
    RELEASED = "released"


@dataclass(frozen=True, kw_only=True)
class Event:
    """One charged query; the ledger fills in data set, id, time, state and loss.

    `fingerprints` identify each total of each part of the answer, so that it can be reused; they are "" for totals that
    are not part of this release. `follows` pairs a fingerprint with the receipt that must still be its latest.

    >>> Event(mechanism=canonical_json({"name": "laplace", "scale": "10"}), sensitivity="{}", question="count").by
    'owner'
    """

    mechanism: str
    sensitivity: str
    question: str
    by: str = OWNER
    fingerprints: tuple[tuple[str, ...], ...] = ()
    follows: tuple[tuple[str, str], ...] = ()
    dataset: str = ""
    id: str = ""
    time: str = ""
    state: EventState | None = None
    loss: Loss | None = None

    def __post_init__(self) -> None:
        bounded_text(self.by, "by", max_length=200)
        bounded_text(self.question, "question", max_length=1_000_000)
        for name in ("mechanism", "sensitivity"):
            text = bounded_text(getattr(self, name), name, max_length=1_000_000)
            if not _is_canonical(text):
                raise ValueError(f"{name} must be canonical JSON, such as canonical_json({{...}}), not {text[:40]!r}")
        for name in ("fingerprints", "follows"):
            parts = getattr(self, name)
            if not all(type(part) is tuple for part in (parts, *parts)) or not all(
                type(text) is str and len(text) <= _MAX_SHORT_TEXT for part in parts for text in part
            ):
                raise TypeError(f"{name} must be tuples of short texts")


@dataclass(frozen=True)
class Receipt:
    """The receipt of a charge, with the stored answer if its key was used before.

    >>> Receipt("5e1f").answer is None
    True
    """

    id: str
    answer: bytes | None = None


def canonical_json(data: Any) -> str:
    """Return plain data as JSON; equal data give equal text.

    >>> canonical_json({"scale": "10", "name": "laplace"})
    '{"name":"laplace","scale":"10"}'
    """
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def combine_mechanisms(parts: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Combine several mechanisms and their sensitivities, all in canonical JSON, into one of each."""
    if len(parts) == 1:
        return parts[0]
    mechanisms, sensitivities = ([json.loads(text) for text in texts] for texts in zip(*parts, strict=True))
    return canonical_json({"name": "several", "parts": mechanisms}), canonical_json(sensitivities)


def bounded_text(value: Any, name: str, max_length: int) -> str:
    """Return a text that is not empty, not too long, and storable in every database: PostgreSQL has no NUL."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    if not 0 < len(value) <= max_length:
        raise ValueError(f"{name} must have 1 to {max_length} characters, not {len(value)}")
    if re.search("[\0\ud800-\udfff]", value):
        raise ValueError(f"{name} must be Unicode text without NUL characters or lone surrogates")
    return value


def _is_canonical(text: str) -> bool:
    try:
        return canonical_json(json.loads(text)) == text
    except (ValueError, RecursionError):
        return False
