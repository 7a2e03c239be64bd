"""The portable subset of regular expressions: same meaning on every engine, linear-time search."""

import re
import warnings
from functools import reduce
from typing import NamedTuple

# No groups with a meaning, no look-around, no back-reference, no class of letters that depends on an engine's Unicode.
_PORTABLE = re.compile(
    r"\^?(?:[A-Za-z0-9 _\-,;:@#%&=<>!\"'/~`]|[^\x00-\x7f]|\.|\\[.\\^$|?*+()\[\]{}/-]"
    r"|\[\^?(?:[A-Za-z0-9](?:-[A-Za-z0-9])?|[ _,;:@#.])+-?\]|\((?!\?)|\)|\|"
    r"|[*+?](?![*+?{])|\{[0-9]{1,2}(?:,[0-9]{0,2})?\}(?![*+?{]))*\$?"
)
_TOKENS = re.compile(r"\\.|\[[^\]]*\]|\{[^}]*\}|[^$^]", re.DOTALL)  # all but the ends of a text, which cost nothing
_QUANTIFIERS = {"*": "{0,}", "+": "{1,}", "?": "{0,1}"}
_MAX_TRANSITIONS = 2_500  # for which PostgreSQL needs some thousandths of a second; ten times as many it may refuse
_MAX_REPEATS = 1_000  # of repeats within repeats: DuckDB refuses more


class _Fragment(NamedTuple):
    """A part of a pattern, written out: how many letters it may begin and end with, and the ways between them."""

    first: int
    last: int
    empty: bool  # whether it may be
    transitions: int
    repeats: int = 1  # that its most repeated letter is repeated


_EMPTY, _LETTER = _Fragment(0, 0, empty=True, transitions=0), _Fragment(1, 1, empty=False, transitions=1)


def check_regex(text: str) -> None:
    """Stop unless a regular expression means the same to every engine, and is compiled by each of them.

    Engines compile when a row first needs it: one that they refuse, or take long for, would tell of that row.
    """
    if len(text) > 1_000 or not _PORTABLE.fullmatch(text):
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
    expanded = expand_regex(text)
    if expanded.transitions > _MAX_TRANSITIONS or expanded.repeats > _MAX_REPEATS:
        raise ValueError("the regular expression repeats too much: repeat less often, and nothing that may be empty")


def expand_regex(text: str) -> _Fragment:
    """Return what becomes of a well-formed pattern if all that repeats is written out."""
    opened: list[tuple[list[_Fragment], list[_Fragment]]] = [
        ([], [])
    ]  # of each bracket, the ways that ended, and the last one
    for token in _TOKENS.findall(text):
        ended, parts = opened[-1]
        match token[0]:
            case "(":
                opened.append(([], []))
            case ")":
                opened.pop()
                opened[-1][1].append(_alternation([*ended, _concatenation(parts)]))
            case "|":
                ended.append(_concatenation(parts))
                parts.clear()
            case "*" | "+" | "?" | "{":
                parts.append(_repetition(parts.pop(), _QUANTIFIERS.get(token, token)))
            case _:
                parts.append(_LETTER)
    return _alternation([*opened[0][0], _concatenation(opened[0][1])])


def _sequence(one: _Fragment, other: _Fragment) -> _Fragment:
    ways = min(
        one.transitions + other.transitions + one.last * other.first, _MAX_TRANSITIONS + 1
    )  # no number grows without end
    first, last = one.first + one.empty * other.first, other.last + other.empty * one.last
    return _Fragment(first, last, one.empty and other.empty, ways, max(one.repeats, other.repeats))


def _concatenation(parts: list[_Fragment]) -> _Fragment:
    return reduce(_sequence, parts, _EMPTY)


def _alternation(ways: list[_Fragment]) -> _Fragment:
    first, last, empty, count, times = zip(*ways, strict=True)
    return _Fragment(sum(first), sum(last), any(empty), sum(count), max(times))


def _repetition(part: _Fragment, quantifier: str) -> _Fragment:
    """Write out a repeated part: each optional one within the one before, as engines do."""
    least, comma, most = quantifier[1:-1].partition(",")
    endless, times = bool(comma and not most), int(most or least)
    rest = _EMPTY
    for _ in range(1 if endless else times - int(least)):
        rest = _sequence(part, rest)._replace(empty=True)
    rest = rest._replace(transitions=rest.transitions + endless * part.last * part.first)
    return _concatenation([part] * int(least) + [rest])._replace(repeats=part.repeats * max(times, 1))
