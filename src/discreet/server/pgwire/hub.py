"""What the connections of a server share: the queries, the limits, TLS, and who is connected."""

import ssl
from dataclasses import dataclass, field
from typing import Protocol

from discreet.server.people.person import Person
from discreet.server.pgwire.errors import WireError
from discreet.server.pgwire.queries import QueryRunner


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections there may be, and how many seconds a client may take to log in and to read an answer."""

    connections: int = 500
    per_person: int = 100
    startup: float = 30.0
    reading: float = 120.0


class Cancellable(Protocol):
    """A connection, as others know it."""

    process: int

    def cancel(self, secret: bytes) -> None:
        """Cancel what it is doing, if the secret is right."""


@dataclass
class Hub:
    """Knows all connections; without TLS, only those from the same machine are accepted."""

    runner: QueryRunner
    tls: ssl.SSLContext | None = None
    is_local: bool = True
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    _connections: dict[int, Cancellable] = field(default_factory=dict)
    _people: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._connections)

    def enter(self, connection: Cancellable) -> None:
        """Count a new connection; refused if there are too many."""
        if len(self._connections) >= self.limits.connections:
            raise WireError("53300", "too many connections. Close some, and try again.")
        self._connections[connection.process] = connection

    def admit(self, connection: Cancellable, person: Person) -> None:
        """Note whose connection it is; refused if this person has too many."""
        if list(self._people.values()).count(person.name) >= self.limits.per_person:
            raise WireError("53300", "too many connections of this user. Close some, and try again.")
        self._people[connection.process] = person.name

    def forget(self, connection: Cancellable) -> None:
        """Forget a connection that has ended."""
        self._connections.pop(connection.process, None)
        self._people.pop(connection.process, None)

    def cancel(self, process: int, secret: bytes) -> None:
        """Cancel what a connection is doing, if there is such a one and the secret is right."""
        connection = self._connections.get(process)
        if connection is not None:
            connection.cancel(secret)
