"""The search for the worst neighbours: many are tried a little, the suspicious ones more, the worst is audited."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from discreet.audit.chances import generator
from discreet.audit.claims import claimed, level
from discreet.audit.events import suspicions
from discreet.audit.failures import all_failed
from discreet.audit.measuring import Claim, measure
from discreet.audit.nearby import Neighbours, Pair, pairs_of
from discreet.audit.outcomes import run_both
from discreet.audit.reading import read_both
from discreet.audit.result import AuditResult
from discreet.kernel.exact import Number, whole

_LEAST = 100  # runs, below which hardly anything can be told
_KEPT = 4  # one of so many goes on to the next round, which has twice the runs
_SHOWN = 60  # characters of a data set


@dataclass(frozen=True)
class _Contender:
    pair: Pair
    promise: float


def search(  # noqa: PLR0913 - as measure
    mechanism: Any,
    neighbours: Neighbours,
    claim: Claim,
    runs: int,
    *,
    tries: int = 120,
    delta: Number = 0,
    confidence: float = 0.95,
    random_state: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> AuditResult:
    """Audit a mechanism on the worst of many neighbours: a few runs for each, more for the worst quarter, …

    `neighbours` is a function that makes a pair (D, D2) from a random generator, or a list of such functions and of
    pairs; `nearby` has those on which mechanisms of numbers fail. The last audit, of one pair and `runs` fresh runs,
    is a `measure`: the search before it costs no confidence. `progress(done, pairs)` is told how far it is.

    >>> import numpy as np
    >>> from discreet.audit import nearby
    >>> rng = np.random.default_rng(0)
    >>> def mean(rows):                                    # forgets that there may be nobody
    ...     return float(np.clip(rows, 0, 1).mean() + rng.laplace(0, 1)) if len(rows) else 0.0
    >>> result = search(mean, nearby(0, 1), claim=1, runs=2000, tries=40, random_state=0)
    >>> result.holds, len(result.details["D2"])
    (False, 0)
    """
    rng = generator(random_state)
    slack = claimed(claim, delta)[1]
    level(confidence)
    count = whole(runs, "runs", _LEAST)
    contenders = [_Contender(pair, 0.0) for pair in islice(pairs_of(neighbours, rng), whole(tries, "tries", 1))]
    if not contenders:
        raise ValueError("neighbours must not be empty")
    tried, each = len(contenders), _LEAST
    while True:
        contenders = _ranked(mechanism, contenders, (each, count, slack), rng, progress)
        if len(contenders) == 1 or each >= count:
            break
        contenders, each = contenders[: -(-len(contenders) // _KEPT)], min(2 * each, count)
    worst = contenders[0].pair
    result = measure(
        mechanism,
        *worst,
        claim,
        count,
        delta=delta,
        confidence=confidence,
        random_state=int(rng.integers(1 << 62)),
    )
    return replace(
        result,
        details={**result.details, "pairs tried": tried, "D": worst[0], "D2": worst[1]},
        notes=(("worst pair", f"D = {_short(worst[0])}, D2 = {_short(worst[1])}"), *result.notes),
    )


def _ranked(
    mechanism: Any,
    contenders: list[_Contender],
    runs: tuple[int, int, float],
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None,
) -> list[_Contender]:
    """Return the contenders after so many new runs each, the most suspicious first."""
    each, fresh, delta = runs
    found = []
    for done, contender in enumerate(contenders, 1):
        ran = run_both(mechanism, contender.pair, each, rng)
        promises = [one.promise for one in suspicions(read_both(ran, each), fresh, delta=delta, most=1)]
        # Where nothing works there is nothing to audit, unless errors themselves tell the data sets apart.
        least = 0.0 if all_failed(ran) else -np.inf
        found.append(_Contender(contender.pair, max((one for one in promises if one > least), default=-np.inf)))
        if progress is not None:
            progress(done, len(contenders))
    return sorted(found, key=lambda contender: -contender.promise)


def _short(data: Any) -> str:
    """Return the beginning and the end of a data set's text: where one person more stands, it is mostly at an end."""
    text = " ".join(repr(data).split())
    half = _SHOWN // 2
    return text if len(text) <= _SHOWN else f"{text[:half]} … {text[-half:]}"
