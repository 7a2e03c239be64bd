"""The portable subset of regular expressions: the same meaning on every engine, and linear-time search."""

import re
import warnings
from functools import reduce
from typing import NamedTuple

from discreet.kernel.errors import require

# No special groups, no look-around, no back-references, no character classes that depend on an engine's Unicode tables.
_PORTABLE = re.compile(
    r"\^?(?:[A-Za-z0-9 _\-,;:@#%&=<>!\"'/~`]|[^\x00-\x7f]|\.|\\[.\\^$|?*+()\[\]{}/-]"
    r"|\[\^?(?:[A-Za-z0-9](?:-[A-Za-z0-9])?|[ _,;:@#.])+-?\]|\((?!\?)|\)|\|"
    r"|[*+?](?![*+?{])|\{[0-9]{1,2}(?:,[0-9]{0,2})?\}(?![*+?{]))*\$?"
)
_TOKENS = re.compile(r"\\.|\[[^\]]*\]|\{[^}]*\}|[^$^]", re.DOTALL)  # all except anchors, which cost nothing
_QUANTIFIERS = {"*": "{0,}", "+": "{1,}", "?": "{0,1}"}
_MAX_TRANSITIONS = 2_500  # PostgreSQL compiles this many in milliseconds, and may refuse ten times as many
_MAX_REPEATS = 1_000  # product of nested repeats; DuckDB refuses more


class _Fragment(NamedTuple):
    """An expanded part of a pattern: numbers of possible first and last letters, and of transitions."""

    first: int
    last: int
    empty: bool  # whether it can match the empty text
    transitions: int
    repeats: int = 1  # of its most repeated letter


_EMPTY, _LETTER = _Fragment(0, 0, empty=True, transitions=0), _Fragment(1, 1, empty=False, transitions=1)


def check_regex(text: str) -> None:
    """Raise ValueError unless a regular expression has the same meaning on every engine and compiles on each.

    Engines compile it when a row first needs it: an error or a long compilation would disclose that row.

    Claim: every engine compiles an accepted pattern, to at most _MAX_TRANSITIONS transitions.
    Proof: the pattern consists of constructs that all engines know, and is well formed since Python compiles it without
        a warning. With all repetitions written out, `expand_regex` counts each letter, and each pair of letters that
        can follow each other; no letter is repeated more than _MAX_REPEATS times.
    Needs: expand_regex; engines accept patterns of this size (DuckDB: RE2, PostgreSQL; Spark has a check of its own).
    Checked by: test_ways_are_letters_and_the_pairs_that_may_follow_each_other,
        test_no_dialect_writes_a_pattern_that_engines_read_differently,
        test_an_accepted_pattern_never_fails_in_the_engine
    """
    require(
        len(text) <= 1_000 and _PORTABLE.fullmatch(text) is not None,
        "the regular expression may only contain letters, '.', [classes], (groups), |, *, +, ? and {m,n}, with \\ "
        "before punctuation: engines disagree on other patterns",
    )
    try:
        with warnings.catch_warnings(action="error"):  # Python warns about patterns that other engines read differently
            re.compile(text)
    except (re.error, Warning):
        raise ValueError("invalid regular expression") from None
    expanded = expand_regex(text)
    require(
        expanded.transitions <= _MAX_TRANSITIONS and expanded.repeats <= _MAX_REPEATS,
        "the regular expression has too many repetitions: use smaller ones, and none of a part that can be empty",
    )


def expand_regex(text: str) -> _Fragment:
    """Return the size of a well-formed pattern with all repetitions expanded."""
    # For each open bracket: the finished alternatives, and the parts of the current one.
    opened: list[tuple[list[_Fragment], list[_Fragment]]] = [([], [])]
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
    # Limited, so that the numbers stay small.
    ways = min(one.transitions + other.transitions + one.last * other.first, _MAX_TRANSITIONS + 1)
    first, last = one.first + one.empty * other.first, other.last + other.empty * one.last
    return _Fragment(first, last, one.empty and other.empty, ways, max(one.repeats, other.repeats))


def _concatenation(parts: list[_Fragment]) -> _Fragment:
    return reduce(_sequence, parts, _EMPTY)


def _alternation(ways: list[_Fragment]) -> _Fragment:
    first, last, empty, count, times = zip(*ways, strict=True)
    return _Fragment(sum(first), sum(last), any(empty), sum(count), max(times))


def _repetition(part: _Fragment, quantifier: str) -> _Fragment:
    """Expand a repeated part, with nested optional parts, as engines do."""
    least, comma, most = quantifier[1:-1].partition(",")
    endless, times = bool(comma and not most), int(most or least)
    rest = _EMPTY
    for _ in range(1 if endless else times - int(least)):
        rest = _sequence(part, rest)._replace(empty=True)
    rest = rest._replace(transitions=rest.transitions + endless * part.last * part.first)
    return _concatenation([part] * int(least) + [rest])._replace(repeats=part.repeats * max(times, 1))
