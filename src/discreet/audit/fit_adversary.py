"""The strongest adversary of a fit: it sees every noisy sum, and knows both data sets, the algorithm and the noise.

fit(data) ──► noisy sums ──► replayed with D:  would it have asked for these sums? how likely is their noise?
                         └─► replayed with D2: the same
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from discreet.engines.row_sums import SumRequest, summable, sums_observed_by
from discreet.kernel.mechanism import Laplace
from discreet.kernel.model_release import PartialSum
from discreet.kernel.numbers import as_positive
from discreet.kernel.reservation import CLIP_RADIUS, Noise, Reservation

_BATCH_WIDTH = 16  # numbers per row that the size of batches is chosen for
_IMPOSSIBLE = -1e9  # log-likelihood of sums that the algorithm would not have asked for


@dataclass(frozen=True, eq=False)
class _ObservedSum:
    """A noisy sum as the adversary sees it: the request, the noise, and the result in grid steps."""

    request: SumRequest
    noise: Noise
    released: np.ndarray


class _DifferentRequestError(Exception):
    """The replayed fit asks for another sum than the observed one."""


@dataclass(frozen=True)
class FitAdversary:
    """Fits once per call, and returns the log-likelihood ratio, D to D2, of all noisy sums that the fit released.

    `fit` is a function of a data set that fits models of `dc.learn`, and that does nothing else at random; `D` and `D2`
    are neighbouring data sets. No score distinguishes them better: pass it to `measure` as the mechanism. A fit whose
    requests depend on the data in any other way than through its noisy sums is distinguished with certainty.

    >>> import numpy as np, discreet as dc
    >>> rows = np.zeros((50, 1))
    >>> def fit(rows):
    ...     return dc.learn.StandardScaler(epsilon=1, bounds=(-5, 5)).fit(rows)
    >>> adversary = FitAdversary(fit, np.append(rows, [[5]], axis=0), rows)
    >>> abs(adversary(adversary.D)) <= 1
    True
    """

    fit: Callable[[Any], Any]
    D: Any
    D2: Any

    def __call__(self, data: Any) -> float:
        """Fit to the data, and return the log-likelihood ratio of what was released."""
        with _observing() as released:
            self.fit(data)
        return self._log_likelihood(released, self.D) - self._log_likelihood(released, self.D2)

    def _log_likelihood(self, released: list[_ObservedSum], data: Any) -> float:
        """Return the log-likelihood of the noisy sums, apart from a constant, if the data were these."""
        try:
            with _replaying(released) as terms:
                self.fit(data)
        except _DifferentRequestError:
            return _IMPOSSIBLE
        return sum(terms) if len(terms) == len(released) else _IMPOSSIBLE


@contextmanager
def _observing() -> Iterator[list[_ObservedSum]]:
    """Collect the noisy sums of fits."""
    observed: list[_ObservedSum] = []

    def observe(request: SumRequest, reservation: Reservation) -> np.ndarray:
        noise = reservation.next_noise
        result = request.release(reservation)
        observed.append(_ObservedSum(request, noise, result * _steps(request)))
        return result

    with sums_observed_by(observe):
        yield observed


@contextmanager
def _replaying(observed: list[_ObservedSum]) -> Iterator[list[float]]:
    """Answer the requests of a fit with observed sums, and collect the log-likelihood of each with the fit's rows."""
    terms: list[float] = []

    def answer(request: SumRequest, reservation: Reservation) -> np.ndarray:
        noise = reservation.take_noise()
        if len(terms) == len(observed) or not _is_same(observed[len(terms)], request, noise):
            raise _DifferentRequestError
        seen = observed[len(terms)]
        terms.append(_noise_log_likelihood(noise, seen.released - _exact_sum(request, noise)))
        return seen.released / _steps(request)

    with sums_observed_by(answer):
        yield terms


def _steps(request: SumRequest) -> float:
    return float(CLIP_RADIUS / as_positive(request.radius, "radius"))


def _is_same(seen: _ObservedSum, request: SumRequest, noise: Noise) -> bool:
    """Return whether a request, and the bounds of its rows, equal the observed ones to the last bit."""
    one, other = seen.request, request
    settings = [(each.size, each.radius, each.combine, each.blocks, len(each.public)) for each in (one, other)]
    return (
        settings[0] == settings[1]
        and seen.noise == noise
        and _code(one.rule) == _code(other.rule)
        and all(
            _is_equal(*pair)
            for pair in zip((one.rows.low, one.rows.high), (other.rows.low, other.rows.high), strict=True)
        )
        and all(_is_equal(*pair) for pair in zip(one.public, other.public, strict=True))
    )


def _is_equal(one: Any, other: Any) -> bool:
    if callable(one) or callable(other):
        return bool(_code(one) == _code(other))
    return np.array_equal(np.asarray(one), np.asarray(other), equal_nan=np.asarray(one).dtype.kind == "f")


def _code(rule: Any) -> Any:
    return rule.__code__ if isinstance(rule, FunctionType) else rule


def _exact_sum(request: SumRequest, noise: Noise) -> np.ndarray:
    """Return the integers that the noise is added to."""
    data = summable(request.rows)
    part = PartialSum(
        request.rule,
        request.public,
        data.low,
        data.high,
        data.grouped,
        request.size,
        _BATCH_WIDTH,
        _steps(request),
        l1=isinstance(noise, Laplace),
        combine=request.combine,
        blocks=request.blocks,
    )
    return data.sum_units(part)


def _noise_log_likelihood(noise: Noise, difference: np.ndarray) -> float:
    scale = float(noise.scale)
    if isinstance(noise, Laplace):
        return -float(np.abs(difference).sum()) / scale
    return -float(difference @ difference) / (2 * scale * scale)
