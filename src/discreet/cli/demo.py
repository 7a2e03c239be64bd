"""The tour: what the kernel promises, each thing shown by running it. Every number is computed as you watch."""

import math
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import discreet as dc
from discreet.cli.crash import survive
from discreet.cli.pictures import draw_counts, draw_names

_console = Console(highlight=False)
_ONE = dc.Sensitivity(groups=1, size=1)


def tour(folder: Path) -> None:
    """Run all the stops and save the pictures."""
    began = time.perf_counter()
    _count()
    _definition()
    names = _names()
    _auction()
    _budget()
    _crash()
    _speed()
    _pictures(folder, *names)
    _say(f"\n[dim]{time.perf_counter() - began:.1f} seconds.[/dim]")


def _say(text: str) -> None:
    _console.print(text)


def _title(number: int, text: str) -> None:
    _say(f"\n[bold cyan]{number}. {text}[/bold cyan]")


def _count() -> None:
    _title(1, "A private count, with its margin")
    people = np.random.default_rng(1).random(10_000) < 0.0731  # made-up people: ill or not
    truth = int(people.sum())
    table = Table("epsilon", "truth", "answer", "± 95 %", "inside?", "inside in 2,000 repeats")
    for epsilon in ("1", "1/10", "1/100"):
        mechanism = dc.laplace_for(_ONE, epsilon)
        margin = mechanism.margin(0.95)
        answer = mechanism.perturb(truth)
        repeats = mechanism.perturb(np.full(2000, truth))
        share = np.mean(np.abs(repeats - truth) <= margin)
        inside = "[green]yes[/green]" if abs(answer - truth) <= margin else "[yellow]no[/yellow]"
        table.add_row(epsilon, f"{truth:,}", f"{answer:,}", f"{margin:,}", inside, f"{share:.1%}")
    _console.print(table)


def _definition() -> None:
    _title(2, "What that means: no output is much likelier with you than without you")
    laplace = dc.laplace_for(_ONE, "1/10")
    worst = dc.privacy.max_divergence(dc.privacy.output(laplace, 0), dc.privacy.output(laplace, 1))
    without, with_you = dc.privacy.uniform_pmf(0, 5), dc.privacy.uniform_pmf(1, 6)
    uniform = dc.privacy.max_divergence(with_you, without)
    belief = dc.privacy.posterior_bound(0.5, 0.1)
    _say(f"   Laplace noise of scale 10: worst log-ratio [green]{worst}[/green], exactly epsilon")
    _say(f"   uniform noise on 0 … 5:    worst log-ratio [red]{uniform}[/red]: one look can give you away")
    _say(f"   whoever thought 50 : 50 can believe at most {belief:.3%} after the answer")


def _names() -> tuple[np.ndarray, np.ndarray, int]:
    _title(3, "10,000 first names at epsilon 1, all within one margin")
    truth = np.maximum(1, 40_000 / np.arange(1, 10_001) ** 1.05).astype(np.int64)
    mechanism = dc.laplace_for(_ONE, 1)
    margin = mechanism.margin(0.95, count=truth.size)
    noisy = mechanism.perturb(truth)
    within = np.mean([np.abs(mechanism.perturb(truth) - truth).max() <= margin for _ in range(200)])
    top = np.argsort(-noisy)[:10]
    _say(f"   simultaneous 95 % margin: [green]± {margin}[/green]   (ln(10000/0.05) = {math.log(10_000 / 0.05):.1f})")
    _say(f"   largest of 10,000 errors: {np.abs(noisy - truth).max()};  all inside in {within:.1%} of 200 releases")
    _say(f"   top ten in the right order: {'yes' if (top == np.arange(10)).all() else 'no'}")
    return truth, noisy, margin


def _auction() -> None:
    _title(4, "An auction that nobody can rig: bids of 1.00, 1.00, 1.00 and 3.01")
    prices, bids = ("1.00", "3.00", "3.01", "3.02"), (1.00, 1.00, 1.00, 3.01)
    revenues = [f"{float(p) * sum(bid >= float(p) for bid in bids):.2f}" for p in prices]
    mechanism = dc.Exponential(scale="6.04")  # epsilon 1 at a sensitivity of 3.02
    probabilities = mechanism.probabilities(revenues)
    chosen = np.bincount([mechanism.choose(revenues) for _ in range(4000)], minlength=4) / 4000
    table = Table("price", "revenue", "probability", "seen in 4,000 auctions")
    for row in zip(prices, revenues, probabilities, chosen, strict=True):
        table.add_row(row[0], row[1], f"{row[2]:.3f}", f"{row[3]:.3f}")
    _console.print(table)
    _say(f"   price of one auction: epsilon {mechanism.loss('3.02').epsilon}")


def _budget() -> None:
    _title(5, "A budget of 1 and 101 questions at 0.01")
    with dc.memory_ledger(name="demo", budget=dc.Budget(1)) as ledger:
        mechanism = dc.laplace_for(_ONE, 0.01)
        answered, refusal = 0, ""
        for number in range(101):
            event = dc.Event(mechanism=str(mechanism), sensitivity=str(_ONE), question=f"count {number}")
            try:
                receipt = ledger.charge(mechanism.loss(_ONE), event)
            except dc.Refused as refused:
                refusal = str(refused)
            else:
                ledger.settle(receipt, str(mechanism.perturb(731)).encode())
                answered += 1
        _say(f"   answered: [green]{answered}[/green];  spent: {ledger.spent().epsilon}, exactly")
        _say(f"   question 101: [yellow]{refusal.split('. ')[0]}[/yellow]")


def _crash() -> None:
    _title(6, "kill -9 in the middle of a charge")
    with tempfile.TemporaryDirectory() as folder:
        table = Table("killed after", "seen in all", "stored", "charged", "chain")
        for report in survive(Path(folder) / "ledger.sqlite", kills=4):
            table.add_row(*report)
        _console.print(table)
    _say("   every answer that was seen is stored; every charge is remembered")


def _speed() -> None:
    _title(7, "Exact noise, a million at a time")
    for mechanism in (dc.Laplace(10), dc.Gaussian(10), dc.Laplace(1000), dc.Gaussian(1000)):
        zeros = np.zeros(1_000_000, np.int64)
        mechanism.perturb(zeros)
        began = time.perf_counter()
        mechanism.perturb(zeros)
        took = time.perf_counter() - began
        _say(f"   {type(mechanism).__name__:8} of scale {mechanism.scale!s:>4}: {took * 1000:5.1f} ms")


def _pictures(folder: Path, truth: np.ndarray, noisy: np.ndarray, margin: int) -> None:
    _title(8, "Pictures")
    try:
        for path in (draw_counts(folder), draw_names(folder, truth, noisy, margin)):
            _say(f"   {path}")
    except ModuleNotFoundError:
        _console.print("   none: they need matplotlib, which comes with the extra `pictures`", markup=False)
