"""Run all benchmarks (`make bench`), or one of them: `python -m bench scale 1000000`."""

import sys
from importlib import import_module

from bench import (
    advice,
    anonymity,
    attacks,
    audit,
    boosting,
    bounds,
    learning,
    ledger,
    local,
    membership,
    noise,
    publish,
    publish_synthesis,
    quantiles,
    queries,
    selection,
    server,
    start,
)

PARTS = (
    noise,
    ledger,
    start,
    learning,
    boosting,
    local,
    anonymity,
    queries,
    quantiles,
    bounds,
    advice,
    selection,
    attacks,
    membership,
    audit,
    publish,
    publish_synthesis,
    server,
)

for part in [import_module(f"bench.{sys.argv[1]}")] if sys.argv[1:] else PARTS:
    print(f"\n{part.__doc__.strip().splitlines()[0]}\n")
    part.main(*sys.argv[2:])
