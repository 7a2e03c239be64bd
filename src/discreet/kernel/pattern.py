"""Regular expressions that every engine reads alike, compiles at once, and searches in linear time."""

import re
import warnings
from functools import reduce
from typing import NamedTuple

# No groups with a meaning, no look-around, no back-reference, no class of letters that depends on an engine's Unicode.
_READ_ALIKE = re.compile(
    r"\^?(?:[A-Za-z0-9 _\-,;:@#%&=<>!\"'/~`]|[^\x00-\x7f]|\.|\\[.\\^$|?*+()\[\]{}/-]"
    r"|\[\^?(?:[A-Za-z0-9](?:-[A-Za-z0-9])?|[ _,;:@#.])+-?\]|\((?!\?)|\)|\|"
    r"|[*+?](?![*+?{])|\{[0-9]{1,2}(?:,[0-9]{0,2})?\}(?![*+?{]))*\$?"
)
_SIGNS = re.compile(r"\\.|\[[^\]]*\]|\{[^}]*\}|[^$^]", re.DOTALL)  # all but the ends of a text, which cost nothing
_COUNTS = {"*": "{0,}", "+": "{1,}", "?": "{0,1}"}
_MOST_WAYS = 2_500  # for which PostgreSQL needs some thousandths of a second; ten times as many it may refuse
_MOST_TIMES = 1_000  # of repeats within repeats: DuckDB refuses more


class _Part(NamedTuple):
    """A part of a pattern, written out: how many letters it may begin and end with, and the ways between them."""

    first: int
    last: int
    empty: bool  # whether it may be
    ways: int
    times: int = 1  # that its most repeated letter is repeated


_NOTHING, _LETTER = _Part(0, 0, empty=True, ways=0), _Part(1, 1, empty=False, ways=1)


def check_pattern(text: str) -> None:
    """Stop unless a regular expression means the same to every engine, and is compiled by each of them.

    Engines compile when a row first needs it: one that they refuse, or take long for, would tell of that row.
    """
    if len(text) > 1_000 or not _READ_ALIKE.fullmatch(text):
        raise ValueError(
            "the regular expression must be of letters, '.', [classes], (groups), |, *, +, ? and {m,n} alone, with "
            "\\ before punctuation: other patterns are read differently by different engines"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what Python may read otherwise some day, others read otherwise now
            re.compile(text)
    except (re.error, Warning):
        raise ValueError("the regular expression is not well formed") from None
    whole = written_out(text)
    if whole.ways > _MOST_WAYS or whole.times > _MOST_TIMES:
        raise ValueError("the regular expression repeats too much: repeat less often, and nothing that may be empty")


def written_out(text: str) -> _Part:
    """Return what becomes of a well-formed pattern if all that repeats is written out."""
    opened: list[tuple[list[_Part], list[_Part]]] = [([], [])]  # of each bracket, the ways that ended, and the last one
    for sign in _SIGNS.findall(text):
        ended, parts = opened[-1]
        match sign[0]:
            case "(":
                opened.append(([], []))
            case ")":
                opened.pop()
                opened[-1][1].append(_either([*ended, _row(parts)]))
            case "|":
                ended.append(_row(parts))
                parts.clear()
            case "*" | "+" | "?" | "{":
                parts.append(_times(parts.pop(), _COUNTS.get(sign, sign)))
            case _:
                parts.append(_LETTER)
    return _either([*opened[0][0], _row(opened[0][1])])


def _then(one: _Part, other: _Part) -> _Part:
    ways = min(one.ways + other.ways + one.last * other.first, _MOST_WAYS + 1)  # no number grows without end
    first, last = one.first + one.empty * other.first, other.last + other.empty * one.last
    return _Part(first, last, one.empty and other.empty, ways, max(one.times, other.times))


def _row(parts: list[_Part]) -> _Part:
    return reduce(_then, parts, _NOTHING)


def _either(ways: list[_Part]) -> _Part:
    first, last, empty, count, times = zip(*ways, strict=True)
    return _Part(sum(first), sum(last), any(empty), sum(count), max(times))


def _times(part: _Part, sign: str) -> _Part:
    """Write out a repeated part: each optional one within the one before, as engines do."""
    least, comma, most = sign[1:-1].partition(",")
    endless, times = bool(comma and not most), int(most or least)
    rest = _NOTHING
    for _ in range(1 if endless else times - int(least)):
        rest = _then(part, rest)._replace(empty=True)
    rest = rest._replace(ways=rest.ways + endless * part.last * part.first)
    return _row([part] * int(least) + [rest])._replace(times=part.times * max(times, 1))
