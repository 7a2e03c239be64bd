"""Slow evidence for the noise: large samples, time, and forks under load."""

import importlib.util
import os
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from discreet.kernel import noise
from discreet.kernel.mechanism import Gaussian, Laplace

pytestmark = pytest.mark.slow

BESIDE = Path(__file__).resolve().parent.parent / "kernel" / "noise"
_spec = importlib.util.spec_from_file_location("noise_reference_slow", BESIDE / "noise_reference.py")
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)

MECHANISM = {"laplace": Laplace, "gaussian": Gaussian}
LAWS = pytest.mark.parametrize("name", ["laplace", "gaussian"])


@LAWS
@pytest.mark.parametrize("scale", [0.5, 3, 10, 11.9, 12.1, 31.9, 32.1, 100, 1000, 10**6])
def test_a_hundred_million_draws_accept_the_distribution_and_reject_a_scale_off_by_one_percent(name, scale):
    cdf = reference.CDF[name]
    edges = reference.edges_of(cdf(scale), scale, bins=150)
    counts = np.zeros(len(edges) + 1, np.int64)
    zeros = np.zeros(1_000_000, np.int64)
    for _ in range(100):
        counts += reference.counts_of(MECHANISM[name](scale).perturb(zeros), edges)
    assert counts.sum() == 10**8
    p = {
        factor: reference.chi_square(counts, np.diff(np.concatenate(([0.0], cdf(scale * factor)(edges), [1.0]))))
        for factor in (1, 0.99, 1.01)
    }
    print(name, scale, p)
    assert p[1] > reference.SURELY
    assert p[0.99] < reference.SURELY
    assert p[1.01] < reference.SURELY


@LAWS
@pytest.mark.parametrize("scale", [3, 13, 40, 1000])
def test_a_million_short_vectors_have_the_distribution_in_every_coordinate(name, scale):
    scale = Fraction(scale)
    sampler = getattr(noise, f"{name}_sampler")(scale.numerator, scale.denominator)
    cdf = reference.CDF[name](float(scale))
    edges = reference.edges_of(cdf, float(scale))
    places = {}
    for size in (1, 2, 3, 5, 7):
        drawn = np.array([sampler.draw(size) for _ in range(200_000)])
        places[size] = [reference.p_value(drawn[:, place], cdf, edges) for place in range(size)]
    assert min(p for listed in places.values() for p in listed) > reference.SURELY


def rank_correlation(draw, truth=0, count=50_000):
    """Return the rank correlation of a draw's time with the size of the noise in what it returned."""
    seconds, values = np.empty(count), np.empty(count)
    clock = time.perf_counter_ns
    for i in range(count):
        start = clock()
        value = draw()
        seconds[i] = clock() - start
        values[i] = abs(float(value) - truth)
    return float(stats.spearmanr(values, seconds).statistic)


@LAWS
@pytest.mark.parametrize("scale", [1, 10, 50, 1000, 10**6, 10**12, 6 * 10**17, 10**25])
@pytest.mark.parametrize("how", ["one", "far", "vector"])
def test_running_time_discloses_nothing_about_the_noise(name, scale, how):
    # Python keeps the integers from -5 to 256 and makes all others: around 0, the integer that is shown takes its time.
    truth = {"one": 128 if scale <= 10 else 0, "far": 10**6, "vector": 0}[how]
    mechanism, one = MECHANISM[name](scale), np.zeros(1, np.int64)
    sampler = getattr(noise, f"{name}_sampler")(scale, 1)
    draws = {
        "one": lambda: mechanism.perturb(truth),
        "far": lambda: mechanism.perturb(truth),
        "vector": lambda: mechanism.perturb(one)[0] if scale < 10**17 else sampler.draw(1)[0],
    }
    # Other work on the machine adds noise of its own, never a correlation: the least of three counts.
    found = []
    for _ in range(3):
        found.append(rank_correlation(draws[how], truth))
        if abs(found[-1]) <= 0.05:
            break
    print(name, scale, how, found)
    assert min(map(abs, found)) <= 0.05


@LAWS
@pytest.mark.parametrize("scale", [10, 1000, 10**12, 10**18])
def test_the_largest_single_draws_take_as_long_as_others(name, scale):
    # Ranks would not see a thousandth that is slow.
    mechanism, count = MECHANISM[name](scale), 200_000
    seconds, values = np.empty(count), np.empty(count)
    for i in range(count):
        start = time.perf_counter_ns()
        value = mechanism.perturb(0)
        seconds[i] = time.perf_counter_ns() - start
        values[i] = abs(float(value))
    far = values > np.quantile(values, 0.999)
    ratio = float(np.median(seconds[far]) / np.median(seconds[~far]))
    print(name, scale, ratio)
    assert 0.8 < ratio < 1.25


@pytest.mark.parametrize(
    ("name", "scale"),
    [("laplace", s) for s in (0.3, 1, 5, 50, 1000, 10**6)] + [("gaussian", s) for s in (0.3, 1, 5, 50, 1000, 10**6)],
)
def test_a_million_draws_agree_with_those_of_opendp(name, scale):
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    distance = dp.l1_distance if name == "laplace" else dp.l2_distance
    make = dp.m.make_laplace if name == "laplace" else dp.m.make_gaussian
    space = dp.vector_domain(dp.atom_domain(T="i64")), distance(T="i64")
    theirs = make(*space, scale=float(scale))([0] * 1_000_000)
    edges = reference.edges_of(reference.CDF[name](scale), scale)
    zeros = np.zeros(10_000_000, np.int64)
    ours = {factor: MECHANISM[name](scale * factor).perturb(zeros) for factor in (1, 0.95, 1.05)}
    p = {factor: reference.p_value_of_two(theirs, sample, edges) for factor, sample in ours.items()}
    print(name, scale, p)
    assert p[1] > reference.SURELY
    assert p[0.95] < reference.SURELY
    assert p[1.05] < reference.SURELY


UNDER_LOAD = """
import os, sys, threading, time
import numpy as np
from discreet.kernel.mechanism import Laplace
from discreet.kernel.noise.keystream import thread_keystream

stop = False
def load():
    while not stop:
        Laplace(1000).perturb(np.zeros(1000, np.int64)); Laplace(10**18).perturb(0); thread_keystream().bytes(64)
threads = [threading.Thread(target=load) for _ in range(4)]
for thread in threads: thread.start()
def tell(name):
    noise = [Laplace(10**18).perturb(0) for _ in range(20)]
    os.write(1, f"{name} {thread_keystream().bytes(256).hex()} {','.join(map(str, noise))}\\n".encode())
for n in range(200):
    pid = os.fork()
    if pid == 0:
        tell(f"child-{n}")
        os._exit(0)
    tell(f"parent-{n}")
    assert os.waitpid(pid, 0)[1] == 0
stop = True
for thread in threads: thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forks_under_load_share_nothing():
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore::DeprecationWarning"}
    done = subprocess.run(
        [sys.executable, "-c", UNDER_LOAD], capture_output=True, text=True, timeout=600, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    told = [line.split() for line in done.stdout.splitlines()]
    assert len(told) == 400
    blocks = {line[1][start : start + 32] for line in told for start in range(0, len(line[1]) - 31, 2)}
    assert len(blocks) == 400 * (256 - 15)
    noises = [value for line in told for value in line[2].split(",")]
    assert len(set(noises)) == len(noises) == 8000
