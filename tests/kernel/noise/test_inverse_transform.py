"""Every word that the table sampler can read is followed to its end."""

from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from noise_reference import EndOfScriptError, Script, floors, symbol_of, uint16s, uint64s

from discreet.kernel.noise.distribution import NoiseDistribution
from discreet.kernel.noise.inverse_transform import Boundaries, InverseTransformSampler

LAWS = {
    "laplace 1/2": (NoiseDistribution(Fraction(2), Fraction(0)), "both"),
    "laplace 1": (NoiseDistribution(Fraction(1), Fraction(0)), "both"),
    "laplace 10/3": (NoiseDistribution(Fraction(3, 10), Fraction(0)), "both"),
    "gaussian 1/2": (NoiseDistribution(Fraction(0), Fraction(2)), "both"),
    "gaussian 2": (NoiseDistribution(Fraction(0), Fraction(1, 8)), "both"),
    "geometric 3": (NoiseDistribution(Fraction(1, 3), Fraction(0)), "one"),
    "half gaussian 4": (NoiseDistribution(Fraction(0), Fraction(1, 32)), "one"),
    "digits 5": (NoiseDistribution(Fraction(1, 5), Fraction(0)), 8),
}
EXACT = 512  # bits of the floors that intervals are judged by


def boundaries_of(law, kind):
    if kind == "both":
        return cache(law.two_sided_cdf)
    return cache(law.one_sided_cdf if kind == "one" else lambda bits: law.digit_cdf(kind, bits))


def script_of(word, cell_bits, word_bits, *more):
    """Return the source that leads to this word, with every bit set that does not belong to it."""
    rest = word_bits - cell_bits
    cell, tail = word >> rest, word & ((1 << rest) - 1)
    return Script(
        uint16s([(cell << (16 - cell_bits)) | ((1 << (16 - cell_bits)) - 1)]),
        uint64s([(tail << (64 - rest)) | ((1 << (64 - rest)) - 1)]),
        *more,
    )


def outcome(inversion, word, cell_bits, word_bits, *more):
    """Return the symbol of a word, or None if more bits than it has were asked for."""
    try:
        found = inversion.draw(script_of(word, cell_bits, word_bits, *more), 1)
    except EndOfScriptError:
        return None
    assert found.shape == (1,)
    return int(found[0])


@pytest.mark.long(
    only=[
        "digits 5-8-16",
        "gaussian 1/2-8-16",
        "gaussian 2-8-16",
        "geometric 3-8-16",
        "half gaussian 4-8-16",
        "laplace 1-8-16",
        "laplace 1/2-8-16",
        "laplace 10/3-8-16",
    ]
)
@pytest.mark.parametrize(("cell_bits", "word_bits"), [(4, 8), (1, 8), (7, 8), (8, 16)])
@pytest.mark.parametrize("name", LAWS)
def test_every_word_gives_the_symbol_of_its_interval(name, cell_bits, word_bits):
    law, kind = LAWS[name]
    inversion = InverseTransformSampler(boundaries_of(law, kind), cell_bits=cell_bits, word_bits=word_bits)
    exact = floors(*law, EXACT, kind)
    top = max(exact)
    decided, undecided = Counter(), set()
    shift = EXACT - word_bits
    for word in range(1 << word_bits):
        symbol = outcome(inversion, word, cell_bits, word_bits)
        if symbol is None:
            undecided.add(word)
            continue
        decided[symbol] += 1
        # All of [word, word+1)/2^n lies in [F(s-1), F(s)).
        assert symbol - 1 not in exact or word << shift > exact[symbol - 1]
        assert (symbol in exact and (word + 1) << shift <= exact[symbol]) or (symbol == top + 1 == kind - 1)
    # What is not decided holds a boundary, and nothing else.
    assert undecided == {floor for s, floor in floors(*law, word_bits, kind).items()}
    for symbol, mass in decided.items():
        high = exact.get(symbol, 1 << EXACT)
        low = exact.get(symbol - 1, 0)
        assert 0 <= (high - low) - (mass << shift) <= 2 << shift
    assert sum(decided.values()) + len(undecided) == 1 << word_bits


@pytest.mark.parametrize("name", ["laplace 1", "gaussian 2", "geometric 3", "digits 5"])
def test_every_continued_word_gives_the_symbol_of_its_interval(name):
    law, kind = LAWS[name]
    inversion = InverseTransformSampler(boundaries_of(law, kind), cell_bits=4, word_bits=8)
    exact, later = floors(*law, EXACT, kind), set(floors(*law, 16, kind).values())
    shift = EXACT - 16
    for word in set(floors(*law, 8, kind).values()):
        for more in range(256):
            longer = word << 8 | more
            symbol = outcome(inversion, word, 4, 8, bytes([more]))
            assert (symbol is None) == (longer in later)
            if symbol is not None:
                assert symbol - 1 not in exact or longer << shift > exact[symbol - 1]
                assert symbol not in exact or (longer + 1) << shift <= exact[symbol]


def test_every_word_is_decided_at_its_own_index():
    law, kind = LAWS["laplace 10/3"]
    inversion = InverseTransformSampler(law.two_sided_cdf, cell_bits=4, word_bits=8)
    at_floor = sorted(set(floors(*law, 8, kind).values()))
    order = [200, at_floor[3], 17, at_floor[-1], 90, at_floor[0], 255, 0, 128, at_floor[5]]
    later = floors(*law, 16, kind)
    cells = [word >> 4 << 12 for word in order]
    open_ = [word for word in order if any(floor >> 4 == word >> 4 for floor in at_floor)]
    assert len(open_) > 5
    rests = [(word & 15) << 60 for word in open_]
    more = [next(m for m in (7 * n + 3, 7 * n + 5) if w << 8 | m not in later.values()) for n, w in enumerate(order)]
    longer = [word << 8 | bits for word, bits in zip(order, more, strict=True)]
    extra = bytes(bits for word, bits in zip(order, more, strict=True) if word in at_floor)
    source = Script(uint16s(cells), uint64s(rests), extra)
    found = inversion.draw(source, len(order)).tolist()
    assert found == [symbol_of(later, word) for word in longer]
    assert not source.data


def full(word, *more):
    return script_of(word, 16, 64, *more)


def expected_symbol(exact, word, bits):
    """Return the symbol of all numbers that begin with these bits."""
    low, high = word << (EXACT - bits), (word + 1) << (EXACT - bits)
    symbol = min((s for s, floor in exact.items() if low < floor), default=max(exact) + 1)
    assert high <= exact.get(symbol, 1 << EXACT)
    return symbol


REAL = {
    "laplace 1/30": (NoiseDistribution(Fraction(30), Fraction(0)), "both"),
    "laplace 10": (NoiseDistribution(Fraction(1, 10), Fraction(0)), "both"),
    "gaussian 1/2": (NoiseDistribution(Fraction(0), Fraction(2)), "both"),
    "gaussian 10": (NoiseDistribution(Fraction(0), Fraction(1, 200)), "both"),
    "geometric 5": (NoiseDistribution(Fraction(1, 5), Fraction(0)), "one"),
    "digits 30": (NoiseDistribution(Fraction(1, 30), Fraction(0)), 128),
}
ONES = (1 << 64) - 1


@pytest.mark.long(only=["laplace 10"])
@pytest.mark.parametrize("name", REAL)
def test_equal_words_are_continued(name):
    law, kind = REAL[name]
    inversion = InverseTransformSampler(boundaries_of(law, kind))
    exact = floors(*law, EXACT, kind)
    at = {bits: floors(*law, bits, kind) for bits in (64, 128, 256)}
    symbols = sorted(at[64])
    listed = [s for s in (symbols[:: max(1, len(symbols) // 12)] + symbols[:3] + symbols[-3:]) if -10_000 < s < 10_000]
    seen = set()
    for s in listed:
        word, second = at[64][s], at[128][s] & ONES
        third = at[256][s] & ((1 << 128) - 1)
        # Just below the boundary, just above it, and equal a second time and then below or above.
        for more, bits in (
            ([max(0, second - 1)], 64),
            ([min(ONES, second + 1)], 64),
            ([second, (third - 1) >> 64, (third - 1) & ONES], 192),
            ([second, (third + 1) >> 64, (third + 1) & ONES], 192),
        ):
            tail = 0
            for part in more:
                tail = tail << 64 | part
            longer, length = word << bits | tail, 64 + bits
            if longer in at[64 + bits].values() or not 0 <= third - 1 < third + 1 < 1 << 128:
                continue  # equal once more, or no such word: the tests of the ends go there
            source = full(word, *(part.to_bytes(8) for part in more))
            found = inversion.draw(source, 1)
            assert found.tolist() == [expected_symbol(exact, longer, length)]
            assert not source.data
            seen.add(int(found[0]))
    assert len(seen) > 1


@pytest.mark.long(only=["3-laplace 10"])
@pytest.mark.parametrize("name", [name for name in REAL if name != "digits 30"])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_the_tails_are_never_truncated(name, times):
    law, kind = REAL[name]
    inversion = InverseTransformSampler(boundaries_of(law, kind))
    length = 64 << times
    further = floors(*law, length, kind)
    quarter = 1 << (length // 2 - 2)
    # All ones, and then a word that is not: far out on the right. All zeros: far out on the left.
    right, left = ((1 << length) - 1) - quarter, quarter
    ends = {right: "one both", left: "both"}
    for word, kinds in ends.items():
        if kind not in kinds.split() or word in further.values():
            continue
        tail = (word & ((1 << (length - 64)) - 1)).to_bytes((length - 64) // 8)
        source = full(word >> (length - 64), tail)
        found = int(inversion.draw(source, 1)[0])
        assert found == symbol_of(further, word)
        assert not source.data
        if name == "laplace 10":
            # exp(-|x|/10) is about 2^-(length/2+2).
            assert abs(abs(found) - 10 * 0.6931 * (length / 2 + 2)) < 20


def test_digits_are_between_zero_and_the_last_digit():
    law, _ = REAL["digits 30"]
    inversion = InverseTransformSampler(lambda bits: law.digit_cdf(128, bits))
    assert inversion.draw(full((1 << 64) - 1), 1).tolist() == [127]
    assert inversion.draw(full(0), 1).tolist() == [0]


def test_an_enormous_symbol_is_a_python_integer_at_its_index():
    def boundaries(bits):
        half = 1 << (bits - 1)
        return Boundaries(0, [half]) if bits == 64 else Boundaries(10**30, [half + 5])

    inversion = InverseTransformSampler(boundaries)
    source = Script(uint16s([0, 1 << 15, 1, 1 << 15, 65535]), uint64s([0, 1 << 16]), (9).to_bytes(8))
    found = inversion.draw(source, 5)
    assert found.dtype == object
    assert found.tolist() == [0, 10**30 + 1, 0, 1, 1]


def test_draws_are_int64_and_as_many_as_requested():
    from discreet.kernel.noise.keystream import thread_keystream

    inversion = InverseTransformSampler(NoiseDistribution(Fraction(1), Fraction(0)).two_sided_cdf)
    for count in (0, 1, 2, 1000):
        found = inversion.draw(thread_keystream(), count)
        assert found.dtype == np.int64
        assert found.shape == (count,)


@pytest.mark.parametrize(("first", "count"), [(-32768, 1), (-32768, 65534), (32766, 1), (0, 32767), (-32767, 65534)])
def test_more_symbols_than_a_table_can_hold_are_refused(first, count):
    """Sixteen bits would wrap, and other noise be drawn than was charged for."""
    with pytest.raises(ValueError, match="too many symbols"):
        InverseTransformSampler(lambda bits: Boundaries(first, [n << (bits - 17) for n in range(1, count + 1)]))


def test_a_full_table_and_one_of_a_single_symbol_are_right():
    full_table = InverseTransformSampler(lambda bits: Boundaries(-32767, [n << (bits - 16) for n in range(1, 65534)]))
    source = Script(uint16s([0, 1, 65535, 40000]), uint64s([1 << 16, 1 << 16]))
    assert full_table.draw(source, 4).tolist() == [-32767, -32766, 32766, 7233]
    single = InverseTransformSampler(lambda _: Boundaries(5, []))
    assert single.draw(Script(uint16s([0, 1, 65535])), 3).tolist() == [5, 5, 5]


@pytest.mark.parametrize(("symbol", "kind"), [(7, np.int64), (2**62 - 1, np.int64), (2**62, object)])
def test_a_symbol_found_with_more_bits_is_an_int64_if_it_fits(symbol, kind):
    def boundaries(bits):
        return Boundaries(0, [1 << (bits - 1)]) if bits == 64 else Boundaries(symbol, [(1 << (bits - 1)) + 5])

    found = InverseTransformSampler(boundaries).draw(Script(uint16s([1 << 15]), uint64s([0]), (3).to_bytes(8)), 1)
    assert found.dtype == kind
    assert found.tolist() == [symbol]


def test_used_random_words_are_wiped():
    """What is left in memory must not give the noise away."""
    handed = []

    class Kept(Script):
        def bytes(self, count):
            handed.append(bytearray(super().bytes(count)))
            return handed[-1]

    inversion = InverseTransformSampler(lambda bits: Boundaries(0, [1 << (bits - 1)]))
    inversion.draw(Kept(uint16s([1, 2, 30000])), 3)
    assert handed == [bytearray(6)]
