"""Neighbouring data sets: edge cases, the search for the worst, and the largest change of a statistic between them."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any

import numpy as np

from discreet.audit.arguments import parse_claim, parse_confidence, random_generator
from discreet.audit.black_box import Claim, measure
from discreet.audit.event_selection import candidate_events
from discreet.audit.output_encoding import encode_runs
from discreet.audit.result import AuditResult
from discreet.audit.runs import all_failed, run_on_both
from discreet.kernel.numbers import Number, as_integer

DatasetPair = tuple[Any, Any]
PairGenerator = Callable[[np.random.Generator], DatasetPair]
NeighbourSource = PairGenerator | Iterable[DatasetPair | PairGenerator]

_HUGE = 1e300
_BAD_NEIGHBOURS = "neighbours must be a list of pairs (D, D2) or of functions that return them, not {}"


def generate_pairs(neighbours: Any, rng: np.random.Generator) -> Iterator[DatasetPair]:
    """Yield the given pairs once each, then pairs from the functions in turn, without end."""
    if not callable(neighbours) and (not isinstance(neighbours, Iterable) or isinstance(neighbours, str)):
        raise TypeError(_BAD_NEIGHBOURS.format(type(neighbours).__name__))
    sources: list[Any] = [neighbours] if callable(neighbours) else list(neighbours)
    generators = [source for source in sources if callable(source)]
    for source in sources:
        if not callable(source):
            if not isinstance(source, tuple) or len(source) != 2:
                raise TypeError(_BAD_NEIGHBOURS.format(type(source).__name__))
            yield source
    for generator in cycle(generators):
        pair = generator(rng)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"neighbours: the function must return a pair (D, D2), not {type(pair).__name__}")
        yield pair


def edge_case_neighbours(low: float, high: float, *, rows: int = 10) -> list[DatasetPair | PairGenerator]:
    """Return pairs of arrays of numbers with public bounds, extreme ones first; the second array lacks the last row.

    That row is at a bound, beyond it, zero, huge, infinite or NaN, alone or among others, which are all equal, all at a
    bound, evenly spaced, or random.

    >>> pairs = edge_case_neighbours(0, 10)
    >>> pairs[0]
    (array([0.]), array([], dtype=float64))
    """
    count = as_integer(rows, "rows", 1)
    if not low < high:
        raise ValueError(f"low must be below high, not {low} and {high}")
    middle = (low + high) / 2
    beyond = high + (high - low), low - (high - low)
    persons = [low, high, middle, 0.0, *beyond, _HUGE, -_HUGE, np.inf, -np.inf, np.nan, 5e-324]
    crowds = [[], [middle], [low] * count, [high] * count, [middle] * count, np.linspace(low, high, count).tolist()]
    pairs: list[DatasetPair | PairGenerator] = [
        (np.array([*crowd, person], float), np.array(crowd, float))
        for crowd in crowds
        for person in dict.fromkeys(map(float, persons))
    ]
    return [*pairs, *(_random_pairs(person, (low, high), count) for person in (None, low, high, beyond[0], np.nan))]


def _random_pairs(person: float | None, bounds: tuple[float, float], rows: int) -> PairGenerator:
    def generate(rng: np.random.Generator) -> DatasetPair:
        crowd = rng.uniform(*bounds, rng.integers(0, rows + 1))
        value = rng.uniform(*bounds) if person is None else person
        return np.append(crowd, value), crowd

    return generate


@dataclass(frozen=True)
class EmpiricalSensitivity:
    """The largest observed changes of a statistic in l1 and in l2, and the neighbours that caused them.

    >>> difference = sensitivity(len, [([1, 2], [1]), ([1], [])])
    >>> difference.l1, difference.pairs
    (1.0, 2)
    """

    l1: float
    l2: float
    worst_l1: tuple[Any, Any]
    worst_l2: tuple[Any, Any]
    pairs: int

    def __str__(self) -> str:
        return f"l1 at least {self.l1:.6g}, l2 at least {self.l2:.6g} (tried {self.pairs:,} pairs)"


def sensitivity(
    statistic: Callable[[Any], Any],
    neighbours: NeighbourSource,
    *,
    tries: int = 10_000,
    random_state: int | None = None,
) -> EmpiricalSensitivity:
    """Return the largest change of a statistic, a function from data to numbers, between neighbours.

    `neighbours` are as for `search`: pairs, or functions that make pairs from a random generator, which are called in
    turn, `tries` times. A derived sensitivity bound that is below this result is wrong.

    >>> import numpy as np
    >>> def moments(rows):             # of rows within [-1, 1]; sqrt(2) would be wrong: the count changes as well
    ...     return len(rows), np.sum(rows), np.sum(np.square(rows))
    >>> def one_more(rng):
    ...     rows = rng.choice([-1.0, 0.0, 1.0], 5)
    ...     return rows, rows[1:]
    >>> round(sensitivity(moments, one_more, random_state=0).l2 ** 2, 9)
    3.0
    """
    rng = random_generator(random_state)
    if not callable(statistic):
        raise TypeError(f"statistic must be a function from data to numbers, not {type(statistic).__name__}")
    best: dict[int, tuple[float, tuple[Any, Any]]] = {}
    pair_count = 0
    for pair in islice(generate_pairs(neighbours, rng), as_integer(tries, "tries", 1)):
        pair_count += 1
        here, there = (_as_vector(statistic(data)) for data in pair)
        if here.shape != there.shape:
            raise ValueError(
                f"statistic: the number of values must not depend on the data; it was {here.size} and {there.size}"
            )
        difference = here - there
        for order in (1, 2):
            size = float(np.linalg.norm(difference, order))
            size = math.inf if math.isnan(size) else size  # NaN exceeds every bound
            if order not in best or size > best[order][0]:
                best[order] = size, pair
    if not best:
        raise ValueError("neighbours must not be empty")
    return EmpiricalSensitivity(best[1][0], best[2][0], best[1][1], best[2][1], pair_count)


def _as_vector(value: Any) -> np.ndarray:
    try:
        return np.ravel(np.asarray(value, np.float64))
    except (TypeError, ValueError):
        raise TypeError(f"statistic must return numbers, not {value!r:.40}") from None


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
