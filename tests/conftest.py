"""Property tests are the same in every run, however slow the machine: a failure is never a matter of luck."""

import os

# Before numpy is loaded: two workers whose arithmetic has two threads each wait for one another, fifty times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from hypothesis import settings

settings.register_profile("same", deadline=None, derandomize=True)
settings.load_profile("same")
