"""`discreet serve` in a process of its own, for tests that kill it, limit it or measure it."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx

POLICY = """
[data]
name = "clinic"
[budget]
epsilon = {epsilon}
bounds_report = 0
[budget.analysts]
{analysts}
[server]
tick = 0
requests_per_minute = 1000000
failures_per_minute = 1000000
[tables.visits]
source = "visits.csv"
unit = "patient"
groups = 1
rows = 2
[tables.visits.columns]
patient = {{ type = "integer" }}
cost = {{ type = "integer", between = [0, 1000] }}
"""
COMMAND = [sys.executable, "-m", "discreet"]


def question(number, epsilon="1/100", **more):
    """Return one of many different questions."""
    return {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE cost > {number}", "epsilon": epsilon, **more}


def write_clinic(folder, analysts, epsilon=1000):
    """Write data and a policy, and return tokens by name."""
    rows = "".join(f"{n},{n * 37 % 1000}\n" for n in range(500))
    (folder / "visits.csv").write_text("patient,cost\n" + rows)
    limits = "\n".join(f"{name} = {{ epsilon = {epsilon} }}" for name in analysts)
    policy = folder / "policy.toml"
    policy.write_text(POLICY.format(epsilon=epsilon, analysts=limits))
    # In this process: a process for each of 64 tokens would take a minute.
    from discreet.curator.ledger_location import open_or_create_ledger
    from discreet.policy import Policy
    from discreet.server.people import People, Role

    declared = Policy.load(policy)
    with open_or_create_ledger(declared) as ledger:
        return {name: People(declared).add(ledger, name, Role.ANALYST).token for name in analysts}


class ServerProcess:
    """A running server; use it as a context manager."""

    def __init__(self, folder, *options, file_blocks=None):
        """Start it; `file_blocks` limits the size of every file that it writes, in units of 1024 bytes."""
        command = [*COMMAND, "serve", str(folder / "policy.toml"), "--http", "0", *options]
        if file_blocks is not None:
            command = ["bash", "-c", f'ulimit -f {file_blocks}; exec "$@"', "limited", *command]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder)
        shown, found = "", None
        for line in self.process.stderr:  # others may come first
            shown += line
            if found := re.search(r"^Serving .*?(http://\S+?:(\d+))", line):
                break
        assert found, shown
        self.url, self.port = found[1], int(found[2])
        # What nobody reads fills the pipe: a server that has logged 64 kB would wait for ever.
        self._reader = threading.Thread(target=self._read_to_the_end, daemon=True)
        self._reader.start()

    def _read_to_the_end(self):
        for _ in self.process.stderr:
            pass

    def client(self, token):
        """Return a client with a token."""
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=120)

    @property
    def resident_bytes(self):
        """The memory that the process occupies."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def stop(self, number=signal.SIGTERM):
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(120)
        self._close()
        return code

    def _close(self):
        self._reader.join(10)
        self.process.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop(signal.SIGKILL)
        self._close()
