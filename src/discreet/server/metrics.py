"""Counters of a service, for its owner only: how often it answered, refused or failed."""

import time
from collections import Counter
from threading import Lock

from discreet.server.executions import Executions
from discreet.server.release_clock import ReleaseClock


class Metrics:
    """Counts outcomes of requests, and shows them in Prometheus' text format.

    >>> from discreet.ledger_sqlite import memory_ledger
    >>> from discreet.kernel.loss import Budget
    >>> from discreet.server.release_clock import TimedLedger
    >>> clock = ReleaseClock(tick=0, limit=None)
    >>> executions = Executions(clock, TimedLedger(memory_ledger(name="demo", budget=Budget(1))))
    >>> metrics = Metrics(clock, executions)
    >>> metrics.count("answered")
    >>> print(metrics.text().splitlines()[2])
    discreet_questions_total{outcome="answered"} 1
    >>> executions.close()
    """

    def __init__(self, clock: ReleaseClock, executions: Executions) -> None:
        self._clock, self._executions = clock, executions
        self._outcomes: Counter[str] = Counter()
        self._lock, self._start = Lock(), time.monotonic()

    def count(self, outcome: str) -> None:
        """Count the outcome of a question."""
        with self._lock:
            self._outcomes[outcome] += 1

    def text(self) -> str:
        """Return all counters."""
        with self._lock:
            outcomes = sorted(self._outcomes.items())
        lines = ["# HELP discreet_questions_total Questions by outcome.", "# TYPE discreet_questions_total counter"]
        lines += [f'discreet_questions_total{{outcome="{outcome}"}} {count}' for outcome, count in outcomes]
        gauges = {
            "discreet_waiting": ("Questions that wait for their turn.", self._executions.turns.waiting),
            "discreet_overruns": ("Executions beyond the limit of strict mode.", self._clock.overruns),
            "discreet_uptime_seconds": ("Seconds since the start.", round(time.monotonic() - self._start)),
        }
        for name, (help_text, value) in gauges.items():
            lines += [f"# HELP {name} {help_text}", f"# TYPE {name} gauge", f"{name} {value}"]
        return "\n".join(lines) + "\n"
