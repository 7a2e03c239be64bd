"""Regular expressions as small trees, and how they are written so that Java and Rust read them alike."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

TOP = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]  # of code points, in order and apart


@dataclass(frozen=True)
class Letter:
    """One character out of some ranges."""

    ranges: Ranges


@dataclass(frozen=True)
class Row:
    """Parts that follow one another."""

    parts: tuple["Part", ...]


@dataclass(frozen=True)
class Either:
    """One of several ways."""

    ways: tuple["Part", ...]


@dataclass(frozen=True)
class Times:
    """A part so many times; None is any number."""

    part: "Part"
    least: int
    most: int | None


@dataclass(frozen=True)
class End:
    """The beginning (A) or the end (z) of a text."""

    sign: str


Part = Letter | Row | Either | Times | End
ANYTHING = Letter(((0, TOP),))


def parsed(pattern: str) -> Part:
    r"""Read a pattern that the kernel took for a regular expression.

    >>> written(parsed("^a.$"))
    '\\Aa[\\x{0}-\\x{9}\\x{b}-\\x{10ffff}]\\z'
    """
    letters = iter([*pattern, ""])
    found, _ = _either(letters)
    return _search(found)


def _either(letters: Iterator[str]) -> tuple[Part, str]:
    """Read until a bracket or the text ends, and return what ended it."""
    ways: list[Part] = []
    parts: list[Part] = []
    for letter in letters:
        match letter:
            case "" | ")" | "|":
                ways.append(_row(parts))
                parts = []
                if letter != "|":
                    return _merged(ways), letter
            case "(":
                parts.append(_either(letters)[0])
            case "^" | "$":
                parts.append(End("A" if letter == "^" else "z"))
            case "*" | "+" | "?":
                parts.append(Times(parts.pop(), int(letter == "+"), 1 if letter == "?" else None))
            case "{":
                least, between, most = "".join(iter(lambda: next(letters), "}")).partition(",")
                parts.append(Times(parts.pop(), int(least), int(most or least) if most or not between else None))
            case "[":
                parts.append(_class(letters))
            case ".":
                parts.append(Letter(_others(((10, 10),))))
            case _:
                parts.append(_one(next(letters) if letter == "\\" else letter))
    raise AssertionError(letters)


def _class(letters: Iterator[str]) -> Letter:
    inside = "".join(iter(lambda: next(letters), "]"))
    negated = inside.startswith("^")
    rest, ranges = inside[negated:], []
    while rest:
        width = 3 if rest[1:2] == "-" and rest[2:] else 1
        ranges.append((ord(rest[0]), ord(rest[width - 1])))
        rest = rest[width:]
    return Letter(_others(joined(ranges)) if negated else joined(ranges))


def _row(parts: list[Part]) -> Part:
    return parts[0] if len(parts) == 1 else Row(tuple(parts))


def _merged(ways: list[Part]) -> Part:
    """Return ways of one letter each as one letter, which needs no going back."""
    if len(ways) == 1:
        return ways[0]
    if all(isinstance(way, Letter) for way in ways):
        return Letter(joined([each for way in ways if isinstance(way, Letter) for each in way.ranges]))
    return Either(tuple(ways))


def _one(letter: str) -> Letter:
    return Letter(((ord(letter), ord(letter)),))


def row_of(letters: list[str | None]) -> list[Part]:
    """Return the parts that match these letters, None being any one.

    >>> row_of(["a", None]) == [Letter(((97, 97),)), ANYTHING]
    True
    """
    return [ANYTHING if letter is None else _one(letter) for letter in letters]


def joined(ranges: list[tuple[int, int]]) -> Ranges:
    """Return ranges in order, those that touch as one.

    >>> joined([(5, 9), (1, 4), (20, 30)])
    ((1, 9), (20, 30))
    """
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def _others(ranges: Ranges) -> Ranges:
    ends = [-1, *(end for low, high in ranges for end in (low, high)), TOP + 1]
    return tuple((low + 1, high - 1) for low, high in list(pairwise(ends))[::2] if low + 1 <= high - 1)


def _search(part: Part) -> Part:
    """Leave out what a search anywhere in a text does not need: how often the first or the last part repeats."""
    if isinstance(part, Either):
        return Either(tuple(map(_search, part.ways)))
    parts: list[Part] = list(part.parts) if isinstance(part, Row) else [part]
    for place in (0, -1):
        while parts and isinstance(repeated := parts[place], Times):
            if repeated.least:
                parts[place] = Times(repeated.part, repeated.least, repeated.least)
                break
            del parts[place]
    return _row(parts)


def written(part: Part) -> str:
    r"""Write a pattern as a regular expression.

    >>> written(parsed("a(b|c){2}_"))
    'a[b-c]{2,2}\\x{5f}'
    """
    match part:
        case Letter(ranges):
            low, high = ranges[0] if len(ranges) == 1 else (0, 1)
            return _letter(low) if low == high else f"[{''.join(map(_range, ranges))}]"
        case Row(parts):
            return "".join(map(written, parts))
        case Either(ways):
            return f"(?:{'|'.join(map(written, ways))})"
        case End(sign):
            return f"\\{sign}"
        case Times(inner, least, most):
            text = written(inner) if isinstance(inner, Letter) else f"(?:{written(inner)})"
            if most is not None:
                return text + ("" if least == most == 1 else f"{{{least},{most}}}")
            # Java goes through a text without a call for each letter where a star or a plus stands, but not {m,}.
            return (f"{text}{{{least - 1}}}" if least > 1 else "") + text + ("+" if least else "*")


def _range(ends: tuple[int, int]) -> str:
    low, high = ends
    return _letter(low) if low == high else f"{_letter(low)}-{_letter(high)}"


def _letter(code: int) -> str:
    return chr(code) if chr(code).isascii() and chr(code).isalnum() else f"\\x{{{code:x}}}"
