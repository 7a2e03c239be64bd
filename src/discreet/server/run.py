"""Start and stop a service with all of its interfaces, in one process and one event loop."""

import asyncio
import gc
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from discreet.kernel.errors import PolicyError
from discreet.server.event_log import log_event
from discreet.server.http.listener import start_http
from discreet.server.pgwire.listener import start_pg
from discreet.server.service import Service
from discreet.server.tls import ListenAddress, TlsFiles


class Listener(Protocol):
    """An interface that is listening; `address` is a URL to show to the owner."""

    address: str

    async def stop(self) -> None:
        """Stop accepting work, and wait for what is being answered."""


StartListener = Callable[[Service, ListenAddress, TlsFiles | None], Awaitable[Listener]]
LISTENERS: Mapping[str, StartListener] = {"http": start_http, "pg": start_pg}  # by option; the page and agents: http


@dataclass(frozen=True)
class ServeSettings:
    """Where to listen, by interface, and the certificate of all of them.

    >>> ServeSettings({"http": ListenAddress("127.0.0.1", 8080)}).check()
    """

    addresses: Mapping[str, ListenAddress]
    tls: TlsFiles | None = None

    def check(self) -> None:
        """Refuse interfaces that do not exist, and addresses that others can reach without TLS."""
        for name, address in self.addresses.items():
            if name not in LISTENERS:
                raise PolicyError(f"--{name}: there is no such interface. Available: {', '.join(LISTENERS)}.")
            address.check(self.tls, f"--{name}")
        if self.tls:
            self.tls.context()


async def run(service: Service, settings: ServeSettings, on_start: Callable[[list[str]], None]) -> None:
    """Serve until SIGTERM or SIGINT; then answer and record what has begun, and stop."""
    stopping, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    listeners: list[Listener] = []
    try:
        for name, address in settings.addresses.items():
            listeners.append(await LISTENERS[name](service, address, settings.tls))
            service.addresses[name] = listeners[-1].address
        addresses = [listener.address for listener in listeners]
        log_event("start", addresses=addresses, dataset=service.policy.data.name)
        on_start(addresses)
        gc.freeze()  # modules and tables stay until the end: looking for garbage among them delays every answer
        await stopping.wait()
    finally:
        log_event("stop", waiting=service.executions.turns.waiting)
        await asyncio.gather(*(listener.stop() for listener in listeners))
        await service.finish()
        gc.unfreeze()  # or DuckDB reports at the end of the process what was not freed
        log_event("stopped")
