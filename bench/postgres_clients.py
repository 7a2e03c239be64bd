"""The PostgreSQL interface of a running server: stored and fresh answers, its overhead, and idle connections.

Clients are processes that speak the protocol by libpq, so that what they take themselves is small, and told apart.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace

import psycopg

import discreet as dc
from discreet.policy import Policy

FRESH = "SELECT COUNT(*) AS n FROM people WHERE income > {}"
IDLE = 70  # connections of one person, who may have 100
CLIENT = """
import json, sys, time
import psycopg
url, sql, count, prepared = json.loads(sys.argv[1])
with psycopg.connect(url, autocommit=True) as connection:
    for number in range(3):
        connection.execute(sql.format(-number), prepare=prepared)
    print("ready", flush=True)
    sys.stdin.readline()
    start, times = time.process_time(), []
    for number in range(count):
        begin = time.perf_counter()
        connection.execute(sql.format(number), prepare=prepared).fetchall()
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
    """Print one line for each kind of request, the overhead over the curator, and the memory of idle connections.

    The overhead is that of fresh answers: stored ones come from a cache, which the curator does not have. It is also
    given as CPU time of server and client less that of the curator, because other work on the machine disturbs medians.
    """
    for name, is_prepared in (("simple", None), ("prepared", True)):
        show(f"pg, {name}", *ask_many(server, sql, clients, requests, is_prepared))
    show("pg, one client", *ask_many(server, sql, 1, requests, None))
    alone = ask_many(server, FRESH, 1, requests // 4, None)
    show("pg, fresh, one client", *alone)
    own, own_cpu = ask_curator(server.policy, requests // 4)
    more, cpu = statistics.median(alone[0]) - own, (alone[2] + alone[3]) / len(alone[0]) - own_cpu
    print(f"overhead over Curator.ask, fresh: median {1e3 * more:.1f} ms of {1e3 * own:.1f}; CPU {1e3 * cpu:.1f} ms")
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    print(f"memory of an idle connection: {idle_bytes(server) / 1e3:,.0f} kB")


def ask_curator(path, requests):
    """Return the median time, and the mean CPU time, of a fresh answer from a curator in this process."""
    policy = Policy.load(path)
    policy = replace(policy, data=policy.data.model_copy(update={"ledger": "own.sqlite"}))
    times = []
    with dc.open(policy) as curator:
        for number in range(-3, requests):
            if number == 0:
                cpu = time.process_time()
            start = time.perf_counter()
            curator.ask(FRESH.format(number), epsilon="0.1").with_margins()
            times.append(time.perf_counter() - start)
        cpu = time.process_time() - cpu
    return statistics.median(times[3:]), cpu / requests


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
