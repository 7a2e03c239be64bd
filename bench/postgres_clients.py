"""The PostgreSQL interface of a running server: stored and fresh answers, its overhead, and idle connections.

Clients are processes that speak the protocol by libpq, so that what they take themselves is small, and told apart.
"""

import json
import statistics
import subprocess
import sys
import time
from dataclasses import replace

import psycopg

import discreet as dc
from discreet.policy import Policy

IDLE = 70  # connections of one person, who may have 100
CLIENT = """
import json, sys, time
import psycopg
url, sql, count, prepared = json.loads(sys.argv[1])
with psycopg.connect(url, autocommit=True) as connection:
    for _ in range(3):
        connection.execute(sql, prepare=prepared)
    print("ready", flush=True)
    sys.stdin.readline()
    start, times = time.process_time(), []
    for _ in range(count):
        begin = time.perf_counter()
        connection.execute(sql, prepare=prepared).fetchall()
        times.append(time.perf_counter() - begin)
print(json.dumps([times, time.process_time() - start]))
"""


def url_of(server):
    return f"postgresql://ana:{server.token}@127.0.0.1:{server.pg}/?sslmode=disable&options=-cepsilon%3D0.1"


def cpu_seconds(process):
    with open(f"/proc/{process.pid}/stat") as file:  # noqa: PTH123 - of the system
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def measure(server, sql, clients, requests):
    """Print one line for each kind of request, the overhead over the curator, and the memory of idle connections."""
    for name, is_prepared in (("simple", None), ("prepared", True)):
        show(f"pg, {name}", *ask_many(server, sql, clients, requests, is_prepared))
    alone = ask_many(server, sql, 1, requests, None)
    show("pg, one client", *alone)
    own = ask_curator(server.policy, sql, requests)
    more = 1e3 * (statistics.median(alone[0]) - own)
    print(f"overhead over Curator.ask: median {more:.1f} ms, of {1e3 * own:.1f} ms for a stored answer")
    print(f"memory of an idle connection: {idle_bytes(server) / 1e3:,.0f} kB")


def ask_curator(path, sql, requests):
    """Return the median time of a stored answer from a curator in this process."""
    memory = Policy.load(path)
    memory = replace(memory, data=memory.data.model_copy(update={"ledger": ":memory:"}))
    times = []
    with dc.open(memory) as curator:
        for _ in range(requests):
            start = time.perf_counter()
            curator.ask(sql, epsilon="0.1").with_margins()
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def show(kind, times, seconds, server_cpu, client_cpu):
    times = sorted(times)
    middle, slow = times[len(times) // 2], times[int(len(times) * 0.99)]
    each = 1e3 / len(times)
    print(
        f"{kind:<22} {len(times) / seconds:>6,.0f}/s   median {1e3 * middle:>5.1f} ms   99 % {1e3 * slow:>5.1f} ms   "
        f"CPU {server_cpu * each:.1f} ms here, {client_cpu * each:.1f} ms in the client"
    )


def ask_many(server, sql, clients, requests, prepared):
    """Ask the same question from several processes; return the times, and the CPU time of the server and clients."""
    arguments = json.dumps([url_of(server), sql, requests // clients, prepared])
    started = [
        subprocess.Popen(
            [sys.executable, "-c", CLIENT, arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(clients)
    ]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    start, before = time.perf_counter(), cpu_seconds(server.process)
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    found = [json.loads(process.communicate()[0]) for process in started]
    seconds, cpu = time.perf_counter() - start, cpu_seconds(server.process) - before
    return [each for times, _ in found for each in times], seconds, cpu, sum(cpu for _, cpu in found)


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
