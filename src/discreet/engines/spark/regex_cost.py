"""Bound the cost of searching for a regular expression with backtracking, as Java does.

With backtracking, the text of one row could take hours, or overflow the stack. Patterns that may cost too much on a
text of MAX_TEXT_LENGTH characters are refused before any row is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from discreet.engines.spark.regex import (
    MAX_CODE_POINT,
    Alternation,
    Anchor,
    CharClass,
    CharRanges,
    Concatenation,
    RegexNode,
    Repetition,
    merge_ranges,
)
from discreet.kernel.expr import MAX_TEXT_LENGTH

_MAX_GROUP_REPEATS = 200  # repetitions of nested groups in all, each of which takes a stack frame
MAX_STEPS = 400_000  # about 2 ms; a query may search a row for 200 patterns


@dataclass(frozen=True)
class _Cost:
    steps: int  # per entry, if everything after it fails
    exits: int  # after which the continuation does not fail at its first character


@dataclass(frozen=True)
class _Continuation:
    """What must follow a part; without one (None), the first exit ends the search."""

    first_chars: CharRanges
    chars_tried: int = 1  # comparisons until it is clear that no first character is there


def search_steps(node: RegexNode) -> int | None:
    """Return the maximum steps of a search in a text of MAX_TEXT_LENGTH characters; None if the stack may overflow.

    Claim: no text of this length takes more steps, if the engine tries one way after the other, as Java does.
    Proof: a part is entered once for each way in which the parts before it can match, at each of the characters where
        a search may begin. A repetition has one exit if what follows cannot begin where its body goes on, and
        otherwise as many as it has repetitions; at the others, the first characters are compared and fail.
    Needs: _backtracking_cost, _repetition_cost, _continuation, _first_chars, _leaf_count, _disjoint, _group_repeats.
    Checked by: test_no_text_takes_more_matching_steps_than_computed

    >>> from discreet.engines.spark.regex import parse_regex
    >>> cheap, costly, worse = (search_steps(parse_regex(p)) for p in ("[a-z]+@[a-z]+[.]com", "a.*b", "a.*b.*c"))
    >>> cheap < MAX_STEPS < costly < worse
    True
    >>> search_steps(parse_regex("^(ab)*c")) is None
    True
    """
    if _group_repeats(node) > _MAX_GROUP_REPEATS:
        return None
    return sum(map(_branch_steps, node.branches if isinstance(node, Alternation) else (node,)))


def _branch_steps(branch: RegexNode) -> int:
    """Return the steps of a search that starts at every character."""
    parts = branch.parts if isinstance(branch, Concatenation) else (branch,)
    if parts[:1] == (Anchor("A"),):
        return _backtracking_cost(branch, None).steps + MAX_TEXT_LENGTH
    entries, total, fixed_so_far = 1, MAX_TEXT_LENGTH, True
    for index, part in enumerate(parts):
        cost = _backtracking_cost(part, _continuation(parts[index + 1 :], None))
        # The preceding character cannot be one of those repeated, so all searches together scan these only once.
        once = (
            fixed_so_far
            and cost.exits == 1
            and isinstance(part, Repetition)
            and index > 0
            and _chars_disjoint(parts[index - 1], part)
        )
        fixed_so_far = fixed_so_far and (once or _has_fixed_length(part))
        total += entries * cost.steps * (1 if once else MAX_TEXT_LENGTH)
        entries *= cost.exits
    return total


def _chars_disjoint(before: RegexNode, repetition: Repetition) -> bool:
    both = isinstance(before, CharClass) and isinstance(repetition.body, CharClass)
    return both and _disjoint(_first_chars(before)[0], _first_chars(repetition)[0])


def _has_fixed_length(node: RegexNode) -> bool:
    return isinstance(node, CharClass) or (
        isinstance(node, Repetition) and node.min_count == node.max_count and isinstance(node.body, CharClass)
    )


def _group_repeats(node: RegexNode) -> int:
    """Return the maximum number of repetitions of a group, including those of enclosing groups."""
    match node:
        case CharClass() | Anchor() | Repetition(CharClass(), _, _):
            return 1
        case Repetition(inner, _, most):
            return (_MAX_GROUP_REPEATS + 1 if most is None else max(most, 1)) * _group_repeats(inner)
        case Concatenation(parts):
            return max(map(_group_repeats, parts), default=1)
        case Alternation(branches):
            return max(map(_group_repeats, branches))


def _backtracking_cost(node: RegexNode, after: _Continuation | None) -> _Cost:
    match node:
        case CharClass(ranges):
            return _Cost(max(len(ranges), 1), 1)  # Java tries the ranges one by one
        case Anchor():
            return _Cost(1, 1)
        case Concatenation(parts):
            entries = steps = 1
            for index, child in enumerate(parts):
                cost = _backtracking_cost(child, _continuation(parts[index + 1 :], after))
                entries, steps = entries * cost.exits, steps + entries * cost.steps
            return _Cost(steps, entries)
        case Alternation(branches):
            costs = [_backtracking_cost(branch, after) for branch in branches]
            firsts = [
                behind.first_chars if (behind := _continuation((branch,), after)) else ((0, MAX_CODE_POINT),)
                for branch in branches
            ]
            disjoint = all(_disjoint(one, two) for one, two in combinations(firsts, 2))
            return _Cost(sum(cost.steps for cost in costs), (max if disjoint else sum)(cost.exits for cost in costs))
        case Repetition(inner, least, most):
            return _repetition_cost(
                inner, least, MAX_TEXT_LENGTH if most is None else min(most, MAX_TEXT_LENGTH), after
            )


def _repetition_cost(body: RegexNode, min_count: int, max_count: int, after: _Continuation | None) -> _Cost:
    first_of_body, empty = _first_chars(body)
    follows = (
        None
        if after is None and min_count < 2
        else _Continuation(merge_ranges([*first_of_body, *(after.first_chars if after else ())]))
    )
    body_cost = _backtracking_cost(body, _Continuation(((0, MAX_CODE_POINT),)) if empty else follows)
    entries = (
        [body_cost.exits**times for times in range(max_count + 1)] if body_cost.exits > 1 else [1] * (max_count + 1)
    )
    exits = sum(entries[min_count:])
    # Where the body matches once more, the continuation does not: only the last exit can succeed.
    single_exit = after is None or (body_cost.exits == 1 and not empty and _disjoint(first_of_body, after.first_chars))
    lookahead_steps = exits * after.chars_tried if after else 1
    return _Cost(body_cost.steps * sum(entries[:max_count]) + lookahead_steps, 1 if single_exit else exits)


def _continuation(parts: Sequence[RegexNode], after: _Continuation | None) -> _Continuation | None:
    """Return the continuation formed by these parts followed by `after`."""
    first_chars: list[tuple[int, int]] = []
    chars_tried = 0
    for part in parts:
        ranges, empty = _first_chars(part)
        first_chars += ranges
        chars_tried += _leaf_count(part)
        if not empty:
            return _Continuation(merge_ranges(first_chars), chars_tried)
    return after and _Continuation(merge_ranges([*first_chars, *after.first_chars]), chars_tried + after.chars_tried)


def _first_chars(node: RegexNode) -> tuple[CharRanges, bool]:
    """Return the characters that a part may start with, and whether it may match the empty text."""
    match node:
        case CharClass(ranges):
            return ranges, False
        case Anchor():
            return (), False
        case Repetition(inner, least, _):
            ranges, empty = _first_chars(inner)
            return ranges, empty or least == 0
        case Alternation(branches):
            firsts = list(map(_first_chars, branches))
            return merge_ranges([ends for ranges, _ in firsts for ends in ranges]), any(empty for _, empty in firsts)
        case Concatenation(parts):
            continuation = _continuation(parts, None)
            all_firsts = merge_ranges([ends for inner in parts for ends in _first_chars(inner)[0]])
            return (all_firsts, True) if continuation is None else (continuation.first_chars, False)


def _leaf_count(node: RegexNode) -> int:
    match node:
        case CharClass(ranges):
            return max(len(ranges), 1)
        case Anchor():
            return 1
        case Repetition(inner, _, _):
            return _leaf_count(inner)
    return sum(map(_leaf_count, node.parts if isinstance(node, Concatenation) else node.branches))


def _disjoint(one: CharRanges, two: CharRanges) -> bool:
    return not any(low <= top and bottom <= high for low, high in one for bottom, top in two)
