"""k-anonymisation compared with anonypy, and measurement compared with pycanon: Adult, eight quasi-identifiers."""

import json
import math
import os
import re
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from bench.peers import running
from discreet import anonymity

PLACE = Path(".bench")
DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
SENSITIVE = ("income", "hours_per_week")
# As a number, with k = 5 for once, which takes anonypy a minute; and as a text, which makes it one more set of values.
SETS = {"education_num": (5, 10, 50), "education": (10, 50)}
TIMES = 3  # the best of so many times of ours counts
PATIENCE = 120
SECONDS, FASTER, MILLION = 0.5, 100, 5  # the bars: seconds for Adult, times anonypy's, seconds for a million rows
AGREED = 1e-9
NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
NOTES = """
penalty: (values of a set - 1)/(values of the column - 1); by shares: values of a set/values of the column, 0 for one
pycanon inverts the ratio in (c, l)-diversity: by definition the most frequent value is divided by the rarest ones; it
reports no c where l is 1. For a table that violates enhanced beta-likeness we report no beta
"""


def main():
    if not (DATA / "adult.parquet").exists():
        print("not measured: Adult not found; set DISCREET_DATA to the data folder")
        return
    PLACE.mkdir(exist_ok=True)
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    beside_anonypy()
    million()
    beside_pycanon()
    pa.set_cpu_count(threads)


def beside_anonypy():
    pair = f"{'ours, anonypy':>17}"
    print(f"{'':46}{'penalty':>17}{'by shares':>17}{'classes':>17}")
    print(f"{'':24}{'seconds':>8}{'anonypy':>8}{'times':>6}{pair}{pair}{pair}")
    for education, several in SETS.items():
        table, quasi = adult(education), quasi_of(education)
        table.to_parquet(table_of(education))
        for k in several:
            seconds, released = best(table, quasi, k)
            ours = lost(released, np.ones(len(released)), table, quasi, k)
            try:
                slower, release = asked_anonypy(education, quasi, k)
            except running.NotMeasuredError as reason:
                print(f"{education}, k = {k}: {seconds:.3f} s, {ours}; anonypy: not measured: {reason}", flush=True)
                continue
            theirs = lost(release, release["count"].to_numpy(), table, quasi, k)
            print(compared(f"{education}, k = {k}", (seconds, slower), ours, theirs), flush=True)


def compared(words, seconds, ours, theirs):
    times = seconds[1] / seconds[0]
    numbers = "".join(f"{mine:9.4f}{other:8.4f}" for mine, other in zip(ours[:2], theirs[:2], strict=True))
    late = "" if seconds[0] < SECONDS and times >= FASTER else "  SLOW"
    worse = "" if ours[0] <= theirs[0] and ours[1] <= theirs[1] else "  WORSE"
    return f"{words:24}{seconds[0]:8.3f}{seconds[1]:8.1f}{times:6.0f}{numbers}{ours[2]:9,}{theirs[2]:8,}{late}{worse}"


def best(table, quasi, k):
    """Return the least seconds from a frame of pandas to a frame of pandas, and what came out."""
    seconds = []
    for _ in range(TIMES):
        began = time.perf_counter()
        released = anonymity.anonymise(table, quasi, k)
        seconds.append(time.perf_counter() - began)
    return min(seconds), released


def asked_anonypy(education, quasi, k):
    """Return the seconds and the release of a peer."""
    jobs, release = PLACE / "anonypy.json", PLACE / "anonypy.parquet"
    places = {"table": str(table_of(education)), "release": str(release)}
    jobs.write_text(json.dumps([{**places, "quasi": quasi, "sensitive": SENSITIVE[0], "k": k}]))
    (told,) = running.run_jobs("anonypy", jobs, PATIENCE)
    return told["seconds"], pd.read_parquet(release)


def lost(released, people, table, quasi, k):
    """Return the two penalties and how many classes there are, after a look at the smallest of them."""
    sizes = pd.Series(people).groupby([released[name] for name in quasi], observed=True, dropna=False).sum()
    if sizes.min() < k:
        raise RuntimeError(f"{sizes.min()} people in a class that was released as {k}-anonymous")
    return *(penalty(released, people, table, quasi, measure) for measure in (by_steps, by_shares)), len(sizes)


def penalty(released, people, table, quasi, measure):
    """Return the normalised certainty penalty: how wide a released cell is, from 0 to 1, on average.

    A range is as wide as its share of the column's range; for a set of values there are two customs. A row that was
    suppressed is as wide as can be. Both libraries' cells are read: 20-29, [0.5, 1.5], {A, B}, and A,B.
    """
    widths = np.mean([width(released[name], table[name], measure) for name in quasi], axis=0)
    return float((widths @ people + len(table) - people.sum()) / len(table))


def by_steps(some, all_):
    return (some - 1) / (all_ - 1)


def by_shares(some, all_):
    return some / all_ if some > 1 else 0


def width(cells, column, measure):
    """Return how wide each cell of a released column is."""
    codes, different = pd.factorize(cells.astype(str))
    if pd.api.types.is_numeric_dtype(column):
        widths = [1 if cell == "*" else reach(cell) / (column.max() - column.min()) for cell in different]
    else:
        widths = [1 if cell == "*" else measure(cell.count(",") + 1, column.nunique()) for cell in different]
    return np.array(widths, float)[codes]


def reach(cell):
    ends = re.fullmatch(rf"\[?({NUMBER})(?:-|, )({NUMBER})\]?", cell)
    return float(ends[2]) - float(ends[1]) if ends else 0 * float(cell)  # what is neither stops here


def million(rows=1_000_000, k=10):
    """Make a million rows like Adult's anonymous: rows drawn again, and one cell of twenty drawn from its column."""
    quasi = quasi_of("education_num")
    table, rng = adult("education_num"), np.random.default_rng(10)
    larger = table.iloc[rng.integers(0, len(table), rows)].reset_index(drop=True)
    for name in quasi:
        other = rng.random(rows) < 1 / 20
        larger.loc[other, name] = table[name].to_numpy()[rng.integers(0, len(table), other.sum())]
    seconds, released = best(larger, quasi, k)
    steps, shares, several = lost(released, np.ones(len(released)), larger, quasi, k)
    late = "" if seconds < MILLION else "  SLOW"
    print(f"{rows:,} rows, k = {k}: {seconds:.2f} s, penalty {steps:.4f} and {shares:.4f}, {several:,} classes{late}")


def beside_pycanon(education="education_num", k=100):
    """Measure a release of ours."""
    quasi, path, jobs = quasi_of(education), PLACE / "released.parquet", PLACE / "pycanon.json"
    table = adult(education)
    released = anonymity.anonymise(table, quasi, k, "hours_per_week", l=3)
    released.attrs = {}
    released.to_parquet(path)
    for sensitive in SENSITIVE:
        seconds, risk = measured(released, quasi, sensitive, table)
        print(f"measured, {sensitive}: {seconds:.3f} s, with all of them and the loss; pycanon:", flush=True)
        jobs.write_text(json.dumps([{"table": str(path), "quasi": quasi, "sensitive": sensitive}]))
        try:
            (told,) = running.run_jobs("pycanon", jobs, PATIENCE)
        except running.NotMeasuredError as reason:
            print(f"not measured: {reason}")
            continue
        for name, theirs in told.items():
            print(agreed(name, READ[name](risk), theirs), flush=True)
        ncp = penalty(released, np.ones(len(released)), table, quasi, by_shares)
        print(f"{'ncp, by this bench':20}{risk.loss.ncp:12.6f}{ncp:12.6f}{same(risk.loss.ncp, ncp)}")
    print(NOTES.rstrip())


def measured(released, quasi, sensitive, original):
    seconds = []
    for _ in range(TIMES):
        began = time.perf_counter()
        risk = anonymity.measure(released, quasi, sensitive, original=original)
        seconds.append(time.perf_counter() - began)
    return min(seconds), risk


def agreed(name, mine, theirs):
    return f"{name:20}{mine:12.6f}{theirs['value']:12.6f}{same(mine, theirs['value'])}{theirs['seconds']:9.2f} s"


def same(mine, theirs):
    return "  agree " if mine == theirs or abs(mine - theirs) < AGREED else "  DIFFER"


READ = {
    "k": lambda risk: risk.k,
    "alpha": lambda risk: risk.alpha,
    "l": lambda risk: risk.l,
    "entropy_l": lambda risk: math.floor(risk.entropy_l),  # pycanon tells no more
    "recursive_c": lambda risk: risk.recursive[0],
    "beta": lambda risk: risk.beta,
    "enhanced_beta": lambda risk: risk.enhanced_beta,
    "delta": lambda risk: risk.delta,
    "t": lambda risk: risk.t,
}


def adult(education):
    """Return the rows of Adult's first part that lack nothing."""
    table = pd.read_parquet(DATA / "adult.parquet").dropna()
    return table.loc[table["split"] == "train", [*quasi_of(education), *SENSITIVE]].reset_index(drop=True)


def quasi_of(education):
    """Return the eight columns; where two are as wide, anonypy cuts the one that is named first."""
    return ["age", "workclass", education, "marital_status", "occupation", "race", "sex", "native_country"]


def table_of(education):
    return PLACE / f"adult_{education}.parquet"
