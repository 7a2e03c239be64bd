"""RAPPOR: the same person can be asked again and again, and all answers together stay within one epsilon."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.exact import Number, fraction, log_up, round_up, whole
from discreet.kernel.loss import Loss
from discreet.local.domain import Domain
from discreet.local.oracle import Oracle, priced
from discreet.local.rappor_filters import Bloom, Filter, OneBitEach
from discreet.local.rappor_scheme import Remembered
from discreet.local.reports import Reports, read_reports
from discreet.local.schemes.unary import root_down

_COHORTS = 64
_MOST_HASHES = 8  # words of a digest
_MOST_BITS = 1 << 20
_MOST_DECODED = 1 << 11  # values of a Bloom filter, which are read by a matrix of that side
_MOST_COUNTED = 1 << 14  # bits of a Bloom filter in all cohorts


def RAPPOR(  # noqa: N802, PLR0913 - a protocol's name, and its settings
    domain: int | Sequence[Any],
    epsilon: Number,
    *,
    bits: int | None = None,
    hashes: int = 1,
    cohorts: int | None = None,
    noise: tuple[Number, Number] = ("1/2", "3/4"),
) -> Oracle:
    """Return RAPPOR (Erlingsson, Pihur, Korolova 2014); `Permanent` is what devices keep of it.

    Epsilon is for ever: it bounds what all reports of a device tell about its value, however many it sends. Each
    report alone tells less, by `noise`: how likely it shows a bit that is kept unset, and one that is kept set.
    Without `bits` every value has a bit; with it, `hashes` bits of a Bloom filter, others in each cohort of people.
    `perturb` is for devices that report once and keep nothing: called again, it costs epsilon again.

    >>> import discreet as dc
    >>> survey = dc.local.RAPPOR(["car", "bus", "bicycle"], epsilon=4)
    >>> kept = dc.local.Permanent.of(survey, ["bus"] * 600 + ["bicycle"] * 400)
    >>> monday, tuesday = kept.report(), kept.report()
    >>> shares, margins = survey.estimate(tuesday)
    >>> bool(abs(shares[1] - 0.6) < 4 * margins[1])
    True
    """
    price, odds = priced(epsilon)
    values = Domain.of(domain)
    chosen = _filter(values.size, bits, hashes, cohorts)
    flip = 1 / (root_down(odds, 2 * chosen.hashes) + 1)
    return Oracle(values, price, Remembered(chosen, flip, _noise(noise)))


@dataclass(frozen=True, eq=False)
class Permanent:
    """What devices keep of RAPPOR's noise: drawn once for a value, stored, and the source of all their reports.

    A device that draws it again, or for another value, pays epsilon again.

    >>> import discreet as dc
    >>> survey = dc.local.RAPPOR(["yes", "no"], epsilon=1)
    >>> stored = bytes(dc.local.Permanent.of(survey, ["no"]))
    >>> len(dc.local.Permanent.read(survey, stored).report())
    1
    """

    oracle: Oracle
    array: np.ndarray

    def __post_init__(self) -> None:
        if getattr(self.array, "dtype", None) != _remembered(self.oracle).dtype:
            raise TypeError("array must be what devices keep: Permanent.of(oracle, values) draws it")

    @classmethod
    def of(cls, oracle: Oracle, values: Any) -> "Permanent":
        """Draw what devices with these values keep."""
        return cls(oracle, _remembered(oracle).permanent(oracle.domain.places(values, "values")))

    def report(self) -> Reports:
        """Return a report of each device; as often as one likes."""
        return Reports(self.oracle.made_by, _remembered(self.oracle).instantaneous(self.array))

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, wanted: slice) -> "Permanent":
        if not isinstance(wanted, slice):
            raise TypeError("take a slice of the devices, such as kept[:1]")
        return Permanent(self.oracle, self.array[wanted])

    def __bytes__(self) -> bytes:
        return bytes(Reports(_kept_by(self.oracle), self.array))

    @classmethod
    def read(cls, oracle: Oracle, stored: bytes | Iterable[bytes]) -> "Permanent":
        """Read what devices stored, together or each; ValueError if of another version or configuration, or torn."""
        scheme = _remembered(oracle)
        kept = read_reports(stored, _kept_by(oracle), scheme.dtype)
        scheme.check(kept.array)
        return cls(oracle, kept.array)


def loss_of_one_report(oracle: Oracle) -> Loss:
    """Return what one report of a RAPPOR tells to somebody who sees no other report of the device.

    Claim: epsilon = hashes·ln(own·(1-other)/(other·(1-own))) for the rates of a report's bits, rounded up, and never
        more than for ever.
    Proof: bits are independent given the cohort, which tells nothing. Two values differ in the law of at most
        `hashes` bits that stand for the one and as many for the other. Where the former are set and the latter not,
        the ratio is (own/other)^hashes·((1-other)/(1-own))^hashes, and no report has a larger one.
    Needs: the law of Remembered.perturb.
    Checked by: test_one_report_loses_less_than_all
    Seal: 7c7090468a1a

    >>> import discreet as dc
    >>> round(float(loss_of_one_report(dc.local.RAPPOR(["yes", "no"], epsilon=1)).epsilon), 4)
    0.2617
    """
    scheme = _remembered(oracle)
    own, other = scheme.rates
    once = scheme.filter.hashes * log_up(own * (1 - other) / (other * (1 - own)))
    return Loss(min(round_up(once), oracle.epsilon))


def _remembered(oracle: Oracle) -> Remembered:
    if not isinstance(oracle, Oracle) or not isinstance(oracle.scheme, Remembered):
        raise TypeError("oracle must be what RAPPOR returns")
    return oracle.scheme


def _kept_by(oracle: Oracle) -> str:
    return f"permanent of {oracle.made_by}"


def _filter(size: int, bits: int | None, hashes: int, cohorts: int | None) -> Filter:
    each = whole(hashes, "hashes", 1)
    groups = whole(_COHORTS if cohorts is None else cohorts, "cohorts", 1)
    if bits is None:
        if each > 1 or cohorts is not None:
            raise ValueError("bits are missing: hashes and cohorts are those of a Bloom filter of so many bits")
        if size > _MOST_BITS:
            raise ValueError(
                f"domain: a report would have a bit for each of {size:,} values; take at most {_MOST_BITS:,}"
            )
        return OneBitEach(size)
    if each > _MOST_HASHES:
        raise ValueError(f"hashes must be at most {_MOST_HASHES}, not {each}")
    if size > _MOST_DECODED:
        raise ValueError(
            f"domain: {size:,} values are too many to be read from a Bloom filter; take at most {_MOST_DECODED:,}, "
            "or Sketch"
        )
    length = whole(bits, "bits", 2 * each)
    if length * groups > _MOST_COUNTED:
        raise ValueError(f"bits: {length:,} in each of {groups:,} cohorts are more than {_MOST_COUNTED:,} in all")
    return Bloom(size, length, each, groups)


def _noise(given: tuple[Number, Number]) -> tuple[Fraction, Fraction]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise TypeError("noise must be two probabilities, such as (0.5, 0.75)")
    unset, set_ = (fraction(each, "noise") for each in given)
    if not 0 <= unset < set_ <= 1:
        raise ValueError(f"noise must be two probabilities from 0 to 1, the second the larger, not {unset} and {set_}")
    return unset, set_
