"""Asks people through pure-ldp's protocols as a file of jobs says, and tells shares and seconds as JSON.

A job is {"protocol", "values", "size", "epsilon"}: the values are an .npy of everybody's place, 0 to size - 1.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
from pure_ldp import frequency_oracles as pure


def main():
    jobs = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps({"version": version("pure-ldp"), "told": [run(job) for job in jobs]}))


def run(job):
    """Return the shares of one survey and the seconds that clients and server took together."""
    client, server = PROTOCOLS[job["protocol"]](job["epsilon"], job["size"])
    people = (np.load(job["values"]) + 1).tolist()  # its values begin at 1
    began = time.perf_counter()
    for value in people:
        server.aggregate(client.privatise(value))
    counts = server.estimate_all(range(1, job["size"] + 1), suppress_warnings=True)
    seconds = time.perf_counter() - began
    return {"shares": (np.asarray(counts) / len(people)).tolist(), "seconds": seconds}


def direct(epsilon, size):
    return pure.DEClient(epsilon, size), pure.DEServer(epsilon, size)


def symmetric(epsilon, size):
    return pure.UEClient(epsilon, size), pure.UEServer(epsilon, size)


def unary(epsilon, size):
    return pure.UEClient(epsilon, size, use_oue=True), pure.UEServer(epsilon, size, use_oue=True)


def hashing(epsilon, size):
    return pure.LHClient(epsilon, size, use_olh=True), pure.LHServer(epsilon, size, use_olh=True)


def hadamard(epsilon, size):
    server = pure.HadamardResponseServer(epsilon, size)
    return pure.HadamardResponseClient(epsilon, size, server.get_hash_funcs()), server


PROTOCOLS = {"GRR": direct, "SUE": symmetric, "OUE": unary, "OLH": hashing, "Hadamard": hadamard}
main()
