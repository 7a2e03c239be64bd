"""Spark as it is distributed, in an environment of its own: `python -m bench.peers.spark` installs it.

Its server comes with it; it needs Java 17 or newer. What asks it is the client in this project's environment.
"""

from pathlib import Path

from bench.peers import running

PACKAGES = ["pyspark==4.2.*"]  # about 500 MB


def home():
    """Return the folder of the distribution, installed if it is not there."""
    python = running.environment("spark", PACKAGES)
    (found,) = Path(python).parent.parent.glob("lib/python*/site-packages/pyspark")
    return found.resolve()


if __name__ == "__main__":
    print(home())
