"""Many coins and dice at once, exact to the last bit."""

from fractions import Fraction

import numpy as np

from discreet.kernel.noise.keystream import Source, wipe, words

_TOGETHER = 8  # so many binary digits are compared in all words; then only in those that hold an open bit


def coins(source: Source, count: int, chance: Fraction) -> np.ndarray:
    """Return so many 64-bit words, each of whose bits is set with probability `chance`.

    Claim: every bit is 1 with probability chance, exactly, and independent of the others.
    Proof: a bit is 1 if U < chance for a uniform U in [0, 1) of its own. U's binary digits are drawn one after
        another, a word for 64 of them, and compared with those of the fraction, by long division: the first digit
        in which they differ decides (U has 0 where chance has 1: below), and later digits cannot undo it. Where all
        further digits of chance are 0, U is not below it. A bit is open after n digits with probability 2^-n.
    Needs: Keystream.bytes.
    Checked by: test_coins_show_their_chance_when_every_word_is_tried, test_real_coins_fall_as_often_as_they_should
    Seal: ac33e333e733
    """
    heads, open_ = np.zeros(count, np.uint64), np.full(count, ~np.uint64(0))
    where, still, rest, digits = None, open_, chance, 0
    while rest and len(still):
        rest *= 2
        one, digits = rest >= 1, digits + 1
        drawn = words(source, len(still), np.uint64)
        if one:
            rest -= 1
            below = still & ~drawn
            still &= drawn
            heads[where if where is not None else slice(None)] |= below
        else:
            still &= ~drawn
        wipe(drawn)
        if digits >= _TOGETHER:
            left = np.flatnonzero(still)
            where, still = left if where is None else where[left], still[left]
    return heads


def tosses(source: Source, count: int, chance: Fraction) -> np.ndarray:
    """Return so many coins that are True with probability `chance`, as `coins` makes them."""
    packed = coins(source, -(-count // 64), chance)
    return np.unpackbits(packed.view(np.uint8), count=count).view(bool)


def dice(source: Source, count: int, faces: int) -> np.ndarray:
    """Return so many uniform integers from 0 to faces - 1 as int64, for up to 2^32 faces.

    Claim: each has probability 1/faces, exactly, and is independent of the others.
    Proof: a word w of L bits makes w·faces, of which the upper half is the face and the lower half says where in
        the face's stretch w lies. The stretch of a face holds the lower halves l, l + faces, … up to 2^L: without
        those below 2^L mod faces it is floor(2^L/faces) words for every face alike (Lemire 2019). Words that are
        left out are drawn again.
    Needs: Keystream.bytes.
    Checked by: test_dice_are_fair_when_every_word_is_tried, test_dice_with_many_faces_are_fair
    Seal: 878de16c3083
    """
    if not 1 <= faces <= 1 << 32:
        raise ValueError(f"faces must be from 1 to 2^32, not {faces}")
    small = faces <= 1 << 8
    word, wide, bits = (np.uint16, np.uint32, 16) if small else (np.uint32, np.uint64, 32)
    uneven = (1 << bits) % faces
    shown = _products(source, count, faces, word, wide)
    while uneven:
        again = np.flatnonzero((shown & wide((1 << bits) - 1)) < wide(uneven))
        if not len(again):
            break
        shown[again] = _products(source, len(again), faces, word, wide)
    shown >>= wide(bits)
    return shown.astype(np.int64) if small else shown.view(np.int64)


def _products(
    source: Source,
    count: int,
    faces: int,
    word: type[np.unsignedinteger],
    wide: type[np.unsignedinteger],
) -> np.ndarray:
    drawn = words(source, count, word)
    shown: np.ndarray = drawn.astype(wide)
    shown *= wide(faces)
    wipe(drawn)
    return shown
