"""Audits: lower bounds compared with the true epsilon, and time."""

import math
import statistics
import time

import numpy as np

from discreet import Laplace, audit

ROUNDS = 9
MILLION = 1_000_000


def row(what, seen, bar, *, good):
    print(f"{what:<66} {seen:>24} {bar:>16}  {'yes' if good else 'misses the target'}", flush=True)


def timed(work):
    began = time.process_time()
    result = work()
    return result, time.process_time() - began


def laplace():
    """Audit with a million samples per side: the median bound, and how many audits meet the target."""
    for scale, truth in ((10, 0.1), (1, 1.0), ("1/4", 4.0)):
        noise = Laplace(scale)
        noise.perturb(np.zeros(10, np.int64))
        found = [timed(lambda m=noise, t=truth: audit.measure(m, 0, 1, t, MILLION)) for _ in range(ROUNDS)]
        lows = [result.epsilon_low for result, _ in found]
        middle, reached = statistics.median(lows), sum(low >= 0.95 * truth for low in lows)
        what = f"Laplace of epsilon {truth:g}, 1,000,000 samples, {reached} of {ROUNDS} meet the target"
        row(what, f"{middle:.4f}", f">= {0.95 * truth:.4g}", good=middle >= 0.95 * truth)
        above = sum(not result.holds for result, _ in found)
        row("  audits above the true epsilon (5 % allowed)", f"{above} of {ROUNDS}", "<= 3", good=above <= 3)
        seconds = statistics.median(spent for _, spent in found)
        row("  CPU time", f"{seconds:.2f} s", "about 1 s", good=seconds < 1.5)


def half_noise():
    found = [timed(lambda: audit.measure(Laplace("1/2"), 0, 1, 1, 100_000, confidence=1 - 1e-9)) for _ in range(3)]
    caught = [result.epsilon_low for result, _ in found if not result.holds]
    shown = " ".join(f"{low:.3f}" for low in caught)
    row(
        "half the noise claimed as 1, 100,000 samples, confidence 1 - 1e-9",
        shown,
        "> 1, about 1.9",
        good=len(caught) == 3,
    )


def lowest_bits():
    rng = np.random.default_rng(0)
    naive = audit.Batch(lambda value, runs: value + rng.laplace(0, 1, runs))
    result, seconds = timed(lambda: audit.measure(naive, 0.0, 1.0, 1, 100_000))
    row(
        "Laplace noise in doubles, claimed as 1",
        f"{result.epsilon_low:.2f} in {seconds:.2f} s",
        ">= 5",
        good=result.epsilon_low >= 5,
    )


def single_run():
    rng = np.random.default_rng(0)
    for canaries in (1000, 10_000, MILLION):
        coins = rng.integers(0, 2, canaries).astype(bool)
        told = np.where(rng.random(canaries) < 1 / (1 + math.exp(-1)), coins, ~coins) + 0.1 * rng.random(canaries)
        result, seconds = timed(lambda t=told, c=coins: audit.one_run(t, c, 1e-9, claim=1))
        what = f"one run, epsilon 1, {canaries:,} canaries"
        row(what, f"{result.epsilon_low:.3f} in {seconds:.2f} s", "<= 1, >= .7", good=0.7 <= result.epsilon_low <= 1)


def searching():
    rng = np.random.default_rng(0)

    def silent_when_empty(rows):
        total = int(np.clip(np.nan_to_num(rows), 0, 1).sum() > 0.5)
        return total + int(rng.geometric(0.63) - rng.geometric(0.63)) if len(rows) else 0

    work = lambda: audit.search(silent_when_empty, audit.edge_case_neighbours(0, 1), 1, 2000, random_state=0)  # noqa: E731
    result, seconds = timed(work)
    row(
        "search: wrong on empty data only", f"{result.epsilon_low:.2f} in {seconds:.1f} s", "> 1", good=not result.holds
    )


def main():
    print(f"{'what':<66} {'seen':>24} {'target':>16}  met?")
    laplace()
    half_noise()
    lowest_bits()
    single_run()
    searching()


if __name__ == "__main__":
    main()
