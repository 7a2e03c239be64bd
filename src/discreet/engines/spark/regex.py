"""Regular expressions as trees, written so that Java and Rust interpret them alike."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

MAX_CODE_POINT = 0x10FFFF

CharRanges = tuple[tuple[int, int], ...]  # of code points, sorted and disjoint


@dataclass(frozen=True)
class CharClass:
    """One character in a set of ranges."""

    ranges: CharRanges


@dataclass(frozen=True)
class Concatenation:
    """A sequence of parts."""

    parts: tuple["RegexNode", ...]


@dataclass(frozen=True)
class Alternation:
    """One of several branches."""

    branches: tuple["RegexNode", ...]


@dataclass(frozen=True)
class Repetition:
    """A part repeated `min_count` to `max_count` times; None is unbounded."""

    body: "RegexNode"
    min_count: int
    max_count: int | None


@dataclass(frozen=True)
class Anchor:
    r"""The start (\A) or the end (\z) of a text."""

    symbol: str


RegexNode = CharClass | Concatenation | Alternation | Repetition | Anchor
ANY_CHAR = CharClass(((0, MAX_CODE_POINT),))


def parse_regex(pattern: str) -> RegexNode:
    r"""Parse a regular expression that check_regex has accepted.

    >>> write_regex(parse_regex("^a.$"))
    '\\Aa[\\x{0}-\\x{9}\\x{b}-\\x{10ffff}]\\z'
    """
    chars = iter([*pattern, ""])
    tree, _ = _parse_alternation(chars)
    return _trim_for_search(tree)


def _parse_alternation(chars: Iterator[str]) -> tuple[RegexNode, str]:
    """Parse up to a closing parenthesis or the end, and return the character that ended it."""
    branches: list[RegexNode] = []
    parts: list[RegexNode] = []
    for char in chars:
        match char:
            case "" | ")" | "|":
                branches.append(_concatenate(parts))
                parts = []
                if char != "|":
                    return _merge_branches(branches), char
            case "(":
                parts.append(_parse_alternation(chars)[0])
            case "^" | "$":
                parts.append(Anchor("A" if char == "^" else "z"))
            case "*" | "+" | "?":
                parts.append(Repetition(parts.pop(), int(char == "+"), 1 if char == "?" else None))
            case "{":
                least, between, most = "".join(iter(lambda: next(chars), "}")).partition(",")
                parts.append(Repetition(parts.pop(), int(least), int(most or least) if most or not between else None))
            case "[":
                parts.append(_parse_class(chars))
            case ".":
                parts.append(CharClass(_complement(((10, 10),))))
            case _:
                parts.append(_single_char(next(chars) if char == "\\" else char))
    raise AssertionError(chars)


def _parse_class(chars: Iterator[str]) -> CharClass:
    inside = "".join(iter(lambda: next(chars), "]"))
    negated = inside.startswith("^")
    rest, ranges = inside[negated:], []
    while rest:
        width = 3 if rest[1:2] == "-" and rest[2:] else 1
        ranges.append((ord(rest[0]), ord(rest[width - 1])))
        rest = rest[width:]
    return CharClass(_complement(merge_ranges(ranges)) if negated else merge_ranges(ranges))


def _concatenate(parts: list[RegexNode]) -> RegexNode:
    return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))


def _merge_branches(branches: list[RegexNode]) -> RegexNode:
    """Merge branches of one character each into one class, which needs no backtracking."""
    if len(branches) == 1:
        return branches[0]
    classes = [branch for branch in branches if isinstance(branch, CharClass)]
    if len(classes) == len(branches):
        return CharClass(merge_ranges([ends for char_class in classes for ends in char_class.ranges]))
    return Alternation(tuple(branches))


def _single_char(char: str) -> CharClass:
    return CharClass(((ord(char), ord(char)),))


def nodes_of_chars(chars: list[str | None]) -> list[RegexNode]:
    """Return nodes that match these characters; None matches any character.

    >>> nodes_of_chars(["a", None]) == [CharClass(((97, 97),)), ANY_CHAR]
    True
    """
    return [ANY_CHAR if letter is None else _single_char(letter) for letter in chars]


def merge_ranges(ranges: list[tuple[int, int]]) -> CharRanges:
    """Sort ranges and merge adjacent ones.

    >>> merge_ranges([(5, 9), (1, 4), (20, 30)])
    ((1, 9), (20, 30))
    """
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def _complement(ranges: CharRanges) -> CharRanges:
    ends = [-1, *(end for low, high in ranges for end in (low, high)), MAX_CODE_POINT + 1]
    return tuple((low + 1, high - 1) for low, high in list(pairwise(ends))[::2] if low + 1 <= high - 1)


def _trim_for_search(node: RegexNode) -> RegexNode:
    """Simplify a pattern for searching: extra repetitions of the first and the last part are irrelevant."""
    if isinstance(node, Alternation):
        return Alternation(tuple(map(_trim_for_search, node.branches)))
    parts: list[RegexNode] = list(node.parts) if isinstance(node, Concatenation) else [node]
    for index in (0, -1):
        while parts and isinstance(repeated := parts[index], Repetition):
            if repeated.min_count:
                parts[index] = Repetition(repeated.body, repeated.min_count, repeated.min_count)
                break
            del parts[index]
    return _concatenate(parts)


def write_regex(node: RegexNode) -> str:
    r"""Return the text of a regular expression.

    Claim: Java and Rust find the same texts with it as the kernel's regular expressions mean.
    Proof: characters other than ASCII letters and digits are written by number, so no sign has a meaning of its own;
        classes are ranges of code points, anchors are those of the whole text, and groups only group.
    Needs: parse_regex, check_regex.
    Checked by: test_patterns_are_read_alike, test_random_patterns_are_read_alike

    >>> write_regex(parse_regex("a(b|c){2}_"))
    'a[b-c]{2,2}\\x{5f}'
    """
    match node:
        case CharClass(ranges):
            low, high = ranges[0] if len(ranges) == 1 else (0, 1)
            return _write_char(low) if low == high else f"[{''.join(map(_write_range, ranges))}]"
        case Concatenation(parts):
            return "".join(map(write_regex, parts))
        case Alternation(branches):
            return f"(?:{'|'.join(map(write_regex, branches))})"
        case Anchor(sign):
            return f"\\{sign}"
        case Repetition(inner, least, most):
            text = write_regex(inner) if isinstance(inner, CharClass) else f"(?:{write_regex(inner)})"
            if most is not None:
                return text + ("" if least == most == 1 else f"{{{least},{most}}}")
            # For * and +, unlike {m,}, Java matches without a recursive call per character.
            return (f"{text}{{{least - 1}}}" if least > 1 else "") + text + ("+" if least else "*")


def _write_range(ends: tuple[int, int]) -> str:
    low, high = ends
    return _write_char(low) if low == high else f"{_write_char(low)}-{_write_char(high)}"


def _write_char(code: int) -> str:
    return chr(code) if chr(code).isascii() and chr(code).isalnum() else f"\\x{{{code:x}}}"
