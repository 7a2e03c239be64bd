"""The content of a report: chapters of sentences and tables for people, and exact facts for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

QUERIES = frozenset({"Query", "Content"})  # columns of texts that may be long, and are shown in part
OWNER_MUST_STATE = "The owner must state this."


@dataclass(frozen=True)
class ContentTable:
    """A table of texts; columns named in `numbers` are aligned to the right."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    numbers: frozenset[str] = frozenset()

    def to_data(self) -> dict[str, Any]:
        """Return the table as plain data."""
        return {"caption": self.caption, "headers": list(self.headers), "rows": [list(row) for row in self.rows]}


@dataclass(frozen=True)
class Chapter:
    """A chapter: an id, a title, sentences, tables, notes below them, and the same as exact facts.

    >>> Chapter("budget", "The budget", ("Nothing was charged.",)).to_data()["title"]
    'The budget'
    """

    id: str
    title: str
    sentences: tuple[str, ...] = ()
    tables: tuple[ContentTable, ...] = ()
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_data(self) -> dict[str, Any]:
        """Return the chapter as plain data."""
        return {
            "id": self.id,
            "title": self.title,
            "sentences": list(self.sentences),
            "tables": [table.to_data() for table in self.tables],
            "notes": list(self.notes),
            "facts": dict(self.facts),
        }


def stated(text: str | None) -> str:
    """Return a statement of the owner, or that it is missing."""
    return OWNER_MUST_STATE if text is None else text


def stated_list(texts: Sequence[str] | None, none: str) -> str:
    """Return a list of statements of the owner as one text; `none` says what an empty list means.

    >>> stated_list(None, "None."), stated_list((), "None."), stated_list(("a", "b"), "None.")
    ('The owner must state this.', 'None.', 'a; b')
    """
    if texts is None:
        return OWNER_MUST_STATE
    return "; ".join(texts) if texts else none
