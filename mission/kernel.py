"""The rows on the kernel and the definitions."""

import itertools
import math
from fractions import Fraction

import numpy as np

import discreet as dc
from discreet import attacks, learn, privacy
from mission.rows import listed, rate, rate_of, record, row

ONE = dc.Sensitivity(groups=1, size=1)
RELEASES = 1000
CHOICES = 400
EPSILONS, DELTAS = (0.01, 0.1, 0.5, 1), (1e-5, 1e-6, 1e-9)


@row("A9", "The definition as code; uniform noise on 0 … 5 is not private")
def a9():
    without, with_you = privacy.uniform_pmf(0, 5), privacy.uniform_pmf(1, 6)
    return record(
        "ratio at 3: {point}; on {{4, 5, 6}}: {sets}; max divergence {worst}",
        point=privacy.likelihood_ratio(with_you, without, {3}),
        sets=privacy.likelihood_ratio(with_you, without, {4, 5, 6}),
        worst=privacy.max_divergence(with_you, without),
    )


@row("A10", "A count with Laplace noise of scale 1/epsilon")
def a10():
    noise = dc.laplace_for(ONE, "1/10")
    worst = privacy.max_divergence(privacy.output(noise, 731), privacy.output(noise, 730))
    return record("epsilon 1/10, scale {scale}: worst log-ratio {worst}", scale=noise.scale, worst=worst)


@row("A11", "Add/remove and substitution neighbours")
def a11():
    loss = dc.laplace_for(ONE, "1/10").loss(ONE)
    return record(
        "add/remove {removal}, substitution {replacement}",
        removal=loss.epsilon,
        replacement=dc.privacy.for_substitution(loss).epsilon,
    )


@row("A12", "Group privacy")
def a12():
    loss = dc.laplace_for(ONE, "1/10").loss(ONE)
    rho = dc.Gaussian(10).loss(ONE)
    return record(
        "k = 7: epsilon {one} → {group}; rho {one_rho} → {group_rho}",
        one=loss.epsilon,
        group=dc.privacy.for_group(loss, 7).epsilon,
        one_rho=rho.rho,
        group_rho=dc.privacy.for_group(rho, 7).rho,
    )


@row("A13", "Bound on an attacker's posterior belief")
def a13():
    return record("prior 0.5, epsilon 0.1: at most {posterior:.5f}", posterior=privacy.posterior_bound(0.5, 0.1))


@row("B7", "Sensitivity → scale: Laplace(sensitivity / epsilon)")
def b7():
    sensitivity = privacy.sensitivity.count()
    scales = {epsilon: dc.laplace_for(ONE, epsilon).scale for epsilon in ("1/10", "1", "2")}
    return record(
        "count: sensitivity {sensitivity}; scale {shown}",
        sensitivity=sensitivity,
        scales=scales,
        shown=", ".join(f"{scale} at epsilon {epsilon}" for epsilon, scale in scales.items()),
    )


@row("C2", "Coin-flip randomized response")
def c2():
    coins = dc.RandomizedResponse("1/2")
    p = Fraction(1, 5)
    asked = np.arange(1_000_000) % 5 == 0
    estimate, margin = coins.estimate(coins.perturb(asked))
    return record(
        "epsilon {epsilon:.6f} (ln 3 = {ln3:.6f}); p = 1/5: expected yes {expected} (1/4 + p/2 = {formula}); estimated "
        "from a million answers: {estimate:.4f} ± {margin:.4f} at 95 %",
        epsilon=float(coins.loss().epsilon),
        ln3=math.log(3),
        p=p,
        expected=p * coins.pmf(1, 1) + (1 - p) * coins.pmf(1, 0),
        formula=Fraction(1, 4) + p / 2,
        estimate=estimate,
        margin=margin,
    )


@row("C3", "Max divergence, privacy loss, (epsilon, delta) by the hockey-stick divergence")
def c3():
    here, there = (privacy.output(dc.Gaussian(5), value) for value in (0, 1))
    laplace = [privacy.output(dc.Laplace(5), value) for value in (0, 1)]
    coins = dc.RandomizedResponse("1/2")
    losses = privacy.privacy_loss(*({said: coins.pmf(said, true) for said in (0, 1)} for true in (1, 0)))
    return record(
        "discrete Gaussian, sigma 5: max divergence {worst}, delta at epsilon 1/2 {delta:.6g}; Laplace, scale 5: max "
        "divergence {laplace}; two coins: privacy loss {shown}",
        worst=privacy.max_divergence(here, there),
        delta=privacy.hockey_stick(here, there, "1/2"),
        laplace=privacy.max_divergence(*laplace),
        losses=losses,
        shown=", ".join(f"{loss:.4f} with probability {chance}" for loss, chance in sorted(losses.items())),
    )


@row("C5", "Post-processing, composition, group privacy")
def c5():
    here, there = ({k: dc.privacy.pmf(dc.Laplace(3), k - value) for k in range(-60, 61)} for value in (0, 1))

    def halved(pmf):
        merged = {}
        for k, p in pmf.items():
            merged[k // 2] = merged.get(k // 2, 0) + p
        return merged

    both = dc.Loss("1/3", delta="1e-9") + dc.Loss("1/7", delta="2e-9")
    return record(
        "rounding to even numbers: {before:.6f} → {after:.6f}; 1/3 + 1/7 = {both.epsilon}, delta {delta:g}; group of "
        "3: {group}",
        before=privacy.max_divergence(here, there),
        after=privacy.max_divergence(halved(here), halved(there)),
        both=both,
        delta=float(both.delta),
        group=dc.privacy.for_group(both, 3).epsilon,
    )


@row("C6", "Histogram of 10,000 names at (1, 0) with a simultaneous bound, and the top ten")
def c6():
    truth = np.maximum(1, 40_000 / np.arange(1, 10_001) ** 1.05).astype(np.int64)
    noise = dc.laplace_for(ONE, 1)
    margin = dc.privacy.margin(noise, 0.95, count=truth.size)
    inside = top = 0
    for _ in range(RELEASES):
        noisy = noise.perturb(truth)
        inside += np.abs(noisy - truth).max() <= margin
        top += (np.argsort(-noisy)[:10] == np.arange(10)).all()
    return record(
        "± {margin} (ln(10000/0.05) = {bound:.2f}); all names within the margin in {inside} of {releases:,} releases; "
        "correct top ten in {top} (simulated names)",
        margin=margin,
        bound=math.log(10_000 / 0.05),
        releases=RELEASES,
        inside=rate(inside, RELEASES),
        top=rate(top, RELEASES),
    )


@row("C7", "Gaussian mechanism: noise beside the analytic and the classic formula, and the classic one at epsilon 10")
def c7():
    off, saved = [], []
    for epsilon, delta in itertools.product(EPSILONS, DELTAS):
        ours = float(dc.gaussian_for(dc.Sensitivity(groups=1, size=1000), epsilon=epsilon, delta=delta).scale)
        off.append(ours / privacy.analytic_gaussian_sigma(1000, epsilon, delta) - 1)
        saved.append(1 - ours / privacy.classic_gaussian_sigma(1000, epsilon, delta))
    broken = privacy.gaussian_delta(privacy.classic_gaussian_sigma(1, 10, 1e-6), 10)
    return record(
        "over epsilon {epsilons} and delta {deltas} (sensitivity 1000, integers): at most {off:.1e} above the analytic "
        "sigma, {least:.1%} to {most:.1%} below the classic; the classic sigma for epsilon 10 and delta 1e-6 has delta "
        "{broken:.2g}: {verdict}",
        epsilons=", ".join(f"{each:g}" for each in EPSILONS),
        deltas=", ".join(f"{each:g}" for each in DELTAS),
        off=max(off),
        lowest=min(off),
        least=min(saved),
        most=max(saved),
        broken=broken,
        verdict="not private as stated" if broken > 1e-6 else "private as stated",
    )


@row("C8", "Exponential mechanism: the auction")
def c8():
    auction = dc.Exponential(scale="6.04")
    shares = []
    for copies in (1, 10, 100):
        revenues = [str(copies * Fraction(r)) for r in ("4.00", "3.00", "3.01", "0")]
        expected = sum(
            p * float(Fraction(r)) for p, r in zip(dc.privacy.probabilities(auction, revenues), revenues, strict=True)
        )
        shares.append(expected / (4 * copies))
    prices = dc.privacy.probabilities(auction, ["4.00", "3.00", "3.01", "0"])
    return record(
        "epsilon {epsilon}: prices 1.00 / 3.00 / 3.01 / 3.02 chosen with probabilities {shown}; revenue with 4, 40, "
        "400 bidders: {revenue} of the best",
        epsilon=auction.loss("3.02").epsilon,
        prices=prices,
        shares=shares,
        shown=listed(prices, ".3f"),
        revenue=", ".join(f"{share:.1%}" for share in shares),
    )


@row("C9", "Choosing among k classifiers privately")
def c9():
    n, right = 1000, [870, 880, 850, 890]
    chances = learn.probabilities(right, epsilon="1/10")
    ratios = np.log(chances) - 0.1 * n * np.array(right) / n / 2
    drawn = np.bincount([learn.select("abcd", right, epsilon="1/10").index for _ in range(CHOICES)], minlength=4)
    return record(
        "epsilon 1/10, n = 1,000: {shown}; log Pr(i) - epsilon·n·accuracy/2 varies by {spread:.0e}; chosen in {chosen} "
        "of {choices} choices",
        chances=chances,
        spread=float(ratios.max() - ratios.min()),
        rates=[rate(count, CHOICES) for count in drawn],
        choices=CHOICES,
        shown=listed(chances, ".3f"),
        chosen=", ".join(f"{rate(count, CHOICES)}" for count in drawn),
    )


@row("C11", "Why delta must be far below 1/n: publishing one random record is (0, 1/n)-private")
def c11():
    n = 1000
    records = np.arange(n)
    here = dict.fromkeys(records.tolist(), Fraction(1, n))
    there = {**dict.fromkeys(records[:-1].tolist(), Fraction(1, n)), n: Fraction(1, n)}  # the last record is replaced
    published = np.random.default_rng(0).choice(records, RELEASES)
    return record(
        "{n:,} records, one of them replaced: delta at epsilon 0 is {delta:.3g} (1/n = {share:.3g}); a real record is "
        "published in {exposed:,} of {releases:,} runs",
        n=n,
        delta=float(privacy.hockey_stick(here, there, 0)),
        share=1 / n,
        exposed=int(np.isin(published, records).sum()),
        releases=RELEASES,
    )


@row("D6", "Global sensitivities, exact by enumeration")
def d6():
    s = privacy.sensitivity
    checked = []
    for n in (3, 4, 5):
        grid = [Fraction(k, 2) for k in range(3)]
        checked += [
            s.brute_force(sum, [0, 1], n) == s.sum(0, 1, neighbours="replacement"),
            s.brute_force(lambda x: sum(x) / len(x), grid, n) == s.mean(0, 1, n),
            s.brute_force(_median, grid, n) == s.median(0, 1, n),
            s.brute_force(_variance, grid, n) == s.variance(0, 1, n),
        ]
    return record(
        "bits {bits}; reals {reals}; n = 5: mean {mean}, median {median}, variance {variance}, sample variance "
        "{sample}; n = 4: median {even}; {equal} of {checked} equal the enumeration for n = 3, 4, 5",
        bits=s.sum(0, 1, neighbours="replacement"),
        reals=s.sum(-math.inf, math.inf, neighbours="replacement"),
        mean=s.mean(0, 1, 5),
        median=s.median(0, 1, 5),
        variance=s.variance(0, 1, 5),
        sample=s.variance(0, 1, 5, ddof=1),
        even=s.median(0, 1, 4),
        equal=sum(checked),
        checked=len(checked),
    )


@row("E5", "The threshold game: mean of 100 zeros against one 1")
def e5():
    exact = attacks.threshold_game(random_state=0)
    games = {width: privacy.threshold_game(width) for width in ("1/300", "3/100")}
    shown = (
        f"width {width}: {game.false_positive_rate:.3f} / {game.true_positive_rate:.3f}, log-ratio "
        f"{game.log_ratio:.2f}, epsilon {game.epsilon}"
        for width, game in games.items()
    )
    return record(
        "no noise, T = 0.005: correct in {exact}; {shown}",
        exact=rate_of(exact),
        games=games,
        shown="; ".join(shown),
    )


def _median(x):
    ordered, middle = sorted(x), len(x) // 2
    return ordered[middle] if len(x) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _variance(x):
    mean = sum(x) / Fraction(len(x))
    return sum((value - mean) ** 2 for value in x) / len(x)
