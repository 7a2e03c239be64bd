"""Exact Bernoulli variables and uniform integers, one at a time or vectorised."""

from fractions import Fraction

import numpy as np

from discreet.kernel.noise.keystream import RandomSource, random_integer, random_words, wipe
from discreet.kernel.numbers import exp_bounds


def bernoulli_exp(source: RandomSource, exponent: Fraction, prefix: int = 0, bits: int = 0) -> bool:
    """Toss a coin that shows heads with probability exp(-gap); `bits` bits of it may be known already.

    Claim: heads has probability exp(-gap), exactly.
    Proof: heads means V < exp(-gap) for a uniform V of which ever more bits are drawn, until the enclosure of
        exp(-gap) leaves no doubt.
    Needs: exp_bounds, Keystream.bytes.
    Checked by: test_the_correcting_coin_is_fair_to_its_last_bit
    Seal: fc7298c54bbe
    """
    while True:
        if bits:
            low, high = exp_bounds(exponent, bits)
            if prefix + 1 <= low:
                return True
            if prefix >= high:
                return False
        prefix, bits = prefix << 64 | random_integer(source, 64), bits + 64


def uniform_integer(source: RandomSource, bound: int) -> int:
    """Return a uniform integer from 0 to count - 1.

    Claim: each has probability 1/count, exactly.
    Proof: a uniform number of enough bits, drawn again until it is below count.
    Needs: Keystream.bytes.
    Checked by: test_integers_below_a_count_are_uniform
    Seal: 8f4dd705dd52
    """
    bits = -(-bound.bit_length() // 8) * 8
    while True:
        drawn = random_integer(source, bits) >> (bits - bound.bit_length())
        if drawn < bound:
            return drawn


_DENSE_DIGITS = 8  # so many binary digits are compared in all words; then only in those that hold an open bit


def bernoulli_words(source: RandomSource, count: int, probability: Fraction) -> np.ndarray:
    """Return so many 64-bit words, each of whose bits is set with probability `probability`.

    Claim: every bit is 1 with probability chance, exactly, and independent of the others.
    Proof: a bit is 1 if U < chance for a uniform U in [0, 1) of its own. U's binary digits are drawn one after
        another, a word for 64 of them, and compared with those of the fraction, by long division: the first digit
        in which they differ decides (U has 0 where chance has 1: below), and later digits cannot undo it. Where all
        further digits of chance are 0, U is not below it. A bit is open after n digits with probability 2^-n.
    Needs: Keystream.bytes.
    Checked by: test_coins_show_their_chance_when_every_word_is_tried, test_real_coins_fall_as_often_as_they_should
    Seal: 4677e85a77e8
    """
    heads, undecided = np.zeros(count, np.uint64), np.full(count, ~np.uint64(0))
    where, remaining, rest, digits = None, undecided, probability, 0
    while rest and len(remaining):
        rest *= 2
        digit_is_one, digits = rest >= 1, digits + 1
        drawn = random_words(source, len(remaining), np.uint64)
        if digit_is_one:
            rest -= 1
            below = remaining & ~drawn
            remaining &= drawn
            heads[where if where is not None else slice(None)] |= below
        else:
            remaining &= ~drawn
        wipe(drawn)
        if digits >= _DENSE_DIGITS:
            positions = np.flatnonzero(remaining)
            where, remaining = positions if where is None else where[positions], remaining[positions]
    return heads


def bernoulli_bits(source: RandomSource, count: int, probability: Fraction) -> np.ndarray:
    """Return so many coins that are True with probability `probability`, as `bernoulli_words` makes them."""
    packed = bernoulli_words(source, -(-count // 64), probability)
    return np.unpackbits(packed.view(np.uint8), count=count).view(bool)


def uniform_integers(source: RandomSource, count: int, bound: int) -> np.ndarray:
    """Return so many uniform integers from 0 to faces - 1 as int64, for up to 2^32 faces.

    Claim: each has probability 1/faces, exactly, and is independent of the others.
    Proof: a word w of L bits makes w·faces, of which the upper half is the face and the lower half says where in
        the face's stretch w lies. The stretch of a face holds the lower halves l, l + faces, … up to 2^L: without
        those below 2^L mod faces it is floor(2^L/faces) words for every face alike (Lemire 2019). Words that are
        left out are drawn again.
    Needs: Keystream.bytes.
    Checked by: test_dice_are_fair_when_every_word_is_tried, test_dice_with_many_faces_are_fair
    Seal: 301700e33c0b
    """
    if not 1 <= bound <= 1 << 32:
        raise ValueError(f"faces must be from 1 to 2^32, not {bound}")
    small = bound <= 1 << 8
    word, wide, bits = (np.uint16, np.uint32, 16) if small else (np.uint32, np.uint64, 32)
    excess = (1 << bits) % bound
    products = _scaled_words(source, count, bound, word, wide)
    while excess:
        rejected = np.flatnonzero((products & wide((1 << bits) - 1)) < wide(excess))
        if not len(rejected):
            break
        products[rejected] = _scaled_words(source, len(rejected), bound, word, wide)
    products >>= wide(bits)
    return products.astype(np.int64) if small else products.view(np.int64)


def _scaled_words(
    source: RandomSource,
    count: int,
    bound: int,
    word: type[np.unsignedinteger],
    wide: type[np.unsignedinteger],
) -> np.ndarray:
    drawn = random_words(source, count, word)
    products: np.ndarray = drawn.astype(wide)
    products *= wide(bound)
    wipe(drawn)
    return products
