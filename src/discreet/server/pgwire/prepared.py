"""Prepared statements and portals of one session, within limits on their number and size."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from discreet.server.pgwire.actions import Statement
from discreet.server.pgwire.errors import WireError
from discreet.server.pgwire.parameter_types import ParameterType
from discreet.server.pgwire.queries import ResultTable

MAX_STATEMENTS, MAX_PORTALS = 500, 50
MAX_TEXT = 4_000_000  # characters of all prepared statements of a session
MAX_RESULTS = 256 << 20  # bytes of the results of all portals of a session


@dataclass(frozen=True)
class ResultShape:
    """The names and types of a result's columns."""

    names: tuple[str, ...]
    schema: pa.Schema


@dataclass(frozen=True)
class StatementResult:
    """What a statement led to: its tag, and rows if it has some."""

    tag: str
    result: ResultTable | None = None


@dataclass
class Prepared:
    """A prepared statement: what it does, the types of its parameters, and its columns if a client was told them."""

    statement: Statement
    types: tuple[ParameterType, ...] = ()
    announced: ResultShape | None = None


@dataclass
class Portal:
    """A statement with its values: its text, the formats of its columns, and its outcome once it has run.

    `is_described` says that a Describe waits to be answered, together with Execute.
    """

    prepared: Prepared
    text: str
    requested_formats: tuple[int, ...]
    outcome: StatementResult | None = None
    sent: int = 0
    is_described: bool = False
    is_held: bool = False


@dataclass
class PreparedStore:
    """The statements and portals of a session by name.

    >>> store = PreparedStore()
    >>> store.statement("s")
    Traceback (most recent call last):
    discreet.server.pgwire.errors.WireError: prepared statement "s" does not exist
    """

    _statements: dict[str, Prepared] = field(default_factory=dict)
    _portals: dict[str, Portal] = field(default_factory=dict)

    def add_statement(self, name: str, prepared: Prepared) -> None:
        """Keep a statement; an unnamed one replaces the last."""
        if name and name in self._statements:
            raise WireError("42P05", f'prepared statement "{name}" already exists')
        size = len(prepared.statement.text) + sum(len(each.statement.text) for each in self._statements.values())
        if len(self._statements) >= MAX_STATEMENTS or size > MAX_TEXT:
            raise WireError("54000", "too many prepared statements. Close those that are no longer used.")
        self._statements[name] = prepared

    def statement(self, name: str) -> Prepared:
        """Return a statement by its name."""
        if name not in self._statements:
            raise WireError("26000", f'prepared statement "{name}" does not exist')
        return self._statements[name]

    def add_portal(self, name: str, portal: Portal) -> None:
        """Keep a portal; an unnamed one replaces the last."""
        if name and name in self._portals:
            raise WireError("42P03", f'portal "{name}" already exists')
        if name not in self._portals and len(self._portals) >= MAX_PORTALS:
            raise WireError("54000", "too many portals are open. Close those that are no longer used.")
        self._portals[name] = portal

    def portal(self, name: str) -> Portal:
        """Return a portal by its name."""
        if name not in self._portals:
            raise WireError("34000", f'portal "{name}" does not exist')
        return self._portals[name]

    def check_results(self) -> None:
        """Refuse to keep more results than fit."""
        if sum(result.table.nbytes for result in self._results()) > MAX_RESULTS:
            raise WireError("54000", "the open portals hold too many rows. Close those that are no longer used.")

    def _results(self) -> Iterator[ResultTable]:
        for portal in self._portals.values():
            if portal.outcome and portal.outcome.result:
                yield portal.outcome.result

    def close(self, name: str, *, is_portal: bool) -> None:
        """Forget a statement or a portal, if it is there."""
        (self._portals if is_portal else self._statements).pop(name, None)

    def close_portals(self) -> None:
        """Forget all portals that are not held, as the end of a transaction does."""
        self._portals = {name: portal for name, portal in self._portals.items() if portal.is_held}

    def close_cursors(self) -> None:
        """Forget all portals."""
        self._portals.clear()

    def close_statements(self) -> None:
        """Forget all statements."""
        self._statements.clear()
