"""uvicorn inside this process: it does not handle signals, and it closes connections of slow clients."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from discreet.kernel.errors import PolicyError
from discreet.server.http.app import create_app
from discreet.server.service import Service
from discreet.server.tls import ListenAddress, TlsFiles

_HEAD_SECONDS = 10.0  # for the head of the first request to arrive
_MAX_CONNECTIONS = 1000
_BACKLOG = 512


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection on which no complete head of a request arrives in time."""

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request, unless there are too many connections."""
        super().connection_made(transport)
        # asyncio does so for its own sockets only; without, the body waits 40 ms for the client to confirm the head.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > _MAX_CONNECTIONS:
            transport.close()
            return
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Handle data; the head of every request has its own time."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._head_timer is None:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._head_timer = self.loop.call_later(_HEAD_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.has_started = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        self.has_started.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process, which stops all interfaces."""
        yield


class HttpListener:
    """A running HTTP server; `address` is where it listens."""

    def __init__(self, server: uvicorn.Server, task: "asyncio.Task[None]", address: str) -> None:
        self._server, self._task, self.address = server, task, address

    async def stop(self) -> None:
        """Stop accepting requests, and wait for those that are being answered."""
        self._server.should_exit = True
        await self._task


async def start_http(service: Service, address: ListenAddress, tls: TlsFiles | None) -> HttpListener:
    """Start to serve HTTP or, with TLS, HTTPS."""
    context = tls.context() if tls else None
    config = uvicorn.Config(
        create_app(service),
        http=PatientProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=int(service.curator.releases.engine.seconds) + 60,
        h11_max_incomplete_event_size=32_768,
        ssl_context_factory=(lambda _, __: context) if context else None,
    )
    server, listening = _Server(config), _listen(address)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    await server.has_started.wait()
    if server.should_exit:  # an interface that is mounted could not start; uvicorn has logged why
        await task
        raise PolicyError(f"{address}: the interfaces could not start. The reason is in the owner's log.")
    shown = ListenAddress(address.host, listening.getsockname()[1])
    return HttpListener(server, task, f"{'https' if tls else 'http'}://{shown}")


def _listen(address: ListenAddress) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        return socket.create_server((address.host, address.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise PolicyError(f"{address}: cannot listen there ({error.strerror}). Choose another address.") from None
