"""How large a regular expression becomes when it is written out, counted letter by letter."""

import random
from itertools import product

import pytest

from discreet.engines.portable_regex import check_regex, expand_regex


def letters_of(rng, depth):
    """Draw a pattern as a tree: a letter, parts in a row, one of several, or a part so many times."""
    kind = rng.choice(["letter", "row", "either", "times"]) if depth else "letter"
    if kind == "letter":
        return "a"
    if kind == "times":
        least = rng.randint(0, 2)
        return "times", letters_of(rng, depth - 1), least, rng.choice([None, least, least + 1, least + 3])
    return kind, [letters_of(rng, depth - 1) for _ in range(rng.randint(1, 3))]


def written(tree):
    match tree:
        case "a":
            return "a"
        case "row", parts:
            return "".join(f"({written(part)})" for part in parts)
        case "either", ways:
            return f"({'|'.join(map(written, ways))})"
        case "times", part, least, most:
            count = f"{{{least},{'' if most is None else most}}}"
            return f"({written(part)}){count}"
    raise AssertionError(tree)


def follows(tree, number):
    """Return the numbers of a tree's first and last letters, whether it may be empty, and all pairs that may follow."""
    match tree:
        case "a":
            here = next(number)
            return {here}, {here}, False, set()
        case "either", ways:
            found = [follows(way, number) for way in ways]
            first, last, pairs = (set().union(*(each[at] for each in found)) for at in (0, 1, 3))
            return first, last, any(each[2] for each in found), pairs
        case "row", parts:
            return row([follows(part, number) for part in parts])
        case "times", part, least, most:
            must = [follows(part, number) for _ in range(least)]
            may = (set(), set(), True, set())
            for _ in range(1 if most is None else most - least):
                first, last, _, pairs = row([one := follows(part, number), may])
                loop = set(product(one[1], one[0])) if most is None else set()
                may = first, last, True, pairs | loop
            return row([*must, may])
    raise AssertionError(tree)


def row(found):
    first, last, empty, pairs = set(), set(), True, set()
    for begins, ends, nothing, inside in found:
        pairs |= inside | set(product(last, begins))
        first |= begins if empty else set()
        last = ends | (last if nothing else set())
        empty = empty and nothing
    return first, last, empty, pairs


@pytest.mark.parametrize("seed", range(300))
def test_ways_are_letters_and_the_pairs_that_may_follow_each_other(seed):
    tree = letters_of(random.Random(seed), 4)
    numbers = iter(range(10**6))
    first, last, empty, pairs = follows(tree, numbers)
    told = expand_regex(written(tree))
    letters = next(numbers)
    # A pair that may follow in two manners is counted for both: engines, too, have two arcs for it at first.
    assert told.transitions >= min(letters + len(pairs), 2501)
    assert (told.first, told.last, told.empty) == (len(first), len(last), empty)


@pytest.mark.parametrize(
    ("pattern", "ways"),
    [
        ("", 0),
        ("abc", 5),
        ("a|b", 2),
        ("a*", 2),
        ("[a-z]{3}", 5),
        ("(ab)+", 8),
        ("a{0,3}", 5),
        ("a?a?a?", 6),
        ("\\(a\\)", 5),
    ],
)
def test_small_patterns(pattern, ways):
    assert expand_regex(pattern).transitions == ways


def test_useful_patterns_are_far_below_the_limit():
    for pattern in (
        "^[A-Za-z0-9._-]{1,64}@[A-Za-z0-9-]{1,63}(\\.[A-Za-z0-9-]{1,63}){1,3}$".replace("._-", "_.-"),
        "([0-9]{1,3}\\.){3}[0-9]{1,3}",
        "|".join(f"word{place:03}" for place in range(100)),
        "^[0-9]{3}-[0-9]{4}-[0-9]{99}$",
    ):
        check_regex(pattern)


def test_every_pattern_is_checked_quickly_whatever_it_repeats():
    for pattern in ("(" * 400 + "a?" + "){99}" * 100, "(a?){99}" * 120, "((((((a{99}){99}){99}){99}){99}){99}){99}"):
        with pytest.raises(ValueError, match="regular expression"):
            check_regex(pattern)


_LETTERS_1250 = "a{99}" * 12 + "a{62}"  # 1,250 letters and 1,249 pairs


@pytest.mark.parametrize(
    ("largest", "larger"),
    [
        ("a" * 1000, "a" * 1001),  # characters
        (f"{_LETTERS_1250}|b", f"{_LETTERS_1250}|b|c"),  # transitions: 2,500
        ("(a{25}){40}", "(a{11}){91}"),  # repeats of one letter: 1,000
        ("b(a{25}){40}c", "b(a{11}){91}"),
        ("(a{40}){25}b", "(a{11}){91}b"),
        ("b|(a{40}){25}", "b|(a{11}){91}"),
        ("((a{25}){40}){0}", "((a{11}){91}){0}"),  # engines expand the part before they drop it
    ],
)
def test_the_largest_patterns_are_accepted_and_larger_ones_refused(largest, larger):
    check_regex(largest)
    with pytest.raises(ValueError, match="regular expression"):
        check_regex(larger)


@pytest.mark.parametrize(
    ("pattern", "repeats"), [("", 1), ("ab", 1), ("a{0}", 1), ("a{7}|b{9}", 9), ("(a{2,3}b+){5}", 15), ("a{4,}", 4)]
)
def test_repeats_are_those_of_the_most_repeated_letter(pattern, repeats):
    assert expand_regex(pattern).repeats == repeats
