"""The local model compared with pure-ldp and multi-freq-ldpy: a million people, 128 values, epsilon 1."""

import json
import math
import time
from pathlib import Path

import numpy as np

from bench.peers import running
from discreet import local

PLACE = Path(".bench")
PEOPLE, SIZE, EPSILON = 1_000_000, 128, 1
FEWER = 100_000  # whom a peer is asked for where a million would take it minutes: it asks one after the other
RUNS, TIMES = 30, 3  # our error is of so many surveys together, our time the best of so many
PATIENCE = 120
SECONDS, APART = 3, 0.05  # the bars: the time of each survey, and how far its error may be from theory
AGAIN = (1 / 4, 3 / 4)  # how likely a report of RAPPOR shows a bit that is kept unset, and one that is kept set
OURS = {
    "GRR": local.GRR,
    "SUE": local.SUE,
    "OUE": local.OUE,
    "OLH": local.OLH,
    "Hadamard": local.Hadamard,
    "Subset": local.SubsetSelection,
    "RAPPOR": lambda size, epsilon: local.RAPPOR(size, epsilon, noise=AGAIN),
}
THEIRS = {
    "pure-ldp": {"GRR": PEOPLE, "SUE": FEWER, "OUE": FEWER, "OLH": FEWER, "Hadamard": FEWER},
    "multi-freq-ldpy": {"GRR": PEOPLE, "SUE": FEWER, "OUE": FEWER, "OLH": FEWER, "Subset": FEWER, "RAPPOR": FEWER},
}
NOTES = """
error: root mean square error of the shares; ours from thirty surveys (sampling error 1 %), theirs from one (6 %)
multi-freq-ldpy truncates shares at 0 and normalises them: compared with our projection onto the simplex, same people
pure-ldp's RAPPOR is not measured: it never clears a bit of the true value, so reports rule out other values for certain
"""


def main():
    PLACE.mkdir(exist_ok=True)
    for people in (PEOPLE, FEWER):
        np.save(file_of(people), answers(people))
    print(f"{'':30}{'people':>10}{'seconds':>9}{'a million':>11}{'error':>10}{'theory':>10}{'ratio':>7}")
    for protocol in OURS:
        seconds, error = asked(protocol, PEOPLE, "none")
        late = "" if seconds < SECONDS else "  SLOW"
        off = "" if abs(error / theory(protocol, PEOPLE) - 1) < APART else "  OFF"
        print(line(protocol, "discreet", PEOPLE, seconds, error) + late + off, flush=True)
        for peer, known in THEIRS.items():
            if protocol in known:
                beside(peer, protocol, known[protocol])
    print(NOTES.rstrip())


def asked(protocol, people, consistency):
    """Return the seconds and the error of surveys of ours."""
    oracle, values = OURS[protocol](SIZE, EPSILON), np.load(file_of(people))
    seconds, errors = [], []
    for _ in range(RUNS):
        began = time.perf_counter()
        shares, _ = oracle.estimate(oracle.perturb(values), consistency=consistency)
        seconds.append(time.perf_counter() - began)
        errors.append(error_of(shares, values))
    return min(seconds[:TIMES]), math.sqrt(np.mean(np.square(errors)))


def beside(peer, protocol, people):
    """Print a survey of a peer's, and ours in its manner."""
    jobs = PLACE / "local.json"
    job = {"protocol": protocol, "values": str(file_of(people)), "size": SIZE, "epsilon": EPSILON, "again": AGAIN}
    jobs.write_text(json.dumps([job]))
    try:
        (told,) = running.run_jobs(peer, jobs, PATIENCE)
    except running.NotMeasuredError as reason:
        print(f"{protocol:10}{peer:20}{people:10,}  not measured: {reason}", flush=True)
        return
    error = error_of(np.array(told["shares"]), np.load(file_of(people)))
    print(line(protocol, peer, people, told["seconds"], error), flush=True)
    if peer == "multi-freq-ldpy":
        print(line(protocol, "discreet, nearest", people, *asked(protocol, people, "simplex")), flush=True)


def line(protocol, who, people, seconds, error):
    expected = theory(protocol, people)
    scaled = seconds * PEOPLE / people
    numbers = f"{people:10,}{seconds:9.3f}{scaled:11.2f}{error:10.5f}{expected:10.5f}{error / expected:7.3f}"
    return f"{protocol:10}{who:20}{numbers}"


def theory(protocol, people):
    """Return the error if a report supports its owner's value at one rate and each other at another."""
    own, other = RATES[protocol](math.exp(EPSILON))
    shares = shares_of(np.load(file_of(people)))
    variances = shares * own * (1 - own) + (1 - shares) * other * (1 - other)
    return math.sqrt(variances.mean() / people) / (own - other)


def symmetric_rates(odds):
    own = math.sqrt(odds) / (math.sqrt(odds) + 1)
    return own, 1 - own


def hashing_rates(odds):
    """Return the rates of local hashing onto as many values as is best (Wang, Blocki, Li, Jha 2017)."""
    buckets = round(odds) + 1
    return odds / (odds + buckets - 1), 1 / buckets


def subset_rates(odds):
    """Return the rates of subsets of the best size (Ye, Barg 2018)."""
    size = round(SIZE / (odds + 1))
    own = size * odds / (size * odds + SIZE - size)
    return own, (own * (size - 1) + (1 - own) * size) / (SIZE - 1)


def remembered_rates(odds):
    unset, shown = AGAIN
    return tuple(rate * shown + (1 - rate) * unset for rate in symmetric_rates(odds))


RATES = {
    "GRR": lambda odds: (odds / (odds + SIZE - 1), 1 / (odds + SIZE - 1)),
    "SUE": symmetric_rates,
    "OUE": lambda odds: (1 / 2, 1 / (odds + 1)),
    "OLH": hashing_rates,
    "Hadamard": lambda odds: (odds / (odds + 1), 1 / 2),
    "Subset": subset_rates,
    "RAPPOR": remembered_rates,
}


def answers(people):
    """Draw everybody's place: a few values are frequent, most are rare."""
    shares = 1 / np.arange(1, SIZE + 1)
    return np.random.default_rng(128).choice(SIZE, people, p=shares / shares.sum())


def file_of(people):
    return PLACE / f"answers_{people}.npy"


def shares_of(values):
    return np.bincount(values, minlength=SIZE) / len(values)


def error_of(shares, values):
    return math.sqrt(np.mean((shares - shares_of(values)) ** 2))
