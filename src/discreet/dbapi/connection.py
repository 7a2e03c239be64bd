"""A connection: who asks, of which data, and what they pay for a question that does not name its price."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from os import PathLike
from typing import Any, Self

import pyarrow as pa

from discreet.curator import Curator
from discreet.dbapi.binding import bind, check_values
from discreet.dbapi.cursor import Cursor, Result
from discreet.dbapi.errors import InterfaceError, QuestionRefused, translated
from discreet.dbapi.statements import Offer, offer_of, setting, taken
from discreet.kernel.event import OWNER
from discreet.kernel.exact import Number
from discreet.opening import open_curator
from discreet.policy import Policy
from discreet.sql.text import Parsed, parse

_NO_PRICE = (
    "epsilon: say what an answer may cost: SET epsilon = '1/10', or connect(…, epsilon=\"1/10\"); there is no default."
)


def connect(
    policy: str | PathLike[str] | Policy | Curator, by: str = OWNER, epsilon: Number | None = None
) -> "Connection":
    """Connect to the data of a policy, or of a curator that is open already and stays so: PEP 249, DB-API 2.0.

    `epsilon` is the price of a question that names none. Margins are columns: n is followed by n_margin.

    >>> import discreet as dc, pyarrow as pa
    >>> visits = pa.table({"patient": [1, 1, 2], "ward": ["A", "B", "A"]})
    >>> words = {"unit": "patient", "columns": {"ward": ["A", "B"]}, "groups": 2, "rows": 2}
    >>> with dc.open(visits, budget=1, ledger=":memory:", **words) as curator:
    ...     with dc.connect(curator, epsilon="1/4") as connection:
    ...         cursor = connection.cursor()
    ...         _ = cursor.execute("SELECT COUNT(*) AS n FROM data WHERE ward = ?", ["A"])
    ...         [column[0] for column in cursor.description], len(cursor.fetchall()), cursor.answer.loss.epsilon
    (['n', 'n_margin'], 1, Fraction(1, 4))
    """
    with translated():
        curator = policy if isinstance(policy, Curator) else open_curator(policy)
        try:
            curator.budget(by)  # is the name listed?
            offer = Offer() if epsilon is None else offer_of("epsilon", epsilon, curator.policy.budget)
        except BaseException:
            if curator is not policy:
                curator.close()
            raise
    return Connection(curator, by, offer, curator if curator is not policy else None)


class Connection:
    """Made by `connect`. Threads may share it, each with cursors of its own; what is SET, is set for all of them."""

    def __init__(self, curator: Curator, by: str, offer: Offer, owned: Curator | None = None) -> None:
        self.curator, self.by, self.closed = curator, by, False
        self._first, self._offer, self._owned = offer, offer, owned

    def cursor(self) -> Cursor:
        """Return a cursor, which asks."""
        self._check_open()
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing: questions change nothing but the ledger, which is durable before any answer is seen."""
        self._check_open()

    def rollback(self) -> None:
        """Do nothing: what was charged stays charged."""
        self._check_open()

    def close(self) -> None:
        """End; a curator that the connection opened is closed with it."""
        self.closed = True
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def perform(self, operation: str, parameters: Sequence[Any] | Mapping[str, Any]) -> Result | None:
        """Do what a cursor was told."""
        self._check_open()
        if not isinstance(operation, str):
            raise QuestionRefused(f"operation: give SQL as a text, not {type(operation).__name__}.")
        with translated():
            word, rest = taken(operation)
            text = bind(rest, parameters)
            match word:
                case "SET" | "RESET":
                    name, value = setting(word, text)
                    first = value is None
                    self._offer = self._first if first else offer_of(name, value, self.curator.policy.budget)
                    return None
                case "SHOW":
                    return self._show(setting(word, text)[0])
            parsed = parse(text)
            check_values(text, parsed.query, parameters)
            offer = self._price(parsed)
            if word == "EXPLAIN":
                said = self.curator.explain(text, by=self.by, epsilon=offer.epsilon, rho=offer.rho)
                return Result(pa.table({"explanation": repr(said).splitlines()}))
            answer = self.curator.ask(text, by=self.by, epsilon=offer.epsilon, rho=offer.rho)
            return Result(answer.with_margins(), answer)

    def _price(self, parsed: Parsed) -> Offer:
        """Return what is offered for a question: nothing if it names its price, or the policy does."""
        offer = self._offer
        if parsed.options.epsilon is not None or parsed.within is not None:
            return Offer()
        if offer == Offer() and self._each() is None:
            raise QuestionRefused(_NO_PRICE)
        return offer

    def _each(self) -> Fraction | None:
        analyst = self.curator.policy.spending.analysts.get(self.by)
        return analyst.each if analyst else None

    def _show(self, name: str) -> Result:
        """Return the price that is set; the policy's own if none is."""
        offer = self._offer if self._offer != Offer() else Offer(epsilon=self._each())
        price = getattr(offer, name)
        return Result(pa.table({name: pa.array([None if price is None else str(price)], pa.string())}))

    def _check_open(self) -> None:
        if self.closed:
            raise InterfaceError("the connection is closed. Open another one.")
