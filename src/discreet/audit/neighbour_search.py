"""Search for the worst neighbouring data sets: many get few runs, the most suspicious get more."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from discreet.audit.arguments import parse_claim, parse_confidence, random_generator
from discreet.audit.black_box import Claim, measure
from discreet.audit.event_selection import candidate_events
from discreet.audit.neighbours import DatasetPair, NeighbourSource, generate_pairs
from discreet.audit.output_encoding import encode_runs
from discreet.audit.result import AuditResult
from discreet.audit.runs import all_failed, run_on_both
from discreet.kernel.numbers import Number, as_integer

_MIN_RUNS = 100  # runs, below which hardly anything can be told
_KEEP_ONE_IN = 4  # one of so many goes on to the next round, which has twice the runs
_MAX_SHOWN = 60  # characters of a data set


@dataclass(frozen=True)
class _CandidatePair:
    pair: DatasetPair
    expected_epsilon: float


def search(  # noqa: PLR0913 - as measure
    mechanism: Any,
    neighbours: NeighbourSource,
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
    pairs; `nearby` has those on which mechanisms of numbers fail. The last audit, of one pair and `settings` fresh runs,
    is a `measure`: the search before it costs no confidence. `progress(done, pairs)` is told how far it is.

    >>> import numpy as np
    >>> from discreet.audit import nearby
    >>> rng = np.random.default_rng(0)
    >>> def mean(rows):                                    # forgets that there may be nobody
    ...     return float(np.clip(rows, 0, 1).mean() + rng.laplace(0, 1)) if len(rows) else 0.0
    >>> result = search(mean, nearby(0, 1), claim=1, settings=2000, tries=40, random_state=0)
    >>> result.holds, len(result.details["D2"])
    (False, 0)
    """
    rng = random_generator(random_state)
    claimed_delta = parse_claim(claim, delta)[1]
    parse_confidence(confidence)
    count = as_integer(runs, "runs", _MIN_RUNS)
    candidates = [
        _CandidatePair(pair, 0.0) for pair in islice(generate_pairs(neighbours, rng), as_integer(tries, "tries", 1))
    ]
    if not candidates:
        raise ValueError("neighbours must not be empty")
    pair_count, pilot_runs = len(candidates), _MIN_RUNS
    while True:
        candidates = _rank_pairs(mechanism, candidates, (pilot_runs, count, claimed_delta), rng, progress)
        if len(candidates) == 1 or pilot_runs >= count:
            break
        candidates, pilot_runs = candidates[: -(-len(candidates) // _KEEP_ONE_IN)], min(2 * pilot_runs, count)
    worst_pair = candidates[0].pair
    result = measure(
        mechanism,
        *worst_pair,
        claim,
        count,
        delta=delta,
        confidence=confidence,
        random_state=int(rng.integers(1 << 62)),
    )
    return replace(
        result,
        details={**result.details, "pairs tried": pair_count, "D": worst_pair[0], "D2": worst_pair[1]},
        notes=(
            ("worst pair", f"D = {_shorten_repr(worst_pair[0])}, D2 = {_shorten_repr(worst_pair[1])}"),
            *result.notes,
        ),
    )


def _rank_pairs(
    mechanism: Any,
    candidates: list[_CandidatePair],
    settings: tuple[int, int, float],
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None,
) -> list[_CandidatePair]:
    """Return the contenders after so many new runs each, the most suspicious first."""
    pilot_runs, fresh_runs, delta = settings
    ranked = []
    for done, candidate in enumerate(candidates, 1):
        outputs = run_on_both(mechanism, candidate.pair, pilot_runs, rng)
        epsilons = [
            one.expected_epsilon
            for one in candidate_events(encode_runs(outputs, pilot_runs), fresh_runs, delta=delta, limit=1)
        ]
        # Where nothing works there is nothing to audit, unless errors themselves tell the data sets apart.
        min_epsilon = 0.0 if all_failed(outputs) else -np.inf
        ranked.append(
            _CandidatePair(candidate.pair, max((one for one in epsilons if one > min_epsilon), default=-np.inf))
        )
        if progress is not None:
            progress(done, len(candidates))
    return sorted(ranked, key=lambda contender: -contender.expected_epsilon)


def _shorten_repr(data: Any) -> str:
    """Return the beginning and the end of a data set's text: where one person more stands, it is mostly at an end."""
    text = " ".join(repr(data).split())
    half = _MAX_SHOWN // 2
    return text if len(text) <= _MAX_SHOWN else f"{text[:half]} … {text[-half:]}"
