"""RAPPOR: repeated reports of a device whose total privacy loss is bounded by one epsilon."""

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
_MAX_HASHES = 8  # a digest has 8 words
_MAX_BITS = 1 << 20
_MAX_DECODED_VALUES = 1 << 11  # decoding a Bloom filter inverts a matrix of this size
_MAX_COUNTED_BITS = 1 << 14  # of a Bloom filter, in all cohorts


def RAPPOR(  # noqa: N802, PLR0913 - a protocol's name, and its settings
    domain: int | Sequence[Any],
    epsilon: Number,
    *,
    bits: int | None = None,
    hashes: int = 1,
    cohorts: int | None = None,
    noise: tuple[Number, Number] = ("1/2", "3/4"),
) -> Oracle:
    """Return RAPPOR (Erlingsson, Pihur, Korolova 2014), for devices that store a `PermanentResponse`.

    Epsilon bounds the privacy loss of all reports of a device together, however many it sends. A single report loses
    less because of `noise`: the probabilities that it shows a 1 for a permanent bit of 0, and for one of 1. Without
    `bits`, every value has its own bit; with `bits`, it has `hashes` bits of a Bloom filter, which differ between
    `cohorts`. `perturb` is for devices that report once and store nothing: each call costs epsilon again.

    >>> import discreet as dc
    >>> survey = dc.local.RAPPOR(["car", "bus", "bicycle"], epsilon=4)
    >>> devices = dc.local.PermanentResponse.draw(survey, ["bus"] * 600 + ["bicycle"] * 400)
    >>> monday, tuesday = devices.report(), devices.report()
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
    """The permanent randomised response of devices: drawn once for a value, stored, and the source of all reports.

    A device that draws again, for the same or another value, costs epsilon again.

    >>> import discreet as dc
    >>> survey = dc.local.RAPPOR(["yes", "no"], epsilon=1)
    >>> stored = bytes(dc.local.PermanentResponse.draw(survey, ["no"]))
    >>> len(dc.local.PermanentResponse.read(survey, stored).report())
    1
    """

    oracle: Oracle
    array: np.ndarray

    def __post_init__(self) -> None:
        if getattr(self.array, "dtype", None) != _check_rappor_scheme(self.oracle).dtype:
            raise TypeError("array must be a permanent response. Draw one with PermanentResponse.draw(oracle, values).")

    @classmethod
    def draw(cls, oracle: Oracle, values: Any) -> "PermanentResponse":
        """Draw the permanent responses of devices with these values."""
        return cls(oracle, _check_rappor_scheme(oracle).permanent_response(oracle.domain.encode(values, "values")))

    def report(self) -> Reports:
        """Return a report of each device; it can be called any number of times at no further cost."""
        return Reports(self.oracle.configuration, _check_rappor_scheme(self.oracle).instantaneous_response(self.array))

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, selection: slice) -> "PermanentResponse":
        if not isinstance(selection, slice):
            raise TypeError("permanent response: index with a slice of the devices, such as [:1]")
        return PermanentResponse(self.oracle, self.array[selection])

    def __bytes__(self) -> bytes:
        return bytes(Reports(_permanent_configuration(self.oracle), self.array))

    @classmethod
    def read(cls, oracle: Oracle, stored: bytes | Iterable[bytes]) -> "PermanentResponse":
        """Parse stored permanent responses; ValueError if version, configuration or length do not match."""
        scheme = _check_rappor_scheme(oracle)
        parsed = read_reports(stored, _permanent_configuration(oracle), scheme.dtype)
        scheme.check(parsed.array)
        return cls(oracle, parsed.array)


def loss_of_one_report(oracle: Oracle) -> Loss:
    """Return the privacy loss of one RAPPOR report, to an observer who sees no other report of the device.

    Claim: epsilon = hashes·ln(own·(1-other)/(other·(1-own))) for the rates of a report's bits, rounded up, and never
        more than the epsilon of all reports together.
    Proof: the bits are independent given the cohort, which is independent of the value. Two values differ in the
        distribution of at most `hashes` bits that stand for the one and as many for the other. If the former are set
        and the latter are not, the ratio is (own/other)^hashes·((1-other)/(1-own))^hashes, and no report has a larger
        one.
    Needs: RapporScheme.perturb.
    Checked by: test_one_report_loses_less_than_all

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
        raise TypeError("oracle must be a RAPPOR oracle")
    return oracle.scheme


def _permanent_configuration(oracle: Oracle) -> str:
    return f"permanent of {oracle.configuration}"


def _build_filter(size: int, bits: int | None, hashes: int, cohorts: int | None) -> RapporFilter:
    hash_count = as_integer(hashes, "hashes", 1)
    cohort_count = as_integer(_DEFAULT_COHORTS if cohorts is None else cohorts, "cohorts", 1)
    if bits is None:
        if hash_count > 1 or cohorts is not None:
            raise ValueError("bits is required with hashes or cohorts: it is the size of the Bloom filter")
        if size > _MAX_BITS:
            raise ValueError(
                f"domain: {size:,} values are too many for one bit each, at most {_MAX_BITS:,} are supported"
            )
        return OneBitPerValue(size)
    if hash_count > _MAX_HASHES:
        raise ValueError(f"hashes must be at most {_MAX_HASHES}, not {hash_count}")
    if size > _MAX_DECODED_VALUES:
        raise ValueError(
            f"domain: a Bloom filter of {size:,} values cannot be decoded, at most {_MAX_DECODED_VALUES:,} are "
            "supported. Use Sketch for more."
        )
    length = as_integer(bits, "bits", 2 * hash_count)
    if length * cohort_count > _MAX_COUNTED_BITS:
        raise ValueError(
            f"bits: {length:,} in each of {cohort_count:,} cohorts exceed the limit of {_MAX_COUNTED_BITS:,} in all"
        )
    return BloomFilter(size, length, hash_count, cohort_count)


def _check_noise(given: tuple[Number, Number]) -> tuple[Fraction, Fraction]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise TypeError("noise must be two probabilities, such as (0.5, 0.75)")
    unset, set_ = (as_fraction(probability, "noise") for probability in given)
    if not 0 <= unset < set_ <= 1:
        raise ValueError(
            f"noise must be two probabilities, the second above the first, not {float(unset):g} and {float(set_):g}"
        )
    return unset, set_
