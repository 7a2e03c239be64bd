"""Asks people through multi-freq-ldpy's protocols as a file of jobs says, and tells shares and seconds as JSON.

A job is {"protocol", "values", "size", "epsilon", "again"}: the values are an .npy of everybody's place, 0 to
size - 1; `again` is what RAPPOR's second noise makes of an unset and of a set bit.
"""

import json
import math
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
from multi_freq_ldpy.long_freq_est import L_SUE
from multi_freq_ldpy.pure_frequency_oracles import GRR, LH, SS, UE


def main():
    jobs = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps({"version": version("multi-freq-ldpy"), "told": [run(job) for job in jobs]}))


def run(job):
    """Return the shares of one survey and the seconds that clients and server took together."""
    client, server = PROTOCOLS[job["protocol"]](job["size"], float(job["epsilon"]), job["again"])
    people = np.load(job["values"]).tolist()
    client(people[0])  # the first call compiles
    began = time.perf_counter()
    shares = server([client(value) for value in people])
    return {"shares": np.asarray(shares).tolist(), "seconds": time.perf_counter() - began}


def direct(size, epsilon, _):
    return (
        lambda value: GRR.GRR_Client(value, size, epsilon),
        lambda reports: GRR.GRR_Aggregator_MI(reports, size, epsilon),
    )


def symmetric(size, epsilon, _):
    return (
        lambda value: UE.UE_Client(value, size, epsilon, False),  # noqa: FBT003 - its signature
        lambda reports: UE.UE_Aggregator_MI(reports, epsilon, optimal=False),
    )


def unary(size, epsilon, _):
    return lambda value: UE.UE_Client(value, size, epsilon), lambda reports: UE.UE_Aggregator_MI(reports, epsilon)


def hashing(size, epsilon, _):
    return (
        lambda value: LH.LH_Client(value, size, epsilon),
        lambda reports: LH.LH_Aggregator_MI(reports, size, epsilon),
    )


def subset(size, epsilon, _):
    return (
        lambda value: SS.SS_Client(value, size, epsilon),
        lambda reports: SS.SS_Aggregator_MI(reports, size, epsilon),
    )


def remembered(size, epsilon, again):
    """Return its RAPPOR, which is told what one report may lose rather than how noisy it is."""
    unset, shown = again
    kept = math.exp(epsilon / 2) / (math.exp(epsilon / 2) + 1)
    own, other = kept * shown + (1 - kept) * unset, (1 - kept) * shown + kept * unset
    once = math.log(own * (1 - other) / (other * (1 - own)))
    return (
        lambda value: L_SUE.L_SUE_Client(value, size, epsilon, once),
        lambda reports: L_SUE.L_SUE_Aggregator_MI(reports, epsilon, once),
    )


PROTOCOLS = {
    "GRR": direct,
    "SUE": symmetric,
    "OUE": unary,
    "OLH": hashing,
    "Subset": subset,
    "RAPPOR": remembered,
}
main()
