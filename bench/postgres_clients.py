"""The PostgreSQL interface of a running server: stored and fresh answers, its overhead, and idle connections."""

import statistics
import time
from dataclasses import replace

import psycopg

import discreet as dc
from bench.client_processes import ask_together, show, show_bar
from discreet.policy import Policy

FRESH = "SELECT COUNT(*) AS n FROM people WHERE income > {}"
IDLE = 70  # connections of one person, who may have 100
CONNECT = """
import psycopg
connection = psycopg.connect(arguments["url"], autocommit=True)
def ask(number):
    connection.execute(arguments["sql"].format(number), prepare=arguments["prepare"]).fetchall()
"""


def url_of(server):
    return f"postgresql://ana:{server.token}@127.0.0.1:{server.pg}/?sslmode=disable&options=-cepsilon%3D0.1"


def measure(server, sql, clients, requests, rounds):
    """Print one line for each kind of request, the overhead over the curator, and the memory of idle connections.

    The overhead is that of fresh answers: stored ones come from a cache, which the curator does not have. It is also
    given as CPU time of server and client less that of the curator, because other work on the machine disturbs medians.
    """

    def ask(text, number, count, prepare=None):
        return ask_together(server, CONNECT, {"url": url_of(server), "sql": text, "prepare": prepare}, number, count)

    rate, slow = show("pg, stored, simple", [ask(sql, clients, requests) for _ in range(rounds)])
    show_bar("stored answers per second", rate, 300, at_least=True)
    show_bar("99 % of them, ms", slow, 50)
    show("pg, stored, prepared", [ask(sql, clients, requests, prepare=True) for _ in range(rounds)])
    show("pg, stored, one client", [ask(sql, 1, requests // 2) for _ in range(rounds)])
    alone = ask(FRESH, 1, requests // 4)
    show("pg, fresh, one client", [alone])
    own, own_cpu = ask_curator(server.policy, requests // 4)
    more = statistics.median(alone.times) - own
    cpu = (alone.server_cpu + alone.client_cpu) / len(alone.times) - own_cpu
    show_bar(f"overhead over Curator.ask, fresh ({1e3 * own:.1f} ms), median ms", 1e3 * more, 5)
    print(f"  the same as CPU time: {1e3 * cpu:.1f} ms, beside {1e3 * own_cpu:.1f} ms of Curator.ask")
    show_bar("memory of an idle connection, kB", idle_bytes(server) / 1e3, 100)


def ask_curator(path, requests):
    """Return the median time, and the mean CPU time, of a fresh answer of a curator in this process; show its bars."""
    policy = Policy.load(path)
    policy = replace(policy, data=policy.data.model_copy(update={"ledger": "own.sqlite"}))

    def ask(number):
        start = time.perf_counter()
        curator.ask(FRESH.format(number), epsilon="0.1").with_margins()
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


def idle_bytes(server):
    """Return by how much the server grows for each connection that is logged in, has asked, and does nothing more."""
    first = [connected(server) for _ in range(20)]
    before = server.resident_bytes()
    more = [connected(server) for _ in range(IDLE)]
    after = server.resident_bytes()
    for connection in (*first, *more):
        connection.close()
    return (after - before) / len(more)


def connected(server):
    connection = psycopg.connect(url_of(server))
    connection.execute("SELECT 1")
    connection.commit()
    return connection
