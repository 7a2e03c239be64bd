"""Asking the same again and again: a curator remembers, so each time is about another version of the same data."""

import itertools
from dataclasses import replace

from discreet.curator.curator import Curator


def asking_anew(curator):
    """Return a function that asks as `curator.ask` does, with fresh noise and a charge every time."""
    numbers = itertools.count()

    def ask(sql, **more):
        data = curator.policy.data.model_copy(update={"version": f"version {next(numbers)}"})
        return Curator(replace(curator.policy, data=data), curator._engine, curator.ledger).ask(sql, **more)

    return ask
