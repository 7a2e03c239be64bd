"""Reconstruction from 4n noisy subset sums: time and accuracy."""

import time

from discreet import attacks
from discreet.attacks.data.secret_bits import Secrets

NOISE = 1 / 4  # of 1/sqrt(n)
TIMES = 3  # the time is the best of so many
# people, method, the bars: seconds, and the share of the bits
BARS = ((2048, "least squares", 2.0, 0.95), (256, "linear programme", 1.0, 0.9))


def main():
    print(f"{'':20}{'people':>8}{'questions':>11}{'seconds':>9}{'right':>8}")
    for people, method, most, least in BARS:
        seconds, result = measured(people, method)
        late = "" if seconds < most else "  SLOW"
        off = "" if result.success >= least else "  WRONG"
        questions = result.details["questions"]
        print(f"{method:20}{people:8,}{questions:11,}{seconds:9.2f}{result.success:8.3f}{late}{off}", flush=True)


def measured(people, method):
    """Return the seconds of a whole attack, from drawing the questions to the result, and what it reached."""
    secrets, seconds = Secrets.simulate(people, random_state=0), []
    for _ in range(TIMES):
        began = time.perf_counter()
        result = attacks.reconstruct(secrets, noise=NOISE, method=method, random_state=0)
        seconds.append(time.perf_counter() - began)
    return min(seconds), result


if __name__ == "__main__":
    main()
