"""The server over HTTP and PostgreSQL: requests per second and latency of explanations, stored and fresh answers.

It serves the simulated town of 60,000 people. Clients and server share this machine; a tick of 0 shows what the server
itself takes.
"""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import postgres_clients
from discreet.curator.ledger_location import open_or_create_ledger
from discreet.policy import Policy
from discreet.server.people import People, Role
from discreet.worlds.town import POLICY, write_town

SERVER = """
[budget.analysts]
ana = { epsilon = 8.0 }
[server]
tick = 0
requests_per_minute = 100_000_000
"""
GROUPED = {"sql": "SELECT ward, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY ward", "epsilon": "0.1"}


def main(clients="8", requests="400"):
    with serving_town() as server:
        print(f"started in {server.seconds:.1f} s; {clients} clients")
        measure(server.http, server.token, int(clients), int(requests))
        postgres_clients.measure(server, GROUPED["sql"], int(clients), int(requests))
        print(f"memory {server.resident_bytes() / 1e6:.0f} MB")


@dataclass(frozen=True)
class TownServer:
    """A running server: its process, its policy, its ports, and the token of its analyst."""

    process: subprocess.Popen
    policy: Path
    http: int
    pg: int
    token: str
    seconds: float

    def resident_bytes(self):
        """The memory that the process occupies."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def serving_town():
    """Serve the town on free ports in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = write_town(folder)
        path.write_text(POLICY.replace("\n[tables.people]", f"{SERVER}\n[tables.people]", 1))
        policy = Policy.load(path)
        with open_or_create_ledger(policy) as ledger:
            token = People(policy).add(ledger, "ana", Role.ANALYST).token
        command = [sys.executable, "-m", "discreet", "serve", str(path), "--http", "0", "--pg", "0"]
        start = time.perf_counter()
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder) as process:
            ports = [int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", process.stderr.readline())]
            yield TownServer(process, path, *ports, token, time.perf_counter() - start)
            process.send_signal(signal.SIGTERM)


def measure(port, token, clients, requests):
    """Print one line for each kind of request."""

    def fresh(number):
        return "ask", {"sql": f"SELECT COUNT(*) AS n FROM people WHERE income > {number}", "epsilon": "0.001"}

    kinds = {
        "health": lambda _: ("health", None),
        "explain": lambda _: ("explain", GROUPED),
        "stored answer": lambda _: ("ask", GROUPED),
        "fresh answer": fresh,
        "9 stored, 1 fresh": lambda number: ("ask", GROUPED) if number % 10 else fresh(10_000 + number),
    }
    with ThreadPoolExecutor(clients) as pool:
        for kind, request in kinds.items():
            count = max(clients, requests // 4 if "fresh" in kind else requests)
            shares = [range(first, count, clients) for first in range(clients)]
            start = time.perf_counter()
            times = [
                each
                for done in pool.map(lambda share, make=request: ask(port, token, make, share), shares)
                for each in done
            ]
            rate, times = len(times) / (time.perf_counter() - start), sorted(times)
            middle, slow = times[len(times) // 2], times[int(len(times) * 0.99)]
            print(f"{kind:<18} {rate:>6,.0f}/s   median {1e3 * middle:>5.0f} ms   99 % {1e3 * slow:>5.0f} ms")


def ask(port, token, make, numbers):
    """Send requests one after another over one connection, and return how long each took."""
    connection, times = http.client.HTTPConnection("127.0.0.1", port, timeout=120), []
    headers = {"Authorization": f"Bearer {token}"}
    for number in numbers:
        kind, body = make(number)
        start = time.perf_counter()
        if body is None:
            connection.request("GET", f"/{kind}")
        else:
            connection.request("POST", f"/api/v1/{kind}", json.dumps(body), headers)
        response = connection.getresponse()
        content = response.read()
        times.append(time.perf_counter() - start)
        assert response.status == 200, content
    connection.close()
    return times


if __name__ == "__main__":
    main(*sys.argv[1:])
