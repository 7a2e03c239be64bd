"""Property tests are the same in every run, however slow the machine: a failure is never a matter of luck."""

from hypothesis import settings

settings.register_profile("same", deadline=None, derandomize=True)
settings.load_profile("same")
