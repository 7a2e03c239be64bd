"""Clients in processes of their own, so that what they take is told apart from what the server takes."""

import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

# Reads its arguments, connects, asks a few times, says that it is ready, and waits for the start.
PROGRAM = """
import json, sys, time
arguments = json.loads(sys.argv[1])
{connect}
for number in range(-10, 0):
    ask(number)
print("ready", flush=True)
sys.stdin.readline()
start, times = time.process_time(), []
for number in range(arguments["first"], arguments["first"] + arguments["count"]):
    begin = time.perf_counter()
    ask(number)
    times.append(time.perf_counter() - begin)
print(json.dumps([times, time.process_time() - start]))
"""


@dataclass(frozen=True)
class Round:
    """What clients saw when they asked at the same time: the time of each request, in all, and the CPU time."""

    times: list[float]
    seconds: float
    server_cpu: float
    client_cpu: float

    @property
    def rate(self):
        """Requests per second of wall time."""
        return len(self.times) / self.seconds

    def percentile(self, share):
        """Return the time in ms that this share of the requests did not exceed."""
        return 1e3 * sorted(self.times)[min(len(self.times) - 1, int(len(self.times) * share))]

    def cpu_each(self, side):
        """Return the CPU time in ms of one request, on one side."""
        return 1e3 * getattr(self, f"{side}_cpu") / len(self.times)


def cpu_seconds(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask_together(server, connect, arguments, clients, requests):
    """Start clients, which define `ask(number)` in `connect`, let them begin together, and return what they saw."""
    each = max(1, requests // clients)
    started = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                PROGRAM.format(connect=connect),
                json.dumps({**arguments, "first": first * each, "count": each}),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for first in range(clients)
    ]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    start, before = time.perf_counter(), cpu_seconds(server.process)
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    found = [json.loads(process.communicate()[0]) for process in started]
    seconds, cpu = time.perf_counter() - start, cpu_seconds(server.process) - before
    return Round([each for times, _ in found for each in times], seconds, cpu, sum(cpu for _, cpu in found))


def show(kind, rounds):
    """Print one line, with the median of the rounds, and return the median rate and 99th percentile."""
    rates = [each.rate for each in rounds]
    middle = {
        name: statistics.median(numbers)
        for name, numbers in {
            "rate": rates,
            "p50": [each.percentile(0.5) for each in rounds],
            "p99": [each.percentile(0.99) for each in rounds],
            "server": [each.cpu_each("server") for each in rounds],
            "client": [each.cpu_each("client") for each in rounds],
        }.items()
    }
    print(
        f"{kind:<24} {middle['rate']:>6,.0f}/s ({min(rates):,.0f} to {max(rates):,.0f})   median "
        f"{middle['p50']:>5.1f} ms   99 % {middle['p99']:>5.1f} ms   CPU {middle['server']:.2f} ms in the server, "
        f"{middle['client']:.2f} ms in the client",
        flush=True,
    )
    return middle["rate"], middle["p99"]


def show_bar(what, value, bar, *, at_least=False):
    """Say whether a bar is met."""
    is_met = value >= bar if at_least else value <= bar
    sign = "at least" if at_least else "at most"
    print(f"  {what}: {value:,.1f} ({sign} {bar:g}: {'met' if is_met else 'missed'})", flush=True)


def show_overhead(alone, own):
    """Say how much longer than in a curator, with its median and its CPU time, fresh answers took for one client.

    Stored ones come from a cache, which the curator does not have. The CPU time is that of server and client: other
    work on the machine disturbs medians.
    """
    own_median, own_cpu = own
    more = statistics.median(alone.times) - own_median
    cpu = (alone.server_cpu + alone.client_cpu) / len(alone.times) - own_cpu
    show_bar(f"overhead over Curator.ask, fresh ({1e3 * own_median:.1f} ms), median ms", 1e3 * more, 5)
    print(f"  the same as CPU time: {1e3 * cpu:.1f} ms, beside {1e3 * own_cpu:.1f} ms of Curator.ask", flush=True)
