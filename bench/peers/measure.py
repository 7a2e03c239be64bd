"""What every script here does alike: it asks, and tells what that took and what came back, as JSON."""

import json
import resource
import sys
import time
from importlib.metadata import version
from pathlib import Path

EPSILON, DELTA = 1.0, 1e-7
GROUPS, ROWS = 5, 10
LOW, HIGH = 0.0, 500.0


def arguments():
    """Return the folder with the table, how many rows it has, and how often to ask."""
    folder, rows, times = sys.argv[1:4]
    return Path(folder), int(rows), int(times)


def tell(package, ask, times):
    """Ask so many times; `ask` returns the noisy number of rows of every city that is shown."""
    cpu, wall, counts = [], [], []
    for _ in range(times):
        began, started = _cpu(), time.perf_counter()
        found = ask()
        cpu.append(_cpu() - began)
        wall.append(time.perf_counter() - started)
        counts.append({str(city): float(count) for city, count in found})
    told = {"version": version(package), "cpu": cpu, "wall": wall, "peak": _peak(), "counts": counts}
    print(json.dumps(told))


def _cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak():
    """Return the most memory that this program had, in MB."""
    # Linux hands a new program the ru_maxrss of the one that started it; VmHWM begins anew.
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2  # in bytes on macOS
