"""Text functions in Spark: case by code point, and patterns searched in bounded time."""

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from discreet.engines.reference.evaluate import lower_case, upper_case
from discreet.engines.spark.literals import text_literal
from discreet.engines.spark.regex import (
    ANY_CHAR,
    Anchor,
    Concatenation,
    RegexNode,
    Repetition,
    nodes_of_chars,
    parse_regex,
    write_regex,
)
from discreet.engines.spark.regex_cost import MAX_STEPS, search_steps
from discreet.kernel.expr import MAX_TEXT_LENGTH, Call, Constant, Expr

_NOT_FOUND = 100_000  # no place in a text of LONGEST_TEXT characters
_MAX_SEARCHES = 5  # at a text for one LIKE: an expression is written out for each


def lower(args: Sequence[str], _exprs: Sequence[Expr]) -> str:
    """Write a text with each letter as a small one."""
    return _change_case("LOWER", args[0], lower_case)


def upper(args: Sequence[str], _exprs: Sequence[Expr]) -> str:
    """Write a text with each letter as a capital one."""
    return _change_case("UPPER", args[0], upper_case)


def _change_case(ascii_function: str, value: str, change: Callable[[str], str]) -> str:
    """Write a changed text; one of ASCII letters alone is quicker changed by Spark itself."""
    ascii_only = f"LENGTH({value}) = OCTET_LENGTH({value})"
    return f"CASE WHEN {ascii_only} THEN {ascii_function}({value}) ELSE TRANSLATE({value}, {_translation(change)}) END"


@cache
def _translation(change: Callable[[str], str]) -> str:
    """Write all letters that change, and what they become; Spark's own tables differ from release to release."""
    codes = (*range(0xD800), *range(0xE000, 0x110000))
    pairs = [(letter, found) for letter in map(chr, codes) if (found := change(letter)) != letter]
    return (
        f"{text_literal(''.join(letter for letter, _ in pairs))}, {text_literal(''.join(found for _, found in pairs))}"
    )


def matches(args: Sequence[str], exprs: Sequence[Expr]) -> str:
    """Write that a regular expression is found in a text."""
    return f"{args[0]} RLIKE {text_literal(write_regex(parse_regex(_constant_pattern(exprs))))}"


def like(args: Sequence[str], exprs: Sequence[Expr]) -> str:
    """Write that a whole text is like a pattern with % and _."""
    return _like_sql(args[0], _like_segments(_constant_pattern(exprs)))


def like_any_case(args: Sequence[str], exprs: Sequence[Expr]) -> str:
    """Write the same for small letters of both."""
    lowered = f"TRANSLATE({args[0]}, {_translation(lower_case)})"
    return _like_sql(lowered, _like_segments(lower_case(_constant_pattern(exprs))))


def unsupported_pattern(call: Call) -> str:
    """Return why a pattern cannot be searched in a bounded time, in words for its author; nothing if it can."""
    if call.op == "matches" and _steps_or_excess(parse_regex(_constant_pattern(call.args))) > MAX_STEPS:
        return (
            "REGEXP_LIKE: Spark could take very long for one row with this regular expression. Begin it with ^, "
            "let what repeats (*, +) be followed by other letters than it repeats, bound it ({0,20}), repeat no "
            "(group) without a bound, or write LIKE."
        )
    if call.op in {"like", "like_any_case"}:
        segments = _like_segments(_constant_pattern(call.args))
        if not _is_locatable(segments) and _steps_or_excess(_like_regex(segments)) > MAX_STEPS:
            return "LIKE: Spark could take very long for one row with so many %. Write fewer, and no _ between them."
    return ""


def _constant_pattern(exprs: Sequence[Expr]) -> str:
    pattern = exprs[1]
    assert isinstance(pattern, Constant)
    return str(pattern.value)


def _steps_or_excess(tree: RegexNode) -> int:
    step_count = search_steps(tree)
    return MAX_STEPS + 1 if step_count is None else step_count


Segments = tuple[tuple[str | None, ...], ...]  # between one % and the next; None is any letter


@lru_cache(maxsize=1000)
def _like_segments(pattern: str) -> Segments:
    parts = re.findall(r"\\.|[^\\]", pattern, re.DOTALL)
    segments: list[list[str | None]] = [[]]
    for part in parts:
        if part == "%":
            segments.append([])
        else:
            segments[-1].append(None if part == "_" else part[-1])
    first, *rest = map(tuple, segments)
    return (first, *filter(None, rest[:-1]), *rest[-1:])


def _is_locatable(segments: Segments) -> bool:
    """Tell whether the letters between % can be found one after the other."""
    return all(None not in segment for segment in segments) and _search_count(segments) <= _MAX_SEARCHES


def _search_count(segments: Segments) -> int:
    return len(segments) - 2 + bool(segments[0]) + 2 * bool(segments[-1])


def _like_sql(value: str, segments: Segments) -> str:
    if not _is_locatable(segments):
        return f"{value} RLIKE {text_literal(write_regex(_like_regex(segments)))}"
    first, *between = ("".join(letter or "" for letter in segment) for segment in segments)
    if not between:
        return f"{value} = {text_literal(first)}"
    *between, last = between
    conditions = [f"SUBSTRING({value}, 1, {len(first)}) = {text_literal(first)}"] if first else []
    position = start = str(len(first) + 1)
    for segment in between:
        located = f"LOCATE({text_literal(segment)}, {value}, {start})"
        position = (
            f"({located} + {_NOT_FOUND - 1}) % {_NOT_FOUND} + {len(segment) + 1}"  # what is not found is far away
        )
        start = f"COALESCE({position}, {_NOT_FOUND})"  # from NULL on, Spark finds nothing in NULL, instead of NULL
    if last:
        conditions += [
            f"{position} <= LENGTH({value}) - {len(last) - 1}",
            f"SUBSTRING({value}, -{len(last)}) = {text_literal(last)}",
        ]
    elif between:
        conditions.append(f"{position} < {_NOT_FOUND}")
    return " AND ".join(conditions) or f"LENGTH({value}) >= 0"


def _like_regex(segments: Segments) -> RegexNode:
    """Return a pattern as a regular expression for the whole text, without what a search does not need."""
    first, *rest = segments
    parts = nodes_of_chars(list(first))
    for segment in rest:
        parts += [Repetition(ANY_CHAR, 0, None), *nodes_of_chars(list(segment))]
    start_anchor = [] if rest and not first else [Anchor("A")]
    end_anchor = [] if rest and not rest[-1] else [Anchor("z")]
    return Concatenation((*start_anchor, *parts[not start_anchor : len(parts) - (not end_anchor)], *end_anchor))


assert MAX_TEXT_LENGTH < _NOT_FOUND
