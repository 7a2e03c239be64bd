"""Spark on many rows: time of a private query compared with the non-private one. Sizes are arguments."""

import contextlib
import json
import os
import resource
import socket
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import discreet as dc
from discreet.engines.duckdb.engine import Tuning
from discreet.engines.spark.connection import apply_settings, new_session
from tests.servers.spark import no_spark, spark_local

SIZES = (1_000_000, 10_000_000)  # and 100_000_000, which takes some minutes
ROUNDS, LARGE = 3, 50_000_000  # from so many rows on, one round: it takes minutes
BAR = 1.5  # times COUNT(DISTINCT user), which needs the same rows in the same order
CITIES, CATEGORIES = 2_000, 20
Q2 = "SELECT city, COUNT(*) AS n, SUM(amount) AS s, AVG(amount) AS m FROM sales GROUP BY city"
RAW = "SELECT city, COUNT(*), SUM(amount), AVG(amount) FROM sales GROUP BY city"
DISTINCT = "SELECT city, COUNT(DISTINCT user) FROM sales GROUP BY city"
POLICY = """
[data]
name = "shop"
engine = "spark"
connection = "{url}"
ledger = ":memory:"
[budget]
epsilon = 1000
delta = 1e-7
[tables.sales]
source = "{place}"
unit = "user"
groups = 5
rows = 10
rows_max = 10_000_000_000
[tables.sales.columns]
user = {{ type = "integer" }}
city = {{ type = "integer" }}
category = {{ type = "integer", between = [0, 19] }}
amount = {{ type = "real", between = [0, 500] }}
"""


def main(*sizes):
    if no_spark():
        print(no_spark())
        return
    with contextlib.ExitStack() as stack:
        folder = os.environ.get("DISCREET_SCALE") or stack.enter_context(tempfile.TemporaryDirectory())
        port = free_port()
        ui = {"spark__ui__enabled": "true", "spark__ui__port": str(port), "spark__sql__shuffle__partitions": "8"}
        server = stack.enter_context(spark_local(memory="4g", **ui))
        spark = new_session(server.url)
        stack.callback(spark.stop)
        apply_settings(spark)
        head = f"{'rows':>13}{'GROUP BY s':>12}{'DISTINCT s':>12}{'ours s':>9}{'times':>5}{'target':>7}"
        print(f"{head}{'µs a row':>10}{'shuffled MB':>13}{'DISTINCT MB':>13}{'RSS MB':>8}{'more':>6}", flush=True)
        for size in map(int, sizes or SIZES):
            place = make(spark, Path(folder) / f"sales-{size}", size)
            print(line(size, measured(spark, server.url, place, port)), flush=True)


def make(spark, place, rows):
    """Write the table once, with Spark: few people have very many rows, and most of one's rows are in four cities."""
    if not (place / "_SUCCESS").exists():
        people = max(1, rows // 20)
        user = f"CAST({people} * POW({chance('id', 1)}, 3) AS BIGINT)"  # one in a hundred rows is of one person
        which = f"CAST({chance('id', 2)} * 4 AS INT)"
        home = f"{CITIES} * POW({chance('user', which, 3)}, 3)"
        away = f"{CITIES} * POW({chance('id', 4)}, 3)"
        spark.range(0, rows, 1, max(2, rows // 2_500_000)).selectExpr("id", f"{user} AS user").selectExpr(
            f"(user * 7919) % {people} AS user",
            f"CAST(CASE WHEN {chance('id', 5)} < 0.8 THEN {home} ELSE {away} END AS BIGINT) AS city",
            f"CAST({CATEGORIES} * POW({chance('id', 6)}, 2) AS BIGINT) AS category",
            f"ROUND(LEAST(-45 * LN(1 - {chance('id', 7)}), 500), 2) AS amount",
        ).write.mode("overwrite").parquet(str(place))
    return place


def chance(*of):
    """Write a number from 0 to 1 that only depends on what is given."""
    return f"(SHIFTRIGHTUNSIGNED(XXHASH64({', '.join(map(str, of))}), 11) / 9007199254740992D)"


def measured(spark, url, place, port):
    """Ask in turns, so that all meet the same machine; return the seconds, the shuffled bytes, and memory here."""
    spark.read.parquet(str(place)).createOrReplaceTempView("sales")
    policy = dc.policy.Policy.parse(POLICY.format(url=url, place=place))
    with dc.open(policy, tuning=Tuning(totals_cache=0, seconds=3600)) as keeper:
        (part,) = keeper.releases.plan_query(Q2, "owner", 5, 10).releases
        works = {
            "raw": lambda: spark.sql(RAW).toArrow(),
            "distinct": lambda: spark.sql(DISTINCT).toArrow(),
            "ours": lambda: keeper._engine.totals(part.question),
        }
        rows = spark.table("sales").count()
        if rows < LARGE:
            for work in works.values():
                work()
        times, bytes_ = {name: [] for name in works}, {}
        before = memory(anew=True)
        for _ in range(ROUNDS if rows < LARGE else 1):
            for name, work in works.items():
                shuffled = written(port)
                began = time.perf_counter()
                work()
                times[name].append(time.perf_counter() - began)
                bytes_[name] = written(port) - shuffled
        peak = memory()
    return {name: statistics.median(each) for name, each in times.items()}, bytes_, (peak, peak - before)


def line(size, found):
    seconds, shuffled, (peak, more) = found
    times = seconds["ours"] / seconds["distinct"]
    head = f"{size:>13,}{seconds['raw']:>12.2f}{seconds['distinct']:>12.2f}{seconds['ours']:>9.2f}{times:>7.2f}{BAR:>5}"
    tail = f"{shuffled['ours'] / 1e6:>13.1f}{shuffled['distinct'] / 1e6:>13.1f}{peak:>8.0f}{more:>6.1f}"
    return f"{head}{seconds['ours'] / size * 1e6:>10.3f}{tail}  {'yes' if times <= BAR else 'misses the target'}"


def written(port):
    """Return how many bytes all stages have written for others to read, as Spark's own page tells."""
    place = f"http://127.0.0.1:{port}/api/v1/applications"
    with urllib.request.urlopen(place) as said:
        (known,) = json.load(said)
    with urllib.request.urlopen(f"{place}/{known['id']}/stages?status=complete") as said:
        return sum(stage["shuffleWriteBytes"] for stage in json.load(said))


def memory(anew=False):
    """Return the most memory that this process had, in MB, since it was last counted anew."""
    with contextlib.suppress(OSError):
        if anew:
            Path("/proc/self/clear_refs").write_text("5")
        lines = dict(each.split(":", 1) for each in Path("/proc/self/status").read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


if __name__ == "__main__":
    main(*sys.argv[1:])
