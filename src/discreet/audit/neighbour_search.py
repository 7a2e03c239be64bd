"""Search for the worst neighbouring data sets: few runs on many pairs, more runs on the most suspicious."""

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

_MIN_RUNS = 100  # fewer runs detect hardly anything
_KEEP_ONE_IN = 4  # of the pairs go on to the next round, which has twice as many runs
_MAX_SHOWN = 60  # characters of a data set in the result


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
    """Audit a mechanism on the worst of many pairs of neighbours: a few runs for each, more for the worst quarter, …

    `neighbours` is a function that makes a pair (D, D2) from a random generator, or a list of such functions and of
    pairs; `edge_case_neighbours` returns pairs on which mechanisms for numbers often fail. The final audit, of one pair
    with `runs` fresh runs, is a `measure`: the search before it costs no confidence. `progress(done, pairs)` is called
    after each pair.

    >>> import numpy as np
    >>> from discreet.audit import edge_case_neighbours
    >>> rng = np.random.default_rng(0)
    >>> def mean(rows):                                    # no noise for empty data
    ...     return float(np.clip(rows, 0, 1).mean() + rng.laplace(0, 1)) if len(rows) else 0.0
    >>> result = search(mean, edge_case_neighbours(0, 1), claim=1, runs=2000, tries=40, random_state=0)
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
    """Return the candidate pairs after new pilot runs on each, the most suspicious first."""
    pilot_runs, fresh_runs, delta = settings
    ranked = []
    for done, candidate in enumerate(candidates, 1):
        outputs = run_on_both(mechanism, candidate.pair, pilot_runs, rng)
        epsilons = [
            event.expected_epsilon
            for event in candidate_events(encode_runs(outputs, pilot_runs), fresh_runs, delta=delta, limit=1)
        ]
        # Where every run fails there is nothing to audit, unless the errors themselves distinguish the data sets.
        min_epsilon = 0.0 if all_failed(outputs) else -np.inf
        ranked.append(
            _CandidatePair(
                candidate.pair, max((epsilon for epsilon in epsilons if epsilon > min_epsilon), default=-np.inf)
            )
        )
        if progress is not None:
            progress(done, len(candidates))
    return sorted(ranked, key=lambda candidate: -candidate.expected_epsilon)


def _shorten_repr(data: Any) -> str:
    """Return the beginning and the end of a data set's repr, where the additional row usually is."""
    text = " ".join(repr(data).split())
    half = _MAX_SHOWN // 2
    return text if len(text) <= _MAX_SHOWN else f"{text[:half]} … {text[-half:]}"
