"""A small clinic behind a service, and a clock that tests move."""

import asyncio
import threading

import httpx
import pyarrow as pa

from discreet.policy import Policy
from discreet.server.http.listener import start_http
from discreet.server.people import Role
from discreet.server.requests import QueryRequest
from discreet.server.service import Service
from discreet.server.tls import ListenAddress

COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
VISITS = pa.table(
    {"patient": [1, 1, 2, 3, 4, 5], "ward": ["A", "B", "A", "A", "B", "B"], "cost": [10, 20, 30, 40, 50, 60]}
)
WARDS = pa.table({"ward": ["A", "B"], "beds": [10, 20]})


def policy_values(ledger=":memory:", budget=(), **server):
    """Return a policy with these settings of [server]; `seconds` goes to [tuning]."""
    seconds = server.pop("seconds", None)
    return {
        "data": {"name": "clinic", "protects": "patient", "ledger": ledger},
        "tuning": {} if seconds is None else {"seconds": seconds},
        "server": {"tick": 0, **server},
        "budget": {
            "epsilon": 10,
            "analysts": {"ana": {"epsilon": 2}, "ben": {"epsilon": 2}, "eve": {"epsilon": 2, "tables": ["wards"]}},
            **dict(budget),
        },
        "tables": {
            "visits": {
                "source": "visits",
                "unit": "patient",
                "groups": 2,
                "rows": 2,
                "columns": {
                    "patient": {"type": "integer"},
                    "ward": {"type": "text", "in": ["A", "B"]},
                    "cost": {"type": "integer", "between": [0, 100]},
                },
            },
            "wards": {
                "source": "wards",
                "public": True,
                "columns": {"ward": {"type": "text"}, "beds": {"type": "integer"}},
            },
        },
    }


def open_service(base=".", source=None, frames=None, **settings):
    """Open the clinic."""
    policy = Policy.from_dict(policy_values(**settings), base)
    return Service.open(policy, data={"visits": VISITS, "wards": WARDS, **(frames or {})}, source=source)


def person(service, name="ana", role=Role.ANALYST):
    """Issue a token and log in with it."""
    return service.person_for_token(service.people.add(service.ledger, name, role).token, "127.0.0.1")


def ask(service, who, sql=COUNT, **cost):
    """Ask and wait for the answer."""
    return asyncio.run(service.ask(who, QueryRequest(sql, **(cost or {"epsilon": "1/10"}))))


async def until(is_true):
    """Let other coroutines run until a condition holds."""
    while not is_true():  # noqa: ASYNC110 - it depends on several of them
        await asyncio.sleep(0.001)


def slow_down(service, seconds):
    """Let the next readings of private data take these times on the fake clock."""
    engine, times = service.curator._engine._private, iter(seconds)
    totals = engine.totals

    def read(question):
        service.clock.source.moment += next(times, 0)
        return totals(question)

    engine.totals = read


def break_engine(service, times=10**6):
    """Let the next readings of private data fail after their charge."""
    engine = service.curator._engine._private
    totals, left = engine.totals, [times]

    def read(question):
        if left[0]:
            left[0] -= 1
            raise RuntimeError("patient 4711 has a value of 1e400")
        return totals(question)

    engine.totals = read


class FakeTime:
    """A clock that stands still unless somebody waits."""

    def __init__(self):
        self.moment = 1000.0

    def now(self):
        return self.moment

    def sleep(self, seconds):
        self.moment += seconds

    async def wait(self, seconds):
        self.moment += seconds
        await asyncio.sleep(0)


class Serving:
    """A service behind a real HTTP server on the loopback, in an event loop of its own thread."""

    def __init__(self, service, tls=None):
        self.service, self._tls = service, tls
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.listener = self.run(start_http(service, ListenAddress("127.0.0.1", 0), tls))
        self.url, self._clients = self.listener.address, []

    def run(self, coroutine):
        """Run a coroutine in the server's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    def client(self, name="ana", role=Role.ANALYST):
        """Return a client with a new token."""
        token = self.service.people.add(self.service.ledger, name, role).token
        return self.anonymous({"Authorization": f"Bearer {token}"})

    def anonymous(self, headers=None):
        """Return a client without a token."""
        client = httpx.Client(base_url=self.url, headers=headers, timeout=60, verify=False)
        self._clients.append(client)
        return client

    def close(self):
        """Stop the server and its service."""
        for client in self._clients:
            client.close()
        self.run(self.listener.stop())
        self.run(self.service.finish())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()
        self.service.close()
