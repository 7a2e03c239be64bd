"""Coins and dice that are fair to the last bit."""

from fractions import Fraction

from discreet.kernel.exact import exp_bounds
from discreet.kernel.noise.keystream import Source, integer


def comes_up(source: Source, gap: Fraction, known: int = 0, bits: int = 0) -> bool:
    """Toss a coin that shows heads with probability exp(-gap); `bits` bits of it may be known already.

    Claim: heads has probability exp(-gap), exactly.
    Proof: heads means V < exp(-gap) for a uniform V of which ever more bits are drawn, until the enclosure of
        exp(-gap) leaves no doubt.
    Needs: exp_bounds, Keystream.bytes.
    Checked by: test_the_correcting_coin_is_fair_to_its_last_bit
    Seal: a52c090931a0
    """
    while True:
        if bits:
            low, high = exp_bounds(gap, bits)
            if known + 1 <= low:
                return True
            if known >= high:
                return False
        known, bits = known << 64 | integer(source, 64), bits + 64


def below(source: Source, count: int) -> int:
    """Return a uniform integer from 0 to count - 1.

    Claim: each has probability 1/count, exactly.
    Proof: a uniform number of enough bits, drawn again until it is below count.
    Needs: Keystream.bytes.
    Checked by: test_integers_below_a_count_are_uniform
    Seal: db6e06a75c87
    """
    bits = -(-count.bit_length() // 8) * 8
    while True:
        drawn = integer(source, bits) >> (bits - count.bit_length())
        if drawn < count:
            return drawn
