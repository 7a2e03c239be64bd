"""A change anywhere in the trusted base is noticed by its tests, except for changes that are listed with a reason."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = 60


def test_a_random_sample_of_mutants_is_noticed():
    """Another sample in every run; `make mutants` tries all of them."""
    command = [sys.executable, "tools/mutate.py", "--sample", str(SAMPLE)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
