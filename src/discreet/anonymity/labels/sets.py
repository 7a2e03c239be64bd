"""Sets of values as they are written in a released table: {A, B}, with quotes around what would else be misread."""

import re
from collections.abc import Container, Iterator, Sequence

_NULL = "null"
_ODD = re.compile(r'^$|^\s|\s$|^null$|[,{}"]')
_QUOTED = re.compile(r'"((?:[^"]|"")*)"(?:, |$)')


def member_of_set(text: str | None) -> str:
    """Write a value as a member of a set.

    >>> [member_of_set(text) for text in ("cook", "York, PA", "null", None)]
    ['cook', '"York, PA"', '"null"', 'null']
    """
    if text is None:
        return _NULL
    return '"' + text.replace('"', '""') + '"' if _ODD.search(text) else text


def members_of(inside: str, known: Container[str]) -> set[str | None]:
    """Read what stands between the brackets of a set; None is null.

    Others may write no quotes: if not all parts are known, one that has a comma in it is found because it is.

    >>> sorted(members_of('"York, PA", cook', {"York, PA", "cook"}))
    ['York, PA', 'cook']
    >>> members_of("York, PA", {"York, PA", "York"}), sorted(members_of("York, PA", {"York", "PA", "York, PA"}))
    ({'York, PA'}, ['PA', 'York'])
    """
    found: set[str | None] = set()
    bare: list[str] = []
    start = 0
    while start < len(inside):
        if match := _QUOTED.match(inside, start):
            found.add(match[1].replace('""', '"'))
            start = match.end()
        else:
            end = inside.find(", ", start)
            bare.append(inside[start:] if end < 0 else inside[start:end])
            start = len(inside) if end < 0 else end + 2
    is_plain = all(part in known or part == _NULL for part in bare)
    found.update(None if part == _NULL else part for part in (bare if is_plain else _joined(bare, known)))
    return found


def _joined(parts: Sequence[str], known: Container[str]) -> Iterator[str]:
    """Put parts together that are a known value together, the longest first."""
    start = 0
    while start < len(parts):
        ends = (end for end in range(len(parts), start, -1) if ", ".join(parts[start:end]) in known)
        end = next(ends, start + 1)
        yield ", ".join(parts[start:end])
        start = end
