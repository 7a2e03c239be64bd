"""The server of the PostgreSQL interface: it listens, and ends connections when it stops."""

import asyncio
from itertools import count

from discreet.server.pgwire.connection import PgConnection
from discreet.server.pgwire.hub import ConnectionLimits, Hub
from discreet.server.pgwire.queries import QueryRunner
from discreet.server.service import Service
from discreet.server.tls import ListenAddress, TlsFiles

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
    ...     server = await PgServer.start(service, ListenAddress("127.0.0.1", 0))
    ...     await server.stop()
    ...     return server.address.startswith("postgresql://127.0.0.1:")
    >>> with Service.open(policy, data={"visits": pa.table({"who": [1, 2, 3]})}) as service:
    ...     asyncio.run(start_and_stop(service))
    True
    """

    def __init__(self, hub: Hub, server: asyncio.Server, connections: set[PgConnection]) -> None:
        self.hub, self._server, self._connections = hub, server, connections
        host, self.port = server.sockets[0].getsockname()[:2]
        self.address = f"postgresql://{ListenAddress(host, self.port)}/{hub.runner.database}"

    @classmethod
    async def start(
        cls,
        service: Service,
        address: ListenAddress,
        tls: TlsFiles | None = None,
        limits: ConnectionLimits | None = None,
    ) -> "PgServer":
        """Listen on an address; other machines can reach it with TLS only."""
        address.check(tls, "--pg")
        hub = Hub(
            QueryRunner(service), tls.context() if tls else None, address.is_loopback, limits or ConnectionLimits()
        )
        connections: set[PgConnection] = set()
        numbers = count(1)

        def connect() -> PgConnection:
            connection = PgConnection(hub, next(numbers))
            connections.add(connection)
            connection.when_done(lambda: connections.discard(connection))
            return connection

        server = await asyncio.get_running_loop().create_server(connect, address.host, address.port, backlog=_BACKLOG)
        return cls(hub, server, connections)

    async def stop(self) -> None:
        """Stop listening, tell all clients, and end their connections; questions that run go on in the service."""
        self._server.close()
        tasks = [task for connection in self._connections if (task := connection.shut_down()) is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        self.hub.runner.close()


async def start_pg(service: Service, address: ListenAddress, tls: TlsFiles | None) -> PgServer:
    """Start the PostgreSQL interface of `discreet serve`."""
    return await PgServer.start(service, address, tls)
