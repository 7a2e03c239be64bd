"""The server over HTTP and PostgreSQL: requests per second and latency of explanations, stored and fresh answers.

    python -m bench server [CLIENTS [REQUESTS [ROUNDS]]]

It serves the simulated town of 60,000 people in a process of its own; each client is another one, warms up, and shares
this machine. A tick of 0 shows what the server itself takes. Rates and times are medians of the rounds; the CPU time of
each request is told beside them, because other work on the machine disturbs the wall clock and not much else.
"""

import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import discreet as dc
from bench import postgres_clients
from bench.client_processes import ask_together, show, show_bar, show_overhead
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
FRESH = "SELECT COUNT(*) AS n FROM people WHERE income < {}"  # others than over PostgreSQL
SOMETIMES_FRESH = FRESH.replace("income", "1 + income")
FRESH_ALONE = FRESH.replace("<", ">=")  # as many people as over PostgreSQL and without a server
CONNECT = """
import http.client
connection = http.client.HTTPConnection("127.0.0.1", arguments["port"], timeout=120)
headers = {"Authorization": "Bearer " + arguments["token"]}
def ask(number):
    fresh = arguments["fresh"] in ("always", "one client") or (arguments["fresh"] == "some" and number % 10 == 0)
    body = {"sql": arguments["sql"].format(number), "epsilon": "0.001"} if fresh else arguments["body"]
    if body is None:
        connection.request("GET", arguments["path"])
    else:
        connection.request("POST", arguments["path"], json.dumps(body), headers)
    response = connection.getresponse()
    content = response.read()
    assert response.status == 200, content
"""


def main(clients="8", requests="2000", rounds="3"):
    with serving_town() as server:
        print(f"started in {server.seconds:.1f} s; {clients} clients, {rounds} rounds of {requests} requests")
        print(f"load of the machine: {os.getloadavg()[0]:.1f}", flush=True)
        load = int(clients), int(requests), int(rounds)
        own = ask_curator(server.policy, int(requests) // 4)
        measure(server, own, load)
        postgres_clients.measure(server, own, GROUPED["sql"], load)
        print(f"memory {server.resident_bytes() / 1e6:.0f} MB; load of the machine: {os.getloadavg()[0]:.1f}")


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
            threading.Thread(target=process.stderr.read, daemon=True).start()  # a full pipe would stop the server
            yield TownServer(process, path, *ports, token, time.perf_counter() - start)
            process.send_signal(signal.SIGTERM)


def ask_curator(path, requests):
    """Return the median time, and the mean CPU time, of a fresh answer of a curator in this process; show its bars."""
    policy = Policy.load(path)
    policy = replace(policy, data=policy.data.model_copy(update={"ledger": "own.sqlite"}))

    def ask(number):
        start = time.perf_counter()
        curator.ask(postgres_clients.FRESH.format(number), epsilon="0.1").with_margins()
        return time.perf_counter() - start

    with dc.open(policy) as curator:
        first = ask(-3)
        ask(-2)
        cpu = time.process_time()
        fresh = statistics.median(ask(number) for number in range(requests))
        cpu = time.process_time() - cpu
        repeated = statistics.median(ask(0) for _ in range(requests))
    show_bar("Curator.ask, the first, ms", 1e3 * first, 150)
    show_bar("Curator.ask, a trivial question, ms", 1e3 * fresh, 20)
    show_bar("Curator.ask, the same again, ms", 1e3 * repeated, 5)
    return fresh, cpu / requests


def measure(server, own, load):
    """Print one line for each kind of request, and the overhead over the curator."""
    clients, requests, rounds = load

    def ask(path, body, number, count, fresh="never"):
        sql = {"some": SOMETIMES_FRESH, "one client": FRESH_ALONE}.get(fresh, FRESH)
        arguments = {"port": server.http, "token": server.token, "path": path, "body": body, "fresh": fresh, "sql": sql}
        return ask_together(server, CONNECT, arguments, number, count)

    ask("/api/v1/ask", GROUPED, 1, 1)  # from now on it is stored
    show("http, health", [ask("/health", None, clients, requests)])
    show("http, explain", [ask("/api/v1/explain", GROUPED, clients, requests // 2)])
    rate, slow = show("http, stored", [ask("/api/v1/ask", GROUPED, clients, requests) for _ in range(rounds)])
    show_bar("stored answers per second", rate, 300, at_least=True)
    show_bar("99 % of them, ms", slow, 50)
    show("http, stored, one client", [ask("/api/v1/ask", GROUPED, 1, requests // 2) for _ in range(rounds)])
    show("http, fresh", [ask("/api/v1/ask", GROUPED, clients, requests // 4, "always")])
    alone = ask("/api/v1/ask", GROUPED, 1, requests // 4, "one client")
    show("http, fresh, one client", [alone])
    show_overhead(alone, own)
    show("http, 9 stored, 1 fresh", [ask("/api/v1/ask", GROUPED, clients, requests // 4, "some")])


if __name__ == "__main__":
    main(*sys.argv[1:])
