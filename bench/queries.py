"""Queries on ten million rows, compared with non-private DuckDB, with targets and with other systems."""

import contextlib
import itertools
import os
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from unittest import mock

import discreet as dc
from bench import shop
from bench.peers import comparing
from discreet.curator import answer_builder, query_releases
from discreet.engines.duckdb.engine import DuckDB, Tuning
from discreet.kernel import release

ROUNDS = 5
FORGETFUL = Tuning(totals_cache=0)
RAW = {
    "Q1 COUNT by category": "SELECT category, COUNT(*) FROM sales GROUP BY category",
    "Q2 COUNT, SUM, AVG by city": "SELECT city, COUNT(*), SUM(amount), AVG(amount) FROM sales GROUP BY city",
    "Q3 MEDIAN by category": "SELECT category, MEDIAN(amount) FROM sales GROUP BY category",
    "Q4 distinct users": 'SELECT COUNT(DISTINCT "user") FROM sales',
    "Q5 COUNT by region, joined": "SELECT region, COUNT(*) FROM sales JOIN cities USING (city) GROUP BY region",
    "Q6 COUNT by city": "SELECT city, COUNT(*) FROM sales GROUP BY city",
    "GROUP BY user, category": 'SELECT COUNT(*) FROM (SELECT "user", category FROM sales GROUP BY ALL)',
    "COUNT(DISTINCT user) by city": 'SELECT city, COUNT(DISTINCT "user") FROM sales GROUP BY city',
    "COUNT(DISTINCT user) by region": (
        'SELECT region, COUNT(DISTINCT "user") FROM sales JOIN cities USING (city) GROUP BY region'
    ),
}
Q2 = "SELECT city, COUNT(*) AS n, SUM(amount) AS s, AVG(amount) AS m FROM sales GROUP BY city"
Q2_MEAN = "SELECT city, AVG(amount) AS m FROM sales GROUP BY city"
Q5 = "SELECT region, COUNT(*) AS n FROM sales JOIN cities USING (city) GROUP BY region"
ASKED = {  # the policy, the question, groups and rows
    "Q1 COUNT by category": ("policy", "SELECT category, COUNT(*) AS n FROM sales GROUP BY category", 20, 10),
    "Q2 COUNT, SUM, AVG by city": ("policy", Q2, 5, 10),
    "Q3 MEDIAN by category": ("policy", "SELECT category, MEDIAN(amount) AS m FROM sales GROUP BY category", 20, 10),
    "Q4 distinct users": ("policy", 'SELECT COUNT(DISTINCT "user") AS n FROM sales', None, None),
    "Q5 COUNT by region, joined": ("policy", Q5, 5, 10),
    "Q6 COUNT by city, event level": ("row", "SELECT city, COUNT(*) AS n FROM sales GROUP BY city", None, None),
}
AGAIN = "AVG by city, after Q2"  # another question about the same bounded pairs
BARS = (  # ours, the yardstick, how many times it, and what may come on top in seconds
    ("Q1 COUNT by category", "GROUP BY user, category", 1.4, 0),
    ("Q2 COUNT, SUM, AVG by city", "COUNT(DISTINCT user) by city", 2.2, 0),
    ("Q3 MEDIAN by category", "GROUP BY user, category", None, 0),
    ("Q3 MEDIAN by category", "Q3 MEDIAN by category", None, 0),
    ("Q4 distinct users", "Q4 distinct users", 1.15, 0.030),
    ("Q5 COUNT by region, joined", "COUNT(DISTINCT user) by region", 2.0, 0),
    ("Q6 COUNT by city, event level", "Q6 COUNT by city", 1.15, 0.030),
    (AGAIN, "Q2 COUNT, SUM, AVG by city", 1.0, 0.030),
)
ENGINE, REST, BEYOND = "engine", "the rest", "all but the engine"


def main():
    place = shop.make(Path(".bench"))
    comparing.write_one(place)
    with (
        comparing.raw(place) as connection,
        dc.open(place / "policy.toml", tuning=FORGETFUL) as one,
        dc.open(place / "row.toml", tuning=FORGETFUL) as other,
        dc.open(place / "policy.toml") as remembering,
    ):
        speed(connection, {"policy": one, "row": other}, remembering)
        accuracy(place, connection, one)
    overhead(place)
    comparing.main()


def anew(keeper):
    """Return a function that asks with fresh noise and a charge every time: each is about another version."""
    versions = (f"version {number}" for number in itertools.count())

    def ask(sql, **more):
        data = keeper.policy.data.model_copy(update={"version": next(versions)})
        return dc.Curator(replace(keeper.policy, data=data), keeper._engine, keeper.ledger).ask(sql, **more)

    return ask


def speed(connection, curators, remembering):
    """Time everything in turns, so that all of it meets the same machine."""
    works = {f"DuckDB: {name}": lambda sql=sql: connection.sql(sql).to_arrow_table() for name, sql in RAW.items()}
    asking = {policy: anew(keeper) for policy, keeper in curators.items()}
    for name, (policy, sql, groups, rows) in ASKED.items():
        limits = {"groups": groups, "rows": rows}
        works[f"Discreet: {name}"] = lambda ask=asking[policy], q=sql, at=limits: ask(q, epsilon=1, **at)
    again = anew(remembering)
    again(Q2, epsilon=1, groups=5, rows=10)
    works[f"Discreet: {AGAIN}"] = lambda: again(Q2_MEAN, epsilon=1, groups=5, rows=10)
    for work in works.values():
        work()
    times = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            times[name].append(timed(work))
    head = f"medians of {ROUNDS} rounds in turns, load {loads()}"
    print(f"{head:<62}{'CPU s':>8}{'wall s':>8}")
    for name, found in times.items():
        cpu, wall = map(statistics.median, zip(*found, strict=True))
        print(f"{name:<62}{cpu:>8.3f}{wall:>8.3f}")
    print(f"\n{'':<62}{'CPU':>8}{'wall':>8}{'target':>8}  met?")
    for ours, yardstick, most, extra in BARS:
        pairs = list(zip(times[f"Discreet: {ours}"], times[f"DuckDB: {yardstick}"], strict=True))
        cpu, wall = (statistics.median((mine[kind] - extra) / raw[kind] for mine, raw in pairs) for kind in (0, 1))
        what = f"{ours}{f' less {extra * 1000:.0f} ms' if extra else ''} / {yardstick}"
        bar = f"{'-':>8}" if most is None else f"{most:>8}  {verdict(cpu <= most)}"
        print(f"{what:<62}{cpu:>8.2f}{wall:>8.2f}{bar}", flush=True)


def accuracy(place, connection, shopkeeper):
    """Print how many cities are shown, and how far counts are from the bounded totals and from the truth."""
    truth = dict(connection.sql(RAW["Q6 COUNT by city"]).fetchall())
    question = shopkeeper.releases.plan_query(Q2, "owner", 5, 10).releases[0].question
    totals = shopkeeper._engine.totals(question)
    # The first total is the number of units, which decides what is shown; the second is COUNT(*).
    exact = totals.values[:, 1] / (1 << question.fraction_bits(question.totals[1]))
    bounded = dict(zip((city for (city,) in totals.keys), exact, strict=True))
    print(f"\n{f'Q2, {len(truth):,} cities; RMSE of counts':<46}{'shown':>8}{'noise':>8}{'bounds':>8}{'both':>8}")
    with dc.open(place / "one.toml") as whole:
        for name, one in (("a hundredth of `discover`, the default", shopkeeper), ("all of `discover`", whole)):
            table = anew(one)(Q2, epsilon=1, groups=5, rows=10).table
            counts = dict(zip(table["city"].to_pylist(), table["n"].to_pylist(), strict=True))
            errors = [(counts, bounded), ({city: bounded[city] for city in counts}, truth), (counts, truth)]
            shown = "".join(f"{comparing.rms(*pair):>8,.0f}" for pair in errors)
            bar = "  bar 1,200 shown" if one is whole else ""
            print(f"{name:<46}{len(counts):>8,}{shown}{bar and f'{bar}  {verdict(len(counts) >= 1200)}'}", flush=True)


def overhead(place):
    """Print what an answer costs beyond the engine, with a ledger on disk."""
    with tempfile.TemporaryDirectory(dir=place) as folder:
        ledger = Path(folder).absolute() / "ledger.sqlite"
        policy = dc.policy.Policy.parse(comparing.variant(place, ":memory:", str(ledger)), place)
        with dc.open(policy, tuning=FORGETFUL) as shopkeeper:
            for epsilon in (1, 30):  # at 30, all cities are shown
                shown, found = staged(shopkeeper, epsilon)
                head = f"Q2 beyond the engine, {shown:,} cities shown"
                print(f"\n{head:<46}{'CPU ms':>8}{'wall ms':>8}{'first, wall':>13}")
                for stage in found[0]:
                    cpu, wall = ([1000 * each[stage][kind] for each in found] for kind in (0, 1))
                    usual = statistics.median(cpu[1:]), statistics.median(wall[1:])
                    bar = (
                        f"  bar 30: CPU {verdict(usual[0] < 30)}, wall {verdict(usual[1] < 30)}"
                        if stage == BEYOND
                        else ""
                    )
                    print(f"  {stage:<44}{usual[0]:>8.1f}{usual[1]:>8.1f}{wall[0]:>13.1f}{bar}", flush=True)


def stages(shopkeeper):
    """Return the functions that an answer passes through, and what each is part of; none of them calls another."""
    ledger = type(shopkeeper.ledger)
    return (
        (query_releases, "plan_query", "plan the query"),
        (query_releases.pricing, "accuracy_target", "price"),
        (query_releases.pricing, "plan_release", "price"),
        (release.Catalog, "check", "check before the charge"),
        (release, "fingerprints_of", "check before the charge"),
        (release, "release_event", "check before the charge"),
        (ledger, "charge", "charge"),
        (DuckDB, "totals", ENGINE),
        (release, "write_totals", "store"),
        (ledger, "settle", "store"),
        (answer_builder, "assemble_table", "assemble"),
        (answer_builder.postprocess, "run_with_margins", "post-process"),
    )


def staged(shopkeeper, epsilon):
    """Ask Q2 several times; return how many cities were shown, and for each time the seconds of every stage."""
    found, spent = [], {}
    names = list(dict.fromkeys(stage for *_, stage in stages(shopkeeper)))
    with contextlib.ExitStack() as patches:
        for owner, name, stage in stages(shopkeeper):
            patches.enter_context(mock.patch.object(owner, name, watched(getattr(owner, name), spent, stage)))
        ask = anew(shopkeeper)
        for _ in range(ROUNDS + 1):
            spent.clear()
            began = clocks()
            answer = ask(Q2, epsilon=epsilon, groups=5, rows=10)
            whole = since(began)
            parts = [sum(kind) for kind in zip(*(spent[name] for name in names), strict=True)]
            beyond = [total - engine for total, engine in zip(whole, spent[ENGINE], strict=True)]
            rest = [total - part for total, part in zip(whole, parts, strict=True)]
            found.append({**{name: spent[name] for name in names}, REST: rest, BEYOND: beyond})
    return answer.table.num_rows, found


def watched(function, spent, stage):
    """Return the function, adding what it takes to its stage."""

    def call(*args, **named):
        began = clocks()
        try:
            return function(*args, **named)
        finally:
            before = spent.get(stage, (0, 0))
            spent[stage] = tuple(map(sum, zip(before, since(began), strict=True)))

    return call


def clocks():
    return time.process_time(), time.perf_counter()


def since(began):
    return tuple(now - then for now, then in zip(clocks(), began, strict=True))


def timed(work):
    """Return the CPU and the wall seconds of one call."""
    began = clocks()
    work()
    return since(began)


def loads():
    return " ".join(f"{part:.1f}" for part in os.getloadavg())


def verdict(good):
    return "yes" if good else "misses the target"


if __name__ == "__main__":
    main()
