"""The most frequent values among all that can be written: found from their beginnings to their ends."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from discreet.kernel.exact import Number, share, whole
from discreet.kernel.loss import Loss
from discreet.local.oracle import priced
from discreet.local.prefixes import Numbers, Prefixes, Texts
from discreet.local.reports import Received, Reports
from discreet.local.schemes.parities import best_checks
from discreet.local.schemes.sketched import Sketched
from discreet.local.sketch import OpenOracle
from discreet.local.tally import Tally
from discreet.local.walk import KEPT, walked

_ADDED = 12  # bits at most that a level adds to the prefixes kept: 2^20 are tried
_LAST = 2  # so many times as many people report the whole value as any prefix: its share is read from them alone
_ROWS, _BITS = 4, 18  # of each level's sketch: 2^20 numbers


class Hitter(NamedTuple):
    """A value, the share of people who have it, and whether so large a share can hardly be read by chance.

    >>> Hitter("a.eu", share=0.6, margin=0.1, sure=True).value
    'a.eu'
    """

    value: Any
    share: float
    margin: float
    sure: bool


def HeavyHitters(values: Numbers | Texts, epsilon: Number) -> "Finder":  # noqa: N802 - a protocol's name
    """Return the prefix extending method (Wang, Li, Jha 2019; Bassily, Nissim, Stemmer, Thakurta 2017).

    By chance a person reports the whole value, or a prefix of it of one of a few lengths, through a sketch. The server
    keeps the most frequent short prefixes, tries what can follow them, and so on to the values' end.

    >>> import discreet as dc
    >>> home_pages = dc.local.HeavyHitters(dc.local.Texts(4), epsilon=4)
    >>> reports = home_pages.perturb(["a.eu"] * 6000 + ["b.eu"] * 4000)
    >>> [hitter.value for hitter in home_pages.find(reports, most=2)]
    ['a.eu', 'b.eu']
    """
    price, odds = priced(epsilon)
    if not isinstance(values, Numbers | Texts):
        raise TypeError(f"values must be Numbers(bits) or Texts(length), not {type(values).__name__}")
    prefixes = Prefixes(values, cuts_of(values.bits))
    weights = (1,) * (len(prefixes.cuts) - 1) + (_LAST,)
    return Finder(
        prefixes, OpenOracle(prefixes, price, Sketched(weights, _ROWS, _BITS, best_checks(odds, _BITS), odds))
    )


def cuts_of(bits: int) -> tuple[int, ...]:
    """Return up to which bits each level reports: with KEPT bits to choose from, each adds as many.

    >>> cuts_of(16), cuts_of(64)
    ((16,), (19, 30, 41, 52, 64))
    """
    levels = max(1, -(-(bits - KEPT) // _ADDED))
    return tuple(KEPT + (bits - KEPT) * level // levels for level in range(1, levels + 1))


@dataclass(frozen=True, repr=False)
class Finder:
    """What `HeavyHitters` returns: `perturb` where the person is, `find` where reports arrive.

    >>> import discreet as dc
    >>> finder = dc.local.HeavyHitters(dc.local.Numbers(16), epsilon=4)
    >>> tally = dc.local.Tally(finder)
    >>> tally.add(finder.perturb([4711] * 2000))
    >>> [hitter.value for hitter in finder.find(tally, most=1)]
    [4711]
    """

    prefixes: Prefixes
    oracle: OpenOracle

    @property
    def made_by(self) -> str:
        """The configuration, by which reports and tallies are known again."""
        return self.oracle.made_by

    @property
    def scheme(self) -> Sketched:
        """How prefixes are reported."""
        return self.oracle.scheme

    def loss(self) -> Loss:
        """Return what one report tells about the value of the person who sent it.

        Claim: epsilon, for whole values as for their prefixes.
        Proof: the person sends one report of one level; its law is the sketch's.
        Needs: OpenOracle.loss.
        Checked by: test_the_worst_log_ratio_of_a_sketch_is_the_claimed_epsilon
        Seal: 5ddfaae55e16
        """
        return self.oracle.loss()

    def perturb(self, values: Any) -> Reports:
        """Return a randomized report for each person's value.

        Claim: a report depends on its own person's value, through the sketch's law, and on nothing else.
        Proof: it is the sketch's, and the marks are public functions of the value.
        Needs: OpenOracle.perturb.
        Checked by: test_sketched_reports_have_the_law_that_is_claimed
        Seal: b0d01ab4e8d7
        """
        return self.oracle.perturb(values)

    def read(self, received: Received) -> Reports:
        """Read what people sent: a file of reports, or a list of messages."""
        return self.oracle.read(received)

    def counts(self, reports: Reports) -> np.ndarray:
        """Return what an accumulator adds up."""
        return self.oracle.counts(reports)

    def find(self, reports: Reports | Tally, *, most: int = 20, confidence: Number = 0.95) -> list[Hitter]:
        """Return at most so many of the most frequent values, the best first.

        With the confidence asked for, none of them is there by chance; with the same confidence all their margins
        hold, although they are the best of many that were tried.
        """
        best = self.candidates(reports, most=most, confidence=confidence)
        return [hitter for hitter in best if hitter.sure]

    def candidates(self, reports: Reports | Tally, *, most: int = 20, confidence: Number = 0.95) -> list[Hitter]:
        """Return so many of the best values, even those that may be there by chance."""
        wanted, doubt = whole(most, "most", 1), float(1 - share(confidence, "confidence"))
        kept = walked(self.scheme, self.prefixes, self.oracle.totals(reports), wanted)
        own, other = map(float, self.scheme.rates)
        shares = (kept.supports / kept.people - other) / (own - other)
        likely = np.clip(shares, 0, 1)
        variance = likely * own * (1 - own) + (1 - likely) * other * (1 - other)
        each = doubt / (2 * kept.tried)
        margins = _reach(kept.people * variance, each) / (kept.people * (own - other))
        sure = kept.supports > kept.people * other + _reach(kept.people * other * (1 - other), each)
        values = self.prefixes.written.values(kept.words)
        read = zip(values, shares.tolist(), margins.tolist(), sure.tolist(), strict=True)
        hitters = [Hitter(*one) for one in read if one[0] is not None]
        return sorted(hitters, key=lambda hitter: -hitter.share)

    def __repr__(self) -> str:
        return f"<heavy hitters by {self.oracle!r}>"

    def __str__(self) -> str:
        return self.made_by


def _reach(variance: np.ndarray, doubt: float) -> np.ndarray:
    """Return how far from its mean a number of supports comes, beyond which it is with so small a probability.

    So far out, a number of rare events is not normal any more: the second term is for its skewness (Cornish and
    Fisher 1938), the last for its being whole.
    """
    spreads = -NormalDist().inv_cdf(doubt)
    reach: np.ndarray = spreads * np.sqrt(variance) + (spreads**2 - 1) / 6 + 1
    return reach
