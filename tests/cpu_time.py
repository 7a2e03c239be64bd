"""A quick test stays quick: one without a marker fails when it takes more than a second of CPU time.

CPU time is what the process and the processes that it started and waited for have used, so a busy machine changes it
little; what little it does is divided out by a yardstick. A test that was too slow is run again and judged by the
second time: imports and tables that are computed once are no fault of the test that happens to need them first.
Fixtures that several tests share are counted apart, and a server that runs on its own (PostgreSQL) is added to the
total when it stops.
"""

import os
import time

import pytest

RULE = 0.5  # CPU seconds that a test of `make test` should take at most
LIMIT = 1.0  # and those at which it fails
SHARED_LIMIT = 3.0  # for a fixture that several tests share
MARKERS = ("long", "slow")
YARDSTICK = 0.02  # CPU seconds of `_yardstick` on the machine for which the limits were set, when nothing else runs


def used() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def of_process(pid: int) -> float:
    """Return the CPU seconds of a running process and of its children that have ended; 0 where nothing can tell."""
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123 - a path of the kernel's
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _yardstick() -> float:
    """Return the CPU seconds of a fixed piece of work."""
    start = time.process_time()
    total = 0
    for number in range(600_000):
        total += number & 7
    return time.process_time() - start


def slowness() -> float:
    """Return how many times slower than it should be the machine is at this moment; never below 1."""
    return max(1.0, min(_yardstick() for _ in range(3)) / YARDSTICK)


def _again(item, otherwise: float) -> float:
    """Run a test once more and return its CPU seconds; those of the first time if it cannot be repeated."""
    start = used()
    try:
        item.runtest()
    except (Exception, pytest.fail.Exception, pytest.skip.Exception):  # noqa: BLE001 - whatever a test raises
        return otherwise
    return used() - start


class CpuTime:
    """Measure every test, fail the slow ones, and report the total."""

    def __init__(self) -> None:
        self.shared = 0.0  # of fixtures that several tests share, since the running test began
        self.quick = False  # whether the running test has no marker that lets it be slow
        self.apart = 0.0  # of servers that are not children of this process
        self.slowest: list[tuple[float, str]] = []
        self.workers = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        start, before = used(), self.shared
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                own = used() - start - (self.shared - before)  # a fixture that it needs has its own limit
                self.shared += own
                if self.quick and own > SHARED_LIMIT and own > SHARED_LIMIT * slowness():
                    pytest.fail(
                        f"fixture {fixturedef.argname} took {own:.1f} CPU s, at most {SHARED_LIMIT} are allowed"
                    )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        item.stash[STARTED] = used()
        self.shared = 0.0
        self.quick = not any(item.get_closest_marker(name) for name in MARKERS)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item):
        own = used() - item.stash[STARTED] - self.shared
        if self.quick and own > LIMIT:
            own = min(own, _again(item, own))
        self.slowest = sorted([*self.slowest, (own, item.nodeid)], reverse=True)[:10]
        try:
            return (yield)
        finally:
            if self.quick and own > LIMIT and own > LIMIT * slowness():
                pytest.fail(
                    f"took {own:.2f} CPU s: a test of `make test` takes {RULE} at most and fails at {LIMIT}. "
                    "Make it quicker, or mark it with @pytest.mark.long (run by `make test-all`).",
                    pytrace=False,
                )

    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["cpu"] = used() + self.apart
            session.config.workeroutput["slowest"] = self.slowest

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        output = getattr(node, "workeroutput", {})
        self.workers += output.get("cpu", 0.0)
        self.slowest += [tuple(pair) for pair in output.get("slowest", [])]

    def pytest_terminal_summary(self, terminalreporter):
        total = time.process_time() + self.workers if self.workers else used() + self.apart
        terminalreporter.write_line(f"CPU time: {total:.0f} s; the slowest tests:")
        for seconds, name in sorted(self.slowest, reverse=True)[:10]:
            terminalreporter.write_line(f"  {seconds:5.2f} s  {name}")


STARTED = pytest.StashKey[float]()
