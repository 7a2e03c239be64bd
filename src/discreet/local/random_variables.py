"""Exact Bernoulli variables, from the kernel's keystream."""

from fractions import Fraction

import numpy as np

from discreet.kernel.noise.keystream import RandomSource, random_words, wipe

_DENSE_DIGITS = 8  # binary digits compared in all words; later ones only in words with undecided bits


def bernoulli_words(source: RandomSource, count: int, probability: Fraction) -> np.ndarray:
    """Return `count` 64-bit words whose bits are set with the given probability.

    Claim: every bit is 1 with the given probability, exactly, and independent of the others.
    Proof: a bit is 1 if U < probability for its own uniform U in [0, 1). The binary digits of U are drawn one after
        another, one word for 64 bits, and compared with those of the fraction, by long division: the first digit in
        which they differ decides (U has 0 where the probability has 1: below), and later digits cannot change it. Where
        all further digits of the probability are 0, U is not below it. A bit is undecided after n digits with
        probability 2^-n.
    Needs: Keystream.bytes.
    Checked by: test_bernoulli_draws_have_their_probability_when_every_word_is_enumerated,
        test_real_bernoulli_draws_have_their_probability
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
    """Return `count` booleans that are True with the given probability, from bernoulli_words."""
    packed = bernoulli_words(source, -(-count // 64), probability)
    return np.unpackbits(packed.view(np.uint8), count=count).view(bool)


def uniform_integers(source: RandomSource, count: int, bound: int) -> np.ndarray:
    """Return `count` uniform integers from 0 to bound - 1 as int64, for a bound up to 2^32.

    Claim: each has probability 1/bound, exactly, and is independent of the others.
    Proof: a word w of L bits gives w·bound, whose upper half is the result. The words with the same result have the
        lower halves l, l + bound, … up to 2^L: without those below 2^L mod bound they are floor(2^L/bound) words for
        every result alike (Lemire 2019). Rejected words are drawn again.
    Needs: Keystream.bytes.
    Checked by: test_uniform_integers_are_uniform_when_every_word_is_enumerated,
        test_uniform_integers_of_a_large_range_are_uniform
    """
    if not 1 <= bound <= 1 << 32:
        raise ValueError(f"bound must be between 1 and 2^32, not {bound}")
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
