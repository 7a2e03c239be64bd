"""The chapter on the kernel: noise, definition, choice and budget, to use by themselves."""

import math
import time

import numpy as np

import discreet as dc
from discreet.cli.tour.pictures import add, draw_counts, draw_names
from discreet.cli.tour.recorder import Recorder, good, warn, yes_or_no
from discreet.cli.tour.stage import Stage

_ONE = dc.Sensitivity(groups=1, size=1)


def tell(stage: Stage) -> None:
    """Show what the kernel promises."""
    recorder = stage.recorder
    _count(recorder)
    _definition(recorder)
    _names(recorder)
    _auction(recorder)
    _budget(recorder)
    _speed(recorder)


def _count(recorder: Recorder) -> None:
    recorder.title("A private count, with its margin")
    people = np.random.default_rng(1).random(10_000) < 0.0731  # made-up people: ill or not
    truth = int(people.sum())
    rows = []
    for epsilon in ("1", "1/10", "1/100"):
        mechanism = dc.laplace_for(_ONE, epsilon)
        margin = mechanism.margin(0.95)
        answer = mechanism.perturb(truth)
        share = np.mean(np.abs(mechanism.perturb(np.full(2000, truth)) - truth) <= margin)
        inside = yes_or_no(abs(answer - truth) <= margin)
        rows.append((epsilon, f"{truth:,}", f"{answer:,} ± {margin:,}", inside, f"{share:.1%}"))
    recorder.table(("epsilon", "truth", "answer ± 95 %", "inside?", "inside in 2,000"), rows)


def _definition(recorder: Recorder) -> None:
    recorder.title("What that means: no output is much likelier with you than without you")
    laplace = dc.laplace_for(_ONE, "1/10")
    worst = dc.privacy.max_divergence(dc.privacy.output(laplace, 0), dc.privacy.output(laplace, 1))
    without, with_you = dc.privacy.uniform_pmf(0, 5), dc.privacy.uniform_pmf(1, 6)
    uniform = dc.privacy.max_divergence(with_you, without)
    belief = dc.privacy.posterior_bound(0.5, 0.1)
    recorder.say("Laplace noise of scale 10: worst log-ratio ", good(str(worst)), ", exactly epsilon.")
    recorder.say("Uniform noise on 0 … 5: worst log-ratio ", warn(str(uniform)), ": one look can give you away.")
    recorder.say(f"Whoever thought 50 : 50 can believe at most {belief:.3%} after the answer.")
    add(recorder, lambda: draw_counts(recorder.folder), "A count with you and without you, as outsiders see it.")


def names() -> np.ndarray:
    """Return how many people have each of 10,000 made-up names."""
    return np.maximum(1, 40_000 / np.arange(1, 10_001) ** 1.05).astype(np.int64)


def _names(recorder: Recorder) -> None:
    recorder.title("10,000 first names at epsilon 1, all within one margin")
    truth, mechanism = names(), dc.laplace_for(_ONE, 1)
    margin, noisy = mechanism.margin(0.95, count=truth.size), mechanism.perturb(truth)
    within = np.mean([np.abs(mechanism.perturb(truth) - truth).max() <= margin for _ in range(200)])
    ordered = (np.argsort(-noisy)[:10] == np.arange(10)).all()
    recorder.say(
        "Simultaneous 95 % margin: ", good(f"± {margin}"), f" (ln(10000/0.05) = {math.log(10_000 / 0.05):.1f})."
    )
    recorder.say(
        f"Largest of 10,000 errors: {np.abs(noisy - truth).max()}; all inside in {within:.1%} of 200 releases."
    )
    recorder.say("Top ten in the right order: ", yes_or_no(ordered), ".")
    caption = "Ten thousand names released at once, and their errors."
    add(recorder, lambda: draw_names(recorder.folder, truth, noisy, margin), caption)


def _auction(recorder: Recorder) -> None:
    recorder.title("An auction that nobody can rig: bids of 1.00, 1.00, 1.00 and 3.01")
    prices, bids = ("1.00", "3.00", "3.01", "3.02"), (1.00, 1.00, 1.00, 3.01)
    revenues = [f"{float(p) * sum(bid >= float(p) for bid in bids):.2f}" for p in prices]
    mechanism = dc.Exponential(scale="6.04")  # epsilon 1 at a sensitivity of 3.02
    probabilities = mechanism.probabilities(revenues)
    chosen = np.bincount([mechanism.choose(revenues) for _ in range(4000)], minlength=4) / 4000
    shown = zip(prices, revenues, probabilities, chosen, strict=True)
    rows = [(price, revenue, f"{chance:.3f}", f"{seen:.3f}") for price, revenue, chance, seen in shown]
    recorder.table(("price", "revenue", "probability", "seen in 4,000"), rows)
    recorder.say(f"Price of one auction: epsilon {mechanism.loss('3.02').epsilon}.")


def _budget(recorder: Recorder) -> None:
    recorder.title("A budget of 1 and 101 questions at 0.01")
    mechanism = dc.laplace_for(_ONE, 0.01)
    answered, refusal = 0, ""
    with dc.memory_ledger(name="demo", budget=dc.Budget(1)) as ledger:
        for number in range(101):
            event = dc.Event(mechanism=str(mechanism), sensitivity=str(_ONE), question=f"count {number}")
            try:
                receipt = ledger.charge(mechanism.loss(_ONE), event)
            except dc.Refused as refused:
                refusal = str(refused)
            else:
                ledger.settle(receipt, str(mechanism.perturb(731)).encode())
                answered += 1
        spent = ledger.spent().epsilon
    recorder.say("Answered: ", good(str(answered)), f"; spent: {spent}, exactly.")
    recorder.say("Question 101: ", warn(f"{refusal.split('. ')[0]}."))


def _speed(recorder: Recorder) -> None:
    recorder.title("Exact noise, a million at a time")
    rows = []
    zeros = np.zeros(1_000_000, np.int64)
    for mechanism in (dc.Laplace(10), dc.Gaussian(10), dc.Laplace(1000), dc.Gaussian(1000)):
        mechanism.perturb(zeros)
        began = time.perf_counter()
        mechanism.perturb(zeros)
        rows.append((type(mechanism).__name__, str(mechanism.scale), f"{(time.perf_counter() - began) * 1000:.1f} ms"))
    recorder.table(("noise", "scale", "a million"), rows)
