"""Runs mechanisms of diffprivlib on two data sets and writes the outputs; for its own environment, without discreet.

python exhibits_of_diffprivlib.py OUT.npz EXHIBIT=RUNS ...
"""

import sys

import numpy as np
from diffprivlib import tools
from diffprivlib.mechanisms import Laplace

SEED = 20240  # so that the exhibit is the same in every run


def laplace(data, runs):
    """A count by Laplace noise in doubles, at epsilon 1."""
    mechanism = Laplace(epsilon=1, delta=0, sensitivity=1, random_state=SEED + int(data))
    return [mechanism.randomise(float(data)) for _ in range(runs)]


def nanmean(data, runs):
    """A mean of a hundred known values beside nine hundred that are missing, at epsilon 1."""
    rows = np.concatenate([np.full(900, np.nan), np.zeros(99), [float(data)]])
    state = np.random.RandomState(SEED + int(data))
    return [tools.nanmean(rows, epsilon=1, bounds=(0, 1), random_state=state) for _ in range(runs)]


if __name__ == "__main__":
    outputs = {}
    for word in sys.argv[2:]:
        name, runs = word.split("=")
        for data in (0, 1):
            outputs[f"{name} {data}"] = np.array({"laplace": laplace, "nanmean": nanmean}[name](data, int(runs)))
    np.savez(sys.argv[1], **outputs)
