"""How Spark compares texts: letters one by one, and patterns in a bounded time."""

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from discreet.engines.dialects.spark_constants import text
from discreet.engines.dialects.spark_patterns import ANYTHING, End, Part, Row, Times, parsed, row_of, written
from discreet.engines.dialects.spark_steps import MOST_STEPS, steps
from discreet.engines.evaluate import lower_case, upper_case
from discreet.kernel.expr import LONGEST_TEXT, Call, Constant, Expr

_FAR = 100_000  # no place in a text of LONGEST_TEXT characters
_MOST_LOOKS = 5  # at a text for one LIKE: an expression is written out for each


def lowered(args: Sequence[str], _exprs: Sequence[Expr]) -> str:
    """Write a text with each letter as a small one."""
    return _changed("LOWER", args[0], lower_case)


def raised(args: Sequence[str], _exprs: Sequence[Expr]) -> str:
    """Write a text with each letter as a capital one."""
    return _changed("UPPER", args[0], upper_case)


def _changed(quick: str, value: str, changed: Callable[[str], str]) -> str:
    """Write a changed text; one of ASCII letters alone is quicker changed by Spark itself."""
    ascii_only = f"LENGTH({value}) = OCTET_LENGTH({value})"
    return f"CASE WHEN {ascii_only} THEN {quick}({value}) ELSE TRANSLATE({value}, {_letters(changed)}) END"


@cache
def _letters(changed: Callable[[str], str]) -> str:
    """Write all letters that change, and what they become; Spark's own tables differ from release to release."""
    codes = (*range(0xD800), *range(0xE000, 0x110000))
    pairs = [(letter, found) for letter in map(chr, codes) if (found := changed(letter)) != letter]
    return f"{text(''.join(letter for letter, _ in pairs))}, {text(''.join(found for _, found in pairs))}"


def matched(args: Sequence[str], exprs: Sequence[Expr]) -> str:
    """Write that a regular expression is found in a text."""
    return f"{args[0]} RLIKE {text(written(parsed(_pattern(exprs))))}"


def like(args: Sequence[str], exprs: Sequence[Expr]) -> str:
    """Write that a whole text is like a pattern with % and _."""
    return _like(args[0], _segments(_pattern(exprs)))


def like_any_case(args: Sequence[str], exprs: Sequence[Expr]) -> str:
    """Write the same for small letters of both."""
    small = f"TRANSLATE({args[0]}, {_letters(lower_case)})"
    return _like(small, _segments(lower_case(_pattern(exprs))))


def pattern_gap(call: Call) -> str:
    """Return why a pattern cannot be searched in a bounded time, in words for its author; nothing if it can."""
    if call.op == "matches" and _steps(parsed(_pattern(call.args))) > MOST_STEPS:
        return (
            "REGEXP_LIKE: Spark could take very long for one row with this regular expression. Begin it with ^, "
            "let what repeats (*, +) be followed by other letters than it repeats, bound it ({0,20}), repeat no "
            "(group) without a bound, or write LIKE."
        )
    if call.op in {"like", "like_any_case"}:
        segments = _segments(_pattern(call.args))
        if not _is_found(segments) and _steps(_as_tree(segments)) > MOST_STEPS:
            return "LIKE: Spark could take very long for one row with so many %. Write fewer, and no _ between them."
    return ""


def _pattern(exprs: Sequence[Expr]) -> str:
    found = exprs[1]
    assert isinstance(found, Constant)
    return str(found.value)


def _steps(tree: Part) -> int:
    found = steps(tree)
    return MOST_STEPS + 1 if found is None else found


Segments = tuple[tuple[str | None, ...], ...]  # between one % and the next; None is any letter


@lru_cache(maxsize=1000)
def _segments(pattern: str) -> Segments:
    parts = re.findall(r"\\.|[^\\]", pattern, re.DOTALL)
    found: list[list[str | None]] = [[]]
    for part in parts:
        if part == "%":
            found.append([])
        else:
            found[-1].append(None if part == "_" else part[-1])
    first, *rest = map(tuple, found)
    return (first, *filter(None, rest[:-1]), *rest[-1:])


def _is_found(segments: Segments) -> bool:
    """Tell whether the letters between % can be found one after the other."""
    return all(None not in segment for segment in segments) and _looks(segments) <= _MOST_LOOKS


def _looks(segments: Segments) -> int:
    return len(segments) - 2 + bool(segments[0]) + 2 * bool(segments[-1])


def _like(value: str, segments: Segments) -> str:
    if not _is_found(segments):
        return f"{value} RLIKE {text(written(_as_tree(segments)))}"
    first, *between = ("".join(letter or "" for letter in segment) for segment in segments)
    if not between:
        return f"{value} = {text(first)}"
    *between, last = between
    ways = [f"SUBSTRING({value}, 1, {len(first)}) = {text(first)}"] if first else []
    place = start = str(len(first) + 1)
    for segment in between:
        found = f"LOCATE({text(segment)}, {value}, {start})"
        place = f"({found} + {_FAR - 1}) % {_FAR} + {len(segment) + 1}"  # what is not found is far away
        start = f"COALESCE({place}, {_FAR})"  # from NULL on, Spark finds nothing in NULL, instead of NULL
    if last:
        ways += [f"{place} <= LENGTH({value}) - {len(last) - 1}", f"SUBSTRING({value}, -{len(last)}) = {text(last)}"]
    elif between:
        ways.append(f"{place} < {_FAR}")
    return " AND ".join(ways) or f"LENGTH({value}) >= 0"


def _as_tree(segments: Segments) -> Part:
    """Return a pattern as a regular expression for the whole text, without what a search does not need."""
    first, *rest = segments
    parts = row_of(list(first))
    for segment in rest:
        parts += [Times(ANYTHING, 0, None), *row_of(list(segment))]
    begins = [] if rest and not first else [End("A")]
    ends = [] if rest and not rest[-1] else [End("z")]
    return Row((*begins, *parts[not begins : len(parts) - (not ends)], *ends))


assert LONGEST_TEXT < _FAR
