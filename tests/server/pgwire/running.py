"""A server for PostgreSQL clients on a free port, in a thread of its own."""

import asyncio
import threading
from contextlib import contextmanager

from clinic import clinic_data, clinic_policy

from discreet.server.people.person import Role
from discreet.server.pgwire.listener import PgServer
from discreet.server.service import Service
from discreet.server.tls import ListenAddress

ROLES = {"ana": Role.ANALYST, "bob": Role.ANALYST, "vera": Role.AUDITOR, "otto": Role.OWNER}


class RunningServer:
    """What a test needs of a running server: the service, the port, and a token for each person."""

    def __init__(self, service, tokens):
        self.service, self.tokens = service, tokens
        self.loop = self.server = self._stop = None

    @property
    def port(self):
        return self.server.port

    def url(self, name="ana", options=""):
        token = self.tokens[name]
        return f"postgresql://{name}:{token}@127.0.0.1:{self.port}/clinic?sslmode=disable{options}"

    def spent(self):
        return self.service.ledger.spent().epsilon

    def call(self, make):
        """Run a coroutine in the server's loop, and return its result."""
        return asyncio.run_coroutine_threadsafe(make(), self.loop).result(60)


@contextmanager
def running(policy=None, data=None, tls=None, limits=None, host="127.0.0.1"):
    """Start a server, and stop it at the end."""
    service = Service.open(policy or clinic_policy(), data=data or clinic_data())
    tokens = {name: service.people.add(service.ledger, name, role).token for name, role in ROLES.items()}
    found, is_ready = RunningServer(service, tokens), threading.Event()

    async def serve():
        found.loop, found._stop = asyncio.get_running_loop(), asyncio.Event()
        found.server = await PgServer.start(service, ListenAddress(host, 0), tls, limits)
        is_ready.set()
        await found._stop.wait()
        await found.server.stop()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert is_ready.wait(60)
        yield found
    finally:
        if found.loop:
            found.loop.call_soon_threadsafe(found._stop.set)
        thread.join(60)
        service.close()
