"""Copies of a policy with planted data, each behind a curator of its own; questions that are read once and asked often.

A copy has the policy's tables, columns and limits, and a budget that no audit uses up. Its delta, if it has one, is one
half: what happens with probability 1e-9 cannot be counted, so thresholds are computed for one that can.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import pyarrow.parquet as pq

from discreet import pricing
from discreet.audit.planting import Tables, neighbours
from discreet.audit.policy_questions import Asked
from discreet.audit.policy_values import Place
from discreet.curator import Curator
from discreet.kernel import release
from discreet.kernel.event import OWNER, Event
from discreet.kernel.ledger import Ledger, memory_ledger
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.question import Question
from discreet.kernel.release import Ask, Engine, Noisy, Released, Totals
from discreet.opening import open_curator
from discreet.policy import Policy, write_policy
from discreet.pricing import Known, Offer
from discreet.sql import Part, read

_PLENTY = 10**6  # the largest epsilon that a budget can have
_HALF = Fraction(1, 2)
_AT_ONCE = 50  # runs that are paid for together: to charge them one by one takes longer than to draw their noise


@dataclass(frozen=True)
class Pair:
    """Two curators whose data differ in one planted unit."""

    place: Place
    present: Curator
    absent: Curator


@dataclass(frozen=True)
class Prepared:
    """A question as the curator understood it, with the noise that its price buys."""

    asked: Asked
    asks: tuple[Ask, ...]
    price: Loss


@contextmanager
def opened(policy: Policy, *, random_state: int = 0) -> Iterator[list[Pair]]:
    """Open curators for neighbouring data sets that fit a policy; everything lies in a temporary folder.

    >>> policy = Policy.of({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> with opened(policy) as pairs:
    ...     pairs[0].place.name, pairs[0].present.policy.data.name
    ('one row, highest values', 'visits-audit')
    """
    with TemporaryDirectory(prefix="discreet-audit-") as folder, ExitStack() as stack:
        absent: dict[bool, Curator] = {}
        pairs = []
        for number, each in enumerate(neighbours(policy, random_state=random_state)):
            place = Path(folder) / str(number)
            if each.place.alone not in absent:
                copy = write_copy(policy, each.absent, place / "absent")
                absent[each.place.alone] = stack.enter_context(open_curator(copy))
            present = stack.enter_context(open_curator(write_copy(policy, each.present, place / "present")))
            pairs.append(Pair(each.place, present, absent[each.place.alone]))
        yield pairs


def write_copy(policy: Policy, tables: Tables, folder: Path, *, ledger: str = ":memory:") -> Path:
    """Write tables into a folder, with a copy of the policy that leads to them and to nothing of the owner's."""
    folder.mkdir(parents=True)
    sources = {name: f"table-{number}.parquet" for number, name in enumerate(policy.tables)}
    for name, source in sources.items():
        pq.write_table(tables[name], folder / source)
    copied = {name: replace(table, source=sources[name]) for name, table in policy.tables.items()}
    here = {"ledger": ledger, "engine": "duckdb", "connection": None}
    data = policy.data.model_copy(update={"name": f"{policy.data.name[:190]}-audit", **here})
    budget = {"epsilon": Fraction(_PLENTY), "analysts": {}}
    budget |= {"delta": _HALF} if policy.spending.delta else {}
    spending = policy.spending.model_copy(update=budget)
    file = folder / "policy.toml"
    file.write_text(write_policy(replace(policy, data=data, spending=spending, tables=MappingProxyType(copied))))
    return file


def offer(policy: Policy, epsilon: Fraction) -> Offer:
    """Return the price of each question: an epsilon or, in a budget with a delta, the rho that such an epsilon implies.

    >>> policy = Policy.of({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1, "delta": 0.001},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> offer(policy, Fraction(1)).rho
    Fraction(1, 2)
    """
    if policy.spending.delta:
        return Offer(None, Loss(epsilon).rho, None)
    return Offer(epsilon, None, None)


def prepared(curator: Curator, asked: Asked, price: Offer) -> Prepared:
    """Read a question and buy its noise by the same steps as `Curator.ask`; Refused if the policy does not allow it."""
    policy, engine = curator.policy, curator._engine  # noqa: SLF001 - curators have no door for asking often

    def forgotten(parts: tuple[Part, ...]) -> tuple[Known, ...]:
        with memory_ledger(name=policy.data.name, budget=policy.budget) as nothing:
            return pricing.recall(parts, nothing, pricing.state_of(policy), pricing.kind_for(policy))

    plan = read(asked.sql, policy, engine, by=OWNER, groups=asked.groups, rows=asked.rows)
    want = pricing.wanted(plan, pricing.offered(plan, price, OWNER, policy), policy, forgotten)
    owed = pricing.due(want.known, want.amounts, want.delta)
    return Prepared(asked, owed.asks, owed.loss)


def exact(curator: Curator, question: Prepared) -> list[Totals]:
    """Return what the engine computes for a question, before any noise: for judging, not for showing."""
    return [curator._engine.totals(ask.question) for ask in question.asks]  # noqa: SLF001 - as above


class _Known:
    """An engine that was asked already: to release an answer again, nothing is read again."""

    def __init__(self, curator: Curator, question: Prepared) -> None:
        self._found = {ask.question: found for ask, found in zip(question.asks, exact(curator, question), strict=True)}

    def totals(self, question: Question) -> Totals:
        return self._found[question]


def released(curator: Curator, question: Prepared, runs: int) -> Iterator[tuple[Noisy, ...]]:
    """Release the answer to a question so often, each time paid for and with fresh noise, as `Curator.ask` does."""
    size, engine = len(question.asks), _Known(curator, question)
    for start in range(0, runs, _AT_ONCE):
        with memory_ledger(name="audit", budget=_budget(question.price)) as ledger:
            parts = _released(curator, question, min(_AT_ONCE, runs - start), engine, ledger).parts
        for place in range(0, len(parts), size):
            yield parts[place : place + size]


def charged(curator: Curator, question: Prepared) -> Event:
    """Release a question once, and return what the ledger keeps of it."""
    with memory_ledger(name="audit", budget=_budget(question.price)) as ledger:
        _released(curator, question, 1, curator._engine, ledger)  # noqa: SLF001 - as above
        return ledger.events()[-1]


@contextmanager
def anew(curator: Curator) -> Iterator[Curator]:
    """Open the same data with an account of its own, of which nothing is spent."""
    with memory_ledger(name=curator.ledger.name, budget=curator.policy.budget) as ledger:
        yield Curator(curator.policy, curator._engine, ledger)  # noqa: SLF001 - as above


def _released(curator: Curator, question: Prepared, count: int, engine: Engine, ledger: Ledger) -> Released:
    loss = question.price
    epsilon = None if loss.epsilon is None else count * loss.epsilon
    return release.ask(
        question.asks * count,
        price=Loss.exactly(epsilon, count * loss.rho, count * loss.delta),
        catalog=curator._catalog,  # noqa: SLF001 - as above
        engine=engine,
        ledger=ledger,
        question=question.asked.sql,
    )


def _budget(price: Loss) -> Budget:
    return Budget(_PLENTY) if price.epsilon is not None else Budget(_PLENTY, _HALF, discover=_HALF)
