"""What can be checked without statistics about the account: paid before read, kept after a crash, never overspent."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pyarrow as pa

from discreet.answer import Answer
from discreet.audit.planting import Neighbours, neighbours
from discreet.audit.policy_checks import ask, told
from discreet.audit.policy_questions import Asked
from discreet.audit.policy_result import Check
from discreet.audit.policy_worlds import Prepared, exact, write_copy
from discreet.curator import Curator
from discreet.engines.interface import Engine, Reader
from discreet.engines.usage import Usage
from discreet.kernel.errors import FAILED, Failed, LedgerError, Refused
from discreet.kernel.exact import fraction
from discreet.kernel.ledger import memory_ledger, open_ledger
from discreet.kernel.loss import Loss
from discreet.opening import open_curator
from discreet.policy import Policy, Spending
from discreet.pricing import Offer

_MOST_ASKS = 50
_FEW = Fraction(7, 2)  # as many questions fit in a small budget, less the half
_SHUFFLED = "too many groups, highest"


class Crash(BaseException):
    """The end of a process in the middle of a question: nothing catches it."""


class _Watched:
    """An engine at which something happens before it reads totals."""

    def __init__(self, engine: Engine | Reader, before: Callable[[], None]) -> None:
        self._engine, self._before = engine, before

    @contextmanager
    def prepare(self, usage: Usage) -> Iterator["_Watched"]:
        with cast("Engine", self._engine).prepare(usage) as reader:
            yield _Watched(reader, self._before)

    def totals(self, question: Any) -> Any:
        self._before()
        return self._engine.totals(question)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


def account_checks(
    policy: Policy, listed: Sequence[Prepared], price: Offer, *, random_state: int = 0
) -> Iterator[Check]:
    """Check what the ledger promises, on made-up data with a ledger file of its own."""
    every = {each.place.name: each for each in neighbours(policy, random_state=random_state)}
    data = every[_SHUFFLED]
    asked = listed[0].asked
    with TemporaryDirectory(prefix="discreet-audit-") as folder:
        yield _paid_first(policy, data, asked, price, Path(folder) / "first")
        yield _crashed(policy, data, asked, price, Path(folder) / "crash")
        yield _stopped(policy, data, asked, price, Path(folder) / "budget")
        yield _in_any_order(policy, data, listed, Path(folder))


def _paid_first(policy: Policy, data: Neighbours, asked: Asked, price: Offer, folder: Path) -> Check:
    """Check that a question is charged when its rows are read, and that failing costs the price and says nothing."""
    bad, seen = [], list[Loss]()
    with open_curator(write_copy(policy, data.present, folder, ledger="ledger.sqlite")) as curator:

        def fail() -> None:
            seen.append(curator.ledger.spent())
            raise ValueError("a value of somebody")

        with _quietly():
            outcome = ask(_with_engine(curator, fail), asked, price)
        spent = curator.ledger.spent()
    if not seen or seen[0] != spent or not spent.rho:
        bad.append("rows were read before the charge was made")
    if not isinstance(outcome, Failed) or str(outcome) != FAILED:
        bad.append("a failure while reading tells more than that there was one")
    return told("A question is paid for before it is read, and failing tells nothing", bad, "an error while reading")


def _crashed(policy: Policy, data: Neighbours, asked: Asked, price: Offer, folder: Path) -> Check:
    bad = []
    copy = write_copy(policy, data.present, folder, ledger="ledger.sqlite")
    with open_curator(copy) as curator:

        def crash() -> None:
            raise Crash

        with suppress(Crash):
            ask(_with_engine(curator, crash), asked, price)
        name = curator.ledger.name
    with open_ledger(folder / "ledger.sqlite", name=name) as ledger:
        if not ledger.spent().rho:
            bad.append("the charge of a question is gone after a crash")
        try:
            ledger.verify()
        except LedgerError as error:
            bad.append(f"the ledger does not verify after a crash: {error}")
    return told("After a crash the charge stands, and the ledger verifies", bad, "a crash while reading")


def _stopped(policy: Policy, data: Neighbours, asked: Asked, price: Offer, folder: Path) -> Check:
    """Check that a small budget ends, that it is never exceeded, and that what is refused is not read."""
    bad, reads, answers = [], list[int](), 0
    with open_curator(write_copy(policy, data.present, folder)) as curator:
        small = replace(curator.policy, spending=_small(policy.spending, price))
        with memory_ledger(name=curator.ledger.name, budget=small.budget) as ledger:
            watched = cast("Engine", _Watched(curator._engine, lambda: reads.append(1)))  # noqa: SLF001 - as below
            outcome: object = None
            while answers < _MOST_ASKS:  # of another version of the data nothing is remembered
                version = small.data.model_copy(update={"version": f"{answers}"})
                outcome = ask(Curator(replace(small, data=version), watched, ledger), asked, price)
                if not isinstance(outcome, Answer):
                    break
                answers += 1
            if not isinstance(outcome, Refused):
                bad.append(f"after {answers} answers the budget did not refuse")
            if not ledger.budget.covers(ledger.spent()):
                bad.append("more was spent than there was")
            if len(reads) != answers:
                bad.append("a question was read that was refused")
    return told("A budget that is used up refuses, before anything is read", bad, f"refused after {answers} answers")


def _in_any_order(policy: Policy, data: Neighbours, listed: Sequence[Prepared], folder: Path) -> Check:
    """Check that exact totals are the same when the rows of every table are turned round."""
    turned = {name: rows.take(pa.array(range(rows.num_rows - 1, -1, -1))) for name, rows in data.present.items()}
    bad = []
    with (
        open_curator(write_copy(policy, data.present, folder / "as is")) as curator,
        open_curator(write_copy(policy, turned, folder / "turned")) as other,
    ):
        for question in listed:
            sides = [exact(each, question) for each in (curator, other)]
            if any(_sorted(here) != _sorted(there) for here, there in zip(*sides, strict=True)):
                bad.append(question.asked.name)
    return told("The order of the rows does not matter", bad, f"{len(listed)} questions")


def _sorted(found: Any) -> tuple[Any, ...]:
    rows = sorted(zip(map(str, found.keys), found.values.tolist(), strict=True))
    cells = [
        sorted(
            (str(found.keys[group]), cell, weight)
            for group, cell, weight in zip(
                tally.groups.tolist(), tally.cells.tolist(), tally.weights.tolist(), strict=True
            )
        )
        for _, tally in sorted(found.tallies.items())
    ]
    return rows, cells


def _with_engine(curator: Curator, before: Callable[[], None]) -> Curator:
    watched = cast("Engine", _Watched(curator._engine, before))  # noqa: SLF001 - curators have no door for that
    return Curator(curator.policy, watched, curator.ledger)


def _small(spending: Spending, price: Offer) -> Spending:
    """Return the limits of a budget for a few questions."""
    if price.epsilon is not None:
        return spending.model_copy(update={"epsilon": _FEW * fraction(price.epsilon, "epsilon"), "analysts": {}})
    delta = spending.delta * (1 - spending.discover_share)
    epsilon = Loss(None, _FEW * fraction(price.rho, "rho")).to_epsilon(delta)
    return spending.model_copy(update={"epsilon": epsilon, "analysts": {}})


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep an error that was planted out of the owner's log."""
    log = logging.getLogger("discreet")
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = False
