"""The server of the PostgreSQL interface: it listens, and ends connections when it stops."""

import asyncio
import ipaddress
import ssl
from itertools import count

from discreet.kernel.errors import PolicyError
from discreet.server.pgwire.connection import PgConnection
from discreet.server.pgwire.hub import ConnectionLimits, Hub
from discreet.server.pgwire.queries import QueryRunner
from discreet.server.service import Service

_BACKLOG = 128


class PgServer:
    """A server for PostgreSQL clients; without TLS it listens on this machine only.

    >>> from discreet.policy import Policy
    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits", "ledger": ":memory:"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v", "unit": "row", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> import pyarrow as pa
    >>> async def start_and_stop(service):
    ...     server = await PgServer.start(service, "127.0.0.1", 0)
    ...     await server.stop()
    ...     return server.port > 0
    >>> with Service.open(policy, data={"visits": pa.table({"who": [1, 2, 3]})}) as service:
    ...     asyncio.run(start_and_stop(service))
    True
    """

    def __init__(self, hub: Hub, server: asyncio.Server, connections: set[PgConnection]) -> None:
        self.hub, self._server, self._connections = hub, server, connections
        self.port = int(server.sockets[0].getsockname()[1])

    @classmethod
    async def start(
        cls,
        service: Service,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        limits: ConnectionLimits | None = None,
    ) -> "PgServer":
        """Listen on an address; port 0 means any that is free."""
        is_local = is_loopback(host)
        if tls is None and not is_local:
            raise PolicyError(
                f"--pg: {host} is not on this machine, and passwords and answers would be sent without encryption. "
                "Give a certificate and its key, or listen on 127.0.0.1."
            )
        hub = Hub(QueryRunner(service), tls, is_local, limits or ConnectionLimits())
        connections: set[PgConnection] = set()
        numbers = count(1)

        def connect() -> PgConnection:
            connection = PgConnection(hub, next(numbers))
            connections.add(connection)
            connection.when_done(lambda: connections.discard(connection))
            return connection

        server = await asyncio.get_running_loop().create_server(connect, host, port, backlog=_BACKLOG)
        return cls(hub, server, connections)

    async def stop(self) -> None:
        """Stop listening, tell all clients, and end their connections; questions that run go on in the service."""
        self._server.close()
        tasks = [task for connection in self._connections if (task := connection.shut_down()) is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        self.hub.runner.close()


def is_loopback(host: str) -> bool:
    """Return whether an address is one of this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("")
    (True, True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
