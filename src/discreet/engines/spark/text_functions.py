"""Text functions in Spark, which map case by code point and search for patterns in bounded time."""

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from discreet.engines.common_sql import changed_letters, constant_regex, constant_text
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
from discreet.kernel.expr import MAX_TEXT_LENGTH, Call, Expr

_NOT_FOUND = 100_000  # beyond the end of a text of MAX_TEXT_LENGTH characters
_MAX_SEARCHES = 5  # for one LIKE, because the text's expression is repeated for each


def lower(args: Sequence[str], _exprs: Sequence[Expr]) -> str:
    """Return SQL for a text in lower case."""
    return _change_case("LOWER", args[0], lower_case)


def upper(args: Sequence[str], _exprs: Sequence[Expr]) -> str:
    """Return SQL for a text in upper case."""
    return _change_case("UPPER", args[0], upper_case)


def _change_case(ascii_function: str, value: str, change: Callable[[str], str]) -> str:
    """Return SQL that changes case; for ASCII texts, Spark's own function is faster."""
    ascii_only = f"LENGTH({value}) = OCTET_LENGTH({value})"
    return f"CASE WHEN {ascii_only} THEN {ascii_function}({value}) ELSE TRANSLATE({value}, {_translation(change)}) END"


@cache
def _translation(change: Callable[[str], str]) -> str:
    """Return all characters that change and their replacements; Spark's own tables differ between releases."""
    pairs = changed_letters(change)
    letters, replacements = "".join(pairs), "".join(pairs.values())
    return f"{text_literal(letters)}, {text_literal(replacements)}"


def matches(args: Sequence[str], exprs: Sequence[Expr]) -> str:
    """Return SQL for a match of a constant regular expression."""
    return f"{args[0]} RLIKE {text_literal(write_regex(parse_regex(constant_regex(exprs[1]))))}"


def like(args: Sequence[str], exprs: Sequence[Expr]) -> str:
    """Return SQL for LIKE with a constant pattern."""
    return _like_sql(args[0], _like_segments(constant_text(exprs[1])))


def like_any_case(args: Sequence[str], exprs: Sequence[Expr]) -> str:
    """Return SQL for ILIKE with a constant pattern."""
    lowered = f"TRANSLATE({args[0]}, {_translation(lower_case)})"
    return _like_sql(lowered, _like_segments(lower_case(constant_text(exprs[1]))))


def unsupported_pattern(call: Call) -> str:
    """Return why a pattern cannot be searched for in bounded time, or "" if it can.

    Claim: a search that is not refused takes at most MAX_STEPS steps on a text of MAX_TEXT_LENGTH characters.
    Proof: regular expressions, also those that a LIKE becomes, have their steps bounded by search_steps; a LIKE whose
        parts are found one after the other by LOCATE passes over the text at most _MAX_SEARCHES times.
    Needs: search_steps, parse_regex, write_regex, _like_segments, _like_sql, _is_locatable.
    Checked by: test_no_text_takes_more_matching_steps_than_computed, test_patterns_are_read_alike
    """
    if call.op == "matches" and _steps_or_excess(parse_regex(constant_regex(call.args[1]))) > MAX_STEPS:
        return (
            "REGEXP_LIKE: this regular expression could take too long on a single row in Spark. Start it with ^, let "
            "repetitions (*, +) be followed by characters that they cannot match, bound them ({0,20}), do not repeat a "
            "(group) without a bound, or use LIKE."
        )
    if call.op in {"like", "like_any_case"}:
        segments = _like_segments(constant_text(call.args[1]))
        if not _is_locatable(segments) and _steps_or_excess(_like_regex(segments)) > MAX_STEPS:
            return (
                "LIKE: this pattern could take too long on a single row in Spark. Use fewer %, and no _ between them."
            )
    return ""


def _steps_or_excess(tree: RegexNode) -> int:
    step_count = search_steps(tree)
    return MAX_STEPS + 1 if step_count is None else step_count


Segments = tuple[tuple[str | None, ...], ...]  # the characters between one % and the next; None is any character


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
    """Whether the segments contain no _, so that LOCATE can find one after the other."""
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
        position = f"({located} + {_NOT_FOUND - 1}) % {_NOT_FOUND} + {len(segment) + 1}"  # not found: beyond the end
        start = f"COALESCE({position}, {_NOT_FOUND})"  # LOCATE in NULL from a NULL start is 0 in Spark instead of NULL
    if last:
        conditions += [
            f"{position} <= LENGTH({value}) - {len(last) - 1}",
            f"SUBSTRING({value}, -{len(last)}) = {text_literal(last)}",
        ]
    elif between:
        conditions.append(f"{position} < {_NOT_FOUND}")
    return " AND ".join(conditions) or f"LENGTH({value}) >= 0"


def _like_regex(segments: Segments) -> RegexNode:
    """Return a LIKE pattern as a regular expression, simplified for searching."""
    first, *rest = segments
    parts = nodes_of_chars(list(first))
    for segment in rest:
        parts += [Repetition(ANY_CHAR, 0, None), *nodes_of_chars(list(segment))]
    start_anchor = [] if rest and not first else [Anchor("A")]
    end_anchor = [] if rest and not rest[-1] else [Anchor("z")]
    return Concatenation((*start_anchor, *parts[not start_anchor : len(parts) - (not end_anchor)], *end_anchor))


assert MAX_TEXT_LENGTH < _NOT_FOUND
