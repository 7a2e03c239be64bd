"""RAPPOR: all reports of a device together stay within one epsilon."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.loss import Loss
from discreet.kernel.numbers import Number, as_fraction, as_integer, log_up, round_up
from discreet.local.domain import Domain
from discreet.local.frequency_oracles.rappor_filters import BloomFilter, OneBitPerValue, RapporFilter
from discreet.local.frequency_oracles.rappor_scheme import RapporScheme
from discreet.local.frequency_oracles.unary_encoding import root_down
from discreet.local.oracle import Oracle, parse_epsilon
from discreet.local.reports import Reports, read_reports

_DEFAULT_COHORTS = 64
_MAX_HASHES = 8  # words of a digest
_MAX_BITS = 1 << 20
_MAX_DECODED_VALUES = 1 << 11  # values of a Bloom filter, which are read by a matrix of that side
_MAX_COUNTED_BITS = 1 << 14  # bits of a Bloom filter in all cohorts


def RAPPOR(  # noqa: N802, PLR0913 - a protocol's name, and its settings
    domain: int | Sequence[Any],
    epsilon: Number,
    *,
    bits: int | None = None,
    hashes: int = 1,
    cohorts: int | None = None,
    noise: tuple[Number, Number] = ("1/2", "3/4"),
) -> Oracle:
    """Return RAPPOR (Erlingsson, Pihur, Korolova 2014); `PermanentResponse` is what devices keep of it.

    Epsilon is for ever: it bounds what all reports of a device tell about its value, however many it sends. Each
    report alone tells less, by `noise`: how likely it shows a bit that is kept unset, and one that is kept set.
    Without `bits` every value has a bit; with it, `hashes` bits of a Bloom filter, others in each cohort of people.
    `perturb` is for devices that report once and keep nothing: called again, it costs epsilon again.

    >>> import discreet as dc
    >>> survey = dc.local.RAPPOR(["car", "bus", "bicycle"], epsilon=4)
    >>> parsed = dc.local.PermanentResponse.of(survey, ["bus"] * 600 + ["bicycle"] * 400)
    >>> monday, tuesday = parsed.report(), parsed.report()
    >>> shares, margins = survey.estimate(tuesday)
    >>> bool(abs(shares[1] - 0.6) < 4 * margins[1])
    True
    """
    exact_epsilon, odds = parse_epsilon(epsilon)
    values = Domain.from_values(domain)
    rappor_filter = _build_filter(values.size, bits, hashes, cohorts)
    flip = 1 / (root_down(odds, 2 * rappor_filter.hashes) + 1)
    return Oracle(values, exact_epsilon, RapporScheme(rappor_filter, flip, _check_noise(noise)))


@dataclass(frozen=True, eq=False)
class PermanentResponse:
    """What devices keep of RAPPOR's noise: drawn once for a value, stored, and the source of all their reports.

    A device that draws it again, or for another value, pays epsilon again.

    >>> import discreet as dc
    >>> survey = dc.local.RAPPOR(["yes", "no"], epsilon=1)
    >>> stored = bytes(dc.local.PermanentResponse.of(survey, ["no"]))
    >>> len(dc.local.PermanentResponse.read(survey, stored).report())
    1
    """

    oracle: Oracle
    array: np.ndarray

    def __post_init__(self) -> None:
        if getattr(self.array, "dtype", None) != _check_rappor_scheme(self.oracle).dtype:
            raise TypeError("array must be what devices keep: Permanent.of(oracle, values) draws it")

    @classmethod
    def draw(cls, oracle: Oracle, values: Any) -> "PermanentResponse":
        """Draw what devices with these values keep."""
        return cls(oracle, _check_rappor_scheme(oracle).permanent_response(oracle.domain.encode(values, "values")))

    def report(self) -> Reports:
        """Return a report of each device; as often as one likes."""
        return Reports(self.oracle.configuration, _check_rappor_scheme(self.oracle).instantaneous_response(self.array))

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, selection: slice) -> "PermanentResponse":
        if not isinstance(selection, slice):
            raise TypeError("take a slice of the devices, such as kept[:1]")
        return PermanentResponse(self.oracle, self.array[selection])

    def __bytes__(self) -> bytes:
        return bytes(Reports(_permanent_configuration(self.oracle), self.array))

    @classmethod
    def read(cls, oracle: Oracle, stored: bytes | Iterable[bytes]) -> "PermanentResponse":
        """Read what devices stored, together or each; ValueError if of another version or configuration, or torn."""
        scheme = _check_rappor_scheme(oracle)
        parsed = read_reports(stored, _permanent_configuration(oracle), scheme.dtype)
        scheme.check(parsed.array)
        return cls(oracle, parsed.array)


def loss_of_one_report(oracle: Oracle) -> Loss:
    """Return what one report of a RAPPOR tells to somebody who sees no other report of the device.

    Claim: epsilon = hashes·ln(own·(1-other)/(other·(1-own))) for the rates of a report's bits, rounded up, and never
        more than for ever.
    Proof: bits are independent given the cohort, which tells nothing. Two values differ in the law of at most
        `hashes` bits that stand for the one and as many for the other. Where the former are set and the latter not,
        the ratio is (own/other)^hashes·((1-other)/(1-own))^hashes, and no report has a larger one.
    Needs: the law of Remembered.perturb.
    Checked by: test_one_report_loses_less_than_all
    Seal: 486c5027ce39

    >>> import discreet as dc
    >>> round(float(loss_of_one_report(dc.local.RAPPOR(["yes", "no"], epsilon=1)).epsilon), 4)
    0.2617
    """
    scheme = _check_rappor_scheme(oracle)
    own, other = scheme.rates
    single_epsilon = scheme.filter.hashes * log_up(own * (1 - other) / (other * (1 - own)))
    return Loss(min(round_up(single_epsilon), oracle.epsilon))


def _check_rappor_scheme(oracle: Oracle) -> RapporScheme:
    if not isinstance(oracle, Oracle) or not isinstance(oracle.scheme, RapporScheme):
        raise TypeError("oracle must be what RAPPOR returns")
    return oracle.scheme


def _permanent_configuration(oracle: Oracle) -> str:
    return f"permanent of {oracle.configuration}"


def _build_filter(size: int, bits: int | None, hashes: int, cohorts: int | None) -> RapporFilter:
    hash_count = as_integer(hashes, "hashes", 1)
    cohort_count = as_integer(_DEFAULT_COHORTS if cohorts is None else cohorts, "cohorts", 1)
    if bits is None:
        if hash_count > 1 or cohorts is not None:
            raise ValueError("bits are missing: hashes and cohorts are those of a Bloom filter of so many bits")
        if size > _MAX_BITS:
            raise ValueError(
                f"domain: a report would have a bit for each of {size:,} values; take at most {_MAX_BITS:,}"
            )
        return OneBitPerValue(size)
    if hash_count > _MAX_HASHES:
        raise ValueError(f"hashes must be at most {_MAX_HASHES}, not {hash_count}")
    if size > _MAX_DECODED_VALUES:
        raise ValueError(
            f"domain: {size:,} values are too many to be read from a Bloom filter; take at most {_MAX_DECODED_VALUES:,}, "
            "or Sketch"
        )
    length = as_integer(bits, "bits", 2 * hash_count)
    if length * cohort_count > _MAX_COUNTED_BITS:
        raise ValueError(
            f"bits: {length:,} in each of {cohort_count:,} cohorts are more than {_MAX_COUNTED_BITS:,} in all"
        )
    return BloomFilter(size, length, hash_count, cohort_count)


def _check_noise(given: tuple[Number, Number]) -> tuple[Fraction, Fraction]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise TypeError("noise must be two probabilities, such as (0.5, 0.75)")
    unset, set_ = (as_fraction(probability, "noise") for probability in given)
    if not 0 <= unset < set_ <= 1:
        raise ValueError(f"noise must be two probabilities from 0 to 1, the second the larger, not {unset} and {set_}")
    return unset, set_
