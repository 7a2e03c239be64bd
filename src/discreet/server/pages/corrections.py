"""Queries to offer in place of a refused one: read from its message and its text, and tried before they are offered."""

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_LINE = re.compile(r"line (\d+)(?:, column (\d+))?")
_QUOTED = re.compile(r"\"([^\"]+)\"|'((?:[^']|'')+)'|function (\w+)")
_CLAUSE = re.compile(r", ([A-Z_ ]+):")
_CHOICES = re.compile(r"Did you mean (.+?)\?")
_RENAMED = re.compile(r"function (\w+) is not supported\. Write (\w+)\(")
_UNBOUNDED = re.compile(r": (\S.*) needs bounds\. Write (.+?) with bounds")
_MISSING_KEY = re.compile(r'column "([^"]+)" must appear in GROUP BY')
_COMMA_JOIN = re.compile(r"\bFROM\s+(\w+)\s*,\s*(\w+)", re.IGNORECASE)
_JOIN_ADDED = re.compile(r"Add (\S+ = \S+)\.$")
_PLAIN_SELECT = re.compile(
    r"\s*SELECT\s+(?P<list>.+?)\s+FROM\s+(?P<rest>.+?)(?:\s+LIMIT\s+\d+)?[\s;]*", re.IGNORECASE | re.DOTALL
)
_PLAIN_NAMES = re.compile(r"\w+(?:\s*,\s*\w+)*")
_TAIL = re.compile(r"\s+(?=(?:HAVING|ORDER\s+BY|LIMIT|QUALIFY|WITHIN)\b)|\s*;?\s*$", re.IGNORECASE)
_MAX_OFFERED = 3
_MAX_TRIED = 12  # queries, for one refusal


@dataclass(frozen=True)
class Correction:
    """A query to use instead, and whether the reader has to fill in something first."""

    sql: str
    is_complete: bool = True


def find_place(sql: str, message: str) -> tuple[int, int] | None:
    """Return where in a query a refusal points to, as its first and last character; None if it names no place.

    >>> find_place("SELECT wad FROM t", 'line 1, SELECT: column "wad" does not exist.')
    (7, 10)
    >>> find_place("SELEC 1", 'line 1, column 1: syntax error at or near "SELEC": expected SELECT or WITH.')
    (0, 5)
    """
    where = _LINE.match(message)
    if where is None:
        return None
    lines = sql.split("\n")
    row = min(int(where[1]), len(lines)) - 1
    start = sum(len(line) + 1 for line in lines[:row])
    if where[2]:
        begin = min(start + int(where[2]) - 1, len(sql))
        word = re.compile(r"\w+|\S?").match(sql, begin)
        return begin, max(word.end() if word else begin, min(begin + 1, len(sql)))
    named = [next(filter(None, quoted.groups())) for quoted in _QUOTED.finditer(message, where.end())]
    clause = _CLAUSE.match(message, where.end())
    for word in [*named, *([clause[1]] if clause else [])]:
        found = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE).search(sql, start)
        if found:
            return found.span()
    return start, start + len(lines[row])


def corrections(sql: str, message: str, refusal: Callable[[str], str | None]) -> list[Correction]:
    """Return queries that are answered in place of a refused one; those with gaps to fill in are not tried.

    `refusal` returns why a query is refused, or None. A query with several mistakes is corrected step by step.

    >>> wrong = 'line 1, SELECT: column "wad" does not exist. Did you mean ward?'
    >>> corrections("SELECT wad FROM t", wrong, lambda sql: wrong if "wad" in sql else None)
    [Correction(sql='SELECT ward FROM t', is_complete=True)]
    """
    offered: list[Correction] = []
    waiting, tried = deque([(sql, message)]), {sql}
    while waiting and len(offered) < _MAX_OFFERED:
        refused, why = waiting.popleft()
        for candidate in _candidates(refused, why):
            if candidate in tried or len(tried) > _MAX_TRIED:
                continue
            tried.add(candidate)
            next_reason = refusal(candidate)
            if next_reason is None:
                offered.append(Correction(candidate))
            elif next_reason != why:
                waiting.append((candidate, next_reason))
    return offered[:_MAX_OFFERED] or [Correction(text, is_complete=False) for text in _with_gaps(sql, message)]


def _candidates(sql: str, message: str) -> Iterator[str]:
    yield from _renamed(sql, message)
    if key := _MISSING_KEY.search(message):
        yield _with_key(sql, key[1])
    if added := _JOIN_ADDED.search(message):
        yield _COMMA_JOIN.sub(rf"FROM \1 JOIN \2 ON {added[1]}", sql, count=1)
    if "expected SELECT or WITH" in message and (place := find_place(sql, message)):
        yield f"{sql[: place[0]]}SELECT{sql[place[1] :]}"
    if "individual rows" in message:
        yield from _counted(sql)


def _renamed(sql: str, message: str) -> Iterator[str]:
    """Replace a name, a text or a function by the ones that the message suggests."""
    place = find_place(sql, message)
    if place is None:
        return
    wrong = sql[place[0] : place[1]]
    if renamed := _RENAMED.search(message):
        yield _replace_word(sql, renamed[1], renamed[2])
    if choices := _CHOICES.search(message):
        for choice in re.split(r" or |, ", choices[1]):
            yield _replace_word(sql, wrong, choice.strip("'\""))
    if f'"{wrong}"' in sql:  # a text in the quotes of a name
        yield sql.replace(f'"{wrong}"', "'" + wrong.replace("'", "''") + "'")


def _replace_word(sql: str, wrong: str, right: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(wrong)}(?!\w)", lambda _: right, sql, flags=re.IGNORECASE)


def _with_key(sql: str, key: str) -> str:
    """Add a column to GROUP BY."""
    grouped = re.search(r"\bGROUP\s+BY\s+", sql, re.IGNORECASE)
    if grouped:
        return f"{sql[: grouped.end()]}{key}, {sql[grouped.end() :]}"
    tail = _TAIL.search(sql)
    end = tail.start() if tail else len(sql)
    return f"{sql[:end].rstrip()} GROUP BY {key}{sql[end:].rstrip().removesuffix(';')}"


def _counted(sql: str) -> Iterator[str]:
    """Count the rows that a query wants to see, in groups of its columns or of all."""
    plain = _PLAIN_SELECT.fullmatch(sql)
    if plain is None:
        return
    names, rest = plain["list"].strip(), plain["rest"].strip()
    if _PLAIN_NAMES.fullmatch(names):
        yield f"SELECT {names}, COUNT(*) AS n FROM {rest} GROUP BY {names}"  # noqa: S608 - the reader's own query
    yield f"SELECT COUNT(*) AS n FROM {rest}"  # noqa: S608 - the reader's own query


def _with_gaps(sql: str, message: str) -> Iterator[str]:
    """Write bounds around an aggregate that needs them, for the reader to choose."""
    if (bounds := _UNBOUNDED.search(message)) and bounds[1] in sql:
        yield sql.replace(bounds[1], bounds[2])
