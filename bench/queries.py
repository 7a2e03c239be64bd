"""Queries on ten million rows: against DuckDB without privacy, against the bars, and against the peers."""

import os
import statistics
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np

import discreet as dc
from bench import shop, stages
from bench.peers import running

ROUNDS = 5
RAW = {
    "Q1 COUNT by category": "SELECT category, COUNT(*) FROM sales GROUP BY category",
    "Q2 COUNT, SUM, AVG by city": "SELECT city, COUNT(*), SUM(amount), AVG(amount) FROM sales GROUP BY city",
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
ASKED = {  # the policy, the question, groups and rows
    "Q1 COUNT by category": ("policy", "SELECT category, COUNT(*) AS n FROM sales GROUP BY category", 20, 10),
    "Q2 COUNT, SUM, AVG by city": ("policy", Q2, 5, 10),
    "Q4 distinct users": ("policy", 'SELECT COUNT(DISTINCT "user") AS n FROM sales', None, None),
    "Q5 COUNT by region, joined": (
        "policy",
        "SELECT region, COUNT(*) AS n FROM sales JOIN cities USING (city) GROUP BY region",
        5,
        10,
    ),
    "Q6 COUNT by city, event level": ("row", "SELECT city, COUNT(*) AS n FROM sales GROUP BY city", None, None),
}
BARS = (  # ours, the yardstick, how many times it, and what may come on top in seconds
    ("Q1 COUNT by category", "GROUP BY user, category", 1.3, 0),
    ("Q2 COUNT, SUM, AVG by city", "COUNT(DISTINCT user) by city", 2.0, 0),
    ("Q4 distinct users", "Q4 distinct users", 1.15, 0.030),
    ("Q5 COUNT by region, joined", "COUNT(DISTINCT user) by region", 2.0, 0),
    ("Q6 COUNT by city, event level", "Q6 COUNT by city", 1.15, 0.030),
)
PEER_SECONDS = 300


def timed(work):
    """Return the CPU and the wall seconds of one call."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def verdict(good):
    return "yes" if good else "short of the bar"


def load():
    return " ".join(f"{part:.1f}" for part in os.getloadavg())


def variant(place, *changes):
    """Return the table's policy with some of its words changed."""
    text = (place / "policy.toml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def write_one(place):
    """Write the policy under which one question takes all that is for discovering: (1, 1e-7) as peers spend it.

    A question takes a hundredth of the discovering part, so that part is a hundred times half of 1e-7.
    """
    wanted = variant(place, ("delta = 1e-7", 'delta = 5.05e-6\ndiscover = "100/101"'))
    (place / "one.toml").write_text(wanted)


def raw(place):
    connection = duckdb.connect()
    for table in ("sales", "cities"):
        connection.execute(f"CREATE VIEW {table} AS FROM '{place / table}.parquet'")
    return connection


def speed(place, connection, curators):
    """Time everything in turns, so that all of it meets the same machine."""

    def plain(sql):
        return lambda: connection.sql(sql).to_arrow_table()

    def asked(policy, sql, groups, rows):
        return lambda: curators[policy].ask(sql, epsilon=1, groups=groups, rows=rows)

    works = {("raw", name): plain(sql) for name, sql in RAW.items()}
    works |= {("ask", name): asked(*words) for name, words in ASKED.items()}
    for work in works.values():
        work()
    times = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            times[name].append(timed(work))
    print(f"{place.name}, medians of {ROUNDS} rounds in turns, load {load()}")
    print(f"{'':<46}{'CPU s':>8}{'wall s':>8}")
    for (kind, name), found in times.items():
        cpu, wall = (statistics.median(column) for column in zip(*found, strict=True))
        print(f"{'Discreet: ' if kind == 'ask' else 'DuckDB: '}{name:<{36 if kind == 'ask' else 38}}{cpu:>8.3f}{wall:>8.3f}")
    print(f"\n{'CPU, the median over rounds':<80}{'times':>6}{'bar':>6}  reached?")
    for ours, yardstick, most, extra in BARS:
        pairs = zip(times["ask", ours], times["raw", yardstick], strict=True)
        ratio = statistics.median((mine[0] - extra) / other[0] for mine, other in pairs)
        what = f"{ours}{f' less {extra * 1000:.0f} ms' if extra else ''} / {yardstick}"
        print(f"{what:<80}{ratio:>6.2f}{most:>6}  {verdict(ratio <= most)}")


def accuracy(place, connection, curator):
    """Print how many cities are shown, and how far counts are from the bounded totals and from the truth."""
    truth = dict(connection.sql(RAW["Q6 COUNT by city"]).fetchall())
    question = curator._plan(Q2, "owner", 5, 10).parts[0].question
    totals = curator._engine.totals(question)
    place_of_count = 1  # after the units, which decide what is shown
    exact = totals.values[:, place_of_count] / (1 << question.bits(question.totals[place_of_count]))
    bounded = dict(zip((city for (city,) in totals.keys), exact, strict=True))
    print(f"\nQ2, {len(truth):,} cities            shown  count noise (RMSE)  of the truth (RMSE)  bounds alone")
    with dc.open(place / "one.toml") as whole:
        for name, one in (("a hundredth of `discover`", curator), ("all of `discover`", whole)):
            table = one.ask(Q2, epsilon=1, groups=5, rows=10).table
            counts = dict(zip(table["city"].to_pylist(), table["n"].to_pylist(), strict=True))
            noise, error = rms(counts, bounded), rms(counts, truth)
            print(f"{name:<30}{len(counts):>6,}{noise:>20,.0f}{error:>21,.0f}{rms(bounded, truth, counts):>14,.0f}")


def rms(one, other, keys=None):
    """Return the root of the mean square of differences, over the keys of the first or the given ones."""
    return float(np.sqrt(np.mean([(one[key] - other[key]) ** 2 for key in (keys or one)])))


def overhead(place):
    """Print what an answer costs beyond the engine, with a ledger on disk."""
    with tempfile.TemporaryDirectory(dir=place) as folder:
        ledger = Path(folder) / "ledger.sqlite"
        policy = dc.policy.Policy.parse(variant(place, (":memory:", str(ledger.absolute()))), place)
        with dc.open(policy) as curator:
            for epsilon in (1, 100):
                found = [stages.of(lambda e=epsilon: curator.ask(Q2, epsilon=e, groups=5, rows=10)) for _ in range(7)]
                shown = found[0].answer.table.num_rows
                print(f"\nQ2 beyond the engine, {shown:,} cities shown, ms{'CPU':>13}{'wall':>8}{'first, wall':>13}")
                for name in [*found[0].cpu]:
                    cpu = statistics.median(each.cpu[name] for each in found[1:]) * 1000
                    wall = statistics.median(each.wall[name] for each in found[1:]) * 1000
                    bar = f"  bar 30 ms   {verdict(cpu < 30)}" if name == stages.ALL else ""
                    print(f"  {name:<43}{cpu:>12.1f}{wall:>8.1f}{found[0].wall[name] * 1000:>13.1f}{bar}")


def peers():
    """Put Q2 to the peers, at a million and at ten million rows."""
    print(f"\n{'Q2 at epsilon 1, delta 1e-7':<34}{'CPU s':>8}{'wall s':>8}{'peak MB':>9}{'cities':>8}", end="")
    print(f"{'spread':>9}{'RMSE':>9}")
    for rows, people, times in ((1_000_000, 50_000, 2), (10_000_000, 500_000, 1)):
        place = shop.make(Path(".bench"), rows, people)
        write_one(place)
        truth = {str(city): n for city, n in raw(place).sql(RAW["Q6 COUNT by city"]).fetchall()}
        mine = None
        for peer in running.PEERS:
            label = f"{peer}, {rows:,} rows"
            try:
                told = running.run(peer, place, rows, times, PEER_SECONDS)
            except running.NotMeasuredError as reason:
                print(f"{label:<34}  {reason}", flush=True)
                continue
            mine = mine or told
            print(f"{label:<34}{min(told['cpu']):>8.2f}{min(told['wall']):>8.2f}{told['peak']:>9,.0f}", end="")
            print(f"{len(told['counts'][0]):>8,}{spread(told['counts'])}{rms(told['counts'][0], truth):>9,.0f}", end="")
            print(f"  {told['version']}{against(mine, told)}", flush=True)
    print("spread: how far two answers of the same question are apart, over the root of two; RMSE: of the truth")


def spread(counts):
    if len(counts) < 2:
        return f"{'-':>9}"
    both = counts[0].keys() & counts[1].keys()
    return f"{rms(counts[0], counts[1], both) / 2**0.5:>9,.0f}"


def against(mine, told):
    if mine is told:
        bar = f", bar 1,024 MB {verdict(told['peak'] < 1024)}"
        return bar
    return f", {min(told['cpu']) / min(mine['cpu']):.1f} times the CPU, {told['peak'] / mine['peak']:.1f} the memory"


def main():
    place = shop.make(Path(".bench"))
    write_one(place)
    with raw(place) as connection, dc.open(place / "policy.toml") as people, dc.open(place / "row.toml") as rows:
        speed(place, connection, {"policy": people, "row": rows})
        accuracy(place, connection, people)
    overhead(place)
    peers()


if __name__ == "__main__":
    main()
