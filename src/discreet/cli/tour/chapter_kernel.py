"""The chapter on the kernel: noise, the definition of differential privacy, private selection and budgets."""

import math
import time
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import discreet as dc
from discreet.cli.tour.recorder import Recorder, TourContext, good, warn, yes_or_no
from discreet.plotting import BLUE, ORANGE, RED, add_legend, format_plain_numbers, panels, set_title, style

_COUNT_SENSITIVITY = dc.Sensitivity(groups=1, size=1)


def show_chapter(context: TourContext) -> None:
    """Show the kernel's mechanisms and compare them with their guarantees."""
    recorder = context.recorder
    _show_count(recorder)
    _show_definition(recorder)
    _show_names(recorder)
    _show_auction(recorder)
    _show_budget(recorder)
    _show_speed(recorder)


def _show_count(recorder: Recorder) -> None:
    recorder.add_section("A private count with its margin of error")
    people = np.random.default_rng(1).random(10_000) < 0.0731  # simulated people: ill or not
    truth = int(people.sum())
    rows = []
    for epsilon in ("1", "0.1", "0.01"):
        mechanism = dc.laplace_for(_COUNT_SENSITIVITY, epsilon)
        margin = dc.privacy.margin(mechanism, 0.95)
        answer = mechanism.perturb(truth)
        share = np.mean(np.abs(mechanism.perturb(np.full(2000, truth)) - truth) <= margin)
        is_within = yes_or_no(abs(answer - truth) <= margin)
        rows.append((epsilon, f"{truth:,}", f"{answer:,} ± {margin:,}", is_within, f"{share:.1%}"))
    recorder.add_table(("epsilon", "true value", "answer ± 95 %", "within?", "within (2,000 answers)"), rows)


def _show_definition(recorder: Recorder) -> None:
    recorder.add_section("The definition: no output is much likelier with you than without you")
    epsilon = Fraction(1, 10)
    laplace = dc.laplace_for(_COUNT_SENSITIVITY, epsilon)
    laplace_divergence = dc.privacy.max_divergence(dc.privacy.output(laplace, 0), dc.privacy.output(laplace, 1))
    uniform_divergence = dc.privacy.max_divergence(dc.privacy.uniform_pmf(1, 6), dc.privacy.uniform_pmf(0, 5))
    belief = dc.privacy.posterior_bound(0.5, float(epsilon))
    verdict = (
        good(f"{float(laplace_divergence):g}, exactly epsilon")
        if laplace_divergence == epsilon
        else warn(f"{float(laplace_divergence):g}, not epsilon {float(epsilon):g}")
    )
    recorder.add_paragraph(
        "The log-ratio of an output's probabilities with you and without you must be at most epsilon. Laplace noise of "
        f"scale {laplace.scale}: the largest log-ratio is ",
        verdict,
        ".",
    )
    verdict = warn("infinite") if math.isinf(uniform_divergence) else good(str(uniform_divergence))
    ends = ": some outputs are possible only with you." if math.isinf(uniform_divergence) else "."
    recorder.add_paragraph("Uniform noise on 0 … 5: the largest log-ratio is ", verdict, ends)
    recorder.add_paragraph(
        f"At epsilon {float(epsilon):g}, an answer can raise anyone's belief in something about you from 50 % to at "
        f"most {belief:.3%}."
    )
    recorder.draw_picture(counts_figure, "neighbours.svg", "The distribution of a noisy count with and without you.")


def counts_figure() -> Any:
    """Return the figure of both distributions of a count."""
    figure, (left, right) = panels(2)
    epsilon, truth = 0.5, 731
    mechanism = dc.laplace_for(dc.Sensitivity(groups=1, size=1), epsilon)
    outputs = np.arange(truth - 9, truth + 11)
    with style():
        for count, colour, label in ((truth, BLUE, "without you"), (truth + 1, ORANGE, "with you")):
            left.step(
                outputs,
                [dc.privacy.pmf(mechanism, int(k) - count) for k in outputs],
                where="mid",
                color=colour,
                label=label,
            )
            probabilities = dc.privacy.uniform_pmf(count - 5, count + 5)
            shares = [float(probabilities.get(int(k), 0)) for k in outputs]
            right.step(outputs, shares, where="mid", color=colour, label=label)
        left.set_title(f"Laplace noise: ratio at most e^{epsilon} = {math.exp(epsilon):.2f}")
        right.set_title("Uniform noise: ratio infinite at the ends")
        for edge in (truth - 5, truth + 6):
            only = "possible in one database only" if edge > truth else None
            right.axvspan(edge - 0.5, edge + 0.5, color=RED, alpha=0.25, lw=0, label=only)
        for axes in (left, right):
            axes.set_xlabel("noisy count")
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.set_ylim(bottom=0)
        left.set_ylabel("probability")
        add_legend(figure, [right])
        set_title(figure, "Laplace noise hides whether you are in the data; uniform noise can reveal it")
    return figure


def name_counts() -> np.ndarray:
    """Return the number of people with each of 10,000 simulated names."""
    return np.maximum(1, 40_000 / np.arange(1, 10_001) ** 1.05).astype(np.int64)


def _show_names(recorder: Recorder) -> None:
    truth, mechanism = name_counts(), dc.laplace_for(_COUNT_SENSITIVITY, 1)
    recorder.add_section(f"{truth.size:,} first names at epsilon 1, with one margin for all of them")
    margin, noisy = dc.privacy.margin(mechanism, 0.95, count=truth.size), mechanism.perturb(truth)
    within = np.mean([np.abs(mechanism.perturb(truth) - truth).max() <= margin for _ in range(200)])
    largest = int(np.abs(noisy - truth).max())
    verdict = good("all are within the margin") if largest <= margin else warn("not all are within the margin")
    ordered = (np.argsort(-noisy)[:10] == np.arange(10)).all()
    recorder.add_paragraph(
        f"Simultaneous 95 % margin: ± {margin}. Largest error in this release: {largest}; ",
        verdict,
        f". In {within:.1%} of 200 releases, all errors are within the margin.",
    )
    recorder.add_paragraph("The ten most frequent names are in the correct order: ", yes_or_no(ordered), ".")
    caption = f"{truth.size:,} counts released together, and their errors."
    recorder.draw_picture(lambda: names_figure(truth, noisy, margin), "names.svg", caption)


def names_figure(truth: np.ndarray, noisy: np.ndarray, margin: int) -> Any:
    """Return the figure of a private histogram."""
    figure, (left, right) = panels(2)
    rank, errors = np.arange(1, truth.size + 1), noisy - truth
    ranks_shown = np.unique(np.geomspace(1, truth.size, 60).astype(int)) - 1
    positive = ranks_shown[noisy[ranks_shown] > 0]  # the axis is logarithmic; a noisy count may be negative
    with style():
        left.plot(rank[ranks_shown], truth[ranks_shown], color=BLUE, lw=1, label="true count")
        left.plot(rank[positive], noisy[positive], ".", color=ORANGE, label="released at epsilon 1")
        left.set(xscale="log", yscale="log", xlabel="rank of the name", ylabel="people", ylim=(0.5, None))
        right.axhspan(-margin, margin, color=ORANGE, alpha=0.25, lw=0, label=f"± {margin}: simultaneous 95 % margin")
        right.plot(rank, errors, ".", ms=1.5, color=BLUE, rasterized=True, label="error of a name")
        right.set(xlabel="rank of the name", ylabel="released - true", ylim=(-1.6 * margin, 1.6 * margin))
        format_plain_numbers(left.xaxis, left.yaxis, right.xaxis)
        add_legend(figure, [left, right])
        within_margin = int((np.abs(errors) <= margin).sum())
        set_title(figure, f"{within_margin:,} of {truth.size:,} released counts are within ± {margin} of the truth")
    return figure


def _show_auction(recorder: Recorder) -> None:
    recorder.add_section("The exponential mechanism: an auction with private bids")
    prices, bids = ("1.00", "3.00", "3.01", "3.02"), ("1.00", "1.00", "1.00", "3.01")
    revenues = _revenues(prices, bids)
    mechanism = dc.Exponential(scale="6.04")  # epsilon 1 at a sensitivity of 3.02
    probabilities = dc.privacy.probabilities(mechanism, revenues)
    frequencies = np.bincount([mechanism.choose(revenues) for _ in range(4000)], minlength=4) / 4000
    columns = zip(prices, revenues, probabilities, frequencies, strict=True)
    rows = [
        (price, revenue, f"{probability:.3f}", f"{frequency:.3f}") for price, revenue, probability, frequency in columns
    ]
    recorder.add_paragraph(
        f"Bids: {', '.join(bids)}. Which price earns the most? The choice is random, and higher revenues are likelier:"
    )
    recorder.add_table(("price", "revenue", "probability", "frequency in 4,000"), rows)
    epsilon = float(mechanism.loss("3.02").epsilon or 0)
    other = dc.privacy.probabilities(mechanism, _revenues(prices, (*bids[:3], "1.00")))
    factor = max(max(p / q, q / p) for p, q in zip(probabilities, other, strict=True))
    recorder.add_paragraph(
        f"Cost: epsilon {epsilon:g}. If the highest bidder had bid 1.00, no probability would differ by more than a "
        f"factor of {factor:.2f}; epsilon allows {math.exp(epsilon):.2f}."
    )


def _revenues(prices: Sequence[str], bids: Sequence[str]) -> list[str]:
    return [f"{float(price) * sum(float(bid) >= float(price) for bid in bids):.2f}" for price in prices]


def _show_budget(recorder: Recorder) -> None:
    recorder.add_section("A budget of epsilon 1 and 101 queries at 0.01")
    mechanism = dc.laplace_for(_COUNT_SENSITIVITY, 0.01)
    answered, refusal = 0, ""
    with dc.memory_ledger(name="demo", budget=dc.Budget(1)) as ledger:
        for number in range(101):
            event = dc.Event(mechanism=str(mechanism), sensitivity=str(_COUNT_SENSITIVITY), question=f"count {number}")
            try:
                receipt = ledger.charge(mechanism.loss(_COUNT_SENSITIVITY), event)
            except dc.Refused as refused:
                refusal = str(refused)
            else:
                ledger.settle(receipt, str(mechanism.perturb(731)).encode())
                answered += 1
        spent = ledger.spent().epsilon
    recorder.add_paragraph("Answered: ", good(str(answered)), f"; spent: epsilon {spent}, without rounding error.")
    recorder.add_paragraph(f"Query {answered + 1}: ", warn(f"{refusal.split('. ')[0].rstrip('.')}."))


def _show_speed(recorder: Recorder) -> None:
    recorder.add_section("Exact noise: time for a million samples")
    rows = []
    zeros = np.zeros(1_000_000, np.int64)
    for mechanism in (dc.Laplace(10), dc.Gaussian(10), dc.Laplace(1000), dc.Gaussian(1000)):
        mechanism.perturb(zeros)
        start = time.perf_counter()
        mechanism.perturb(zeros)
        rows.append((type(mechanism).__name__, str(mechanism.scale), f"{(time.perf_counter() - start) * 1000:.1f} ms"))
    recorder.add_table(("noise", "scale", "time"), rows)
