"""Start-up time of `import discreet`, `discreet --help`, and a first query on a small file."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 9
POLICY = """
[data]
name = "visits"
[budget]
epsilon = 1000
[tables.visits]
source = "visits.csv"
unit = "patient"
groups = 1
rows = 2
[tables.visits.columns]
patient = { type = "integer" }
ward = { type = "text", in = ["A", "B"] }
"""
SQL = "SELECT ward, COUNT(*) AS n FROM visits WHERE patient > {} GROUP BY ward"
PROGRAM = ("-c", "from discreet.cli import app; app()")


def main():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "policy.toml").write_text(POLICY)
        Path(folder, "visits.csv").write_text("patient,ward\n" + "".join(f"{i},{'AB'[i % 2]}\n" for i in range(900)))
        idle = [_run(folder, "-c", "pass") for _ in range(ROUNDS)]
        for words, bar, rounds in (
            ("import discreet", 0.25, [("-c", "import discreet")] * ROUNDS),
            ("discreet --help", 0.5, [(*PROGRAM, "--help")] * ROUNDS),
            ("discreet ask, a small file", 0.9, [_question(number) for number in range(ROUNDS)]),
        ):
            _run(folder, *rounds[0])  # once for the bytecode
            _tell(words, bar, [_run(folder, *round_) for round_ in rounds])
        print(f"\nOf these, Python itself: {statistics.median(wall for wall, _ in idle):.3f} s.")


def _question(number):
    return (*PROGRAM, "ask", "policy.toml", SQL.format(number), "--epsilon", "1/10")


def _run(folder, *words):
    """Run Python; return the seconds on the clock and those of the processor, which a busy machine changes less."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, began = os.times(), time.perf_counter()
    subprocess.run([sys.executable, *words], cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    seconds = time.perf_counter() - began
    return seconds, sum(after[2:4]) - sum(before[2:4])


def _tell(words, bar, rounds):
    wall, processor = (statistics.median(each) for each in zip(*rounds, strict=True))
    verdict = "ok" if wall < bar else "misses the target"
    print(f"{words:32}  median {wall:6.3f} s  (CPU {processor:5.3f} s)   target {bar:4.2f} s    {verdict}")
