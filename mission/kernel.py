"""The rows that the kernel and the definitions answer."""

import math
from fractions import Fraction

import numpy as np

import discreet as dc
from discreet import privacy
from mission.rows import row

ONE = dc.Sensitivity(groups=1, size=1)


@row("A9", "The definition as code; uniform noise on 0 … 5 is not private")
def a9():
    without, with_you = privacy.uniform_pmf(0, 5), privacy.uniform_pmf(1, 6)
    point = privacy.likelihood_ratio(with_you, without, {3})
    sets = privacy.likelihood_ratio(with_you, without, {4, 5, 6})
    worst = privacy.max_divergence(with_you, without)
    return f"ratio at 3: {point}; on {{4, 5, 6}}: {sets}; max divergence {worst}"


@row("A10", "A count with Laplace noise of scale 1/epsilon")
def a10():
    noise = dc.laplace_for(ONE, "1/10")
    worst = privacy.max_divergence(privacy.output(noise, 731), privacy.output(noise, 730))
    return f"epsilon 1/10, scale {noise.scale}: worst log-ratio {worst}"


@row("A11", "Removal and replacement neighbours told apart")
def a11():
    loss = dc.laplace_for(ONE, "1/10").loss(ONE)
    return f"removal {loss.epsilon}, replacement {loss.replacing().epsilon}"


@row("A12", "Groups of k")
def a12():
    loss = dc.laplace_for(ONE, "1/10").loss(ONE)
    rho = dc.Gaussian(10).loss(ONE)
    return f"k = 7: epsilon {loss.epsilon} → {loss.for_group(7).epsilon}; rho {rho.rho} → {rho.for_group(7).rho}"


@row("A13", "What an adversary's belief can become")
def a13():
    return f"prior 0.5, epsilon 0.1: at most {privacy.posterior_bound(0.5, 0.1):.5f}"


@row("B7", "Sensitivity → scale")
def b7():
    return f"count: sensitivity {privacy.sensitivity.count()}; Laplace of scale {dc.laplace_for(ONE, 1).scale}/epsilon"


@row("C2", "Coin-flip randomized response")
def c2():
    coins = dc.RandomizedResponse("1/2")
    p = Fraction(1, 5)
    expected = p * coins.pmf(1, 1) + (1 - p) * coins.pmf(1, 0)
    asked = np.arange(1_000_000) % 5 == 0
    estimate, margin = coins.estimate(coins.perturb(asked))
    return (
        f"epsilon {float(coins.loss().epsilon):.6f} (ln 3 = {math.log(3):.6f}); p = 1/5: expected yes {expected} "
        f"= 1/4 + p/2; estimated from a million {estimate:.4f} ± {margin:.4f}"
    )


@row("C3", "Max divergence, privacy loss, (epsilon, delta) by the hockey-stick divergence")
def c3():
    here, there = (privacy.output(dc.Gaussian(5), value) for value in (0, 1))
    delta = privacy.hockey_stick(here, there, "1/2")
    laplace = (privacy.output(dc.Laplace(5), value) for value in (0, 1))
    return (
        f"discrete Gaussian, sigma 5: max divergence {privacy.max_divergence(here, there)}, delta at epsilon 1/2 "
        f"{delta:.6g}; Laplace, scale 5: max divergence {privacy.max_divergence(*laplace)}"
    )


@row("C5", "Post-processing, composition, group privacy")
def c5():
    here, there = ({k: dc.Laplace(3).pmf(k - value) for k in range(-60, 61)} for value in (0, 1))

    def halved(pmf):
        merged = {}
        for k, p in pmf.items():
            merged[k // 2] = merged.get(k // 2, 0) + p
        return merged

    before, after = privacy.max_divergence(here, there), privacy.max_divergence(halved(here), halved(there))
    both = dc.Loss("1/3", delta="1e-9") + dc.Loss("1/7", delta="2e-9")
    return (
        f"rounding to even numbers: {before:.6f} → {after:.6f}; 1/3 + 1/7 = {both.epsilon}, delta {both.delta}; "
        f"group of 3: {both.for_group(3).epsilon}"
    )


@row("C6", "Histogram of 10,000 names at (1, 0) with a simultaneous bound, and the top ten")
def c6():
    truth = np.maximum(1, 40_000 / np.arange(1, 10_001) ** 1.05).astype(np.int64)
    noise = dc.laplace_for(ONE, 1)
    margin = noise.margin(0.95, count=truth.size)
    releases = [noise.perturb(truth) for _ in range(1000)]
    inside = np.mean([np.abs(noisy - truth).max() <= margin for noisy in releases])
    top = np.mean([(np.argsort(-noisy)[:10] == np.arange(10)).all() for noisy in releases])
    return (
        f"± {margin} (ln(10000/0.05) = {math.log(10_000 / 0.05):.2f}); all inside in {inside:.1%} of 1,000 releases; "
        f"top ten right in {top:.1%} (generated names)"
    )


@row("C7", "Gaussian mechanism: less noise than the classic formula, which is not private at epsilon 10")
def c7():
    ours = float(dc.gaussian_for(dc.Sensitivity(groups=1, size=1000), epsilon=1, delta=1e-6).scale)
    classic = privacy.classic_gaussian_sigma(1000, 1, 1e-6)
    analytic = privacy.analytic_gaussian_sigma(1000, 1, 1e-6)
    broken = privacy.gaussian_delta(privacy.classic_gaussian_sigma(1, 10, 1e-6), 10)
    return (
        f"epsilon 1, delta 1e-6: {ours / analytic - 1:.1e} above the analytic sigma, {1 - ours / classic:.1%} below "
        f"the classic; the classic at epsilon 10 has delta {broken:.2g} instead of 1e-6"
    )


@row("C8", "Exponential mechanism: the auction")
def c8():
    auction = dc.Exponential(scale="6.04")
    shown = " / ".join(f"{p:.3f}"[1:] for p in auction.probabilities(["4.00", "3.00", "3.01", "0"]))
    shares = []
    for copies in (1, 10, 100):
        revenues = [str(copies * Fraction(r)) for r in ("4.00", "3.00", "3.01", "0")]
        expected = sum(p * float(Fraction(r)) for p, r in zip(auction.probabilities(revenues), revenues, strict=True))
        shares.append(f"{expected / (4 * copies):.1%}")
    cost = auction.loss("3.02").epsilon
    return f"epsilon {cost}: {shown}; revenue with 4, 40, 400 bidders: {', '.join(shares)} of the best"


@row("C9", "Choosing among k classifiers privately")
def c9():
    n, right = 1000, [870, 880, 850, 890]
    choice = dc.Exponential(scale=2 / Fraction(1, 10))
    ratios = np.log(choice.probabilities(right)) - 0.1 * n * np.array(right) / n / 2
    spread = float(ratios.max() - ratios.min())
    shown = " / ".join(f"{p:.3f}" for p in choice.probabilities(right))
    return f"epsilon 1/10, n = 1,000: {shown}; log Pr(i) - epsilon·n·accuracy/2 is constant to {spread:.0e}"


@row("D6", "Global sensitivities, exact by enumeration")
def d6():
    s = privacy.sensitivity
    checked = []
    for n in (3, 4, 5):
        grid = [Fraction(k, 2) for k in range(3)]
        checked += [
            s.enumerated(lambda x: sum(x) / len(x), grid, n) == s.mean(0, 1, n),
            s.enumerated(_median, grid, n) == s.median(0, 1, n),
            s.enumerated(_variance, grid, n) == s.variance(0, 1, n),
        ]
    return (
        f"bits 1; reals {s.sum(-math.inf, math.inf)}; n = 5: mean {s.mean(0, 1, 5)}, median {s.median(0, 1, 5)}, "
        f"variance {s.variance(0, 1, 5)}, sample variance {s.variance(0, 1, 5, ddof=1)}; n = 4: median "
        f"{s.median(0, 1, 4)}; {sum(checked)} of {len(checked)} equal the enumeration"
    )


@row("E5", "The threshold game: mean of 100 zeros against one 1")
def e5():
    parts = []
    for width in ("1/300", "3/100"):
        game = privacy.threshold_game(width)
        parts.append(
            f"width {width}: {game.zeros:.3f} / {game.one:.3f}, log-ratio {game.log_ratio:.2f}, epsilon {game.epsilon}"
        )
    return "; ".join(parts)


def _median(x):
    ordered, middle = sorted(x), len(x) // 2
    return ordered[middle] if len(x) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _variance(x):
    mean = sum(x) / Fraction(len(x))
    return sum((value - mean) ** 2 for value in x) / len(x)
