"""How long a search may take where regular expressions are tried way by way, as Java does.

It goes back and tries again where a way fails, so that one row's text could take hours, or more calls than a stack
holds. What may cost too much in a text of LONGEST_TEXT characters is refused before anybody's rows are read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from discreet.engines.dialects.spark_patterns import TOP, Either, End, Letter, Part, Ranges, Row, Times, joined
from discreet.kernel.expr import LONGEST_TEXT

_MOST_TIMES = 200  # so often may a group be repeated, with those around it: each takes a part of the stack
MOST_STEPS = 400_000  # about two thousandths of a second; a row may be searched for two hundred patterns


@dataclass(frozen=True)
class _Cost:
    steps: int  # for one way in, if all that comes after fails
    ways: int  # out of it, of which what comes after does not fail at its first letter


@dataclass(frozen=True)
class _After:
    """What has to come after a part; None in its place if nothing has to, so that the first way out ends the search."""

    first: Ranges
    tried: int = 1  # letters, until it is clear that none of them is there


def steps(part: Part) -> int | None:
    """Return how many steps a search may take in a text of LONGEST_TEXT characters; None if a stack may not hold them.

    >>> from discreet.engines.dialects.spark_patterns import parsed
    >>> steps(parsed("[a-z]+@[a-z]+[.]com")) < MOST_STEPS < steps(parsed("a.*b")) < steps(parsed("a.*b.*c"))
    True
    >>> steps(parsed("^(ab)*c")) is None
    True
    """
    if _repeated(part) > _MOST_TIMES:
        return None
    return sum(map(_searched, part.ways if isinstance(part, Either) else (part,)))


def _searched(way: Part) -> int:
    """Return the steps of a search that begins at every letter."""
    parts = way.parts if isinstance(way, Row) else (way,)
    if parts[:1] == (End("A"),):
        return _cost(way, None).steps + LONGEST_TEXT
    entered, everywhere, alone = 1, LONGEST_TEXT, True
    for place, part in enumerate(parts):
        cost = _cost(part, _behind(parts[place + 1 :], None))
        # The letter before it can only be where the repeated ones begin: all searches together go over them once.
        once = (
            alone
            and cost.ways == 1
            and isinstance(part, Times)
            and place > 0
            and _apart_letters(parts[place - 1], part)
        )
        alone = alone and (once or _length_is_fixed(part))
        everywhere += entered * cost.steps * (1 if once else LONGEST_TEXT)
        entered *= cost.ways
    return everywhere


def _apart_letters(before: Part, repeated: Times) -> bool:
    both = isinstance(before, Letter) and isinstance(repeated.part, Letter)
    return both and _apart(_first(before)[0], _first(repeated)[0])


def _length_is_fixed(part: Part) -> bool:
    return isinstance(part, Letter) or (
        isinstance(part, Times) and part.least == part.most and isinstance(part.part, Letter)
    )


def _repeated(part: Part) -> int:
    """Return how often a group is repeated, with those around it."""
    match part:
        case Letter() | End() | Times(Letter(), _, _):
            return 1
        case Times(inner, _, most):
            return (_MOST_TIMES + 1 if most is None else max(most, 1)) * _repeated(inner)
        case Row(parts):
            return max(map(_repeated, parts), default=1)
        case Either(ways):
            return max(map(_repeated, ways))


def _cost(part: Part, after: _After | None) -> _Cost:
    match part:
        case Letter(ranges):
            return _Cost(max(len(ranges), 1), 1)  # Java looks through them one by one
        case End():
            return _Cost(1, 1)
        case Row(parts):
            entered = taken = 1
            for place, each in enumerate(parts):
                cost = _cost(each, _behind(parts[place + 1 :], after))
                entered, taken = entered * cost.ways, taken + entered * cost.steps
            return _Cost(taken, entered)
        case Either(ways):
            costs = [_cost(way, after) for way in ways]
            firsts = [behind.first if (behind := _behind((way,), after)) else ((0, TOP),) for way in ways]
            apart = all(_apart(one, two) for one, two in combinations(firsts, 2))
            return _Cost(sum(cost.steps for cost in costs), (max if apart else sum)(cost.ways for cost in costs))
        case Times(inner, least, most):
            return _cost_of_times(inner, least, LONGEST_TEXT if most is None else min(most, LONGEST_TEXT), after)


def _cost_of_times(inner: Part, least: int, most: int, after: _After | None) -> _Cost:
    again, empty = _first(inner)
    follows = None if after is None and least < 2 else _After(joined([*again, *(after.first if after else ())]))
    one = _cost(inner, _After(((0, TOP),)) if empty else follows)
    entered = [one.ways**times for times in range(most + 1)] if one.ways > 1 else [1] * (most + 1)
    ends = sum(entered[least:])
    # Where another one fits, what comes after does not: only the last of the ends can be the right one.
    sure = after is None or (one.ways == 1 and not empty and _apart(again, after.first))
    looked = ends * after.tried if after else 1
    return _Cost(one.steps * sum(entered[:most]) + looked, 1 if sure else ends)


def _behind(parts: Sequence[Part], after: _After | None) -> _After | None:
    """Return what has to come where these parts do, and then `after`."""
    first: list[tuple[int, int]] = []
    tried = 0
    for part in parts:
        ranges, empty = _first(part)
        first += ranges
        tried += _leaves(part)
        if not empty:
            return _After(joined(first), tried)
    return after and _After(joined([*first, *after.first]), tried + after.tried)


def _first(part: Part) -> tuple[Ranges, bool]:
    """Return the letters that a part may begin with, and whether it may be empty."""
    match part:
        case Letter(ranges):
            return ranges, False
        case End():
            return (), False
        case Times(inner, least, _):
            ranges, empty = _first(inner)
            return ranges, empty or least == 0
        case Either(ways):
            found = list(map(_first, ways))
            return joined([each for ranges, _ in found for each in ranges]), any(empty for _, empty in found)
        case Row(parts):
            behind = _behind(parts, None)
            every = joined([each for inner in parts for each in _first(inner)[0]])
            return (every, True) if behind is None else (behind.first, False)


def _leaves(part: Part) -> int:
    match part:
        case Letter(ranges):
            return max(len(ranges), 1)
        case End():
            return 1
        case Times(inner, _, _):
            return _leaves(inner)
    return sum(map(_leaves, part.parts if isinstance(part, Row) else part.ways))


def _apart(one: Ranges, two: Ranges) -> bool:
    return not any(low <= top and bottom <= high for low, high in one for bottom, top in two)
