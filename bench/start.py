"""How long `import discreet` takes."""

import statistics
import subprocess
import sys

CODE = "import time; began = time.perf_counter(); import discreet; print(time.perf_counter() - began)"


def main():
    times = [float(subprocess.check_output([sys.executable, "-c", CODE])) for _ in range(9)]
    middle = statistics.median(times)
    verdict = "ok" if middle < 0.25 else "short of the bar"
    print(f"import discreet                   median {middle:6.3f} s       bar 0.25 s    {verdict}")
