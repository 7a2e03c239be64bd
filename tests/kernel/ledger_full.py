"""The disk fills up under a ledger: python ledger_full.py PATH limit | tmpfs

`limit` caps the size of files; `tmpfs` expects to run where it may mount one.
"""

import resource
import subprocess
import sys
from pathlib import Path

from discreet.kernel.errors import LedgerError
from discreet.kernel.event import Event
from discreet.kernel.loss import Budget, Loss
from discreet.ledger_admin.verify import verify_ledger
from discreet.ledger_sqlite import create_ledger, open_ledger

EVENT = Event(mechanism="{}", sensitivity="{}", question="count")
CENT = Loss("1/100")


def fill(path):
    """Charge until it fails; return the answers that were stored."""
    stored = []
    with open_ledger(path, name="demo") as ledger:
        try:
            for i in range(10_000):
                receipt = ledger.charge(CENT, EVENT, str(i))
                ledger.settle(receipt, b"%08d" % i * 100)
                stored.append(i)
        except LedgerError as error:
            print(error)
        else:
            sys.exit("the disk never filled up")
        for _ in range(3):
            try:
                ledger.charge(CENT, EVENT)
            except LedgerError as error:
                assert "an earlier write failed" in str(error)  # noqa: PT017 - a script, not a test
            else:
                sys.exit("a stopped ledger charged")
    return stored


def check(path, stored):
    with open_ledger(path, name="demo") as ledger:
        verify_ledger(ledger)
        assert len(stored) <= ledger.spent().epsilon / CENT.epsilon <= len(stored) + 1
        for i in stored:
            assert ledger.charge(CENT, EVENT, str(i)).answer == b"%08d" % i * 100
        ledger.settle(ledger.charge(CENT, EVENT, "afterwards"), b"fine")
        verify_ledger(ledger)


def with_limit(path):
    create_ledger(path, name="demo", budget=Budget(1000)).close()
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    stored = fill(path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    check(path, stored)


def on_tmpfs(folder):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=True)
    path, ballast = folder / "ledger.sqlite", folder / "ballast"
    create_ledger(path, name="demo", budget=Budget(1000)).close()
    ballast.write_bytes(b"x" * 400_000)
    stored = fill(path)
    ballast.unlink()
    check(path, stored)


if __name__ == "__main__":
    {"limit": with_limit, "tmpfs": on_tmpfs}[sys.argv[2]](Path(sys.argv[1]))
    print("whole")
