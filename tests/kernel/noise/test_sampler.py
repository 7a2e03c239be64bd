"""The sampler is driven through its choices, and each leads where exact arithmetic says."""

import random
from collections import Counter
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from noise_reference import EndOfScriptError, Script, floors, uint16s, uint64s

from discreet.kernel.noise import keystream
from discreet.kernel.noise import sampler as module
from discreet.kernel.noise.distribution import NoiseDistribution
from discreet.kernel.noise.inverse_transform import InverseTransformSampler
from discreet.kernel.noise.sampler import Sampler, bernoulli_exp
from discreet.kernel.numbers import exp_bounds

RANDOM = random.Random(22)


def laplace(scale, source=None):
    return Sampler(1 / Fraction(scale), Fraction(0), source)


def gaussian(scale, source=None):
    return Sampler(Fraction(0), 1 / (2 * Fraction(scale) ** 2), source)


class Given:
    """Stands for a table: returns the symbols it was given, once or again and again."""

    def __init__(self, symbols):
        self.symbols = np.array(symbols)

    def draw(self, source, count):
        return np.resize(self.symbols, count).copy()


def masses(boundaries, reference):
    """Return {symbol: so many of the 2^16 words that surely give it}, from a table that reads 4, 8 and 16 bits."""
    inversion = InverseTransformSampler(cache(boundaries), cell_bits=4, word_bits=8)
    at_8, at_16 = set(reference(8).values()), set(reference(16).values())
    found = Counter()
    for word in range(256):
        start = uint16s([word >> 4 << 12]), uint64s([(word & 15) << 60])
        if word not in at_8:
            found[int(inversion.draw(Script(*start), 1)[0])] += 256
            continue
        for more in range(256):
            if word << 8 | more not in at_16:
                found[int(inversion.draw(Script(*start, bytes([more])), 1)[0])] += 1
    assert sum(found.values()) == (1 << 16) - len(at_16)
    return found


def real(x):
    return mpmath.mpf(x.numerator) / x.denominator


def gap_of(sampler, bucket, low, sign):
    """Return ln of the bucket's weight over that of the candidate, from the law itself."""
    first = bucket << sampler._low_bit_count
    size = first + low + sign  # of the candidate m or -1-m
    return sampler._alpha * (size - first) + sampler._beta * (size**2 - first**2)


def cut_of(gap, bits):
    with mpmath.workprec(400):
        return int(mpmath.floor(mpmath.ldexp(mpmath.exp(-real(gap)), bits)))


def kept_of_every_coin(sampler, low, rest):
    """Return how often each candidate is kept when every 16-bit coin is thrown once, followed by this `rest`."""
    lows = uint16s([low | (0xFFFF << sampler._low_bit_count & 0xFFFF)] * 65536) if sampler._low_bit_count else b""
    source = Script(uint16s(np.arange(65536)), lows, uint64s([rest << 16 | 0xABCD] * 65536))
    values, counts = np.unique(sampler._accepted_candidates(source, 65536), return_counts=True)
    return Counter(dict(zip(values.tolist(), counts.tolist(), strict=True)))


def accepted(sampler, bucket, low):
    """Return, for x = m and x = -1-m, how many of the 2^63 coins surely keep it; one more asks for bits."""
    m = bucket << sampler._low_bit_count | low
    all_zeros, all_ones = (kept_of_every_coin(sampler, low, rest) for rest in (0, (1 << 48) - 1))
    assert set(all_zeros) | set(all_ones) <= {m, -1 - m}
    found = {}
    for sign, x in ((0, m), (1, -1 - m)):
        gap = gap_of(sampler, bucket, low, sign)
        if not gap:
            assert all_zeros[x] == 1 << 15
            found[x] = (1 << 63) - 1
            continue
        cut = cut_of(gap, 63)
        # Coins below the cut's own 15 bits keep it, whatever follows; those above drop it, whatever follows.
        assert all_ones[x] == cut >> 48
        assert all_zeros[x] == (cut >> 48) + 1
        lows = uint16s([low]) if sampler._low_bit_count else b""
        coin = uint16s([(cut >> 48 << 1) | sign])
        for word, keeps in ((cut - 1, [x]), (cut + 1, [])):
            if word >> 48 == cut >> 48:
                # So near, a few more bits may be asked for.
                source = Script(coin, lows, uint64s([(word & ((1 << 48) - 1)) << 16]), RANDOM.randbytes(16))
                assert sampler._accepted_candidates(source, 1).tolist() == keeps
        with pytest.raises(EndOfScriptError):
            sampler._accepted_candidates(Script(coin, lows, uint64s([(cut & ((1 << 48) - 1)) << 16])), 1)
        found[x] = cut
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("sampler", "buckets", "digits"),
    [
        (laplace(13), range(0, 12, 2), range(4)),
        (laplace("100/7"), (0, 1, 5), range(4)),
        (laplace(1500), (0, 6), (0, 37, 63)),
        (laplace(10**5), (0, 2), (0, 63)),
        (gaussian(33), [*range(6), *range(7, 60, 4)], (0,)),
        (gaussian("151.5"), range(0, 80, 13), (0,)),
    ],
    ids=["laplace 13", "laplace 100/7", "laplace 1500", "laplace 100000", "gaussian 33", "gaussian 151.5"],
)
def test_draws_have_the_exact_distribution_when_every_path_is_enumerated(sampler, buckets, digits):
    low_bits, digit_bits = sampler._low_bit_count, sampler._digit_bits
    coarse = NoiseDistribution(
        sampler._alpha * 2 ** (low_bits + digit_bits), sampler._beta * 4 ** (low_bits + digit_bits)
    )
    of_bucket = masses(coarse.one_sided_cdf, lambda bits: floors(*coarse, bits, "one"))
    of_digit = Counter({0: 1 << 16})
    if digit_bits:
        fine, count = NoiseDistribution(sampler._alpha * 2**low_bits, Fraction(0)), 1 << digit_bits
        of_digit = masses(lambda bits: fine.digit_cdf(count, bits), lambda bits: floors(*fine, bits, count))
    with mpmath.workprec(400):
        fine = NoiseDistribution(sampler._alpha * 2**low_bits, sampler._beta * 4**low_bits)
        weight_of_buckets = mpmath.nsum(
            lambda t: mpmath.exp(-real(fine.alpha) * t - real(fine.beta) * t * t), [0, 4000]
        )
        if not sampler._beta:
            weight_of_buckets = 1 / (1 - mpmath.exp(-real(fine.alpha)))
    seen, width = {}, Fraction(0)
    lows = sorted({0, 1, (1 << low_bits) - 1, (1 << low_bits) // 3} & set(range(1 << low_bits)))
    for t in buckets:
        for g in digits:
            sampler._table, sampler._digit = Given([t]), Given([g])
            least = Fraction(of_bucket[t] * of_digit[g], 1 << 32)
            # An interval meets at most two of the words that were not decided.
            most = Fraction((of_bucket[t] + 2) * (of_digit[g] + (2 if digit_bits else 0)), 1 << 32)
            for low in lows:
                for x, cut in accepted(sampler, t << digit_bits | g, low).items():
                    assert x not in seen
                    seen[x] = (
                        least * Fraction(cut, 1 << (64 + low_bits)),
                        most * Fraction(cut + 1, 1 << (64 + low_bits)),
                    )
    for x, (least, most) in seen.items():
        with mpmath.workprec(400):
            chance = mpmath.exp(-real(sampler._alpha) * abs(x) - real(sampler._beta) * x * x)
            chance /= weight_of_buckets * 2 ** (low_bits + 1)
            assert real(least) <= chance <= real(most), x
        width += most - least
    assert width < Fraction(1, 50) * sum(most for _, most in seen.values())


def test_zero_and_minus_one_come_from_the_first_magnitude():
    for sampler in (laplace(13), gaussian(33)):
        sampler._table, sampler._digit = Given([0]), Given([0])
        lows = uint16s([0, 0]) if sampler._low_bit_count else b""
        assert sampler._accepted_candidates(Script(uint16s([0, 1]), lows), 2).tolist() == [0, -1]


GAPS = [Fraction(1, n) for n in (1, 2, 3, 7, 10, 97, 1000, 10**6, 10**9, 2**40, 10**12, 10**15, 2**60)]
GAPS += [Fraction(n, 1000) for n in (250, 500, 693, 694, 999, 1001, 1386, 2000, 5000, 30_000)]
GAPS += [Fraction("0.69314718055994530941723212145818"), 1 - Fraction(1, 2**50), 1 + Fraction(1, 2**50)]


def bare(alpha, beta, low):
    """Return a sampler of which only the correcting coin is used, for a gap of one's choice."""
    sampler = laplace(100)
    sampler._alpha, sampler._beta, sampler._low_bit_count = alpha, beta, low
    sampler._bucket_alpha, sampler._bucket_beta = float(alpha * 2**low), float(beta * 4**low)
    return sampler


def toss(sampler, candidate, word, more=b""):
    """Return how a 63-bit coin falls, or None if it asks for bits that are not there."""
    bucket, low, sign = candidate
    coin = np.array([word >> 48 << 1 | sign], np.uint16)
    script = Script(uint64s([(word & ((1 << 48) - 1)) << 16 | 0x5A5A]), more)
    lows = np.array([low], object if sampler._low_bit_count > 50 else np.int64)
    try:
        return bool(sampler._accept(script, np.array([bucket]), lows, coin)[0])
    except EndOfScriptError:
        return None


def judge(sampler, *candidate):
    gap = gap_of(sampler, *candidate)
    cut = cut_of(gap, 63) if gap else 1 << 63
    top = (1 << 63) - 1
    near = [cut + n for n in (-3, -2, -1, 1, 2, 3)]
    edge = [cut + side * (1 << 23) + n for side in (-1, 1) for n in (-2, -1, 0, 1, 2)]  # of the floats' margin
    far = [RANDOM.randrange(1 << 63) for _ in range(20)] + [cut + RANDOM.randrange(-(2**30), 2**30) for _ in range(20)]
    for word in {0, top, *near, *edge, *far} - {cut}:
        if 0 <= word <= top and (gap or word < top):
            # Without doubt at once, or, next to the cut, after a few more bits, whatever they are.
            if abs(word - cut) > 2:
                assert toss(sampler, candidate, word) is (word < cut), (gap, word - cut)
            for more in (RANDOM.randbytes(16), bytes(16), b"\xff" * 16):
                assert toss(sampler, candidate, word, more) is (word < cut), (gap, word - cut)
    word = min(cut, top)
    assert toss(sampler, candidate, word) is None, gap
    if gap:
        next_bits, after = (cut_of(gap, bits) & ((1 << 64) - 1) for bits in (127, 191))
        assert toss(sampler, candidate, word, next_bits.to_bytes(8)) is None
        for n, heads in ((-3, True), (3, False)):
            if 0 <= next_bits + n < 1 << 64:
                assert toss(sampler, candidate, word, (next_bits + n).to_bytes(8)) is heads
            if 0 <= after + n < 1 << 64:
                more = next_bits.to_bytes(8) + (after + n).to_bytes(8)
                assert toss(sampler, candidate, word, more) is heads
    else:
        assert toss(sampler, candidate, word, bytes(8)) is True
        assert toss(sampler, candidate, word, b"\xff" * 8) is None


def candidates_of(sampler):
    """Return buckets, low bits and signs at all the ends."""
    last, size = sampler._table.last << sampler._digit_bits, 1 << sampler._low_bit_count
    for bucket in sorted({0, 1, last // 3, last // 2, last - 1, last, 2 * last}):
        for low in sorted({0, 1 % size, size // 3, size - 1}):
            yield bucket, low, 0
            yield bucket, low, 1


@pytest.mark.long
def test_the_correcting_bernoulli_draw_is_exact_to_the_last_bit():
    samplers = [laplace(scale) for scale in ("13", "100/7", "1500", "1e25")]
    samplers += [gaussian(scale) for scale in ("33", "151.5", "1000", "1e25")]
    gaps = []
    for sampler in samplers:
        for candidate in candidates_of(sampler):
            judge(sampler, *candidate)
            gaps.append(gap_of(sampler, *candidate))
    assert min(gaps) == 0
    assert min(gap for gap in gaps if gap) < Fraction(1, 10**10)
    assert max(gaps) > 1


@pytest.mark.long
def test_the_correcting_bernoulli_draw_is_exact_at_gaps_of_all_sizes():
    for gap in GAPS:
        judge(bare(gap, Fraction(0), 0), 0, 0, 1)
        judge(bare(gap, Fraction(0), 0), 5, 0, 0)  # distance 0: the gap is 0
    for n in range(1, 60):
        judge(bare(Fraction(1, 2**70), Fraction(n, 40) / (2 * 3 + 1), 0), 3, 0, 1)


@pytest.mark.long
def test_floats_never_contradict_the_integers_next_to_the_boundary():
    # Thousands of gaps, because a float is wrong by more than half a unit at few of them only.
    low, count = 20, 5000
    for largest in (Fraction(1, 1000), Fraction(1, 50), Fraction(1, 7), Fraction(9, 10)):
        sampler = bare(largest / 2**low, Fraction(0), low)
        lows = np.array([RANDOM.randrange(1, 2**low) for _ in range(count)])
        with mpmath.workprec(150):
            cuts = [int(mpmath.floor(mpmath.ldexp(mpmath.exp(-real(sampler._alpha * n)), 63))) for n in lows.tolist()]
        for offset in (-700, -3, 1, 3, 700):
            coming = [cut + offset for cut in cuts]
            coins = np.array([word >> 48 << 1 for word in coming], np.uint16)
            rests = uint64s([(word & ((1 << 48) - 1)) << 16 for word in coming])
            source = Script(rests, RANDOM.randbytes(16 * count))
            kept = sampler._accept(source, np.zeros(count, np.int64), lows, coins)
            assert kept.tolist() == [offset < 0] * count


@pytest.mark.parametrize("gap", [Fraction(g) for g in ("0", "1/3", "1", "7/2", "1e-30", "200")])
def test_a_bernoulli_draw_without_known_bits_is_exact_to_the_last_bit(gap):
    cut = cut_of(gap, 64) if gap else 1 << 64
    for n in (-2, -1, 1, 2):
        if 0 <= cut + n < (1 << 64) - (not gap):
            assert bernoulli_exp(Script((cut + n).to_bytes(8)), gap) is (n < 0)
    if gap:
        with pytest.raises(EndOfScriptError):
            bernoulli_exp(Script(cut.to_bytes(8)), gap)


@pytest.mark.parametrize("low", [0, 1, 5, 15, 16, 17, 31, 32, 33, 50, 51, 52, 64, 65, 300])
def test_low_bits_are_fair(low):
    sampler = laplace(100)
    sampler._low_bit_count, sampler._exceeds_int64 = low, low > 50

    def lows(data):
        source = Script(data)
        out = sampler._low_bits(source, 1)
        assert not source.data
        return int(out[0])

    sampler._low_bit_count = low
    probe = Script(bytes(100))
    sampler._low_bits(probe, 1)
    size = sum(probe.asked)
    assert lows(bytes(size)) == 0
    assert lows(b"\xff" * size) == (1 << low) - 1
    # Each bit of the result is one bit of the source, each another one.
    single = [lows((1 << position).to_bytes(size)) for position in range(8 * size)]
    assert sorted(single) == [0] * (8 * size - low) + [1 << bit for bit in range(low)]
    data = RANDOM.randbytes(size)
    combined = 0
    for position in range(8 * size):
        if int.from_bytes(data) >> position & 1:
            combined ^= single[position]
    assert lows(data) == combined


@pytest.mark.long(but=["0"])
@pytest.mark.parametrize("sampler", [laplace(1500), gaussian(100), gaussian("1e25"), laplace("1e25")], ids=range(4))
def test_candidates_keep_their_order_and_their_own_draws(sampler):
    top = sampler._table.last
    for _ in range(20):
        count = 300
        buckets = [RANDOM.randrange(top + 3) for _ in range(count)]
        digits = [RANDOM.randrange(1 << sampler._digit_bits) for _ in range(count)]
        sampler._table, sampler._digit = Given(buckets), Given(digits)
        # Coins high enough that many must be corrected.
        coins = [RANDOM.choice([RANDOM.randrange(65536), RANDOM.randrange(40_000, 65536), 65535]) for _ in range(count)]
        size = 2 if sampler._low_bit_count <= 16 else -(-sampler._low_bit_count // 8)
        low_words = [RANDOM.randbytes(size) if sampler._low_bit_count else b"" for _ in range(count)]
        rests = [RANDOM.randrange(1 << 64) for _ in range(count)]
        source = Script(uint16s(coins), *low_words, uint64s(rests), RANDOM.randbytes(1000))
        found = sampler._accepted_candidates(source, count).tolist()
        expected, rest = [], iter(rests)
        for i in range(count):
            bucket = buckets[i] << sampler._digit_bits | digits[i]
            low = 0
            if sampler._low_bit_count > 16:
                low = int.from_bytes(low_words[i]) >> (8 * size - sampler._low_bit_count)
            elif sampler._low_bit_count:
                low = int.from_bytes(low_words[i], "little") & ((1 << sampler._low_bit_count) - 1)
            sign = coins[i] & 1
            m = bucket << sampler._low_bit_count | low
            cut = cut_of(gap_of(sampler, bucket, low, sign), 63)
            sure = sampler._accept_below[min(bucket, len(sampler._accept_below) - 1) if sampler._beta else 0]
            word = coins[i] >> 1 << 48 | ((next(rest) >> 16) if coins[i] >= sure else 0)
            if word < cut:
                expected.append(-1 - m if sign else m)
        assert found == expected
        assert len(found) < count


@pytest.mark.parametrize(
    "sampler", [laplace(13), laplace(1500), gaussian(33), gaussian(60), gaussian("1e9")], ids=range(5)
)
def test_a_candidate_with_acceptance_probability_one_is_kept(sampler):
    low = sampler._low_bit_count
    for bucket in range(len(sampler._accept_below) if sampler._beta else 1):
        worst = gap_of(sampler, bucket, (1 << low) - 1, 1)
        sure = int(sampler._accept_below[bucket])
        assert sure % 2 == 0  # the lowest bit is the sign and decides nothing
        assert sure << 48 <= cut_of(worst, 64)
    assert sampler._accept_below[-1] == 0 or not sampler._beta


def test_surplus_draws_are_discarded_at_the_end(monkeypatch):
    sampler = laplace(13)
    for count in (1, 2, 3, 7, 100, 70_000):
        for kept in ([1], [0, 3, 1, 0, 0, 5], [10**6], [2, 10**6]):
            state = {"next": 0, "turn": 0}

            def candidates(source, asked, state=state, kept=kept, many=1 if count < 1000 else 1000):
                size = min(asked, kept[state["turn"] % len(kept)] * many)
                state["turn"] += 1
                start = state["next"]
                state["next"] += size
                return np.arange(start, start + size)

            monkeypatch.setattr(sampler, "_accepted_candidates", candidates)
            found = sampler.draw(count)
            assert found.tolist() == list(range(count))
            assert found.dtype == np.int64


def test_no_draws_are_an_empty_array():
    for sampler in (laplace(1), laplace(13), gaussian(1), gaussian("1e25")):
        found = sampler.draw(0)
        assert found.dtype == np.int64
        assert found.shape == (0,)


def test_mixed_blocks_of_small_and_enormous_draws_stay_complete(monkeypatch):
    sampler = laplace(13)
    blocks = iter([np.array([1, 2]), np.array([10**30, -(10**40)], object), np.array([3, 4, 5])])
    monkeypatch.setattr(sampler, "_accepted_candidates", lambda source, count: next(blocks))
    assert sampler.draw(6).tolist() == [1, 2, 10**30, -(10**40), 3, 4]


def test_single_draws_are_those_of_the_vector_each_used_once(monkeypatch):
    sampler = laplace(3)
    made = []

    def draw(count):
        made.append(np.arange(len(made) * count, (len(made) + 1) * count) - 5)
        return made[-1].copy()

    monkeypatch.setattr(sampler, "draw", draw)
    found = [sampler.draw_one().item() for _ in range(3 * module.POOL_SIZE)]
    assert all(type(value) is int for value in found)
    assert sorted(found) == sorted(np.concatenate(made).tolist())
    assert len(made) == 3


def test_a_draw_within_a_draw_takes_no_value_twice(monkeypatch):
    # A signal handler or a finaliser may draw while a draw is under way.
    sampler = laplace(10**9)
    plain, inner = sampler.draw, []

    def draw(count):
        values = plain(count)
        if len(inner) < 3:
            inner.append(None)
            inner[-1] = sampler.draw_one().item()
        return values

    monkeypatch.setattr(sampler, "draw", draw)
    found = [sampler.draw_one().item() for _ in range(2000)]
    everything = [*found, *inner]
    assert len(set(everything)) > len(everything) - 5


def test_a_large_bucket_number_makes_python_integers():
    for bucket in (1 << 50, 10**30):
        sampler = laplace("1e12")
        sampler._table, sampler._digit = Given([bucket]), Given([3])
        found = sampler._accepted_candidates(Script(uint16s([0, 1]), bytes(8)), 2).tolist()
        m = (bucket << sampler._digit_bits | 3) << sampler._low_bit_count
        assert found == [m, -1 - m]
    sampler = gaussian("1e12")
    sampler._table = Given([1 << 40, 0])
    found = sampler._accepted_candidates(Script(uint16s([0, 0]), bytes(16), bytes([7] * 100)), 2)
    assert found.tolist() == [1 << (40 + sampler._low_bit_count), 0]


def test_values_drawn_before_a_fork_in_a_signal_handler_are_not_used_by_the_child(monkeypatch):
    # In the child of a fork the token of this life is new, also in the middle of a draw.
    sampler = laplace(10**18)  # so wide that two draws agree by chance once in 10^14 runs
    plain, drawn = sampler._draw_from, []

    def forked(source, count):
        drawn.append(plain(source, count))
        if len(drawn) == 1:
            keystream._reset_streams()
        return drawn[-1]

    monkeypatch.setattr(sampler, "_draw_from", forked)
    assert sampler.draw(50).tolist() == drawn[1].tolist() != drawn[0].tolist()
    parents = {sampler.draw_one().item() for _ in range(5)}
    keystream._reset_streams()
    ahead = set(drawn[-1].tolist()) - parents
    assert not ahead & {sampler.draw_one().item() for _ in range(20)}


@pytest.mark.parametrize("scale", [60, 1000, Fraction(10**9, 7)])
@pytest.mark.parametrize("kind", [laplace, gaussian])
def test_a_coin_accepts_at_once_only_where_every_candidate_of_the_bucket_is_accepted(kind, scale):
    """One unit more would accept candidates that exact arithmetic rejects: noise of another distribution."""
    sampler = kind(scale)
    width, last = 1 << sampler._low_bit_count, len(sampler._accept_below) - 1
    assert last == sampler._table.last > 1
    assert sampler._bucket_alpha == float(sampler._alpha * width)
    assert sampler._bucket_beta == float(sampler._beta * width**2)
    for bucket, below in enumerate(sampler._accept_below.tolist()):
        gap = sampler._alpha * width + sampler._beta * width * (2 * bucket * width + width)
        assert below == (0 if bucket == last else max(2 * (int((1 - gap) * 2**15 // 1) - 1), 0))
        assert below << 48 <= exp_bounds(gap, 64)[0]


@pytest.mark.parametrize("scale", [60, 1000])
@pytest.mark.parametrize("further", [0, 1, 10**6])
def test_no_coin_accepts_a_candidate_beyond_the_table_at_once(scale, further, monkeypatch):
    sampler = gaussian(scale)
    last = sampler._table.last
    monkeypatch.setattr(sampler, "_table", Given([last + further]))
    size = {0: 0, 1: 2, 2: 4}[(sampler._low_bit_count > 0) + (sampler._low_bit_count > 16)]
    source = Script(uint16s([0]), bytes(size), uint64s([0]))
    sampler._accepted_candidates(source, 1)
    assert not source.data  # the word that decides was drawn


@pytest.mark.parametrize("exponent", range(48, 64))
@pytest.mark.parametrize("kind", [laplace, gaussian])
def test_python_integers_are_used_by_scale_and_not_by_value(kind, exponent):
    """Which kind is used takes another time: it must not depend on what was drawn."""
    sampler = kind(2**exponent)
    largest = sampler._table.last << sampler._digit_bits << sampler._low_bit_count
    assert sampler._exceeds_int64 == (largest.bit_length() > 62)


def test_a_given_source_is_the_only_one():
    with pytest.raises(EndOfScriptError):
        laplace(1, Script(b"")).draw(1)


def test_used_coins_are_wiped():
    handed = []

    class Kept(Script):
        def bytes(self, count):
            handed.append(super().bytes(count))
            return handed[-1]

    sampler = laplace(1000)
    sampler._table = sampler._digit = Given([0])
    sampler._accepted_candidates(Kept(uint16s([2, 4, 6]), bytes(100)), 3)
    assert handed[0] == bytes(6)
