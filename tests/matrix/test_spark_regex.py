"""Regular expressions for Spark: trees, their text, and how many steps a search may take; no engine is needed."""

import os
import random
import re
from contextlib import suppress
from itertools import product
from pathlib import Path

import operations
import pytest
from strategies import TEXT

from discreet.engines.reference.evaluate import evaluate
from discreet.engines.spark import regex, regex_cost, text_functions
from discreet.engines.spark.dialect import SPARK
from discreet.engines.spark.regex import (
    Alternation,
    Anchor,
    CharClass,
    Concatenation,
    Repetition,
    merge_ranges,
    parse_regex,
    write_regex,
)
from discreet.engines.spark.regex_cost import MAX_STEPS, search_steps
from discreet.kernel.expr import Call, Column, Constant

TEXT_COLUMN = Column("t", TEXT)
# Each line has a pattern, its text for Spark and the steps of a search. To add patterns, write them on lines of their
# own, and let `DISCREET_GOLDEN=write pytest tests/matrix/test_spark_regex.py` complete the file.
RECORDED = Path(__file__).with_name("spark_patterns.txt")
PATTERNS = [line.partition("\t")[0] for line in RECORDED.read_text().splitlines()]


def test_patterns_have_the_recorded_text_and_steps():
    trees = map(parse_regex, PATTERNS)
    now = "".join(f"{p}\t{write_regex(t)}\t{search_steps(t)}\n" for p, t in zip(PATTERNS, trees, strict=True))
    if os.environ.get("DISCREET_GOLDEN") == "write":
        RECORDED.write_text(now)
    assert now == RECORDED.read_text()


def in_python(written):
    """Return the pattern in Python's syntax, for the few constructs that are written."""
    return re.sub(r"\\x\{([0-9a-f]+)\}", lambda code: f"\\U{int(code[1], 16):08x}", written).replace("\\z", "\\Z")


@pytest.mark.parametrize("half", [0, 1])
def test_a_written_pattern_finds_the_texts_that_the_reference_finds(half):
    for pattern in PATTERNS[half::2]:
        written = re.compile(in_python(write_regex(parse_regex(pattern))))
        call = Call("matches", (TEXT_COLUMN, Constant(pattern, TEXT)))
        letters = list(dict.fromkeys(letter for letter in pattern if letter not in "{}()|*+?^$\\[],"))
        for text in map(
            "".join, (text for length in range(4) for text in product([*letters[:3], "\n"], repeat=length))
        ):
            assert bool(written.search(text)) == evaluate(call, {"t": text}), (pattern, text)


# How long a pattern may take.


def tried(part, letters, at, then):
    """Match as Java does, way by way, and count every step; `then` is what comes after."""
    tried.steps += 1
    match part:
        case CharClass(ranges):
            tried.steps += len(ranges) - 1  # they are looked through one by one
            fits = at < len(letters) and any(low <= ord(letters[at]) <= high for low, high in ranges)
            return fits and then(at + 1)
        case Anchor(sign):
            return at == (0 if sign == "A" else len(letters)) and then(at)
        case Concatenation(parts):
            if not parts:
                return then(at)
            return tried(parts[0], letters, at, lambda end: tried(Concatenation(parts[1:]), letters, end, then))
        case Alternation(ways):
            return any(tried(way, letters, at, then) for way in ways)
        case Repetition(inner, least, most):

            def again(count, begin):
                more = most is None or count < most
                if more and tried(
                    inner, letters, begin, lambda end: (end > begin or count < least) and again(count + 1, end)
                ):
                    return True
                return count >= least and then(begin)

            return again(0, at)


def searched(part, letters):
    tried.steps = 0
    found = any(tried(part, letters, at, lambda _end: True) for at in range(len(letters) + 1))
    return found, tried.steps


@pytest.mark.long
def test_no_text_takes_more_matching_steps_than_computed(monkeypatch):
    """With shorter texts, on which one can wait for a pattern that goes back again and again."""
    longest, rng = 24, random.Random("steps")
    monkeypatch.setattr(regex_cost, "MAX_TEXT_LENGTH", longest)
    compared_patterns = 0
    while compared_patterns < 300:
        drawn = operations.pattern(rng)
        with suppress(ValueError):
            Call("matches", (TEXT_COLUMN, Constant(drawn, TEXT)))
            told = search_steps(tree := parse_regex(drawn))
            if told is None or told > 50_000:
                continue
            compared_patterns += 1
            letters = [letter for letter in dict.fromkeys(drawn) if letter.isalnum()] or ["a"]
            texts = ["".join(rng.choices(letters[:2], k=longest)) for _ in range(8)] + [letters[0] * longest]
            for each in texts:
                found, taken = searched(tree, each)
                assert found == evaluate(Call("matches", (TEXT_COLUMN, Constant(drawn, TEXT))), {"t": each})
                assert taken <= 3 * told + 50, (drawn, each)  # a row counts its parts, and one more for itself


@pytest.mark.parametrize(
    "pattern",
    [
        *("a.*b", "^a.*b.*c$", "^(ab)*$", "^(a|b|ab)*c", "(a?){30}b", "^((a{1,5}){1,5}){1,5}$", "^(a+)+$", "(a|aa){9}"),
        "[acegikmoqsuwy02468]{90}x",  # many ranges for each letter
    ],
)
def test_a_pattern_that_could_take_long_is_refused(pattern):
    call = Call("matches", (TEXT_COLUMN, Constant(pattern, TEXT)))
    assert "REGEXP_LIKE" in SPARK.unsupported_reason(call)
    told = search_steps(parse_regex(pattern))
    assert told is None or told > MAX_STEPS


def test_like_needs_no_backtracking():
    for pattern in ("%a%b%c%d%e%", "a%b%c%d", "_a%", "%a_b%", "a_%", "__", "%_", "%a_"):
        assert SPARK.unsupported_reason(Call("like", (TEXT_COLUMN, Constant(pattern, TEXT)))) == ""
    for pattern in ("%a_b%c%", "%_%_%a", "%a%b%c%d%e%f%g%"):
        assert "LIKE" in SPARK.unsupported_reason(Call("like", (TEXT_COLUMN, Constant(pattern, TEXT))))


@pytest.mark.parametrize(("op", "pattern"), [("matches", "ab+c"), ("like", "%a_b%"), ("like_any_case", "a_%b")])
def test_a_pattern_may_take_so_many_steps_and_no_more(monkeypatch, op, pattern):
    call = Call(op, (TEXT_COLUMN, Constant(pattern, TEXT)))
    tree = parse_regex(pattern) if op == "matches" else like_tree(pattern)
    monkeypatch.setattr(text_functions, "MAX_STEPS", search_steps(tree))
    assert SPARK.unsupported_reason(call) == ""
    monkeypatch.setattr(text_functions, "MAX_STEPS", search_steps(tree) - 1)
    assert "too long" in SPARK.unsupported_reason(call)


def like_tree(pattern):
    return text_functions._like_regex(text_functions._like_segments(pattern))


def test_what_has_no_pattern_is_supported():
    assert SPARK.unsupported_reason(Call("equal", (TEXT_COLUMN, Constant("(ab)*" * 9, TEXT)))) == ""
    assert SPARK.unsupported_reason(Call("lower", (TEXT_COLUMN,))) == ""


@pytest.mark.parametrize(
    ("ranges", "merged"),
    [
        ([], ()),
        ([(5, 9), (1, 4)], ((1, 9),)),
        ([(5, 9), (1, 3)], ((1, 3), (5, 9))),
        ([(1, 9), (2, 3), (5, 12)], ((1, 12),)),
        ([(1, 2), (10, 20), (12, 15)], ((1, 2), (10, 20))),
        ([(0, 0), (1, 1), (3, 3)], ((0, 1), (3, 3))),
    ],
)
def test_ranges_are_merged_and_complemented_exactly(ranges, merged):
    assert merge_ranges(ranges) == merged
    inside = {code for low, high in ranges for code in range(low, high + 1)}
    outside = {code for low, high in regex._complement(merged) for code in range(low, min(high, 20) + 1)}
    assert outside == set(range(21)) - inside
    assert regex._complement(regex._complement(merged)) == merged


def test_an_underscore_stands_for_every_character_and_nothing_for_none():
    assert write_regex(like_tree("")) == r"\A\z"
    assert write_regex(like_tree("_")) == r"\A[\x{0}-\x{10ffff}]\z"
